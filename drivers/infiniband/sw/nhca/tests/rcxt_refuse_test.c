// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a channel drops a packet with one wrong field, counts the reason, sends no answer and
 * changes no byte. A write or message with the right field is accepted afterwards.
 */
#include "channel_pair.h"

#define BOTH	(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define OTHERS	(PAIR_QPN + 9)		/* QPN of a channel of another job */
#define DEVICE	BIT(31)			/* flag: the counter is one of the device */

/**
 * struct wrong - one wrong field
 * @name:  what is wrong, for messages of failed checks
 * @count: enum nhca_channel_counter, or enum nhca_counter with DEVICE
 * @spoil: makes the field wrong
 */
struct wrong {
	const char *name;
	u32 count;
	void (*spoil)(struct pair *p, struct pair_packet *pk);
};

static void wrong_qpn(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.qpn = PAIR_QPN + 77;
}

static void wrong_daddr(struct pair *p, struct pair_packet *pk)
{
	/* the address of the other device, which is in the same namespace */
	pk->daddr = PAIR_ADDR;
}

static void wrong_mcast(struct pair *p, struct pair_packet *pk)
{
	pk->daddr = 0xe0000001;
}

static void wrong_bit(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.caps = 0;
	p->flip = NHCA_BTH_LEN + 60;
}

static void wrong_key(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.key ^= 0x100;
}

static void wrong_job(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.job++;
}

static void wrong_index(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.rcxt.index = PAIR_RCXTS;
}

static void wrong_owner(struct pair *p, struct pair_packet *pk)
{
	/* an rCxt of the pool that no channel owns */
	pk->hdr.rx.rcxt.index = PAIR_RCXTS - 1;
}

static void wrong_rcxt_key(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.rcxt.key ^= 0x80000000;
}

static void wrong_tid(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.tid = 4;
}

static void wrong_total(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.total += 4;
}

static void wrong_pvo(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.rx.pvo += 8;
}

static void wrong_kind(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.opcode = NHCA_RX_READ_DATA;
}

static void wrong_read_tid(struct pair *p, struct pair_packet *pk)
{
	pk->hdr.opcode = NHCA_RX_READ_DATA;
	pk->hdr.rx.tid = 6;
}

/* fields of all packets, in the order of the checks in Documentation/rcxt.rst */
static const struct wrong wrong_channel[] = {
	{ "QPN", DEVICE | NHCA_CNT_RX_NO_QP, wrong_qpn },
	{ "address", DEVICE | NHCA_CNT_RX_BAD_ADDR, wrong_daddr },
	{ "damaged", DEVICE | NHCA_CNT_RX_BAD_ICRC, wrong_bit },
	{ "channel key", NHCA_CH_DROP_KEY, wrong_key },
	{ "job", NHCA_CH_DROP_JOB, wrong_job },
	{}
};

/* fields of packets that name an rCxt */
static const struct wrong wrong_rcxt[] = {
	{ "rCxt index", NHCA_CH_DROP_NO_RCXT, wrong_index },
	{ "rCxt owner", NHCA_CH_DROP_NO_RCXT, wrong_owner },
	{ "rCxt key", NHCA_CH_DROP_RCXT_KEY, wrong_rcxt_key },
	{}
};

/* fields of payload of a write in progress */
static const struct wrong wrong_payload[] = {
	{ "tid", NHCA_CH_DROP_STALE, wrong_tid },
	{ "total", NHCA_CH_DROP_MISMATCH, wrong_total },
	{ "PVO", NHCA_CH_DROP_MISMATCH, wrong_pvo },
	{ "kind", NHCA_CH_DROP_MISMATCH, wrong_kind },
	{ "not requested", NHCA_CH_DROP_UNSOLICITED, wrong_read_tid },
	{}
};

static u64 count(struct chan *c, u32 which)
{
	if (which & DEVICE)
		return pair_dev_count(c->end, which & ~DEVICE);
	return chan_count(c, which);
}

/*
 * Deliver @pk to @c once for each row of @w, with the field of the row wrong. Afterwards @pk is
 * right again, and is still on the wire.
 */
