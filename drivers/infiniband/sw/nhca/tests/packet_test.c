// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a packet of any length that IP allows has the bytes that it was built of, and each
 * fragment lies inside the memory of its page. A longer packet is refused. The tests that use
 * with_and_without() run with and without high-order pages (net.core.high_order_alloc_disable).
 */
#include <kunit/static_stub.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/ip6_fib.h>
#include <net/route.h>
#include <net/sock.h>

#include "../net/burst.h"
#include "../net/frags.h"
#include "../net/net.h"
#include "../net/xmit.h"
#include "regions.h"

#define IOVA	0x7f0000000000ULL
#define REGION	(17 * PAGE_SIZE)
/* payload of a packet of 65535 bytes with IPv6, UDP and BTH headers, and an ICRC */
#define LONGEST	(NHCA_PACKET_BYTES - NHCA_BTH_LEN - NHCA_ICRC_LEN)

/* among others, lengths around NHCA_COPY_BREAK, NHCA_BURST_PAYLOAD, and 1, 2, 8 and 15 pages */
static const u32 lengths[] = {
	0, 1, 3, 255, 256, 257, 1023, 4064, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1,
	2 * PAGE_SIZE - 1, 2 * PAGE_SIZE, 2 * PAGE_SIZE + 1,
	NHCA_BURST_PAYLOAD - 1, NHCA_BURST_PAYLOAD, NHCA_BURST_PAYLOAD + 1,
	32767, 32768, 32769, 61439, 61440, 61441, LONGEST - 3, LONGEST & ~3U,
};

/* Run @fn with high-order pages and, if the driver is built in, also without them. */
static void with_and_without(struct kunit *test, void (*fn)(struct kunit *test))
{
	fn(test);
#ifndef MODULE
	static_branch_enable(&net_high_order_alloc_disable_key);
	fn(test);
	static_branch_disable(&net_high_order_alloc_disable_key);
#endif
}

/**
 * struct source - memory that payloads come from
 * @mr:    region with the bytes
 * @pages: pages of the region
 * @bytes: the same bytes in kernel memory
 * @txq:   packet count of a device
 * @flow:  a flow of @txq
 */
struct source {
	struct nhca_mr *mr;
	struct page *pages[REGION / PAGE_SIZE];
	u8 *bytes;
	struct nhca_txq *txq;
	struct nhca_flow *flow;
};

static void source_make(struct kunit *test, struct source *s)
{
	struct fixture *f = test->priv;
	u32 npages = REGION / PAGE_SIZE, i;

	s->bytes = kunit_kmalloc(test, REGION, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->bytes);
	for (i = 0; i < REGION; i++)
		s->bytes[i] = i * 7 + i / 256;
	s->txq = nhca_txq_create();
	KUNIT_ASSERT_NOT_NULL(test, s->txq);
	s->flow = nhca_flow_create(s->txq, NULL, NULL);
	KUNIT_ASSERT_NOT_NULL(test, s->flow);
	s->mr = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->mr));
	for (i = 0; i < npages; i++) {
		s->pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, s->pages[i]);
		memcpy(page_address(s->pages[i]), s->bytes + i * PAGE_SIZE, PAGE_SIZE);
	}
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(s->mr, s->pages, npages, 0, true), 0);
	nhca_mr_start(s->mr, IOVA, REGION);
}

static void source_free(struct source *s)
{
	u32 i;

	/* nhca_mr_free() waits forever if a packet still refers to the pages */
	nhca_mr_free(s->mr);
	nhca_flow_close(s->flow);
	nhca_txq_put(s->txq);
	for (i = 0; i < ARRAY_SIZE(s->pages); i++)
		put_page(s->pages[i]);
}

/* Return: number of fragments that extend beyond the memory of their page. */
static u32 outside(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 i, n = 0, start;
	const skb_frag_t *frag;
	struct page *head;

	for (i = 0; i < info->nr_frags; i++) {
		frag = &info->frags[i];
		head = compound_head(skb_frag_page(frag));
		start = (skb_frag_page(frag) - head) * PAGE_SIZE + skb_frag_off(frag);
		n += start + skb_frag_size(frag) > page_size(head);
	}
	return n;
}

/**
 * struct want - how a packet is built
 * @region: the payload is in the region, and not in kernel memory
 * @copy:   the payload is copied
 * @off:    offset of the payload in the source, in bytes
 */
struct want {
	bool region;
	bool copy;
	u32 off;
};

static const struct want wants[] = {
	{ false, true, 0 }, { false, false, 100 }, { true, true, 1 }, { true, false, 0 },
	{ true, false, 4095 }, { true, false, 100 },
};

static void source_iter(struct kunit *test, const struct source *s, const struct want *w, u32 len,
			struct nhca_iter *it)
{
	struct fixture *f = test->priv;

