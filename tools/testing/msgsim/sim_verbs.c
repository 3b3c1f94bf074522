// SPDX-License-Identifier: GPL-2.0
/*
 * The verbs and direct verbs that userspace/libnhcamsg/msg_port.c calls, over the simulated
 * adapter.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sim.h"

#define MEMORIES	4096
#define AHS		65536

static struct sim_memory *memories[MEMORIES];
static struct sim_ah *ahs[AHS];
static uint32_t next_memory, next_ah;

static struct sim_device *to_dev(struct ibv_context *context)
{
	return (struct sim_device *)context;
}

static struct sim_channel *to_ch(struct ibv_qp_ex *qpx)
{
	return (struct sim_channel *)qpx;
}

static uint32_t round_up(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

void sim_verbs_reset(void)
{
	uint32_t i;

	for (i = 0; i < MEMORIES; i++) {
		free(memories[i]);
		memories[i] = NULL;
	}
	next_memory = 0;
	next_ah = 0;
}

/* ---- the device ---- */

int nhcadv_query_device(struct ibv_context *context, struct nhcadv_device_attr *attr)
{
	*attr = (struct nhcadv_device_attr){
		.caps = NHCADV_DEVICE_CHANNELS |
			(to_dev(context)->fences ? NHCADV_DEVICE_FENCE : 0) |
			(to_dev(context)->parts ? NHCADV_DEVICE_PART : 0) |
			(to_dev(context)->moves ? NHCADV_DEVICE_MOVE : 0), .max_packet = 1984, .min_segment = 64,
		.max_segment = 65532, .max_rcxts = 4096,
	};
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)port;
	(void)index;
	*gid = to_dev(context)->gid;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)port;
	attr->state = to_dev(context)->up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	return 0;
}

