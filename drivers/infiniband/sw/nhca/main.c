// SPDX-License-Identifier: GPL-2.0
/* The module: `rdma link add', netdev events, creation and end of a device. */
#include <linux/debugfs.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/utsname.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/rdma_netlink.h>

#include "nhca.h"
#include "direct/direct.h"
#include "ingress/ingress.h"
#include "memory/debug.h"
#include "memory/memory.h"
#include "net/faults.h"
#include "net/net.h"
#include "net/steering.h"
#include "observe/counters.h"
#include "observe/debugfs.h"
#include "observe/inject.h"
#include "rcxt/pool.h"
#include "rcxt/rcxt.h"
#include "transport/qp.h"
#include "verbs/verbs.h"
#include "wire/icrc.h"

MODULE_DESCRIPTION("Software host channel adapter");
MODULE_LICENSE("GPL");

static unsigned int nhca_rcxts = NHCA_RCXT_DEFAULT;

static int rcxts_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, NHCA_RCXT_MAX);
}

static const struct kernel_param_ops rcxts_ops = {
	.set = rcxts_set,
	.get = param_get_uint,
};

module_param_cb(rcxts, &rcxts_ops, &nhca_rcxts, 0444);
MODULE_PARM_DESC(rcxts, "rCxts (transfer contexts of channels) of each device, 64 bytes each (default 100000, at most 1048576)");

/*
 * Maximum number of completion vectors.  A vector does not select a CPU, because the CPU that posts
 * a completion raises its event.  So more vectors would not spread the work over more CPUs.
 */
#define NHCA_MAX_COMP_VECTORS	64

static const enum rdma_driver_id nhca_driver_id = (enum rdma_driver_id)NHCA_RDMA_DRIVER_ID;

/* Serializes link add, so that a netdev gets at most one nhca device. */
static DEFINE_MUTEX(nhca_link_mutex);

/* ---- port state, written under RTNL ---- */

/*
 * Return: true if the master @upper receives the packets of its ports, so that the IP addresses
 * belong to the master.
 * The driver checks the master, and not the flags of the port, because some of these flags change
 * before the notifier is called, and other flags change after the call.
 */
static bool nhca_upper_takes(const struct net_device *upper)
{
	return netif_is_lag_master(upper) || netif_is_bridge_master(upper) ||
	       netif_is_ovs_master(upper);
}

/* Return: the bond, team or bridge that @ndev is a port of, or NULL.  RTNL held. */
static struct net_device *nhca_netdev_master(struct net_device *ndev)
{
	struct net_device *upper = netdev_master_upper_dev_get(ndev);

	return upper && nhca_upper_takes(upper) ? upper : NULL;
}

static enum ib_port_state nhca_netdev_state(struct net_device *ndev)
{
	if (!netif_running(ndev) || !netif_carrier_ok(ndev) || nhca_netdev_master(ndev))
		return IB_PORT_DOWN;
	return IB_PORT_ACTIVE;
}

/* Return: the largest path MTU in bytes that fits @ndev; 0: the MTU of @ndev is below 352. */
static u32 nhca_netdev_mtu(const struct net_device *ndev)
{
	enum ib_mtu mtu = iboe_get_mtu(ndev->mtu);

	return mtu ? ib_mtu_enum_to_int(mtu) : 0;
}

static void nhca_port_update(struct nhca_dev *dev)
{
	u32 state = nhca_inject_down(dev) ? IB_PORT_DOWN : nhca_netdev_state(dev->netdev);

	ASSERT_RTNL();
	if (state == dev->port_state)
		return;

	WRITE_ONCE(dev->port_state, state);
	if (state == IB_PORT_ACTIVE) {
		nhca_dispatch_port_event(dev, IB_EVENT_PORT_ACTIVE);
	} else {
		nhca_dev_count(dev, NHCA_CNT_LINK_DOWNED);
		nhca_dispatch_port_event(dev, IB_EVENT_PORT_ERR);
	}
}

/*
 * Work item of fault injection: takes the link down, and takes it up when the time of the rule has
 * passed.
 */
static void nhca_link_work(struct work_struct *work)
{
	struct nhca_dev *dev = nhca_inject_work_dev(work);

	rtnl_lock();
	nhca_inject_link(dev->inject);
	if (ib_device_try_get(&dev->ibdev)) {
		nhca_port_update(dev);
		ib_device_put(&dev->ibdev);
	}
	rtnl_unlock();
}

