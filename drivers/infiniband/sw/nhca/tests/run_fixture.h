/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about runs of packets without an ICRC: a route whose netdev has the features that a
 * test needs, and memory to send and to receive. nhca_send() is replaced by a function that stores
 * the batches.
 */
#ifndef NHCA_TEST_RUN_FIXTURE_H
#define NHCA_TEST_RUN_FIXTURE_H

#include <kunit/static_stub.h>
#include <linux/ip.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst_metadata.h>

#include "../net/burst.h"
#include "../net/net.h"
#include "../net/xmit.h"
#include "regions.h"

#define RUN_PAGES	20
#define OUTER		(sizeof(struct iphdr) + sizeof(struct udphdr))
#define FIRST_PSN	(NHCA_PSN_MASK - 2)	/* PSNs wrap within a run */
#define MIDDLE		NHCA_OP_WRITE_MIDDLE
#define NO_LISTS	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_GSO_UDP_L4)
#define LISTS		(NO_LISTS | NETIF_F_FRAGLIST)

/* A region and its pages. */
struct memory {
	struct nhca_mr *mr;
	struct page *pages[RUN_PAGES];
};

/**
 * struct run - objects of each test
 * @ndev: the netdev
 * @md: the route, in the route cache of @av
 * @av: address vector of the peer
 * @who: identity of the sender
 * @txq: packet count of @ndev
 * @flow: flow of the sender
 * @from: memory with the payload to send
 * @to: memory to receive in
 * @sent: batches that nhca_send() got
 * @packets: sum of the packets that nhca_send() got
 * @payload: sum of the payload bytes that nhca_send() got
 * @zcopied: sum of the payload bytes in page references that nhca_send() got
 * @b: the batch
 * @hdr: headers of the packet that is added next
 * @tx: the packet that is added next
 * @it: payload of @tx
 * @sge: SGE of @it
 */
struct run {
	struct net_device *ndev;
	struct metadata_dst *md;
	struct nhca_av av;
	struct nhca_who who;
	struct nhca_txq *txq;
	struct nhca_flow *flow;
	struct memory from, to;
	struct sk_buff_head sent;
	u32 packets, payload, zcopied;
	struct nhca_burst b;
	struct nhca_hdr hdr;
	struct nhca_tx tx;
	struct nhca_iter it;
	struct nhca_sge sge;
};

static struct run *run;

/* Replaces nhca_send(): stores the batch in run->sent. */
static void keep(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
		 struct nhca_flow *flow, struct sk_buff *skb, u32 packets, u32 payload, u32 zcopied)
{
	__skb_queue_tail(&run->sent, skb);
	run->packets += packets;
	run->payload += payload;
	run->zcopied += zcopied;
}

static inline u8 *byte(const struct memory *m, u32 off)
{
	return (u8 *)page_address(m->pages[off / PAGE_SIZE]) + off % PAGE_SIZE;
}

static inline u8 source_byte(u32 off)
{
	return off * 7 + off / 256 + 1;
}

static inline void memory_make(struct kunit *test, struct memory *m)
{
	struct fixture *f = test->priv;
	u32 i;

	for (i = 0; i < RUN_PAGES; i++) {
		m->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, m->pages[i]);
	}
	m->mr = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(m->mr, m->pages, RUN_PAGES, 0, true), 0);
	nhca_mr_start(m->mr, 0, RUN_PAGES * PAGE_SIZE);
}

static inline void memory_free(struct kunit *test, struct memory *m)
{
	u32 i;

	nhca_mr_free(m->mr);
	for (i = 0; i < RUN_PAGES; i++) {
		/* the count would be higher if a packet still referred to the page */
		KUNIT_EXPECT_EQ(test, page_count(m->pages[i]), 1);
		__free_page(m->pages[i]);
	}
}

static inline int run_init(struct kunit *test)
{
	int err = fixture_init(test);
	struct fixture *f = test->priv;
	u32 i;

	if (err)
		return err;
	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	run->ndev = kunit_kzalloc(test, sizeof(*run->ndev), GFP_KERNEL);
	run->md = metadata_dst_alloc(0, METADATA_IP_TUNNEL, GFP_KERNEL);
	run->txq = nhca_txq_create();
	KUNIT_ASSERT_TRUE(test, run->ndev && run->md && run->txq);
	run->flow = nhca_flow_create(run->txq, NULL, NULL);
	KUNIT_ASSERT_NOT_NULL(test, run->flow);
	run->ndev->hard_header_len = ETH_HLEN;
	set_bit(__LINK_STATE_START, &run->ndev->state);
	run->md->dst.dev = run->ndev;
	f->dev->netdev = run->ndev;
	/* nn is only passed on, never dereferenced, because the route comes from the cache */
	f->dev->nn = (struct nhca_net *)f->dev;
	run->av.v4 = true;
	ipv6_addr_set_v4mapped(htonl(0x0a000001), &run->av.saddr);
	ipv6_addr_set_v4mapped(htonl(0x0a000002), &run->av.daddr);
	KUNIT_ASSERT_EQ(test, dst_cache_init(&run->av.cache, GFP_KERNEL), 0);
	run->av.cache.reset_ts = jiffies - HZ;
	__skb_queue_head_init(&run->sent);
	memory_make(test, &run->from);
	memory_make(test, &run->to);
	for (i = 0; i < RUN_PAGES * PAGE_SIZE; i++)
		*byte(&run->from, i) = source_byte(i);
	kunit_activate_static_stub(test, nhca_send, keep);
	return 0;
}

