// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: creation, destruction, arming, resize, and ibv_poll_cq().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nhca.h"

static struct nhca_cq *create_cq(struct ibv_context *context,
				 const struct ibv_cq_init_attr_ex *attr,
				 struct ibv_pd *domain)
{
	struct nhca_ucreate_cq_resp resp = {};
	struct nhca_ucreate_cq cmd = {};
	struct nhca_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = nhca_ring_place(&cq->ring, domain, attr->cqe, sizeof(struct nhca_cqe),
			      NHCADV_RES_TYPE_CQ, &cmd.drv_payload.cq);
	if (ret)
		goto err_free;

	/* If attr->wc_flags request timestamps, the command requests them from the kernel. */
	ret = nhca_cmd_create_cq_ex(context, attr, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp), 0);
	if (ret)
		goto err_place;

	ret = nhca_ring_map(&cq->ring, context, &resp.drv_payload.cq,
			    sizeof(struct nhca_cqe));
	if (!ret && !cq->ring.hdr)
		ret = EPROTO;
	if (ret)
		goto err_destroy;

	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&cq->arming, PTHREAD_PROCESS_PRIVATE);
	cq->cons = nhca_load(&cq->ring.hdr->cons);
	return cq;

err_destroy:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_place:
	nhca_ring_unmap(&cq->ring);
err_free:
	free(cq);
	errno = ret;
	return NULL;
}

struct ibv_cq *nhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct nhca_cq *cq = create_cq(context, &attr, NULL);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *nhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_pd *domain = NULL;
	uint32_t flags = 0;
	struct nhca_cq *cq;

	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS |
						      IBV_CQ_INIT_ATTR_MASK_PD))
		goto err_unsupported;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		domain = attr->parent_domain;
		if (!domain || !to_npd(domain)->of) {
			errno = EINVAL;
			return NULL;
		}
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = attr->flags;
	/* IGNORE_OVERRUN is not supported: the kernel always detects an overrun. */
	if (!check_comp_mask(flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		goto err_unsupported;
	if (nhca_cq_check_wc_flags(attr->wc_flags))
		goto err_unsupported;

	cq = create_cq(context, attr, domain);
	if (!cq)
		return NULL;

	cq->domain = nhca_domain_get(domain);
	cq->single = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
		     nhca_domain_single(cq->domain);
	nhca_cq_set_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;

err_unsupported:
	errno = EOPNOTSUPP;
	return NULL;
}

int nhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct nhca_cq *cq = to_ncq(ibcq);
	struct ibv_modify_cq cmd = {};

	/*
	 * The flag stays set when moderation is turned off, because the kernel may still defer an
	 * event. While it is set, each arm sends a command, and the kernel decides when to raise
	 * the event.
	 */
	pthread_spin_lock(&cq->arming);
	cq->moderated = true;
	pthread_spin_unlock(&cq->arming);
	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/*
 * Arm the CQ in the header of the ring.
 * Context: the caller holds cq->arming.
 * Return: true if the caller must also send the command to the kernel:
 * - The kernel driver does not support arming in the ring.
 * - The CQ has moderation.
 * - There are unconsumed entries, and the consumer has consumed entries since the last event
 *   (hdr->cons differs from last_event_cons).  The command raises an event for these entries.
 */
static bool arm_in_ring(struct nhca_cq *cq, uint32_t kind)
{
	struct nhca_ring_hdr *hdr = cq->ring.hdr;
	uint32_t arm, cons, prod;

	if (!(nhca_load(&hdr->flags) & NHCA_RING_F_ARM_SEQ))
		return true;

	arm = nhca_load(&hdr->arm_seq);
	/*
	 * Keep a request that no event has acknowledged, unless that request is for solicited
	 * completions and the new request is for all completions.
	 */
	if (arm == nhca_load(&hdr->arm_seq_acked) || (arm & NHCA_ARM_MASK) < kind)
		nhca_store(&hdr->arm_seq, ((arm | NHCA_ARM_MASK) + 1) | kind);
	/*
	 * Pairs with the full barrier of the kernel between its store to prod and its load of
	 * arm_seq: either the kernel sees the request when it produces the next entry, or this
	 * thread sees that entry.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	cons = nhca_load(&hdr->cons);
	prod = nhca_load(&hdr->prod);
	return cq->moderated || (prod != cons && cons != nhca_load(&hdr->last_event_cons));
}

int nhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct nhca_cq *cq = to_ncq(ibcq);
	bool ask;

	pthread_spin_lock(&cq->arming);
	ask = arm_in_ring(cq, solicited_only ? NHCA_ARM_SOLICITED : NHCA_ARM_NEXT_COMP);
	pthread_spin_unlock(&cq->arming);
	return ask ? ibv_cmd_req_notify_cq(ibcq, solicited_only) : 0;
}

int nhca_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct nhca_uresize_cq_resp resp = {};
	struct nhca_cq *cq = to_ncq(ibcq);
	struct nhca_uresize_cq cmd = {};
	struct nhca_ring ring;
	int ret;

	ret = nhca_ring_place(&ring, cq->domain ? &cq->domain->pd : NULL, cqe,
			      sizeof(struct nhca_cqe), NHCADV_RES_TYPE_CQ,
			      &cmd.drv_payload.cq);
	if (ret)
		return ret;

	/*
	 * The kernel moves the unconsumed entries to a new ring.  The locks prevent other threads
	 * from consuming entries of the old ring until cq->ring is the new one.  Otherwise these
	 * threads would consume the same entries again from the new ring.
	 */
	nhca_cq_lock(cq);
	pthread_spin_lock(&cq->arming);
	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret)
		goto out;

	ret = nhca_ring_map(&ring, ibcq->context, &resp.drv_payload.cq,
			    sizeof(struct nhca_cqe));
	if (!ret && !ring.hdr)
		ret = EPROTO;
	if (ret) {
		verbs_err(verbs_get_ctx(ibcq->context),
			  "CQ %u: cannot map the ring after a resize (error %d): the CQ cannot be used any more, destroy it\n",
			  ibcq->handle, ret);
		goto out;
	}

	/* nhca_ring_unmap() below unmaps the old ring. */
	nhca_ring_swap(&cq->ring, &ring);
	cq->cons = nhca_load(&cq->ring.hdr->cons);
out:
	pthread_spin_unlock(&cq->arming);
	nhca_cq_unlock(cq);
	nhca_ring_unmap(&ring);
	return ret;
}

