// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the transmit queues that packets of flows take, on a netdev and on a netdev stacked on it.
 * While packets of a flow are in flight, its packets take one queue, whatever CPU sends them.
 */
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>

#include "../net/net.h"
#include "../net/flow.h"

#define QUEUES	8
#define CPUS	2	/* each has half of the queues */
#define FLOWS	64
#define MARK	0x6e686361	/* skb->mark of the test's packets; other packets have none */

/**
 * struct nic - a netdev with several queues
 * @dev:  the netdev, which keeps the skbs
 * @up:   a netdev with as many queues, stacked on @dev
 * @held: skbs that @dev has not sent
 * @txq:  packet count of the netdev
 * @flow: flows of @txq
 */
struct nic {
	struct net_device *dev;
	struct net_device *up;
	struct sk_buff_head held;
	struct nhca_txq *txq;
	struct nhca_flow *flow[FLOWS];
};

/* the CPU that nhca_flow_cpu() returns */
static unsigned int nic_cpu;

static unsigned int nic_this_cpu(void)
{
	return nic_cpu;
}

static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct nic **nic = netdev_priv(dev);

	if (skb->mark == MARK)
		skb_queue_tail(&(*nic)->held, skb);
	else
		kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* Forward to the lower netdev, as VLAN, macvlan and tunnels do. */
static netdev_tx_t nic_xmit_up(struct sk_buff *skb, struct net_device *dev)
{
	struct nic **nic = netdev_priv(dev);

	skb->dev = (*nic)->dev;
	dev_queue_xmit(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops nic_ops = {
	.ndo_start_xmit = nic_xmit,
};

static const struct net_device_ops nic_ops_up = {
	.ndo_start_xmit = nic_xmit_up,
};

static struct net_device *nic_dev(struct kunit *test, struct nic *nic,
				  const struct net_device_ops *ops)
{
	struct net_device *dev = alloc_etherdev_mqs(sizeof(nic), QUEUES, 1);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	*(struct nic **)netdev_priv(dev) = nic;
	dev->netdev_ops = ops;
	dev->flags |= IFF_NOARP;
	dev->priv_flags |= IFF_NO_QUEUE;
	eth_hw_addr_random(dev);
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, dev_open(dev, NULL), 0);
	rtnl_unlock();
	return dev;
}

static void nic_dev_free(struct net_device *dev)
{
	unregister_netdev(dev);
	free_netdev(dev);
}

static struct nic *nic_make(struct kunit *test)
{
	static struct lock_class_key key;
	struct nic *nic = kunit_kzalloc(test, sizeof(*nic), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, nic);
	skb_queue_head_init(&nic->held);
	nic->txq = nhca_txq_create();
	KUNIT_ASSERT_NOT_NULL(test, nic->txq);
	for (i = 0; i < FLOWS; i++) {
		nic->flow[i] = nhca_flow_create(nic->txq, NULL, NULL);
		KUNIT_ASSERT_NOT_NULL(test, nic->flow[i]);
	}
	nic->dev = nic_dev(test, nic, &nic_ops);
	nic->up = nic_dev(test, nic, &nic_ops_up);
	/*
	 * lockdep: these locks are held while the locks of the lower netdev are taken, so they need
	 * another class
	 */
	for (i = 0; i < QUEUES; i++)
		lockdep_set_class(&netdev_get_tx_queue(nic->up, i)->_xmit_lock, &key);
	kunit_activate_static_stub(test, nhca_flow_cpu, nic_this_cpu);
	return nic;
}

static void nic_free(struct kunit *test, struct nic *nic)
{
	int i;

	kunit_deactivate_static_stub(test, nhca_flow_cpu);
	nic_dev_free(nic->up);
	nic_dev_free(nic->dev);
	skb_queue_purge(&nic->held);
	for (i = 0; i < FLOWS; i++)
		nhca_flow_close(nic->flow[i]);
	nhca_txq_put(nic->txq);
}

/* Assign QUEUES / CPUS queues, from @first on, to CPU @cpu by XPS. */
static void nic_xps(struct kunit *test, struct net_device *dev, unsigned int cpu, u16 first)
{
#ifdef CONFIG_XPS
	u16 i;

	for (i = 0; i < QUEUES / CPUS; i++)
		KUNIT_EXPECT_EQ(test, netif_set_xps_queue(dev, cpumask_of(cpu), first + i), 0);
#endif
}

/* Return: a NIC whose XPS gives CPU 0 the lower half of the queues and CPU 1 the upper half. */
static struct nic *nic_make_xps(struct kunit *test)
{
	unsigned int cpu;
	struct nic *nic;

	if (!IS_ENABLED(CONFIG_XPS) || nr_cpu_ids < CPUS)
		kunit_skip(test, "no XPS, or no second CPU");
	nic = nic_make(test);
	for (cpu = 0; cpu < CPUS; cpu++)
		nic_xps(test, nic->dev, cpu, cpu * QUEUES / CPUS);
	return nic;
}

/* Send a packet of flow @i from CPU @cpu. Return: the queue of the NIC that the packet took. */
static u16 nic_send(struct kunit *test, struct nic *nic, struct net_device *dev, int i,
		    unsigned int cpu)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 64);
	skb_put_zero(skb, ETH_HLEN + 64);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	skb->mark = MARK;
	/* in place of the hash over addresses and ports, which differ between QPs */
	skb_set_hash(skb, (i + 1) * 0x9e3779b1u, PKT_HASH_TYPE_L4);
	nic_cpu = cpu;
	local_bh_disable();
	nhca_flow_charge(nic->flow[i], skb, 1);
	dev_queue_xmit(skb);
	local_bh_enable();
	skb = skb_peek_tail(&nic->held);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	return skb_get_queue_mapping(skb);
}

