// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: work requests of channels. A malformed work request puts the channel into the error state,
 * a work request that its rCxt refuses completes in error, and all later work requests in the send
 * FIFO of a failed channel are flushed.
 */
#include "channel_pair.h"

#define BOTH	(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define TOTAL	(2 * PAIR_SEG)

/**
 * struct field - a field of a work request, and the value that a test stores in it
 * @offset: offset in struct nhca_send_wqe
 * @size:   bytes; 0: no field
 * @value:  the value
 */
struct field {
	u16 offset;
	u16 size;
	u64 value;
};

/**
 * struct row - a work request
 * @name:   name of the row, for messages of failed checks
 * @opcode: opcode of the work request, whose other fields wqe() sets
 * @set:    fields that are changed
 */
struct row {
	const char *name;
	u8 opcode;
	struct field set[4];
};

/* fields of 1, 2, 4 and 8 bytes of the work request, and of its struct nhca_rcxt_wr */
#define SET1(field, value)	{ offsetof(struct nhca_send_wqe, field), 1, value }
#define SET2(field, value)	{ offsetof(struct nhca_send_wqe, field), 2, value }
#define SET4(field, value)	{ offsetof(struct nhca_send_wqe, field), 4, value }
#define SET8(field, value)	{ offsetof(struct nhca_send_wqe, field), 8, value }
#define WR1(field, value)	SET1(rcxt[0].field, value)
#define WR2(field, value)	SET2(rcxt[0].field, value)
#define WR4(field, value)	SET4(rcxt[0].field, value)
#define WR8(field, value)	SET8(rcxt[0].field, value)
#define AGAIN			WR1(flags, NHCA_RCXT_WR_RETRANSMIT)
/* no channel owns this rCxt */
#define NOT_OURS		SET8(chan.local_rcxt, 700)
/* offset of the last byte of a table */
#define LAST			NHCA_PVO_OFFSET_MASK

static const struct row malformed[] = {
	{ "opcode of a QP", NHCA_WR_RDMA_WRITE },
	{ "opcode below", NHCA_WR_CH_PACKET - 1 },
	{ "opcode above", NHCA_WR_CH_ACCUMULATE + 1 },
	{ "flags", NHCA_WR_CH_WRITE, { SET2(flags, NHCA_SEND_FENCE) } },
	{ "flags", NHCA_WR_CH_PACKET, { SET2(flags, BIT(15)) } },
	{ "XRC", NHCA_WR_CH_WRITE, { SET4(xrc_srqn, 1) } },
	{ "SGEs", NHCA_WR_CH_PACKET, { SET1(num_sge, 5) } },
	{ "inline without flag", NHCA_WR_CH_PACKET, { SET4(inline_len, 1) } },
	{ "inline", NHCA_WR_CH_PACKET, { SET2(flags, NHCA_SEND_INLINE), SET4(inline_len, 65) } },
	{ "both", NHCA_WR_CH_PACKET, { SET2(flags, NHCA_SEND_INLINE), SET1(num_sge, 1) } },
	{ "SGE", NHCA_WR_CH_WRITE, { SET1(num_sge, 1) } },
	{ "inline", NHCA_WR_CH_READ, { SET4(inline_len, 4) } },
	{ "inline flag", NHCA_WR_CH_CANCEL, { SET2(flags, NHCA_SEND_INLINE) } },
	{ "reserved", NHCA_WR_CH_CANCEL, { WR2(reserved, 1) } },
	{ "tid", NHCA_WR_CH_WRITE, { WR4(tid, 0) } },
	{ "tid", NHCA_WR_CH_FENCE, { WR4(tid, 0) } },
	{ "notify", NHCA_WR_CH_READ, { WR1(notify, 4) } },
	{ "flags", NHCA_WR_CH_WRITE, { WR1(flags, 4) } },
	{ "again", NHCA_WR_CH_READ, { AGAIN } },
	{ "segment", NHCA_WR_CH_WRITE, { WR4(segment, NHCA_MIN_SEGMENT - 4) } },
	{ "segment", NHCA_WR_CH_READ, { WR4(segment, PAIR_SEG + 2) } },
	{ "segment", NHCA_WR_CH_WRITE, { WR4(segment, NHCA_MAX_SEGMENT + 4) } },
	{ "segment", NHCA_WR_CH_WRITE, { AGAIN, WR4(segment, 0) } },
	{ "total", NHCA_WR_CH_READ, { WR4(total, NHCA_MAX_TRANSFER + 1) } },
	{ "packets", NHCA_WR_CH_READ, { WR4(total, NHCA_MAX_TRANSFER), WR4(segment, 64) } },
	{ "offset", NHCA_WR_CH_WRITE, { WR4(offset, PAIR_SEG) } },
	{ "length", NHCA_WR_CH_WRITE, { WR4(length, PAIR_SEG) } },
	{ "again: offset", NHCA_WR_CH_WRITE, { AGAIN, WR4(offset, 4), WR4(length, 4) } },
	{ "again: length", NHCA_WR_CH_WRITE, { AGAIN, WR4(length, TOTAL + PAIR_SEG) } },
	{ "again: end", NHCA_WR_CH_WRITE, { AGAIN, WR4(offset, PAIR_SEG) } },
	{ "again: wrap", NHCA_WR_CH_WRITE, { AGAIN, WR4(offset, -PAIR_SEG) } },
	{ "again: nothing", NHCA_WR_CH_WRITE, { AGAIN, WR4(length, 0) } },
	{ "again: part", NHCA_WR_CH_WRITE, { AGAIN, WR4(length, PAIR_SEG + 4) } },
	{ "local PVO", NHCA_WR_CH_WRITE, { WR8(local_pvo, LAST - TOTAL + 2) } },
	{ "remote PVO", NHCA_WR_CH_READ, { WR8(remote_pvo, LAST - TOTAL + 2) } },
	{ "probe: segment", NHCA_WR_CH_PROBE, { WR4(segment, 0) } },
	{ "probe: offset", NHCA_WR_CH_PROBE, { WR4(offset, 4) } },
	{ "probe: end", NHCA_WR_CH_PROBE, { WR4(offset, TOTAL) } },
	{ "fence: PVO", NHCA_WR_CH_FENCE, { WR8(local_pvo, 1) } },
	{ "fence: PVO", NHCA_WR_CH_FENCE, { WR8(remote_pvo, 1) } },
	{ "fence: total", NHCA_WR_CH_FENCE, { WR4(total, 1) } },
	{ "fence: offset", NHCA_WR_CH_FENCE, { WR4(offset, PAIR_SEG) } },
	{ "fence: length", NHCA_WR_CH_FENCE, { WR4(length, 1) } },
	{ "fence: segment", NHCA_WR_CH_FENCE, { WR4(segment, PAIR_SEG) } },
	{ "fence: notify", NHCA_WR_CH_FENCE, { WR1(notify, 1) } },
	{ "address handle", NHCA_WR_CH_PACKET, { SET4(chan.ah_id, PAIR_AH + 1) } },
	{ "address handle", NHCA_WR_CH_WRITE, { SET4(chan.ah_id, PAIR_AH + 1) } },
	{ "address handle", NHCA_WR_CH_FENCE, { SET4(chan.ah_id, PAIR_AH + 1) } },
};

