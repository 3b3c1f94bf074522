// SPDX-License-Identifier: GPL-2.0
/* late_channels.h describes these functions. */
#define _GNU_SOURCE
#include "late_channels.h"

const char * const ending_names[ALL_ENDINGS] = {
	"success", "flush", "reset", "destroy", "deregistration", "retries exceeded",
	"RNR retries exceeded", "remote access error", "deregistration under READs",
	"window closed under READs", "channel write, notice", "channel write, status",
	"channel write, no notice", "channel write, cancelled", "channel closed", "channel memory closed under reads",
};

static struct {
	struct channel c[2];	/* channels of the sender and of its peer */
	enum ending ending;
	uint32_t at[RCXTS], length[RCXTS], tid;
	bool returned[RCXTS];
} chans;

static void chan_reg(int which)
{
	struct channel *c = &chans.c[which];

	must(c->mem = nhcadv_reg_job_mem(sides[which].context, CH_JOB, c->buf, CH_MEMORY,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_WRITE));
	c->here.pvo = c->mem->pvo;
}

static void chan_open(int which)
{
	struct channel *c = &chans.c[which];
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	side_select(which);
	channel_make(c, CH_JOB, 64);
	c->buf = pages(CH_MEMORY);
	chan_reg(which);
	verb(nhcadv_acquire_rcxts(c->qp, c->here.rcxts, RCXTS));
	attr.grh = (struct ibv_global_route){ .dgid = theirs.gid, .sgid_index = gid_index,
					      .hop_limit = 64 };
	must(c->peer.ah = ibv_create_ah(pd, &attr));
}

static void chans_meet(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		chans.c[i].there = chans.c[!i].here;
		chans.c[i].peer.qpn = chans.c[i].there.qpn;
		chans.c[i].peer.key = chans.c[i].there.key;
	}
}

void channels_make(void)
{
	chan_open(0);
	chan_open(1);
	chans_meet();
}

/* Write @text to the peer's fault rules: "add ..." adds a rule, "clear" removes all. */
static void chan_faults(const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nhca/%s/faults", sides[1].name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) == EOF || fclose(f))
		die("%s: %s", path, text);
}

static struct nhcadv_transfer chan_transfer(uint32_t i)
{
	bool reads = chans.ending == CH_READ;
	struct channel *c = &chans.c[reads], *other = &chans.c[!reads];
	uint32_t segment = c->here.segment < other->here.segment ? c->here.segment :
			   other->here.segment;
	struct nhcadv_transfer t = {
		.cookie = i,
		.local_rcxt = c->here.rcxts[i], .remote_rcxt = other->here.rcxts[i],
		.local_pvo = c->here.pvo + i * SLOT, .remote_pvo = other->here.pvo + i * SLOT,
		.tid = chans.tid, .total = chans.length[i], .segment = segment,
		.notify = chans.ending == CH_POSTED || reads ? 0 : NHCADV_NOTIFY_INITIATOR,
	};

	/* the sender's bytes begin anywhere in their first page */
	if (reads)
		t.remote_pvo += chans.at[i];
	else
		t.local_pvo += chans.at[i];
	return t;
}

static void chan_post(uint32_t i)
{
	struct nhcadv_transfer t = chan_transfer(i);
	bool reads = chans.ending == CH_READ;
	struct channel *c = &chans.c[reads];

	start(c, i, chans.ending == CH_POSTED ? IBV_SEND_SIGNALED : 0);
	if (reads)
		nhcadv_wr_read(c->dv, &c->peer, &t);
	else
		nhcadv_wr_write(c->dv, &c->peer, &t);
	verb(ibv_wr_complete(c->qpx));
}

static void chan_returned(uint32_t i)
{
	if (chans.returned[i])
		return;
	chans.returned[i] = true;
	overwrite(chans.c[0].buf + i * SLOT + chans.at[i], chans.length[i], chans.ending);
}

static void chan_cancel(uint32_t i)
{
	struct channel *c = &chans.c[0];
	struct done d;

	start(c, 1000 + i, IBV_SEND_SIGNALED);
	nhcadv_wr_cancel(c->dv, c->here.rcxts[i], chans.tid);
	verb(ibv_wr_complete(c->qpx));
	do {
		d = wait_done(c->scq, "a cancel");
		if (d.wr_id < RCXTS)
			chan_returned(d.wr_id);
	} while (d.wr_id != 1000 + i);
	chan_returned(i);
}

/* Cancel the transfers that are still open: their packets or notices may have been lost. */
static void chan_cancel_rest(void)
{
	uint32_t i;

	chans.ending = CH_CANCEL;
	for (i = 0; i < RCXTS; i++)
		if (!chans.returned[i])
			chan_cancel(i);
}

