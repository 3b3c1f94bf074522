// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: a device and its channel.  See msg_port.h.
 *
 * All work requests are signaled, so that the library knows which slots of the send FIFO are in
 * use, and when the packets of a work request have been sent.  The work requests of one pass share
 * a doorbell.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "msg_port.h"
#include "util.h"

/*
 * Maximum bytes of a packet of msg_wire.c (a grant of 128 rCxts has 1144).  A channel whose segment
 * is smaller is refused.
 */
#define LARGEST	1152
/*
 * Entries of the send CQ: one for each slot of the FIFO and one for each transfer in flight.
 * Another 2 * PORT_TRANSFERS entries are for transfers that completed and were abandoned before the
 * library polled their completions.  The receive CQ has one entry for each frame.
 */
#define CQES	(PORT_SLOTS + 3 * PORT_TRANSFERS)

/**
 * struct verbs_port - a port over verbs
 * @port:      the part that other files use
 * @context:   the open device
 * @pd:        protection domain of the channel
 * @events:    completion channel of both CQs
 * @scq:       send CQ
 * @rcq:       receive CQ
 * @qp:        the channel; NULL: none
 * @qpx:       the channel as struct ibv_qp_ex
 * @dv:        the channel as struct nhcadv_qp_ex
 * @gid_index: index of @port.gid
 * @job:       job id
 * @frames:    slots of the receive FIFO
 * @started:   ibv_wr_start() was called, and no ibv_wr_complete() since
 * @dying:     address handles to destroy when their work requests are done
 */
struct verbs_port {
	struct msg_port port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events;
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	uint32_t gid_index;
	uint32_t job;
	uint32_t frames;
	bool started;
	struct list_head dying;
};

/**
 * struct msg_ah - an address handle
 * @ibv:  the address handle of verbs
 * @vp:   the port
 * @last: sequence number of the last work request that names the handle, plus one
 * @node: in verbs_port.dying, if port_ah_free() was called before that work request was done
 */
struct msg_ah {
	struct ibv_ah *ibv;
	struct verbs_port *vp;
	uint32_t last;
	struct list_node node;
};

static struct verbs_port *to_vp(const struct msg_port *port)
{
	return container_of(port, struct verbs_port, port);
}

/* ---- the send FIFO ---- */

/*
 * The sequence number of the last work request may be old, so it may wrap: compare differences.
 * Return: true if no outstanding work request names the handle.
 */
static bool ah_unused(const struct msg_ah *ah)
{
	const struct msg_fifo *fifo = &ah->vp->port.fifo;

	return ah->last - 1 - fifo->first >= fifo->next - fifo->first;
}

static void ah_destroy(struct msg_ah *ah)
{
	ibv_destroy_ah(ah->ibv);
	free(ah);
}

static void reap_ahs(struct verbs_port *vp)
{
	struct msg_ah *ah, *next;

	list_for_each_safe(&vp->dying, ah, next, node) {
		if (!ah_unused(ah))
			continue;
		list_del(&ah->node);
		ah_destroy(ah);
	}
}

