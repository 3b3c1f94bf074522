/* SPDX-License-Identifier: GPL-2.0 */
/* For suites about accumulates: two hosts; the memory of the target lets peers accumulate. */
#ifndef NHCA_TEST_ACCUMULATE_FIXTURE_H
#define NHCA_TEST_ACCUMULATE_FIXTURE_H

#include "../rcxt/accumulate.h"
#include "../wire/element.h"
#include "channel_pair.h"

#define BOTH	(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define ACC	NHCA_WR_CH_ACCUMULATE
#define SUM	NHCA_ELEM_SUM
#define U64	NHCA_ELEM_U64
#define WORDS	(PAIR_SEG / 8)		/* u64 elements in a packet */
#define FROM	(64u << 10)		/* offset of the elements in the memory of the sender */

static inline int acc_init(struct kunit *test)
{
	struct pair *p;
	int err;

	err = pair_init(test);
	if (err)
		return err;
	p = test->priv;
	p->end[1].mem->access |= IB_ACCESS_REMOTE_ATOMIC;
	return 0;
}

/*
 * Fill in the work request of an accumulate of @total bytes, from offset FROM of the sender's
 * memory to offset @at of the peer's memory.  The caller posts the work request with chan_bell().
 */
static inline struct nhca_rcxt_wr *acc(struct chan *a, u8 op, u8 type, u32 tid, u32 total,
				       u32 at)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, ACC);
	struct nhca_rcxt_wr *wr = wqe->rcxt;

	wqe->flags = 0;
	wr->op = op;
	wr->type = type;
	wr->tid = tid;
	wr->total = total;
	wr->length = total;
	wr->notify = BOTH;
	wr->local_pvo += FROM;
	wr->remote_pvo += at;
	return wr;
}

static inline u64 *words(const struct pair_end *end, u32 at)
{
	return (u64 *)(end->bytes + at);
}

/* Set the @n words at offset FROM to @value. */
static inline void set_words(const struct pair_end *end, u32 n, u64 value)
{
	u32 i;

	for (i = 0; i < n; i++)
		words(end, FROM)[i] = value;
}

/* Return: true if the @n words at offset @at are @value, and all other bytes are 0. */
static inline bool are_words(const struct pair_end *end, u32 at, u32 n, u64 value)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (words(end, at)[i] != value)
			return false;
	return pair_clear(end, at, at + n * 8);
}

static inline void expect_done(struct kunit *test, struct chan *a, u32 tid, u32 total)
{
	struct nhca_cqe cqe;

	cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.chan.tid, tid);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, total);
	cqe = chan_expect(test, a->peer, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.chan.tid, tid);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, total);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(a->peer));
}

#endif /* NHCA_TEST_ACCUMULATE_FIXTURE_H */
