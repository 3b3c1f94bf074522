// SPDX-License-Identifier: GPL-2.0
/* KUnit: the program that reads the frames of half-receive writes and reads. */
#include "frame_reader.h"

#define INDICES		32768u	/* maximum number of frames that a reader reads */

struct reader *reader_new(struct kunit *test, struct chan *c, u8 kind)
{
	struct reader *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->c = c;
	r->kind = kind;
	r->read = kunit_kzalloc(test, BITS_TO_LONGS(INDICES) * sizeof(long), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->read);
	return r;
}

void reader_begin(struct reader *r, u32 tid, u32 total)
{
	r->tid = tid;
	r->total = total;
	r->frames = 0;
	r->done = 0;
	bitmap_zero(r->got, READER_PACKETS);
	pair_fill(r->c->peer->end->bytes, total, tid);
}

/* Give back frame @index.  The kernel gets slots back in the order of their indices. */
static void reader_release(struct kunit *test, struct reader *r, u32 index)
{
	KUNIT_ASSERT_LT(test, index, INDICES);
	KUNIT_ASSERT_FALSE(test, __test_and_set_bit(index, r->read));
	while (test_bit(r->cons, r->read))
		r->cons++;
	nhca_ring_release(&r->c->ch->fifo.ring, r->cons);
}

static void reader_frame(struct kunit *test, struct reader *r, const struct nhca_cqe *cqe)
{
	const struct nhca_frame *frame = nhca_ring_slot(&r->c->ch->fifo.ring, cqe->chan.frame);
	struct chan *peer = r->c->peer;
	u32 packet;

	KUNIT_ASSERT_EQ(test, frame->seq, cqe->chan.frame + 1);
	KUNIT_ASSERT_EQ(test, frame->kind, r->kind);
	KUNIT_ASSERT_EQ(test, frame->tid, r->tid);
	KUNIT_ASSERT_EQ(test, frame->total, r->total);
	KUNIT_ASSERT_EQ(test, frame->segment, PAIR_SEG);
	KUNIT_ASSERT_EQ(test, frame->offset % PAIR_SEG, 0);
	packet = frame->offset / PAIR_SEG;
	KUNIT_ASSERT_LT(test, packet, READER_PACKETS);
	KUNIT_ASSERT_EQ(test, frame->length,
			nhca_rcxt_packet_len(r->total, PAIR_SEG, frame->offset));
	KUNIT_ASSERT_FALSE(test, memcmp(frame->data, peer->end->bytes + frame->offset,
					frame->length));
	KUNIT_ASSERT_FALSE_MSG(test, __test_and_set_bit(packet, r->got), "packet %u twice",
			       packet);
	KUNIT_EXPECT_EQ(test, frame->src_key, lower_32_bits(peer->resp.key));
	KUNIT_EXPECT_EQ(test, frame->src_channel, peer->who.qpn);
	KUNIT_EXPECT_EQ(test, frame->src_rcxt, peer->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->rcxt, r->c->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->status | frame->received, 0);
	KUNIT_EXPECT_EQ(test, NHCA_RCXT_ID(cqe->chan.rcxt_index, cqe->chan.rcxt_key),
			r->c->ids[0]);
	KUNIT_EXPECT_EQ(test, cqe->byte_len, frame->length);
	KUNIT_EXPECT_EQ(test, cqe->src_qp, peer->who.qpn);
	KUNIT_EXPECT_EQ(test, cqe->wr_id, frame->cookie);
	r->frames++;
	reader_release(test, r, cqe->chan.frame);
}

/* Read the completion of the transfer. */
static void reader_done(struct kunit *test, struct reader *r, const struct nhca_cqe *cqe)
{
	KUNIT_ASSERT_EQ(test, cqe->opcode, r->kind == NHCA_FRAME_READ ? NHCA_WC_CH_READ :
									NHCA_WC_CH_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, cqe->byte_len, r->total);
	KUNIT_EXPECT_EQ(test, cqe->chan.tid, r->tid);
	r->done++;
}

void reader_run(struct kunit *test, struct reader *r, u32 max)
{
	bool reads = r->kind == NHCA_FRAME_READ;
	struct nhca_cqe cqe;

	while (reads && chan_poll(r->c, false, &cqe)) {
		KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
		reader_done(test, r, &cqe);
		/* the completions of all frames were posted before, so read all frames */
		max = U32_MAX;
	}
	while (max && chan_poll(r->c, true, &cqe)) {
		KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
		if (cqe.opcode == NHCA_WC_CH_FRAME) {
			/* in this CQ, the completion of a write comes after those of its frames */
			KUNIT_EXPECT_TRUE(test, reads || !r->done);
			reader_frame(test, r, &cqe);
			max--;
		} else {
			reader_done(test, r, &cqe);
		}
	}
	if (r->done)
		KUNIT_EXPECT_EQ(test, r->frames, nhca_rcxt_packets(r->total, PAIR_SEG));
}
