/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs/ has the functions for struct ib_device_ops and the uverbs methods, in one file for each
 * kind of object.  They check arguments, and call functions of other directories.
 */
#ifndef NHCA_VERBS_H
#define NHCA_VERBS_H

#include <rdma/uverbs_ioctl.h>

#include "../nhca.h"

/* Table for ib_set_device_ops(); verbs/ops.c */
extern const struct ib_device_ops nhca_dev_ops;
/* The driver's own objects and methods of the uverbs ioctl; verbs/ops.c */
extern const struct uapi_definition nhca_uapi_defs[];

/**
 * nhca_guid_take - give a device a GUID that no other nhca device of this kernel has
 * @dev: the device, with its netdev
 *
 * Netdevs that share a MAC address (ipvlan, macvlan in passthru mode) and netdevs without one need
 * a number in the GUID.
 * Context: process.
 */
void nhca_guid_take(struct nhca_dev *dev);

/**
 * nhca_guid_release - make the GUID of a device free
 * @dev: the device, after nhca_guid_take()
 * Context: process.
 */
void nhca_guid_release(struct nhca_dev *dev);

/**
 * nhca_dispatch_port_event - raise an event of the port
 * @dev: the device
 * @event: IB_EVENT_PORT_ACTIVE or IB_EVENT_PORT_ERR
 * Context: any.
 */
void nhca_dispatch_port_event(struct nhca_dev *dev, enum ib_event_type event);

/**
 * nhca_recover - put all channels of a device into the error state, and write this to the log
 * @dev: the device
 * @why: as for nhca_rcxt_recover()
 * Context: process, sleeps; RTNL may be held.
 * Return: the new recovery count.
 */
u32 nhca_recover(struct nhca_dev *dev, enum nhca_channel_error why);

/**
 * nhca_port_counters - add up all counters of a device, its rdma counters, and ended rdma counters
 * @dev:    the device
 * @values: filled in: NHCA_CNT_MAX sums
 * Context: process.
 */
void nhca_port_counters(struct nhca_dev *dev, u64 *values);

#endif /* NHCA_VERBS_H */
