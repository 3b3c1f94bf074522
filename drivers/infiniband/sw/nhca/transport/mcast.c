// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: the UD QPs that receive a group's packets, and the membership of the netdev in
 * the group at the IP layer.
 *
 * Readers use RCU.  Writers hold RTNL, which is required to join a group.  A verb that takes RTNL
 * cannot deadlock, because no code that holds RTNL waits for a verb.  The unregistration of a
 * device waits for verbs, but runs without RTNL.
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>

#include "../observe/stub.h"
#include "engine.h"
#include "rx.h"

/* when a QP is destroyed: maximum number of attachments to end before RTNL is released */
#define NHCA_MCAST_STRIDE	64

/**
 * struct nhca_mcast_qp - a QP's attachment to a group
 * @list:  entry in nhca_mcast_group.qps
 * @of_qp: entry in nhca_qp.mcast
 * @rcu:   frees the struct after a grace period
 * @qp:    the QP; it outlives its attachments
 * @group: the group; it exists as long as it has attachments
 */
struct nhca_mcast_qp {
	struct list_head list;
	struct hlist_node of_qp;
	struct rcu_head rcu;
	struct nhca_qp *qp;
	struct nhca_mcast_group *group;
};

/**
 * struct nhca_mcast_group - a group that a QP of the device is attached to
 * @node:   entry in nhca_dev.mcast.groups
 * @rcu:    frees the struct after a grace period
 * @mgid:   IPv4-mapped or IPv6 address
 * @in_dev: IPv4: the in_device that has joined the group.  A counted reference, because the same
 *          in_device must leave the group, even if the netdev has another in_device by then
 * @qps:    list of struct nhca_mcast_qp
 * @count:  number of entries of @qps
 * @user:   user whose share of the device's groups the group uses: the owner of the QP that was
 *          attached first; counted reference; NULL: see nhca_qp.owner
 */
struct nhca_mcast_group {
	struct hlist_node node;
	struct rcu_head rcu;
	struct in6_addr mgid;
	struct in_device *in_dev;
	struct list_head qps;
	unsigned int count;
	struct nhca_user *user;
};

static int nhca_mcast_join(struct nhca_dev *dev, struct nhca_mcast_group *g)
{
	struct in_device *in_dev;

	if (!ipv6_addr_v4mapped(&g->mgid))
		return IS_ENABLED(CONFIG_IPV6) ? ipv6_dev_mc_inc(dev->netdev, &g->mgid) :
						 -EAFNOSUPPORT;

	in_dev = __in_dev_get_rtnl(dev->netdev);
	if (!in_dev)
		return -ENODEV;
	in_dev_hold(in_dev);
	g->in_dev = in_dev;
	ip_mc_inc_group(in_dev, g->mgid.s6_addr32[3]);
	return 0;
}

static void nhca_mcast_leave(struct nhca_dev *dev, struct nhca_mcast_group *g)
{
	if (g->in_dev) {
		/* ip_mc_dec_group() does nothing if the in_device is dead */
		ip_mc_dec_group(g->in_dev, g->mgid.s6_addr32[3]);
		in_dev_put(g->in_dev);
	} else if (IS_ENABLED(CONFIG_IPV6)) {
		ipv6_dev_mc_dec(dev->netdev, &g->mgid);
	}
}

/* The key is random, so that no user can choose groups that are all in one bucket. */
static struct hlist_head *nhca_mcast_bucket(struct nhca_dev *dev, const struct in6_addr *mgid)
{
	u64 hash = siphash(mgid, sizeof(*mgid), &dev->mcast.key);

	return &dev->mcast.groups[hash % NHCA_MCAST_BUCKETS];
}

