// SPDX-License-Identifier: GPL-2.0
/*
 * State of each network namespace: UDP sockets on the RoCEv2 port, the addresses of nhca devices,
 * and the devices.
 */
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/sockptr.h>
#include <linux/udp.h>
#include <linux/wait.h>
#include <net/l3mdev.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "../observe/stub.h"
#include "net.h"
#include "flow.h"
#include "guard.h"
#include "sockets.h"
#include "xmit.h"

/*
 * Receive buffer of a socket, in bytes. A sender may have its whole window in flight even if this
 * host cannot keep up. If the socket drops a packet, it can take a whole timeout until
 * the sender retransmits this packet. So the buffer is far larger than the usual one of a socket.
 */
#define NHCA_RCVBUF		(16 << 20)
/* number of sockets of each address family, or the number of CPUs online if there are fewer CPUs */
#define NHCA_SOCKS		16
#define NHCA_ADDR_BITS		7

/**
 * struct nhca_addr - one address of a device
 * @node:    in nhca_net.addrs; RCU readers
 * @rcu:     frees the struct after a grace period
 * @addr:    IPv4-mapped or IPv6
 * @dev:     the device; its GID table owns the entry
 * @ifindex: netdev that has the address: that of the device, or one above it, such as a VLAN
 * @own:     @ifindex is the netdev of the device
 * @refs:    number of GIDs with this address and netdev; under nhca_net.lock
 */
struct nhca_addr {
	struct hlist_node node;
	struct rcu_head rcu;
	struct in6_addr addr;
	struct nhca_dev *dev;
	int ifindex;
	bool own;
	unsigned int refs;
};

/**
 * struct nhca_socks - sockets that share the RoCEv2 port
 * @list:    entry in nhca_net.vrfs
 * @ifindex: VRF whose packets the sockets receive; 0: packets outside of VRFs
 * @used:    a device has an address in this VRF; set by nhca_vrfs_mark()
 * @n:       number of open sockets
 * @socks:   sockets for IPv4, then sockets for IPv6 if the host has IPv6
 */
struct nhca_socks {
	struct list_head list;
	int ifindex;
	bool used;
	unsigned int n;
	struct nhca_sock *socks;
};

/**
 * struct nhca_net - nhca's part of a network namespace
 * @net:   the namespace, which exists longer than this struct
 * @users: number of devices; under nhca_net_mutex
 * @socks: the sockets outside of VRFs, open while @users is not 0; under nhca_net_mutex
 * @vrfs:  struct nhca_socks of each VRF with an address of a device; under nhca_net_mutex
 * @lock:  protects writes to @addrs and @devs
 * @devs:  devices, by nhca_dev.list, newest first; RCU readers
 * @addrs: table of struct nhca_addr, by a hash of the address; RCU readers
 */
struct nhca_net {
	struct net *net;
	unsigned int users;
	struct nhca_socks socks;
	struct list_head vrfs;
	spinlock_t lock;	/* protects writes to devs and addrs */
	struct list_head devs;
	struct hlist_head addrs[1 << NHCA_ADDR_BITS];
};

static unsigned int nhca_net_id __read_mostly;

/*
 * Protects users and sockets of all namespaces. A lock in struct nhca_net would not suffice,
 * because the last nhca_net_put() allows the struct to be freed before the function has released
 * the lock.
 */
static DEFINE_MUTEX(nhca_net_mutex);
static DECLARE_WAIT_QUEUE_HEAD(nhca_net_idle);

/* receive functions, which nhca_net_init() has got from main.c */
static void (*nhca_net_data_ready)(struct sock *sk) __ro_after_init;
static void (*nhca_net_rest)(struct nhca_bh *bh) __ro_after_init;

/* ---- sockets ---- */

static void nhca_sock_mute(struct nhca_sock *ns)
{
	struct sock *sk = ns->sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
}

