// SPDX-License-Identifier: GPL-2.0
/*
 * The module's table of queue pairs.  All devices share one number space, so
 * that a packet's QPN alone finds its QP; the QP's addresses are then checked.
 * Numbers are given out in an order that differs with each module load and that nobody can
 * predict, so that a peer that has seen QPNs cannot guess another; a number comes back
 * after all others.
 */
#include "../memory/shuffle.h"
#include "engine.h"

static DEFINE_XARRAY(nhca_qps);
static struct nhca_shuffle qpn_numbers __read_mostly;

/* numbers that are in use are stepped over */
#define QPN_TRIES	1024

/* @qp: NULL: the number is taken, and found to be nobody's */
static int qpn_alloc(u32 *qpn, struct nhca_qp *qp)
{
	int tries, err = -EBUSY;

	for (tries = 0; tries < QPN_TRIES && err == -EBUSY; tries++) {
		*qpn = nhca_shuffle_next(&qpn_numbers);
		err = xa_insert(&nhca_qps, *qpn, qp, GFP_KERNEL_ACCOUNT);
	}
	return err;
}

int nhca_qpn_reserve(u32 *qpn)
{
	return qpn_alloc(qpn, NULL);
}

u32 nhca_qpn_upcoming(void)
{
	return nhca_shuffle_upcoming(&qpn_numbers);
}

u32 nhca_qpn_place(u32 qpn)
{
	return nhca_shuffle_place(&qpn_numbers, qpn);
}

void nhca_qpn_free(u32 qpn)
{
	xa_erase(&nhca_qps, qpn);
}

#if IS_ENABLED(CONFIG_INFINIBAND_NHCA_KUNIT_TEST)
bool nhca_qpn_is_taken(u32 qpn)
{
	if (xa_insert(&nhca_qps, qpn, xa_mk_value(0), GFP_KERNEL))
		return true;
	xa_erase(&nhca_qps, qpn);
	return false;
}
#endif

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

void nhca_qp_table_hide(struct nhca_qp *qp)
{
	/* as a number that is reserved: it replaces an entry, which needs no memory */
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_store(&nhca_qps, qp->qpn, XA_ZERO_ENTRY, GFP_KERNEL);
}

void nhca_qp_table_del(struct nhca_qp *qp)
{
	if (qp->ibqp.qp_type != IB_QPT_GSI)
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
	nhca_shuffle_init(&qpn_numbers, NHCA_QPN_MIN, NHCA_QPN_MAX);
	return nhca_answer_init();
}

void nhca_qp_table_exit(void)
{
	nhca_answer_exit();
	WARN_ON(!xa_empty(&nhca_qps));
	xa_destroy(&nhca_qps);
}