static void nhca_mtu_update(struct nhca_dev *dev)
{
	u32 mtu = nhca_netdev_mtu(dev->netdev);

	if (!mtu) {
		mtu = 256;
		netdev_warn(dev->netdev, "MTU %u is too small for the nhca device %s, whose packets may be longer and are then lost: set the MTU to 352 or more\n",
			    dev->netdev->mtu, dev_name(&dev->ibdev.dev));
	}
	WRITE_ONCE(dev->mtu, mtu);
}

#ifndef NHCA_OLD_PORT_EVENT
/*
 * ib_device_ops.report_port_event.  Since Linux 6.14 a notifier of the core raises port events, but
 * not for bonds.  If a driver has this function, the notifier calls the function instead.  nhca's
 * own notifier raises the events on every kernel and for every netdev.  If both notifiers report a
 * change, the second of them finds the port state unchanged and raises no event.
 */
static void nhca_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
				   unsigned long event)
{
	nhca_port_update(to_nhca_dev(ibdev));
}
#endif

/*
 * NETDEV_CHANGEUPPER.  If the netdev joins a bond, team or bridge, this master receives the packets
 * of the netdev, so the nhca device goes down.  If the netdev leaves the master, the nhca device is
 * up again when the netdev is up: bonds and teams set the netdev down.
 */
static void nhca_upper_changed(struct nhca_dev *dev,
			       const struct netdev_notifier_changeupper_info *info)
{
	const char *name = dev_name(&dev->ibdev.dev);
	const char *upper = info->upper_dev->name;

	if (!info->master || !nhca_upper_takes(info->upper_dev))
		return;
	if (info->linking)
		netdev_warn(dev->netdev, "is now a port of %s, which receives the packets of this netdev, so the nhca device %s is down: add an nhca device to %s instead (Open vSwitch: to the bridge's internal port that has the IP address)\n",
			    upper, name, upper);
	else
		netdev_info(dev->netdev, "is no longer a port of %s: the nhca device %s receives packets again when this netdev is up\n",
			    upper, name);
	nhca_port_update(dev);
}

static void nhca_netdev_changed(struct nhca_dev *dev, unsigned long event, void *info)
{
	switch (event) {
	case NETDEV_UNREGISTER:
		/* Also raised when the netdev moves to another network namespace. */
		nhca_recover(dev, NHCA_CH_ERR_DEVICE);
		nhca_steer_stop(dev->steer);
		ib_unregister_device_queued(&dev->ibdev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		nhca_port_update(dev);
		break;
	case NETDEV_CHANGEMTU:
		nhca_mtu_update(dev);
		break;
	case NETDEV_CHANGEUPPER:
		nhca_upper_changed(dev, info);
		break;
	default:
		/*
		 * NETDEV_CHANGEADDR: the core replaces the GIDs.  The node GUID
		 * identifies the device, so it does not change.
		 * NETDEV_CHANGENAME: the driver does not use the name, so nothing changes.
		 */
		break;
	}
}

/* ---- addresses of netdevs that are not Ethernet ---- */

/* Add GIDs for new addresses of the netdev, and release the reference of nhca_gids_queue(). */
static void nhca_gids_work(struct work_struct *work)
{
	struct nhca_dev *dev = container_of(work, struct nhca_dev, gids);

	rdma_roce_rescan_device(&dev->ibdev);
	ib_device_put(&dev->ibdev);
}

/*
 * The core updates the GIDs when an address of an Ethernet netdev changes.  For other netdevs the
 * core makes GIDs only of the addresses that exist when the device is registered.  When an address
 * is added later, the driver has to make the core scan all addresses of the netdev again.
 */
static int nhca_gids_queue(struct net_device *ndev, unsigned long event)
{
	struct ib_device *ibdev;

	if (event != NETDEV_UP || ndev->type == ARPHRD_ETHER)
		return NOTIFY_DONE;
	ibdev = ib_device_get_by_netdev(ndev, nhca_driver_id);
	if (ibdev && !schedule_work(&to_nhca_dev(ibdev)->gids))
		ib_device_put(ibdev);
	return NOTIFY_DONE;
}

static int nhca_inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	return nhca_gids_queue(((struct in_ifaddr *)ptr)->ifa_dev->dev, event);
}

