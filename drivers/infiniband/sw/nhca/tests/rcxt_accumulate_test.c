// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: accumulates: operations and types, memory protection, packets and work requests that are
 * wrong, locks.
 */
#include <kunit/static_stub.h>
#include <kunit/test-bug.h>

#include "accumulate_fixture.h"

/* Each operation with each type that it supports; many values are at the limits of their type. */
static void acc_operations(struct kunit *test)
{
	static const struct {
		u8 op, type;
		u64 a, b, want;
	} rows[] = {
		{ NHCA_ELEM_SUM, NHCA_ELEM_I32, 0x7fffffff, 1, 0x80000000 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_I32, 0x80000000, 1, 0x80000000 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_I32, 0x80000000, 1, 1 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_I32, 0xffffffff, 0x80000001, 0x7fffffff },
		{ NHCA_ELEM_OR, NHCA_ELEM_I32, 0x0f000001, 0x10, 0x0f000011 },
		{ NHCA_ELEM_AND, NHCA_ELEM_I32, 0x0f000011, 0xf1, 0x11 },
		{ NHCA_ELEM_XOR, NHCA_ELEM_I32, 0x0f000011, 0x11, 0x0f000000 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_U32, 0xffffffff, 2, 1 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_U32, 0x80000000, 1, 1 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_U32, 0x80000000, 1, 0x80000000 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_U32, 0x10001, 0x10001, 0x20001 },
		{ NHCA_ELEM_OR, NHCA_ELEM_U32, 1, 2, 3 },
		{ NHCA_ELEM_AND, NHCA_ELEM_U32, 7, 10, 2 },
		{ NHCA_ELEM_XOR, NHCA_ELEM_U32, 7, 10, 13 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_I64, S64_MAX, 1, (u64)S64_MIN },
		{ NHCA_ELEM_MIN, NHCA_ELEM_I64, (u64)S64_MIN, 1, (u64)S64_MIN },
		{ NHCA_ELEM_MAX, NHCA_ELEM_I64, (u64)S64_MIN, 1, 1 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_I64, (u64)-3, 5, (u64)-15 },
		{ NHCA_ELEM_OR, NHCA_ELEM_I64, 1ull << 63, 1, 1ull << 63 | 1 },
		{ NHCA_ELEM_AND, NHCA_ELEM_I64, ~0ull, 1ull << 40, 1ull << 40 },
		{ NHCA_ELEM_XOR, NHCA_ELEM_I64, ~0ull, 1, ~1ull },
		{ NHCA_ELEM_SUM, NHCA_ELEM_U64, U64_MAX, 2, 1 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_U64, 1ull << 63, 1, 1 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_U64, 1ull << 63, 1, 1ull << 63 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_U64, 1ull << 33, 1ull << 31, 0 },
		{ NHCA_ELEM_OR, NHCA_ELEM_U64, 1ull << 32, 1, 1ull << 32 | 1 },
		{ NHCA_ELEM_AND, NHCA_ELEM_U64, 1ull << 32, 1, 0 },
		{ NHCA_ELEM_XOR, NHCA_ELEM_U64, 1ull << 32, 1ull << 32, 0 },
		/* 1 + 2^-24, halfway, rounds to the even 1; a little more rounds up */
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0x3f800000, 0x33800000, 0x3f800000 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0x3f800000, 0x33800001, 0x3f800001 },
		/* the largest number twice; infinity - infinity; 1 + a signaling NaN */
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0x7f7fffff, 0x7f7fffff, 0x7f800000 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0x7f800000, 0xff800000, 0x7fc00000 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0x3f800000, 0x7f800001, 0x7fc00001 },
		/* sums: the smallest number twice; -1 + 1 */
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 1, 1, 2 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_F32, 0xbf800000, 0x3f800000, 0 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_F32, 0, 0x80000000, 0x80000000 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_F32, 0xbf800000, 0xc0000000, 0xc0000000 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_F32, 0x7fc00000, 0xc0000000, 0xc0000000 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_F32, 0x7f800001, 0xffc00000, 0x7fc00000 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_F32, 0x40400000, 0xc0000000, 0xc0c00000 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_F32, 0x7f800000, 0, 0x7fc00000 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_F64, 0x3ff0000000000000, 0x3ca0000000000000,
		  0x3ff0000000000000 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_F64, 0x7ff0000000000000, 0x0010000000000000,
		  0x0010000000000000 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_F64, 0x8000000000000000, 0, 0 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_F64, 0x4008000000000000, 0x4000000000000000,
		  0x4018000000000000 },
		/* sums halfway round to even: 1 + 2^-8 to 1, and 256 + 3 to 260 */
		{ NHCA_ELEM_SUM, NHCA_ELEM_BF16, 0x3f80, 0x3b80, 0x3f80 },
		{ NHCA_ELEM_SUM, NHCA_ELEM_BF16, 0x4380, 0x4040, 0x4382 },
		{ NHCA_ELEM_MIN, NHCA_ELEM_BF16, 0x3f80, 0xff80, 0xff80 },
		{ NHCA_ELEM_MAX, NHCA_ELEM_BF16, 0x7f81, 0x3f80, 0x3f80 },
		{ NHCA_ELEM_PROD, NHCA_ELEM_BF16, 0x7f7f, 0x4000, 0x7f80 },
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i, size, k, at;
	u64 got;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		size = nhca_element_size(rows[i].op, rows[i].type);
		at = (i * size) % 4096;
		memset(a->end->bytes + FROM, 0, 64);
		memset(b->end->bytes, 0, 8192);
		/* this CPU is little endian: the first bytes of a u64 are its low ones */
		for (k = 0; k < 3; k++) {
			memcpy(a->end->bytes + FROM + k * size, &rows[i].b, size);
			memcpy(b->end->bytes + at + k * size, &rows[i].a, size);
		}
		acc(a, rows[i].op, rows[i].type, i + 1, 3 * size, at);
		chan_bell(a);
		pair_settle(test);
		for (k = 0; k < 3; k++) {
			got = 0;
			memcpy(&got, b->end->bytes + at + k * size, size);
			KUNIT_EXPECT_EQ_MSG(test, got, rows[i].want, "row %u", i);
		}
		KUNIT_EXPECT_TRUE(test, pair_clear(b->end, at, at + 3 * size));
		expect_done(test, a, i + 1, 3 * size);
	}
}

