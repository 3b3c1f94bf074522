// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_post_send(), ibv_post_recv(), ibv_post_srq_recv() and the doorbells.
 *
 * The checks here let a wrong work request fail without moving the QP to the error state.  The
 * kernel does not rely on these checks: it repeats each check that its own safety needs.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>
#include <util/compiler.h>

#include "nhca.h"

#define OP(x) (1u << IBV_WR_ ## x)

/* Sets of operations */
#define SENDS	(OP(SEND) | OP(SEND_WITH_IMM))
#define WRITES	(OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM))
#define ATOMICS	(OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))
#define LOCALS	(OP(LOCAL_INV) | OP(BIND_MW))

#define UC_OPS	(SENDS | WRITES)
#define RC_OPS	(UC_OPS | ATOMICS | OP(RDMA_READ) | OP(SEND_WITH_INV))
#define PLACING	(OP(FLUSH) | OP(ATOMIC_WRITE))
#define INLINE_OPS (SENDS | WRITES | OP(SEND_WITH_INV) | OP(ATOMIC_WRITE))

/* The provider copies these numbers of libibverbs to the ABI of the kernel unchanged. */
static_assert((int)IBV_WR_LOCAL_INV == NHCA_WR_LOCAL_INV &&
	      (int)IBV_WR_BIND_MW == NHCA_WR_BIND_MW &&
	      (int)IBV_WR_SEND_WITH_INV == NHCA_WR_SEND_WITH_INV &&
	      (int)IBV_WR_FLUSH == NHCA_WR_FLUSH &&
	      (int)IBV_WR_ATOMIC_WRITE == NHCA_WR_ATOMIC_WRITE, "opcodes");
static_assert((int)IBV_SEND_FENCE == NHCA_SEND_FENCE &&
	      (int)IBV_SEND_SIGNALED == NHCA_SEND_SIGNALED &&
	      (int)IBV_SEND_SOLICITED == NHCA_SEND_SOLICITED &&
	      (int)IBV_SEND_INLINE == NHCA_SEND_INLINE, "send flags");
static_assert((int)IBV_WC_GRH == NHCA_WC_GRH &&
	      (int)IBV_WC_WITH_IMM == NHCA_WC_WITH_IMM &&
	      (int)IBV_WC_WITH_INV == NHCA_WC_WITH_INV, "WC flags");
static_assert(sizeof(struct ibv_sge) == sizeof(struct nhca_sge), "SGE");

uint32_t nhca_send_ops(enum ibv_qp_type type, uint32_t features)
{
	uint32_t locals = features & NHCA_FEATURE_LOCAL_OPS ? LOCALS : 0;

	switch (type) {
	case IBV_QPT_RC:
		return RC_OPS | locals |
		       (features & NHCA_FEATURE_FLUSH ? PLACING : 0);
	case IBV_QPT_UC:
		return UC_OPS | locals;
	case IBV_QPT_XRC_SEND:
		return RC_OPS | locals;
	case IBV_QPT_XRC_RECV:
		return 0;
	case IBV_QPT_RAW_PACKET:
		return OP(SEND);
	default:
		return SENDS;
	}
}

uint64_t nhca_qp_ex_ops(uint32_t ops)
{
	uint64_t ex = ops & (OP(SEND_WITH_INV) | (OP(SEND_WITH_INV) - 1));

	if (ops & OP(FLUSH))
		ex |= IBV_QP_EX_WITH_FLUSH;
	if (ops & OP(ATOMIC_WRITE))
		ex |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	return ex;
}

/*
 * Ring a doorbell of a QP.  The doorbell is an ioctl, because the kernel refuses write() after a
 * change of credentials and in a process that has imported the context.
 * @method: NHCA_METHOD_QP_*_DOORBELL
 * @attr: NHCA_ATTR_QP_*_DOORBELL_HANDLE
 * Return: 0 or an errno.
 */
static int doorbell(struct ibv_qp *ibqp, uint16_t method, uint16_t attr)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr handle;
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_QP,
			.method_id = method,
			.num_attrs = 1,
			.driver_id = NHCA_RDMA_DRIVER_ID,
		},
		.handle = {
			.attr_id = attr,
			.flags = UVERBS_ATTR_F_MANDATORY,
			.data = ibqp->handle,
		},
	};
	int ret;

	static_assert(sizeof(cmd) == sizeof(cmd.hdr) + sizeof(cmd.handle),
		      "the attribute follows the header");

	do {
		ret = ioctl(ibqp->context->cmd_fd, RDMA_VERBS_IOCTL, &cmd);
	} while (ret && errno == EINTR);
	return ret ? errno : 0;
}

