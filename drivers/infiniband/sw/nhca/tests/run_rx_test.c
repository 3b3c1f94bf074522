// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: nhca_rx_copy_alike() places the packets of a batch that nhca_burst_run() has built, and
 * stops before a packet that differs from the packets before it. Whole pages are copied by a
 * separate loop, so there are rows for pages and rows for smaller packets.
 */
#include "run_fixture.h"

#define PACKETS	12

/**
 * struct place - one call of nhca_rx_copy_alike() for the packets after the first
 * @kind:   the packets of the batch
 * @off:    offset at which the second packet is placed
 * @room:   bytes of the destination from @off on; 0: enough for all packets
 * @max:    maximum number of packets that the caller passes; 0: more than the batch has
 * @packet: index of a packet whose BTH is changed; 0: no packet is changed
 * @byte:   index of the byte of this BTH that is changed
 * @bits:   bits of this byte that are inverted
 * @placed: number of packets after the first that are expected to be placed
 */
struct place {
	struct kind kind;
	u32 off;
	u32 room;
	u32 max;
	u32 packet;
	u32 byte;
	u8 bits;
	u32 placed;
};

#define PAGES_ALIGNED	{ MIDDLE, PAGE_SIZE }
#define PAGES_SHIFTED	{ MIDDLE, PAGE_SIZE, 100 }
#define PAGES_COPIED	{ MIDDLE, PAGE_SIZE, 100, true }
#define SMALL		{ MIDDLE, 1024 }
#define ALL		(PACKETS - 1)
#define ACKREQ		0x80
#define PSN_BYTE	11

static const struct place places[] = {
	{ PAGES_ALIGNED, .placed = ALL },
	{ PAGES_SHIFTED, .placed = ALL },
	{ PAGES_COPIED, .placed = ALL },
	{ SMALL, .placed = ALL },
	{ { MIDDLE, 2 * PAGE_SIZE }, .placed = 6 },
	/* a destination that does not begin at a page */
	{ PAGES_ALIGNED, .off = 8, .placed = ALL },
	{ PAGES_SHIFTED, .off = 100, .placed = ALL },
	{ SMALL, .off = 1, .placed = ALL },
	/* no more packets than the caller allows */
	{ PAGES_ALIGNED, .max = 1, .placed = 1 },
	{ PAGES_ALIGNED, .max = 2, .placed = 2 },
	{ PAGES_ALIGNED, .max = 7, .placed = 7 },
	{ SMALL, .max = 7, .placed = 7 },
	/*
	 * a packet with AckReq is the last packet that is placed, because it must be acknowledged
	 */
	{ PAGES_ALIGNED, .packet = 1, .byte = 8, .bits = ACKREQ, .placed = 1 },
	{ PAGES_ALIGNED, .packet = 2, .byte = 8, .bits = ACKREQ, .placed = 2 },
	{ PAGES_ALIGNED, .packet = 5, .byte = 8, .bits = ACKREQ, .placed = 5 },
	{ PAGES_SHIFTED, .packet = 5, .byte = 8, .bits = ACKREQ, .placed = 5 },
	{ SMALL, .packet = 5, .byte = 8, .bits = ACKREQ, .placed = 5 },
	/* a packet with another PSN, opcode, P_Key, QP or other flags is not placed */
	{ PAGES_ALIGNED, .packet = 1, .byte = PSN_BYTE, .bits = 1, .placed = 0 },
	{ PAGES_ALIGNED, .packet = 2, .byte = PSN_BYTE, .bits = 1, .placed = 1 },
	{ PAGES_ALIGNED, .packet = 6, .byte = PSN_BYTE, .bits = 1, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = PSN_BYTE - 2, .bits = 0x80, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 0, .bits = 1, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 1, .bits = 0x30, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 2, .bits = 1, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 4, .bits = NHCA_CAP_ACKS, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 7, .bits = 1, .placed = 5 },
	{ PAGES_ALIGNED, .packet = 6, .byte = 8, .bits = 1, .placed = 5 },
	{ PAGES_SHIFTED, .packet = 6, .byte = PSN_BYTE, .bits = 1, .placed = 5 },
	{ SMALL, .packet = 6, .byte = PSN_BYTE, .bits = 1, .placed = 5 },
	/* a destination that ends before the data of the batch */
	{ PAGES_ALIGNED, .room = 1, .placed = 0 },
	{ PAGES_ALIGNED, .room = PAGE_SIZE, .placed = 1 },
	{ PAGES_ALIGNED, .room = 4 * PAGE_SIZE, .placed = 4 },
	{ PAGES_ALIGNED, .room = 4 * PAGE_SIZE + 1000, .placed = 4 },
	{ PAGES_ALIGNED, .room = 5 * PAGE_SIZE - 1, .off = 8, .placed = 4 },
	{ PAGES_SHIFTED, .room = 4 * PAGE_SIZE, .placed = 4 },
	{ SMALL, .room = 4 * 1024 + 10, .placed = 4 },
};

