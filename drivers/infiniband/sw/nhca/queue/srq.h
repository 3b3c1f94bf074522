/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues.
 */
#ifndef NHCA_SRQ_H
#define NHCA_SRQ_H

#include "../bh.h"
#include "../nhca.h"
#include "rwq.h"

/**
 * struct nhca_srq - a shared receive queue
 * @ibsrq: the RDMA core's part
 * @dev:   the device
 * @wq:    the receive queue
 * @limit: IB_EVENT_SRQ_LIMIT_REACHED is raised once when fewer than @limit requests are posted; 0:
 *         the event is not armed; written with @wq.lock held
 * @srqn:  number of the SRQ, its index in nhca_dev.srq_ids; libibverbs returns this number, and
 *         requests of XRC peers contain it
 * @serial: upper 40 bits: a number that no other SRQ has, because @srqn is used again after the SRQ
 *         was destroyed; lower 24 bits: 0
 * @user:  user space owns the producer index of the ring
 * @broken: user space has stored an impossible index, and IB_EVENT_SRQ_ERR was raised; never
 *         cleared; written with @wq.lock held
 * @resize: serializes moves to another ring, because the RDMA core lets two threads modify an SRQ
 * @events: kernel consumers: events that @event has to raise: a bit for each enum ib_event_type
 * @event: bottom-half work that raises @events; nhca_srq_stop() cancels the work
 */
struct nhca_srq {
	struct ib_srq ibsrq;
	struct nhca_dev *dev;
	struct nhca_rwq wq;
	u32 limit;
	u32 srqn;
	u64 serial;
	bool user;
	bool broken;
	struct mutex resize;	/* one move at a time */
	atomic_t events;
	struct nhca_bh event;
};

/* bits of an SRQ's number; these low bits of nhca_srq.serial are 0 */
#define NHCA_SRQN_BITS	24

static inline struct nhca_srq *to_nhca_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct nhca_srq, ibsrq);
}

/**
 * nhca_srq_init - initialize the mutex, the serial number and the bottom-half work of an SRQ
 * @srq: zeroed, except for the RDMA core's part, @srq->dev and @srq->user
 *
 * For an XRC SRQ of a kernel consumer, the function also calls nhca_cq_serve_xrc().
 * Context: process, sleeps; before other code can find @srq.
 */
void nhca_srq_init(struct nhca_srq *srq);

/**
 * nhca_srq_stop - stop the events of an SRQ, and destroy its mutex
 * @srq: the SRQ, from which no QP fetches any more; no event is raised after the function returns
 * Context: process, sleeps.
 */
void nhca_srq_stop(struct nhca_srq *srq);

/**
 * nhca_srq_fetch - fetch the next receive request, and raise the SRQ's events
 * @srq: the SRQ
 * @rwr: as for nhca_rwq_fetch()
 *
 * The function raises IB_EVENT_SRQ_LIMIT_REACHED and IB_EVENT_SRQ_ERR of a user SRQ with the SRQ's
 * lock released.  Bottom-half work raises these events of a kernel consumer's SRQ, because the
 * caller may hold locks of a QP and may be in the call chain of a verb
 * (Documentation/infiniband/core_locking.rst).
 * Context: any; callers may hold a QP's receive lock.
 * Return: as nhca_rwq_fetch().
 */
int nhca_srq_fetch(struct nhca_srq *srq, struct nhca_rwr *rwr);

/**
 * nhca_srq_dump - copy the state of an SRQ for `rdma resource'
 * @srq: the SRQ
 * @res: filled in
 * Context: any.
 */
void nhca_srq_dump(struct nhca_srq *srq, struct nhca_res_srq *res);

#endif /* NHCA_SRQ_H */
