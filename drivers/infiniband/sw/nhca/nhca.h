/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device and its limits.  All directories of the driver except wire/ use this header.
 *
 * A file includes headers and calls functions only of its own directory and of directories below
 * it in the figure of Documentation/internals.rst.  tests/ may use all directories.
 */
#ifndef NHCA_H
#define NHCA_H

#include <linux/types.h>
#include <linux/netdevice.h>
#include <linux/siphash.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>
#include <rdma/nhca_res.h>

#include "compat.h"
#include "user.h"

/* Limits of a device.  ibv_query_device() and ibv_query_port() report most of these limits. */
#define NHCA_MAX_QP		0x100000
#define NHCA_MAX_QP_WR		0x8000
#define NHCA_MAX_CQ		0x100000
#define NHCA_MAX_CQE		0x100000
#define NHCA_MAX_SRQ		0x10000
#define NHCA_MAX_SRQ_WR		0x8000
#define NHCA_MAX_PD		0x100000
#define NHCA_MAX_AH		0x100000
/* Receive work queues of an RSS indirection table */
#define NHCA_MAX_RSS		128
#define NHCA_MAX_TABLES		0x10000
#define NHCA_MAX_XRCD		0x10000
#define NHCA_MAX_MR		0x100000
#define NHCA_MAX_MW		0x100000
/* Entries of a fast registration: 16 MiB with pages of 4 KiB */
#define NHCA_MAX_FAST_SG	4096
#define NHCA_MAX_MR_SIZE	(~0ULL)
/* Bytes of device memory of all processes; limited because the memory cannot be swapped out */
#define NHCA_MAX_DM_SIZE	(16U << 20)
/* Bytes of the blocks of all pools of direct/; limited because they cannot be swapped out */
#define NHCA_MAX_DIRECT_SIZE	SZ_1G
#define NHCA_MAX_MSG_SIZE	0x80000000U
/* READs and atomics of a QP; devices report the module parameter max_rd_atomic instead */
#define NHCA_MAX_RD_ATOM	128
#define NHCA_MAX_MCAST_GRP	0x2000
/* QPs of a multicast group; bounds the cost of a packet, of which each QP gets a copy */
#define NHCA_MAX_MCAST_QP	0x100
/* Buckets of the hash table of a device's multicast groups: 32 groups each, if there are 0x2000 */
#define NHCA_MCAST_BUCKETS	256
/* Flow steering rules; limited because a frame is compared with one rule after another */
#define NHCA_MAX_STEER_RULES	1024
/*
 * Bytes of deferred packets, which wait for on-demand pages or disks, of all QPs: enough for 64 QPs
 * with 2 MiB each, the maximum of one QP (transport/deferral.c)
 */
#define NHCA_MAX_DEFERRED	(128U << 20)
/* Watches of memory: one for each region that a cache of registrations can have */
#define NHCA_MAX_WATCHES	NHCA_MAX_MR
/*
 * Regions of job memory on the host.  Each region has its own key in a table of TCEs.  The maximum
 * is half the number of keys of a table, so even if all regions are in one table, half of its keys
 * stay free.
 */
#define NHCA_MAX_JOB_MEM	0x10000
/* Tables of TCEs of the host, and bytes of protocol virtual offsets in all of them */
#define NHCA_MAX_TCE_TABLES	32
#define NHCA_MAX_PVOS		((long)NHCA_MAX_TCE_TABLES << 42)
#define NHCA_MAX_GIDS		1024
#define NHCA_MAX_PKEYS		1
#define NHCA_DEFAULT_PKEY	0xffff
#define NHCA_PORT		1
/* Numbers of new QPs.  Lower numbers are reserved for special QPs; 0xffffff is for multicast. */
#define NHCA_QPN_MIN		0x100
#define NHCA_QPN_MAX		0xfffffe

struct dentry;
struct nhca_counters;
struct nhca_inject;
struct nhca_delayq;
struct nhca_net;
struct nhca_qp;
struct nhca_rcxt_dev;
struct nhca_steer;
struct nhca_txq;

/**
 * struct nhca_dev - one nhca device: an RDMA port on a netdev
 * @ibdev:    the RDMA core's part
 * @netdev:   the netdev; the nhca device holds a reference from link add until its own
 *            deallocation; constant
 * @netdev_tracker: tracks this reference
 * @nn:       UDP sockets and address table of the network namespace (net/); counted; constant
 * @txq:      counts the device's packets in the network stack (net/flow.c); counted; constant
 * @all:      entry in the list of all devices (verbs/guid.c)
 * @list:     entry in the namespace's list of devices (net/sockets.c)
 * @gids:     work item that adds the GIDs of new addresses (main.c); while it is queued it has a
 *            reference to the device, which it releases with ib_device_put()
 * @users:    what each user has of the device: objects of each kind, device memory, deferred
 *            packets, packets in the network stack, rCxts (user.c)
 * @ah_ids:   map of AH numbers to struct nhca_av; its lock disables interrupts; read under RCU
 * @ah_next:  AH number to try next; under the lock of @ah_ids
 * @srq_ids:  map of SRQ numbers to struct nhca_srq; read under RCU
 * @srq_next: SRQ number to try next; under the lock of @srq_ids
 * @mcast:    hash table of multicast groups by address, and the random key of its hash
 *            (transport/mcast.c); written under RTNL, read under RCU
 * @port_state: enum ib_port_state; main.c writes it under RTNL; read with READ_ONCE
 * @mtu:      active path MTU in bytes, computed from the netdev's MTU; written and read as
 *            @port_state
 * @gsi:      QP 1 of the device; read under RCU (transport/table.c)
 * @rcxt:     the channels and the pool of their rCxts (rcxt/); owned
 * @steer:    flow steering rules: which frames go to raw packet QPs (net/steering.c); owned
 * @inject:   fault injection rules (observe/inject.c); owned
 * @delayq:   packets that a fault injection rule delays (net/faults.c); owned
 * @debugfs:  directory of the device (verbs/debug.c); owned; may be an ERR_PTR
 * @counters: per-CPU counters; a QP that is bound to an rdma counter counts in that counter instead
 * @stats:    map of rdma counter numbers to their per-CPU counters (verbs/counter.c); its lock is
 *            held while a counter is read, so that the counter is not freed during the read
 * @zcopy_deadline: jiffies until which a task may wait for zero-copy references of another process
 *            that still runs; 0: there was no such wait (memory/pageref.c)
 * @ended:    sums of the rdma counters that no longer exist; owned; under the lock of @stats
 */
struct nhca_dev {
	struct ib_device ibdev;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	struct nhca_net *nn;
	struct nhca_txq *txq;
	struct list_head all;
	struct list_head list;
	struct work_struct gids;
	struct nhca_users users;
	struct xarray ah_ids;
	u32 ah_next;
	struct xarray srq_ids;
	u32 srq_next;
	struct {
		siphash_key_t key;
		struct hlist_head groups[NHCA_MCAST_BUCKETS];
	} mcast;
	u32 port_state;
	u32 mtu;
	struct nhca_qp __rcu *gsi;
	struct nhca_rcxt_dev *rcxt;
	struct nhca_steer *steer;
	struct nhca_inject *inject;
	struct nhca_delayq *delayq;
	struct dentry *debugfs;
	struct nhca_counters __percpu *counters;
	struct xarray stats;
	unsigned long zcopy_deadline;
	struct nhca_counters *ended;
};

static inline struct nhca_dev *to_nhca_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct nhca_dev, ibdev);
}

#endif /* NHCA_H */