int nhca_sq_doorbell(struct ibv_qp *ibqp)
{
	return doorbell(ibqp, NHCA_METHOD_QP_SEND_DOORBELL,
			NHCA_ATTR_QP_SEND_DOORBELL_HANDLE);
}

/*
 * Return: true if new receive requests need a doorbell, which is the case only in the error state.
 * The barrier pairs with the barrier of the kernel, which sets the flag and then reads the producer
 * index.  Either this thread sees the flag, or the kernel sees the new entries.
 */
static bool wants_doorbell(struct nhca_wq *wq)
{
	atomic_thread_fence(memory_order_seq_cst);
	return nhca_load(&wq->ring.hdr->flags) & NHCA_RING_F_NEED_DOORBELL;
}

static int put_inline(struct nhca_qp *qp, struct nhca_send_wqe *wqe,
		      const struct ibv_send_wr *wr)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return EINVAL;
		memcpy(wqe->data + len, (void *)(uintptr_t)sge->addr,
		       sge->length);
		len += sge->length;
	}
	wqe->inline_len = len;
	return 0;
}

static int put_sges(struct nhca_qp *qp, struct nhca_send_wqe *wqe,
		    const struct ibv_send_wr *wr)
{
	int i;

	if (wr->num_sge > qp->sq.max_sge)
		return EINVAL;

	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
	}
	wqe->num_sge = wr->num_sge;
	return 0;
}

void nhca_put_bind(struct nhca_send_wqe *wqe, const struct ibv_mw *mw,
		   uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	wqe->mw.addr = info->addr;
	wqe->mw.length = info->length;
	wqe->mw.mr_lkey = info->mr ? info->mr->lkey : 0;
	wqe->mw.mw_rkey = mw->rkey;
	wqe->mw.new_rkey = rkey;
	wqe->mw.access = info->mw_access_flags;
}

static int put_operation(struct nhca_qp *qp, struct nhca_send_wqe *wqe,
			 const struct ibv_send_wr *wr, enum ibv_mw_type binds)
{
	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		wqe->ud.ah_id = to_nah(wr->wr.ud.ah)->id;
		wqe->ud.remote_qpn = wr->wr.ud.remote_qpn;
		wqe->ud.remote_qkey = wr->wr.ud.remote_qkey;
	}

	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;

	/*
	 * Convert the opcode to int, because the enum of older rdma-core releases lacks some of
	 * these values.
	 */
	switch ((int)wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		wqe->ex.imm_data = (__force __u32)wr->imm_data;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->ex.imm_data = (__force __u32)wr->imm_data;
		SWITCH_FALLTHROUGH;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		wqe->rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->rdma.rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = wr->wr.atomic.remote_addr;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		wqe->atomic.rkey = wr->wr.atomic.rkey;
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->ex.invalidate_rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != binds)
			return EINVAL;
		nhca_put_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			      &wr->bind_mw.bind_info);
		break;
	default:
		break;
	}
	return 0;
}

static int put_send(struct nhca_qp *qp, struct nhca_send_wqe *wqe,
		    const struct ibv_send_wr *wr, enum ibv_mw_type binds)
{
	int ret;

	/* struct ibv_send_wr has no members for a FLUSH: only ibv_wr_flush() posts it. */
	if ((unsigned int)wr->opcode > IBV_WR_ATOMIC_WRITE ||
	    wr->opcode == IBV_WR_FLUSH || !(qp->ops & (1u << wr->opcode)) ||
	    !nhca_send_flags_ok(qp, wr->send_flags) || wr->num_sge < 0)
		return EINVAL;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags & NHCA_USED_FLAGS;
	ret = put_operation(qp, wqe, wr, binds);
	if (ret)
		return ret;

	/* Ignore IBV_SEND_INLINE of a request without outgoing data. */
	if (!(INLINE_OPS & (1u << wr->opcode)))
		wqe->flags &= ~NHCA_SEND_INLINE;
	/* LOCAL_INV and BIND_MW have no data: ignore the SGEs, which the caller need not clear. */
	if (LOCALS & (1u << wr->opcode))
		return 0;
	return wqe->flags & NHCA_SEND_INLINE ? put_inline(qp, wqe, wr) :
					       put_sges(qp, wqe, wr);
}

