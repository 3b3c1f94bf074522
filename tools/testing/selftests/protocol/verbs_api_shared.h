/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared declarations of the parts of verbs_api.c. */
#ifndef VERBS_API_SHARED_H
#define VERBS_API_SHARED_H

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "verbs_test.h"

/* Post one request on end a; @build: the calls between ibv_wr_start() and ibv_wr_complete(). */
#define WR(p, id, sig_flags, build) do {			\
	struct ibv_qp_ex *x = (p)->a.qpx;			\
	ibv_wr_start(x);					\
	x->wr_id = (id);					\
	x->wr_flags = (sig_flags);				\
	build;							\
	VERB(ibv_wr_complete(x));				\
} while (0)

#define SGE(p, off, len) \
	ibv_wr_set_sge(x, (p)->a.mr->lkey, (uintptr_t)(p)->a.buf + (off), len)

#define REMOTE(p, off)	(p)->b.mr->rkey, (uintptr_t)(p)->b.buf + (off)

bool timestamps(struct pair *p);
bool bad_in_list(struct pair *p);
bool full_sq(struct pair *p);
bool ring_wrap(struct pair *p);
bool unsignalled(struct pair *p);
bool threads(struct pair *p);
bool fence(struct pair *p);
bool cq_resize(struct pair *p);
bool cq_overflow(struct pair *p);
bool srq_limit(struct pair *p);
bool srq_resize(struct pair *p);
bool sq_drain(struct pair *p);
bool late_receive(struct pair *p);
bool rate_limit(struct pair *p);
bool flush(struct pair *p);
bool reset_again(struct pair *p);
bool wrong_rkey(struct pair *p);
bool cq_events(struct pair *p);
bool event_between(struct pair *p);
bool event_behind(struct pair *p);
bool event_left(struct pair *p);
bool event_resized(struct pair *p);
bool event_race(struct pair *p);
bool cq_moderation(struct pair *p);
bool solicited(struct pair *p);

#endif /* VERBS_API_SHARED_H */
