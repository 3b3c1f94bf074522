// SPDX-License-Identifier: GPL-2.0
/*
 * The module's table of queue pairs.  All devices share one number space, so
 * that a packet's QPN alone finds its QP; the QP's addresses are then checked.
 * Numbers begin at a random value at module load: a packet from before a reload
 * finds nobody.
 */
#include <linux/random.h>

#include "engine.h"

static DEFINE_XARRAY_ALLOC(nhca_qps);
static u32 nhca_qpn_next;

/* @qp: NULL: the number is taken, and found to be nobody's */
static int qpn_alloc(u32 *qpn, struct nhca_qp *qp)
{
	struct xa_limit limit = XA_LIMIT(NHCA_QPN_MIN, NHCA_QPN_MASK - 1);
	int err = xa_alloc_cyclic(&nhca_qps, qpn, qp, limit, &nhca_qpn_next, GFP_KERNEL);

	/* 1: the numbers have come round */
	return min(err, 0);
}

int nhca_qpn_reserve(u32 *qpn)
{
	return qpn_alloc(qpn, NULL);
}

u32 nhca_qpn_upcoming(void)
{
	return READ_ONCE(nhca_qpn_next);
}

void nhca_qpn_free(u32 qpn)
{
	xa_erase(&nhca_qps, qpn);
}

int nhca_qp_table_add(struct nhca_qp *qp)
{
	int err;

	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		qp->qpn = NHCA_GSI_QPN;
		qp->party.qpn = qp->qpn;
		qp->who.qpn = qp->qpn;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}

	/* in RESET nobody looks at the number before it is complete */
	err = qpn_alloc(&qp->qpn, qp);
	if (err)
		return err;
	qp->party.qpn = qp->qpn;
	qp->who.qpn = qp->qpn;
	return 0;
}

void nhca_qp_table_del(struct nhca_qp *qp)
{
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		nhca_qpn_free(qp->qpn);
}

struct nhca_qp *nhca_qp_find(struct nhca_dev *dev, u32 qpn)
{
	if (qpn == NHCA_GSI_QPN)
		return dev ? rcu_dereference(dev->gsi) : NULL;
	return xa_load(&nhca_qps, qpn);
}

int nhca_qp_table_init(void)
{
	nhca_qpn_next = NHCA_QPN_MIN + get_random_u32() % (NHCA_QPN_MASK - NHCA_QPN_MIN);
	return 0;
}

void nhca_qp_table_exit(void)
{
	WARN_ON(!xa_empty(&nhca_qps));
	xa_destroy(&nhca_qps);
}
