// SPDX-License-Identifier: GPL-2.0
/*
 * Copies work requests out of the send ring and checks them; writes work requests of kernel
 * consumers into the ring.  Other files read only the copies, which user space cannot change.
 */
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "../memory/memcg.h"
#include "engine.h"

#define NHCA_OPS_DATAGRAM	(BIT(NHCA_WR_SEND) | BIT(NHCA_WR_SEND_WITH_IMM))
#define NHCA_OPS_LOCAL		(BIT_ULL(NHCA_WR_LOCAL_INV) | BIT_ULL(NHCA_WR_BIND_MW))
#define NHCA_OPS_KERNEL		BIT_ULL(NHCA_WR_REG_MR)
#define NHCA_OPS_UC		(NHCA_OPS_DATAGRAM | BIT(NHCA_WR_RDMA_WRITE) | \
				 BIT(NHCA_WR_RDMA_WRITE_WITH_IMM))
#define NHCA_OPS_RC		(NHCA_OPS_UC | BIT(NHCA_WR_RDMA_READ) | \
				 BIT(NHCA_WR_ATOMIC_CMP_AND_SWP) | \
				 BIT(NHCA_WR_ATOMIC_FETCH_AND_ADD) | \
				 BIT(NHCA_WR_SEND_WITH_INV))
#define NHCA_OPS_PLACING	(BIT(NHCA_WR_FLUSH) | BIT(NHCA_WR_ATOMIC_WRITE))
#define NHCA_OPS_INLINE		(NHCA_OPS_UC | BIT(NHCA_WR_SEND_WITH_INV) | \
				 BIT(NHCA_WR_ATOMIC_WRITE))
#define NHCA_SEND_FLAGS		(NHCA_SEND_FENCE | NHCA_SEND_SIGNALED | \
				 NHCA_SEND_SOLICITED | NHCA_SEND_INLINE)

u64 nhca_sq_allowed(const struct nhca_qp *qp)
{
	u64 ops = nhca_is_raw(qp) ? BIT(NHCA_WR_SEND) :
		  nhca_is_datagram(qp) ? NHCA_OPS_DATAGRAM :
		  nhca_is_reliable(qp) ? NHCA_OPS_RC | NHCA_OPS_LOCAL :
		  NHCA_OPS_UC | NHCA_OPS_LOCAL;

	if (qp->ibqp.qp_type == IB_QPT_RC)
		ops |= NHCA_OPS_PLACING;
	if (!qp->user && !nhca_is_datagram(qp))
		ops |= NHCA_OPS_KERNEL;
	return ops;
}

static bool nhca_op_allowed(const struct nhca_qp *qp, u8 opcode)
{
	return opcode < 64 && (qp->sq.allowed & BIT_ULL(opcode));
}

bool nhca_sq_more(struct nhca_qp *qp)
{
	lockdep_assert_held(&qp->sq.lock);
	return READ_ONCE(qp->sq.ring.hdr->prod) != qp->sq.fetched;
}

static bool nhca_flush_ok(const struct nhca_send_wqe *wqe)
{
	return wqe->flush.type && wqe->flush.level <= NHCA_FLUSH_REGION &&
	       !(wqe->flush.type & ~(NHCA_FLUSH_GLOBAL | NHCA_FLUSH_PERSISTENT)) &&
	       !wqe->num_sge;
}

/*
 * Check the header of a WQE, which says how much of the slot may be read.
 * Return: true if the header is valid.
 */
static bool nhca_wqe_ok(const struct nhca_qp *qp, const struct nhca_send_wqe *wqe)
{
	if (!nhca_op_allowed(qp, wqe->opcode))
		return false;
	if (wqe->flags & ~NHCA_SEND_FLAGS)
		return false;
	if (wqe->opcode == NHCA_WR_FLUSH && !nhca_flush_ok(wqe))
		return false;
	if (wqe->flags & NHCA_SEND_INLINE)
		return !wqe->num_sge && wqe->inline_len <= qp->sq.max_inline &&
		       (BIT_ULL(wqe->opcode) & NHCA_OPS_INLINE);
	return !wqe->inline_len && wqe->num_sge <= qp->sq.max_sge;
}

/* Set the length of the message.  Return: false if it exceeds NHCA_MAX_MSG_SIZE. */
static bool nhca_swr_length(struct nhca_swr *swr)
{
	u64 sum = 0;
	u32 i;

	if (swr->wqe.flags & NHCA_SEND_INLINE) {
		swr->length = swr->wqe.inline_len;
		return true;
	}
	for (i = 0; i < swr->wqe.num_sge; i++)
		sum += swr->wqe.sge[i].length;
	swr->length = sum;
	return sum <= NHCA_MAX_MSG_SIZE;
}