/* ---- completions ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	channel->context = context;
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct sim_cq *cq = calloc(1, sizeof(*cq));

	(void)vector;
	cq->cq.context = context;
	cq->cq.cq_context = cq_context;
	cq->cq.channel = channel;
	cq->room = round_up(cqe);
	cq->entries = calloc(cq->room, sizeof(*cq->entries));
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(((struct sim_cq *)cq)->entries);
	free(cq);
	return 0;
}

void sim_cq_add(struct sim_channel *ch, struct sim_cq *cq, const struct ibv_wc *wc)
{
	uint64_t one = 1;

	if (cq->count == cq->room) {
		ch->drops[NHCADV_DROP_CQ]++;
		ch->dev->cq_overflows++;
		return;
	}
	cq->entries[(cq->first + cq->count++) % cq->room] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	if (write(cq->cq.channel->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

int ibv_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct sim_cq *cq = (struct sim_cq *)ibcq;
	int n;

	sim.verbs++;
	for (n = 0; n < num && cq->count; n++, cq->count--) {
		wc[n] = cq->entries[cq->first];
		cq->first = (cq->first + 1) % cq->room;
	}
	return n;
}

int ibv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sim_cq *cq = (struct sim_cq *)ibcq;
	uint64_t one = 1;

	(void)solicited_only;
	/* As in the kernel driver, unpolled entries raise the event now. */
	cq->armed = !cq->count;
	if (cq->count && write(ibcq->channel->fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	uint64_t one;

	/* msg_port.c has made the file descriptor non-blocking. */
	*context = NULL;
	*cq = NULL;
	return read(channel->fd, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* ---- address handles ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sim_device *dev = to_dev(pd->context), *to = sim_device_find(&attr->grh.dgid);
	struct sim_ah *ah;

	sim.ah_calls++;
	/* If the link is down, the kernel has no route. IPv4 devices do not reach IPv6 addresses. */
	if (!dev->up || (to && sim_link(dev, to)->no_route) || dev->gid.raw[0] != attr->grh.dgid.raw[0])
		return NULL;
	ah = calloc(1, sizeof(*ah));
	ah->ah.pd = pd;
	ah->gid = attr->grh.dgid;
	do
		next_ah++;
	while (ahs[next_ah % AHS]);
	ah->id = next_ah;
	ahs[next_ah % AHS] = ah;
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	ahs[((struct sim_ah *)ah)->id % AHS] = NULL;
	free(ah);
	return 0;
}

struct sim_ah *sim_ah_find(uint32_t id)
{
	struct sim_ah *ah = ahs[id % AHS];

	return ah && ah->id == id ? ah : NULL;
}

/* ---- memory ---- */

uint8_t *sim_memory_at(uint32_t host, uint32_t job, uint64_t pvo, uint32_t length,
		       unsigned int access)
{
	struct sim_memory *m = memories[pvo >> 42 & (MEMORIES - 1)];
	uint64_t at;

	if (!m || m->host != host || m->mem.job != job || (m->access & access) != access)
		return NULL;
	at = pvo - m->mem.pvo;
	if (pvo < m->mem.pvo || at > m->mem.length || length > m->mem.length - at)
		return NULL;
	return m->bytes + at;
}

uint32_t sim_memories(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < MEMORIES; i++)
		n += !!memories[i];
	return n;
}

struct nhcadv_job_mem *nhcadv_reg_job_mem(struct ibv_context *context, uint32_t job, void *addr,
					  size_t length, unsigned int access)
{
	struct sim_memory *m = calloc(1, sizeof(*m));

	do
		next_memory = (next_memory + 1) % MEMORIES;
	while (memories[next_memory]);
	*m = (struct sim_memory){
		.mem = { .context = context, .job = job, .length = length,
			 .pvo = (uint64_t)next_memory << 42 | sim_below(4096) },
		.bytes = addr, .host = to_dev(context)->host, .key = next_memory, .handles = 1,
		.access = access,
	};
	memories[next_memory] = m;
	return &m->mem;
}

/* Return: the errno that a test has set, and clear it, so that only one call fails; or 0 */
static int once(int *err)
{
	int now = *err;

	*err = 0;
	return now;
}

struct nhcadv_job_mem *nhcadv_open_job_mem(struct ibv_context *context, uint32_t job, uint64_t pvo)
{
	struct sim_memory *m = memories[pvo >> 42 & (MEMORIES - 1)];
	int err = once(&sim.open_err);

	if (err) {
		errno = err;
		return NULL;
	}
	if (!m || m->host != to_dev(context)->host || m->mem.job != job || m->mem.pvo != pvo) {
		errno = ENOENT;
		return NULL;
	}
	m->handles++;
	return &m->mem;
}

int nhcadv_dereg_job_mem(struct nhcadv_job_mem *mem)
{
	struct sim_memory *m = (struct sim_memory *)mem;
	int err = once(&sim.dereg_err);

	if (err && err != EIO)
		return err;
	if (--m->handles)
		return err;
	memories[m->key] = NULL;
	free(m);
	return err;
}

/* ---- channels ---- */

static struct sim_wqe *wr_begin(struct sim_channel *ch, int op)
{
	struct sim_wqe *w = &ch->wqes[ch->prod % ch->entries];

	if (ch->batch_error)
		return NULL;
	if (ch->prod - ch->cons >= ch->entries) {
		ch->dev->ring_overflows++;
		ch->batch_error = ENOMEM;
		return NULL;
	}
	ch->prod++;
	w->wr_id = ch->qpx.wr_id;
	w->op = op;
	w->length = 0;
	w->offset = 0;
	w->t = (struct nhcadv_transfer){};
	return w;
}

static void put_peer(struct sim_wqe *w, const struct nhcadv_peer *peer)
{
	w->ah_id = ((struct sim_ah *)peer->ah)->id;
	w->qpn = peer->qpn;
	w->key = peer->key;
}

static struct sim_wqe *wr_transfer(struct nhcadv_qp_ex *dv, int op, const struct nhcadv_peer *peer,
				   const struct nhcadv_transfer *t)
{
	struct sim_channel *ch = container_of(dv, struct sim_channel, dv);
	struct sim_wqe *w = wr_begin(ch, op);

	if (!w)
		return NULL;
	/* Most of the checks of transfer_ok() in wr_channel.c */
	if (!t->tid || t->total > 1 << 24 || t->segment % 4 || t->segment < 64 ||
	    t->segment > 65532) {
		ch->batch_error = EINVAL;
		return NULL;
	}
	put_peer(w, peer);
	w->t = *t;
	return w;
}

static void wr_packet(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer, uint64_t cookie)
{
	struct sim_wqe *w = wr_begin(container_of(dv, struct sim_channel, dv), WQE_PACKET);

	if (!w)
		return;
	put_peer(w, peer);
	w->t.cookie = cookie;
}

static void wr_write(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *t)
{
	struct sim_wqe *w = wr_transfer(dv, WQE_WRITE, peer, t);

	if (w)
		w->length = t->total;
}

static void wr_retransmit(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		       const struct nhcadv_transfer *t, uint32_t offset, uint32_t length)
{
	struct sim_wqe *w = wr_transfer(dv, WQE_AGAIN, peer, t);

	if (!w)
		return;
	w->offset = offset;
	w->length = length;
}

/* The data of the work request contains the packet, as in put_packet() of wr_channel.c. */
static void wr_part(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *t, uint32_t offset, size_t num_buf,
		    const struct ibv_data_buf *buf_list)
{
	struct sim_wqe *w = wr_transfer(dv, WQE_PART, peer, t);
	uint32_t length = t->total - offset < t->segment ? t->total - offset : t->segment;

	if (!w)
		return;
	w->offset = offset;
	ibv_wr_set_inline_data_list(&container_of(dv, struct sim_channel, dv)->qpx, num_buf,
				    buf_list);
	if (w->length != length || length > sizeof(w->data) - NHCADV_PART_HEADER ||
	    offset % t->segment || (offset && offset >= t->total))
		container_of(dv, struct sim_channel, dv)->batch_error = EINVAL;
}

static void wr_read(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *t)
{
	wr_transfer(dv, WQE_READ, peer, t);
}

static void wr_cancel(struct nhcadv_qp_ex *dv, uint64_t local_rcxt, uint32_t tid)
{
	struct sim_wqe *w = wr_begin(container_of(dv, struct sim_channel, dv), WQE_CANCEL);

	if (!w)
		return;
	w->t.local_rcxt = local_rcxt;
	w->t.tid = tid;
}

static void wr_probe(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *t, uint32_t offset)
{
	struct sim_wqe *w = wr_transfer(dv, WQE_PROBE, peer, t);

	if (w)
		w->offset = offset;
}

static void wr_fence(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer, uint64_t remote_rcxt,
		     uint64_t local_rcxt, uint32_t tid)
{
	struct nhcadv_transfer t = {
		.remote_rcxt = remote_rcxt, .local_rcxt = local_rcxt, .tid = tid, .segment = 64,
	};
	struct sim_wqe *w = wr_transfer(dv, WQE_FENCE, peer, &t);

	if (w)
		w->t.cookie = w->wr_id;
}

static void move(struct nhcadv_qp_ex *dv, int op, const struct nhcadv_peer *source,
		 const struct nhcadv_target *target, const struct nhcadv_transfer *t,
		 uint32_t offset, uint32_t length)
{
	struct sim_wqe *w = wr_transfer(dv, op, source, t);

	if (!w)
		return;
	w->target_ah = ((struct sim_ah *)target->peer.ah)->id;
	w->target_qpn = target->peer.qpn;
	w->target_key = target->peer.key;
	w->target_rcxt = target->rcxt;
	w->target_pvo = target->pvo;
	w->offset = offset;
	w->length = length;
}

static void wr_move(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *source,
		    const struct nhcadv_target *target, const struct nhcadv_transfer *t)
{
	move(dv, WQE_MOVE, source, target, t, 0, t->total);
}

static void wr_move_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *source,
			  const struct nhcadv_target *target, const struct nhcadv_transfer *t,
			  uint32_t offset, uint32_t length)
{
	move(dv, WQE_MOVE_AGAIN, source, target, t, offset, length);
}

