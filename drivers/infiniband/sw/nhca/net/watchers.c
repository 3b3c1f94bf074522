// SPDX-License-Identifier: GPL-2.0
/*
 * This file checks whether a packet socket or a queueing discipline must get the packets between
 * two QPs of this host. If so, transport/loop.c must not replace these packets by copies.
 */
#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/sch_generic.h>

#include "net.h"
#include "xmit.h"
#include "../observe/stub.h"

/*
 * Return: true if a packet socket (tcpdump) gets the packets of @ndev, or if @ndev has a queueing
 * discipline. Virtual netdevs have none (noqueue) unless an administrator has added one.
 */
static bool nhca_netdev_watched(struct net_device *ndev)
{
	struct netdev_queue *txq = netdev_get_tx_queue(ndev, 0);

	return rcu_dereference_bh(txq->qdisc)->enqueue || dev_nit_active(ndev);
}

bool nhca_route_watched(struct net *net, struct nhca_av *av, u16 sport)
{
	struct dst_entry *dst;
	bool watched;

	NHCA_STUB(nhca_route_watched, net, av, sport);
	dst = nhca_route(net, av, sport);
	if (IS_ERR(dst))
		return true;
	watched = nhca_netdev_watched(dst->dev);
	dst_release(dst);
	return watched;
}

bool nhca_lo_watched(struct net *net)
{
	NHCA_STUB(nhca_lo_watched, net);
	return nhca_netdev_watched(net->loopback_dev);
}