int nhca_destroy_cq(struct ibv_cq *ibcq)
{
	struct nhca_cq *cq = to_ncq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	nhca_ring_unmap(&cq->ring);
	pthread_spin_destroy(&cq->arming);
	pthread_spin_destroy(&cq->lock);
	nhca_domain_put(cq->domain);
	free(cq);
	return 0;
}

/*
 * The entries between the indices belong to user space until the consumer index passes them.
 * Therefore the entries of other QPs can move up towards the producer index.
 */
void nhca_cq_forget_qp(struct nhca_cq *cq, uint32_t qpn)
{
	const struct nhca_cqe *cqe;
	uint32_t from, to;

	nhca_cq_lock(cq);
	to = nhca_load(&cq->ring.hdr->prod);
	/* If the application has overwritten the indices, do not loop over 2^32 entries. */
	if (to - cq->cons > cq->ring.entries)
		to = cq->cons;
	for (from = to; from != cq->cons;) {
		cqe = nhca_slot(&cq->ring, --from);
		if (cqe->qp_num == qpn)
			continue;
		if (--to != from)
			memcpy(nhca_slot(&cq->ring, to), cqe, sizeof(*cqe));
	}
	if (to != cq->cons) {
		cq->cons = to;
		nhca_store(&cq->ring.hdr->cons, to);
	}
	nhca_cq_unlock(cq);
}

static void cqe_to_wc(const struct nhca_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->flags;
	wc->slid = 0;
	wc->dlid_path_bits = 0;

	if (nhca_cqe_of_channel(cqe)) {
		wc->invalidated_rkey = cqe->opcode == NHCA_WC_CH_FRAME ?
				       cqe->chan.frame : cqe->chan.tid;
		wc->pkey_index = 0;
		wc->sl = 0;
		return;
	}
	if (cqe->flags & NHCA_WC_WITH_INV)
		wc->invalidated_rkey = cqe->ex.invalidated_rkey;
	else
		wc->imm_data = (__force __be32)cqe->ex.imm_data;
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
}

bool nhca_cq_leaves(struct nhca_cq *cq, uint32_t prod)
{
	struct nhca_ring_hdr *hdr = cq->ring.hdr;
	uint32_t arm;

	if (likely(prod == cq->cons))
		return false;
	/*
	 * Pairs with the fence in arm_in_ring(): either a thread that arms now sees the new
	 * consumer index, or this thread sees the request of that thread.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	arm = nhca_load(&hdr->arm_seq);
	if (arm == cq->notified || arm == nhca_load(&hdr->arm_seq_acked))
		return false;
	cq->notified = arm;
	return true;
}

int nhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct nhca_cq *cq = to_ncq(ibcq);
	bool leaves = false;
	uint32_t ready;
	int i;

	nhca_cq_lock(cq);
	ready = nhca_load(&cq->ring.hdr->prod) - cq->cons;
	for (i = 0; i < num_entries && i < ready; i++)
		cqe_to_wc(nhca_slot(&cq->ring, cq->cons + i), &wc[i]);
	if (i > 0) {
		cq->cons += i;
		nhca_store(&cq->ring.hdr->cons, cq->cons);
		leaves = nhca_cq_leaves(cq, cq->cons + ready - i);
	}
	nhca_cq_unlock(cq);
	if (leaves)
		ibv_cmd_req_notify_cq(ibcq, 0);
	return i;
}
