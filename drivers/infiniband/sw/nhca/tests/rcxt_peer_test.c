// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: two channels that write and read on a network that loses, repeats, reorders and damages
 * packets. Their programs probe and retransmit. Each transfer places exactly its bytes, and each
 * side gets at most one completion of it.
 */
#include <linux/prandom.h>

#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define TRANSFERS	150
#define SLOT		16384u		/* bytes of memory for each of the slots of an end */
#define STEPS		100000u		/* maximum steps of a test */

/**
 * struct job - what the program of one end does on one rCxt
 * @opcode: NHCA_WR_CH_WRITE or NHCA_WR_CH_READ; 0: nothing
 * @tid:    tid of the transfer
 * @total:  bytes of the transfer
 * @segment: payload of the transfer's packets, in bytes
 * @seed:   seed of the transfer's bytes
 * @mine:   number of completions of the initiator
 * @theirs: number of completions of the target
 * @told:   a status has said that the write is complete
 */
struct job {
	u8 opcode;
	u32 tid;
	u32 total;
	u32 segment;
	u32 seed;
	u32 mine;
	u32 theirs;
	bool told;
};

/**
 * struct net_model - the network and the programs
 * @rnd:   source of all decisions
 * @loss:  packets in 1000 that are lost; as many are repeated, as many reordered, as many damaged
 * @jobs:  by end and rCxt: end 0 uses the rCxts 0 and 1 of both ends, end 1 uses the other rCxts
 * @tids:  last tid of each rCxt
 * @begun: number of transfers
 * @done:  number of transfers that are complete
 */
struct net_model {
	struct rnd_state rnd;
	u32 loss;
	struct job jobs[2][CHAN_IDS];
	u32 tids[CHAN_IDS];
	u32 begun;
	u32 done;
};

static struct net_model *model;

static u32 rnd(u32 below)
{
	return prandom_u32_state(&model->rnd) % below;
}

/*
 * Return: offset of the slot of rCxt @i in the memory of its initiator or, if @target, of its
 * target.
 */
static u32 slot_at(u32 i, bool target)
{
	return (2 * i + target) * SLOT;
}

/* Return: the first byte of the source or destination of @j, on rCxt @i of end @e. */
static u8 *bytes_of(struct pair *p, u32 e, u32 i, const struct job *j, bool destination)
{
	bool target = (j->opcode == NHCA_WR_CH_WRITE) == destination;

	return p->end[target ? !e : e].bytes + slot_at(i, target);
}

/* Fill in a work request of @j with @opcode. */
static struct nhca_rcxt_wr *request(struct pair *p, u32 e, u32 i, const struct job *j, u8 opcode)
{
	struct chan *c = p->end[e].chan;
	struct nhca_send_wqe *wqe = chan_wqe(c, opcode);

	wqe->chan.local_rcxt = c->ids[i];
	wqe->chan.remote_rcxt = c->peer->ids[i];
	wqe->flags = 0;
	wqe->rcxt[0].tid = j->tid;
	wqe->rcxt[0].total = j->total;
	wqe->rcxt[0].segment = j->segment;
	wqe->rcxt[0].local_pvo += slot_at(i, false);
	wqe->rcxt[0].remote_pvo += slot_at(i, true);
	wqe->rcxt[0].notify = opcode == NHCA_WR_CH_PROBE ? 0 : BOTH;
	return wqe->rcxt;
}

static void transfer(struct pair *p, u32 e, u32 i, struct job *j)
{
	struct nhca_rcxt_wr *wr;

	j->tid = ++model->tids[i];
	wr = request(p, e, i, j, j->opcode);
	wr->length = j->opcode == NHCA_WR_CH_WRITE ? j->total : 0;
	chan_bell(p->end[e].chan);
}

static void begin(struct pair *p, u32 e, u32 i)
{
	static const u32 segments[] = { 64, 256, PAIR_SEG };
	struct job *j = &model->jobs[e][i];

	*j = (struct job) {
		.opcode = rnd(2) ? NHCA_WR_CH_WRITE : NHCA_WR_CH_READ,
		.segment = segments[rnd(3)],
		.total = rnd(8) ? rnd(SLOT / 2) : rnd(65),
		.seed = model->begun++,
	};
	/*
	 * a read cannot be retransmitted, so with many packets it would hardly ever succeed on a
	 * bad network
	 */
	if (j->opcode == NHCA_WR_CH_READ)
		j->total %= 4 * j->segment + 1;
	pair_fill(bytes_of(p, e, i, j, false), j->total, j->seed);
	memset(bytes_of(p, e, i, j, true), 0, SLOT);
	transfer(p, e, i, j);
}

