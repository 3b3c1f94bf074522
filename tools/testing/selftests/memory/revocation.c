// SPDX-License-Identifier: GPL-2.0
/*
 * purpose: when an invalidation has completed, no byte moves through the old key any more.
 *
 *   owner: revocation [options]          peer: revocation [options] HOST
 *
 * On each of several queue pairs (lanes) the peer writes or reads without pause through a key of
 * the owner. At a random moment the owner, or a SEND with Invalidate of the peer, invalidates the
 * key. As soon as the invalidation completes, the owner fills the memory with its own bytes. The
 * peer's bytes have the top bit clear, and the owner's have it set. So the owner detects each late
 * byte of the peer, and a reading peer detects that it got a byte of the owner. The owner compares
 * the memory some microseconds later. The owner compares the memory again before it opens the next
 * key, after the peer has got its error and has reset its queue pair.
 *
 * All words of a WRITE have one value, and the next WRITE has another value.  First and last word
 * differ if the invalidation came in the middle of a WRITE.  With -x the owner takes its memory too
 * early, which the test must detect.  Options: see usage() in revocation_common.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "revocation.h"

/* ---- the owner ---- */

static int granted(void)
{
	return opt.reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* Post a request of the owner and spin for its completion. */
static enum ibv_wc_status local(struct ibv_qp *qp, struct ibv_send_wr *wr, const char *what)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	verb(ibv_post_send(qp, wr, &bad));
	return wait_wc(inv_cq, what).status;
}

static void new_window(struct lane *lane)
{
	if (lane->mw)
		verb(ibv_dealloc_mw(lane->mw));
	lane->mw = ibv_alloc_mw(pd, opt.mode == MW1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (!lane->mw)
		die("no window: %s", strerror(errno));
}

static void bind_type1(struct lane *lane, uint8_t *start, uint32_t length)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = {
		.mr = length || rxe ? lane->mr : NULL,
		.addr = (uintptr_t)start, .length = length,
		.mw_access_flags = length ? granted() : 0 } };

	verb(ibv_bind_mw(spare, lane->mw, &bind));
	wait_success(inv_cq, "ibv_bind_mw");
	lane->key = lane->mw->rkey;
}

static void bind_type2(struct lane *lane)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .bind_mw = {
		.mw = lane->mw, .rkey = ibv_inc_rkey(lane->mw->rkey), .bind_info = {
			.mr = lane->mr, .addr = (uintptr_t)lane->start, .length = opt.size,
			.mw_access_flags = granted() } } };
	enum ibv_wc_status status = local(lane->qp, &wr, "IBV_WR_BIND_MW");

	if (status)
		die("bind of a type 2 window: %s", ibv_wc_status_str(status));
	lane->mw->rkey = wr.bind_mw.rkey;
	lane->key = lane->mw->rkey;
}

static void open_region(struct lane *lane)
{
	if (opt.mode == REREG && lane->mr) {
		/* the pages and the key are the same, only the rights are restored */
		verb(ibv_rereg_mr(lane->mr, IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE | granted()));
	} else {
		lane->mr = ibv_reg_mr(pd, lane->start, opt.size,
				      IBV_ACCESS_LOCAL_WRITE | granted());
		must(lane->mr);
	}
	lane->key = lane->mr->rkey;
}

static void post_notice(struct lane *lane)
{
	struct ibv_recv_wr wr = { .wr_id = lane - lanes }, *bad;

	if (opt.mode == SEND_INV)
		verb(ibv_post_recv(lane->qp, &wr, &bad));
}

static uint8_t *other_half(const struct lane *lane)
{
	return lane->half == lane->buf ? lane->buf + half_size : lane->buf;
}

static uint8_t *shifted(uint8_t *half)
{
	return half + rnd() % (2 * AROUND);
}