/* The NIC has sent the oldest @n packets. */
static void nic_sent(struct nic *nic, int n)
{
	for (; n; n--)
		kfree_skb(skb_dequeue(&nic->held));
}

/*
 * Packets of a flow take the same queue while any of them is in flight, whatever CPU sends them. In
 * different queues they could overtake each other.
 */
static void keeps(struct kunit *test, bool stacked)
{
	struct nic *nic = nic_make_xps(test);
	struct net_device *dev = stacked ? nic->up : nic->dev;
	u16 first = nic_send(test, nic, dev, 0, 0);
	int i;

	KUNIT_EXPECT_LT(test, first, QUEUES / CPUS);
	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_EQ(test, nic_send(test, nic, dev, 0, i % CPUS), first);
		/* the last packet always stays in flight */
		nic_sent(nic, i % 3);
	}
	nic_sent(nic, skb_queue_len(&nic->held));
	/*
	 * no packet is in flight: the next packet may take another queue, and later packets follow
	 * it
	 */
	first = nic_send(test, nic, dev, 0, 1);
	KUNIT_EXPECT_GE(test, first, QUEUES / CPUS);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, nic_send(test, nic, dev, 0, i % CPUS), first);
	nic_free(test, nic);
}

/* Packets of a flow keep their queue on a netdev. */
static void queue_keeps_test(struct kunit *test)
{
	keeps(test, false);
}

/* Packets of a flow keep their queue of the lower netdev if they are sent on a stacked netdev. */
static void queue_keeps_stacked_test(struct kunit *test)
{
	keeps(test, true);
}

/* Flows whose packets are sent by one CPU use all queues of the CPU, and no other queues. */
static void queue_spread_test(struct kunit *test)
{
	struct nic *nic = nic_make_xps(test);
	unsigned long used = 0;
	unsigned int cpu;
	int i;

	for (cpu = 0; cpu < CPUS; cpu++) {
		for (i = 0; i < FLOWS; i++)
			__set_bit(nic_send(test, nic, nic->dev, i, cpu), &used);
		KUNIT_EXPECT_EQ(test, used, (BIT(QUEUES / CPUS) - 1) << (cpu * QUEUES / CPUS));
		nic_sent(nic, FLOWS);
		used = 0;
	}
	nic_free(test, nic);
}

/*
 * Without XPS, addresses and ports select the queue: the flows use all queues, and each flow uses
 * one queue.
 */
static void queue_hash_test(struct kunit *test)
{
	struct nic *nic = nic_make(test);
	unsigned long used = 0;
	u16 queue;
	int i, n;

	for (i = 0; i < FLOWS; i++) {
		queue = nic_send(test, nic, nic->dev, i, 0);
		__set_bit(queue, &used);
		for (n = 0; n < 4; n++)
			KUNIT_EXPECT_EQ(test, nic_send(test, nic, nic->dev, i, n % CPUS), queue);
	}
	KUNIT_EXPECT_EQ(test, used, BIT(QUEUES) - 1);
	nic_free(test, nic);
}

/* The CPU of a flow is the CPU that sent a packet when no other packet was in flight. */
static void queue_sender_test(struct kunit *test)
{
	struct nic *nic = nic_make(test);
	unsigned int cpu;

	for (cpu = 0; cpu < 200; cpu += 7) {
		nic_send(test, nic, nic->dev, 0, cpu);
		nic_send(test, nic, nic->dev, 0, cpu + 1);
		nic_sent(nic, 1);
		nic_send(test, nic, nic->dev, 0, cpu + 2);
		KUNIT_EXPECT_EQ(test, nhca_flow_sender(nic->flow[0]), cpu);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(nic->flow[0]), 2);
		nic_sent(nic, 2);
	}
	nic_free(test, nic);
}

/*
 * A queueing discipline or a netdev may orphan a packet before it sends the packet. An orphaned
 * packet does not count as in flight. Nevertheless, between nhca_flow_queue_hold() and
 * nhca_flow_queue_release() all packets take the queue of the first packet.
 */
static void queue_orphaned_test(struct kunit *test)
{
	struct nic *nic = nic_make(test);
	struct nhca_flow *flow = nic->flow[0];
	unsigned int cpu;

	for (cpu = 0; cpu < 200; cpu += 7) {
		nic_cpu = cpu;
		nhca_flow_queue_hold(flow);
		nic_send(test, nic, nic->dev, 0, cpu + 1);
		skb_orphan(skb_peek(&nic->held));
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(flow), 0);
		nic_send(test, nic, nic->dev, 0, cpu + 2);
		KUNIT_EXPECT_EQ(test, nhca_flow_sender(flow), cpu);
		nic_sent(nic, 2);
		nhca_flow_queue_release(flow);
		nic_send(test, nic, nic->dev, 0, cpu + 3);
		KUNIT_EXPECT_EQ(test, nhca_flow_sender(flow), cpu + 3);
		/* because a packet is in flight, the hold does not change the queue */
		nic_cpu = cpu + 4;
		nhca_flow_queue_hold(flow);
		KUNIT_EXPECT_EQ(test, nhca_flow_sender(flow), cpu + 3);
		nhca_flow_queue_release(flow);
		nic_sent(nic, 1);
	}
	nic_free(test, nic);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(queue_keeps_test),
	KUNIT_CASE(queue_keeps_stacked_test),
	KUNIT_CASE(queue_spread_test),
	KUNIT_CASE(queue_hash_test),
	KUNIT_CASE(queue_sender_test),
	KUNIT_CASE(queue_orphaned_test),
	{}
};

static struct kunit_suite queue_suite = {
	.name = "nhca_queue",
	.test_cases = queue_cases,
};

kunit_test_suite(queue_suite);
