// SPDX-License-Identifier: GPL-2.0
/*
 * The port: its attributes, events and GID table.
 */
#include <linux/ethtool.h>
#include <linux/percpu.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_mad.h>

#include "objects.h"
#include "verbs.h"
#include "../net/net.h"

static u32 nhca_counter_sum(const struct nhca_dev *dev, enum nhca_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counters, cpu)->v[which]);
	return sum;
}

static u8 nhca_phys_state(const struct net_device *ndev, enum ib_port_state state)
{
	if (state == IB_PORT_ACTIVE)
		return IB_PORT_PHYS_STATE_LINK_UP;
	if (netif_running(ndev))
		return IB_PORT_PHYS_STATE_POLLING;
	return IB_PORT_PHYS_STATE_DISABLED;
}

static bool nhca_has_speed(const struct net_device *ndev)
{
	return ndev->ethtool_ops && ndev->ethtool_ops->get_link_ksettings;
}

int nhca_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct nhca_dev *dev = to_nhca_dev(ibdev);

	/* The core has set @attr to 0.  RoCE has no subnet manager, so SM and LID fields stay 0. */
	attr->state = READ_ONCE(dev->port_state);
	attr->phys_state = nhca_phys_state(dev->netdev, attr->state);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(dev->mtu));
	attr->gid_tbl_len = NHCA_MAX_GIDS;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = NHCA_MAX_MSG_SIZE;
	attr->bad_pkey_cntr = nhca_counter_sum(dev, NHCA_CNT_RX_BAD_PKEY);
	attr->qkey_viol_cntr = nhca_counter_sum(dev, NHCA_CNT_RX_BAD_QKEY);
	attr->pkey_tbl_len = NHCA_MAX_PKEYS;
	attr->max_vl_num = 1;
	if (!nhca_has_speed(dev->netdev)) {
		/* as ib_get_eth_speed() for an unknown speed, without its message in the log */
		attr->active_width = IB_WIDTH_1X;
		attr->active_speed = IB_SPEED_SDR;
		return 0;
	}
	return ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
}

int nhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable)
{
	/* RoCEv2 only, so that the core makes no RoCEv1 GIDs. */
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->pkey_tbl_len = NHCA_MAX_PKEYS;
	immutable->gid_tbl_len = NHCA_MAX_GIDS;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer nhca_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/*
 * ib_device_ops.get_netdev, only for kernels whose SMC finds the netdev of a device in no other
 * way.
 * Return: the netdev, with a reference.
 */
struct net_device *nhca_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *ndev = to_nhca_dev(ibdev)->netdev;

	dev_hold(ndev);
	return ndev;
}

/* Return: the NUMA node of the adapter below the netdev; NUMA_NO_NODE: a virtual netdev. */
int nhca_get_numa_node(struct ib_device *ibdev)
{
	struct device *parent = to_nhca_dev(ibdev)->netdev->dev.parent;

	return parent ? dev_to_node(parent) : NUMA_NO_NODE;
}

/*
 * Report the speed of the netdev in units of 100 Mbit/s; an unknown speed as 1 Gbit/s.  Width and
 * speed of struct ib_port_attr only approximate this value.
 */
int nhca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct net_device *ndev = to_nhca_dev(ibdev)->netdev;
	struct ethtool_link_ksettings link = {};
	int err;

	rtnl_lock();
	err = __ethtool_get_link_ksettings(ndev, &link);
	rtnl_unlock();
	if (err || link.base.speed == (u32)SPEED_UNKNOWN)
		link.base.speed = SPEED_1000;
	*speed = link.base.speed / 100;
	return 0;
}

int nhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index >= NHCA_MAX_PKEYS)
		return -EINVAL;

	*pkey = NHCA_DEFAULT_PKEY;
	return 0;
}

/*
 * The context of a GID is the ifindex of its netdev.  nhca_del_gid() needs the ifindex, because
 * attr->ndev may have changed when the GID is deleted.
 */
int nhca_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct nhca_dev *dev = to_nhca_dev(attr->device);
	struct net_device *ndev;
	bool foreign = false;
	int ifindex;
	int err;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	ifindex = ndev ? ndev->ifindex : 0;
	/*
	 * The core offers the addresses of all netdevs above the device's netdev, also if such a
	 * netdev is in another network namespace.  In that namespace the device has no sockets and
	 * no routes, so it cannot use these addresses.
	 */
	if (ndev && !net_eq(dev_net(ndev), nhca_net_ns(dev->nn))) {
		foreign = true;
		ibdev_info_ratelimited(&dev->ibdev, "no GID for an address of %s, because this netdev is in another network namespace: add an nhca device to %s in that namespace (nhca accepts no VLAN: if %s is one, add the device to a macvlan on %s)\n",
				       ndev->name, ndev->name, ndev->name, ndev->name);
	}
	rcu_read_unlock();
	if (!ifindex || foreign)
		return -ENODEV;

	err = nhca_addr_add(dev, &attr->gid, ifindex);
	if (err)
		return err;
	*context = (void *)(uintptr_t)ifindex;
	return 0;
}

int nhca_del_gid(const struct ib_gid_attr *attr, void **context)
{
	int ifindex = (uintptr_t)*context;

	nhca_addr_del(to_nhca_dev(attr->device), &attr->gid, ifindex);
	*context = NULL;
	return 0;
}

void nhca_dispatch_port_event(struct nhca_dev *dev, enum ib_event_type event)
{
	struct ib_event ev = {
		.device = &dev->ibdev,
		.element.port_num = NHCA_PORT,
		.event = event,
	};

	ib_dispatch_event(&ev);
}