static void fifo_push(struct msg_fifo *fifo, uint64_t name)
{
	uint32_t slot = fifo->next++ % PORT_SLOTS;

	fifo->names[slot] = name;
	fifo->done[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static bool fifo_is_done(const struct msg_fifo *fifo, uint32_t seq)
{
	uint32_t slot = seq % PORT_SLOTS;

	return fifo->done[slot / 64] >> slot % 64 & 1;
}

/* Mark the oldest work request with this wr_id: work requests with the same wr_id end in order. */
static void fifo_done(struct msg_port *port, uint64_t name)
{
	struct msg_fifo *fifo = &port->fifo;
	uint32_t seq, slot;

	for (seq = fifo->first; seq != fifo->next; seq++)
		if (fifo->names[seq % PORT_SLOTS] == name && !fifo_is_done(fifo, seq))
			break;
	if (seq == fifo->next)
		return;
	slot = seq % PORT_SLOTS;
	fifo->done[slot / 64] |= UINT64_C(1) << slot % 64;
	if (seq != fifo->first)
		return;
	while (fifo->first != fifo->next && fifo_is_done(fifo, fifo->first))
		fifo->first++;
	port->freed = true;
	if (!list_empty(&to_vp(port)->dying))
		reap_ahs(to_vp(port));
}

/* ---- life ---- */

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

struct msg_port *port_create(const struct nhcadv_msg_path *path, uint32_t job, uint32_t frames)
{
	struct nhcadv_device_attr attr = {};
	struct verbs_port *vp;
	int err;

	err = nhcadv_query_device(path->context, &attr);
	if (!err && !(attr.caps & NHCADV_DEVICE_CHANNELS))
		err = EOPNOTSUPP;
	if (err) {
		errno = err;
		return NULL;
	}
	vp = calloc(1, sizeof(*vp));
	if (!vp)
		return NULL;
	vp->port.fences = attr.caps & NHCADV_DEVICE_FENCE;
	/* A move that is abandoned is fenced. */
	vp->port.moves = vp->port.fences && attr.caps & NHCADV_DEVICE_MOVE;
	vp->port.parts = attr.caps & NHCADV_DEVICE_PART;
	vp->context = path->context;
	vp->gid_index = path->gid_index;
	vp->job = job;
	vp->frames = frames;
	list_head_init(&vp->dying);
	vp->pd = ibv_alloc_pd(vp->context);
	vp->events = ibv_create_comp_channel(vp->context);
	if (!vp->pd || !vp->events || ibv_query_gid(vp->context, 1, vp->gid_index, &vp->port.gid) ||
	    fcntl(vp->events->fd, F_SETFL, fcntl(vp->events->fd, F_GETFL) | O_NONBLOCK))
		goto fail;
	vp->scq = ibv_create_cq(vp->context, CQES, NULL, vp->events, 0);
	vp->rcq = ibv_create_cq(vp->context, power_of_two(frames), NULL, vp->events, 0);
	if (!vp->scq || !vp->rcq)
		goto fail;
	return &vp->port;

fail:
	err = errno;
	port_destroy(&vp->port);
	errno = err;
	return NULL;
}

void port_destroy(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);

	if (vp->scq)
		ibv_destroy_cq(vp->scq);
	if (vp->rcq)
		ibv_destroy_cq(vp->rcq);
	if (vp->events)
		ibv_destroy_comp_channel(vp->events);
	if (vp->pd)
		ibv_dealloc_pd(vp->pd);
	free(vp);
}

int port_open(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = vp->scq, .recv_cq = vp->rcq,
		.cap = { .max_send_wr = PORT_SLOTS,
			 .max_inline_data = PORT_PART + NHCADV_PART_HEADER },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = vp->pd,
	};
	struct nhcadv_channel_init_attr attr = { .job = vp->job, .frames = vp->frames };
	struct nhcadv_channel_info info = {};
	int err;

	vp->qp = nhcadv_create_channel(vp->context, &init, &attr);
	if (!vp->qp)
		return errno;
	err = nhcadv_query_channel(vp->qp, &info);
	if (!err && info.segment < LARGEST)
		err = EMSGSIZE;
	if (err) {
		ibv_destroy_qp(vp->qp);
		vp->qp = NULL;
		return err;
	}
	vp->qpx = ibv_qp_to_qp_ex(vp->qp);
	vp->dv = nhcadv_qp_ex_from_ibv_qp_ex(vp->qpx);
	port->info.qpn = vp->qp->qp_num;
	port->info.key = info.key;
	port->info.segment = info.segment;
	port->slots = init.cap.max_send_wr;
	if (port->slots > PORT_SLOTS)
		port->slots = PORT_SLOTS;
	port->lost = 0;
	port->freed = true;
	port->open = true;
	port->broken = false;
	port->recoveries++;
	return 0;
}

/*
 * If a device was removed, calls fail with EIO, and the kernel destroys all objects of the device.
 * Return: 0 in place of EIO
 */
static int destroyed(int err)
{
	return err == EIO ? 0 : err;
}

int port_close(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);
	int err;

	if (!port->open)
		return 0;
	if (vp->started)
		ibv_wr_abort(vp->qpx);
	vp->started = false;
	/* ibv_destroy_qp() also removes the completions of the channel from the CQs. */
	err = destroyed(ibv_destroy_qp(vp->qp));
	if (err) {
		port->broken = true;
		return err;
	}
	vp->qp = NULL;
	port->open = false;
	port->fifo.first = port->fifo.next;
	reap_ahs(vp);
	return 0;
}