/* Open a new key to memory with known bytes, and let the peer begin. */
static void open_key(uint32_t l)
{
	struct lane *lane = &lanes[l];
	struct message m = { .kind = GO, .lane = l, .size = opt.size, .round = lane->round };

	if (lane->next_start) {
		lane->half = lane->next_half;
		lane->start = lane->next_start;
	} else if (opt.mode != REREG || !lane->mr) {
		lane->half = other_half(lane);
		lane->start = shifted(lane->half);
	}
	if (opt.reads) {
		lane->fill = 1 + rnd() % (TOP - 1);
		memset(lane->half, lane->fill, half_size);
	}
	switch (opt.mode) {
	case MW1:
		if (!lane->next_start)
			bind_type1(lane, lane->start, opt.size);
		break;
	case MW2:
	case SEND_INV:
		bind_type2(lane);
		break;
	default:
		open_region(lane);
	}
	lane->first = *lane->start;
	lane->state = OPEN;
	lane->moving = opt.reads || rnd() % 8 == 0;
	lane->due = now_ns() + rnd() % span;
	m.key = lane->key;
	m.addr = (uintptr_t)lane->start;
	m.fill = lane->fill;
	say(&m);
}

static void take_memory(struct lane *lane)
{
	lane->fill = TOP | rnd();
	memset(lane->half, lane->fill, half_size);
}

/* Invalidate the key, and wait until the invalidation has completed. */
static void close_key(struct lane *lane)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = lane->key };
	enum ibv_wc_status status;

	switch (opt.mode) {
	case MW1:
		lane->next_start = NULL;
		if (opt.early || rnd() % 3 == 0) {
			bind_type1(lane, NULL, 0);
			break;
		}
		/* the bind that closes the key opens a new key to the same or other bytes */
		lane->next_half = rnd() % 2 ? lane->half : other_half(lane);
		lane->next_start = lane->next_half == lane->half ? lane->start :
				   shifted(lane->next_half);
		bind_type1(lane, lane->next_start, opt.size);
		break;
	case MW2:
		status = local(lane->qp, &wr, "IBV_WR_LOCAL_INV");
		if (status) {
			if (ours.flushed++ < SHOWN)
				printf("# lane %u: invalidation: %s\n", (uint32_t)(lane - lanes),
				       ibv_wc_status_str(status));
			new_window(lane);
		}
		break;
	case DEREG:
		verb(ibv_dereg_mr(lane->mr));
		break;
	case REREG:
		verb(ibv_rereg_mr(lane->mr, IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE));
		break;
	default:
		break;
	}
}

/*
 * Return: true if the first and the last word in memory belong to different WRITEs, so the
 * invalidation came in the middle of a WRITE.
 */
static bool caught(const struct lane *lane)
{
	return !opt.reads && opt.size >= 16 &&
	       memcmp(lane->start, lane->start + opt.size - 8, 8);
}

static void reuse(struct lane *lane)
{
	ours.middle += caught(lane);
	take_memory(lane);
	lane->state = CLOSED;
	lane->due = now_ns() + rnd() % 60000;
	ours.rounds++;
}

static void invalidate(struct lane *lane)
{
	if (opt.early) {
		take_memory(lane);
		usleep(rnd() % 20000);
	}
	close_key(lane);
	if (!opt.early) {
		reuse(lane);
		return;
	}
	lane->state = CLOSED;
	lane->due = now_ns() + rnd() % 60000;
	ours.rounds++;
}

static void compare(uint32_t l, const char *what)
{
	struct lane *lane = &lanes[l];
	long at = differs(lane->half, half_size, lane->fill);

	if (at >= 0) {
		violation(what, l, at - (lane->start - lane->half), lane->half[at]);
		memset(lane->half, lane->fill, half_size);
	}
	ours.bytes += half_size;
}

static void owner_ready(const struct message *m)
{
	struct lane *lane = &lanes[m->lane];

	if (m->round != lane->round || lane->state == DONE)
		die("lane %u: the peer has finished round %u, not round %u", m->lane, m->round,
		    lane->round);
	if (lane->state == OPEN) {
		ours.spurious++;
		if (opt.mode == SEND_INV)
			new_window(lane);
		else
			close_key(lane);
		reuse(lane);
	}
	compare(m->lane, "before the next round");
	/* aim at invalidations during the second message */
	if (m->completed < 1 && span < 1000000000)
		span += span / 4;
	else if (m->completed > 2 && span > 10000)
		span -= span / 4;
	if (++lane->number == opt.rounds / opt.lanes) {
		lane->state = DONE;
		done_lanes++;
		return;
	}
	lane->round++;
	qp_again(lane->qp);
	post_notice(lane);
	qp_connect(lane->qp, lane->peer_qpn, psn(false, m->lane, lane->round),
		   psn(true, m->lane, lane->round));
	open_key(m->lane);
}

