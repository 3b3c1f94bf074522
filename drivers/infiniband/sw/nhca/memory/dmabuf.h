/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions on buffers of other devices.
 */
#ifndef NHCA_DMABUF_H
#define NHCA_DMABUF_H

struct nhca_dmabuf;

#ifdef CONFIG_DMA_SHARED_BUFFER
/* give the buffer back; takes NULL; nobody may be using it; process context */
void nhca_dmabuf_free(struct nhca_dmabuf *db);
#else
static inline void nhca_dmabuf_free(struct nhca_dmabuf *db) { }
#endif

#endif /* NHCA_DMABUF_H */
