// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting of send requests with ibv_qp_ex.  The setters build requests in the slots from the
 * producer index on.  The kernel does not read these slots, so ibv_wr_abort() only has to leave the
 * index unchanged.
 */
#include <errno.h>
#include <string.h>

#include "nhca.h"

void nhca_wr_fail(struct nhca_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
	qp->wr_wqe = NULL;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct nhca_qp *qp = to_nqp_ex(ibqp);

	nhca_wq_lock(&qp->sq);
	qp->wr_next = qp->sq.prod;
	qp->wr_wqe = NULL;
	/* IBTA 10.3.1: no sends before the QP is ready to send */
	qp->wr_err = ibqp->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	nhca_wq_unlock(&to_nqp_ex(ibqp)->sq);
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct nhca_qp *qp = to_nqp_ex(ibqp);
	int err = qp->wr_err;
	bool posted = false;

	if (!err && qp->wr_next != qp->sq.prod) {
		nhca_wq_publish(&qp->sq, qp->wr_next);
		posted = true;
	}
	nhca_wq_unlock(&qp->sq);

	return posted ? nhca_sq_doorbell(&ibqp->qp_base) : err;
}

struct nhca_send_wqe *nhca_wr_begin(struct nhca_qp *qp, uint8_t opcode)
{
	const struct ibv_qp_ex *ibqp = &qp->vqp.qp_ex;
	struct nhca_send_wqe *wqe;

	if (qp->wr_err)
		return NULL;
	if (nhca_wq_full(&qp->sq, qp->wr_next)) {
		nhca_wr_fail(qp, ENOMEM);
		return NULL;
	}
	if (!nhca_send_flags_ok(qp, ibqp->wr_flags)) {
		nhca_wr_fail(qp, EINVAL);
		return NULL;
	}

	wqe = nhca_slot(&qp->sq.ring, qp->wr_next++);
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = ibqp->wr_id;
	wqe->opcode = opcode;
	/* Ignore IBV_SEND_INLINE of the caller: wr_set_inline_data*() set NHCA_SEND_INLINE. */
	wqe->flags = ibqp->wr_flags & NHCA_USED_FLAGS & ~IBV_SEND_INLINE;
	qp->wr_wqe = wqe;
	return wqe;
}

static struct nhca_send_wqe *wr_begin(struct ibv_qp_ex *ibqp,
				      enum ibv_wr_opcode opcode)
{
	return nhca_wr_begin(to_nqp_ex(ibqp), opcode);
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	wr_begin(ibqp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm_data)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, IBV_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->ex.imm_data = (__force __u32)imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = invalidate_rkey;
}