static bool notices(void)
{
	struct lane *lane;
	struct ibv_wc wc;

	if (opt.mode != SEND_INV || ibv_poll_cq(work_cq, 1, &wc) < 1)
		return false;
	lane = &lanes[wc.wr_id];
	/* no SEND with Invalidate has arrived, because the peer's queue pair failed before */
	if (wc.status == IBV_WC_WR_FLUSH_ERR)
		return true;
	if (wc.status || !(wc.wc_flags & (rxe ? 0xff : IBV_WC_WITH_INV)) ||
	    wc.invalidated_rkey != lane->key)
		die("lane %u: SEND with invalidate: %s, flags %x, key %x, not %x",
		    (uint32_t)wc.wr_id, ibv_wc_status_str(wc.status), wc.wc_flags,
		    wc.invalidated_rkey, lane->key);
	if (opt.early) {
		lane->state = CLOSED;
		lane->due = now_ns();
		ours.rounds++;
	} else {
		reuse(lane);
	}
	return true;
}

static bool owner_step(uint32_t l, uint64_t now)
{
	struct lane *lane = &lanes[l];

	switch (lane->state) {
	case OPEN:
		if (!lane->moving && *(volatile uint8_t *)lane->start != lane->first) {
			lane->moving = true;
			lane->due = now + rnd() % span;
			if (opt.early && opt.mode == SEND_INV)
				take_memory(lane);
			return true;
		}
		if (opt.mode == SEND_INV || !lane->moving || now < lane->due)
			return false;
		invalidate(lane);
		return true;
	case CLOSED:
		if (now < lane->due)
			return false;
		compare(l, "soon after the completion");
		lane->state = CHECKED;
		return true;
	default:
		return false;
	}
}

/* ---- the peer ---- */

static void post_work(uint32_t l)
{
	struct lane *lane = &lanes[l];
	uint32_t slot = lane->posted % SLOTS;
	uint8_t *at = lane->buf + (size_t)slot * opt.size;
	struct ibv_sge sge = { (uintptr_t)at, opt.size, lane->slots->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)l << 32 | slot, .sg_list = &sge, .num_sge = 1,
		.opcode = opt.reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { lane->go.addr, lane->go.key },
	}, *bad;
	struct ibv_send_wr inv = { .wr_id = (uint64_t)l << 32 | SLOTS,
				   .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
				   .invalidate_rkey = lane->go.key };

	if (opt.mode == SEND_INV && lane->posted == lane->inv_at) {
		verb(ibv_post_send(lane->qp, &inv, &bad));
		lane->flying++;
	}
	if (opt.reads) {
		*at = 0;
		at[opt.size - 1] = 0;
	}
	verb(ibv_post_send(lane->qp, &wr, &bad));
	lane->flying++;
	lane->posted++;
}

static void peer_go(const struct message *m)
{
	struct lane *lane = &lanes[m->lane];
	uint64_t value, i;
	uint32_t slot;

	lane->go = *m;
	lane->round = m->round;
	lane->posted = 0;
	lane->completed = 0;
	lane->error = false;
	lane->inv_at = rnd() % (2 * SLOTS);
	for (slot = 0; slot < SLOTS && !opt.reads; slot++) {
		value = mix(m->round * SLOTS + slot + 1) & 0x7f7f7f7f7f7f7f7fULL;
		for (i = 0; i + 8 <= opt.size; i += 8)
			memcpy(lane->buf + slot * opt.size + i, &value, 8);
		memcpy(lane->buf + slot * opt.size + i, &value, opt.size % 8);
	}
	for (slot = 0; slot < SLOTS; slot++)
		post_work(m->lane);
}

static void check_read(uint32_t l, uint32_t slot, bool whole)
{
	const uint8_t *at = lanes[l].buf + (size_t)slot * opt.size;
	uint8_t seen = 0;
	uint64_t value;
	uint32_t i;

	ours.bytes += opt.size;
	if (whole && differs(at, opt.size, lanes[l].go.fill) < 0)
		return;
	for (i = 0; i + 8 <= opt.size && !(seen & TOP); i += 8) {
		memcpy(&value, at + i, 8);
		seen |= value & 0x8080808080808080ULL ? TOP : 0;
	}
	for (i = 0; i < opt.size % 8; i++)
		seen |= at[opt.size - 1 - i];
	if (seen & TOP) {
		for (i = 0; !(at[i] & TOP); i++)
			;
		violation(whole ? "a READ got bytes from after the invalidation" :
			  "a refused READ got bytes from after the invalidation", l, i, at[i]);
		memset(lanes[l].buf + (size_t)slot * opt.size, 0, opt.size);
	} else if (whole) {
		ours.torn++;
	} else if (at[0] && !at[opt.size - 1]) {
		ours.middle++;
	}
}