	if (!w->region)
		nhca_iter_bytes(it, s->bytes + w->off);
	else
		KUNIT_ASSERT_EQ(test, nhca_iter_key(it, &f->key_user, s->mr->ibmr.rkey,
						    IOVA + w->off, len, IB_ACCESS_REMOTE_READ), 0);
}

static void packet_make(struct nhca_tx *tx, struct nhca_hdr *h, struct nhca_iter *it,
			const struct source *s, const struct want *w, u32 len)
{
	*h = (struct nhca_hdr) {
		.opcode = NHCA_OP_SEND_ONLY,
		.info = nhca_opinfo(NHCA_OP_SEND_ONLY),
		.pad = -len & 3,
		.caps = NHCA_CAP_NO_ICRC,
	};
	*tx = (struct nhca_tx) {
		.hdr = h,
		.it = it,
		.payload = len,
		.copy = w->copy,
		.flow = s ? s->flow : NULL,
	};
}

/* Return: true if @len bytes of @skb from offset @at are equal to the bytes of the source. */
static bool same(struct kunit *test, const struct sk_buff *skb, u32 at, const struct source *s,
		 const struct want *w, u32 len)
{
	u8 *got = kunit_kmalloc(test, REGION, GFP_KERNEL);
	bool is;

	KUNIT_ASSERT_NOT_NULL(test, got);
	is = !skb_copy_bits(skb, at, got, len) && !memcmp(got, s->bytes + w->off, len);
	kunit_kfree(test, got);
	return is;
}

static void alone(struct kunit *test, const struct source *s, const struct want *w, u32 len,
		  enum nhca_build_how how)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct nhca_sums sums = {};
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;
	struct nhca_zcopy *z = NULL;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	packet_make(&tx, &h, &it, s, w, len);
	enter();
	source_iter(test, s, w, len, &it);
	KUNIT_EXPECT_EQ_MSG(test, nhca_build(skb, &tx, &sums, how, &z), 0, "%u bytes", len);
	leave();
	KUNIT_EXPECT_EQ(test, skb->len, nhca_tx_bytes(&tx));
	KUNIT_EXPECT_EQ_MSG(test, outside(skb), 0, "%u bytes", len);
	KUNIT_EXPECT_TRUE_MSG(test, same(test, skb, NHCA_BTH_LEN, s, w, len), "%u bytes", len);
	/*
	 * A zero-copy reference covers payload in consumer pages. A payload of more than
	 * NHCA_BURST_PAYLOAD bytes may need more than NHCA_PIECES_ALONE fragments. Then it is
	 * copied and has no reference, so for such lengths both results are right.
	 */
	if (!w->region || w->copy || !len)
		KUNIT_EXPECT_NULL(test, z);
	else if (len <= NHCA_BURST_PAYLOAD)
		KUNIT_EXPECT_NOT_NULL(test, z);
	/* with NHCA_BUILD_LIST, the skb in the frag_list has the consumer pages */
	KUNIT_EXPECT_EQ(test, !!skb_zcopy(skb), z && how == NHCA_BUILD_FRAGS);
	KUNIT_EXPECT_EQ(test, !!skb_zcopy(skb_shinfo(skb)->frag_list), z && how == NHCA_BUILD_LIST);
	kfree_skb(skb);
	nhca_zcopy_put(z);
}

static void each_alone(struct kunit *test)
{
	enum nhca_build_how how;
	struct source s;
	u32 i, k;

	source_make(test, &s);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (k = 0; k < ARRAY_SIZE(wants); k++)
			for (how = NHCA_BUILD_FRAGS; how <= NHCA_BUILD_LIST; how++)
				alone(test, &s, &wants[k], lengths[i], how);
	source_free(&s);
}

/* A packet sent alone has the right bytes, at every length and from every kind of source. */
static void alone_test(struct kunit *test)
{
	with_and_without(test, each_alone);
}

/* Add three packets with @len bytes of payload to a batch, or as many as fit. */
static void batch(struct kunit *test, const struct source *s, const struct want *w, u32 len)
{
	struct nhca_burst b = {};
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;
	u32 n, bytes;
	int err = 0;

	b.skb = alloc_skb(256, GFP_KERNEL);
	b.last = b.skb;
	KUNIT_ASSERT_NOT_NULL(test, b.skb);
	packet_make(&tx, &h, &it, s, w, len);
	tx.burst = &b;
	bytes = nhca_tx_bytes(&tx);
	for (n = 0; n < 3 && !err; n++) {
		enter();
		source_iter(test, s, w, len, &it);
		err = nhca_pieces_add(&b, &tx, &it);
		leave();
		if (!err)
			b.packets++;
	}
	/* the first packet always fits; if a packet does not fit, the batch stays as it was */
	KUNIT_EXPECT_GT(test, b.packets, 0);
	KUNIT_EXPECT_TRUE(test, !err || err == -ENOSPC);
	KUNIT_EXPECT_EQ(test, b.skb->len, b.packets * bytes);
	KUNIT_EXPECT_EQ_MSG(test, outside(b.skb), 0, "%u bytes", len);
	for (n = 0; n < b.packets; n++)
		KUNIT_EXPECT_TRUE_MSG(test, same(test, b.skb, n * bytes + NHCA_BTH_LEN, s, w, len),
				      "%u bytes", len);
	kfree_skb(b.skb);
	nhca_zcopy_put(b.zcopy);
}

