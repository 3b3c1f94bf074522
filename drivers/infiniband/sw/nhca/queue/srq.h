/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues.
 */
#ifndef NHCA_SRQ_H
#define NHCA_SRQ_H

#include "../nhca.h"
#include "rwq.h"

/**
 * struct nhca_srq - a shared receive queue
 * @ibsrq: the core's part
 * @dev:   its device
 * @wq:    the receive queue
 * @limit: raise IB_EVENT_SRQ_LIMIT_REACHED once when fewer are posted; 0: not
 *         armed; under @wq.lock
 * @srqn:  number, in the device's srq_ids; by it libibverbs knows the SRQ, and XRC's peers
 * @user:  user space produces
 * @broken: user space broke the ring's rules and IB_EVENT_SRQ_ERR was raised;
 *         stays so; under @wq.lock
 */
struct nhca_srq {
	struct ib_srq ibsrq;
	struct nhca_dev *dev;
	struct nhca_rwq wq;
	u32 limit;
	u32 srqn;
	bool user;
	bool broken;
};

static inline struct nhca_srq *to_nhca_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct nhca_srq, ibsrq);
}

/**
 * nhca_srq_fetch - nhca_rwq_fetch() on an SRQ, plus its limit and error events
 * Context: any.  Return: as nhca_rwq_fetch().
 */
int nhca_srq_fetch(struct nhca_srq *srq, struct nhca_rwr *rwr);

/* what there is to be seen of it; any context */
void nhca_srq_dump(struct nhca_srq *srq, struct nhca_res_srq *res);

#endif /* NHCA_SRQ_H */
