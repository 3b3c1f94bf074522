// SPDX-License-Identifier: GPL-2.0
/*
 * The responder of connected QPs: executes requests, places their data, and notes which responses
 * are due (IBTA 9.7.4 for RC, 9.8.2 for UC).
 */
#include "../memory/memcg.h"
#include "../observe/inject.h"
#include "disk.h"
#include "engine.h"

enum nhca_verdict nhca_refuse(struct nhca_qp *qp, enum nhca_nak code, int event)
{
	static const enum nhca_counter count[] = {
		[NHCA_NAK_INVALID_REQ] = NHCA_CNT_SENT_INVAL_NAK,
		[NHCA_NAK_REM_ACCESS] = NHCA_CNT_SENT_ACCESS_NAK,
		[NHCA_NAK_REM_OP] = NHCA_CNT_SENT_OP_NAK,
	};

	if (nhca_is_reliable(qp))
		nhca_count(&qp->who, count[code]);
	else if (code != NHCA_NAK_REM_OP)
		/* UC sends no NAK and stays in its state: drop the message (9.8.2.2.6) */
		return NHCA_DROPPED;
	nhca_resp_nak(qp, NHCA_AETH_NAK | code, true, event);
	return NHCA_FATAL;
}

enum nhca_verdict nhca_refuse_invalid(struct nhca_qp *qp)
{
	return nhca_refuse(qp, NHCA_NAK_INVALID_REQ, IB_EVENT_QP_REQ_ERR);
}

enum nhca_verdict nhca_refuse_access(struct nhca_qp *qp)
{
	return nhca_refuse(qp, NHCA_NAK_REM_ACCESS, IB_EVENT_QP_ACCESS_ERR);
}

/*
 * Complete the receive request with @status, and refuse the packet.  On UC a message that is too
 * long is dropped instead, and its receive request is used for the next message.
 */
enum nhca_verdict nhca_fail_recv(struct nhca_qp *qp, enum ib_wc_status status,
				 enum nhca_nak code)
{
	struct nhca_cqe cqe = { .status = status, .opcode = IB_WC_RECV };

	if (nhca_is_reliable(qp) || code == NHCA_NAK_REM_OP)
		nhca_rq_complete(qp, &cqe, true);
	return nhca_refuse(qp, code, -1);
}

enum nhca_verdict nhca_defer_for_page(struct nhca_qp *qp, const struct nhca_source *src)
{
	if (!src->rx)
		return NHCA_DROPPED;
	nhca_defer(qp, src->rx);
	return NHCA_DEFERRED;
}

/* Fetch a receive request for a SEND that begins, or a WRITE with immediate that ends. */
static enum nhca_verdict nhca_need_recv(struct nhca_qp *qp, u8 opcode)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_fault_hit s __uninitialized;
	int err;

	if (nhca_inject(qp->dev, NHCA_AT_BUFFER, qp->qpn, opcode, &s))
		err = -ENOENT;
	else
		err = nhca_rq_fetch(qp);
	switch (err) {
	case 0:
		return NHCA_EXECUTED;
	case -ENOENT:
		if (qp->ibqp.qp_type == IB_QPT_UC) {
			nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
			return NHCA_DROPPED;
		}
		nhca_count(&qp->who, NHCA_CNT_SENT_RNR);
		nhca_resp_nak(qp, NHCA_AETH_RNR | qp->attr.min_rnr_timer, false, -1);
		rq->nak_sent = true;
		return NHCA_DROPPED;
	case -EINVAL:
		return nhca_fail_recv(qp, IB_WC_LOC_QP_OP_ERR, NHCA_NAK_REM_OP);
	default:
		nhca_count(&qp->who, NHCA_CNT_BAD_RING);
		return nhca_refuse(qp, NHCA_NAK_REM_OP, IB_EVENT_QP_FATAL);
	}
}