/* @binds: type of the memory windows that a BIND_MW may name */
static int post_sends(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		      struct ibv_send_wr **bad_wr, enum ibv_mw_type binds)
{
	struct nhca_qp *qp = to_nqp(ibqp);
	struct ibv_send_wr *first = wr;
	struct nhca_wq *sq = &qp->sq;
	uint32_t next;
	int ret = 0;
	int err;

	/* IBTA 10.3.1: no sends before the QP is ready to send */
	if (ibqp->state < IBV_QPS_RTS) {
		*bad_wr = wr;
		return EINVAL;
	}

	nhca_wq_lock(sq);
	for (next = sq->prod; wr; wr = wr->next, next++) {
		if (nhca_wq_full(sq, next)) {
			ret = ENOMEM;
			break;
		}
		ret = put_send(qp, nhca_slot(&sq->ring, next), wr, binds);
		if (ret)
			break;
	}
	if (next == sq->prod) {
		nhca_wq_unlock(sq);
		goto out;
	}
	nhca_wq_publish(sq, next);
	nhca_wq_unlock(sq);

	/*
	 * Make one system call for the whole list.  An error of the call takes precedence over the
	 * error of a request that was not posted.
	 */
	err = nhca_sq_doorbell(ibqp);
	if (err) {
		wr = first;
		ret = err;
	}
out:
	if (ret)
		*bad_wr = wr;
	return ret;
}

/*
 * A BIND_MW that names a type 1 window fails with EINVAL.  Only ibv_bind_mw() binds type 1 windows,
 * because their R_Key is chosen by the provider (IBTA 10.6.7.2).
 */
int nhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	return post_sends(ibqp, wr, bad_wr, IBV_MW_TYPE_2);
}

/*
 * Post receive requests.
 * @ring: output: true if the caller must ring the doorbell
 * Return: 0, or an errno with *@bad_wr set.
 */
static int put_recvs(struct nhca_wq *wq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr, bool *ring)
{
	struct nhca_recv_wqe *wqe;
	uint32_t next;
	int ret = 0;
	int i;

	*ring = false;
	nhca_wq_lock(wq);
	for (next = wq->prod; wr; wr = wr->next, next++) {
		if (nhca_wq_full(wq, next)) {
			ret = ENOMEM;
			break;
		}
		if (wr->num_sge < 0 || wr->num_sge > wq->max_sge) {
			ret = EINVAL;
			break;
		}
		wqe = nhca_slot(&wq->ring, next);
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = wr->num_sge;
		wqe->reserved = 0;
		for (i = 0; i < wr->num_sge; i++) {
			wqe->sge[i].addr = wr->sg_list[i].addr;
			wqe->sge[i].length = wr->sg_list[i].length;
			wqe->sge[i].lkey = wr->sg_list[i].lkey;
		}
	}
	if (next != wq->prod) {
		nhca_wq_publish(wq, next);
		*ring = wants_doorbell(wq);
	}
	nhca_wq_unlock(wq);
	if (ret)
		*bad_wr = wr;
	return ret;
}

int nhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	bool ring;
	int ret;
	int err;

	/* IBTA 10.3.1: no receives before the QP is initialized */
	if (ibqp->srq || ibqp->state == IBV_QPS_RESET) {
		*bad_wr = wr;
		return EINVAL;
	}

	ret = put_recvs(&to_nqp(ibqp)->rq, wr, bad_wr, &ring);
	if (ring) {
		err = doorbell(ibqp, NHCA_METHOD_QP_RECV_DOORBELL,
			       NHCA_ATTR_QP_RECV_DOORBELL_HANDLE);
		if (err) {
			*bad_wr = wr;
			ret = err;
		}
	}
	return ret;
}

/* A QP in the error state does not flush the receive requests of its SRQ: no doorbell is needed. */
int nhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	bool ring;

	return put_recvs(&to_nsrq(ibsrq)->wq, wr, bad_wr, &ring);
}

/* A WQ has no doorbell.  So the kernel would not flush requests posted in the error state. */
int nhca_post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr)
{
	bool ring;

	if (ibwq->state == IBV_WQS_ERR) {
		*bad_wr = wr;
		return EINVAL;
	}
	return put_recvs(&to_nwork(ibwq)->rq, wr, bad_wr, &ring);
}

int nhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *mw_bind)
{
	struct ibv_send_wr wr = {
		.wr_id = mw_bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = mw_bind->send_flags,
		.bind_mw.mw = mw,
		.bind_mw.rkey = ibv_inc_rkey(mw->rkey),
		.bind_mw.bind_info = mw_bind->bind_info,
	};
	struct ibv_send_wr *bad_wr;
	int ret;

	/* IBTA 11.2.8.2: zero-based addresses are for type 2 windows */
	if (mw_bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;

	ret = post_sends(ibqp, &wr, &bad_wr, IBV_MW_TYPE_1);
	if (!ret)
		mw->rkey = wr.bind_mw.rkey;
	return ret;
}