static void nhca_sock_start(struct nhca_sock *ns)
{
	struct sock *sk = ns->sock->sk;

	lock_sock(sk);
	/* set the size here, because net.core.rmem_max limits the socket option SO_RCVBUF */
	sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
	WRITE_ONCE(sk->sk_rcvbuf, NHCA_RCVBUF);
	sk->sk_allocation = GFP_ATOMIC;
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* 0 overrides net.core.busy_read: sk_data_ready must not busy-poll */
	WRITE_ONCE(sk->sk_ll_usec, 0);
#endif
	release_sock(sk);

	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, ns);
	WRITE_ONCE(sk->sk_data_ready, nhca_net_data_ready);
	write_unlock_bh(&sk->sk_callback_lock);

	/* process the packets that were queued since bind(), before sk_data_ready was set */
	rcu_read_lock();
	nhca_net_data_ready(sk);
	rcu_read_unlock();
}

static int nhca_sock_bind(struct socket *sock, sa_family_t family)
{
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(NHCA_ROCE_UDP_PORT),
	};
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(NHCA_ROCE_UDP_PORT),
	};

	if (family == AF_INET)
		return kernel_bind(sock, (void *)&in, sizeof(in));
	return kernel_bind(sock, (void *)&in6, sizeof(in6));
}

static int nhca_sock_option(struct socket *sock, int level, int name)
{
	int one = 1;

	return sock->ops->setsockopt(sock, level, name, KERNEL_SOCKPTR(&one), sizeof(one));
}

/*
 * Sockets share a port only if they have the same owner. The owner of a new socket is the user of
 * the task that opens the socket: any user, because the netdev notifier runs in the process that
 * changes a VRF. So make root the owner of all sockets: then no other user can share the port.
 */
static void nhca_sock_own(struct socket *sock)
{
	SOCK_INODE(sock)->i_uid = GLOBAL_ROOT_UID;
	WRITE_ONCE(sock->sk->sk_uid, GLOBAL_ROOT_UID);
}

/*
 * Open a socket. The socket is not an encapsulation socket, because since Linux 6.9 the stack
 * segments each GRO batch before it calls the handler of this kind of socket. udp_sock_create() is
 * not used either, because it binds the socket before SO_REUSEPORT can be set.
 *
 * @shared: other sockets of this namespace also use the port (SO_REUSEPORT). The stack selects the
 * socket by addresses and ports. All packets of a connection have the same ports, so one socket
 * gets all of them in their order. Several CPUs can process the packets of several sockets.
 * @vrf: ifindex of a VRF, or 0. A socket that is bound to no netdev gets no packets of VRFs, unless
 * the administrator has set udp_l3mdev_accept.
 */
static int nhca_sock_open(struct nhca_net *nn, struct nhca_sock *ns, sa_family_t family,
			  bool shared, int vrf)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(nn->net, family, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return err;

	nhca_sock_own(sock);
	if (family == AF_INET6) {
		err = nhca_sock_option(sock, SOL_IPV6, IPV6_V6ONLY);
		/* RoCEv2 senders may omit the checksum, because packets have an ICRC */
		err = err ?: nhca_sock_option(sock, SOL_UDP, UDP_NO_CHECK6_RX);
	}
	err = err ?: nhca_sock_option(sock, SOL_UDP, UDP_GRO);
	if (!err) {
		if (shared)
			sock_set_reuseport(sock->sk);
		if (vrf)
			err = sock_bindtoindex(sock->sk, vrf, true);
		err = err ?: nhca_sock_bind(sock, family);
	}
	if (err) {
		sock_release(sock);
		return err;
	}

	ns->nn = nn;
	ns->sock = sock;
	atomic_set(&ns->ready, 0);
	nhca_bh_init(&ns->rest, nhca_net_rest);
	nhca_sock_start(ns);
	return 0;
}

