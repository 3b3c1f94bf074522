// SPDX-License-Identifier: GPL-2.0
/* channels.h describes these functions. */
#include "channels.h"

struct channel_sizes channel_sizes = { RCXTS, MEMORY, SEND_WR, 0 };
uint32_t job;

/* ---- creation ---- */

struct ibv_qp *make_qp(struct ibv_cq *scq, struct ibv_cq *rcq, uint32_t of_job, uint32_t frames)
{
	uint32_t inline_data = channel_sizes.inline_data ? channel_sizes.inline_data : 256;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = scq, .recv_cq = rcq,
		.cap = { .max_send_wr = channel_sizes.send_wr, .max_send_sge = 2,
			 .max_inline_data = inline_data },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
	struct nhcadv_channel_init_attr attr = { .job = of_job, .frames = frames };
	struct ibv_qp *qp = nhcadv_create_channel(context, &init, &attr);

	if (!qp)
		return NULL;
	if (init.cap.max_send_wr < channel_sizes.send_wr || init.cap.max_inline_data < inline_data ||
	    attr.frames < frames)
		die("a channel has smaller limits than requested");
	return qp;
}

bool recoveries;
uint32_t cq_entries = 1024;

void channel_make(struct channel *c, uint32_t of_job, uint32_t frames)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = cq_entries, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct nhcadv_channel_info info;
	bool taken;

	memset(c, 0, sizeof(*c));
	must(c->events = ibv_create_comp_channel(context));
	attr.channel = c->events;
	must(c->scq = ibv_create_cq_ex(context, &attr));
	must(c->rcq = ibv_create_cq_ex(context, &attr));
	must(c->qp = make_qp(ibv_cq_ex_to_cq(c->scq), ibv_cq_ex_to_cq(c->rcq), of_job, frames));
	must(c->qpx = ibv_qp_to_qp_ex(c->qp));
	must(c->dv = nhcadv_qp_ex_from_ibv_qp_ex(c->qpx));
	verb(nhcadv_query_channel(c->qp, &info));
	taken = recoveries && info.reason == NHCADV_ERR_RECOVERED;
	if (((info.state != IBV_QPS_RTS || info.reason) && !taken) || info.job != of_job ||
	    info.frames < frames || info.rcxts || info.segment < 64)
		die("a new channel: state %u, reason %u, job %u, %u frames, %u rCxts, segment %u",
		    info.state, info.reason, info.job, info.frames, info.rcxts, info.segment);
	c->here = (struct address){ .qpn = c->qp->qp_num, .key = info.key,
				    .segment = info.segment };
}

void channel_open(struct channel *c, uint32_t frames)
{
	channel_make(c, job, frames);
	c->buf = pages(channel_sizes.memory);
	must(c->mem = nhcadv_reg_job_mem(context, job, c->buf, channel_sizes.memory,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_WRITE));
	verb(nhcadv_acquire_rcxts(c->qp, c->here.rcxts, channel_sizes.rcxts));
	c->here.pvo = c->mem->pvo;
}

void channel_meet(struct channel *c)
{
	exchange(&c->here, &c->there, sizeof(c->here));
	c->peer.qpn = c->there.qpn;
	c->peer.key = c->there.key;
	if (!c->peer.ah) {
		struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };

		must(c->peer.ah = ibv_create_ah(pd, &attr));
	}
}

void channel_close(struct channel *c)
{
	verb(ibv_destroy_qp(c->qp));
	verb(ibv_destroy_cq(ibv_cq_ex_to_cq(c->scq)));
	verb(ibv_destroy_cq(ibv_cq_ex_to_cq(c->rcq)));
	verb(ibv_destroy_comp_channel(c->events));
	if (c->mem)
		verb(nhcadv_dereg_job_mem(c->mem));
	if (c->peer.ah)
		verb(ibv_destroy_ah(c->peer.ah));
	free(c->buf);
}

struct nhcadv_channel_info channel_info(struct channel *c)
{
	struct nhcadv_channel_info info;

