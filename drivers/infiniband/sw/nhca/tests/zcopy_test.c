// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a zero-copy reference lasts until the last skb with its pages is freed, whatever the
 * network stack does with the skbs. A deregistration does not wait for references to other regions.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include "../compat.h"
#ifndef NHCA_OLD_GSO
#include <net/gso.h>
#endif
#include "threads.h"
#include "../net/flow.h"
#include "../nhca.h"
#include "../net/net.h"

#define SEGMENTS	4
#define SEGMENT		1024

/**
 * struct end - a device and its only flow
 * @dev:    the device
 * @txq:    packet count of the device
 * @flow:   the flow
 * @kicked: number of times that the flow was kicked
 */
struct end {
	struct nhca_dev *dev;
	struct nhca_txq *txq;
	struct nhca_flow *flow;
	int kicked;
};

static void end_kick(void *arg)
{
	(*(int *)arg)++;
}

static struct end *end_make(struct kunit *test)
{
	struct end *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, e);
	e->dev = kunit_kzalloc(test, sizeof(*e->dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e->dev);
	e->txq = nhca_txq_create();
	KUNIT_ASSERT_NOT_NULL(test, e->txq);
	e->flow = nhca_flow_create(e->txq, end_kick, &e->kicked);
	KUNIT_ASSERT_NOT_NULL(test, e->flow);
	return e;
}

static void end_free(struct end *e)
{
	nhca_flow_close(e->flow);
	nhca_txq_put(e->txq);
}

static struct nhca_zcopy *begin(struct kunit *test, struct end *e)
{
	struct nhca_zcopy *z = nhca_zcopy_new(e->flow);

	KUNIT_ASSERT_NOT_NULL(test, z);
	return z;
}

/* Return: a reference that covers pages of @region. */
static struct nhca_zcopy *begin_of(struct kunit *test, struct end *e,
				   struct nhca_pageref_region **region)
{
	struct nhca_zcopy *z = begin(test, e);

	KUNIT_ASSERT_TRUE(test, nhca_pageref_add(&z->pages, region));
	return z;
}

/* Return: true if all references of the flow were released. */
static bool released(struct end *e)
{
	return nhca_zcopy_released(e->flow, nhca_zcopy_seq(e->flow));
}

/* Add SEGMENTS fragments of SEGMENT bytes each to @skb. The reference @z covers their pages. */
static void add_pages(struct kunit *test, struct sk_buff *skb, struct nhca_zcopy *z)
{
	struct page *page;
	u32 i;

	for (i = 0; i < SEGMENTS; i++) {
		page = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, page);
		skb_add_rx_frag(skb, i, page, 0, SEGMENT, PAGE_SIZE);
	}
	nhca_zcopy_attach(skb, z);
}

/*
 * Return: a batch of UDP packets that is charged to the flow, as nhca_send() does. The pages are in
 * the first skb or, if @list, in an skb of its frag_list. The batch has the only reference.
 */
static struct sk_buff *batch(struct kunit *test, struct end *e, bool list)
{
	u32 len = SEGMENTS * SEGMENT + sizeof(struct udphdr);
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL), *more;
	struct nhca_zcopy *z = begin(test, e);
	struct udphdr *uh;
	struct iphdr *iph;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 64);
	skb_reset_mac_header(skb);
	eth_zero_addr(skb_put(skb, ETH_ALEN));
	eth_zero_addr(skb_put(skb, ETH_ALEN));
	*(__be16 *)skb_put(skb, 2) = htons(ETH_P_IP);
	skb_set_network_header(skb, ETH_HLEN);
	iph = skb_put_zero(skb, sizeof(*iph));
	*iph = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.tot_len = htons(sizeof(*iph) + len),
		.saddr = htonl(0x0a000001), .daddr = htonl(0x0a000002),
	};
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*iph));
	uh = skb_put_zero(skb, sizeof(*uh));
	uh->len = htons(len);
	uh->check = ~csum_tcpudp_magic(iph->saddr, iph->daddr, len, IPPROTO_UDP, 0);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = init_net.loopback_dev;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (list) {
		more = alloc_skb(0, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, more);
		add_pages(test, more, z);
		skb_shinfo(skb)->frag_list = more;
		skb->len += more->len;
		skb->data_len += more->len;
		skb->truesize += more->truesize;
	} else {
		add_pages(test, skb, z);
	}
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = SEGMENT;
	skb_shinfo(skb)->gso_segs = SEGMENTS;
	nhca_flow_charge(e->flow, skb, SEGMENTS);
	nhca_zcopy_put(z);
	return skb;
}