static struct nhca_send_wqe *wr_rdma(struct ibv_qp_ex *ibqp,
				     enum ibv_wr_opcode opcode, uint32_t rkey,
				     uint64_t remote_addr)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, opcode);

	if (wqe) {
		wqe->rdma.remote_addr = remote_addr;
		wqe->rdma.rkey = rkey;
	}
	return wqe;
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey,
			 uint64_t remote_addr)
{
	wr_rdma(ibqp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			  uint64_t remote_addr)
{
	wr_rdma(ibqp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct nhca_send_wqe *wqe;

	wqe = wr_rdma(ibqp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	if (wqe)
		wqe->ex.imm_data = (__force __u32)imm_data;
}

static void wr_atomic(struct ibv_qp_ex *ibqp, enum ibv_wr_opcode opcode,
		      uint32_t rkey, uint64_t remote_addr, uint64_t compare_add,
		      uint64_t swap)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, opcode);

	if (wqe) {
		wqe->atomic.remote_addr = remote_addr;
		wqe->atomic.compare_add = compare_add;
		wqe->atomic.swap = swap;
		wqe->atomic.rkey = rkey;
	}
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	wr_atomic(ibqp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare,
		  swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	wr_atomic(ibqp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

#if NHCA_RDMA_CORE >= 45
static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct nhca_send_wqe *wqe;

	if (len > UINT32_MAX) {
		nhca_wr_fail(to_nqp_ex(ibqp), EINVAL);
		return;
	}
	wqe = wr_begin(ibqp, IBV_WR_FLUSH);
	if (wqe) {
		wqe->flush.remote_addr = remote_addr;
		wqe->flush.rkey = rkey;
		wqe->flush.length = len;
		wqe->flush.type = type;
		wqe->flush.level = level;
	}
}
#endif

#if NHCA_RDMA_CORE >= 44
static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct nhca_send_wqe *wqe;

	wqe = wr_rdma(ibqp, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	if (wqe) {
		memcpy(wqe->data, atomic_wr, NHCA_ATOMIC_WRITE_BYTES);
		wqe->inline_len = NHCA_ATOMIC_WRITE_BYTES;
		wqe->flags |= NHCA_SEND_INLINE;
	}
}
#endif

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, IBV_WR_LOCAL_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct nhca_send_wqe *wqe = wr_begin(ibqp, IBV_WR_BIND_MW);

	if (!wqe)
		return;
	if (mw->type != IBV_MW_TYPE_2)
		nhca_wr_fail(to_nqp_ex(ibqp), EINVAL);
	else
		nhca_put_bind(wqe, mw, rkey, info);
}

/* Return: the request that setters fill in, or NULL after an error */
static struct nhca_send_wqe *wr_current(struct nhca_qp *qp)
{
	if (!qp->wr_wqe)
		nhca_wr_fail(qp, EINVAL);
	return qp->wr_wqe;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct nhca_send_wqe *wqe = wr_current(to_nqp_ex(ibqp));

	if (wqe) {
		wqe->ud.ah_id = to_nah(ah)->id;
		wqe->ud.remote_qpn = remote_qpn;
		wqe->ud.remote_qkey = remote_qkey;
	}
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct nhca_send_wqe *wqe = wr_current(to_nqp_ex(ibqp));

	if (wqe)
		wqe->xrc_srqn = remote_srqn;
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct nhca_qp *qp = to_nqp_ex(ibqp);
	struct nhca_send_wqe *wqe = wr_current(qp);

	if (!wqe)
		return;
	if (!qp->sq.max_sge) {
		nhca_wr_fail(qp, EINVAL);
		return;
	}
	wqe->sge[0].addr = addr;
	wqe->sge[0].length = length;
	wqe->sge[0].lkey = lkey;
	wqe->num_sge = 1;
}

void nhca_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
			  const struct ibv_sge *sg_list)
{
	struct nhca_qp *qp = to_nqp_ex(ibqp);
	struct nhca_send_wqe *wqe = wr_current(qp);
	size_t i;

	if (!wqe)
		return;
	if (num_sge > qp->sq.max_sge) {
		nhca_wr_fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num_sge; i++) {
		wqe->sge[i].addr = sg_list[i].addr;
		wqe->sge[i].length = sg_list[i].length;
		wqe->sge[i].lkey = sg_list[i].lkey;
	}
	wqe->num_sge = num_sge;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct nhca_qp *qp = to_nqp_ex(ibqp);
	struct nhca_send_wqe *wqe = wr_current(qp);
	uint32_t len = 0;
	size_t i;

	if (!wqe)
		return;
	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length > qp->max_inline - len) {
			nhca_wr_fail(qp, EINVAL);
			return;
		}
		memcpy(wqe->data + len, buf_list[i].addr, buf_list[i].length);
		len += buf_list[i].length;
	}
	wqe->inline_len = len;
	wqe->flags |= NHCA_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
			       size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

#if NHCA_RDMA_CORE >= 45
static_assert((int)IBV_FLUSH_GLOBAL == NHCA_FLUSH_GLOBAL &&
	      (int)IBV_FLUSH_PERSISTENT == NHCA_FLUSH_PERSISTENT &&
	      (int)IBV_FLUSH_RANGE == NHCA_FLUSH_RANGE &&
	      (int)IBV_FLUSH_MR == NHCA_FLUSH_REGION, "FLUSH");
#endif
static_assert(IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV &&
	      IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE &&
	      IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND &&
	      IBV_QP_EX_WITH_BIND_MW == 1 << IBV_WR_BIND_MW, "ops and opcodes");

void nhca_wr_set_ops(struct nhca_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = nhca_wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (ex->qp_base.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;

	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = wr_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = wr_bind_mw;
#if NHCA_RDMA_CORE >= 45
	if (ops & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = wr_flush;
#endif
#if NHCA_RDMA_CORE >= 44
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
#endif
}