static struct notifier_block nhca_inetaddr_notifier = {
	.notifier_call = nhca_inetaddr_event,
};

#if IS_ENABLED(CONFIG_IPV6)
static int nhca_inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	return nhca_gids_queue(((struct inet6_ifaddr *)ptr)->idev->dev, event);
}

static struct notifier_block nhca_inet6addr_notifier = {
	.notifier_call = nhca_inet6addr_event,
};
#endif

static void nhca_addr_notify(void)
{
	register_inetaddr_notifier(&nhca_inetaddr_notifier);
#if IS_ENABLED(CONFIG_IPV6)
	register_inet6addr_notifier(&nhca_inet6addr_notifier);
#endif
}

static void nhca_addr_unnotify(void)
{
	unregister_inetaddr_notifier(&nhca_inetaddr_notifier);
#if IS_ENABLED(CONFIG_IPV6)
	unregister_inet6addr_notifier(&nhca_inet6addr_notifier);
#endif
}

static int nhca_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct ib_device *ibdev;

	/*
	 * Check for a VRF before the lookup of the device, because the lookup finds no device for
	 * a VLAN: the device is on the underlying netdev.  If a VLAN joins or leaves a VRF, the
	 * GIDs of the VLAN move to other sockets.
	 */
	if (event == NETDEV_CHANGEUPPER &&
	    netif_is_l3_master(((struct netdev_notifier_changeupper_info *)ptr)->upper_dev))
		nhca_net_vrf_changed(dev_net(ndev));

	/* the lookup finds registered devices only; nhca_dev_catch_up() applies earlier changes */
	ibdev = ib_device_get_by_netdev(ndev, nhca_driver_id);
	if (!ibdev)
		return NOTIFY_DONE;

	nhca_netdev_changed(to_nhca_dev(ibdev), event, ptr);
	ib_device_put(ibdev);
	return NOTIFY_OK;
}

static struct notifier_block nhca_netdev_notifier = {
	.notifier_call = nhca_netdev_event,
};

/* ---- link add ---- */

static bool nhca_netdev_taken(struct net_device *ndev)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, nhca_driver_id);

	if (!ibdev)
		return false;
	netdev_err(ndev, "already has the nhca device %s: use that device, or delete it first, because a netdev can have only one\n",
		   dev_name(&ibdev->dev));
	ib_device_put(ibdev);
	return true;
}

static bool nhca_has_roce(const struct ib_device *ibdev)
{
	u32 port;

	rdma_for_each_port(ibdev, port)
		if (rdma_protocol_roce(ibdev, port))
			return true;
	return false;
}

static void nhca_warn_roce(struct net_device *ndev, const struct ib_device *ibdev)
{
	if (nhca_has_roce(ibdev))
		netdev_warn(ndev, "also has the RoCE device %s: if this is an adapter with RoCE enabled, disable its RoCE, because the adapter takes the packets that the nhca device should receive; a program that is not told which RDMA device to use may take either of the two\n",
			    dev_name(&ibdev->dev));
}

/* Return: 1 if @dev is an RDMA device, which ends the search; otherwise 0. */
static int nhca_warn_sibling(struct device *dev, void *ndev)
{
	if (!dev->class || strcmp(dev->class->name, "infiniband"))
		return 0;
	nhca_warn_roce(ndev, rdma_device_to_ibdev(dev));
	return 1;
}

/*
 * Warn if @ndev also has a RoCE device of another driver: an adapter receives packets to the RoCEv2
 * port itself and does not pass them to the network stack.  mlx4, and mlx5 of older kernels, do not
 * report to the core which netdev they use; but their RDMA device and netdevs are children of one
 * PCI function.
 */
static void nhca_netdev_shared(struct net_device *ndev)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);

	if (ibdev) {
		nhca_warn_roce(ndev, ibdev);
		ib_device_put(ibdev);
	} else if (ndev->dev.parent) {
		device_for_each_child(ndev->dev.parent, ndev, nhca_warn_sibling);
	}
}

static bool nhca_is_ether(const struct net_device *ndev)
{
	return ndev->type == ARPHRD_ETHER && ndev->addr_len == ETH_ALEN;
}