int nhcadv_allow_target(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct sim_channel *ch = (struct sim_channel *)qp;
	const union ibv_gid *gid = &((struct sim_ah *)ah)->gid;

	if (sim_third_allowed(ch, gid))
		return 0;
	if (ch->num_targets == NHCADV_MAX_TARGETS)
		return ENOSPC;
	ch->targets[ch->num_targets++] = *gid;
	return 0;
}

int nhcadv_revoke_target(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct sim_channel *ch = (struct sim_channel *)qp;
	uint32_t i;

	for (i = 0; i < ch->num_targets; i++)
		if (!memcmp(&ch->targets[i], &((struct sim_ah *)ah)->gid, sizeof(ch->targets[i]))) {
			ch->targets[i] = ch->targets[--ch->num_targets];
			return 0;
		}
	return ENOENT;
}

struct ibv_qp *nhcadv_create_channel(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *init,
				     struct nhcadv_channel_init_attr *attr)
{
	struct sim_channel *ch;

	if (to_dev(context)->gone) {
		errno = ENODEV;
		return NULL;
	}
	ch = calloc(1, sizeof(*ch));
	ch->dev = to_dev(context);
	ch->qpx.qp_base.context = context;
	ch->dv = (struct nhcadv_qp_ex){
		.wr_packet = wr_packet, .wr_write = wr_write, .wr_retransmit = wr_retransmit,
		.wr_part = wr_part,
		.wr_read = wr_read, .wr_cancel = wr_cancel, .wr_probe = wr_probe,
		.wr_fence = wr_fence, .wr_move = wr_move, .wr_move_again = wr_move_again,
	};
	ch->scq = (struct sim_cq *)init->send_cq;
	ch->rcq = (struct sim_cq *)init->recv_cq;
	ch->pd = init->pd;
	ch->key = sim_random();
	ch->job = attr->job;
	ch->entries = round_up(init->cap.max_send_wr);
	ch->wqes = calloc(ch->entries, sizeof(*ch->wqes));
	ch->num_frames = round_up(attr->frames);
	ch->frames = calloc(ch->num_frames, sizeof(*ch->frames));
	ch->frame_released = calloc(ch->num_frames, sizeof(*ch->frame_released));
	init->cap.max_send_wr = ch->entries;
	attr->frames = ch->num_frames;
	list_head_init(&ch->sending);
	list_head_init(&ch->zcopies);
	sim_channel_show(ch);
	return &ch->qpx.qp_base;
}

