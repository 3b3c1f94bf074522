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

/**
 * nhca_dispatch_port_event - raise IB_EVENT_PORT_ACTIVE and its kin on port 1
 * Context: any.
 */
void nhca_dispatch_port_event(struct nhca_dev *dev, enum ib_event_type event);

#endif /* NHCA_VERBS_H */