/* valid work requests, which differ little from malformed work requests */
static const struct row valid[] = {
	{ "packet", NHCA_WR_CH_PACKET },
	{ "inline", NHCA_WR_CH_PACKET, { SET2(flags, NHCA_SEND_INLINE | NHCA_SEND_SIGNALED |
					     NHCA_SEND_SOLICITED), SET4(inline_len, 64) } },
	{ "write", NHCA_WR_CH_WRITE, { WR4(tid, U32_MAX), WR1(notify, 0) } },
	{ "default segment", NHCA_WR_CH_WRITE, { WR4(segment, 0) } },
	{ "no bytes", NHCA_WR_CH_WRITE, { WR4(total, 0), WR4(length, 0), WR8(local_pvo, LAST),
					  WR8(remote_pvo, LAST) } },
	{ "read", NHCA_WR_CH_READ, { WR8(remote_pvo, LAST - TOTAL + 1) } },
	{ "probe", NHCA_WR_CH_PROBE, { WR4(offset, PAIR_SEG) } },
	{ "probe of nothing", NHCA_WR_CH_PROBE, { WR4(total, 0) } },
	{ "fence", NHCA_WR_CH_FENCE },
	{ "cancel", NHCA_WR_CH_CANCEL, { SET4(chan.ah_id, 0) } },
};

/* Store @f->value, as user space may. */
static void store(struct nhca_send_wqe *wqe, const struct field *f)
{
	void *at = (void *)wqe + f->offset;

	switch (f->size) {
	case 1:
		*(u8 *)at = f->value;
		break;
	case 2:
		*(u16 *)at = f->value;
		break;
	case 4:
		*(u32 *)at = f->value;
		break;
	case 8:
		*(u64 *)at = f->value;
		break;
	}
}

