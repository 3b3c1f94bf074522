// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles.  The kernel resolves and stores the address.  A send request names an address
 * handle by its number.
 */
#include <stdlib.h>

#include "nhca.h"

struct ibv_ah *nhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct nhca_ucreate_ah_resp resp = {};
	struct nhca_ah *ah;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	if (ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
			      sizeof(resp))) {
		free(ah);
		return NULL;
	}
	ah->id = resp.ah_id;
	return &ah->ah;
}

int nhca_destroy_ah(struct ibv_ah *ibah)
{
	int ret = ibv_cmd_destroy_ah(ibah);

	if (!ret)
		free(to_nah(ibah));
	return ret;
}