/* Return: true if the operation and the type of QP allow the length of the message (11.6.2). */
static bool nhca_swr_ok(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	if (nhca_is_raw(qp))
		return swr->length >= ETH_HLEN && swr->length <= ETH_HLEN + VLAN_HLEN +
							       READ_ONCE(qp->dev->netdev->mtu);
	switch (swr->wqe.opcode) {
	case NHCA_WR_ATOMIC_CMP_AND_SWP:
	case NHCA_WR_ATOMIC_FETCH_AND_ADD:
	case NHCA_WR_ATOMIC_WRITE:
		return swr->length == sizeof(u64);
	case NHCA_WR_FLUSH:
		return swr->wqe.flush.length <= NHCA_MAX_MSG_SIZE;
	default:
		return !nhca_is_datagram(qp) ||
		       swr->length <= READ_ONCE(qp->dev->mtu);
	}
}

/*
 * Maximum number of requests that a queue keeps for reuse.  An allocation for a process is charged
 * to its memory cgroup, and this charge costs more than the allocation itself.  Several requests
 * are kept because one ACK retires several requests, and the consumer then posts as many.
 */
#define NHCA_SQ_SPARES	8

/*
 * Return: a request with room for any WQE, zeroed except for the WQE; NULL if there is no memory.
 */
static struct nhca_swr *nhca_swr_new(struct nhca_sq *sq)
{
	struct nhca_qp *qp = container_of(sq, struct nhca_qp, sq);
	struct nhca_swr *swr;
	size_t extra;

	swr = sq->spares;
	if (swr) {
		sq->spares = swr->next_spare;
		sq->nspares--;
	} else {
		/* room for the largest WQE, because the request is reused */
		extra = max_t(size_t, sq->max_sge * sizeof(struct nhca_sge), sq->max_inline);
		swr = nhca_memcg_kmalloc(qp->memcg, sizeof(*swr) + extra,
					 GFP_ATOMIC | __GFP_NOWARN);
	}
	if (swr)
		memset(swr, 0, offsetof(struct nhca_swr, wqe));
	return swr;
}

void nhca_swr_free(struct nhca_sq *sq, struct nhca_swr *swr)
{
	if (sq->nspares == NHCA_SQ_SPARES) {
		kfree(swr);
		return;
	}
	swr->next_spare = sq->spares;
	sq->spares = swr;
	sq->nspares++;
}

void nhca_sq_free_spares(struct nhca_sq *sq)
{
	struct nhca_swr *swr;

	while ((swr = sq->spares)) {
		sq->spares = swr->next_spare;
		kfree(swr);
	}
}

struct nhca_swr *nhca_sq_fetch(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	const struct nhca_send_wqe *slot;
	struct nhca_swr *swr;
	int n;

	lockdep_assert_held(&sq->lock);
	/* fetched entries are in use until they are retired */
	n = nhca_ring_produced(&sq->ring, sq->cons);
	if (n < 0 || n < (int)(sq->fetched - sq->cons))
		return ERR_PTR(-EPROTO);
	if (n == (int)(sq->fetched - sq->cons))
		return NULL;

	swr = nhca_swr_new(sq);
	if (!swr)
		return ERR_PTR(-ENOMEM);
	slot = nhca_ring_slot(&sq->ring, sq->fetched);
	memcpy(&swr->wqe, slot, sizeof(swr->wqe));
	/* user space may change the slot at any time: use only the copy of the header */
	barrier();

	if (nhca_wqe_ok(qp, &swr->wqe)) {
		if (swr->wqe.flags & NHCA_SEND_INLINE)
			memcpy(swr->wqe.data, slot->data, swr->wqe.inline_len);
		else
			nhca_sges_copy(swr->wqe.sge, slot->sge, swr->wqe.num_sge);
		if (!nhca_swr_length(swr) || !nhca_swr_ok(qp, swr))
			swr->status = IB_WC_LOC_LEN_ERR;
	} else {
		swr->status = IB_WC_LOC_QP_OP_ERR;
	}

	sq->fetched++;
	list_add_tail(&swr->list, &sq->inflight);
	return swr;
}

void nhca_sq_purge(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr, *next;

	lockdep_assert_held(&sq->lock);
	list_splice_init(&sq->retired, &sq->inflight);
	list_for_each_entry_safe(swr, next, &sq->inflight, list) {
		list_del(&swr->list);
		nhca_swr_free(sq, swr);
	}
	sq->cur = NULL;
	sq->fetched = READ_ONCE(sq->ring.hdr->prod);
	sq->cons = sq->fetched;
	sq->rd_atomic = 0;
	nhca_sq_ackreq_sent(sq);
	sq->ackreq_boost = 0;
	sq->rnr_wait = false;
	sq->gone_back = false;
	sq->draining = false;
	nhca_ring_release(&sq->ring, sq->cons);
}

