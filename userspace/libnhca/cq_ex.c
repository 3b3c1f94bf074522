// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended polling: the application reads the entries in place, between ibv_start_poll() and
 * ibv_end_poll().
 */
#include <errno.h>
#include <time.h>

#include "nhca.h"

static void set_current(struct nhca_cq *cq)
{
	cq->cqe = nhca_slot(&cq->ring, cq->cons);
	cq->vcq.cq_ex.status = cq->cqe->status;
	cq->vcq.cq_ex.wr_id = cq->cqe->wr_id;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct nhca_cq *cq = to_ncq_ex(ibcq);

	if (attr->comp_mask)
		return EINVAL;

	nhca_cq_lock(cq);
	cq->prod = nhca_load(&cq->ring.hdr->prod);
	if (cq->prod == cq->cons) {
		nhca_cq_unlock(cq);
		return ENOENT;
	}
	cq->have_wall = false;
	set_current(cq);
	return 0;
}

/*
 * cq->cqe is NULL if the current entry has been consumed.  Then cq->cons is the number of the next
 * entry.
 */
static int next_poll(struct ibv_cq_ex *ibcq)
{
	struct nhca_cq *cq = to_ncq_ex(ibcq);

	if (cq->cqe) {
		cq->cons++;
		cq->cqe = NULL;
	}
	if (cq->cons == cq->prod) {
		/*
		 * All known entries are consumed.  Publish the consumer index before reading more,
		 * so that the CQ does not overflow while a consumer polls without ibv_end_poll().
		 */
		nhca_store(&cq->ring.hdr->cons, cq->cons);
		cq->prod = nhca_load(&cq->ring.hdr->prod);
		if (cq->cons == cq->prod)
			return ENOENT;
	}
	set_current(cq);
	return 0;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct nhca_cq *cq = to_ncq_ex(ibcq);
	bool leaves;

	if (cq->cqe) {
		cq->cons++;
		cq->cqe = NULL;
		nhca_store(&cq->ring.hdr->cons, cq->cons);
	}
	leaves = nhca_cq_leaves(cq, cq->prod);
	nhca_cq_unlock(cq);
	if (leaves)
		ibv_cmd_req_notify_cq(ibv_cq_ex_to_cq(ibcq), 0);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->flags;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->byte_len;
}

/* ibv_wc_read_invalidated_rkey() also calls this function. */
static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct nhca_cqe *cqe = to_ncq_ex(ibcq)->cqe;

	if (cqe->flags & NHCA_WC_WITH_INV)
		return (__force __be32)cqe->ex.invalidated_rkey;
	return (__force __be32)cqe->ex.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->src_qp;
}

/* Ethernet has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ibcq)
{
	const struct nhca_cqe *cqe = to_ncq_ex(ibcq)->cqe;

	return nhca_cqe_of_channel(cqe) ? 0 : cqe->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return to_ncq_ex(ibcq)->cqe->timestamp;
}

/*
 * Return: CLOCK_REALTIME - CLOCK_MONOTONIC_RAW in ns.  CLOCK_MONOTONIC_RAW is the mean of two
 * readings, one before and one after the reading of CLOCK_REALTIME.
 */
static int64_t wall_offset(void)
{
	uint64_t before, after, wall;
	struct timespec ts;

	before = nhca_raw_clock();
	clock_gettime(CLOCK_REALTIME, &ts);
	after = nhca_raw_clock();
	wall = ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
	return wall - (before + (after - before) / 2);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ibcq)
{
	struct nhca_cq *cq = to_ncq_ex(ibcq);

	if (!cq->have_wall) {
		cq->wall = wall_offset();
		cq->have_wall = true;
	}
	return cq->cqe->timestamp + cq->wall;
}

int nhca_cq_check_wc_flags(uint64_t wc_flags)
{
	return check_comp_mask(wc_flags,
			       IBV_WC_STANDARD_FLAGS |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) ?
		       0 : EOPNOTSUPP;
}

void nhca_cq_set_ops(struct nhca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	nhca_cq_set_channel_ops(cq);

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
