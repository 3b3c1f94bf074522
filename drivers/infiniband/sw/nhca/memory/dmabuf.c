// SPDX-License-Identifier: GPL-2.0
/*
 * Regions on dma-bufs.
 *
 * This adapter reaches memory by the CPU, so a buffer is good for it if the CPU can map
 * it as memory, and is imported that way: by dma_buf_vmap(), not as an attachment, which
 * would need a device that does DMA.  The exporter keeps the buffer where it is as long
 * as it is mapped so, and nothing has to be told when it moves.
 */
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "dmabuf.h"
#include "mr.h"

#ifdef NHCA_OLD_IMPORT_NS
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

/**
 * struct nhca_dmabuf - an imported buffer
 * @buf: counted, and open to the CPU
 * @map: where it is mapped in the kernel
 */
struct nhca_dmabuf {
	struct dma_buf *buf;
	struct iosys_map map;
};

/* The page that kernel address @p is on, if it is memory; or NULL. */
static struct page *dmabuf_page(const void *p)
{
	unsigned long pfn;

	if (!is_vmalloc_addr(p))
		return virt_addr_valid(p) ? virt_to_page(p) : NULL;
	pfn = vmalloc_to_pfn(p);
	return pfn_valid(pfn) ? pfn_to_page(pfn) : NULL;
}

/* The pages that @length bytes from @offset on are on. */
static int dmabuf_map(struct nhca_mr *mr, u64 offset, u64 length, bool writable)
{
	u64 first = offset >> PAGE_SHIFT;
	u64 npages = PFN_UP(offset + length) - first, i;
	struct page **pages;
	int err = 0;

	pages = kvmalloc_array(npages, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < npages && !err; i++) {
		pages[i] = dmabuf_page(mr->dmabuf->map.vaddr + ((first + i) << PAGE_SHIFT));
		if (!pages[i])
			err = -EOPNOTSUPP;
	}
	if (!err)
		err = nhca_mr_map_pages(mr, pages, npages, offset_in_page(offset), writable);
	kvfree(pages);
	return err;
}

void nhca_dmabuf_free(struct nhca_dmabuf *db)
{
	if (!db)
		return;
	dma_buf_vunmap_unlocked(db->buf, &db->map);
	/* an exporter that cannot flush now has nobody to tell */
	dma_buf_end_cpu_access(db->buf, DMA_BIDIRECTIONAL);
	dma_buf_put(db->buf);
	kfree(db);
}

/* Takes over the reference on @buf, also if it fails. */
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
	if (db->map.is_iomem || !PAGE_ALIGNED(db->map.vaddr)) {
		nhca_dmabuf_free(db);
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

struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset, u64 length,
			     u64 iova, int fd, int access)
{
	bool writable = ib_access_writable(access);
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
	/* as mmap() of it would say */
	err = -EACCES;
	if (writable && !(buf->file->f_mode & FMODE_WRITE))
		goto err_put;

	db = dmabuf_import(buf);
	if (IS_ERR(db))
		return ERR_CAST(db);
	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr)) {
		nhca_dmabuf_free(db);
		return ERR_CAST(mr);
	}
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->dmabuf = db;
	err = dmabuf_map(mr, offset, length, writable);
	if (err) {
		nhca_mr_free(mr);
		return ERR_PTR(err);
	}
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;

err_put:
	dma_buf_put(buf);
	return ERR_PTR(err);
}
