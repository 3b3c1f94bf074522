/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every room of nhca knows: the device, its limits and its counters.
 *
 * Includes follow the arrows of Documentation/internals.rst: wire/ includes no other room; queue/,
 * memory/ and net/ include wire/; transport/ includes those; verbs/ includes transport/.
 */
#ifndef NHCA_H
#define NHCA_H

#include <linux/types.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>
#include <rdma/nhca_res.h>

#include "compat.h"
#include "memory/user.h"
#include "observe/counters.h"

/* Limits that ibv_query_device() reports */
#define NHCA_MAX_QP		0x100000
#define NHCA_MAX_QP_WR		0x8000
#define NHCA_MAX_CQ		0x100000
#define NHCA_MAX_CQE		0x100000
#define NHCA_MAX_SRQ		0x10000
#define NHCA_MAX_SRQ_WR		0x8000
#define NHCA_MAX_PD		0x100000
#define NHCA_MAX_AH		0x100000
/* work queues in an indirection table */
#define NHCA_MAX_RSS		128
#define NHCA_MAX_MR		0x100000
#define NHCA_MAX_MW		0x100000
/* elements of a fast registration: 16 MiB in small pages */
#define NHCA_MAX_FAST_SG	4096
#define NHCA_MAX_MR_SIZE	(~0ULL)
/* device memory of all processes together: it is never swapped and charged to nobody */
#define NHCA_MAX_DM_SIZE	(16U << 20)
#define NHCA_MAX_MSG_SIZE	0x80000000U
#define NHCA_MAX_RD_ATOM	128
#define NHCA_MAX_MCAST_GRP	0x2000
#define NHCA_MAX_MCAST_QP	0x1000
/* a frame is compared with all rules of steering that come before the one that it fits */
#define NHCA_MAX_STEER_RULES	1024
/* bytes of packets that wait for on-demand pages: 64 QPs with as much as one may have */
#define NHCA_MAX_DEFERRED	(128U << 20)
#define NHCA_MAX_GIDS		1024
#define NHCA_MAX_PKEYS		1
#define NHCA_DEFAULT_PKEY	0xffff
#define NHCA_PORT		1
/* numbers of QPs that are made; below are the special ones, above is that of multicast */
#define NHCA_QPN_MIN		0x100
#define NHCA_QPN_MAX		0xfffffe

struct dentry;
struct nhca_inject;
struct nhca_delayq;
struct nhca_net;
struct nhca_qp;
struct nhca_rcxt_dev;
struct nhca_steer;
struct nhca_txq;

/**
 * struct nhca_dev - one nhca device: an RDMA port on a netdev
 * @ibdev:    what the RDMA core sees
 * @netdev:   the Ethernet device below; held from link add until the device
 *            is deallocated; constant for the life of the device
 * @netdev_tracker: of that reference
 * @nn:       the namespace's sockets and address table (net/); constant
 * @txq:      its packets in the stack (net/flow.c)
 * @list:     in its namespace's list of devices (net/sockets.c)
 * @pds, @qps, @cqs, @srqs, @ahs, @mrs, @mws: number of such objects, for limits and
 *            debugging
 * @users:    what they have of the device's pools: device memory, multicast groups, rules of
 *            steering, deferred packets (memory/user.c)
 * @ah_ids:   xarray of struct nhca_av by AH number; RCU readers
 * @mcast:    multicast groups (verbs/mcast.c); written under RTNL, RCU readers
 * @port_state: enum ib_port_state; READ_ONCE by all, written by main.c
 *            under RTNL
 * @mtu:      active path MTU in bytes, from the netdev's; as @port_state
 * @gsi:      the device's QP 1; RCU readers (transport/table.c)
 * @rcxt:     its channels and the pool of their rCxts (rcxt/); owned
 * @steer:    its rules of which frames go to raw packet QPs (net/steer.c); owned
 * @inject:   its rules of fault injection (observe/inject.c); owned
 * @delayq:    packets that those have held back (net/faults.c); owned
 * @debugfs:  its directory (verbs/debug.c); owned, may be an ERR_PTR
 * @counters: per CPU, but for queue pairs that are bound to counters of their own
 * @stats:    xarray of such counters by number: per CPU, as @counters (verbs/counter.c); its lock
 *            is held while one is read
 */
struct nhca_dev {
	struct ib_device ibdev;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	struct nhca_net *nn;
	struct nhca_txq *txq;
	struct list_head list;
	atomic_t pds;
	atomic_t qps;
	atomic_t cqs;
	atomic_t srqs;
	atomic_t ahs;
	atomic_t mrs;
	atomic_t mws;
	struct nhca_users users;
	struct xarray ah_ids;
	u32 ah_next;
	struct xarray srq_ids;
	u32 srq_next;
	struct {
		struct list_head groups;
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
};

static inline struct nhca_dev *to_nhca_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct nhca_dev, ibdev);
}

/* what no queue pair has to do with; any context */
static inline void nhca_dev_count(struct nhca_dev *dev, enum nhca_counter which)
{
	this_cpu_inc(dev->counters->v[which]);
}

#endif /* NHCA_H */
