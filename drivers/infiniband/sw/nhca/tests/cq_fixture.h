/* SPDX-License-Identifier: GPL-2.0 */
/* A CQ without a device, for tests. */
#ifndef NHCA_TEST_CQ_FIXTURE_H
#define NHCA_TEST_CQ_FIXTURE_H

#include <kunit/test.h>
#include <linux/slab.h>

#include "../queue/cq.h"
#include "../queue/ring.h"

struct cq_fixture {
	struct nhca_cq cq;
	unsigned int comp_events;
	unsigned int err_events;
	enum ib_event_type last_event;
	/* the completion handler polls, as the handler of a kernel consumer may */
	bool poll_in_handler;
	unsigned int polled_in_handler;
};

static inline bool cq_poll_one(struct nhca_cq *cq, struct nhca_cqe *cqe)
{
	unsigned long flags;
	bool got;

	spin_lock_irqsave(&cq->lock, flags);
	got = cq->cons != cq->prod;
	if (got)
		*cqe = *(struct nhca_cqe *)nhca_ring_slot(&cq->ring, cq->cons++);
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

static inline void on_completion(struct ib_cq *ibcq, void *context)
{
	struct cq_fixture *f = context;
	struct nhca_cqe cqe;

	f->comp_events++;
	while (f->poll_in_handler && cq_poll_one(&f->cq, &cqe))
		f->polled_in_handler++;
}

static inline void on_cq_event(struct ib_event *event, void *context)
{
	struct cq_fixture *f = context;

	f->err_events++;
	f->last_event = event->event;
}

static inline struct cq_fixture *cq_make(struct kunit *test, u32 entries, u32 start, bool user)
{
	struct cq_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	nhca_cq_init(&f->cq, user);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&f->cq.ring, entries, sizeof(struct nhca_cqe),
					      NULL), 0);
	f->cq.ibcq.comp_handler = on_completion;
	f->cq.ibcq.event_handler = on_cq_event;
	f->cq.ibcq.cq_context = f;
	f->cq.prod = start;
	f->cq.cons = start;
	nhca_arm_init(&f->cq.arm, user, start);
	f->cq.ring.hdr->prod = start;
	f->cq.ring.hdr->cons = start;
	return f;
}

static inline void cq_done(struct cq_fixture *f)
{
	nhca_cq_stop(&f->cq);
	nhca_ring_free(&f->cq.ring);
}

static inline int cq_post(struct cq_fixture *f, u64 wr_id, enum ib_wc_status status,
			  bool solicited, struct ib_qp *qp)
{
	struct nhca_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.qp_num = wr_id + 7,
		.kernel = (uintptr_t)qp,
	};
	int err;

	/* local_bh_enable() runs the bottom half that calls the handlers of a kernel consumer */
	local_bh_disable();
	err = nhca_cq_post(&f->cq, &cqe, solicited);
	local_bh_enable();
	return err;
}

#endif /* NHCA_TEST_CQ_FIXTURE_H */