/* Expect that skb_orphan() ends the charge of the flow, but does not release the reference. */
static void orphan(struct kunit *test, bool list)
{
	struct end *e = end_make(test);
	struct sk_buff *skb = batch(test, e, list);

	KUNIT_EXPECT_EQ(test, nhca_flow_inflight(e->flow), SEGMENTS);
	skb_orphan(skb);
	KUNIT_EXPECT_EQ(test, nhca_flow_inflight(e->flow), 0);
	KUNIT_EXPECT_FALSE(test, released(e));
	kfree_skb(skb);
	KUNIT_EXPECT_TRUE(test, released(e));
	KUNIT_EXPECT_EQ(test, e->kicked, 1);
	end_free(e);
}

/* An skb that was orphaned keeps the reference until it is freed. */
static void orphan_test(struct kunit *test)
{
	orphan(test, false);
	orphan(test, true);
}

/*
 * Expect that a clone keeps the reference after the original is freed, even if the clone gets a new
 * head.
 */
static void clone(struct kunit *test, bool list)
{
	struct end *e = end_make(test);
	struct sk_buff *skb = batch(test, e, list), *copy;

	copy = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	kfree_skb(skb);
	KUNIT_EXPECT_FALSE(test, released(e));
	KUNIT_EXPECT_EQ(test, pskb_expand_head(copy, 256, 0, GFP_KERNEL), 0);
	KUNIT_EXPECT_FALSE(test, released(e));
	kfree_skb(copy);
	KUNIT_EXPECT_TRUE(test, released(e));
	end_free(e);
}

/* A clone keeps the reference until the clone is freed. */
static void clone_test(struct kunit *test)
{
	clone(test, false);
	clone(test, true);
}

/* Expect that the segments of a batch keep the reference until the last segment is freed. */
static void segment(struct kunit *test, bool list)
{
	struct end *e = end_make(test);
	struct sk_buff *skb = batch(test, e, list), *segs, *next;
	u32 n = 0;

	local_bh_disable();
	segs = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM);
	local_bh_enable();
	kfree_skb(skb);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	skb_list_walk_safe(segs, segs, next) {
		KUNIT_EXPECT_FALSE(test, released(e));
		skb_mark_not_on_list(segs);
		kfree_skb(segs);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, SEGMENTS);
	KUNIT_EXPECT_TRUE(test, released(e));
	end_free(e);
}

/* If the stack segments a batch, the reference lasts until the last segment is freed. */
static void segment_test(struct kunit *test)
{
	segment(test, false);
	segment(test, true);
}

/*
 * For a receiver on this host, skb_orphan_frags_rx() copies the pages of the first skb and so
 * releases the reference. It does not copy the pages in a frag_list, which keep the reference.
 */
static void receive_test(struct kunit *test)
{
	struct end *e = end_make(test);
	struct sk_buff *skb = batch(test, e, false);

	KUNIT_EXPECT_EQ(test, skb_orphan_frags(skb, GFP_KERNEL), 0);
	KUNIT_EXPECT_FALSE(test, released(e));
	KUNIT_EXPECT_EQ(test, skb_orphan_frags_rx(skb, GFP_KERNEL), 0);
	KUNIT_EXPECT_TRUE(test, released(e));
	/* the flow is still charged, although the skb has lost its ubuf_info */
	KUNIT_EXPECT_EQ(test, nhca_flow_inflight(e->flow), SEGMENTS);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, nhca_flow_inflight(e->flow), 0);

	skb = batch(test, e, true);
	KUNIT_EXPECT_EQ(test, skb_orphan_frags_rx(skb, GFP_KERNEL), 0);
	KUNIT_EXPECT_FALSE(test, released(e));
	kfree_skb(skb);
	KUNIT_EXPECT_TRUE(test, released(e));
	end_free(e);
}