bool port_check(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);
	struct nhcadv_channel_info info = {};
	struct ibv_port_attr attr;

	port->checked = msg_clock();
	if (!port->open)
		return false;
	if (nhcadv_query_channel(vp->qp, &info) || info.state != IBV_QPS_RTS) {
		port->broken = true;
		return false;
	}
	/* Completions were lost, so the state of transfers is unknown: open another channel. */
	if (info.counters[NHCADV_DROP_CQ] != port->lost) {
		port->lost = info.counters[NHCADV_DROP_CQ];
		port->broken = true;
	}
	port->info.segment = info.segment;
	/* A change of the netdev's address, and so of the GID, is not detected here. */
	return !ibv_query_port(vp->context, 1, &attr) && attr.state == IBV_PORT_ACTIVE;
}

int port_acquire(struct msg_port *port, uint64_t *ids, uint32_t count)
{
	return port->open ? nhcadv_acquire_rcxts(to_vp(port)->qp, ids, count) : EIO;
}

void port_release(struct msg_port *port, const uint64_t *ids, uint32_t count)
{
	/* A channel in the error state may have lost its rCxts. */
	if (port->open && nhcadv_release_rcxts(to_vp(port)->qp, ids, count))
		port->broken = true;
}

struct msg_ah *port_ah(struct msg_port *port, const union ibv_gid *gid)
{
	struct verbs_port *vp = to_vp(port);
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = vp->gid_index, .hop_limit = 64 },
	};
	struct msg_ah *ah = calloc(1, sizeof(*ah));

	if (!ah)
		return NULL;
	ah->ibv = ibv_create_ah(vp->pd, &attr);
	if (!ah->ibv) {
		free(ah);
		return NULL;
	}
	ah->vp = vp;
	ah->last = port->fifo.first;
	return ah;
}

void port_ah_free(struct msg_ah *ah)
{
	if (!ah)
		return;
	/*
	 * The kernel looks up the handle when it fetches a work request that names the handle, so
	 * destroy the handle after these work requests are done.
	 */
	if (ah_unused(ah))
		ah_destroy(ah);
	else
		list_add_tail(&ah->vp->dying, &ah->node);
}

/* ---- memory ---- */

struct nhcadv_job_mem *port_reg(struct msg_port *port, uint32_t job, void *addr, size_t length,
				unsigned int access)
{
	return nhcadv_reg_job_mem(to_vp(port)->context, job, addr, length, access);
}

struct nhcadv_job_mem *port_reg_again(struct msg_port *port, const struct nhcadv_job_mem *mem)
{
	return nhcadv_open_job_mem(to_vp(port)->context, mem->job, mem->pvo);
}

int port_dereg(struct nhcadv_job_mem *mem)
{
	return destroyed(nhcadv_dereg_job_mem(mem));
}

/* ---- posting ---- */

static struct nhcadv_qp_ex *start(struct msg_port *port, uint64_t wr_id)
{
	struct verbs_port *vp = to_vp(port);

	if (!vp->started)
		ibv_wr_start(vp->qpx);
	vp->started = true;
	vp->qpx->wr_id = wr_id;
	vp->qpx->wr_flags = IBV_SEND_SIGNALED;
	fifo_push(&port->fifo, wr_id);
	return vp->dv;
}

/* The caller has called start(), so fifo.next is the number of the work request, plus one. */
static struct nhcadv_peer to_peer(const struct msg_dest *dest)
{
	dest->ah->last = dest->ah->vp->port.fifo.next;
	return (struct nhcadv_peer){ .ah = dest->ah->ibv, .qpn = dest->qpn, .key = dest->key };
}

void port_write(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_write(dv, &peer, t);
}

void port_rewrite(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		  const struct nhcadv_transfer *t, uint32_t offset, uint32_t length)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_retransmit(dv, &peer, t, offset, length);
}

void port_part(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t, uint32_t offset, uint32_t num,
	       const struct ibv_data_buf *bufs)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_part(dv, &peer, t, offset, num, bufs);
}

void port_read(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_read(dv, &peer, t);
}

void port_cancel(struct msg_port *port, uint64_t wr_id, uint64_t local_rcxt, uint32_t tid)
{
	nhcadv_wr_cancel(start(port, wr_id), local_rcxt, tid);
}

void port_probe(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_probe(dv, &peer, t, 0);
}

void port_fence(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);

	nhcadv_wr_fence(dv, &peer, remote_rcxt, local_rcxt, tid);
}

