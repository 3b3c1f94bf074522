/* SPDX-License-Identifier: GPL-2.0 */
/* Regions of buffers that other devices share as dma-bufs. */
#ifndef NHCA_DMABUF_H
#define NHCA_DMABUF_H

struct nhca_dmabuf;

#ifdef CONFIG_DMA_SHARED_BUFFER
/**
 * nhca_dmabuf_free - release an imported buffer
 * @db: the buffer or NULL; no code uses it any more
 * Context: process, sleeps.
 */
void nhca_dmabuf_free(struct nhca_dmabuf *db);
#else
static inline void nhca_dmabuf_free(struct nhca_dmabuf *db) { }
#endif

#endif /* NHCA_DMABUF_H */