/*
 * References may be released in any order. A send completes only if its own reference and all
 * earlier references were released.
 */
static void order_test(struct kunit *test)
{
	struct end *e = end_make(test);
	struct nhca_zcopy *z[3];
	u32 seq[3], i;

	for (i = 0; i < 3; i++) {
		z[i] = begin(test, e);
		seq[i] = nhca_zcopy_seq(e->flow);
	}
	nhca_zcopy_put(z[1]);
	/* no kick, because nhca_zcopy_released() has not returned false yet */
	KUNIT_EXPECT_EQ(test, e->kicked, 0);
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(e->flow, seq[0]));
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(e->flow, seq[1]));
	nhca_zcopy_put(z[0]);
	KUNIT_EXPECT_EQ(test, e->kicked, 1);
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_released(e->flow, seq[1]));
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(e->flow, seq[2]));
	nhca_zcopy_put(z[2]);
	KUNIT_EXPECT_EQ(test, e->kicked, 2);
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_released(e->flow, seq[2]));
	end_free(e);
}

/**
 * struct waiter - a thread that deregisters a region
 * @end:    the device of the region
 * @region: the references for which the thread waits
 * @owner:  the process that owns the memory; NULL: a kernel consumer owns the memory
 * @begun:  the thread runs
 * @back:   0: the thread waits; 1: all references were released; 2: the time limit has passed
 */
struct waiter {
	struct end *end;
	struct nhca_pageref_region *region;
	struct nhca_pageref_owner *owner;
	bool begun;
	int back;
};

static int wait_thread(void *arg)
{
	struct waiter *w = arg;

	/* pairs with the load acquire in waits() */
	smp_store_release(&w->begun, true);
	WRITE_ONCE(w->back, nhca_pageref_wait(w->region, w->end->dev, w->owner) ? 1 : 2);
	return 0;
}

/*
 * Return: true if the wait of the thread has ended. @sleeps: maximum number of sleeps. The limit is
 * not a time, because the host may pause for seconds, but in each sleep the thread can run.
 */
static bool comes_back(struct waiter *w, int sleeps)
{
	while (!READ_ONCE(w->back) && sleeps--)
		msleep(20);
	return READ_ONCE(w->back);
}

/* Return: true if the thread @t has begun and sleeps, so that it waits for the references. */
static bool waits(struct waiter *w, struct task_struct *t)
{
	int i;

	for (i = 0; i < 1000; i++) {
		/* pairs with the store release in wait_thread() */
		if (smp_load_acquire(&w->begun) && READ_ONCE(t->__state) == TASK_UNINTERRUPTIBLE)
			return true;
		msleep(20);
	}
	return false;
}

/*
 * A deregistration waits only for references to its own region, although the flow has another
 * reference, to another region, that stays for long. A reference may cover several regions.
 */