static void nhca_socks_close(struct nhca_socks *set)
{
	unsigned int i;

	for (i = 0; i < set->n; i++)
		nhca_sock_mute(&set->socks[i]);
	/*
	 * Wait for CPUs that still use the sockets, because they have read sk_user_data before. If
	 * the caller holds the RTNL, synchronize_net() uses an expedited grace period.
	 */
	synchronize_net();
	for (i = 0; i < set->n; i++) {
		nhca_bh_kill(&set->socks[i].rest);
		kernel_sock_shutdown(set->socks[i].sock, SHUT_RDWR);
		sock_release(set->socks[i].sock);
		kfree_skb(set->socks[i].part);
	}
	kfree(set->socks);
}

/* Open the sockets of @set->ifindex. Return: 0 or an error. */
static int nhca_socks_open(struct nhca_net *nn, struct nhca_socks *set)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	unsigned int each = min(num_online_cpus(), NHCA_SOCKS);
	sa_family_t family;
	int err;

	set->socks = kcalloc(2 * each, sizeof(*set->socks), GFP_KERNEL);
	if (!set->socks)
		return -ENOMEM;
	for (set->n = 0; set->n < 2 * each; set->n++) {
		family = families[set->n / each];
		err = nhca_sock_open(nn, &set->socks[set->n], family, each > 1 || set->ifindex,
				     set->ifindex);
		/* the kernel is built without IPv6, or IPv6 was disabled at boot */
		if (family == AF_INET6 && (err == -EAFNOSUPPORT || err == -EPFNOSUPPORT))
			return 0;
		if (err) {
			nhca_socks_close(set);
			return err;
		}
	}
	return 0;
}

/* ---- VRFs ---- */

static struct nhca_socks *nhca_vrf_find(struct nhca_net *nn, int ifindex)
{
	struct nhca_socks *set;

	list_for_each_entry(set, &nn->vrfs, list)
		if (set->ifindex == ifindex)
			return set;
	return NULL;
}

/*
 * Mark the VRFs in which a device has an address.
 * Return: the ifindex of a VRF in which a device has an address but which has no sockets, or
 * 0 if there is no such VRF.
 */
static int nhca_vrfs_mark(struct nhca_net *nn)
{
	struct nhca_socks *set;
	struct nhca_addr *a;
	int missing = 0, vrf;
	unsigned int i;

	lockdep_assert_held(&nhca_net_mutex);
	list_for_each_entry(set, &nn->vrfs, list)
		set->used = false;
	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(nn->addrs); i++) {
		hlist_for_each_entry_rcu(a, &nn->addrs[i], node) {
			vrf = l3mdev_master_ifindex_by_index(nn->net, a->ifindex);
			set = vrf ? nhca_vrf_find(nn, vrf) : NULL;
			if (set)
				set->used = true;
			else if (vrf)
				missing = vrf;
		}
	}
	rcu_read_unlock();
	return missing;
}

/*
 * Open the sockets of one VRF. A socket that is bound to a VRF and a socket that is bound to no
 * netdev may have the same port only if both have SO_REUSEPORT, so set this option for the sockets
 * outside of VRFs as well.
 */
static int nhca_vrf_open(struct nhca_net *nn, int ifindex)
{
	struct nhca_socks *set = kzalloc(sizeof(*set), GFP_KERNEL);
	unsigned int i;
	int err;

	if (!set)
		return -ENOMEM;
	for (i = 0; i < nn->socks.n; i++)
		sock_set_reuseport(nn->socks.socks[i].sock->sk);
	set->ifindex = ifindex;
	err = nhca_socks_open(nn, set);
	if (err) {
		pr_warn("nhca: cannot open UDP sockets in the VRF with ifindex %d (error %d): nhca devices receive no packets in this VRF; to try again, remove an IP address from a netdev of the VRF and add it again\n",
			ifindex, err);
		kfree(set);
		return err;
	}
	list_add(&set->list, &nn->vrfs);
	return 0;
}

