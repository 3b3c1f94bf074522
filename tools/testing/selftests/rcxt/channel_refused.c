// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A part of channel.c: requests and packets that must be refused, because of wrong keys, rCxts,
 * PVOs, jobs or users, or because the request itself is invalid.
 */
#include "channel_shared.h"

/* Make a write of one packet that the target must drop for reason @why or @or_why. */
void refused(struct nhcadv_transfer *t, enum nhcadv_channel_counter why,
	     enum nhcadv_channel_counter or_why, const char *what)
{
	struct nhcadv_channel_info before = channel_info(&ch);

	clear();
	if (client) {
		paint(ch.buf + OFF, t->total, 10);
		post_write(&ch, &ch.peer, t, 50, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 50, what);
	} else {
		wait_count(&ch, &before, why, or_why, 1, what);
		expect_nothing(ch.rcq, 0, what);
		if (differs(ch.buf, MEMORY, 0) >= 0)
			die("%s: it has been written", what);
	}
	meet(++step);
	expect_nothing(ch.scq, 0, what);
}

/* Make a read that the target must refuse for reason @why. */
static void refused_read(struct nhcadv_transfer *t, enum nhcadv_channel_counter why,
			 const char *what)
{
	struct nhcadv_channel_info before = channel_info(&ch), info;
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;

	clear();
	if (client) {
		start(&ch, 51, IBV_SEND_SIGNALED);
		nhcadv_wr_read(ch.dv, &ch.peer, t);
		verb(ibv_wr_complete(ch.qpx));
		expect(ch.scq, NHCADV_WC_LOCAL, 51, what);
	} else {
		wait_count(&ch, &before, why, why, 1, what);
		/* the kernel stores the details of the violation after it counts the drop */
		do {
			info = channel_info(&ch);
		} while (info.violation_tid != t->tid && now_ns() < end);
		if (info.violation != why || info.violation_tid != t->tid ||
		    info.violation_rcxt != t->remote_rcxt ||
		    info.violation_channel != ch.there.qpn)
			die("%s: violation %u of tid %u, channel %#x", what, info.violation,
			    info.violation_tid, info.violation_channel);
	}
	meet(++step);
	expect_nothing(ch.scq, 0, what);
}

