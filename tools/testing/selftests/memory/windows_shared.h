/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the parts of the program windows share. */
#ifndef WINDOWS_SHARED_H
#define WINDOWS_SHARED_H

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define READ	IBV_ACCESS_REMOTE_READ
#define WRITE	IBV_ACCESS_REMOTE_WRITE
#define ATOMIC	IBV_ACCESS_REMOTE_ATOMIC
#define REMOTE	(READ | WRITE | ATOMIC)
#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

#define MW_OPS	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | \
		 IBV_QP_EX_WITH_SEND_WITH_INV)

/* Offset of windows in the memory, unless a test uses another: the second page */
#define AT	4096

extern enum ibv_mw_type both[];

bool make(struct pair *p);
bool again(struct pair *p);
bool status_is(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status,
	       struct completion *c);
struct ibv_mw_bind_info info(struct ibv_mr *mr, uint64_t addr, uint64_t len, int access);
bool post_bind(struct end *e, struct ibv_mw *mw, uint32_t key, struct ibv_mw_bind_info to);
bool bind_window(struct end *e, struct ibv_mw *mw, struct ibv_mw_bind_info to);
bool bind_to(struct pair *p, struct ibv_mw *mw, size_t off, size_t len, int access);
bool post_inv(struct end *e, uint32_t key);
bool close_window(struct pair *p, struct ibv_mw *mw);
struct ibv_mw *new_window(enum ibv_mw_type type);
bool access_remote(struct pair *p, int how, uint32_t key, uint64_t va, uint32_t len);
bool works(struct pair *p, uint32_t key, uint64_t va, size_t off, uint32_t len);
bool refuses(struct pair *p, int how, uint32_t key, uint64_t va, uint32_t len);
bool shut(struct pair *p, uint32_t key, size_t off);
bool binds_refused(struct pair *p);
bool not_posted(struct pair *p);
bool invs_refused(struct pair *p);
bool on_uc(struct pair *p);
bool who_may(struct pair *p);
bool region_stays(struct pair *p);
bool ends(struct pair *p);
bool in_order(struct pair *p);
bool promise(struct pair *p);
bool many(struct pair *p);

#endif /* WINDOWS_SHARED_H */