static void region_test(struct kunit *test)
{
	struct nhca_pageref_region *stuck = NULL, *mine = NULL, *idle = NULL;
	struct end *e = end_make(test);
	struct nhca_zcopy *old = begin_of(test, e, &stuck), *z = begin_of(test, e, &mine);
	struct waiter ws = { e }, wm = { e };
	struct task_struct *ts, *tm;

	KUNIT_EXPECT_TRUE(test, nhca_pageref_add(&z->pages, &stuck));
	KUNIT_EXPECT_TRUE(test, nhca_pageref_add(&z->pages, &mine));
	KUNIT_EXPECT_EQ(test, atomic_read(&mine->count), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&stuck->count), 3);
	/* no reference covers the region idle, so there is nothing to wait for */
	KUNIT_EXPECT_TRUE(test, nhca_pageref_wait(idle, e->dev, NULL));

	ws.region = stuck;
	wm.region = mine;
	ts = test_thread_start(wait_thread, &ws, 0);
	tm = test_thread_start(wait_thread, &wm, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ts) || IS_ERR(tm));
	KUNIT_EXPECT_TRUE(test, waits(&ws, ts));
	KUNIT_EXPECT_TRUE(test, waits(&wm, tm));
	KUNIT_EXPECT_FALSE(test, comes_back(&wm, 10));
	nhca_zcopy_put(z);
	KUNIT_EXPECT_TRUE(test, comes_back(&wm, 1000));
	KUNIT_EXPECT_EQ(test, wm.back, 1);
	/* the wait of a kernel consumer has no time limit */
	KUNIT_EXPECT_FALSE(test, comes_back(&ws, 125));
	nhca_zcopy_put(old);
	KUNIT_EXPECT_TRUE(test, comes_back(&ws, 1000));
	KUNIT_EXPECT_EQ(test, ws.back, 1);
	test_thread_stop(ts);
	test_thread_stop(tm);
	end_free(e);
}

/*
 * A reference covers at most NHCA_PAGEREF_REGIONS regions, so pages of another region are refused.
 */
static void many_regions_test(struct kunit *test)
{
	struct nhca_pageref_region *region[NHCA_PAGEREF_REGIONS + 1] = {};
	struct end *e = end_make(test);
	struct nhca_zcopy *z = begin(test, e);
	u32 i;

	for (i = 0; i < NHCA_PAGEREF_REGIONS; i++)
		KUNIT_EXPECT_TRUE(test, nhca_pageref_add(&z->pages, &region[i]));
	KUNIT_EXPECT_FALSE(test, nhca_pageref_add(&z->pages, &region[i]));
	KUNIT_EXPECT_TRUE(test, nhca_pageref_add(&z->pages, &region[0]));
	nhca_zcopy_put(z);
	for (i = 0; i <= NHCA_PAGEREF_REGIONS; i++)
		KUNIT_EXPECT_TRUE(test, nhca_pageref_wait(region[i], e->dev, NULL));
	end_free(e);
}

/* Return: a process whose address space has @users users; 0: the process has exited. */
static struct nhca_pageref_owner owner_with(struct mm_struct *mm, int users)
{
	atomic_set(&mm->mm_users, users);
	return (struct nhca_pageref_owner) { .mm = mm };
}

/*
 * A kernel thread that removes a device waits for the packets of a live process, because the
 * process may write to its buffers after the wait. If the process exits meanwhile, the wait ends.
 */
static void live_process_test(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct nhca_pageref_region *first = NULL, *second = NULL;
	struct end *e = end_make(test);
	struct nhca_zcopy *z = begin_of(test, e, &first);
	struct nhca_pageref_owner owner;
	struct waiter wait = { e, first, &owner }, dead = { e, NULL, &owner };
	struct task_struct *tw, *td;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	owner = owner_with(mm, 1);
	tw = test_thread_start(wait_thread, &wait, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(tw));
	KUNIT_EXPECT_FALSE(test, comes_back(&wait, 20));
	nhca_zcopy_put(z);
	KUNIT_EXPECT_TRUE(test, comes_back(&wait, 1000));
	KUNIT_EXPECT_EQ(test, wait.back, 1);
	test_thread_stop(tw);

	z = begin_of(test, e, &second);
	dead.region = second;
	td = test_thread_start(wait_thread, &dead, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(td));
	KUNIT_EXPECT_FALSE(test, comes_back(&dead, 10));
	atomic_set(&mm->mm_users, 0);
	KUNIT_EXPECT_TRUE(test, comes_back(&dead, 1000));
	KUNIT_EXPECT_EQ(test, dead.back, 2);
	test_thread_stop(td);
	nhca_zcopy_put(z);
	end_free(e);
}