/* Remove the entries of a channel that is being destroyed. */
static void cq_forget(struct sim_cq *cq, uint32_t qpn)
{
	uint32_t i, left = 0;

	for (i = 0; i < cq->count; i++)
		if (cq->entries[(cq->first + i) % cq->room].qp_num != qpn)
			cq->entries[(cq->first + left++) % cq->room] =
				cq->entries[(cq->first + i) % cq->room];
	cq->count = left;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct sim_channel *ch = (struct sim_channel *)qp;
	int err = once(&sim.destroy_err);
	struct sim_sending *s;

	if (err && err != EIO)
		return err;
	sim_forget(ch);
	sim_channel_hide(ch);
	sim_rcxts_release_all(ch);
	sim_zcopy_wait(ch);
	while ((s = list_pop(&ch->sending, struct sim_sending, node)))
		free(s);
	cq_forget(ch->scq, qp->qp_num);
	cq_forget(ch->rcq, qp->qp_num);
	free(ch->wqes);
	free(ch->frames);
	free(ch->frame_released);
	free(ch);
	return err;
}

int nhcadv_query_channel(struct ibv_qp *qp, struct nhcadv_channel_info *info)
{
	struct sim_channel *ch = (struct sim_channel *)qp;

	*info = (struct nhcadv_channel_info){
		.state = ch->reason ? IBV_QPS_ERR : IBV_QPS_RTS, .reason = ch->reason,
		.job = ch->job, .key = ch->key, .frames = ch->num_frames,
		.segment = sim_segment(ch->dev), .recoveries = ch->dev->recoveries,
	};
	memcpy(info->counters, ch->drops, sizeof(info->counters));
	return 0;
}

int nhcadv_acquire_rcxts(struct ibv_qp *qp, uint64_t *ids, uint32_t count)
{
	return sim_rcxts_acquire((struct sim_channel *)qp, ids, count);
}

int nhcadv_release_rcxts(struct ibv_qp *qp, const uint64_t *ids, uint32_t count)
{
	return sim_rcxts_release((struct sim_channel *)qp, ids, count);
}

const struct nhcadv_frame *nhcadv_frame(struct ibv_qp *qp, uint32_t index)
{
	struct sim_channel *ch = (struct sim_channel *)qp;
	struct nhcadv_frame *frame = &ch->frames[index % ch->num_frames];

	return frame->seq == index + 1 ? frame : NULL;
}

int nhcadv_release_frame(struct ibv_qp *qp, uint32_t index)
{
	struct sim_channel *ch = (struct sim_channel *)qp;

	if (!nhcadv_frame(qp, index) || index - ch->frame_cons >= ch->num_frames)
		return EINVAL;
	ch->frame_released[index % ch->num_frames] = true;
	while (ch->frame_released[ch->frame_cons % ch->num_frames]) {
		ch->frame_released[ch->frame_cons % ch->num_frames] = false;
		ch->frame_cons++;
	}
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return (struct ibv_qp_ex *)qp;
}

struct nhcadv_qp_ex *nhcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qpx)
{
	return &to_ch(qpx)->dv;
}

/* ---- work requests ---- */

void ibv_wr_start(struct ibv_qp_ex *qpx)
{
	struct sim_channel *ch = to_ch(qpx);

	ch->prod = ch->posted;
	ch->batch_error = 0;
}

int ibv_wr_complete(struct ibv_qp_ex *qpx)
{
	struct sim_channel *ch = to_ch(qpx);

	if (ch->batch_error)
		return ch->batch_error;
	ch->posted = ch->prod;
	sim_channel_kick(ch);
	return 0;
}

void ibv_wr_abort(struct ibv_qp_ex *qpx)
{
	to_ch(qpx)->prod = to_ch(qpx)->posted;
}

void ibv_wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num, const struct ibv_data_buf *bufs)
{
	struct sim_channel *ch = to_ch(qpx);
	struct sim_wqe *w = &ch->wqes[(ch->prod - 1) % ch->entries];
	size_t i;

	for (i = 0; i < num && !ch->batch_error; i++) {
		if (w->length + bufs[i].length > sizeof(w->data)) {
			ch->batch_error = EINVAL;
			return;
		}
		memcpy(w->data + w->length, bufs[i].addr, bufs[i].length);
		w->length += bufs[i].length;
	}
}
