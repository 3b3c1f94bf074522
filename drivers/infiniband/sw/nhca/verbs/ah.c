// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles.  A WQE names an address handle by its number.
 */
#include "objects.h"
#include "../memory/memory.h"
#include "../net/net.h"

static const struct xa_limit nhca_ah_range = XA_LIMIT(1, (1 << 24) - 1);

/*
 * Reserve a number for @av; lookups do not find the address vector yet.  The lock disables
 * interrupts because kernel consumers may create and destroy AHs with interrupts disabled.
 * Return: 0; -ENOMEM: no memory; -EBUSY: all numbers are in use.
 */
static int nhca_ah_reserve(struct nhca_dev *dev, struct nhca_av *av, gfp_t gfp)
{
	unsigned long flags;
	int err;

	xa_lock_irqsave(&dev->ah_ids, flags);
	err = __xa_alloc_cyclic(&dev->ah_ids, &av->id, NULL, nhca_ah_range, &dev->ah_next, gfp);
	xa_unlock_irqrestore(&dev->ah_ids, flags);
	return err < 0 ? err : 0;
}

/* Let lookups of @id find @av.  If @av is NULL, free the number, so that lookups find nothing. */
static void nhca_ah_publish(struct nhca_dev *dev, u32 id, struct nhca_av *av)
{
	unsigned long flags;

	xa_lock_irqsave(&dev->ah_ids, flags);
	/* nhca_ah_reserve() has allocated the entry, so __xa_store() allocates no memory. */
	if (av)
		__xa_store(&dev->ah_ids, id, av, 0);
	else
		__xa_erase(&dev->ah_ids, id);
	xa_unlock_irqrestore(&dev->ah_ids, flags);
}

static int nhca_ah_setup(struct nhca_dev *dev, struct ib_ah *ibah,
			 struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct nhca_create_ah_resp resp = {};
	struct nhca_av *av;
	int err;

	av = nhca_av_create(dev, init->ah_attr, gfp);
	if (IS_ERR(av))
		return PTR_ERR(av);
	av->pd = ibah->pd;

	err = nhca_ah_reserve(dev, av, gfp);
	if (err)
		goto err_av;

	if (udata) {
		resp.ah_id = av->id;
		err = nhca_respond(udata, &resp, sizeof(resp));
		if (err)
			goto err_id;
	}

	nhca_ah_publish(dev, av->id, av);
	to_nhca_ah(ibah)->av = av;
	return 0;

err_id:
	nhca_ah_publish(dev, av->id, NULL);
err_av:
	nhca_av_put(av);
	return err;
}

int nhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibah->device);
	int err;

	err = nhca_obj_get(dev, to_nhca_pd(ibah->pd)->owner, NHCA_POOL_AHS);
	if (err)
		return err;
	err = nhca_ah_setup(dev, ibah, init, udata);
	if (err)
		nhca_obj_put(dev, to_nhca_pd(ibah->pd)->owner, NHCA_POOL_AHS);
	return err;
}

int nhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	nhca_av_to_attr(to_nhca_ah(ibah)->av, attr);
	return 0;
}

int nhca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct nhca_dev *dev = to_nhca_dev(ibah->device);
	struct nhca_av *av = to_nhca_ah(ibah)->av;

	nhca_ah_publish(dev, av->id, NULL);
	/* A requester that still uses the address vector is an RCU reader, or has a reference. */
	nhca_av_put(av);
	nhca_obj_put(dev, to_nhca_pd(ibah->pd)->owner, NHCA_POOL_AHS);
	return 0;
}