/*
 * A transfer has not completed although no packet is on the wire. The program of a read starts the
 * read again with another tid. The program of a write sends a probe.
 */
static void ask(struct pair *p, u32 e, u32 i)
{
	struct job *j = &model->jobs[e][i];

	if (j->opcode == NHCA_WR_CH_READ) {
		transfer(p, e, i, j);
	} else {
		request(p, e, i, j, NHCA_WR_CH_PROBE)->length = 0;
		chan_bell(p->end[e].chan);
	}
}

/* Retransmit the packets that a status reports as missing. */
static void again(struct kunit *test, struct pair *p, u32 e, u32 i, const struct nhca_frame *frame)
{
	struct chan *c = p->end[e].chan;
	struct job *j = &model->jobs[e][i];
	struct nhca_rcxt_wr *wr;
	u32 n;

	if (frame->tid != j->tid || !j->opcode)
		return;
	if (frame->status == NHCA_TRANSFER_COMPLETE) {
		/* the notice was lost or is late, and the status replaces it */
		j->told = true;
		return;
	}
	KUNIT_ASSERT_TRUE(test, frame->status == NHCA_TRANSFER_PARTIAL ||
			  frame->status == NHCA_TRANSFER_NONE);
	for (n = 0; n < nhca_rcxt_packets(j->total, j->segment); n++) {
		if (frame->status == NHCA_TRANSFER_PARTIAL && frame->data[n / 8] >> n % 8 & 1)
			continue;
		/*
		 * stop if the send FIFO is full: retransmissions wait while packets refer to the
		 * pages of a write whose notice has arrived
		 */
		if (c->posted - c->ch->sq.hdr->cons == nhca_ring_entries(&c->ch->sq))
			return;
		wr = request(p, e, i, j, NHCA_WR_CH_WRITE);
		wr->flags = NHCA_RCXT_WR_RETRANSMIT;
		wr->offset = n * j->segment;
		wr->length = nhca_rcxt_packet_len(j->total, j->segment, wr->offset);
		chan_bell(c);
	}
}

/* Return: index of the rCxt of @c whose id a completion or frame has. */
static u32 which(struct kunit *test, struct chan *c, u64 id)
{
	u32 i;

	for (i = 0; i < CHAN_IDS; i++)
		if (c->ids[i] == id)
			return i;
	KUNIT_FAIL(test, "unknown rCxt %llx", id);
	return 0;
}

static void completed(struct kunit *test, u32 e, const struct nhca_cqe *cqe)
{
	struct pair *p = test->priv;
	struct chan *c = p->end[e].chan;
	u32 i = which(test, c, NHCA_RCXT_ID(cqe->chan.rcxt_index, cqe->chan.rcxt_key));
	bool mine = cqe->opcode == NHCA_WC_CH_WRITE || cqe->opcode == NHCA_WC_CH_READ;
	struct job *j = &model->jobs[mine ? e : !e][i];
	u8 *to;

	if (cqe->opcode == NHCA_WC_CH_FRAME) {
		again(test, p, e, i, nhca_ring_slot(&c->ch->fifo.ring, cqe->chan.frame));
		nhca_ring_release(&c->ch->fifo.ring, cqe->chan.frame + 1);
		return;
	}
	KUNIT_ASSERT_EQ(test, cqe->status, IB_WC_SUCCESS);
	/* the completion of an earlier transfer, or of a read that the program has started again */
	if (cqe->chan.tid != j->tid)
		return;
	KUNIT_ASSERT_EQ(test, cqe->byte_len, j->total);
	KUNIT_ASSERT_LE(test, mine ? ++j->mine : ++j->theirs, 1);
	if (cqe->opcode != NHCA_WC_CH_READ && cqe->opcode != NHCA_WC_CH_REMOTE_WRITE)
		return;
	to = bytes_of(p, mine ? e : !e, i, j, true);
	KUNIT_ASSERT_TRUE(test, pair_is(to, j->total, j->seed));
	KUNIT_ASSERT_NULL(test, memchr_inv(to + j->total, 0, SLOT - j->total));
}

