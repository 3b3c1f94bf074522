// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: no packet of an accumulate is applied twice, even if packets are repeated, or other CPUs
 * receive packets or end the transfer meanwhile.
 */
#include <kunit/static_stub.h>
#include <kunit/test-bug.h>

#include "accumulate_fixture.h"

/* Packets that are repeated after the end of their transfer change nothing. */
static void once_again(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	u32 i;

	set_words(a->end, 3 * WORDS, 1);
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, 0);
	chan_bell(a);
	/* pair_rx() leaves the packets on the wire */
	for (i = 0; i < 3; i++) {
		list_for_each_entry(pk, &p->wire, list)
			if (pk->hdr.opcode == NHCA_RX_ACCUMULATE)
				pair_rx(test, pk);
		KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, 3 * WORDS, 1));
	}
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 6);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_NOTICE), 1);
	/* the program retransmits the whole transfer */
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, 0)->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(a);
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, 3 * WORDS, 1));
	expect_done(test, a, 1, 3 * PAIR_SEG);
	/* after the next transfer has begun, packets of the earlier one are stale */
	acc(a, SUM, U64, 2, PAIR_SEG, 0);
	chan_bell(a);
	pk = pair_first(test, NHCA_RX_ACCUMULATE);
	pair_rx(test, pk);
	pk->hdr.rx.tid = 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_EQ(test, words(b->end, 0)[0], 2);
	KUNIT_EXPECT_EQ(test, words(b->end, 0)[WORDS], 1);
}

/* ---- what happens while a CPU applies a packet ---- */

/* what another CPU does before nhca_accumulate() applies the packet */
static void (*meanwhile)(struct kunit *test);

/* Replaces nhca_accumulate() once: calls meanwhile() before it. */
static enum nhca_channel_counter accumulate_and_more(struct nhca_channel *ch, struct nhca_rx *rx,
						     u32 run)
{
	struct kunit *test = kunit_get_current_test();

	kunit_deactivate_static_stub(test, nhca_accumulate);
	meanwhile(test);
	return nhca_accumulate(ch, rx, run);
}

/* Let the target receive the first packet; before it is applied, @fn acts as another CPU. */
static void rx_meanwhile(struct kunit *test, void (*fn)(struct kunit *test))
{
	meanwhile = fn;
	kunit_activate_static_stub(test, nhca_accumulate, accumulate_and_more);
	pair_rx(test, pair_first(test, NHCA_RX_ACCUMULATE));
}

static void all_packets(struct kunit *test)
{
	struct pair *p = test->priv;
	struct pair_packet *pk;

	list_for_each_entry(pk, &p->wire, list)
		if (pk->hdr.opcode == NHCA_RX_ACCUMULATE)
			pair_rx(test, pk);
	/* the first packet has not been applied yet, so there is no notice and no completion */
	KUNIT_EXPECT_EQ(test, words(&p->end[1], 0)[0], 0);
	KUNIT_EXPECT_TRUE(test, chan_idle(p->end[1].chan));
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_NOTICE), 0);
	KUNIT_EXPECT_EQ(test, chan_rcxt(p->end[1].chan, 0)->state, NHCA_RCXT_RECEIVING);
}

/* While one CPU applies a packet, another CPU receives all packets, also this one again. */
static void once_duplicate_meanwhile(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	set_words(a->end, 3 * WORDS, 1);
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, 0);
	chan_bell(a);
	rx_meanwhile(test, all_packets);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, 3 * WORDS, 1));
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, 3 * WORDS, 1));
	expect_done(test, a, 1, 3 * PAIR_SEG);
}

static void fence(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk;

	chan_wqe(a, NHCA_WR_CH_FENCE)->flags = 0;
	chan_bell(a);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_EQ(test, pk->hdr.opcode, NHCA_RX_FENCE);
	pair_rx(test, pk);
	pair_drop(pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_STATUS), 0);
}

/* The target answers no fence while it applies a packet, and answers a later fence. */
static void once_fence_meanwhile(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	set_words(a->end, 3 * WORDS, 1);
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, 0);
	chan_bell(a);
	rx_meanwhile(test, fence);
	/* the packet was applied as a whole; the fence has made all packets on the wire stale */
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, WORDS, 1));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 3);
	chan_wqe(a, NHCA_WR_CH_FENCE)->flags = 0;
	chan_bell(a);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_STATUS);
	KUNIT_EXPECT_EQ(test, pk->hdr.rx.status, NHCA_RX_ST_FENCED);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

static void cancel(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;

	chan_wqe(b, NHCA_WR_CH_CANCEL);
	chan_bell(b);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* A cancel of the target's channel completes only after the packet was applied. */
static void once_cancel_meanwhile(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	set_words(a->end, 3 * WORDS, 1);
	acc(a, SUM, U64, 1, 3 * PAIR_SEG, 0);
	chan_bell(a);
	rx_meanwhile(test, cancel);
	chan_expect(test, b, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, WORDS, 1));
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

static void next_tid(struct kunit *test)
{
	struct pair *p = test->priv;
	struct pair_packet *pk = list_last_entry(&p->wire, struct pair_packet, list);

	/* a receiving CPU would repeat the call: the rCxt must not begin the next transfer yet */
	KUNIT_EXPECT_EQ(test, pk->hdr.rx.tid, 1);
	pk->hdr.rx.tid = 2;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&p->end[1].chan->ch->rd->pool,
						chan_rcxt(p->end[1].chan, 0), &pk->hdr.rx, false),
			NHCA_RCXT_WAIT);
	pk->hdr.rx.tid = 1;
}