/* Transfers of several lengths and offsets, in single packets and in batches. */
static void acc_lengths(struct kunit *test)
{
	static const u32 lengths[] = { 0, 1, WORDS - 1, WORDS, WORDS + 1, 7 * WORDS + 3 };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i, n, at;

	set_words(a->end, 8 * WORDS, 3);
	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		n = lengths[i / 2];
		at = 8 * (i + 1);
		p->batch = i % 2 ? 5 : 0;
		acc(a, SUM, U64, 2 * i + 1, n * 8, at);
		chan_bell(a);
		pair_settle(test);
		expect_done(test, a, 2 * i + 1, n * 8);
		acc(a, NHCA_ELEM_PROD, U64, 2 * i + 2, n * 8, at);
		chan_bell(a);
		pair_settle(test);
		expect_done(test, a, 2 * i + 2, n * 8);
		KUNIT_EXPECT_TRUE_MSG(test, are_words(b->end, at, n, 9), "%u words", n);
		memset(b->end->bytes, 0, at + n * 8);
	}
}

/* ---- memory protection ---- */

/*
 * Memory needs IB_ACCESS_REMOTE_WRITE and IB_ACCESS_REMOTE_ATOMIC.  Without one of them, no byte
 * changes, and the transfer does not complete.
 */
static void acc_rights(struct kunit *test)
{
	static const int rights[] = {
		PAIR_ACCESS, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i;

	set_words(a->end, 2 * WORDS, 1);
	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		b->end->mem->access = rights[i];
		acc(a, SUM, U64, i + 1, 2 * PAIR_SEG, 0);
		chan_bell(a);
		pair_settle(test);
		KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_ACCESS), i + 1);
		KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_ABORTED), i + 1);
		KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->state, NHCA_RCXT_VIOLATED);
		KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	}
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	/* a write does not need IB_ACCESS_REMOTE_ATOMIC */
	b->end->mem->access = PAIR_ACCESS;
	chan_transfer(a, NHCA_WR_CH_WRITE, 9, PAIR_SEG, BOTH);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_ACCESS), 2);
}