static void nhca_vrf_close(struct nhca_socks *set)
{
	list_del(&set->list);
	nhca_socks_close(set);
	kfree(set);
}

/* Open and close sockets, so that exactly the VRFs with an address of a device have sockets. */
static void nhca_vrfs_update(struct nhca_net *nn)
{
	struct nhca_socks *set, *next;
	int missing;

	lockdep_assert_held(&nhca_net_mutex);
	if (!nn->users)
		return;
	do {
		missing = nhca_vrfs_mark(nn);
	} while (missing && !nhca_vrf_open(nn, missing));
	list_for_each_entry_safe(set, next, &nn->vrfs, list)
		if (!set->used)
			nhca_vrf_close(set);
}

void nhca_net_vrf_changed(struct net *net)
{
	struct nhca_net *nn = net_generic(net, nhca_net_id);

	/*
	 * Without a device there is nothing to do: when a device gets its first address,
	 * nhca_addr_add() reads the VRF of the netdev. The barrier pairs with the mutex in
	 * nhca_net_get(). This check avoids a needless wait for the mutex: the caller holds the
	 * RTNL, and the mutex may be held while sockets of other namespaces are opened or closed.
	 */
	smp_mb();
	if (!READ_ONCE(nn->users))
		return;
	mutex_lock(&nhca_net_mutex);
	nhca_vrfs_update(nn);
	mutex_unlock(&nhca_net_mutex);
}

static int nhca_net_open(struct nhca_net *nn)
{
	int err = nhca_guard_open(nn->net);

	if (err)
		return err;
	err = nhca_socks_open(nn, &nn->socks);
	if (err)
		nhca_guard_close(nn->net);
	return err;
}

static void nhca_net_close(struct nhca_net *nn)
{
	struct nhca_socks *set, *next;

	list_for_each_entry_safe(set, next, &nn->vrfs, list)
		nhca_vrf_close(set);
	nhca_socks_close(&nn->socks);
	nhca_guard_close(nn->net);
}

struct nhca_net *nhca_net_get(struct net *net)
{
	struct nhca_net *nn = net_generic(net, nhca_net_id);
	int err = 0;

	mutex_lock(&nhca_net_mutex);
	if (!nn->users)
		err = nhca_net_open(nn);
	if (!err)
		WRITE_ONCE(nn->users, nn->users + 1);
	mutex_unlock(&nhca_net_mutex);
	return err ? ERR_PTR(err) : nn;
}

void nhca_net_put(struct nhca_net *nn)
{
	mutex_lock(&nhca_net_mutex);
	if (nn->users == 1)
		nhca_net_close(nn);
	/*
	 * the namespace may be freed after this store; pairs with smp_load_acquire() in
	 * nhca_net_ns_exit()
	 */
	smp_store_release(&nn->users, nn->users - 1);
	mutex_unlock(&nhca_net_mutex);
	wake_up_all(&nhca_net_idle);
}

struct net *nhca_net_ns(const struct nhca_net *nn)
{
	return nn->net;
}

/* ---- addresses ---- */

static struct hlist_head *nhca_addr_bucket(struct nhca_net *nn, const struct in6_addr *addr)
{
	return &nn->addrs[hash_32(ipv6_addr_hash(addr), NHCA_ADDR_BITS)];
}

/* Return: the entry of an address and netdev, or NULL. nhca_net.lock is held. */
static struct nhca_addr *nhca_addr_entry(struct hlist_head *bucket, const struct nhca_dev *dev,
					 const struct in6_addr *addr, int ifindex)
{
	struct nhca_addr *a;

	lockdep_assert_held(&dev->nn->lock);
	hlist_for_each_entry(a, bucket, node)
		if (a->dev == dev && a->ifindex == ifindex && ipv6_addr_equal(&a->addr, addr))
			return a;
	return NULL;
}

