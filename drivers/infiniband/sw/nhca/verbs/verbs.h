/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verbs room: checks arguments, calls a room.  One file an object; each
 * function here is an entry of ib_device_ops with the context that <rdma/
 * ib_verbs.h> and the core give it.
 */
#ifndef NHCA_VERBS_H
#define NHCA_VERBS_H

#include "../nhca.h"

/* the table for ib_set_device_ops(), in verbs/ops.c */
extern const struct ib_device_ops nhca_dev_ops;
/* the driver's own methods of the uverbs ioctl, in verbs/ops.c */
extern const struct uapi_definition nhca_uapi_defs[];

/**
 * nhca_dispatch_port_event - raise IB_EVENT_PORT_ACTIVE and its kin on port 1
 * Context: any.
 */
void nhca_dispatch_port_event(struct nhca_dev *dev, enum ib_event_type event);

/**
 * nhca_recover - nhca_rcxt_recover(), and a line in the log
 * Context: process, sleeps (RTNL may be held).  Return: the recovery count.
 */
u32 nhca_recover(struct nhca_dev *dev, enum nhca_channel_error why);

#endif /* NHCA_VERBS_H */