/* A packet changes no element if its last bytes cannot be accessed. */
static void acc_whole(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 at = 8 * PAGE_SIZE - PAIR_GUARD - PAIR_SEG / 2;
	u64 flags = NHCA_TCE_READ | NHCA_TCE_WRITE;

	set_words(a->end, 3 * WORDS, 1);
	/* the second packet extends into a page whose TCE gives no access */
	nhca_range_set(&b->end->mem->tces, 8, page_to_pfn(b->end->page + 8), 0);
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, at - PAIR_SEG);
	chan_bell(a);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_PAGE), 1);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, at - PAIR_SEG, WORDS, 1));
	KUNIT_EXPECT_TRUE(test, chan_idle(b));

	nhca_range_set(&b->end->mem->tces, 8, page_to_pfn(b->end->page + 8), flags);
	acc(a, SUM, U64, 2, 2 * PAIR_SEG, at);
	chan_bell(a);
	pair_settle(test);
	expect_done(test, a, 2, 2 * PAIR_SEG);
	memset(b->end->bytes + at - PAIR_SEG, 0, PAIR_SEG);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, at, 2 * WORDS, 1));
	memset(b->end->bytes + at, 0, 2 * PAIR_SEG);

	/* the region ends in the second packet of a batch */
	p->batch = 3;
	acc(a, SUM, U64, 3, 3 * PAIR_SEG, PAIR_BYTES - 2 * PAIR_SEG + 8);
	chan_bell(a);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_RANGE), 1);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, PAIR_BYTES - 2 * PAIR_SEG + 8, WORDS, 1));
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* ---- packets that are wrong ---- */

static void wrong(struct kunit *test, struct chan *b, struct pair_packet *pk,
		  const struct nhca_rxeth *x)
{
	u64 before = pair_dev_count(b->end, NHCA_CNT_RX_BAD_LENGTH);
	struct nhca_rxeth good = pk->hdr.rx;

	pk->hdr.rx = *x;
	pair_rx(test, pk);
	pk->hdr.rx = good;
	KUNIT_EXPECT_EQ_MSG(test, pair_dev_count(b->end, NHCA_CNT_RX_BAD_LENGTH), before + 1,
			    "op %u, type %u, total %u, segment %u, PVO %#llx", x->op, x->type,
			    x->total, x->segment, x->pvo);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->tid, 0);
}

/*
 * Packets with an invalid operation or type, or with bytes that are not whole aligned elements, are
 * dropped.
 */
static void acc_wire(struct kunit *test)
{
	static const u8 ops[][2] = {
		{ 0, U64 }, { NHCA_ELEM_OP_END, U64 }, { 255, U64 }, { SUM, 0 },
		{ SUM, NHCA_ELEM_TYPE_END }, { SUM, 255 }, { NHCA_ELEM_OR, NHCA_ELEM_F32 },
		{ NHCA_ELEM_AND, NHCA_ELEM_F64 }, { NHCA_ELEM_XOR, NHCA_ELEM_BF16 },
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	struct nhca_rxeth x;
	u32 i;

	set_words(a->end, 2 * WORDS, 1);
	acc(a, SUM, U64, 1, 2 * PAIR_SEG, 0);
	chan_bell(a);
	pk = pair_first(test, NHCA_RX_ACCUMULATE);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		x = pk->hdr.rx;
		x.op = ops[i][0];
		x.type = ops[i][1];
		wrong(test, b, pk, &x);
	}
	x = pk->hdr.rx;
	x.total += 4;
	wrong(test, b, pk, &x);
	x = pk->hdr.rx;
	x.pvo += 4;
	wrong(test, b, pk, &x);
	x.pvo += 1;
	wrong(test, b, pk, &x);
	x = pk->hdr.rx;
	x.segment += 4;
	x.length += 4;
	wrong(test, b, pk, &x);
	pair_settle(test);
	expect_done(test, a, 1, 2 * PAIR_SEG);
}