	verb(nhcadv_query_channel(c->qp, &info));
	return info;
}

/* ---- completions and events ---- */

bool poll_done(struct ibv_cq_ex *cq, struct done *d)
{
	struct nhcadv_cq *dv = nhcadv_cq_from_ibv_cq_ex(cq);
	struct ibv_poll_cq_attr attr = {};
	int ret;

	must(dv);
	ret = ibv_start_poll(cq, &attr);
	if (ret == ENOENT)
		return false;
	verb(ret);
	*d = (struct done){
		.kind = nhcadv_wc_read_kind(dv), .status = cq->status, .wr_id = cq->wr_id,
		.rcxt = nhcadv_wc_read_rcxt(dv), .tid = nhcadv_wc_read_tid(dv),
		.frame = nhcadv_wc_read_frame(dv), .src = nhcadv_wc_read_src_channel(dv),
		.byte_len = ibv_wc_read_byte_len(cq),
	};
	ibv_end_poll(cq);
	return true;
}

struct done wait_done(struct ibv_cq_ex *cq, const char *what)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	struct done d;

	while (!poll_done(cq, &d))
		if (now_ns() > end)
			die("%s: no completion within %u s", what, patience_s());
	return d;
}

struct done expect(struct ibv_cq_ex *cq, enum nhcadv_wc_kind kind, uint64_t wr_id,
		   const char *what)
{
	struct done d = wait_done(cq, what);

	if (d.kind != kind || d.status || d.wr_id != wr_id)
		die("%s: completion %#x of %#" PRIx64 " (%s) instead of %#x of %#" PRIx64, what,
		    d.kind, d.wr_id, ibv_wc_status_str(d.status), kind, wr_id);
	return d;
}

void expect_transfer(struct ibv_cq_ex *cq, enum nhcadv_wc_kind kind, uint64_t wr_id, uint64_t rcxt,
		     uint32_t tid, const char *what)
{
	struct done d = expect(cq, kind, wr_id, what);

	if (d.rcxt != rcxt || d.tid != tid)
		die("%s: rCxt %#" PRIx64 ", tid %u instead of %#" PRIx64 ", %u", what, d.rcxt,
		    d.tid, rcxt, tid);
}

void expect_both(struct ibv_cq_ex *cq, uint64_t posted, enum nhcadv_wc_kind kind, uint64_t wr_id,
		 uint64_t rcxt, uint32_t tid, const char *what)
{
	struct done a = wait_done(cq, what), b = wait_done(cq, what);
	struct done d = a.kind == NHCADV_WC_LOCAL ? b : a, p = a.kind == NHCADV_WC_LOCAL ? a : b;

	if (p.kind != NHCADV_WC_LOCAL || p.status || p.wr_id != posted)
		die("%s: completion %#x of %#" PRIx64 " (%s) is not of the request", what, p.kind,
		    p.wr_id, ibv_wc_status_str(p.status));
	if (d.kind != kind || d.status || d.wr_id != wr_id || d.rcxt != rcxt || d.tid != tid)
		die("%s: completion %#x of %#" PRIx64 ", rCxt %#" PRIx64 ", tid %u (%s)", what, d.kind,
		    d.wr_id, d.rcxt, d.tid, ibv_wc_status_str(d.status));
}

void expect_nothing(struct ibv_cq_ex *cq, uint32_t ms, const char *what)
{
	uint64_t end = now_ns() + ms * 1000000ULL;
	struct done d;

	do {
		if (poll_done(cq, &d))
			die("%s: completion %#x of %#" PRIx64 ", tid %u (%s)", what, d.kind, d.wr_id,
			    d.tid, ibv_wc_status_str(d.status));
	} while (now_ns() < end);
}

