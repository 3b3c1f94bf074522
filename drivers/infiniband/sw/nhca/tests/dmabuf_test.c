// SPDX-License-Identifier: GPL-2.0
/* KUnit: regions on dma-bufs. The exporter of the test records the calls of the importer. */
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/iosys-map.h>
#include <linux/vmalloc.h>

#include "regions.h"

#define PAGES	3
#define SIZE	(PAGES * PAGE_SIZE)

/**
 * struct exporter - a buffer of PAGES pages
 * @pages: memory of the buffer, filled with the digit of the page's number
 * @map:   kernel address from vmap()
 * @ops:   dma-buf operations
 * @begun: number of begin_cpu_access() calls that succeeded
 * @ended: number of end_cpu_access() calls
 * @vmaps: number of vmap() calls minus number of vunmap() calls
 * @begin_error: error that begin_cpu_access() returns, or 0
 * @iomem: vmap() declares the memory as I/O memory
 * @misused: a call came in the wrong order
 */
struct exporter {
	struct page *pages[PAGES];
	const struct dma_buf_ops *ops;
	void *map;
	int begun;
	int ended;
	int vmaps;
	int begin_error;
	bool iomem;
	bool misused;
};

static struct sg_table *no_dma(struct dma_buf_attachment *at, enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void no_dma_end(struct dma_buf_attachment *at, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
}

static void exporter_release(struct dma_buf *buf)
{
}

static int exporter_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *ex = buf->priv;

	if (ex->begin_error)
		return ex->begin_error;
	ex->begun++;
	return 0;
}

static int exporter_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *ex = buf->priv;

	/* the importer must have called vunmap() before */
	ex->ended++;
	ex->misused |= ex->vmaps || ex->ended > ex->begun;
	return 0;
}

static int exporter_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *ex = buf->priv;

	ex->misused |= ex->ended >= ex->begun;
	ex->map = vmap(ex->pages, PAGES, VM_MAP, PAGE_KERNEL);
	if (!ex->map)
		return -ENOMEM;
	ex->vmaps++;
	if (ex->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)ex->map);
	else
		iosys_map_set_vaddr(map, ex->map);
	return 0;
}

static void exporter_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *ex = buf->priv;

	vunmap(ex->map);
	ex->vmaps--;
}

static const struct dma_buf_ops exporter_ops = {
	.map_dma_buf = no_dma,
	.unmap_dma_buf = no_dma_end,
	.release = exporter_release,
	.begin_cpu_access = exporter_begin,
	.end_cpu_access = exporter_end,
	.vmap = exporter_vmap,
	.vunmap = exporter_vunmap,
};

/*
 * Operations of a buffer that the CPU cannot map. There is no vmap(), because dma_buf_vmap() would
 * warn if a vmap() returned an error.
 */
static const struct dma_buf_ops unmappable_ops = {
	.map_dma_buf = no_dma,
	.unmap_dma_buf = no_dma_end,
	.release = exporter_release,
	.begin_cpu_access = exporter_begin,
	.end_cpu_access = exporter_end,
};

static struct exporter *exporter_make(struct kunit *test)
{
	struct exporter *ex = kunit_kzalloc(test, sizeof(*ex), GFP_KERNEL);
	struct fixture *f = test->priv;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ex);
	ex->ops = &exporter_ops;
	for (i = 0; i < PAGES; i++)
		ex->pages[i] = f->pages[i];
	return ex;
}

/* Register bytes @offset to @offset + @length - 1 at address 0x1000, and close the descriptor. */
static struct ib_mr *exporter_reg(struct kunit *test, struct exporter *ex, int mode, u64 offset,
				  u64 length, int access)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct fixture *f = test->priv;
	struct dma_buf *buf;
	struct ib_mr *mr;
	int fd;

	info.ops = ex->ops;
	info.size = SIZE;
	info.flags = mode;
	info.priv = ex;
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buf));
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	KUNIT_ASSERT_GE(test, fd, 0);
	mr = nhca_mr_dmabuf(f->dev, f->key_user.pd, offset, length, 0x1000, fd, access);
	close_fd(fd);
	return mr;
}