/* A packet whose operation, type or kind differs from those of its transfer is dropped. */
static void acc_mismatch(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	set_words(a->end, 2 * WORDS, 1);
	acc(a, SUM, U64, 1, 2 * PAIR_SEG, 0);
	chan_bell(a);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_ACCUMULATE);
	pk->hdr.rx.op = NHCA_ELEM_MAX;
	pair_rx(test, pk);
	pk->hdr.rx.op = SUM;
	pk->hdr.rx.type = NHCA_ELEM_I64;
	pair_rx(test, pk);
	pk->hdr.rx.type = U64;
	pk->hdr.opcode = NHCA_RX_WRITE;
	pair_rx(test, pk);
	pk->hdr.opcode = NHCA_RX_HALF_WRITE;
	pk->hdr.rx.pvo = pk->hdr.rx.offset;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 4);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, WORDS, 1));
	pair_drop(pk);

	/* an accumulate neither continues a write nor answers a read */
	chan_transfer(a, NHCA_WR_CH_WRITE, 2, 2 * PAIR_SEG, BOTH);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_WRITE);
	pk->hdr.opcode = NHCA_RX_ACCUMULATE;
	pk->hdr.rx.op = SUM;
	pk->hdr.rx.type = U64;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 5);
	pair_drop(pk);
	chan_transfer(b, NHCA_WR_CH_READ, 3, 2 * PAIR_SEG, BOTH);
	pair_drop(pair_first(test, NHCA_RX_READ_REQUEST));
	acc(a, SUM, U64, 3, 2 * PAIR_SEG, 0);
	chan_bell(a);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 6);
}

/* ---- work requests ---- */

/* A malformed work request puts the channel into the error state, and no packet is sent. */
static void acc_malformed(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };
	struct pair *p = test->priv;
	struct nhca_rcxt_wr *wr;
	struct chan *a;
	u32 i;

	for (i = 0; i < 14; i++) {
		a = chan_new(test, &p->end[0], PAIR_QPN + 16 + i, 64);
		KUNIT_ASSERT_EQ(test, chan_create(a, &cmd), 0);
		KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, a->ids, CHAN_IDS), 0);
		a->peer = p->end[1].chan;
		wr = acc(a, SUM, U64, 1, 2 * PAIR_SEG, 0);
		wr->op = i == 0 ? 0 : i == 1 ? 8 : i == 2 ? NHCA_ELEM_OR : SUM;
		wr->type = i == 2 ? NHCA_ELEM_F64 : i == 3 ? 0 : i == 4 ? 8 : U64;
		if (i == 5) {
			wr->length = 2 * PAIR_SEG - 4;
			wr->total = wr->length;
		}
		if (i == 6)
			wr->remote_pvo += 4;
		if (i == 7)
			wr->segment = PAIR_SEG + 4;
		if (i == 8)
			wr->flags = NHCA_RCXT_WR_FRAMES;
		if (i == 9)
			wr->flags = NHCA_RCXT_WR_PROGRAM;
		if (i == 10)
			wr->flags = NHCA_RCXT_WR_ORDERED | NHCA_RCXT_WR_RETRANSMIT;
		if (i == 11) {
			wr->flags = NHCA_RCXT_WR_ORDERED;
			wr->notify = NHCA_NOTIFY_TARGET;
		}
		if (i == 12)
			container_of(wr, struct nhca_send_wqe, rcxt[0])->opcode = NHCA_WR_CH_WRITE;
		if (i == 13)
			wr->length = PAIR_SEG;
		chan_bell(a);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, NHCA_CH_ERR_WQE, "case %u", i);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		chan_destroy(a);
	}
}

