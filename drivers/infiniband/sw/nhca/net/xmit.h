/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room.
 */
#ifndef NHCA_NET_XMIT_H
#define NHCA_NET_XMIT_H

/* module unload, after the last packet: give back the per-CPU pages; process */
void nhca_xmit_exit(void);

#endif /* NHCA_NET_XMIT_H */