static void nhca_complete_recv(struct nhca_qp *qp, const struct nhca_hdr *h, u8 opcode,
			       u32 len)
{
	struct nhca_cqe cqe = {
		.status = IB_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = len,
	};

	if (h->info->flags & NHCA_OPF_IMMDT) {
		cqe.flags |= NHCA_WC_WITH_IMM;
		cqe.ex.imm_data = (__force u32)h->imm;
	} else if (h->info->flags & NHCA_OPF_IETH) {
		cqe.flags |= NHCA_WC_WITH_INV;
		cqe.ex.invalidated_rkey = h->inv_rkey;
	}
	nhca_rq_complete(qp, &cqe, h->solicited);
}

/*
 * Set the operation of @it, for regions of a backing.  For a step of the same-host path @it gets no
 * struct nhca_fault, because a step cannot wait for a disk.
 */
static void nhca_message_for(struct nhca_rq *rq, const struct nhca_source *src,
			     struct nhca_iter *it)
{
	nhca_iter_for(it, src->rx ? rq->fault : NULL, rq->op);
}

/* Copy the payload of a SEND.  Return: 0, an error of the copy, or -EBUSY as nhca_recv_placed(). */
static int nhca_send_copy(struct nhca_qp *qp, struct nhca_source *src)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_iter it __uninitialized;
	int err;

	nhca_iter_sges(&it, &rq->key_user, rq->rwr->sge, rq->rwr->num_sge, rq->recv_off,
		       src->len, IB_ACCESS_LOCAL_WRITE);
	nhca_message_for(rq, src, &it);
	nhca_live_enter();
	err = nhca_source_copy(src, &it);
	if (unlikely(it.backed))
		err = nhca_recv_placed(qp, src, err, &it);
	/* only the last packet shows the length of the message: fault in all further buffers */
	return nhca_live_exit_fault(err, &it, rq->rwr->length - rq->recv_off - src->len,
				    rq->fault);
}

static enum nhca_verdict nhca_do_send(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	bool waits = nhca_waits_for_disk(&qp->rq, src);
	struct nhca_rq *rq = &qp->rq;
	enum nhca_verdict verdict;
	int err;

	if ((h->info->flags & NHCA_OPF_FIRST) && !waits) {
		verdict = nhca_need_recv(qp, h->opcode);
		if (verdict != NHCA_EXECUTED)
			return verdict;
		rq->recv_off = 0;
		nhca_message_begin(rq);
	}
	if (src->len > rq->rwr->length - rq->recv_off)
		return nhca_fail_recv(qp, IB_WC_LOC_LEN_ERR, NHCA_NAK_INVALID_REQ);

	err = waits ? 0 : nhca_send_copy(qp, src);
	if (unlikely(rq->disk) && !err)
		err = nhca_message_sync(rq, src);
	if (err == -EAGAIN || err == -EBUSY)
		return nhca_defer_for_page(qp, src);
	if (src->err)
		return NHCA_DROPPED;
	if (err == -EIO)
		return nhca_fail_recv(qp, IB_WC_LOC_QP_OP_ERR, NHCA_NAK_REM_OP);
	if (err) {
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		return nhca_fail_recv(qp, IB_WC_LOC_PROT_ERR, NHCA_NAK_REM_OP);
	}
	rq->recv_off += src->len;

	/* 10.6.5.2: close the key, which only the last packet names, before the completion */
	if ((h->info->flags & NHCA_OPF_IETH) && nhca_remote_inv(&qp->key_user, h->inv_rkey))
		return nhca_fail_recv(qp, IB_WC_LOC_QP_OP_ERR, NHCA_NAK_REM_ACCESS);
	if (h->info->flags & NHCA_OPF_LAST)
		nhca_complete_recv(qp, h, IB_WC_RECV, rq->recv_off);
	return NHCA_EXECUTED;
}

/*
 * The key of a WRITE does not allow the access.  For a WRITE with immediate on a reliable QP, the
 * receive request completes with IB_WC_LOC_ACCESS_ERR, if one is posted (11.6.2).
 */