struct nhcadv_transfer small(void)
{
	return agree(0, 200, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
}

void violations(void)
{
	struct nhcadv_job_mem *mem[2] = {};
	struct nhcadv_channel_info info;
	struct nhcadv_transfer t;
	uint64_t pvos[2];

	t = small();
	t.remote_rcxt ^= 1ULL << 32;
	refused(&t, NHCADV_DROP_RCXT_KEY, NHCADV_DROP_RCXT_KEY, "wrong rCxt key");

	t = small();
	t.remote_pvo = ch.there.pvo + MEMORY - t.total + 1;
	refused(&t, NHCADV_DROP_PVO_RANGE, NHCADV_DROP_PVO_RANGE, "PVO beyond the end");
	if (client) {
		expect_status(&ch, &t, 0, NHCADV_TRANSFER_PROT_ERR, 0, 0);
	} else {
		wait_event(IBV_EVENT_QP_ACCESS_ERR, "violation");
		info = channel_info(&ch);
		if (info.violation != NHCADV_DROP_PVO_RANGE || info.violation_tid != t.tid ||
		    info.violation_rcxt != t.remote_rcxt || info.state != IBV_QPS_RTS ||
		    info.violation_channel != ch.there.qpn)
			die("violation %u of tid %u", info.violation, info.violation_tid);
	}
	meet(++step);

	/* memory that peers may only read, and that is deregistered afterwards */
	if (!client) {
		must(mem[0] = nhcadv_reg_job_mem(context, job, ch.buf, MEMORY,
						 IBV_ACCESS_REMOTE_READ));
		must(mem[1] = nhcadv_open_job_mem(context, job, mem[0]->pvo));
		if (mem[1]->length != MEMORY || mem[1]->pvo != mem[0]->pvo)
			die("opened memory has %" PRIu64 " bytes", mem[1]->length);
		if (nhcadv_open_job_mem(context, job, mem[0]->pvo + 4096) || errno != ENOENT)
			die("memory can be opened with a PVO in its middle");
		if (nhcadv_open_job_mem(context, job + 1, mem[0]->pvo) || errno != ENOENT)
			die("memory is opened by another job");
		/* the second handle keeps the memory open */
		verb(nhcadv_dereg_job_mem(mem[0]));
	}
	pvos[0] = client ? 0 : mem[1]->pvo;
	exchange(&pvos[0], &pvos[1], sizeof(pvos[0]));
	t = small();
	t.remote_pvo = pvos[1] + OFF;
	refused(&t, NHCADV_DROP_PVO_ACCESS, NHCADV_DROP_PVO_ACCESS, "memory to read");
	if (!client)
		verb(nhcadv_dereg_job_mem(mem[1]));
	t = small();
	t.remote_pvo = pvos[1] + OFF;
	refused(&t, NHCADV_DROP_PVO_KEY, NHCADV_DROP_PVO_KEY, "memory that is closed");

	t = small();
	t.remote_pvo = pvos[1] + OFF;
	refused_read(&t, NHCADV_DROP_PVO_KEY, "read of memory that is closed");
	t = small();
	t.remote_pvo = ch.there.pvo + MEMORY - t.total + 1;
	refused_read(&t, NHCADV_DROP_PVO_RANGE, "read beyond the end");

	t = small();
	if (!client)
		verb(nhcadv_release_rcxts(ch.qp, &ch.here.rcxts[0], 1));
	refused(&t, NHCADV_DROP_NO_RCXT, NHCADV_DROP_RCXT_KEY, "rCxt that was released");
	if (!client) {
		if (nhcadv_release_rcxts(ch.qp, ch.here.rcxts, RCXTS) != ENOENT ||
		    channel_info(&ch).rcxts != RCXTS - 1)
			die("an rCxt is released twice");
		verb(nhcadv_acquire_rcxts(ch.qp, &ch.here.rcxts[0], 1));
	}
	channel_meet(&ch);
	write_goes(0, 5000, "write with a new rCxt");
}

/*
 * Packets from a channel of another job must be dropped.  A channel that uses another job's local
 * PVO must enter the error state.
 */
void other_jobs(void)
{
	struct nhcadv_channel_info before = channel_info(&ch);
	struct nhcadv_transfer t;
	struct channel other;

	clear();
	if (client) {
		channel_make(&other, job + 1, 0);
		verb(nhcadv_acquire_rcxts(other.qp, other.here.rcxts, RCXTS));
		other.there = ch.there;
		must(other.mem = nhcadv_reg_job_mem(context, job + 1, ch.buf, MEMORY, 0));
		other.here.pvo = other.mem->pvo;
		t = transfer(&other, 1, OFF, 200, NHCADV_NOTIFY_INITIATOR);
		t.tid = ++ch.tid;
		post_write(&other, &ch.peer, &t, 60, IBV_SEND_SIGNALED);
		expect(other.scq, NHCADV_WC_LOCAL, 60, "write of another job");
		meet(++step);
		/* the local PVO must also belong to the channel's job */
		t.local_pvo = ch.here.pvo + OFF;
		t.tid++;
		post_write(&other, &ch.peer, &t, 61, IBV_SEND_SIGNALED);
		if (!wait_done(other.scq, "another job's local PVO").status)
			die("another job's local PVO can be sent from");
		wait_event(IBV_EVENT_QP_FATAL, "another job's local PVO");
		if (channel_info(&other).state != IBV_QPS_ERR ||
		    channel_info(&other).reason != NHCADV_ERR_LOCAL_PVO)
			die("another job's local PVO: reason %u", channel_info(&other).reason);
		channel_close(&other);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_JOB, NHCADV_DROP_JOB, 1, "another job");
		if (differs(ch.buf, MEMORY, 0) >= 0)
			die("a write of another job has changed memory");
		meet(++step);
	}
	meet(++step);
}

static void expect_einval(int ret, const char *what)
{
	if (ret != EINVAL)
		die("%s: %s", what, strerror(ret));
}