static void peer_again(uint32_t l)
{
	struct lane *lane = &lanes[l];
	struct message m = { .kind = READY, .lane = l, .round = lane->round,
			     .completed = lane->completed };

	qp_again(lane->qp);
	qp_connect(lane->qp, lane->peer_qpn, psn(true, l, lane->round + 1),
		   psn(false, l, lane->round + 1));
	ours.rounds++;
	say(&m);
}

static bool peer_work(void)
{
	uint32_t l, slot;
	struct lane *lane;
	struct ibv_wc wc;

	if (ibv_poll_cq(work_cq, 1, &wc) < 1)
		return false;
	l = wc.wr_id >> 32;
	slot = (uint32_t)wc.wr_id;
	lane = &lanes[l];
	lane->flying--;
	if (!wc.status) {
		if (slot == SLOTS)
			return true;
		ours.messages++;
		lane->completed++;
		if (opt.reads)
			check_read(l, slot, true);
		if (!lane->error)
			post_work(l);
		return true;
	}
	if (!lane->error) {
		lane->error = true;
		if (wc.status == IBV_WC_REM_ACCESS_ERR) {
			ours.refused++;
		} else {
			ours.wrong_status++;
			if (shown++ < SHOWN)
				printf("# lane %u round %u: %s instead of a remote access error\n",
				       l, lane->round, ibv_wc_status_str(wc.status));
		}
	} else if (wc.status != IBV_WC_WR_FLUSH_ERR) {
		ours.wrong_status++;
	}
	if (opt.reads && slot < SLOTS)
		check_read(l, slot, false);
	if (!lane->flying)
		peer_again(l);
	return true;
}

/* ---- both ---- */