static enum nhca_verdict nhca_refuse_write(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	int err;

	if (!(h->info->flags & NHCA_OPF_IMMDT) || !nhca_is_reliable(qp))
		return nhca_refuse_access(qp);
	err = nhca_rq_fetch(qp);
	if (err && err != -EINVAL)
		return nhca_refuse_access(qp);
	return nhca_fail_recv(qp, IB_WC_LOC_ACCESS_ERR, NHCA_NAK_REM_ACCESS);
}

/*
 * Check the key of a request.  For a READ, also let a disk begin to read the bytes (direct/).
 * @res: responder resource of a READ, in which the function sets res->zcopy; NULL: another request
 * Return: true if the key allows @access to the request's whole range now.
 */
static bool nhca_key_opens(struct nhca_qp *qp, const struct nhca_hdr *h, int access,
			   struct nhca_res *res)
{
	struct nhca_iter it __uninitialized;
	int err;

	nhca_live_enter();
	err = nhca_iter_key(&it, &qp->key_user, h->rkey, h->va, h->dmalen, access);
	if (!err && res) {
		nhca_iter_for(&it, qp->rq.fault, res->op);
		res->zcopy = nhca_iter_ahead(&it, h->rkey);
	}
	nhca_live_exit();
	return !err;
}

/*
 * Begin a WRITE.  For a WRITE of several packets, check the key for the whole range and take an
 * R_Key reference, because only the first packet contains the key.  For a WRITE of one packet,
 * nhca_write_copy() checks the key; with immediate, this function also checks it.
 */
static enum nhca_verdict nhca_open_write(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_rq *rq = &qp->rq;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    h->dmalen > NHCA_MAX_MSG_SIZE)
		return nhca_refuse_invalid(qp);
	/* a UC message whose last packet was lost may have left an R_Key reference */
	nhca_rkey_put(&rq->wr_ref);
	if (!(h->info->flags & NHCA_OPF_LAST)) {
		if (nhca_rkey_get(&rq->wr_ref, &qp->key_user, h->rkey, h->va, h->dmalen,
				  IB_ACCESS_REMOTE_WRITE))
			return nhca_refuse_access(qp);
	} else if (h->info->flags & NHCA_OPF_IMMDT) {
		/* check the key before a missing receive request can cause an RNR NAK */
		if (!nhca_key_opens(qp, h, IB_ACCESS_REMOTE_WRITE, NULL))
			return nhca_refuse_write(qp, h);
	}
	rq->wr_len = h->dmalen;
	rq->wr_left = h->dmalen;
	nhca_message_begin(rq);
	return NHCA_EXECUTED;
}

/*
 * Copy the payload of a WRITE.  The key, or the R_Key reference, is checked in the live section in
 * which the bytes are copied.
 * Return: 0, an error of the copy, or -EBUSY as nhca_write_placed().
 */
static int nhca_write_copy(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	struct nhca_sge sge = {
		.addr = h->va,
		.length = src->len,
		.lkey = h->rkey,
	};
	struct nhca_rq *rq = &qp->rq;
	struct nhca_iter it __uninitialized;
	int err;

	if ((h->info->flags & NHCA_OPF_FIRST) && (h->info->flags & NHCA_OPF_LAST))
		nhca_iter_sges(&it, &qp->key_user, &sge, 1, 0, src->len, IB_ACCESS_REMOTE_WRITE);
	else
		nhca_iter_rkey(&it, &rq->wr_ref, rq->wr_len - rq->wr_left, src->len, true);
	nhca_message_for(rq, src, &it);
	nhca_live_enter();
	err = nhca_source_copy(src, &it);
	if (unlikely(it.backed))
		err = nhca_write_placed(qp, src, err, &it);
	return nhca_live_exit_fault(err, &it, rq->wr_left - src->len, rq->fault);
}

/* A disk could not write the bytes of a WRITE. */
static enum nhca_verdict nhca_fail_write(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	if (h->info->flags & NHCA_OPF_IMMDT)
		return nhca_fail_recv(qp, IB_WC_LOC_QP_OP_ERR, NHCA_NAK_REM_OP);
	return nhca_refuse(qp, NHCA_NAK_REM_OP, IB_EVENT_QP_FATAL);
}

