// SPDX-License-Identifier: GPL-2.0
/*
 * XRC domains.  An XRC domain has no state but its owner.  To check whether a QP and an SRQ belong
 * to the same domain, the driver compares addresses of struct ib_xrcd.  The core has the list of
 * the QPs in a domain.
 */
#include "objects.h"

static struct nhca_xrcd *to_nhca_xrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct nhca_xrcd, ibxrcd);
}

int nhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct nhca_user *user = nhca_udata_user(udata);
	int err;

	err = nhca_obj_get(to_nhca_dev(ibxrcd->device), user, NHCA_POOL_XRCDS);
	if (!err)
		to_nhca_xrcd(ibxrcd)->owner = nhca_user_hold(user);
	return err;
}

int nhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct nhca_user *owner = to_nhca_xrcd(ibxrcd)->owner;

	nhca_obj_put(to_nhca_dev(ibxrcd->device), owner, NHCA_POOL_XRCDS);
	nhca_user_put(owner);
	return 0;
}