/* nhca sends IP packets, so it needs no Ethernet.  ARPHRD_NONE: tun, WireGuard. */
static bool nhca_netdev_known(const struct net_device *ndev)
{
	return nhca_is_ether(ndev) || ndev->type == ARPHRD_NONE || ndev->type == ARPHRD_LOOPBACK;
}

/*
 * Check if an nhca device can be added to @ndev.  rdma_link_ops.newlink gets no extack in any
 * kernel, so the reason of an error goes to the kernel log.  RTNL held.
 * Return: 0; -EPROTONOSUPPORT: nhca does not support the type of @ndev; -EPERM: @ndev is a VLAN;
 * -EBUSY: @ndev is a port of a master; -EMSGSIZE: the MTU of @ndev is too small; -ENODEV: @ndev is
 * not registered; -EEXIST: @ndev has an nhca device already.
 */
static int nhca_netdev_check(struct net_device *ndev)
{
	struct net_device *master = nhca_netdev_master(ndev);

	ASSERT_RTNL();
	if (!nhca_netdev_known(ndev)) {
		netdev_err(ndev, "has ARP hardware type %u: nhca needs an Ethernet, loopback, tun or WireGuard netdev\n",
			   ndev->type);
		return -EPROTONOSUPPORT;
	}
	/* The addresses of a VLAN become GIDs of the device on the underlying netdev only. */
	if (is_vlan_dev(ndev)) {
		netdev_err(ndev, "is a VLAN: add the nhca device to %s; its GIDs then include the VLAN's addresses\n",
			   vlan_dev_real_dev(ndev)->name);
		return -EPERM;
	}
	/* The master receives the packets of its ports, and the IP addresses are the master's. */
	if (master) {
		netdev_err(ndev, "is a port of %s: add the nhca device to this bond, team or bridge instead (Open vSwitch: to the bridge's internal port that has the IP address)\n",
			   master->name);
		return -EBUSY;
	}
	if (!nhca_netdev_mtu(ndev)) {
		netdev_err(ndev, "MTU %u is too small for an nhca device: set the MTU to 352 or more\n",
			   ndev->mtu);
		return -EMSGSIZE;
	}
	if (ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	return nhca_netdev_taken(ndev) ? -EEXIST : 0;
}

static struct nhca_net *nhca_dev_net(struct net_device *ndev, struct net *net)
{
	struct nhca_net *nn = nhca_net_get(net);

	if (PTR_ERR(nn) == -EADDRINUSE)
		netdev_err(ndev, "UDP port %u is in use in this network namespace, so no nhca device can be added: if rdma_rxe uses the port, delete the rdma_rxe devices and unload rdma_rxe; otherwise end the program that uses the port (ss -ulnp)\n",
			   NHCA_ROCE_UDP_PORT);
	else if (IS_ERR(nn))
		netdev_err(ndev, "cannot open the UDP sockets of an nhca device on port %u: error %ld\n",
			   NHCA_ROCE_UDP_PORT, PTR_ERR(nn));
	return nn;
}

static void nhca_dev_describe(struct nhca_dev *dev, const char *name)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = min_t(u32, num_possible_cpus(), NHCA_MAX_COMP_VECTORS);
	nhca_guid_take(dev);
	scnprintf(ibdev->node_desc, sizeof(ibdev->node_desc), "%s %s",
		  init_utsname()->nodename, name);
	ibdev->driver_def = nhca_uapi_defs;
	/* The core enables all other commands that user space needs.  This command arms a CQ. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
}

/* Prepare a device for registration.  After an error nhca_dealloc_driver() undoes what was done. */
static int nhca_dev_setup(struct nhca_dev *dev, struct net_device *ndev, struct net *net,
			  const char *name)
{
	struct nhca_net *nn;
	int err;

	netdev_hold(ndev, &dev->netdev_tracker, GFP_KERNEL);
	dev->netdev = ndev;
	/* LOCK_IRQ: kernel consumers may create AHs with interrupts disabled. */
	xa_init_flags(&dev->ah_ids, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT);
	dev->ah_next = 1 + (get_random_u32() >> 9);
	xa_init_flags(&dev->srq_ids, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&dev->stats, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	dev->srq_next = 1;
	get_random_bytes(&dev->mcast.key, sizeof(dev->mcast.key));
	INIT_WORK(&dev->gids, nhca_gids_work);
	nhca_users_init(&dev->users);
	nhca_dev_describe(dev, name);

	dev->counters = alloc_percpu(struct nhca_counters);
	dev->ended = kzalloc(sizeof(*dev->ended), GFP_KERNEL);
	if (!dev->counters || !dev->ended)
		return -ENOMEM;
	dev->txq = nhca_txq_create();
	if (!dev->txq)
		return -ENOMEM;
	dev->steer = nhca_steer_create(ndev, nhca_frame_hook);
	if (!dev->steer)
		return -ENOMEM;
	dev->inject = nhca_inject_create(dev, nhca_link_work);
	if (!dev->inject)
		return -ENOMEM;
	err = nhca_delayq_create(dev, nhca_delayq_timer);
	if (err)
		return err;
	err = nhca_rcxt_dev_init(dev, nhca_rcxts);
	if (err)
		return err;

	nn = nhca_dev_net(ndev, net);
	if (IS_ERR(nn))
		return PTR_ERR(nn);
	dev->nn = nn;
	nhca_net_dev_add(nn, dev);
	return 0;
}

/*
 * ib_device_ops.dealloc_driver: free what nhca_dev_setup() has allocated.  The core calls this
 * function last, when all objects of the device are destroyed, or after a link add that failed.
 */
static void nhca_dealloc_driver(struct ib_device *ibdev)
{
	struct nhca_dev *dev = to_nhca_dev(ibdev);

	/* The work item is not queued (it would have a reference), but may not have returned. */
	cancel_work_sync(&dev->gids);
	nhca_guid_release(dev);
	/* debugfs_remove() waits for reads and writes of the files in this directory. */
	debugfs_remove(dev->debugfs);
	if (dev->nn) {
		nhca_net_dev_del(dev->nn, dev);
		/* Wait for receive paths (RCU readers) that found @dev by address or interface. */
		synchronize_rcu();
	}
	nhca_delayq_destroy(dev);
	if (dev->nn)
		nhca_net_put(dev->nn);
	WARN_ON(!xa_empty(&dev->ah_ids) || !xa_empty(&dev->srq_ids) || !xa_empty(&dev->stats));
	xa_destroy(&dev->ah_ids);
	xa_destroy(&dev->srq_ids);
	xa_destroy(&dev->stats);
	nhca_shared_detach(&dev->users);
	nhca_users_destroy(&dev->users);
	nhca_rcxt_dev_exit(dev);
	nhca_steer_destroy(dev->steer);
	nhca_inject_destroy(dev->inject);
	free_percpu(dev->counters);
	kfree(dev->ended);
	nhca_txq_put(dev->txq);
	netdev_put(dev->netdev, &dev->netdev_tracker);
}

/* the device operations of this file, in addition to nhca_dev_ops */
static const struct ib_device_ops nhca_main_ops = {
	.dealloc_driver = nhca_dealloc_driver,
#ifndef NHCA_OLD_PORT_EVENT
	.report_port_event = nhca_report_port_event,
#endif
};

static int nhca_dev_register(struct nhca_dev *dev, const char *name)
{
	struct net_device *ndev = dev->netdev;
	int err;

	rtnl_lock();
	err = net_eq(dev_net(ndev), nhca_net_ns(dev->nn)) ? nhca_netdev_check(ndev) : -ENODEV;
	if (!err) {
		dev->port_state = nhca_netdev_state(ndev);
		nhca_mtu_update(dev);
		/* Once the device is registered, the notifier finds it by this netdev. */
		err = ib_device_set_netdev(&dev->ibdev, ndev, NHCA_PORT);
	}
	rtnl_unlock();
	if (err)
		return err;

	return ib_register_device(&dev->ibdev, name, NULL);
}

/*
 * Apply changes of the netdev that happened before nhca_netdev_event() could find the nhca device.
 * Return: 0; -ENODEV: the netdev is being unregistered or has changed its network namespace, and
 * the device was unregistered.
 */
static int nhca_dev_catch_up(struct net_device *ndev, struct net *net)
{
	struct ib_device *ibdev;
	bool leaving;

	rtnl_lock();
	/* Another process may have deleted the device already. */
	ibdev = ib_device_get_by_netdev(ndev, nhca_driver_id);
	leaving = ndev->reg_state != NETREG_REGISTERED || !net_eq(dev_net(ndev), net);
	if (ibdev && !leaving) {
		nhca_port_update(to_nhca_dev(ibdev));
		nhca_mtu_update(to_nhca_dev(ibdev));
	}
	rtnl_unlock();

	if (ibdev && leaving)
		ib_unregister_device_and_put(ibdev);
	else if (ibdev)
		ib_device_put(ibdev);
	return leaving ? -ENODEV : 0;
}

static int nhca_add_dev(const char *name, struct net_device *ndev, struct net *net)
{
	struct nhca_dev *dev;
	int err;

	dev = ib_alloc_device_with_net(nhca_dev, ibdev, net);
	if (!dev)
		return -ENOMEM;
	/* From here on ib_dealloc_device() calls nhca_dealloc_driver(). */
	ib_set_device_ops(&dev->ibdev, &nhca_dev_ops);
	ib_set_device_ops(&dev->ibdev, &nhca_main_ops);
	ib_mark_name_assigned_by_user(&dev->ibdev);

	err = nhca_dev_setup(dev, ndev, net, name);
	if (!err)
		err = nhca_dev_register(dev, name);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		return err;
	}
	/* From here on @dev may be freed; @ndev stays, because the caller has a reference. */
	return nhca_dev_catch_up(ndev, net);
}

static int nhca_newlink(const char *name, struct net_device *ndev)
{
	struct net *net;
	int err;

	mutex_lock(&nhca_link_mutex);
	/* Check before the sockets are opened; nhca_dev_register() repeats this check. */
	rtnl_lock();
	/* The netdev may move to another namespace, so take a reference to the present one. */
	net = maybe_get_net(dev_net(ndev));
	err = net ? nhca_netdev_check(ndev) : -ENODEV;
	rtnl_unlock();
	if (!err) {
		nhca_netdev_shared(ndev);
		if (!nhca_is_ether(ndev))
			netdev_info(ndev, "is not an Ethernet netdev: rdma_cm cannot use the nhca device %s, but programs that exchange GIDs without rdma_cm can (perftest without -R, MPI, NCCL); for rdma_cm on one host, add an nhca device to a dummy netdev\n",
				    name);
		err = nhca_add_dev(name, ndev, net);
	}
	if (net)
		put_net(net);
	mutex_unlock(&nhca_link_mutex);
	return err;
}

/*
 * nhca does not need rdma_link_ops.dellink of Linux 7.x, which is for drivers whose sockets outlive
 * their devices: nhca_dealloc_driver() frees all of an nhca device, whatever ended the device.
 */
static struct rdma_link_ops nhca_link_ops = {
	.type = "nhca",
	.newlink = nhca_newlink,
};

/* ---- the module ---- */

static int __init nhca_init(void)
{
	struct dentry *debugfs;
	int err;

	err = nhca_icrc_init();
	if (err)
		return err;
	err = nhca_memory_init();
	if (err)
		goto err_icrc;
	err = nhca_qp_table_init();
	if (err)
		goto err_memory;
	err = nhca_net_init(nhca_sk_data_ready, nhca_sk_rest);
	if (err)
		goto err_qp_table;
	err = register_netdevice_notifier(&nhca_netdev_notifier);
	if (err)
		goto err_net;

	nhca_addr_notify();
	debugfs = nhca_debugfs_init();
	nhca_memory_debug_init(debugfs);
	nhca_direct_debug_init(debugfs);
	rdma_link_register(&nhca_link_ops);
	return 0;

err_net:
	nhca_net_exit();
err_qp_table:
	nhca_qp_table_exit();
err_memory:
	nhca_memory_exit();
	nhca_users_destroy(&nhca_host_users);
err_icrc:
	nhca_icrc_exit();
	return err;
}

static void __exit nhca_exit(void)
{
	/* First prevent new devices, then unregister all devices, then end netdev events. */
	rdma_link_unregister(&nhca_link_ops);
	nhca_addr_unnotify();
	ib_unregister_driver(nhca_driver_id);
	unregister_netdevice_notifier(&nhca_netdev_notifier);
	nhca_debugfs_exit();
	nhca_net_exit();
	nhca_channel_exit();
	nhca_shared_exit();
	nhca_qp_table_exit();
	nhca_memory_exit();
	nhca_users_destroy(&nhca_host_users);
	nhca_icrc_exit();
}

module_init(nhca_init);
module_exit(nhca_exit);

MODULE_ALIAS_RDMA_LINK("nhca");