static enum nhca_verdict nhca_do_write(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	bool last = h->info->flags & NHCA_OPF_LAST;
	bool waits = nhca_waits_for_disk(&qp->rq, src);
	struct nhca_rq *rq = &qp->rq;
	enum nhca_verdict verdict;
	int err;

	if ((h->info->flags & NHCA_OPF_FIRST) && !waits) {
		verdict = nhca_open_write(qp, h);
		if (verdict != NHCA_EXECUTED)
			return verdict;
	}
	/* the payloads of a WRITE must add up to the length in its first packet (9.7.4.1.6) */
	if (last ? src->len != rq->wr_left : src->len >= rq->wr_left)
		return nhca_refuse_invalid(qp);
	if (h->info->flags & NHCA_OPF_IMMDT) {
		/* before the copy, because a packet that gets an RNR NAK must have no effect */
		verdict = nhca_need_recv(qp, h->opcode);
		if (verdict != NHCA_EXECUTED)
			return verdict;
	}
	err = waits ? 0 : nhca_write_copy(qp, src);
	if (unlikely(rq->disk) && !err)
		err = nhca_message_sync(rq, src);
	if (err == -EAGAIN || err == -EBUSY)
		return nhca_defer_for_page(qp, src);
	if (src->err)
		return NHCA_DROPPED;
	if (err)
		return err == -EIO ? nhca_fail_write(qp, h) : nhca_refuse_write(qp, h);
	rq->wr_left -= src->len;
	if (last)
		nhca_rkey_put(&rq->wr_ref);

	if (h->info->flags & NHCA_OPF_IMMDT)
		nhca_complete_recv(qp, h, IB_WC_RECV_RDMA_WITH_IMM, rq->wr_len);
	return NHCA_EXECUTED;
}

/*
 * Return: number of payload bytes of the next @max packets after @rx, or of all further packets of
 * the batch with the length of @rx if these are fewer.  The keys of a receive request are checked
 * only for these bytes.
 */
static u32 nhca_middle_bytes(const struct nhca_rx *rx, u32 max)
{
	u32 left = (rx->skb->len - rx->udp_off) / rx->udp_len - 1;

	return min(max, left) * rx->payload;
}

/*
 * Place the packets from the middle of a message that follow @rx in the batch.
 * Return: number of packets placed.  If the batch has more packets, the caller handles the next one
 * as a single packet.
 */
static u32 nhca_execute_middle(struct nhca_qp *qp, struct nhca_rx *rx)
{
	bool write = rx->hdr.info->flags & NHCA_OPF_WRITE;
	struct nhca_rq *rq = &qp->rq;
	struct nhca_iter it __uninitialized;
	u32 n;

	if (rx->payload != qp->mtu || !nhca_opseq_ok(rq->seq, rx->hdr.info))
		return 0;
	/* leave at least one byte of the WRITE for its last packet */
	if (write) {
		n = (rq->wr_left - 1) / qp->mtu;
		nhca_iter_rkey(&it, &rq->wr_ref, rq->wr_len - rq->wr_left, n * qp->mtu, true);
	} else {
		n = (rq->rwr->length - rq->recv_off) / qp->mtu;
		nhca_iter_sges(&it, &rq->key_user, rq->rwr->sge, rq->rwr->num_sge, rq->recv_off,
			       nhca_middle_bytes(rx, n), IB_ACCESS_LOCAL_WRITE);
	}
	nhca_iter_for(&it, rq->fault, rq->op);
	nhca_live_enter();
	n = nhca_rx_copy_alike(rx, n, &it);
	if (unlikely(it.backed))
		n = nhca_middle_placed(qp, write, n, &it);
	nhca_live_exit();
	if (write)
		rq->wr_left -= n * qp->mtu;
	else
		rq->recv_off += n * qp->mtu;
	return n;
}