static inline void run_exit(struct kunit *test)
{
	/*
	 * free the packets that a failed test has left, because nhca_mr_free() waits for references
	 * to pages
	 */
	__skb_queue_purge(&run->sent);
	kfree_skb(run->b.skb);
	nhca_zcopy_put(run->b.zcopy);
	dst_cache_destroy(&run->av.cache);
	/*
	 * clear the netdev before the release, because the route holds no reference to the netdev
	 */
	run->md->dst.dev = NULL;
	dst_release(&run->md->dst);
	memory_free(test, &run->from);
	memory_free(test, &run->to);
	nhca_flow_close(run->flow);
	nhca_txq_put(run->txq);
	fixture_exit(test);
}

/**
 * struct kind - the packets of a run
 * @opcode:  opcode of all packets
 * @payload: bytes of payload in each packet
 * @off:     offset of the first payload in the source
 * @copy:    the payload is copied
 */
struct kind {
	u8 opcode;
	u32 payload;
	u32 off;
	bool copy;
};

static inline u32 packet_bytes(const struct kind *k)
{
	return nhca_opinfo(k->opcode)->hdr_len + k->payload + NHCA_ICRC_LEN;
}

/* Return: the headers of packet @n. */
static inline struct nhca_hdr header(const struct kind *k, u32 n)
{
	return (struct nhca_hdr) {
		.opcode = k->opcode,
		.info = nhca_opinfo(k->opcode),
		.migreq = true,
		.pkey = 0xffff,
		.qpn = 0x1234,
		.psn = (FIRST_PSN + n) & NHCA_PSN_MASK,
		.caps = NHCA_CAP_PRESENT | NHCA_CAP_NO_ICRC,
		.mark = cpu_to_le32(0x81828384),
		.rx = {
			.key = 0x11121314,
			.job = 7,
			.rcxt = { 5, 0x21222324 },
			.tid = 9,
			.total = 64 * k->payload,
			.offset = n * k->payload,
			.length = k->payload,
			.segment = k->payload,
			.pvo = 0xfffffff0ULL + n * k->payload,
			.cookie = 0x0123456789abcdefULL,
		},
	};
}

/* Set run->tx to packet @n. @bytes: length of the SGE, which begins at the payload of packet @n. */
static inline void packet(struct kunit *test, const struct kind *k, u32 n, u32 bytes)
{
	struct dst_entry *cached = dst_cache_get(&run->av.cache);
	struct fixture *f = test->priv;
	u32 at = k->off + n * k->payload;

	run->hdr = header(k, n);
	run->sge = (struct nhca_sge) {
		.addr = at,
		.length = min_t(u32, bytes, RUN_PAGES * PAGE_SIZE - at),
		.lkey = run->from.mr->ibmr.lkey,
	};
	nhca_iter_sges(&run->it, &f->key_user, &run->sge, 1, 0, run->sge.length, 0);
	run->tx = (struct nhca_tx) {
		.dev = f->dev,
		.who = &run->who,
		.av = &run->av,
		.flow = run->flow,
		.sport = 0xc123,
		.hdr = &run->hdr,
		.it = &run->it,
		.payload = k->payload,
		.copy = k->copy,
		.sum = true,
		.burst = &run->b,
	};
	/*
	 * each CPU has its own cache; BHs are disabled until the packet is added, so the CPU stays
	 * the same
	 */
	if (cached)
		dst_release(cached);
	else
		dst_cache_set_ip4(&run->av.cache, &run->md->dst, run->av.saddr.s6_addr32[3]);
}

/* Add up to @count packets from packet @n on. Return: number of packets added. */
static inline u32 add_run(struct kunit *test, const struct kind *k, u32 n, u32 count)
{
	u32 added;

	local_bh_disable();
	packet(test, k, n, U32_MAX);
	added = nhca_burst_run(&run->tx, count);
	local_bh_enable();
	return added;
}

/* Add packet @n alone, as the first or last packet of a message. */
static inline int add_one(struct kunit *test, const struct kind *k, u32 n)
{
	int err;

	local_bh_disable();
	packet(test, k, n, U32_MAX);
	err = nhca_burst_add(&run->tx);
	local_bh_enable();
	return err;
}

static inline struct sk_buff *flush(struct kunit *test)
{
	local_bh_disable();
	nhca_burst_flush(&run->b);
	local_bh_enable();
	KUNIT_EXPECT_NULL(test, run->b.skb);
	KUNIT_EXPECT_NULL(test, run->b.zcopy);
	return __skb_dequeue(&run->sent);
}

/* Expect that the bytes of @skb at @at are packet @n. */
static inline void expect_packet(struct kunit *test, const struct sk_buff *skb, u32 at,
				 const struct kind *k, u32 n)
{
	struct nhca_hdr h = header(k, n);
	u32 bytes = packet_bytes(k), len, i, wrong = 0;
	u8 *got = kunit_kmalloc(test, bytes, GFP_KERNEL);
	u8 want[NHCA_HDRS_MAX];

	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, skb_copy_bits(skb, at, got, bytes), 0);
	len = nhca_hdr_encode(&h, want);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(got, want, len), 0, "header of packet %u", n);
	for (i = 0; i < k->payload; i++)
		wrong += got[len + i] != source_byte(k->off + n * k->payload + i);
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "payload of packet %u", n);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(got + len + k->payload, &h.mark, NHCA_ICRC_LEN), 0,
			    "mark of packet %u", n);
	kunit_kfree(test, got);
}

#endif /* NHCA_TEST_RUN_FIXTURE_H */