/* Fill in the next slot with the work request of @row. */
static void wqe(struct chan *a, const struct row *row)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, row->opcode);
	u32 i;

	if (row->opcode != NHCA_WR_CH_PACKET && row->opcode != NHCA_WR_CH_CANCEL &&
	    row->opcode != NHCA_WR_CH_FENCE) {
		wqe->rcxt[0].total = TOTAL;
		wqe->rcxt[0].notify = row->opcode == NHCA_WR_CH_PROBE ? 0 : BOTH;
		wqe->rcxt[0].length = row->opcode == NHCA_WR_CH_WRITE ? TOTAL : 0;
	}
	for (i = 0; i < ARRAY_SIZE(row->set); i++)
		store(wqe, &row->set[i]);
}

/* Create the channel again, and acquire rCxts. */
static void remake(struct kunit *test, struct chan *a)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };
	struct nhca_cqe cqe;

	chan_destroy(a);
	while (chan_poll(a, false, &cqe) || chan_poll(a, true, &cqe))
		;
	KUNIT_ASSERT_EQ(test, chan_create(a, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, a->ids, CHAN_IDS), 0);
	a->fatal = 0;
}

/*
 * A malformed work request sends nothing, and puts the channel into the error state. All later work
 * requests are flushed.
 */
static void wqe_malformed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	const struct row *row;
	struct nhca_cqe cqe;

	for (row = malformed; row < malformed + ARRAY_SIZE(malformed); row++) {
		remake(test, a);
		wqe(a, row);
		chan_push(a);
		chan_wqe(a, NHCA_WR_CH_PACKET)->flags = 0;
		chan_bell(a);
		KUNIT_ASSERT_EQ_MSG(test, a->ch->reason, NHCA_CH_ERR_WQE, "%x: %s", row->opcode,
				    row->name);
		KUNIT_EXPECT_EQ(test, a->fatal, 1);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(0));
		KUNIT_EXPECT_EQ(test, cqe.vendor_err, 0);
		KUNIT_EXPECT_EQ(test, cqe.chan.tid | cqe.chan.rcxt_index | cqe.chan.rcxt_key, 0);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(1));
		KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, 2);
	}
}

static void wqe_valid(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	const struct row *row;
	struct nhca_cqe cqe;

	for (row = valid; row < valid + ARRAY_SIZE(valid); row++) {
		remake(test, a);
		wqe(a, row);
		chan_bell(a);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, 0, "%x: %s", row->opcode, row->name);
		KUNIT_ASSERT_TRUE(test, chan_poll(a, false, &cqe));
		KUNIT_EXPECT_EQ_MSG(test, cqe.status, IB_WC_SUCCESS, "%x: %s", row->opcode,
				    row->name);
		KUNIT_EXPECT_EQ_MSG(test, p->sent > 0, row->opcode != NHCA_WR_CH_CANCEL, "%x: %s",
				    row->opcode, row->name);
		p->sent = 0;
	}
}

/*
 * A work request is malformed if its address handle is of another protection domain, is for
 * multicast, or is being freed.
 */
static void wqe_address_handle(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_av *av = xa_load(&a->end->dev->ah_ids, PAIR_AH);
	u32 i;

	for (i = 0; i < 3; i++) {
		remake(test, a);
		if (i == 0)
			av->pd = p->end[1].pd;
		else if (i == 1)
			av->mcast = true;
		else
			refcount_set(&av->ref, 0);
		chan_transfer(a, NHCA_WR_CH_WRITE, 1, 10, BOTH);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
		KUNIT_EXPECT_EQ(test, a->ch->reason, NHCA_CH_ERR_WQE);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		av->pd = a->end->pd;
		av->mcast = false;
		refcount_set(&av->ref, 1);
	}
}

/*
 * A work request that its rCxt refuses, or whose segment exceeds the MTU, completes in error, but
 * the channel stays in RTS.
 */