/* Return: a batch as a netdev delivers it, with the headers before the UDP payload removed. */
static struct sk_buff *batch(struct kunit *test, const struct kind *k, bool lists)
{
	struct sk_buff *skb;
	u32 n;

	run->ndev->features = lists ? LISTS : NO_LISTS;
	/*
	 * without a frag_list, an skb holds fewer packets, so add_run() may add fewer than PACKETS
	 */
	n = add_run(test, k, 0, PACKETS);
	skb = flush(test);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->len, OUTER + n * packet_bytes(k));
	skb_pull(skb, OUTER);
	KUNIT_EXPECT_NE(test, udp_hdr(skb)->check, 0);
	return skb;
}

/* Return: the BTH of packet @n in the batch, which the caller may change. */
static u8 *bth(const struct sk_buff *skb, const struct kind *k, u32 n)
{
	struct nhca_cursor at;
	u32 len;

	nhca_cursor_init(&at, skb);
	return (u8 *)nhca_cursor_at(&at, n * packet_bytes(k), &len);
}

/* Set @rx to the first packet of the batch, as if the receive path had decoded and accepted it. */
static void first(struct kunit *test, struct nhca_rx *rx, const struct sk_buff *skb,
		  const struct kind *k)
{
	u32 bytes = packet_bytes(k);
	u8 *p = bth(skb, k, 0);

	*rx = (struct nhca_rx) {
		.skb = (struct sk_buff *)skb,
		.udp_len = bytes,
		.payload = k->payload,
		.off = NHCA_BTH_LEN,
		.ip = { .v4 = true, .hdr = skb_network_header(skb) },
	};
	nhca_cursor_init(&rx->at, skb);
	KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&rx->hdr, p, NHCA_BTH_LEN, bytes), NHCA_DECODE_OK);
	rx->alike.set = true;
	rx->alike.udp_len = bytes;
	memcpy(rx->alike.bth, p, sizeof(rx->alike.bth));
	KUNIT_EXPECT_TRUE(test, nhca_rx_intact(rx, true));
}

/*
 * Expect that the payloads of @n packets after the first are in memory from @p->off on, and that
 * bytes before and behind the destination were not written.
 */
static void expect_memory(struct kunit *test, const struct place *p, u32 n)
{
	u32 len = n * p->kind.payload, total = RUN_PAGES * PAGE_SIZE, wrong = 0, i;
	/* the packet that does not fit may be placed in part, up to the end of the destination */
	u32 end = p->off + max(len, p->room);

	for (i = 0; i < p->off; i++)
		wrong += *byte(&run->to, i) != 0;
	for (i = 0; i < len; i++)
		wrong += *byte(&run->to, p->off + i) !=
			 source_byte(p->kind.off + p->kind.payload + i);
	for (i = end; i < total; i++)
		wrong += *byte(&run->to, i) != 0;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void one_place(struct kunit *test, const struct place *p, bool lists)
{
	struct sk_buff *skb = batch(test, &p->kind, lists);
	u32 bytes = packet_bytes(&p->kind), packets = skb->len / bytes, want, n, i;
	struct fixture *f = test->priv;
	struct nhca_sge sge = {
		.addr = p->off,
		.length = p->room ?: RUN_PAGES * PAGE_SIZE - p->off,
		.lkey = run->to.mr->ibmr.lkey,
	};
	struct nhca_iter it;
	struct nhca_rx rx;

	for (i = 0; i < RUN_PAGES; i++)
		memset(page_address(run->to.pages[i]), 0, PAGE_SIZE);
	if (p->packet && p->packet < packets)
		bth(skb, &p->kind, p->packet)[p->byte] ^= p->bits;
	first(test, &rx, skb, &p->kind);
	nhca_iter_sges(&it, &f->key_user, &sge, 1, 0, sge.length, IB_ACCESS_LOCAL_WRITE);
	enter();
	n = nhca_rx_copy_alike(&rx, p->max ?: 100, &it);
	leave();
	want = min(p->placed, packets - 1);
	KUNIT_EXPECT_EQ_MSG(test, n, want, "entry %td", p - places);
	expect_memory(test, p, n);
	KUNIT_EXPECT_EQ(test, rx.hdr.psn, (FIRST_PSN + n) & NHCA_PSN_MASK);
	KUNIT_EXPECT_EQ(test, rx.udp_off, n * bytes);
	KUNIT_EXPECT_EQ(test, rx.off, n * bytes + NHCA_BTH_LEN);
	KUNIT_EXPECT_EQ(test, rx.index, n);
	KUNIT_EXPECT_EQ(test, rx.hdr.ackreq,
			p->bits == ACKREQ && p->byte == 8 && n == p->packet);
	kfree_skb(skb);
}

/* The packets of a batch are placed up to the first packet that differs. */
static void place_test(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		one_place(test, &places[i], true);
		one_place(test, &places[i], false);
	}
}