static void refuse(struct kunit *test, struct chan *c, struct pair_packet *pk,
		   const struct wrong *w)
{
	u32 before = pair_count(test, 0), j;
	const struct nhca_hdr right = pk->hdr;
	const u32 daddr = pk->daddr;
	u64 counts[NHCA_CH_COUNTERS];
	struct pair *p = test->priv;
	u64 had;

	for (; w->name; w++) {
		w->spoil(p, pk);
		had = count(c, w->count);
		for (j = 0; j < NHCA_CH_COUNTERS; j++)
			counts[j] = chan_count(c, j);
		pair_rx(test, pk);
		KUNIT_EXPECT_EQ_MSG(test, count(c, w->count), had + 1, "%x: %s",
				    right.opcode, w->name);
		/* no other reason was counted */
		for (j = NHCA_CH_DROP_FIFO; j < NHCA_CH_COUNTERS; j++)
			KUNIT_EXPECT_EQ_MSG(test, chan_count(c, j) - counts[j], j == w->count,
					    "%x: %s: %u", right.opcode, w->name, j);
		KUNIT_EXPECT_EQ_MSG(test, pair_count(test, 0), before, "%x: %s", right.opcode,
				    w->name);
		KUNIT_EXPECT_TRUE_MSG(test, chan_idle(c), "%x: %s", right.opcode,
				      w->name);
		p->flip = -1;
		pk->hdr = right;
		pk->daddr = daddr;
	}
}

/*
 * A packet from another network namespace does not reach the channel.  The channel does not count
 * the packet, and the device does not count a wrong address.
 */
static void foreign_namespace(struct kunit *test, struct chan *c, struct pair_packet *pk)
{
	u64 came = chan_count(c, NHCA_CH_RECEIVED_PACKETS);
	u64 bad = pair_dev_count(c->end, NHCA_CNT_RX_BAD_ADDR);
	struct nhca_net *nn = c->end->dev->nn;

	c->end->dev->nn = NULL;
	pair_rx(test, pk);
	c->end->dev->nn = nn;
	KUNIT_EXPECT_TRUE(test, chan_idle(c));
	KUNIT_EXPECT_EQ(test, chan_count(c, NHCA_CH_RECEIVED_PACKETS), came);
	KUNIT_EXPECT_EQ(test, pair_dev_count(c->end, NHCA_CNT_RX_BAD_ADDR), bad);
}

/* Payload of a write is refused if one field is wrong. */
static void refuse_write(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	pair_fill(a->end->bytes, 2 * PAIR_SEG, 1);
	chan_transfer(a, NHCA_WR_CH_WRITE, 5, 2 * PAIR_SEG, BOTH);
	/* spoil the first packet of the write, and below the second packet */
	pk = pair_first(test, NHCA_RX_WRITE);
	refuse(test, b, pk, wrong_channel);
	refuse(test, b, pk, wrong_rcxt);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->tid, 0);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_WRITE);
	refuse(test, b, pk, wrong_channel);
	refuse(test, b, pk, wrong_rcxt);
	refuse(test, b, pk, wrong_payload);
	/* a packet to a multicast address */
	wrong_mcast(p, pk);
	pair_rx(test, pk);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	pk->daddr = PAIR_ADDR + 1;
	foreign_namespace(test, b, pk);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, PAIR_SEG));
	pair_settle(test);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, 2 * PAIR_SEG, 1));
	KUNIT_EXPECT_EQ(test, b->access, 0);
	/* @b refuses a write with the tid of a write that @b itself sends */
	chan_transfer(b, NHCA_WR_CH_WRITE, 6, 10, BOTH);
	chan_transfer(a, NHCA_WR_CH_WRITE, 6, 10, BOTH);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 1);
}

/* A message of packet mode needs all 64 bits of the channel key, and names no rCxt. */
static void refuse_message(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	chan_wqe(a, NHCA_WR_CH_PACKET);
	chan_bell(a);
	pk = pair_first(test, NHCA_RX_PACKET);
	refuse(test, b, pk, wrong_channel);
	pk->hdr.rx.rcxt.index ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_KEY), 2);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	pk->hdr.rx.rcxt.index ^= 1;
	pair_settle(test);
	chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
}

/* Requests, probes, fences, notices, statuses and challenges are refused if one field is wrong. */
static void refuse_others(struct kunit *test)
{
	static const u8 kinds[] = {
		NHCA_RX_READ_REQUEST, NHCA_RX_NOTICE, NHCA_RX_PROBE, NHCA_RX_STATUS, NHCA_RX_FENCE,
		NHCA_RX_READ_CHALLENGE, NHCA_RX_PROBE_CHALLENGE, NHCA_RX_HALF_REQUEST,
		NHCA_RX_FRAMES_REQUEST, NHCA_RX_FRAMES_CHALLENGE,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	u32 i;

	chan_transfer(a, NHCA_WR_CH_READ, 1, 10, BOTH);
	pk = pair_first(test, NHCA_RX_READ_REQUEST);
	/* only half-receive read requests and their challenges have this field */
	pk->hdr.rx.part = pk->hdr.rx.total;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		pk->hdr.opcode = kinds[i];
		refuse(test, b, pk, wrong_channel);
		refuse(test, b, pk, wrong_rcxt);
	}
}

/*
 * A notice is accepted only for the transfer that the rCxt has sent, if the transfer requested a
 * notice.
 */
