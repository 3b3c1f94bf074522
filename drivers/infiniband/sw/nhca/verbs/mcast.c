// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: transport/mcast.c attaches and detaches the QPs.  The core calls the functions
 * of this file only for UD QPs, with a GID that is a multicast address.
 */
#include "objects.h"
#include "../transport/rx.h"

int nhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct in6_addr mgid;

	memcpy(&mgid, gid->raw, sizeof(mgid));
	return nhca_verb_error(nhca_mcast_attach(to_nhca_qp(ibqp), &mgid));
}

int nhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct in6_addr mgid;

	memcpy(&mgid, gid->raw, sizeof(mgid));
	return nhca_mcast_detach(to_nhca_qp(ibqp), &mgid);
}