static struct nhca_mcast_group *nhca_mcast_find(struct nhca_dev *dev,
						const struct in6_addr *mgid)
{
	struct hlist_head *bucket = nhca_mcast_bucket(dev, mgid);
	struct nhca_mcast_group *g;

	hlist_for_each_entry_rcu(g, bucket, node, lockdep_rtnl_is_held())
		if (ipv6_addr_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

static struct nhca_mcast_qp *nhca_mcast_member(struct nhca_mcast_group *g,
					       const struct nhca_qp *qp)
{
	struct nhca_mcast_qp *m;

	list_for_each_entry(m, &g->qps, list)
		if (m->qp == qp)
			return m;
	return NULL;
}

/*
 * Join a group for its first QP.  RTNL held.
 * @g: zeroed memory; after success it is the group, still without QPs
 * Return: 0; an error of nhca_pool_charge() or nhca_mcast_join().
 */
static int nhca_mcast_open(struct nhca_qp *qp, const struct in6_addr *mgid,
			   struct nhca_mcast_group *g)
{
	struct nhca_dev *dev = qp->dev;
	int err;

	ASSERT_RTNL();
	g->mgid = *mgid;
	INIT_LIST_HEAD(&g->qps);
	err = nhca_pool_charge(&dev->users, qp->owner, NHCA_POOL_GROUPS, 1);
	if (err)
		return err;
	err = nhca_mcast_join(dev, g);
	if (err) {
		nhca_pool_uncharge(&dev->users, qp->owner, NHCA_POOL_GROUPS, 1);
		return err;
	}
	g->user = nhca_user_hold(qp->owner);
	hlist_add_head_rcu(&g->node, nhca_mcast_bucket(dev, mgid));
	return 0;
}

/* Leave a group, if it has no QP any more.  RTNL held. */
static void nhca_mcast_close_if_empty(struct nhca_dev *dev, struct nhca_mcast_group *g)
{
	ASSERT_RTNL();
	if (g->count)
		return;

	hlist_del_rcu(&g->node);
	nhca_pool_uncharge(&dev->users, g->user, NHCA_POOL_GROUPS, 1);
	nhca_user_put(g->user);
	nhca_mcast_leave(dev, g);
	kfree_rcu(g, rcu);
}

/*
 * Check whether @user may attach one more QP to a group.  RTNL held.
 * Return: 0; -EDQUOT: more than the user's share of the group; -ENOMEM: the group has
 * NHCA_MAX_MCAST_QP QPs already.
 */
static int nhca_mcast_room(const struct nhca_mcast_group *g, const struct nhca_user *user)
{
	const struct nhca_mcast_qp *m;
	long mine = 1;

	ASSERT_RTNL();
	if (g->count >= NHCA_MAX_MCAST_QP)
		return -ENOMEM;
	list_for_each_entry(m, &g->qps, list)
		mine += m->qp->owner == user;
	if (user && !nhca_share_ok(NHCA_MAX_MCAST_QP, mine, g->count + 1))
		return -EDQUOT;
	return 0;
}

/*
 * Like nhca_mcast_attach(), with RTNL held.
 * @new: zeroed memory for a group; NULL afterwards if it was used
 * @m:   zeroed memory for an attachment; NULL afterwards if it was used
 */
static int nhca_mcast_attach_rtnl(struct nhca_qp *qp, const struct in6_addr *mgid,
				  struct nhca_mcast_group **new, struct nhca_mcast_qp **m)
{
	struct nhca_mcast_group *g;
	int err;

	ASSERT_RTNL();
	g = nhca_mcast_find(qp->dev, mgid);
	/* A second attachment succeeds and changes nothing (IBTA 11.3.1). */
	if (g && nhca_mcast_member(g, qp))
		return 0;
	err = g ? nhca_mcast_room(g, qp->owner) : nhca_mcast_open(qp, mgid, *new);
	if (err)
		return err;
	if (!g)
		swap(g, *new);

	g->count++;
	(*m)->qp = qp;
	(*m)->group = g;
	hlist_add_head(&(*m)->of_qp, &qp->mcast);
	list_add_rcu(&(*m)->list, &g->qps);
	*m = NULL;
	return 0;
}

/* End an attachment.  RTNL held. */
static void nhca_mcast_drop(struct nhca_mcast_qp *m)
{
	struct nhca_mcast_group *g = m->group;

	ASSERT_RTNL();
	list_del_rcu(&m->list);
	hlist_del(&m->of_qp);
	g->count--;
	nhca_mcast_close_if_empty(m->qp->dev, g);
	kfree_rcu(m, rcu);
}

int nhca_mcast_attach(struct nhca_qp *qp, const struct in6_addr *mgid)
{
	/* without RTNL, because an allocation may take long if a memory cgroup is full */
	struct nhca_mcast_group *g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);
	struct nhca_mcast_qp *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (g && m) {
		rtnl_lock();
		err = nhca_mcast_attach_rtnl(qp, mgid, &g, &m);
		rtnl_unlock();
	}
	kfree(g);
	kfree(m);
	return err;
}

int nhca_mcast_detach(struct nhca_qp *qp, const struct in6_addr *mgid)
{
	struct nhca_mcast_group *g;
	struct nhca_mcast_qp *m;

	rtnl_lock();
	g = nhca_mcast_find(qp->dev, mgid);
	m = g ? nhca_mcast_member(g, qp) : NULL;
	if (m)
		nhca_mcast_drop(m);
	rtnl_unlock();
	return m ? 0 : -EINVAL;
}

void nhca_mcast_detach_all(struct nhca_qp *qp)
{
	unsigned int n;

	/*
	 * The core does not attach a QP that is being destroyed, so the test needs no lock.  A QP
	 * without attachments takes no RTNL, because any user may destroy QPs in a loop.
	 */
	while (!hlist_empty(&qp->mcast)) {
		rtnl_lock();
		for (n = 0; n < NHCA_MCAST_STRIDE && !hlist_empty(&qp->mcast); n++)
			nhca_mcast_drop(hlist_entry(qp->mcast.first, struct nhca_mcast_qp, of_qp));
		rtnl_unlock();
		cond_resched();
	}
}

u32 nhca_mcast_deliver(struct nhca_dev *dev, const struct in6_addr *mgid, struct nhca_batch *b,
		       void (*fn)(struct nhca_qp *qp, struct nhca_batch *b))
{
	struct nhca_mcast_group *g;
	struct nhca_mcast_qp *m;
	u32 n = 0;

	NHCA_STUB(nhca_mcast_deliver, dev, mgid, b, fn);
	g = nhca_mcast_find(dev, mgid);
	if (!g)
		return 0;
	list_for_each_entry_rcu(m, &g->qps, list) {
		fn(m->qp, b);
		n++;
	}
	return n;
}
