// SPDX-License-Identifier: GPL-2.0
/*
 * The module's table of QP numbers.  All devices share one number space, so a packet's QPN alone
 * identifies the QP (except GSI, QPN 1).  The receive path then compares the addresses.
 *
 * The order of numbers differs with each module load and cannot be predicted (memory/shuffle.c), so
 * a peer that has seen QPNs cannot guess other QPNs.  A number is reused only after all other
 * numbers were used.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "../memory/shuffle.h"
#include "engine.h"

/**
 * struct nhca_qpn - a number in use
 * @node: in the hash table
 * @qpn:  the number
 * @qp:   the queue pair, read under RCU; NULL: the number is reserved, and lookups find no QP
 * @rcu:  for kfree_rcu()
 */
struct nhca_qpn {
	struct rhash_head node;
	u32 qpn;
	struct nhca_qp *qp;
	struct rcu_head rcu;
};

/*
 * This is a hash table and not an xarray: the numbers are far apart, so each of them would need
 * separate xarray nodes.
 */
static struct rhashtable nhca_qpns;
static struct nhca_shuffle qpn_numbers __read_mostly;

/* maximum number of QPNs that qpn_alloc() tries, because some are in use */
#define QPN_TRIES	1024

/* The numbers are random, so each can serve as its own hash. */
static u32 qpn_hash(const void *data, u32 len, u32 seed)
{
	return *(const u32 *)data;
}

/* This comparison is faster than memcmp(), which the table would use otherwise. */
static int qpn_differs(struct rhashtable_compare_arg *arg, const void *entry)
{
	return ((const struct nhca_qpn *)entry)->qpn != *(const u32 *)arg->key;
}

static const struct rhashtable_params qpn_params = {
	.head_offset = offsetof(struct nhca_qpn, node),
	.key_offset = offsetof(struct nhca_qpn, qpn),
	.key_len = sizeof(u32),
	.hashfn = qpn_hash,
	.obj_cmpfn = qpn_differs,
	.automatic_shrinking = true,
};

/* Allocate a number for @qp.  If @qp is NULL, reserve a number whose lookup finds no QP. */
static int qpn_alloc(u32 *qpn, struct nhca_qp *qp)
{
	struct nhca_qpn *entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	int tries, err = -EEXIST;

	if (!entry)
		return -ENOMEM;
	entry->qp = qp;
	/* -EBUSY: the table is growing, so try again */
	for (tries = 0; tries < QPN_TRIES && (err == -EEXIST || err == -EBUSY); tries++) {
		entry->qpn = nhca_shuffle_next(&qpn_numbers);
		*qpn = entry->qpn;
		err = rhashtable_lookup_insert_fast(&nhca_qpns, &entry->node, qpn_params);
	}
	if (err)
		kfree(entry);
	return err == -EEXIST ? -EBUSY : err;
}

int nhca_qpn_reserve(u32 *qpn)
{
	return qpn_alloc(qpn, NULL);
}

/* Context: RCU read side. */
static struct nhca_qpn *qpn_find(u32 qpn)
{
	return rhashtable_lookup(&nhca_qpns, &qpn, qpn_params);
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
	struct nhca_qpn *entry;

	rcu_read_lock();
	entry = qpn_find(qpn);
	if (entry && !rhashtable_remove_fast(&nhca_qpns, &entry->node, qpn_params))
		kfree_rcu(entry, rcu);
	rcu_read_unlock();
}

#if IS_ENABLED(CONFIG_INFINIBAND_NHCA_KUNIT_TEST)
bool nhca_qpn_is_taken(u32 qpn)
{
	bool taken;

	rcu_read_lock();
	taken = qpn_find(qpn);
	rcu_read_unlock();
	return taken;
}
#endif

int nhca_qp_table_add(struct nhca_qp *qp)
{
	int err;

	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		qp->qpn = NHCA_GSI_QPN;
		qp->key_user.qpn = qp->qpn;
		qp->who.qpn = qp->qpn;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}

	/* the QP is in RESET: a packet that finds it now is refused */
	err = qpn_alloc(&qp->qpn, qp);
	if (err)
		return err;
	qp->key_user.qpn = qp->qpn;
	qp->who.qpn = qp->qpn;
	return 0;
}

void nhca_qp_table_hide(struct nhca_qp *qp)
{
	struct nhca_qpn *entry;

	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
		return;
	}
	/* from here on the number is reserved, and lookups find no QP */
	rcu_read_lock();
	entry = qpn_find(qp->qpn);
	if (!WARN_ON_ONCE(!entry))
		WRITE_ONCE(entry->qp, NULL);
	rcu_read_unlock();
}

void nhca_qp_table_del(struct nhca_qp *qp)
{
	if (qp->ibqp.qp_type != IB_QPT_GSI)
		nhca_qpn_free(qp->qpn);
}

struct nhca_qp *nhca_qp_find(struct nhca_dev *dev, u32 qpn)
{
	struct nhca_qpn *entry;

	if (qpn == NHCA_GSI_QPN)
		return dev ? rcu_dereference(dev->gsi) : NULL;
	entry = qpn_find(qpn);
	return entry ? READ_ONCE(entry->qp) : NULL;
}

int nhca_qp_table_init(void)
{
	int err;

	nhca_shuffle_init(&qpn_numbers, NHCA_QPN_MIN, NHCA_QPN_MAX);
	err = rhashtable_init(&nhca_qpns, &qpn_params);
	if (err)
		return err;
	err = nhca_resp_init();
	if (err)
		rhashtable_destroy(&nhca_qpns);
	return err;
}

void nhca_qp_table_exit(void)
{
	nhca_resp_exit();
	WARN_ON(atomic_read(&nhca_qpns.nelems));
	rhashtable_destroy(&nhca_qpns);
	/* kfree_rcu() frees the entries, and needs no code of this module */
}
