// SPDX-License-Identifier: GPL-2.0
/*
 * XRC domains: as a PD, one is what its address is.  The core keeps the QPs that are open in it.
 */
#include "objects.h"

int nhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return 0;
}

int nhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return 0;
}