/*
 * Probe all open transfers for which the send FIFO has room. On a slow netdev earlier probes may
 * still be in the FIFO.
 */
static void chan_probe(struct channel *c)
{
	struct nhcadv_transfer t;
	uint32_t i;
	int err;

	for (i = 0; i < RCXTS; i++) {
		if (chans.returned[i])
			continue;
		t = chan_transfer(i);
		start(c, 1000, 0);
		nhcadv_wr_probe(c->dv, &c->peer, &t, 0);
		err = ibv_wr_complete(c->qpx);
		if (err == ENOMEM)
			return;
		verb(err);
	}
}

/*
 * A fault rule drops the peer's notices, so probe which transfers are complete.  After 3 s cancel
 * the others.
 */
static void chan_ask(void)
{
	uint64_t end = now_ns() + 3000000000ULL, asked = 0;
	struct channel *c = &chans.c[0];
	const struct nhcadv_frame *f;
	uint32_t left = RCXTS, i;
	struct done d;

	while (left && now_ns() < end) {
		if (now_ns() - asked > 3000000) {
			asked = now_ns();
			chan_probe(c);
		}
		if (poll_done(c->scq, &d) && d.wr_id < RCXTS)
			die("the notice of write %u was not lost", (unsigned int)d.wr_id);
		if (!poll_done(c->rcq, &d))
			continue;
		f = nhcadv_frame(c->qp, d.frame);
		must(f);
		i = f->cookie;
		if (f->status == NHCADV_TRANSFER_COMPLETE && !chans.returned[i]) {
			chan_returned(i);
			left--;
		}
		verb(nhcadv_release_frame(c->qp, d.frame));
	}
	chan_faults("clear");
	if (left)
		chan_cancel_rest();
}

/*
 * Wait 100 ms for the completions of transfers, and then cancel the transfers that are still open,
 * because a notice may be lost.  With CH_POSTED there are no notices: wait 10 s for the completions
 * of the work requests, none of which can be lost.
 */
static void chan_wait(void)
{
	uint64_t end = now_ns() + 100000000ULL * (chans.ending == CH_POSTED ? 100 : 1);
	uint32_t left = RCXTS;
	struct done d;

	while (left && now_ns() < end)
		if (poll_done(chans.c[0].scq, &d)) {
			chan_returned(d.wr_id);
			left--;
		}
	if (left)
		chan_cancel_rest();
}

static void chan_end(void)
{
	struct channel *c = &chans.c[0];
	uint32_t i;

	switch (chans.ending) {
	case CH_STATUS:
		chan_ask();
		break;
	case CH_CANCEL:
		for (i = 0; i < RCXTS; i++)
			chan_cancel(i);
		break;
	case CH_CLOSE:
		verb(ibv_destroy_qp(c->qp));
		for (i = 0; i < RCXTS; i++)
			chan_returned(i);
		break;
	case CH_READ:
		verb(nhcadv_dereg_job_mem(c->mem));
		for (i = 0; i < RCXTS; i++)
			chan_returned(i);
		chan_reg(0);
		break;
	default:
		chan_wait();
	}
}

void channels_batch(void)
{
	uint32_t i;

	chans.ending = CH_NOTICE + rnd() % (ALL_ENDINGS - CH_NOTICE);
	chans.tid++;
	if (chans.ending == CH_STATUS)
		chan_faults("add drop send opcode rcxt_notice");
	memset(chans.c[1].buf, 0, CH_MEMORY);
	for (i = 0; i < RCXTS; i++) {
		chans.at[i] = rnd() % 4096;
		chans.length[i] = SHORTEST + rnd() % (LONGEST - SHORTEST);
		chans.returned[i] = false;
		memset(chans.c[0].buf + i * SLOT + chans.at[i], 1 + rnd() % 0x7f, chans.length[i]);
		chan_post(i);
	}
	chan_end();
}

/*
 * Count the late bytes of a batch.  Then make new channels, so that no byte of this batch can
 * arrive in the next.
 */
void channels_check(void)
{
	struct channel *c;
	uint32_t i;

	for (i = 0; i < RCXTS; i++)
		late_at_peer(count_poison(chans.c[1].buf + i * SLOT, SLOT), chans.ending);
	for (i = 0; i < 2; i++) {
		c = &chans.c[i];
		if (i || chans.ending != CH_CLOSE)
			verb(ibv_destroy_qp(c->qp));
		verb(ibv_destroy_cq(ibv_cq_ex_to_cq(c->scq)));
		verb(ibv_destroy_cq(ibv_cq_ex_to_cq(c->rcq)));
		verb(ibv_destroy_comp_channel(c->events));
		verb(nhcadv_dereg_job_mem(c->mem));
		verb(ibv_destroy_ah(c->peer.ah));
		free(c->buf);
	}
	chans.tid = 0;
	channels_make();
}