void port_move(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct msg_dest *to, uint64_t rcxt, uint64_t pvo,
	       const struct nhcadv_transfer *t, bool again, uint32_t offset, uint32_t length)
{
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);
	struct nhcadv_target target = { .peer = to_peer(to), .rcxt = rcxt, .pvo = pvo };

	if (again)
		nhcadv_wr_move_again(dv, &peer, &target, t, offset, length);
	else
		nhcadv_wr_move(dv, &peer, &target, t);
}

int port_allow(struct msg_port *port, const struct msg_ah *ah)
{
	return nhcadv_allow_target(to_vp(port)->qp, ah->ibv);
}

void port_revoke(struct msg_port *port, const struct msg_ah *ah)
{
	int err = port->open ? nhcadv_revoke_target(to_vp(port)->qp, ah->ibv) : 0;

	if (err && err != ENOENT)
		port->broken = true;
}

void port_packet(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		 const void *header, uint32_t header_length, const void *data, uint32_t length)
{
	struct verbs_port *vp = to_vp(port);
	struct nhcadv_qp_ex *dv = start(port, wr_id);
	struct nhcadv_peer peer = to_peer(dest);
	struct ibv_data_buf parts[] = {
		{ .addr = (void *)(uintptr_t)header, .length = header_length },
		{ .addr = (void *)(uintptr_t)data, .length = length },
	};

	nhcadv_wr_packet(dv, &peer, 0);
	ibv_wr_set_inline_data_list(vp->qpx, length ? 2 : 1, parts);
}

void port_flush(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);

	if (!vp->started)
		return;
	vp->started = false;
	/* The callers have checked for room, so any error means that the channel has failed. */
	if (ibv_wr_complete(vp->qpx))
		port->broken = true;
}

/* ---- completions ---- */

static bool to_event(struct msg_port *port, const struct ibv_wc *wc, struct port_event *event)
{
	struct verbs_port *vp = to_vp(port);

	event->wr_id = wc->wr_id;
	event->frame = NULL;
	event->status = 0;
	if (wc->status != IBV_WC_SUCCESS) {
		/*
		 * The work request has failed, for example because it came too late for its rCxt,
		 * was cancelled, or no longer fits the MTU (EMSGSIZE); or the channel is in the
		 * error state.  Let the next pass check the channel.
		 */
		event->kind = PORT_POSTED;
		event->status = wc->status == IBV_WC_LOC_LEN_ERR ? EMSGSIZE : EIO;
		fifo_done(port, wc->wr_id);
		port->checked = 0;
		return true;
	}
	switch ((int)wc->opcode) {
	case NHCADV_WC_LOCAL:
		event->kind = PORT_POSTED;
		fifo_done(port, wc->wr_id);
		return true;
	case NHCADV_WC_WRITE:
		event->kind = PORT_WRITE;
		return true;
	case NHCADV_WC_READ:
		event->kind = PORT_READ;
		return true;
	case NHCADV_WC_MOVE:
		event->kind = PORT_MOVE;
		return true;
	case NHCADV_WC_FRAME:
		event->kind = PORT_FRAME;
		event->index = wc->invalidated_rkey;
		event->frame = nhcadv_frame(vp->qp, event->index);
		return event->frame;
	}
	return false;
}

int port_poll(struct msg_port *port, struct port_event *events, int num)
{
	struct verbs_port *vp = to_vp(port);
	struct ibv_cq *cqs[] = { vp->scq, vp->rcq };
	struct ibv_wc wc[16];
	int i, c, n, found = 0;

	if (!port->open)
		return 0;
	port_flush(port);
	for (c = 0; c < 2; c++) {
		n = ibv_poll_cq(cqs[c], num - found < 16 ? num - found : 16, wc);
		for (i = 0; i < n; i++)
			found += to_event(port, &wc[i], &events[found]);
	}
	return found;
}

void port_frame_done(struct msg_port *port, const struct port_event *event)
{
	nhcadv_release_frame(to_vp(port)->qp, event->index);
}

int port_fd(const struct msg_port *port)
{
	return to_vp(port)->events->fd;
}

void port_arm(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);

	ibv_req_notify_cq(vp->scq, 0);
	ibv_req_notify_cq(vp->rcq, 0);
}

void port_disarm(struct msg_port *port)
{
	struct verbs_port *vp = to_vp(port);
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(vp->events, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}