bool nhca_res_alloc(struct nhca_rq *rq)
{
	struct nhca_qp *qp = container_of(rq, struct nhca_qp, rq);

	if (!rq->res && rq->nres)
		rq->res = nhca_memcg_kzalloc(qp->memcg, array_size(rq->nres, sizeof(*rq->res)),
					     GFP_ATOMIC | __GFP_NOWARN);
	return rq->res || !rq->nres;
}

/*
 * Return: a new responder resource, or NULL if the peer has too many requests outstanding.  A
 * resource whose response is only being repeated for a duplicate may be reused: the peer may have
 * at most rq->nres such requests outstanding, so it has already received this response.
 */
struct nhca_res *nhca_res_new(struct nhca_qp *qp, const struct nhca_hdr *h, u32 npsn)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	u32 lower;

	if (!rq->nres)
		return NULL;
	/*
	 * Lower the indices by a multiple of rq->nres, so that they never wrap, even if a response
	 * is always due.  The indices stay at rq->nres or more: a lower index would mean that not
	 * all entries of the ring were filled.
	 */
	if (rq->res_tail >= 2 * rq->nres) {
		lower = rounddown(rq->res_tail - rq->nres, rq->nres);
		rq->res_head -= lower;
		rq->res_tail -= lower;
	}
	res = nhca_res_at(rq, rq->res_head);
	if (rq->res_head >= rq->nres && res->busy) {
		if (!res->replay)
			return NULL;
		nhca_res_done(res);
	}
	/* the oldest entry is reused */
	if (rq->res_head - rq->res_tail == rq->nres)
		rq->res_tail++;
	/* an entry that is not busy has no R_Key reference; else memset() would corrupt a list */
	if (WARN_ON_ONCE(res->ref.held))
		nhca_rkey_put(&res->ref);
	memset(res, 0, sizeof(*res));
	res->psn = h->psn;
	res->npsn = npsn;
	res->opcode = h->opcode & NHCA_OP_MASK;
	res->pd = qp->key_user.pd;
	res->busy = true;
	res->rkey = h->rkey;
	res->va = h->va;
	res->len = h->dmalen;
	res->end = npsn;
	res->stop = h->dmalen;
	res->msn = rq->msn + 1;
	res->op = ++rq->ops;
	rq->res_head++;
	return res;
}

/* Undo nhca_res_new(): the request was not executed, so no duplicate may find the resource. */
void nhca_res_drop(struct nhca_rq *rq, struct nhca_res *res)
{
	nhca_res_done(res);
	res->opcode = 0;
	rq->res_head--;
}

void nhca_rq_put_rkey(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	u32 i;

	lockdep_assert_held(&rq->lock);
	nhca_rkey_put(&rq->wr_ref);
	for (i = 0; rq->res && i < rq->nres; i++)
		nhca_res_done(&rq->res[i]);
	rq->res_tail = rq->res_head;
}

/* A READ of several packets begins: set res->zcopy, and let a disk begin to read the bytes. */
static void nhca_read_ahead(struct nhca_qp *qp, struct nhca_res *res)
{
	struct nhca_iter it __uninitialized;

	nhca_iter_rkey(&it, &res->ref, 0, res->len, false);
	nhca_iter_for(&it, qp->rq.fault, res->op);
	nhca_live_enter();
	res->zcopy = nhca_iter_ahead(&it, res->rkey);
	nhca_live_exit();
}

static enum nhca_verdict nhca_do_read(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	bool open;
	u32 npsn;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    h->dmalen > NHCA_MAX_MSG_SIZE)
		return nhca_refuse_invalid(qp);
	/* without memory, treat the request as lost: the peer repeats the request */
	if (!nhca_res_alloc(rq))
		return NHCA_DROPPED;
	npsn = nhca_psn_count(h->dmalen, qp->mtu);
	res = nhca_res_new(qp, h, npsn);
	if (!res)
		return nhca_refuse_invalid(qp);
	if (npsn > 1) {
		open = !nhca_rkey_get(&res->ref, &qp->key_user, h->rkey, h->va, h->dmalen,
				      IB_ACCESS_REMOTE_READ);
		if (open)
			nhca_read_ahead(qp, res);
	} else {
		open = nhca_key_opens(qp, h, IB_ACCESS_REMOTE_READ, res);
	}
	if (!open) {
		nhca_res_drop(rq, res);
		return nhca_refuse_access(qp);
	}
	rq->psn = nhca_psn_add(rq->psn, npsn - 1);
	return NHCA_EXECUTED;
}