static void make_lane(uint32_t l)
{
	struct lane *lane = &lanes[l];
	bool windows = opt.mode <= SEND_INV;

	lane->qp = peer_host ? qp_make(IBV_QPT_RC, work_cq, work_cq, SLOTS + 2, 1) :
			       qp_make(IBV_QPT_RC, inv_cq, work_cq, 4, 2);
	if (peer_host) {
		lane->buf = pages((size_t)SLOTS * opt.size);
		lane->slots = ibv_reg_mr(pd, lane->buf, (size_t)SLOTS * opt.size,
					 IBV_ACCESS_LOCAL_WRITE);
		must(lane->slots);
		return;
	}
	lane->buf = pages(2 * half_size);
	lane->half = lane->buf;
	take_memory(lane);
	memset(lane->buf, lane->fill, 2 * half_size);
	if (windows) {
		lane->mr = ibv_reg_mr(pd, lane->buf, 2 * half_size,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		must(lane->mr);
		new_window(lane);
	}
}

static uint32_t their_qpn(const struct ibv_qp *qp)
{
	uint32_t qpn;

	exchange(&qp->qp_num, &qpn, sizeof(qpn));
	return qpn;
}

static void make_all(void)
{
	uint32_t l, i;

	half_size = (opt.size + 2 * AROUND + 4095) & ~4095UL;
	control_cq = ibv_create_cq(context, 8 * opt.lanes + 64, NULL, NULL, 0);
	work_cq = ibv_create_cq(context, 8 * opt.lanes + 64, NULL, NULL, 0);
	inv_cq = ibv_create_cq(context, 8 * opt.lanes + 64, NULL, NULL, 0);
	must(control_cq && work_cq && inv_cq);
	control = qp_make(IBV_QPT_RC, control_cq, control_cq, 2 * opt.lanes + 4, opt.lanes + 4);
	spare = qp_make(IBV_QPT_RC, inv_cq, inv_cq, 4, 1);
	inbox = pages(64 * (opt.lanes + 4));
	inbox_mr = ibv_reg_mr(pd, inbox, 64 * (opt.lanes + 4), IBV_ACCESS_LOCAL_WRITE);
	must(inbox_mr);
	lanes = calloc(opt.lanes, sizeof(*lanes));
	must(lanes);
	for (l = 0; l < opt.lanes; l++) {
		make_lane(l);
		lanes[l].peer_qpn = their_qpn(lanes[l].qp);
		qp_init(lanes[l].qp);
		if (!peer_host)
			post_notice(&lanes[l]);
		qp_connect(lanes[l].qp, lanes[l].peer_qpn, psn(peer_host, l, 0),
			   psn(!peer_host, l, 0));
	}
	qp_init(control);
	qp_init(spare);
	for (i = 0; i < opt.lanes + 4; i++)
		post_inbox(i);
	qp_connect(control, their_qpn(control), 1, 1);
	qp_connect(spare, their_qpn(spare), 1, 1);
}

/* Every 64 calls, sleep 20 us, so that other processes get the CPU.  Die after a long time. */
static void idle(uint32_t *spins, uint64_t since)
{
	if (++*spins < 64)
		return;
	*spins = 0;
	if (now_ns() - since > patience_s() * 1000000000ULL)
		die("no progress for %u s after %" PRIu64 " rounds", patience_s(), ours.rounds);
	if (abandoned())
		die("the other side is gone");
	usleep(20);
}

/* Move the owner to each CPU in turn: to those that handle its packets, and to others. */
static void change_cpu(void)
{
	static uint32_t steps;
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (!opt.all_cpus || count < 2 || ++steps % 256)
		return;
	CPU_ZERO(&set);
	CPU_SET(steps / 256 % count, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void own(void)
{
	struct message m = { .kind = STOP };
	uint64_t since = now_ns();
	uint32_t spins = 0, l;
	bool busy;

	for (l = 0; l < opt.lanes; l++)
		open_key(l);
	while (done_lanes < opt.lanes) {
		busy = next_message(&m);
		/* completions from before the message must be handled before it */
		while (notices())
			busy = true;
		if (m.kind == READY) {
			owner_ready(&m);
			m.kind = STOP;
			change_cpu();
		}
		for (l = 0; l < opt.lanes; l++) {
			busy |= owner_step(l, now_ns());
			busy |= notices();
		}
		if (!busy) {
			idle(&spins, since);
			continue;
		}
		spins = 0;
		since = now_ns();
	}
	say(&m);
}

static void visit(void)
{
	uint64_t since = now_ns();
	struct message m;
	uint32_t spins = 0;

	while (!stopped) {
		bool busy = peer_work();

		if (next_message(&m)) {
			busy = true;
			if (m.kind == STOP)
				stopped = true;
			else
				peer_go(&m);
		}
		if (!busy) {
			idle(&spins, since);
			continue;
		}
		spins = 0;
		since = now_ns();
	}
}

static int one_test(void)
{
	uint64_t begun;
	double seconds;

	rnd_state = mix(mine.seed + !!peer_host + 1);
	sock_open();
	open_device();
	rxe = !strncmp(ibv_get_device_name(context->device), "rxe", 3);
	say_hello();
	make_all();
	meet(1);
	begun = now_ns();
	if (peer_host)
		visit();
	else
		own();
	seconds = (now_ns() - begun) / 1e9;
	meet(2);
	exchange(&ours, &other, sizeof(ours));
	return verdict(seconds);
}

/* Run each test in its own process, which leaves no objects when it ends. */
static bool tried(bool reads)
{
	int status;
	pid_t pid;

	opt.reads = reads;
	pid = fork();
	must(pid >= 0);
	if (!pid)
		exit(one_test());
	must(waitpid(pid, &status, 0) == pid);
	return !status;
}

int main(int argc, char **argv)
{
	bool good = true, reads;

	program = "revocation";
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* the default timer slack would prolong short sleeps by up to 50 us */
	prctl(PR_SET_TIMERSLACK, 1);
	parse(argc, argv);
	reads = opt.reads;
	for (opt.mode = 0; opt.mode < MODES; opt.mode++) {
		if (!(opt.modes & 1 << opt.mode))
			continue;
		if (opt.writes)
			good &= tried(false);
		if (reads)
			good &= tried(true);
	}
	return !good;
}