/* While a CPU applies a packet, a packet with a higher tid has to wait. */
static void once_next_meanwhile(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	set_words(a->end, 2 * WORDS, 1);
	acc(a, SUM, U64, 1, 2 * PAIR_SEG, 0);
	chan_bell(a);
	rx_meanwhile(test, next_tid);
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, are_words(b->end, 0, 2 * WORDS, 1));
	expect_done(test, a, 1, 2 * PAIR_SEG);
}

/* ---- the model ---- */

#define SENDERS	3
#define ROUNDS	150

/* Let the target's program poll.  Return: bits of the senders whose transfers are complete. */
static u32 poll_complete(struct kunit *test, struct chan *b)
{
	struct nhca_cqe cqe;
	u32 done = 0, i;

	while (chan_poll(b, true, &cqe)) {
		KUNIT_ASSERT_EQ(test, cqe.opcode, NHCA_WC_CH_REMOTE_WRITE);
		for (i = 0; i < SENDERS; i++)
			if (NHCA_RCXT_ID(cqe.chan.rcxt_index, cqe.chan.rcxt_key) == b->ids[i])
				done |= BIT(i);
	}
	return done;
}

/*
 * Several senders on two hosts accumulate into overlapping ranges, on a network that loses,
 * repeats and reorders packets.  The memory must be equal to that of a model, which applies each
 * accumulate once.
 */
static void once_random(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan, *a[SENDERS];
	u8 *model = kunit_kzalloc(test, 16384, GFP_KERNEL);
	u32 round, i, turn, len, at, done, repeats = 0;
	struct nhca_rcxt_wr *wr, last[SENDERS];
	struct rnd_state rnd;
	u8 op, type, size;
	struct nhca_cqe cqe;
	u64 word;

	KUNIT_ASSERT_NOT_NULL(test, model);
	pair_add(test);
	a[0] = p->end[0].chan;
	a[1] = chan_make(test, &p->end[0], PAIR_QPN + 8, PAIR_JOB);
	a[2] = p->end[2].chan;
	prandom_seed_state(&rnd, 29);
	for (i = 0; i < SENDERS; i++)
		a[i]->peer = b;
	for (round = 1; round <= ROUNDS; round++) {
		do {
			op = 1 + prandom_u32_state(&rnd) % (NHCA_ELEM_OP_END - 1);
			type = 1 + prandom_u32_state(&rnd) % (NHCA_ELEM_TYPE_END - 1);
			size = nhca_element_size(op, type);
			/* the result must not depend on the order of the senders */
		} while (!size || (type >= NHCA_ELEM_F32 && op != NHCA_ELEM_MIN &&
				   op != NHCA_ELEM_MAX));
		for (i = 0; i < 16384; i += 8) {
			word = (u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);
			memcpy(model + i, &word, 8);
		}
		memcpy(b->end->bytes, model, 16384);
		p->batch = round % 6;
		for (i = 0; i < SENDERS; i++) {
			at = prandom_u32_state(&rnd) % 8192 / size * size;
			len = prandom_u32_state(&rnd) % 8192 / size * size;
			pair_fill(a[i]->end->bytes + FROM + i * 16384, len, round * 4 + i);
			nhca_element_combine(op, type, model + at,
					     a[i]->end->bytes + FROM + i * 16384, len);
			wr = acc(a[i], op, type, round, len, at);
			wr->local_pvo += i * 16384;
			container_of(wr, struct nhca_send_wqe, rcxt[0])->chan.remote_rcxt =
				b->ids[i];
			if (i == 2)
				container_of(wr, struct nhca_send_wqe, rcxt[0])->chan.ah_id =
					PAIR_AH_TARGET;
			last[i] = *wr;
			chan_bell(a[i]);
		}
		done = 0;
		for (turn = 0; done != BIT(SENDERS) - 1; turn++) {
			KUNIT_ASSERT_LT(test, turn, 200);
			while (pair_lossy(test, &rnd))
				done |= poll_complete(test, b);
			for (i = 0; i < SENDERS; i++) {
				struct nhca_send_wqe *wqe;

				while (chan_poll(a[i], false, &cqe))
					KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
				if (prandom_u32_state(&rnd) % 2)
					continue;
				wqe = chan_wqe(a[i], ACC);
				wqe->flags = 0;
				wqe->chan.remote_rcxt = b->ids[i];
				if (i == 2)
					wqe->chan.ah_id = PAIR_AH_TARGET;
				wqe->rcxt[0] = last[i];
				wqe->rcxt[0].flags = NHCA_RCXT_WR_RETRANSMIT;
				chan_bell(a[i]);
				repeats++;
			}
		}
		/* packets that come after the end of their transfers */
		pair_settle(test);
		KUNIT_ASSERT_EQ(test, poll_complete(test, b), 0);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(model, b->end->bytes, 16384), 0,
				    "round %u, op %u, type %u", round, op, type);
		for (i = 0; i < SENDERS; i++)
			while (chan_poll(a[i], false, &cqe))
				KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_GT(test, repeats, ROUNDS);
	KUNIT_EXPECT_GT(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), ROUNDS);
	memset(b->end->bytes, 0, 16384);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
}

static struct kunit_case once_cases[] = {
	KUNIT_CASE(once_again),
	KUNIT_CASE(once_duplicate_meanwhile),
	KUNIT_CASE(once_fence_meanwhile),
	KUNIT_CASE(once_cancel_meanwhile),
	KUNIT_CASE(once_next_meanwhile),
	KUNIT_CASE(once_random),
	{}
};

static struct kunit_suite once_suite = {
	.name = "nhca_rcxt_once",
	.init = acc_init,
	.exit = pair_exit,
	.test_cases = once_cases,
};

kunit_test_suite(once_suite);
