// SPDX-License-Identifier: GPL-2.0
/* Address vectors: the IP addresses, route and header fields of a consumer's address handle. */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/dsfield.h>
#include <net/flow.h>
#include <net/inet_ecn.h>
#include <net/route.h>
#include <rdma/ib_cache.h>

#include "net.h"
#include "../observe/stub.h"

static int nhca_gid_ifindex(const struct ib_gid_attr *sgid)
{
	struct net_device *ndev;
	int ifindex = 0;

	rcu_read_lock();
	ndev = rcu_dereference(sgid->ndev);
	if (ndev)
		ifindex = ndev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

#if IS_ENABLED(CONFIG_IPV6)
/* Return: true if the netdev of @sgid has the address; a tentative address is sufficient. */
static bool nhca_sgid_there(struct nhca_dev *dev, const struct ib_gid_attr *sgid)
{
	const struct in6_addr *addr = (const struct in6_addr *)sgid->gid.raw;
	struct net_device *ndev;
	bool there;

	rcu_read_lock();
	ndev = rcu_dereference(sgid->ndev);
	there = ndev && ipv6_chk_addr_and_flags(nhca_net_ns(dev->nn), addr, ndev, false, 1, 0);
	if (ndev && !there)
		ibdev_warn_ratelimited(&dev->ibdev, "GID %u is the link-local address %pI6c, which %s does not have: use another GID index, or enable IPv6 on the netdev with addr_gen_mode eui64\n",
				       sgid->index, addr, ndev->name);
	rcu_read_unlock();
	return there;
}
#else
static bool nhca_sgid_there(struct nhca_dev *dev, const struct ib_gid_attr *sgid)
{
	return false;
}
#endif

/*
 * The core makes a default GID of the link-local address that belongs to the MAC address.  This GID
 * exists even if the netdev has no such address, because IPv6 is disabled or uses stable-privacy
 * addresses.  Then no packet to this GID arrives, so refuse the GID before a program waits for an
 * answer.  All other GIDs are addresses of the netdev.
 */
static bool nhca_sgid_usable(struct nhca_dev *dev, const struct ib_gid_attr *sgid)
{
	const struct in6_addr *addr = (const struct in6_addr *)sgid->gid.raw;

	return !(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL) || nhca_sgid_there(dev, sgid);
}

static bool nhca_addr_is_mcast(const struct in6_addr *a)
{
	if (ipv6_addr_v4mapped(a))
		return ipv4_is_multicast(a->s6_addr32[3]);
	return ipv6_addr_is_multicast(a);
}

bool nhca_addr_unicast(const struct nhca_dev *dev, int ifindex, const struct in6_addr *addr)
{
	struct net *net;
	unsigned int type;

	NHCA_STUB(nhca_addr_unicast, dev, ifindex, addr);
	if (!ipv6_addr_v4mapped(addr))
		return ipv6_addr_type(addr) & IPV6_ADDR_UNICAST;
	net = nhca_net_ns(dev->nn);
	rcu_read_lock();
	type = inet_addr_type_dev_table(net, dev_get_by_index_rcu(net, ifindex),
					addr->s6_addr32[3]);
	rcu_read_unlock();
	return type == RTN_UNICAST || type == RTN_LOCAL;
}

struct nhca_av *nhca_av_create(struct nhca_dev *dev, const struct rdma_ah_attr *attr,
			       gfp_t gfp)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *sgid = grh->sgid_attr;
	struct nhca_av *av;
	int err;

	NHCA_STUB(nhca_av_create, dev, attr, gfp);
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !sgid)
		return ERR_PTR(-EINVAL);
	if (sgid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return ERR_PTR(-EINVAL);
	if (!nhca_sgid_usable(dev, sgid))
		return ERR_PTR(-EADDRNOTAVAIL);

	av = kzalloc(sizeof(*av), gfp);
	if (!av)
		return ERR_PTR(-ENOMEM);

	refcount_set(&av->ref, 1);
	memcpy(&av->saddr, &sgid->gid, sizeof(av->saddr));
	memcpy(&av->daddr, &grh->dgid, sizeof(av->daddr));
	av->v4 = ipv6_addr_v4mapped(&av->saddr);
	av->mcast = nhca_addr_is_mcast(&av->daddr);
	av->ifindex = nhca_gid_ifindex(sgid);
	av->tclass = grh->traffic_class;
	av->hop_limit = grh->hop_limit;
	av->flow_label = grh->flow_label;
	av->sgid_index = grh->sgid_index;
	av->sl = rdma_ah_get_sl(attr);
	if (attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		ether_addr_copy(av->dmac, attr->roce.dmac);

	err = -EINVAL;
	if (!av->ifindex || av->v4 != ipv6_addr_v4mapped(&av->daddr))
		goto err_free;
	if (!av->mcast && !nhca_addr_unicast(dev, av->ifindex, &av->daddr))
		goto err_free;

	err = dst_cache_init(&av->cache, gfp);
	if (err)
		goto err_free;
	return av;

err_free:
	kfree(av);
	return ERR_PTR(err);
}

/*
 * Return: the index of the netdev through which to answer @rx. A packet of this host arrives on lo,
 * which has no link-local addresses, so such a packet is answered through the device's netdev.
 */
static int nhca_rx_ifindex(const struct nhca_dev *dev, const struct nhca_rx *rx)
{
	return rx->ip.iif == LOOPBACK_IFINDEX ? dev->netdev->ifindex : rx->ip.iif;
}

u8 nhca_ip_tclass(const struct nhca_ip *ip)
{
	u8 tclass = ip->v4 ? ((const struct iphdr *)ip->hdr)->tos : ipv6_get_dsfield(ip->hdr);

	return tclass & ~INET_ECN_MASK;
}

void nhca_av_back_once(struct nhca_av *av, const struct nhca_dev *dev, const struct nhca_rx *rx)
{
	*av = (struct nhca_av) {
		.saddr = rx->ip.daddr,
		.daddr = rx->ip.saddr,
		.v4 = rx->ip.v4,
		.ifindex = nhca_rx_ifindex(dev, rx),
		.tclass = nhca_ip_tclass(&rx->ip),
	};
}

struct nhca_av *nhca_av_back(const struct nhca_dev *dev, const struct nhca_rx *rx)
{
	struct nhca_av *av = kmalloc(sizeof(*av), GFP_ATOMIC | __GFP_NOWARN);

	if (!av)
		return NULL;
	nhca_av_back_once(av, dev, rx);
	refcount_set(&av->ref, 1);
	if (dst_cache_init(&av->cache, GFP_ATOMIC | __GFP_NOWARN)) {
		kfree(av);
		return NULL;
	}
	return av;
}

bool nhca_av_is_back(const struct nhca_av *av, const struct nhca_dev *dev,
		     const struct nhca_rx *rx)
{
	return ipv6_addr_equal(&av->daddr, &rx->ip.saddr) &&
	       ipv6_addr_equal(&av->saddr, &rx->ip.daddr) &&
	       av->ifindex == nhca_rx_ifindex(dev, rx) && av->tclass == nhca_ip_tclass(&rx->ip);
}

static void nhca_av_free(struct rcu_head *rcu)
{
	struct nhca_av *av = container_of(rcu, struct nhca_av, rcu);

	dst_cache_destroy(&av->cache);
	kfree(av);
}

void nhca_av_put(struct nhca_av *av)
{
	if (av && refcount_dec_and_test(&av->ref))
		call_rcu(&av->rcu, nhca_av_free);
}

void nhca_av_to_attr(const struct nhca_av *av, struct rdma_ah_attr *attr)
{
	union ib_gid dgid;

	memset(attr, 0, sizeof(*attr));
	memcpy(&dgid, &av->daddr, sizeof(dgid));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_port_num(attr, NHCA_PORT);
	rdma_ah_set_grh(attr, &dgid, av->flow_label, av->sgid_index, av->hop_limit, av->tclass);
	rdma_ah_set_ah_flags(attr, IB_AH_GRH);
	ether_addr_copy(attr->roce.dmac, av->dmac);
}

u16 nhca_udp_sport(u32 flow_label, u32 lqpn, u32 rqpn)
{
	return rdma_get_udp_sport(flow_label, lqpn, rqpn);
}