const struct nhcadv_frame *expect_frame(struct channel *c, uint64_t cookie, uint32_t *index,
					const char *what)
{
	struct done d = expect(c->rcq, NHCADV_WC_FRAME, cookie, what);
	const struct nhcadv_frame *frame = nhcadv_frame(c->qp, d.frame);
	uint64_t key = c->there.key;

	if (!frame)
		die("%s: no frame %u", what, d.frame);
	if (frame->kind == NHCADV_FRAME_STATUS)
		key = (uint32_t)key;
	if (frame->cookie != cookie || frame->src_channel != c->there.qpn ||
	    frame->src_key != key || d.src != c->there.qpn || d.byte_len != frame->length)
		die("%s: frame of channel %#x, cookie %#" PRIx64 ", %u bytes", what,
		    frame->src_channel, frame->cookie, frame->length);
	*index = d.frame;
	return frame;
}

void wait_count(struct channel *c, const struct nhcadv_channel_info *before,
		enum nhcadv_channel_counter one, enum nhcadv_channel_counter or_other, uint64_t by,
		const char *what)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	struct nhcadv_channel_info now;
	uint64_t count;

	do {
		now = channel_info(c);
		count = now.counters[one] - before->counters[one];
		if (or_other != one)
			count += now.counters[or_other] - before->counters[or_other];
		if (now_ns() > end)
			die("%s: counter %u has gone up by %" PRIu64 ", not by %" PRIu64, what, one,
			    count, by);
	} while (count < by);
	if (count > by)
		die("%s: counter %u has gone up by %" PRIu64 ", not by %" PRIu64, what, one, count,
		    by);
}

void wait_event(enum ibv_event_type type, const char *what)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	do {
		if (poll(&fd, 1, patience_s() * 1000) != 1)
			die("%s: no event %s", what, ibv_event_type_str(type));
		verb(ibv_get_async_event(context, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != type);
}

/* ---- posting ---- */

void start(struct channel *c, uint64_t wr_id, unsigned int flags)
{
	ibv_wr_start(c->qpx);
	c->qpx->wr_id = wr_id;
	c->qpx->wr_flags = flags;
}

struct nhcadv_transfer transfer(struct channel *c, uint32_t i, uint32_t at, uint32_t total,
				uint32_t notify)
{
	return (struct nhcadv_transfer){
		.local_rcxt = c->here.rcxts[i], .remote_rcxt = c->there.rcxts[i],
		.local_pvo = c->here.pvo + at, .remote_pvo = c->there.pvo + at,
		.cookie = 0xc00c1e00 + i, .tid = ++c->tid, .total = total,
		.segment = c->here.segment < c->there.segment ? c->here.segment : c->there.segment,
		.notify = notify,
	};
}

void post_write(struct channel *c, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t,
		uint64_t wr_id, unsigned int flags)
{
	start(c, wr_id, flags);
	nhcadv_wr_write(c->dv, peer, t);
	verb(ibv_wr_complete(c->qpx));
}

void post_probe(struct channel *c, const struct nhcadv_transfer *t, uint64_t wr_id,
		uint32_t offset)
{
	start(c, wr_id, 0);
	nhcadv_wr_probe(c->dv, &c->peer, t, offset);
	verb(ibv_wr_complete(c->qpx));
}

void post_packet(struct channel *c, const void *data, uint32_t length, uint64_t cookie,
		 unsigned int flags)
{
	start(c, 0, flags);
	nhcadv_wr_packet(c->dv, &c->peer, cookie);
	if (length)
		ibv_wr_set_inline_data(c->qpx, (void *)(uintptr_t)data, length);
	verb(ibv_wr_complete(c->qpx));
}

/* ---- bytes ---- */

uint8_t pattern(uint32_t seed, uint32_t i)
{
	return mix((uint64_t)seed << 32 | i / 8) >> i % 8 * 8;
}

void paint(uint8_t *p, uint32_t size, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		p[i] = pattern(seed, i);
}

void check_painted(const uint8_t *p, uint32_t size, uint32_t seed, const char *what)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		if (p[i] != pattern(seed, i))
			die("%s: byte %u of %u is wrong", what, i, size);
	if (differs(p - 64, 64, 0) >= 0 || differs(p + size, 64, 0) >= 0)
		die("%s: bytes before or after the %u were written", what, size);
}