/*
 * The largest segment of an accumulate is 4 bytes less than that of a write, because the header of
 * each packet is 4 bytes longer. The segment that the kernel chooses consists of whole elements of
 * any type, whatever the MTU is.
 */
static void acc_segment(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 most, mtu, tid = 1;
	struct nhca_cqe cqe;

	set_words(a->end, 1024, 1);
	for (mtu = 1500; mtu <= 1504; mtu += 4, tid += 3) {
		a->end->netdev->mtu = mtu;
		most = nhca_channel_segment(a->end->dev) - NHCA_ACCUMULATE_HEADER;
		acc(a, SUM, U64, tid, 8192, 0)->segment = 0;
		chan_bell(a);
		KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_ACCUMULATE)->payload,
				round_down(most, 8));
		pair_settle(test);
		expect_done(test, a, tid, 8192);
		acc(a, SUM, NHCA_ELEM_U32, tid + 1, 8192, 0)->segment = most;
		chan_bell(a);
		pair_settle(test);
		expect_done(test, a, tid + 1, 8192);
		acc(a, SUM, NHCA_ELEM_U32, tid + 2, 8192, 0)->segment = most + 4;
		chan_bell(a);
		pair_settle(test);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_LEN_ERR);
		KUNIT_EXPECT_EQ(test, cqe.vendor_err, EMSGSIZE);
	}
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

/* ---- elements, locks ---- */

/* nhca_rx_whole() returns whole elements, also those that are in several fragments of the skb. */
static void acc_fragments(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO, 1);
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);
	u8 buf[8], all[200];
	struct nhca_rx rx = { .skb = skb, .off = 3 };
	u32 off, n, i, unit;
	const u8 *from;

	KUNIT_ASSERT_TRUE(test, page && skb);
	for (i = 0; i < sizeof(all); i++)
		all[i] = i * 7 + 1;
	/* 13 linear bytes, then fragments of 1, 9 and 177 bytes */
	skb_put_data(skb, all, 13);
	memcpy(page_address(page) + 5, all + 13, 187);
	skb_add_rx_frag(skb, 0, page, 5, 1, 1);
	get_page(page);
	skb_add_rx_frag(skb, 1, page, 6, 9, 9);
	get_page(page);
	skb_add_rx_frag(skb, 2, page, 15, 177, 177);
	for (unit = 2; unit <= 8; unit *= 2) {
		nhca_cursor_init(&rx.at, skb);
		for (off = 0; off < 192; off += n) {
			from = nhca_rx_whole(&rx, off, 192 - off, unit, buf, &n);
			KUNIT_ASSERT_NOT_NULL(test, from);
			KUNIT_ASSERT_TRUE(test, n && n % unit == 0 && n <= 192 - off);
			KUNIT_EXPECT_MEMEQ(test, from, all + 3 + off, n);
		}
	}
	nhca_cursor_init(&rx.at, skb);
	KUNIT_EXPECT_NULL(test, nhca_rx_whole(&rx, 193, 8, 8, buf, &n));
	kfree_skb(skb);
}

/* calls of whole_locked(), one for each element; and those calls with the page's lock held */
static u32 combined, locked;

/* Replaces nhca_rx_whole(): returns one element at a time. */
static const u8 *whole_locked(struct nhca_rx *rx, u32 off, u32 len, u32 unit, u8 *buf, u32 *n)
{
	struct pair *p = kunit_get_current_test()->priv;
	u32 at = rx->hdr.rx.pvo - p->end[1].mem->pvo + off;

	combined++;
#ifdef CONFIG_LOCKDEP
	locked += lockdep_is_held(nhca_accumulate_lock(p->end[1].bytes + at)) == 1;
#endif
	*n = unit;
	return skb_copy_bits(rx->skb, rx->off + off, buf, unit) ? NULL : buf;
}