/*
 * The removal of a device waits for the packets of live processes, but at most NHCA_PAGEREF_REMOVAL
 * in all, whatever the number of processes and regions.
 */
static void removal_test(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct nhca_pageref_region *region[20] = {};
	struct end *e = end_make(test);
	struct nhca_zcopy *z = begin(test, e);
	struct nhca_pageref_owner owner;
	struct nhca_zcopy *zs[20];
	unsigned long begun;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	for (i = 0; i < ARRAY_SIZE(zs); i++)
		zs[i] = begin_of(test, e, &region[i]);
	begun = jiffies;
	for (i = 0; i < ARRAY_SIZE(zs); i++) {
		owner = owner_with(mm, 1);
		KUNIT_EXPECT_FALSE(test, nhca_pageref_wait(region[i], e->dev, &owner));
		KUNIT_EXPECT_FALSE(test, nhca_zcopy_wait_flow(e->flow, e->dev, &owner));
	}
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begun + NHCA_PAGEREF_REMOVAL / 2));
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, begun + 2 * NHCA_PAGEREF_REMOVAL));
	for (i = 0; i < ARRAY_SIZE(zs); i++)
		nhca_zcopy_put(zs[i]);
	nhca_zcopy_put(z);
	end_free(e);
}

/*
 * After the exit of a process, a kernel thread cleans up, and waits about one second in all,
 * whatever the number of objects.
 */
static void exited_process_test(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct nhca_pageref_region *region = NULL;
	struct end *e = end_make(test);
	struct nhca_zcopy *z = begin_of(test, e, &region);
	struct nhca_pageref_owner owner;
	unsigned long begun = jiffies, end;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	owner = owner_with(mm, 0);
	KUNIT_EXPECT_FALSE(test, nhca_pageref_wait(region, e->dev, &owner));
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begun + HZ / 2));
	/* the deadline has passed, and later calls do not set it again, so they do not wait */
	end = owner.deadline;
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, end));
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_FALSE(test, nhca_zcopy_wait_flow(e->flow, e->dev, &owner));
	KUNIT_EXPECT_EQ(test, owner.deadline, end);
	/* the cleanup of another process has a deadline of its own */
	begun = jiffies;
	owner = owner_with(mm, 0);
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_wait_flow(e->flow, e->dev, &owner));
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begun + HZ / 2));
	nhca_zcopy_put(z);
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_wait_flow(e->flow, e->dev, NULL));
	end_free(e);
}

/* A process has one record, so that all waits after its exit have one deadline. */
static void one_owner_test(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct nhca_pageref_owner *a, *b;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	/* mm_count must not become 0, because then mmdrop() would free @mm */
	atomic_set(&mm->mm_count, 10);
	a = nhca_pageref_owner_get(mm);
	b = nhca_pageref_owner_get(mm);
	KUNIT_EXPECT_NOT_NULL(test, a);
	KUNIT_EXPECT_PTR_EQ(test, a, b);
	nhca_pageref_owner_put(a);
	nhca_pageref_owner_put(b);
	KUNIT_EXPECT_EQ(test, atomic_read(&mm->mm_count), 10);
}

static struct kunit_case zcopy_cases[] = {
	KUNIT_CASE(orphan_test),
	KUNIT_CASE(clone_test),
	KUNIT_CASE(segment_test),
	KUNIT_CASE(receive_test),
	KUNIT_CASE(order_test),
	KUNIT_CASE(region_test),
	KUNIT_CASE(many_regions_test),
	KUNIT_CASE(live_process_test),
	KUNIT_CASE(removal_test),
	KUNIT_CASE(exited_process_test),
	KUNIT_CASE(one_owner_test),
	{}
};

static struct kunit_suite zcopy_suite = {
	.name = "nhca_zcopy",
	.test_cases = zcopy_cases,
};

kunit_test_suite(zcopy_suite);