static void wqe_late(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	static const struct {
		struct row row;
		u8 status;
		u32 err;
	} rows[] = {
		/* tids up to 5 were used */
		{ { "", NHCA_WR_CH_WRITE, { WR4(tid, 5) } }, IB_WC_LOC_QP_OP_ERR, EINVAL },
		{ { "", NHCA_WR_CH_READ, { WR4(tid, 4) } }, IB_WC_LOC_QP_OP_ERR, EINVAL },
		/* there is no write with this tid, or it has other sizes */
		{ { "", NHCA_WR_CH_WRITE, { AGAIN, WR4(tid, 6) } }, IB_WC_LOC_QP_OP_ERR, EINVAL },
		{ { "", NHCA_WR_CH_WRITE, { AGAIN, WR4(tid, 5), WR4(total, PAIR_SEG),
					    WR4(length, PAIR_SEG) } },
		  IB_WC_LOC_QP_OP_ERR, EINVAL },
		/* rCxts that the channel does not own */
		{ { "", NHCA_WR_CH_WRITE, { NOT_OURS } }, IB_WC_LOC_QP_OP_ERR, ENOENT },
		{ { "", NHCA_WR_CH_READ, { NOT_OURS } }, IB_WC_LOC_QP_OP_ERR, ENOENT },
		{ { "", NHCA_WR_CH_PROBE, { NOT_OURS } }, IB_WC_LOC_QP_OP_ERR, ENOENT },
		{ { "", NHCA_WR_CH_FENCE, { NOT_OURS } }, IB_WC_LOC_QP_OP_ERR, ENOENT },
		{ { "", NHCA_WR_CH_CANCEL, { NOT_OURS } }, IB_WC_LOC_QP_OP_ERR, ENOENT },
		/* the segment exceeds the MTU */
		{ { "", NHCA_WR_CH_WRITE, { WR4(tid, 6), WR4(segment, PAIR_SEG * 2) } },
		  IB_WC_LOC_LEN_ERR, EMSGSIZE },
		{ { "", NHCA_WR_CH_READ, { WR4(tid, 6), WR4(segment, PAIR_SEG * 2) } },
		  IB_WC_LOC_LEN_ERR, EMSGSIZE },
	};
	struct nhca_cqe cqe;
	u32 i;

	chan_transfer(a, NHCA_WR_CH_WRITE, 5, TOTAL, BOTH);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	p->sent = 0;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		wqe(a, &rows[i].row);
		chan_bell(a);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, rows[i].status);
		KUNIT_EXPECT_EQ_MSG(test, cqe.vendor_err, rows[i].err, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, p->sent, 0, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, 0, "row %u", i);
	}
	KUNIT_EXPECT_EQ(test, a->fatal, 0);
}

/*
 * With a small MTU the longest transfer needs too many packets: only the work request of this
 * transfer fails.
 */
static void wqe_small_mtu(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;

	a->end->netdev->mtu = 1100;
	wqe = chan_wqe(a, NHCA_WR_CH_READ);
	wqe->rcxt[0].segment = 0;
	wqe->rcxt[0].total = NHCA_MAX_TRANSFER;
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_LEN_ERR).vendor_err,
			EMSGSIZE);
	KUNIT_EXPECT_EQ(test, a->ch->reason, 0);
	/* without a segment (0), the work request gets the longest segment that fits the MTU */
	wqe = chan_wqe(a, NHCA_WR_CH_READ);
	wqe->rcxt[0].segment = 0;
	wqe->rcxt[0].total = 10000;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_READ_REQUEST)->hdr.rx.segment,
			nhca_channel_segment(a->end->dev));
}

/* An impossible producer index puts the channel into the error state; nothing is fetched. */
static void wqe_bad_ring(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	chan_wqe(a, NHCA_WR_CH_PACKET);
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	a->posted += nhca_ring_entries(&a->ch->sq) + 1;
	chan_push(a);
	nhca_channel_doorbell(a->ch);
	KUNIT_EXPECT_EQ(test, a->ch->reason, NHCA_CH_ERR_RING);
	KUNIT_EXPECT_EQ(test, pair_dev_count(a->end, NHCA_CNT_BAD_RING), 1);
	KUNIT_EXPECT_EQ(test, a->fatal, 1);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	/* a producer index that is lower than the consumer index is impossible as well */
	remake(test, a);
	a->posted = -2;
	chan_push(a);
	nhca_channel_doorbell(a->ch);
	KUNIT_EXPECT_EQ(test, a->ch->reason, NHCA_CH_ERR_RING);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * In the error state, all work requests of a full send FIFO are flushed in order, and so are work
 * requests that are posted later.
 */
static void wqe_flush(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_cqe cqe;
	u32 i, n = nhca_ring_entries(&a->ch->sq);

	for (i = 0; i < n; i++) {
		chan_wqe(a, NHCA_WR_CH_PACKET)->flags = 0;
		chan_push(a);
	}
	local_bh_disable();
	nhca_channel_set_error(a->ch, NHCA_CH_ERR_MODIFIED);
	local_bh_enable();
	chan_wqe(a, NHCA_WR_CH_WRITE);
	chan_bell(a);
	for (i = 0; i <= n; i++) {
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
	}
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, n + 1);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
}

static struct kunit_case rcxt_wqe_cases[] = {
	KUNIT_CASE(wqe_malformed),
	KUNIT_CASE(wqe_valid),
	KUNIT_CASE(wqe_address_handle),
	KUNIT_CASE(wqe_late),
	KUNIT_CASE(wqe_small_mtu),
	KUNIT_CASE(wqe_bad_ring),
	KUNIT_CASE(wqe_flush),
	{}
};

static struct kunit_suite rcxt_wqe_suite = {
	.name = "nhca_rcxt_wqe",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_wqe_cases,
};

kunit_test_suite(rcxt_wqe_suite);