/* The elements of a page change only under the lock of this page. */
static void acc_locks(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	if (!IS_ENABLED(CONFIG_LOCKDEP))
		kunit_skip(test, "the kernel has no lockdep");
	combined = 0;
	locked = 0;
	set_words(a->end, 8 * WORDS, 1);
	kunit_activate_static_stub(test, nhca_rx_whole, whole_locked);
	/* some packets cross a page boundary */
	acc(a, SUM, U64, 1, 8 * PAIR_SEG, PAIR_SEG / 4);
	chan_bell(a);
	pair_settle(test);
	kunit_deactivate_static_stub(test, nhca_rx_whole);
	KUNIT_EXPECT_EQ(test, combined, 8 * WORDS);
	KUNIT_EXPECT_EQ(test, locked, combined);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, PAIR_SEG / 4, 8 * WORDS, 1));
	KUNIT_EXPECT_PTR_NE(test, nhca_accumulate_lock(b->end->bytes),
			    nhca_accumulate_lock(b->end->bytes + PAGE_SIZE));
	KUNIT_EXPECT_PTR_EQ(test, nhca_accumulate_lock(b->end->bytes),
			    nhca_accumulate_lock(b->end->bytes + 8));
}

/* live section of the first element of the packet, and number of elements in other sections */
static u32 section, elsewhere;

/* Replaces nhca_rx_whole(): returns one element at a time. */
static const u8 *whole_live(struct nhca_rx *rx, u32 off, u32 len, u32 unit, u8 *buf, u32 *n)
{
	u32 seq = this_cpu_read(nhca_live.seq);

	if (!off)
		section = seq;
	/* an even number: in no section */
	elsewhere += seq != section || !(seq & 1);
	*n = unit;
	return skb_copy_bits(rx->skb, rx->off + off, buf, unit) ? NULL : buf;
}

/* One live section covers a packet, also in two pages: the memory is not closed between them. */
static void acc_section(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	elsewhere = 0;
	set_words(a->end, 8 * WORDS, 1);
	kunit_activate_static_stub(test, nhca_rx_whole, whole_live);
	acc(a, SUM, U64, 1, 8 * PAIR_SEG, PAIR_SEG / 4);
	chan_bell(a);
	pair_settle(test);
	kunit_deactivate_static_stub(test, nhca_rx_whole);
	KUNIT_EXPECT_EQ(test, elsewhere, 0);
	KUNIT_EXPECT_TRUE(test, are_words(p->end[1].chan->end, PAIR_SEG / 4, 8 * WORDS, 1));
}

/* Replaces nhca_accumulate() once: the last element is missing in the skb. */
static enum nhca_channel_counter accumulate_short(struct nhca_channel *ch, struct nhca_rx *rx,
						  u32 run)
{
	struct kunit *test = kunit_get_current_test();

	kunit_deactivate_static_stub(test, nhca_accumulate);
	KUNIT_EXPECT_EQ(test, pskb_trim(rx->skb, rx->off + rx->payload - 8), 0);
	return nhca_accumulate(ch, rx, run);
}

/* A packet with fewer bytes than its headers say changes nothing. */
static void acc_short(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	set_words(a->end, WORDS, 1);
	acc(a, SUM, U64, 1, PAIR_SEG, 0);
	chan_bell(a);
	kunit_activate_static_stub(test, nhca_accumulate, accumulate_short);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_PAGE), 1);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

static struct kunit_case acc_cases[] = {
	KUNIT_CASE(acc_operations),
	KUNIT_CASE(acc_lengths),
	KUNIT_CASE(acc_rights),
	KUNIT_CASE(acc_whole),
	KUNIT_CASE(acc_wire),
	KUNIT_CASE(acc_mismatch),
	KUNIT_CASE(acc_malformed),
	KUNIT_CASE(acc_segment),
	KUNIT_CASE(acc_fragments),
	KUNIT_CASE(acc_locks),
	KUNIT_CASE(acc_section),
	KUNIT_CASE(acc_short),
	{}
};

static struct kunit_suite acc_suite = {
	.name = "nhca_rcxt_accumulate",
	.init = acc_init,
	.exit = pair_exit,
	.test_cases = acc_cases,
};

kunit_test_suite(acc_suite);
