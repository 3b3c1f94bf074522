// SPDX-License-Identifier: GPL-2.0
/*
 * Regions on dma-bufs.
 *
 * This adapter accesses memory by the CPU.  It imports a buffer by dma_buf_vmap() and not as an
 * attachment, which would need a device that does DMA.  The exporter keeps the buffer in its place
 * while it is mapped, so no move has to be handled.
 *
 * All accesses go through the exporter's mapping.  The exporter knows how the buffer may be cached
 * (an exporter of graphics memory may map it write-combined), and the pages behind the mapping may
 * have a cached alias in the kernel's map of all memory, which must not be used then.  Such
 * pages may also have no struct page.
 *
 * The accesses are bracketed by dma_buf_begin_cpu_access() at registration and
 * dma_buf_end_cpu_access() at deregistration, as both may sleep and an engine must not.  An
 * application that lets another device write to the buffer in between brackets its accesses by
 * DMA_BUF_IOCTL_SYNC, as it does for mmap().
 */
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>

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
	/* memcpy() is not for I/O memory */
	if (db->map.is_iomem) {
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
	if (ib_access_writable(access) && !(buf->file->f_mode & FMODE_WRITE))
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
	mr->kind = NHCA_MR_LINEAR;
	mr->linear = db->map.vaddr + offset;
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;

err_put:
	dma_buf_put(buf);
	return ERR_PTR(err);
}
