// SPDX-License-Identifier: GPL-2.0
/*
 * Local operations, which the requester executes without packets: binding windows, opening and
 * closing keys (IBTA 10.6.7.2, 10.8.4).  Each operation is complete when nhca_local_run() returns;
 * an operation that closes a key waits for the live sections of other CPUs.
 */
#include "../observe/stub.h"
#include "engine.h"

void nhca_local_run(struct nhca_qp *qp, struct nhca_swr *swr)
{
	const struct nhca_send_wqe *wqe = &swr->wqe;
	int err;

	lockdep_assert_held(&qp->sq.lock);
	NHCA_STUB(nhca_local_run, qp, swr);
	switch (wqe->opcode) {
	case NHCA_WR_LOCAL_INV:
		err = nhca_local_inv(&qp->key_user, wqe->ex.invalidate_rkey, qp->user);
		break;
	case NHCA_WR_BIND_MW:
		err = nhca_mw_bind(&qp->key_user, wqe);
		break;
	case NHCA_WR_REG_MR:
		err = nhca_reg_fast(&qp->key_user, wqe->mw.mr_lkey, wqe->mw.new_rkey,
				    wqe->mw.access);
		break;
	default:
		err = -EINVAL;
	}
	/* IB_WC_MW_BIND_ERR is the specification's Memory Management Operation Error */
	if (err)
		swr->status = IB_WC_MW_BIND_ERR;
}
