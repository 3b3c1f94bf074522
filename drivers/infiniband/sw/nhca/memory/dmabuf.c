// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of dma-bufs.
 *
 * This driver accesses memory by the CPU.  It imports a buffer by dma_buf_vmap_unlocked() and not
 * by an attachment, because an attachment needs a device that does DMA.  The exporter does not move
 * the buffer while the buffer is mapped, so the driver handles no move.
 *
 * All accesses use the exporter's mapping, because the exporter chooses how the buffer is cached:
 * an exporter of graphics memory may map the buffer write-combined.  In this case the cached alias
 * of the pages in the direct map must not be used.  The buffer may also have no struct page.
 *
 * The accesses are between dma_buf_begin_cpu_access() at registration and dma_buf_end_cpu_access()
 * at deregistration.  These functions may sleep, so they cannot be called for each access in
 * softirq.  An application that also lets another device read or write the registered buffer must
 * therefore call DMA_BUF_IOCTL_SYNC before and after the RDMA operations that access the buffer, as
 * it does for its own accesses after mmap().
 */
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "mr.h"

#ifdef NHCA_OLD_IMPORT_NS
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

/**
 * struct nhca_dmabuf - an imported buffer
 * @buf: the buffer; counted; dma_buf_begin_cpu_access() was called for it
 * @map: its mapping in the kernel
 * @start: kernel address of the region's first byte
 */
struct nhca_dmabuf {
	struct dma_buf *buf;
	struct iosys_map map;
	void *start;
};

/* Release an imported buffer, which no code uses any more. */
static void dmabuf_release(struct nhca_dmabuf *db)
{
	dma_buf_vunmap_unlocked(db->buf, &db->map);
	/* ignore errors: if the exporter cannot flush caches, the caller cannot do it either */
	dma_buf_end_cpu_access(db->buf, DMA_BIDIRECTIONAL);
	dma_buf_put(db->buf);
	kfree(db);
}

/* Import a buffer.  The function takes over the caller's reference on @buf, even if it fails. */
static struct nhca_dmabuf *dmabuf_import(struct dma_buf *buf)
{
	struct nhca_dmabuf *db = kzalloc(sizeof(*db), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!db)
		goto err_put;
	db->buf = buf;
	err = dma_buf_begin_cpu_access(buf, DMA_BIDIRECTIONAL);
	if (err)
		goto err_free;
	err = dma_buf_vmap_unlocked(buf, &db->map);
	if (err)
		goto err_end;
	/* memcpy() must not access I/O memory */
	if (db->map.is_iomem) {
		dmabuf_release(db);
		return ERR_PTR(-EOPNOTSUPP);
	}
	return db;

err_end:
	dma_buf_end_cpu_access(buf, DMA_BIDIRECTIONAL);
err_free:
	kfree(db);
err_put:
	dma_buf_put(buf);
	return ERR_PTR(err);
}

/* Return bytes of the exporter's mapping.  Its addresses need not be in the direct map. */
static int dmabuf_seg(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	seg->addr = mr->dmabuf->start + off;
	/* a segment ends at a page boundary, as in pinned memory of small pages */
	seg->len = min_t(u64, max, PAGE_SIZE - offset_in_page(seg->addr));
	return 0;
}

static void dmabuf_free(struct nhca_mr *mr)
{
	dmabuf_release(mr->dmabuf);
}

static const struct nhca_mr_ops dmabuf_ops = {
	.seg = dmabuf_seg,
	.free = dmabuf_free,
};

struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset, u64 length,
			     u64 iova, int fd, int access)
{
	struct nhca_dmabuf *db;
	struct dma_buf *buf;
	struct nhca_mr *mr;
	int err;

	if (access & IB_ZERO_BASED)
		iova = 0;
	if (!length || iova + length - 1 < iova)
		return ERR_PTR(-EINVAL);
	buf = dma_buf_get(fd);
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	err = -EINVAL;
	if (length > buf->size || offset > buf->size - length)
		goto err_put;
	/* the same error as for a writable mmap() of the buffer */
	err = -EACCES;
	if (ib_access_writable(access) && !(buf->file->f_mode & FMODE_WRITE))
		goto err_put;

	db = dmabuf_import(buf);
	if (IS_ERR(db))
		return ERR_CAST(db);
	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr)) {
		dmabuf_release(db);
		return ERR_CAST(mr);
	}
	db->start = db->map.vaddr + offset;
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->ops = &dmabuf_ops;
	mr->kind = NHCA_MR_LINEAR;
	mr->dmabuf = db;
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;

err_put:
	dma_buf_put(buf);
	return ERR_PTR(err);
}