static void each_batch(struct kunit *test)
{
	struct source s;
	u32 i, k;

	source_make(test, &s);
	for (i = 0; i < ARRAY_SIZE(lengths) && lengths[i] <= NHCA_BURST_PAYLOAD; i++)
		for (k = 0; k < ARRAY_SIZE(wants); k++)
			batch(test, &s, &wants[k], lengths[i]);
	source_free(&s);
}

/*
 * Each packet of a batch has the right bytes, at every length up to NHCA_BURST_PAYLOAD and from
 * every kind of source.
 */
static void batch_test(struct kunit *test)
{
	with_and_without(test, each_batch);
}

/**
 * struct way - what the stub of nhca_send() has received
 * @held:    the skbs
 * @payload: bytes of payload in the skbs
 * @zcopied: bytes of @payload that are in consumer pages
 */
struct way {
	struct sk_buff_head held;
	u32 payload;
	u32 zcopied;
};

static struct way way;

static void way_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
		     struct nhca_flow *flow, struct sk_buff *skb, u32 packets, u32 payload,
		     u32 zcopied)
{
	__skb_queue_tail(&way.held, skb);
	way.payload += payload;
	way.zcopied += zcopied;
}

/*
 * Make a batch of @n packets, and mark it as ended. For the next packet nhca_burst_run() then sends
 * the batch, and cannot begin another one, because the netdev is down.
 * Return: number of the newest zero-copy reference.
 */
static u32 send_batch(struct kunit *test, const struct source *s, struct nhca_burst *b, u32 n)
{
	static const struct want w = { .region = true };
	struct fixture *f = test->priv;
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;
	u32 i;

	packet_make(&tx, &h, &it, s, &w, 1024);
	tx.dev = f->dev;
	tx.burst = b;
	b->skb = alloc_skb(256, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b->skb);
	skb_reserve(b->skb, 128);
	nhca_push_headers(b->skb, b->av, 1, n);
	b->last = b->skb;
	b->len = 0;
	b->packets = 0;
	b->payload = 0;
	b->zcopied = 0;
	for (i = 0; i < n; i++) {
		enter();
		source_iter(test, s, &w, tx.payload, &it);
		KUNIT_EXPECT_EQ(test, nhca_pieces_add(b, &tx, &it), 0);
		leave();
		KUNIT_EXPECT_EQ(test, tx.zcopied, tx.payload);
		b->packets++;
		b->payload += tx.payload;
	}
	b->ended = true;
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, nhca_burst_run(&tx, 1), 0);
	local_bh_enable();
	KUNIT_EXPECT_NULL(test, b->skb);
	return nhca_zcopy_seq(s->flow);
}

/*
 * If the netdev supports a frag_list, small batches share one zero-copy reference until the
 * reference covers 16 packets or more. The reference is released when no further batch may share
 * it, and the skbs of all batches that share it are freed.
 */
static void reference(struct kunit *test, bool lists)
{
	struct fixture *f = test->priv;
	struct nhca_av av = { .v4 = true };
	struct nhca_burst b = { .av = &av, .lists = lists };
	u32 many = lists ? 15 : 4;
	struct source s;
	u32 first, second;

	f->dev->netdev = kunit_kzalloc(test, sizeof(*f->dev->netdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->dev->netdev);
	__skb_queue_head_init(&way.held);
	way.payload = 0;
	way.zcopied = 0;
	kunit_activate_static_stub(test, nhca_send, way_send);
	source_make(test, &s);

	first = send_batch(test, &s, &b, 1);
	KUNIT_EXPECT_EQ(test, !!b.zcopy, lists);
	second = send_batch(test, &s, &b, many);
	KUNIT_EXPECT_NULL(test, b.zcopy);
	KUNIT_EXPECT_EQ(test, second, first + !lists);
	KUNIT_EXPECT_EQ(test, way.payload, (1 + many) * 1024);
	KUNIT_EXPECT_EQ(test, way.zcopied, way.payload);
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(s.flow, first));
	kfree_skb(__skb_dequeue(&way.held));
	KUNIT_EXPECT_EQ(test, nhca_zcopy_released(s.flow, first), !lists);
	KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(s.flow, second));
	kfree_skb(__skb_dequeue(&way.held));
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_released(s.flow, second));

	/* after nhca_burst_flush(), which ends a pass, no further batch may share the reference */
	first = send_batch(test, &s, &b, 1);
	kfree_skb(__skb_dequeue(&way.held));
	KUNIT_EXPECT_EQ(test, nhca_zcopy_released(s.flow, first), !lists);
	nhca_burst_flush(&b);
	KUNIT_EXPECT_NULL(test, b.zcopy);
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_released(s.flow, first));

	source_free(&s);
	kunit_deactivate_static_stub(test, nhca_send);
}