enum nhca_verdict nhca_execute(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_opinfo *info = src->hdr->info;
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	/* a same-host step may stand for several packets, so its length is not checked */
	if (!nhca_opseq_ok(rq->seq, info) ||
	    (src->rx && !nhca_opseq_len_ok(info, src->len, qp->mtu)))
		return nhca_refuse_invalid(qp);
	if (qp->ibqp.qp_type == IB_QPT_XRC_TGT && !nhca_xrc_enter(qp, src->hdr))
		return nhca_refuse_invalid(qp);
	if (info->flags & NHCA_OPF_SEND)
		return nhca_do_send(qp, src);
	if (info->flags & NHCA_OPF_WRITE)
		return nhca_do_write(qp, src);
	if (info->flags & NHCA_OPF_READ)
		return nhca_do_read(qp, src->hdr);
	if (info->flags & NHCA_OPF_ATOMIC_WRITE)
		return nhca_do_atomic_write(qp, src);
	if (info->flags & NHCA_OPF_FLUSH)
		return nhca_do_flush(qp, src);
	return nhca_do_atomic(qp, src);
}

static void nhca_request_count(const struct nhca_qp *qp, u32 flags)
{
	if (flags & NHCA_OPF_WRITE)
		nhca_count(&qp->who, NHCA_CNT_WRITE_REQUESTS);
	else if (flags & NHCA_OPF_READ)
		nhca_count(&qp->who, NHCA_CNT_READ_REQUESTS);
	else if (flags & NHCA_OPF_ATOMIC)
		nhca_count(&qp->who, NHCA_CNT_ATOMIC_REQUESTS);
}

void nhca_accept(struct nhca_qp *qp, const struct nhca_hdr *h, u32 npsn)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	rq->psn = nhca_psn_add(rq->psn, npsn);
	rq->seq = nhca_opseq_next(rq->seq, h->info);
	rq->nak_sent = false;
	/* the NAK is not sent yet, and the expected request was executed: send an ACK instead */
	if (rq->nak_due && !rq->fatal) {
		rq->nak_due = false;
		nhca_resp_ack_now(rq);
	}
	if (h->info->flags & NHCA_OPF_LAST) {
		rq->msn = (rq->msn + 1) & NHCA_PSN_MASK;
		nhca_request_count(qp, h->info->flags);
	}
	if (h->ackreq && nhca_is_reliable(qp) && !(h->info->flags & NHCA_OPF_RD_ATOMIC))
		nhca_resp_ack_due(qp, h);
	if (READ_ONCE(qp->state) == IB_QPS_RTR && !qp->comm_est) {
		qp->comm_est = true;
		nhca_qp_event(qp, IB_EVENT_COMM_EST);
	}
}

static void nhca_nak_sequence(struct nhca_qp *qp)
{
	qp->rq.nak_sent = true;
	nhca_count(&qp->who, NHCA_CNT_SENT_SEQ_NAK);
	nhca_resp_nak(qp, NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, false, -1);
}

/*
 * Refuse a request if a rule of fault injection applies.  Return: NHCA_EXECUTED: no rule applies.
 */
static enum nhca_verdict nhca_refuse_injected(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_fault_hit s __uninitialized;

	if (!nhca_inject(qp->dev, NHCA_AT_REQUEST, qp->qpn, h->opcode, &s))
		return NHCA_EXECUTED;
	switch (s.arg) {
	case NHCA_NAK_INVALID_REQ:
		return nhca_refuse_invalid(qp);
	case NHCA_NAK_REM_ACCESS:
		return nhca_refuse_access(qp);
	case NHCA_NAK_REM_OP:
		return nhca_refuse(qp, NHCA_NAK_REM_OP, IB_EVENT_QP_FATAL);
	default:
		nhca_nak_sequence(qp);
		return NHCA_DROPPED;
	}
}