/*
 * An address was added or removed: if its netdev is in a VRF, open the sockets of the VRF, or close
 * these sockets if no device has an address in the VRF any more.
 */
static void nhca_addr_changed(struct nhca_dev *dev, int ifindex)
{
	struct nhca_net *nn = dev->nn;

	mutex_lock(&nhca_net_mutex);
	if (!list_empty(&nn->vrfs) || l3mdev_master_ifindex_by_index(nn->net, ifindex))
		nhca_vrfs_update(nn);
	mutex_unlock(&nhca_net_mutex);
}

int nhca_addr_add(struct nhca_dev *dev, const union ib_gid *gid, int ifindex)
{
	struct nhca_net *nn = dev->nn;
	struct nhca_addr *new, *old;
	struct hlist_head *bucket;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	memcpy(&new->addr, gid->raw, sizeof(new->addr));
	new->dev = dev;
	new->ifindex = ifindex;
	new->own = dev->netdev && ifindex == dev->netdev->ifindex;
	new->refs = 1;

	bucket = nhca_addr_bucket(nn, &new->addr);
	spin_lock_bh(&nn->lock);
	old = nhca_addr_entry(bucket, dev, &new->addr, ifindex);
	if (old)
		old->refs++;
	else
		hlist_add_head_rcu(&new->node, bucket);
	spin_unlock_bh(&nn->lock);

	if (old)
		kfree(new);
	else
		nhca_addr_changed(dev, ifindex);
	return 0;
}

void nhca_addr_del(struct nhca_dev *dev, const union ib_gid *gid, int ifindex)
{
	struct nhca_net *nn = dev->nn;
	struct in6_addr addr;
	struct nhca_addr *a;
	bool gone = false;

	memcpy(&addr, gid->raw, sizeof(addr));
	spin_lock_bh(&nn->lock);
	a = nhca_addr_entry(nhca_addr_bucket(nn, &addr), dev, &addr, ifindex);
	if (!WARN_ON_ONCE(!a) && !--a->refs) {
		hlist_del_rcu(&a->node);
		kfree_rcu(a, rcu);
		gone = true;
	}
	spin_unlock_bh(&nn->lock);
	if (gone)
		nhca_addr_changed(dev, ifindex);
}

struct nhca_dev *nhca_addr_find(struct nhca_net *nn, const struct in6_addr *addr, int iif)
{
	struct nhca_dev *any = NULL, *above = NULL;
	struct nhca_addr *a;

	hlist_for_each_entry_rcu(a, nhca_addr_bucket(nn, addr), node) {
		if (!ipv6_addr_equal(&a->addr, addr))
			continue;
		if (a->ifindex == iif) {
			/*
			 * if @iif is a VLAN, macvlan or bond, a device on a netdev below it may
			 * also have the address: prefer the device on @iif itself
			 */
			if (a->own)
				return a->dev;
			above = a->dev;
		}
		if (!any && (iif == LOOPBACK_IFINDEX || !nhca_addr_is_link(addr)))
			any = a->dev;
	}
	return above ?: any;
}

bool nhca_addr_is(const struct nhca_dev *dev, const struct nhca_ip *ip)
{
	struct nhca_addr *a;

	hlist_for_each_entry_rcu(a, nhca_addr_bucket(ip->nn, &ip->daddr), node)
		if (a->dev == dev && ipv6_addr_equal(&a->addr, &ip->daddr) &&
		    nhca_ip_link(ip, a->ifindex))
			return true;
	return false;
}