/* Take the first or second packet from the wire: damage, deliver, repeat or drop it. */
static void carry(struct kunit *test)
{
	struct pair *p = test->priv;
	struct pair_packet *pk = list_first_entry(&p->wire, struct pair_packet, list);

	if (rnd(1000) < model->loss) {
		list_move_tail(&pk->list, &p->wire);
		pk = list_first_entry(&p->wire, struct pair_packet, list);
	}
	if (rnd(1000) < model->loss) {
		/* give the packet an ICRC, which is wrong after the flip */
		pk->hdr.caps = 0;
		p->flip = NHCA_BTH_LEN + rnd(NHCA_RXETH_LEN);
		pair_rx(test, pk);
		p->flip = -1;
		pair_drop(pk);
		return;
	}
	if (rnd(1000) >= model->loss)
		pair_rx(test, pk);
	if (rnd(1000) < model->loss)
		pair_rx(test, pk);
	pair_drop(pk);
}

/*
 * The program of end @e on rCxt @i: end the transfer, begin another one, or call ask(). @quiet: the
 * wire is empty.
 */
static void program(struct kunit *test, u32 e, u32 i, bool quiet)
{
	struct job *j = &model->jobs[e][i];

	if (j->opcode && (j->mine || j->told)) {
		/* the target of a write has its completion before it sends a notice or status */
		if (j->opcode == NHCA_WR_CH_WRITE)
			KUNIT_ASSERT_EQ(test, j->theirs, 1);
		model->done++;
		j->opcode = 0;
	}
	if (!j->opcode && model->begun < TRANSFERS)
		begin(test->priv, e, i);
	else if (j->opcode && quiet)
		ask(test->priv, e, i);
}

static bool step(struct kunit *test)
{
	struct pair *p = test->priv;
	bool quiet = list_empty(&p->wire);
	struct nhca_cqe cqe;
	u32 e, i;

	if (!quiet)
		carry(test);
	for (e = 0; e < 2; e++)
		while (chan_poll(p->end[e].chan, false, &cqe) ||
		       chan_poll(p->end[e].chan, true, &cqe))
			completed(test, e, &cqe);
	for (i = 0; i < CHAN_IDS; i++)
		program(test, i / 2, i, quiet);
	return model->done < TRANSFERS;
}

static void run(struct kunit *test, u64 seed, u32 loss, u32 batch, bool zcopy)
{
	struct pair *p = test->priv;
	u32 steps = 0, i;
	u64 dropped;

	model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, model);
	prandom_seed_state(&model->rnd, seed);
	model->loss = loss;
	p->batch = batch;
	p->zcopy = zcopy;
	while (steps++ < STEPS && step(test))
		;
	KUNIT_EXPECT_EQ(test, model->done, TRANSFERS);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(p->end[0].chan->ch), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(p->end[1].chan->ch), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, p->end[0].chan->access + p->end[1].chan->access, 0);
	dropped = chan_count(p->end[0].chan, NHCA_CH_DROP_DUPLICATE) +
		  chan_count(p->end[1].chan, NHCA_CH_DROP_DUPLICATE);
	KUNIT_EXPECT_EQ(test, dropped > 0, loss > 0);
	KUNIT_EXPECT_TRUE(test, pair_clear(&p->end[0], 0, 2 * CHAN_IDS * SLOT));
	KUNIT_EXPECT_TRUE(test, pair_clear(&p->end[1], 0, 2 * CHAN_IDS * SLOT));
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, atomic_long_read(&p->end[i].dev->rcxt->pool.map_bytes), 0);
}

static void perfect_network(struct kunit *test)
{
	run(test, 1, 0, 0, false);
}

static void lossy_network(struct kunit *test)
{
	run(test, 2, 30, 0, false);
}

/* Batches are lost, repeated and reordered as a whole. */
static void batches_network(struct kunit *test)
{
	run(test, 3, 30, 8, true);
}

static void bad_network(struct kunit *test)
{
	run(test, 4, 150, 0, true);
}

static struct kunit_case rcxt_peer_cases[] = {
	KUNIT_CASE(perfect_network),
	KUNIT_CASE(lossy_network),
	KUNIT_CASE(batches_network),
	KUNIT_CASE(bad_network),
	{}
};

static struct kunit_suite rcxt_peer_suite = {
	.name = "nhca_rcxt_peer",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_peer_cases,
};

kunit_test_suite(rcxt_peer_suite);
