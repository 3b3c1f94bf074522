// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_wc_read_*(): values that only completions of channels have.  Queue pairs of other types
 * may use the same CQ.
 */
#include <errno.h>

#include "nhca.h"

static_assert((int)NHCADV_WC_LOCAL == NHCA_WC_CH_LOCAL &&
	      (int)NHCADV_WC_WRITE == NHCA_WC_CH_WRITE &&
	      (int)NHCADV_WC_READ == NHCA_WC_CH_READ &&
	      (int)NHCADV_WC_FRAME == NHCA_WC_CH_FRAME &&
	      (int)NHCADV_WC_REMOTE_WRITE == NHCA_WC_CH_REMOTE_WRITE &&
	      (int)NHCADV_WC_REMOTE_READ == NHCA_WC_CH_REMOTE_READ &&
	      (int)NHCADV_WC_MOVE == NHCA_WC_CH_MOVE, "kinds");

/* Return: the current entry, or zeros if it does not belong to a channel */
static const struct nhca_cqe *current(struct nhcadv_cq *dv)
{
	static const struct nhca_cqe nothing;
	const struct nhca_cqe *cqe = container_of(dv, struct nhca_cq, dv)->cqe;

	return nhca_cqe_of_channel(cqe) ? cqe : &nothing;
}

static uint64_t wc_read_rcxt(struct nhcadv_cq *dv)
{
	const struct nhca_cqe *cqe = current(dv);

	return NHCA_RCXT_ID(cqe->chan.rcxt_index, cqe->chan.rcxt_key);
}

static uint32_t wc_read_tid(struct nhcadv_cq *dv)
{
	return current(dv)->chan.tid;
}

static uint32_t wc_read_frame(struct nhcadv_cq *dv)
{
	return current(dv)->chan.frame;
}

static uint32_t wc_read_src_channel(struct nhcadv_cq *dv)
{
	return current(dv)->src_qp;
}

static enum nhcadv_wc_kind wc_read_kind(struct nhcadv_cq *dv)
{
	return container_of(dv, struct nhca_cq, dv)->cqe->opcode;
}

void nhca_cq_set_channel_ops(struct nhca_cq *cq)
{
	cq->dv = (struct nhcadv_cq){
		.wc_read_rcxt = wc_read_rcxt,
		.wc_read_tid = wc_read_tid,
		.wc_read_frame = wc_read_frame,
		.wc_read_src_channel = wc_read_src_channel,
		.wc_read_kind = wc_read_kind,
	};
}

struct nhcadv_cq *nhcadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *ibcq)
{
	if (!nhca_is_device(ibcq->context->device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return &to_ncq_ex(ibcq)->dv;
}
