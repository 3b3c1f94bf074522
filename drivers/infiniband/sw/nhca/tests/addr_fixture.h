/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about datagrams: the device of qp_fixture.h has an address in the initial namespace,
 * by which the checks of received packets find the device. The UD QP @f->qp replaces the RC QP.
 */
#ifndef NHCA_TEST_ADDR_FIXTURE_H
#define NHCA_TEST_ADDR_FIXTURE_H

#include <net/net_namespace.h>

#include "qp_fixture.h"

#define FIX_QKEY	0x11223344

/* Return: the IPv4 address @addr as a GID. */
static inline union ib_gid fix_gid(u32 addr)
{
	union ib_gid gid;

	ipv6_addr_set_v4mapped(htonl(addr), (struct in6_addr *)gid.raw);
	return gid;
}

/* Return: a UD QP in RTS with the Q_Key FIX_QKEY. */
static inline struct nhca_qp *fix_ud(struct kunit *test)
{
	struct nhca_qp *qp = fix_qp(test, IB_QPT_UD, NULL);

	fix_connect(test, qp);
	qp->attr.qkey = FIX_QKEY;
	return qp;
}

static inline int addr_fixture_init(struct kunit *test)
{
	union ib_gid gid = fix_gid(FIX_SADDR);
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;
	struct nhca_net *nn;

	if (err)
		return err;
	nn = nhca_net_get(&init_net);
	KUNIT_ASSERT_FALSE(test, IS_ERR(nn));
	f->dev->nn = nn;
	KUNIT_ASSERT_EQ(test, nhca_addr_add(f->dev, &gid, LOOPBACK_IFINDEX), 0);
	fix_destroy(&f->qp);
	f->qp = fix_ud(test);
	return 0;
}

static inline void addr_fixture_exit(struct kunit *test)
{
	union ib_gid gid = fix_gid(FIX_SADDR);
	struct qp_fixture *f = test->priv;

	if (f && f->dev && f->dev->nn && f->dev->nn != (struct nhca_net *)f->dev) {
		nhca_addr_del(f->dev, &gid, LOOPBACK_IFINDEX);
		nhca_net_put(f->dev->nn);
	}
	qp_fixture_exit(test);
}

#endif /* NHCA_TEST_ADDR_FIXTURE_H */