static int nhca_wqe_from_wr(struct nhca_qp *qp, struct nhca_send_wqe *wqe,
			    const struct ib_send_wr *wr)
{
	static const u8 opcode[] = {
		[IB_WR_RDMA_WRITE] = NHCA_WR_RDMA_WRITE,
		[IB_WR_RDMA_WRITE_WITH_IMM] = NHCA_WR_RDMA_WRITE_WITH_IMM,
		[IB_WR_SEND] = NHCA_WR_SEND,
		[IB_WR_SEND_WITH_IMM] = NHCA_WR_SEND_WITH_IMM,
		[IB_WR_RDMA_READ] = NHCA_WR_RDMA_READ,
		[IB_WR_ATOMIC_CMP_AND_SWP] = NHCA_WR_ATOMIC_CMP_AND_SWP,
		[IB_WR_ATOMIC_FETCH_AND_ADD] = NHCA_WR_ATOMIC_FETCH_AND_ADD,
		[IB_WR_SEND_WITH_INV] = NHCA_WR_SEND_WITH_INV,
		[IB_WR_LOCAL_INV] = NHCA_WR_LOCAL_INV,
		[IB_WR_ATOMIC_WRITE] = NHCA_WR_ATOMIC_WRITE,
		[IB_WR_REG_MR] = NHCA_WR_REG_MR,
	};
	u32 len = 0;
	int i;

	if (wr->opcode < 0 || wr->opcode >= ARRAY_SIZE(opcode) ||
	    opcode[wr->opcode] != wr->opcode || !nhca_op_allowed(qp, wr->opcode))
		return -EOPNOTSUPP;
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	if (wr->send_flags & IB_SEND_FENCE)
		wqe->flags |= NHCA_SEND_FENCE;
	if (wr->send_flags & IB_SEND_SIGNALED)
		wqe->flags |= NHCA_SEND_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		wqe->flags |= NHCA_SEND_SOLICITED;
	wqe->ex.imm_data = (__force u32)wr->ex.imm_data;

	if (nhca_is_datagram(qp)) {
		const struct ib_ud_wr *ud = ud_wr(wr);

		wqe->ud.ah_id = nhca_ah_id(ud->ah);
		wqe->ud.remote_qpn = ud->remote_qpn;
		wqe->ud.remote_qkey = ud->remote_qkey;
		wqe->ud.pkey_index = ud->pkey_index;
	} else if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		const struct ib_atomic_wr *atomic = atomic_wr(wr);

		wqe->atomic.remote_addr = atomic->remote_addr;
		wqe->atomic.compare_add = atomic->compare_add;
		wqe->atomic.swap = atomic->swap;
		wqe->atomic.rkey = atomic->rkey;
	} else if (wr->opcode == IB_WR_RDMA_WRITE || wr->opcode == IB_WR_RDMA_READ ||
		   wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM ||
		   wr->opcode == IB_WR_ATOMIC_WRITE) {
		wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.rkey = rdma_wr(wr)->rkey;
	} else if (wr->opcode == IB_WR_REG_MR) {
		/* the upper 24 bits of lkey name the region; the consumer may change the lower 8 */
		wqe->mw.mr_lkey = reg_wr(wr)->mr->lkey;
		wqe->mw.new_rkey = reg_wr(wr)->key;
		wqe->mw.access = reg_wr(wr)->access;
	}

	/* requests without outgoing data ignore IB_SEND_INLINE */
	if (!(wr->send_flags & IB_SEND_INLINE) || !(BIT_ULL(wr->opcode) & NHCA_OPS_INLINE)) {
		wqe->num_sge = wr->num_sge;
		for (i = 0; i < wr->num_sge; i++) {
			wqe->sge[i].addr = wr->sg_list[i].addr;
			wqe->sge[i].length = wr->sg_list[i].length;
			wqe->sge[i].lkey = wr->sg_list[i].lkey;
		}
		return 0;
	}

	/* inline data of a kernel consumer is at kernel addresses */
	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > qp->sq.max_inline - len)
			return -EINVAL;
		memcpy(wqe->data + len, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		len += wr->sg_list[i].length;
	}
	wqe->flags |= NHCA_SEND_INLINE;
	wqe->inline_len = len;
	return 0;
}

int nhca_send_post(struct nhca_qp *qp, const struct ib_send_wr *wr)
{
	struct nhca_sq *sq = &qp->sq;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&sq->post_lock, flags);
	if (sq->prod - READ_ONCE(sq->cons) >= sq->max_wr) {
		err = -ENOMEM;
	} else {
		err = nhca_wqe_from_wr(qp, nhca_ring_slot(&sq->ring, sq->prod), wr);
		if (!err)
			/* publishes the entry; pairs with the acquire in nhca_ring_produced() */
			smp_store_release(&sq->ring.hdr->prod, ++sq->prod);
	}
	spin_unlock_irqrestore(&sq->post_lock, flags);
	return err;
}
