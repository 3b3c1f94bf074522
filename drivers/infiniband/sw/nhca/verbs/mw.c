// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: allocation within the limits of their number.  memory/ implements the windows.
 * Work requests bind them.
 */
#include "objects.h"
#include "../memory/memory.h"

static struct nhca_mw *to_nhca_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct nhca_mw, ibmw);
}

int nhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibmw->device);
	int err;

	err = nhca_obj_get(dev, to_nhca_pd(ibmw->pd)->owner, NHCA_POOL_MWS);
	if (err)
		return err;
	err = nhca_mw_init(to_nhca_mw(ibmw), ibmw->pd, ibmw->type);
	if (err)
		nhca_obj_put(dev, to_nhca_pd(ibmw->pd)->owner, NHCA_POOL_MWS);
	return err;
}

int nhca_dealloc_mw(struct ib_mw *ibmw)
{
	nhca_mw_fini(to_nhca_mw(ibmw));
	nhca_obj_put(to_nhca_dev(ibmw->device), to_nhca_pd(ibmw->pd)->owner, NHCA_POOL_MWS);
	return 0;
}