/* Invalid requests are refused when they are posted, and the channel still works. */
void bad_requests(void)
{
	struct nhcadv_transfer good = transfer(&ch, 0, OFF, 5000, 0), t;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge = { (uintptr_t)ch.buf, NHCADV_FRAME_DATA + 1, 0 };
	struct ibv_ah foreign = *ch.peer.ah;
	struct nhcadv_peer peer = ch.peer;
	struct nhcadv_target target;

#define TRY_WRITE(what, member, value) do {					\
	t = good;								\
	t.member = value;							\
	start(&ch, 0, 0);							\
	nhcadv_wr_write(ch.dv, &ch.peer, &t);					\
	expect_einval(ibv_wr_complete(ch.qpx), what);				\
} while (0)
	good.segment = 64;
	TRY_WRITE("too many packets", total, 64 * 16384 + 1);
	good.segment = 1024;
	TRY_WRITE("tid 0", tid, 0);
	TRY_WRITE("too many bytes", total, (16u << 20) + 1);
	TRY_WRITE("odd segment", segment, 1022);
	TRY_WRITE("small segment", segment, 60);
	TRY_WRITE("unknown notify flags", notify, 4);
	/* an address handle of another device */
	foreign.context = NULL;
	peer.ah = &foreign;
	start(&ch, 0, 0);
	nhcadv_wr_write(ch.dv, &peer, &good);
	expect_einval(ibv_wr_complete(ch.qpx), "foreign address handle");
	start(&ch, 0, 0);
	nhcadv_wr_packet(ch.dv, &peer, 0);
	expect_einval(ibv_wr_complete(ch.qpx), "packet with a foreign address handle");
	target = (struct nhcadv_target){ .peer = peer };
	t = good;
	t.notify = NHCADV_NOTIFY_INITIATOR;
	start(&ch, 0, 0);
	nhcadv_wr_move(ch.dv, &ch.peer, &target, &t);
	expect_einval(ibv_wr_complete(ch.qpx), "target with a foreign address handle");
	start(&ch, 0, IBV_SEND_FENCE);
	nhcadv_wr_write(ch.dv, &ch.peer, &good);
	expect_einval(ibv_wr_complete(ch.qpx), "fence");
	start(&ch, 0, 0);
	nhcadv_wr_retransmit(ch.dv, &ch.peer, &good, 4, 4);
	expect_einval(ibv_wr_complete(ch.qpx), "part that begins in a packet");
	start(&ch, 0, 0);
	nhcadv_wr_retransmit(ch.dv, &ch.peer, &good, 0, 5004);
	expect_einval(ibv_wr_complete(ch.qpx), "part beyond the end");
	start(&ch, 0, 0);
	nhcadv_wr_probe(ch.dv, &ch.peer, &good, good.segment * 100);
	expect_einval(ibv_wr_complete(ch.qpx), "probe beyond the end");
	start(&ch, 0, 0);
	nhcadv_wr_cancel(ch.dv, good.local_rcxt, 0);
	expect_einval(ibv_wr_complete(ch.qpx), "cancel of tid 0");
	start(&ch, 0, 0);
	nhcadv_wr_fence(ch.dv, &ch.peer, good.remote_rcxt, good.local_rcxt, 0);
	expect_einval(ibv_wr_complete(ch.qpx), "fence of tid 0");
	start(&ch, 0, 0);
	nhcadv_wr_packet(ch.dv, &ch.peer, 0);
	ibv_wr_set_sge(ch.qpx, sge.lkey, sge.addr, sge.length);
	expect_einval(ibv_wr_complete(ch.qpx), "long packet");
	start(&ch, 0, 0);
	nhcadv_wr_write(ch.dv, &ch.peer, &good);
	ibv_wr_set_sge(ch.qpx, sge.lkey, sge.addr, 1);
	expect_einval(ibv_wr_complete(ch.qpx), "SGE of a transfer");
	expect_einval(ibv_post_send(ch.qp, &wr, &bad), "ibv_post_send()");
	if (!ibv_modify_qp(ch.qp, &reset, IBV_QP_STATE))
		die("a channel can be reset");
	if (channel_info(&ch).state != IBV_QPS_RTS)
		die("a refused request has stopped the channel");
	write_goes(0, 5000, "write after bad requests");
}

/*
 * Another user opens the same device, and must get no channel and no memory of the first user's
 * job.
 */
void other_users(void)
{
	struct ibv_device *device = context->device;
	struct ibv_cq *cq;
	uint32_t count;
	int status;
	pid_t pid;

	pid = fork();
	must(pid >= 0);
	if (!pid) {
		must(context = ibv_open_device(device));
		must(pd = ibv_alloc_pd(context));
		must(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
		must(!setgid(65534) && !setuid(65534));
		if (make_qp(cq, cq, job, 0) || errno != EPERM)
			die("another user's job: a channel: %m");
		if (nhcadv_reg_job_mem(context, job, ch.buf, 1, 0) || errno != EPERM)
			die("another user's job: memory: %m");
		if (nhcadv_open_job_mem(context, job, ch.here.pvo) ||
		    (errno != EPERM && errno != ENOENT))
			die("another user's job: memory that is there: %m");
		if (nhcadv_recover(context, &count) != EPERM)
			die("any user can recover a device");
		must(make_qp(cq, cq, job + 100, 0));
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	if (status)
		die("the other user ended with %#x", status);
	meet(++step);
}