u16 nhca_ip_vlan(const struct nhca_dev *dev, const struct nhca_ip *ip)
{
	/*
	 * A unicast packet of this host arrives on lo, which is not the netdev of the address, so
	 * search for the address.  @ip->iif only selects one of several netdevs with the address.
	 */
	int ifindex = ip->mcast ? ip->iif : 0;
	struct ib_gid_attr attr = {};
	struct net_device *ndev;
	struct nhca_addr *a;
	u16 vlan;

	hlist_for_each_entry_rcu(a, nhca_addr_bucket(ip->nn, &ip->daddr), node) {
		if (a->dev == dev && ipv6_addr_equal(&a->addr, &ip->daddr) &&
		    (!ifindex || a->ifindex == ip->iif))
			ifindex = a->ifindex;
	}
	ndev = ifindex ? dev_get_by_index_rcu(ip->nn->net, ifindex) : NULL;
	if (!ndev)
		return NHCA_VLAN_NONE;
	/*
	 * The RDMA core compares this VLAN with the VLAN that it has computed for the GID. So use
	 * the core's function, which also finds VLANs below bonds and bridges.
	 */
	RCU_INIT_POINTER(attr.ndev, ndev);
	return rdma_read_gid_l2_fields(&attr, &vlan, NULL) ? NHCA_VLAN_NONE : vlan;
}

/* ---- devices ---- */

struct nhca_dev *nhca_net_dev(struct nhca_net *nn, int iif)
{
	struct net_device *ndev, *real;
	struct nhca_dev *dev;

	NHCA_STUB(nhca_net_dev, nn, iif);
	ndev = dev_get_by_index_rcu(nn->net, iif);
	if (!ndev)
		return NULL;
	real = rdma_vlan_dev_real_dev(ndev);
	if (real)
		ndev = real;

	list_for_each_entry_rcu(dev, &nn->devs, list)
		if (dev->netdev == ndev)
			return dev;
	return NULL;
}

void nhca_net_dev_add(struct nhca_net *nn, struct nhca_dev *dev)
{
	spin_lock_bh(&nn->lock);
	list_add_rcu(&dev->list, &nn->devs);
	spin_unlock_bh(&nn->lock);
}

void nhca_net_dev_del(struct nhca_net *nn, struct nhca_dev *dev)
{
	spin_lock_bh(&nn->lock);
	list_del_rcu(&dev->list);
	spin_unlock_bh(&nn->lock);
}

/* ---- namespaces ---- */

static int __net_init nhca_net_ns_init(struct net *net)
{
	struct nhca_net *nn = net_generic(net, nhca_net_id);
	unsigned int i;

	nn->net = net;
	spin_lock_init(&nn->lock);
	INIT_LIST_HEAD(&nn->devs);
	INIT_LIST_HEAD(&nn->vrfs);
	for (i = 0; i < ARRAY_SIZE(nn->addrs); i++)
		INIT_HLIST_HEAD(&nn->addrs[i]);
	return 0;
}

/*
 * This function runs after the namespace's netdevs have been unregistered or moved to the initial
 * namespace, because the kernel calls subsys operations after device operations. In both cases
 * main.c has queued the unregistration of the nhca devices on these netdevs, but the devices may
 * still exist. So wait until they have released the namespace.
 */
static void __net_exit nhca_net_ns_exit(struct net *net)
{
	struct nhca_net *nn = net_generic(net, nhca_net_id);

	/* pairs with smp_store_release() in nhca_net_put(), which does not use @nn afterwards */
	wait_event(nhca_net_idle, !smp_load_acquire(&nn->users));
}

static struct pernet_operations nhca_net_ops = {
	.init = nhca_net_ns_init,
	.exit = nhca_net_ns_exit,
	.id = &nhca_net_id,
	.size = sizeof(struct nhca_net),
};

int __init nhca_net_init(void (*data_ready)(struct sock *sk), void (*rest)(struct nhca_bh *bh))
{
	nhca_net_data_ready = data_ready;
	nhca_net_rest = rest;
	return register_pernet_subsys(&nhca_net_ops);
}

void nhca_net_exit(void)
{
	nhca_flow_drain();
	nhca_xmit_exit();
	unregister_pernet_subsys(&nhca_net_ops);
	/* wait for RCU callbacks, because some of them are in this module: nhca_av_free() */
	rcu_barrier();
}