/* Small batches share a zero-copy reference exactly if the netdev supports a frag_list. */
static void reference_test(struct kunit *test)
{
	reference(test, true);
	reference(test, false);
}

/* Expect that bytes from nhca_frag_get() lie inside the memory of their page. */
static void each_get(struct kunit *test)
{
	struct page *page, *head;
	u32 i, len, outside = 0;
	unsigned int off;
	u8 *p;

	local_bh_disable();
	for (i = 0; i < 1000; i++) {
		len = lengths[i % ARRAY_SIZE(lengths)];
		if (len > PAGE_SIZE)
			continue;
		p = nhca_frag_get(len, &page, &off);
		if (!p)
			continue;
		head = compound_head(page);
		outside += p + len > (u8 *)page_address(head) + page_size(head);
		put_page(page);
	}
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, outside, 0);
}

/* Fragments lie inside the memory of their page, with high-order pages and without them. */
static void get_test(struct kunit *test)
{
	with_and_without(test, each_get);
}

/*
 * A packet that is too long for IP is refused with -EMSGSIZE. Other errors could be taken for a
 * lost packet, which is retransmitted.
 */
static void too_long_test(struct kunit *test)
{
	static const struct want w = { .copy = true };
	struct nhca_hdr h;
	struct nhca_tx tx;

	packet_make(&tx, &h, NULL, NULL, &w, (LONGEST & ~3U) + 1);
	KUNIT_EXPECT_EQ(test, nhca_xmit(&tx), -EMSGSIZE);
	packet_make(&tx, &h, NULL, NULL, &w, 65532);
	KUNIT_EXPECT_EQ(test, nhca_xmit(&tx), -EMSGSIZE);
}

/*
 * Packets to one host do not take a route of a broadcast, multicast or anycast address. Packets to
 * a group take only a multicast route.
 */
static void route_kind_test(struct kunit *test)
{
	static const u8 kinds[] = {
		RTN_UNICAST, RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST, RTN_MULTICAST,
	};
	struct rtable *rt = kunit_kzalloc(test, sizeof(*rt), GFP_KERNEL);
	struct nhca_av av = { .v4 = true }, group = { .v4 = true, .mcast = true };
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, rt);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		rt->rt_type = kinds[i];
		KUNIT_EXPECT_EQ_MSG(test, nhca_route_fits(&av, &rt->dst), i < 2, "kind %u",
				    kinds[i]);
		KUNIT_EXPECT_EQ_MSG(test, nhca_route_fits(&group, &rt->dst),
				    kinds[i] == RTN_MULTICAST, "kind %u", kinds[i]);
	}
}

#if IS_ENABLED(CONFIG_IPV6)
/* In IPv6, packets to one host do not take a route of a multicast or anycast address. */
static void route_kind6_test(struct kunit *test)
{
	struct rt6_info *rt = kunit_kzalloc(test, sizeof(*rt), GFP_KERNEL);
	struct nhca_av av = { .daddr = { { { 0xfd, [15] = 9 } } } };
	struct nhca_av group = { .daddr = { { { 0xff, 0x0e, [15] = 9 } } }, .mcast = true };

	KUNIT_ASSERT_NOT_NULL(test, rt);
	rt->rt6i_dst.plen = 128;
	KUNIT_EXPECT_TRUE(test, nhca_route_fits(&av, &rt->dst));
	KUNIT_EXPECT_TRUE(test, nhca_route_fits(&group, &rt->dst));
	group.mcast = false;
	KUNIT_EXPECT_FALSE(test, nhca_route_fits(&group, &rt->dst));
	rt->rt6i_flags = RTF_ANYCAST;
	KUNIT_EXPECT_FALSE(test, nhca_route_fits(&av, &rt->dst));
}
#endif

static struct kunit_case packet_cases[] = {
	KUNIT_CASE(get_test),
	KUNIT_CASE(alone_test),
	KUNIT_CASE(batch_test),
	KUNIT_CASE(reference_test),
	KUNIT_CASE(too_long_test),
	KUNIT_CASE(route_kind_test),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(route_kind6_test),
#endif
	{}
};

static struct kunit_suite packet_suite = {
	.name = "nhca_packet",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = packet_cases,
};

kunit_test_suite(packet_suite);