s32 nhca_rq_reach(const struct nhca_qp *qp)
{
	return READ_ONCE(qp->peer) & NHCA_CAP_PRESENT ? NHCA_CWND_MAX : NHCA_REACH_FOREIGN;
}

static enum nhca_verdict nhca_respond_rc(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_source src = nhca_source_packet(rx);
	const struct nhca_hdr *h = &rx->hdr;
	struct nhca_rq *rq = &qp->rq;
	s32 ahead = nhca_psn_diff(h->psn, rq->psn);
	enum nhca_verdict verdict = NHCA_DROPPED;

	if (rq->fatal)
		return verdict;
	if (ahead < 0) {
		nhca_duplicate(qp, h);
	} else if (ahead > 0) {
		nhca_count(&qp->who, NHCA_CNT_OUT_OF_SEQ_REQUEST);
		/* one NAK for each gap (9.7.5.1.4) */
		if (!rq->nak_sent && ahead <= nhca_rq_reach(qp))
			nhca_nak_sequence(qp);
	} else {
		verdict = nhca_refuse_injected(qp, h);
		if (verdict == NHCA_EXECUTED)
			verdict = nhca_execute(qp, &src);
		if (verdict == NHCA_EXECUTED)
			nhca_accept(qp, h, 1);
	}
	return verdict;
}

/*
 * UC has no responses: if a packet of a message is missing or wrong, the whole message is dropped,
 * and its receive request is used for the next message (9.8.2.2.3, 9.8.2.2.5).
 */
static enum nhca_verdict nhca_respond_uc(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_source src = nhca_source_packet(rx);
	const struct nhca_hdr *h = &rx->hdr;
	struct nhca_rq *rq = &qp->rq;
	bool first = h->info->flags & NHCA_OPF_FIRST;
	enum nhca_verdict verdict = NHCA_DROPPED;

	if (rq->fatal)
		return verdict;
	if (h->psn != rq->psn || first) {
		if (h->psn != rq->psn) {
			nhca_count(&qp->who, NHCA_CNT_OUT_OF_SEQ_REQUEST);
			rq->unbroken = false;
			rq->op_psn = NHCA_PSN_NONE;
		}
		rq->seq = NHCA_SEQ_IDLE;
		rq->psn = h->psn;
		rq->drop = !first;
	}
	if (!rq->drop && nhca_opseq_ok(rq->seq, h->info) &&
	    nhca_opseq_len_ok(h->info, rx->payload, qp->mtu))
		verdict = nhca_execute(qp, &src);
	if (verdict == NHCA_EXECUTED) {
		nhca_accept(qp, h, 1);
	} else if (verdict != NHCA_DEFERRED) {
		rq->drop = true;
		rq->op_psn = NHCA_PSN_NONE;
		rq->seq = NHCA_SEQ_IDLE;
		rq->psn = nhca_psn_add(h->psn, 1);
	}
	return verdict;
}

enum nhca_verdict nhca_respond_execute(struct nhca_qp *qp, struct nhca_rx *rx)
{
	lockdep_assert_held(&qp->rq.lock);
	return nhca_is_reliable(qp) ? nhca_respond_rc(qp, rx) : nhca_respond_uc(qp, rx);
}

u32 nhca_respond_middle(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_rq *rq = &qp->rq;
	u32 n;

	/* the previous packet may have put the QP in error, or may be deferred */
	if (!nhca_rq_open(qp) || rq->fatal || !list_empty(&rq->deferred) ||
	    nhca_psn_add(rx->hdr.psn, 1) != rq->psn)
		return 0;
	n = nhca_execute_middle(qp, rx);
	if (n)
		nhca_accept(qp, &rx->hdr, n);
	return n;
}
