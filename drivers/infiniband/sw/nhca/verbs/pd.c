// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains: a PD is what its address is, nothing more.
 */
#include "objects.h"

int nhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);

	return nhca_obj_get(&dev->pds, NHCA_MAX_PD) ? 0 : -ENOMEM;
}

int nhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	nhca_obj_put(&to_nhca_dev(ibpd->device)->pds);
	return 0;
}