static void refuse_notice(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk;

	chan_transfer(a, NHCA_WR_CH_WRITE, 5, 10, NHCA_NOTIFY_INITIATOR);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_NOTICE);
	pk->hdr.rx.tid = 4;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_STALE), 1);
	pk->hdr.rx.tid = 6;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	pk->hdr.rx.tid = 5;
	pk->hdr.rx.total = 11;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	pk->hdr.rx.total = 10;
	pair_rx(test, pk);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* ---- memory protection ---- */

/* Write @len bytes to @pvo of the peer with the next tid. Return: the counter of the refusal. */
static u32 violate(struct kunit *test, struct chan *a, u64 pvo, u32 len)
{
	struct chan *b = a->peer;
	struct nhca_channel_info info;
	struct nhca_rcxt_wr *wr = chan_wqe(a, NHCA_WR_CH_WRITE)->rcxt;

	wr->tid = a->posted + 1;
	wr->total = len;
	wr->length = len;
	wr->remote_pvo = pvo;
	wr->notify = BOTH;
	chan_bell(a);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_VIOLATED);
	KUNIT_EXPECT_EQ(test, b->access, a->posted);
	nhca_channel_query(b->ch, &info);
	KUNIT_EXPECT_EQ(test, info.violation_pvo, pvo);
	KUNIT_EXPECT_EQ(test, info.violation_tid, wr->tid);
	KUNIT_EXPECT_EQ(test, info.counters[info.violation], 1);
	return info.violation;
}

/* A write to a PVO that gives no access places nothing, and raises an event at the target. */
static void refuse_pvo(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u64 pvo = b->end->mem->pvo;
	struct nhca_job_mem *theirs;
	struct nhca_job *job;

	pair_fill(a->end->bytes, 100, 1);
	KUNIT_EXPECT_EQ(test, violate(test, a, pvo ^ BIT_ULL(63), 10), NHCA_CH_DROP_PVO_KEY);
	KUNIT_EXPECT_EQ(test, violate(test, a, pvo - 1, 10), NHCA_CH_DROP_PVO_RANGE);
	b->end->mem->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, violate(test, a, pvo, 10), NHCA_CH_DROP_PVO_ACCESS);
	b->end->mem->access = PAIR_ACCESS;
	nhca_range_clear(&b->end->mem->tces, 1, 1);
	KUNIT_EXPECT_EQ(test, violate(test, a, pvo + PAGE_SIZE, 10), NHCA_CH_DROP_PVO_PAGE);
	job = nhca_job_get(&init_net, PAIR_JOB + 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(job));
	theirs = nhca_job_mem_pages(job, &b->end->page, 1, 0, PAGE_SIZE, PAIR_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(theirs));
	KUNIT_EXPECT_EQ(test, violate(test, a, theirs->pvo, 10), NHCA_CH_DROP_PVO_JOB);
	nhca_job_mem_put(theirs);
	nhca_job_put(job);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	KUNIT_EXPECT_EQ(test, nhca_channel_state(b->ch), IB_QPS_RTS);
}

/* A channel of another job cannot write, even with the right keys and PVO. */
static void refuse_other_job(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan, *c;

	c = chan_make(test, &p->end[0], OTHERS, PAIR_JOB + 1);
	c->peer = b;
	/* nothing but the job is wrong */
	chan_transfer(c, NHCA_WR_CH_WRITE, 1, 0, BOTH);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_JOB), 1);
	/* the channel cannot send bytes of another job's memory either */
	chan_transfer(c, NHCA_WR_CH_WRITE, 2, 10, BOTH);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	chan_expect(test, c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, c, NHCA_WC_CH_LOCAL, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, c->ch->reason, NHCA_CH_ERR_LOCAL_PVO);
	KUNIT_EXPECT_EQ(test, c->fatal, 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* A channel in the error state drops all packets. */
static void refuse_in_error(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	local_bh_disable();
	nhca_channel_set_error(b->ch, NHCA_CH_ERR_MODIFIED);
	nhca_channel_set_error(b->ch, NHCA_CH_ERR_DEVICE);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, b->ch->reason, NHCA_CH_ERR_MODIFIED);
	KUNIT_EXPECT_EQ(test, b->fatal, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(b->ch), IB_QPS_ERR);
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 10, BOTH);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_ERROR), 1);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

static struct kunit_case rcxt_refuse_cases[] = {
	KUNIT_CASE(refuse_write),
	KUNIT_CASE(refuse_message),
	KUNIT_CASE(refuse_others),
	KUNIT_CASE(refuse_notice),
	KUNIT_CASE(refuse_pvo),
	KUNIT_CASE(refuse_other_job),
	KUNIT_CASE(refuse_in_error),
	{}
};

static struct kunit_suite rcxt_refuse_suite = {
	.name = "nhca_rcxt_refuse",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_refuse_cases,
};

kunit_test_suite(rcxt_refuse_suite);