/*
 * A call continues after the last packet that the previous call has placed, because @rx is then
 * this packet.
 */
static void resume_test(struct kunit *test)
{
	static const struct place p = { PAGES_ALIGNED, .placed = ALL };
	struct sk_buff *skb = batch(test, &p.kind, true);
	struct fixture *f = test->priv;
	struct nhca_sge sge = {
		.length = RUN_PAGES * PAGE_SIZE,
		.lkey = run->to.mr->ibmr.lkey,
	};
	struct nhca_iter it;
	struct nhca_rx rx;
	u32 n;

	first(test, &rx, skb, &p.kind);
	for (n = 0; n < ALL; n += 3) {
		/*
		 * each call is in another live section, so it needs an iterator that checks the
		 * L_Key again
		 */
		nhca_iter_sges(&it, &f->key_user, &sge, 1, n * PAGE_SIZE, sge.length,
			       IB_ACCESS_LOCAL_WRITE);
		enter();
		KUNIT_EXPECT_EQ(test, nhca_rx_copy_alike(&rx, 3, &it), min(3U, ALL - n));
		leave();
	}
	expect_memory(test, &p, ALL);
	KUNIT_EXPECT_EQ(test, rx.index, ALL);
	kfree_skb(skb);
}

/*
 * No packets are placed if @rx is not a pattern for the next packets, if its ICRC was checked, or
 * if it has AckReq.
 */
static void alone_test(struct kunit *test)
{
	static const struct place p = { PAGES_ALIGNED };
	struct sk_buff *skb = batch(test, &p.kind, true);
	struct fixture *f = test->priv;
	struct nhca_sge sge = {
		.length = RUN_PAGES * PAGE_SIZE,
		.lkey = run->to.mr->ibmr.lkey,
	};
	struct nhca_iter it;
	struct nhca_rx rx;
	u32 i;

	for (i = 0; i < 3; i++) {
		first(test, &rx, skb, &p.kind);
		if (i == 0)
			rx.alike.set = false;
		else if (i == 1)
			nhca_rx_intact(&rx, false);
		else
			rx.hdr.ackreq = true;
		nhca_iter_sges(&it, &f->key_user, &sge, 1, 0, sge.length, IB_ACCESS_LOCAL_WRITE);
		enter();
		KUNIT_EXPECT_EQ(test, nhca_rx_copy_alike(&rx, 100, &it), 0);
		leave();
		expect_memory(test, &p, 0);
		KUNIT_EXPECT_EQ(test, rx.index, 0);
	}
	kfree_skb(skb);
}

static struct kunit_case run_rx_cases[] = {
	KUNIT_CASE(place_test),
	KUNIT_CASE(resume_test),
	KUNIT_CASE(alone_test),
	{}
};

static struct kunit_suite run_rx_suite = {
	.name = "nhca_run_rx",
	.init = run_init,
	.exit = run_exit,
	.test_cases = run_rx_cases,
};

kunit_test_suite(run_rx_suite);