/*
 * Each byte is accessed at the address at which the exporter has mapped it, because another mapping
 * of the same page may have other cache attributes.
 */
static void exporters_mapping_test(struct kunit *test)
{
	struct exporter *ex = exporter_make(test);
	struct fixture *f = test->priv;
	const u64 offset = PAGE_SIZE - 5;
	struct nhca_seg seg = {};
	struct ib_mr *mr;
	u64 off;

	mr = exporter_reg(test, ex, O_RDWR, offset, PAGE_SIZE + 10, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	for (off = 0; off < PAGE_SIZE + 10; off += seg.len) {
		KUNIT_ASSERT_EQ(test, seg_at(to_nhca_mr(mr), off, PAGE_SIZE + 10 - off, true,
					     &seg), 0);
		KUNIT_EXPECT_PTR_EQ(test, seg.addr, ex->map + offset + off);
		KUNIT_ASSERT_GT(test, seg.len, 0);
	}
	KUNIT_EXPECT_EQ(test, off, PAGE_SIZE + 10);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0x1000), '0');
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0x1000 + 5), '1');
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0x1000 + 5 + PAGE_SIZE), '2');
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0xfff), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0x1000 + PAGE_SIZE + 10), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->other, mr->rkey, 0x1000), -EACCES);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/* The buffer is mapped after begin_cpu_access() and unmapped before end_cpu_access(). */
static void bracket_test(struct kunit *test)
{
	struct exporter *ex = exporter_make(test);
	struct fixture *f = test->priv;
	struct ib_mr *mr = exporter_reg(test, ex, O_RDWR, 0, SIZE, ALL_ACCESS);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, ex->begun, 1);
	KUNIT_EXPECT_EQ(test, ex->ended, 0);
	KUNIT_EXPECT_EQ(test, ex->vmaps, 1);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	KUNIT_EXPECT_EQ(test, ex->ended, 1);
	KUNIT_EXPECT_EQ(test, ex->vmaps, 0);
	KUNIT_EXPECT_FALSE(test, ex->misused);
}

/*
 * If a function of the exporter fails, or nhca cannot use the buffer, registration fails and undoes
 * every call that succeeded before.
 */
static void refused_test(struct kunit *test)
{
	struct exporter *ex = exporter_make(test);

	ex->begin_error = -EIO;
	KUNIT_EXPECT_EQ(test, PTR_ERR(exporter_reg(test, ex, O_RDWR, 0, SIZE, ALL_ACCESS)), -EIO);
	ex->begin_error = 0;
	ex->ops = &unmappable_ops;
	KUNIT_EXPECT_EQ(test, PTR_ERR(exporter_reg(test, ex, O_RDWR, 0, SIZE, ALL_ACCESS)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, ex->begun, 1);
	KUNIT_EXPECT_EQ(test, ex->ended, 1);
	ex->ops = &exporter_ops;
	ex->iomem = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR(exporter_reg(test, ex, O_RDWR, 0, SIZE, ALL_ACCESS)),
			-EOPNOTSUPP);
	ex->iomem = false;
	KUNIT_EXPECT_EQ(test, PTR_ERR(exporter_reg(test, ex, O_RDWR, 1, SIZE, ALL_ACCESS)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(exporter_reg(test, ex, O_RDONLY, 0, SIZE, ALL_ACCESS)),
			-EACCES);
	KUNIT_EXPECT_EQ(test, ex->begun, 2);
	KUNIT_EXPECT_EQ(test, ex->ended, 2);
	KUNIT_EXPECT_EQ(test, ex->vmaps, 0);
	KUNIT_EXPECT_FALSE(test, ex->misused);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(exporters_mapping_test),
	KUNIT_CASE(bracket_test),
	KUNIT_CASE(refused_test),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "nhca_dmabuf",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);
