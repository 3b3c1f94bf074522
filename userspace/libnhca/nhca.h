/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The nhca provider: rings that are shared with the kernel, and the verbs
 * objects around them.
 */
#ifndef NHCA_PROVIDER_H
#define NHCA_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>

#include "nhca-abi.h"
#include "nhcadv.h"

/* Newer releases of rdma-core have more arguments, which this provider does not use. */
#if NHCA_RDMA_CORE < 54
#define nhca_cmd_reg_dmabuf_mr ibv_cmd_reg_dmabuf_mr
#else
#define nhca_cmd_reg_dmabuf_mr(...) ibv_cmd_reg_dmabuf_mr(__VA_ARGS__, NULL)
#endif
#if NHCA_RDMA_CORE < 57
#define nhca_cmd_get_context ibv_cmd_get_context
#else
#define nhca_cmd_get_context(vctx, cmd, size, ...) \
	ibv_cmd_get_context(vctx, cmd, size, NULL, __VA_ARGS__)
#endif
#if NHCA_RDMA_CORE < 59
#define nhca_cmd_create_cq_ex ibv_cmd_create_cq_ex
#else
#define nhca_cmd_create_cq_ex(context, attr, ...) \
	ibv_cmd_create_cq_ex(context, attr, NULL, __VA_ARGS__)
#endif
#if NHCA_RDMA_CORE < 64
#define nhca_cmd_create_qp_ex2 ibv_cmd_create_qp_ex2
#else
#define nhca_cmd_create_qp_ex2(...) ibv_cmd_create_qp_ex2(__VA_ARGS__, NULL)
#endif

/* What a QP needs room for if it is to post ATOMIC WRITE, which takes the bytes at once */
#define NHCA_ATOMIC_WRITE_BYTES	8

/**
 * struct nhca_context - an open device
 * @vctx:     libibverbs' part
 * @features: NHCA_FEATURE_*, as the kernel said
 */
struct nhca_context {
	struct verbs_context vctx;
	uint32_t features;
};

/**
 * struct nhca_td - a thread domain: what is in it is used by one thread at a time
 * @td:    libibverbs' part
 * @users: parent domains with it
 */
struct nhca_td {
	struct ibv_td td;
	atomic_uint users;
};

/**
 * struct nhca_pd - a protection domain, or a parent domain
 * @pd:    libibverbs' part; a parent domain's names the protection domain to the kernel
 * @of:    parent domain: its protection domain; NULL: this is one
 * @td:    parent domain: its thread domain, or NULL
 * @alloc, @free: parent domain: the application's, for memory of rings; or NULL
 * @context: for them
 * @users: parent domains of it; queues in a parent domain
 */
struct nhca_pd {
	struct ibv_pd pd;
	struct nhca_pd *of;
	struct nhca_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size,
		       size_t alignment, uint64_t type);
	void (*free)(struct ibv_pd *pd, void *context, void *ptr, uint64_t type);
	void *context;
	atomic_uint users;
};

/**
 * struct nhca_ring - a ring as it is mapped here
 * @hdr:     the shared header and the start of the mapping; NULL: no ring
 * @slots:   slot 0
 * @size:    bytes mapped
 * @entries: number of slots, a power of two
 * @stride:  bytes from slot to slot
 * @own:     memory of the application's, in which it lies or will lie, from @domain's
 *           allocator and as the resource @type; NULL: mapped memory of the kernel's
 */
struct nhca_ring {
	struct nhca_ring_hdr *hdr;
	char *slots;
	size_t size;
	uint32_t entries;
	uint32_t stride;
	void *own;
	struct nhca_pd *domain;
	uint64_t type;
};

/**
 * struct nhca_wq - a ring that we produce into: SQ, RQ or SRQ
 * @ring:    the ring
 * @lock:    protects all below and the producing of entries
 * @single:  the application promised to use one thread (a thread domain)
 * @prod:    entries published
 * @cons:    where the kernel stood when we last looked
 * @max_wr:  as granted; may be less than @ring.entries
 * @max_sge: as granted
 */
struct nhca_wq {
	struct nhca_ring ring;
	pthread_spinlock_t lock;
	bool single;
	uint32_t prod;
	uint32_t cons;
	uint32_t max_wr;
	uint32_t max_sge;
};

/**
 * struct nhca_cq - a completion queue
 * @vcq:    libibverbs' part
 * @dv:     extended polling: what only channels have
 * @ring:   of struct nhca_cqe
 * @arming: protects the ring's @arm and @moderated; held while a resize changes the rings,
 *          inside @lock.  Who polls may arm: it is not @lock
 * @moderated: arming it needs the kernel
 * @lock:   protects all below and the consuming of entries; held from
 *          ibv_start_poll() to ibv_end_poll(), and over a resize
 * @asked:  the ring's @arm for which the kernel was asked to look at what was left unpolled
 * @single: the application promised to use one thread
 * @domain: the parent domain that it is in, or NULL
 * @cons:   entries consumed
 * @prod:   extended polling: where the kernel stood when we last looked
 * @cqe:    extended polling: the current entry, number @cons
 * @wall:   extended polling: CLOCK_REALTIME - CLOCK_MONOTONIC_RAW in ns
 * @have_wall: @wall was taken since ibv_start_poll()
 *
 * Entries of a QP that was reset or destroyed are taken out of the ring; see
 * nhca_cq_forget_qp().
 */
struct nhca_cq {
	struct verbs_cq vcq;
	struct nhcadv_cq dv;
	struct nhca_ring ring;
	pthread_spinlock_t arming;
	bool moderated;
	pthread_spinlock_t lock;
	uint32_t asked;
	bool single;
	struct nhca_pd *domain;
	uint32_t cons;
	uint32_t prod;
	const struct nhca_cqe *cqe;
	int64_t wall;
	bool have_wall;
};

/**
 * struct nhca_srq - a shared receive queue
 * @vsrq:   libibverbs' part
 * @wq:     its queue
 * @domain: the parent domain that it is in, or NULL
 * @srqn:   its number
 */
struct nhca_srq {
	struct verbs_srq vsrq;
	struct nhca_wq wq;
	struct nhca_pd *domain;
	uint32_t srqn;
};

/**
 * struct nhca_work_queue - a receive work queue
 * @ibwq:   libibverbs' part
 * @rq:     the queue
 * @domain: as in struct nhca_qp
 */
struct nhca_work_queue {
	struct ibv_wq ibwq;
	struct nhca_wq rq;
	struct nhca_pd *domain;
};

/**
 * struct nhca_qp - a queue pair
 * @vqp:        libibverbs' part
 * @sq, @rq:    its queues; @rq.ring is empty if it has an SRQ
 * @domain:     the parent domain that it is in, or NULL
 * @max_inline: bytes, as granted
 * @ops:        bit n: it may post IBV_WR_* number n
 * @wr_next:    ibv_qp_ex: next entry to build; between ibv_wr_start() and its
 *              end, under @sq.lock
 * @wr_wqe:     ibv_qp_ex: the entry being built, or NULL
 * @wr_err:     ibv_qp_ex: the first thing that went wrong
 */
struct nhca_qp {
	struct verbs_qp vqp;
	struct nhca_wq sq;
	struct nhca_wq rq;
	struct nhca_pd *domain;
	uint32_t max_inline;
	uint32_t ops;
	uint32_t wr_next;
	struct nhca_send_wqe *wr_wqe;
	int wr_err;
};

/**
 * struct nhca_fifo - the receive FIFO of a channel
 * @ring:     of struct nhca_frame, filled by the kernel
 * @lock:     protects all below
 * @cons:     frames given back
 * @released: a bit for each slot: released, but not given back, because one before it is in use
 */
struct nhca_fifo {
	struct nhca_ring ring;
	pthread_spinlock_t lock;
	uint32_t cons;
	uint32_t *released;
};

/**
 * struct nhca_channel - a queue pair of type IBV_QPT_DRIVER
 * @qp:   comes first; it has no RQ
 * @dv:   how to post
 * @fifo: the receive FIFO; @fifo.ring is empty if it has none
 * @key:  what peers have to know
 */
struct nhca_channel {
	struct nhca_qp qp;
	struct nhcadv_qp_ex dv;
	struct nhca_fifo fifo;
	uint64_t key;
};

struct nhca_ah {
	struct ibv_ah ah;
	uint32_t id;
};

static inline struct nhca_context *to_nctx(struct ibv_context *context)
{
	return container_of(context, struct nhca_context, vctx.context);
}

static inline struct nhca_td *to_ntd(struct ibv_td *td)
{
	return container_of(td, struct nhca_td, td);
}

static inline struct nhca_pd *to_npd(struct ibv_pd *pd)
{
	return container_of(pd, struct nhca_pd, pd);
}

static inline struct nhca_cq *to_ncq(struct ibv_cq *cq)
{
	return container_of(cq, struct nhca_cq, vcq.cq);
}

static inline struct nhca_cq *to_ncq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct nhca_cq, vcq.cq_ex);
}

static inline struct nhca_srq *to_nsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct nhca_srq, vsrq.srq);
}

static inline struct nhca_work_queue *to_nwork(struct ibv_wq *wq)
{
	return container_of(wq, struct nhca_work_queue, ibwq);
}

static inline struct nhca_qp *to_nqp(struct ibv_qp *qp)
{
	return container_of(qp, struct nhca_qp, vqp.qp);
}

static inline struct nhca_qp *to_nqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct nhca_qp, vqp.qp_ex);
}

static inline struct nhca_channel *to_nch(struct ibv_qp *qp)
{
	return container_of(qp, struct nhca_channel, qp.vqp.qp);
}

static inline struct nhca_ah *to_nah(struct ibv_ah *ah)
{
	return container_of(ah, struct nhca_ah, ah);
}

/* ---- device.c ---- */

bool nhca_is_device(struct ibv_device *device);

/* ---- ring.c ---- */

/* The indices of a ring are written by one side each; see rdma/nhca-abi.h */
static inline uint32_t nhca_load(const __u32 *index)
{
	return atomic_load_explicit((const _Atomic(__u32) *)index,
				    memory_order_acquire);
}

static inline void nhca_store(__u32 *index, uint32_t value)
{
	atomic_store_explicit((_Atomic(__u32) *)index, value,
			      memory_order_release);
}

/* Entry number @index; free-running, any uint32_t */
static inline void *nhca_slot(const struct nhca_ring *ring, uint32_t index)
{
	return ring->slots +
	       (size_t)(index & (ring->entries - 1)) * ring->stride;
}

/*
 * Before the kernel makes a ring of @entries, whose stride nhca_send_stride() and its like know:
 * ask the allocator of @pd, if it is a parent domain with one, for memory, and tell the kernel of
 * it by
 * @mem, which else has zeros.  nhca_ring_unmap() gives it back, also if nothing came of the ring.
 * Returns 0 or ENOMEM.
 */
int nhca_ring_place(struct nhca_ring *ring, struct ibv_pd *pd, uint32_t entries,
		    size_t stride, uint64_t type, struct nhca_ring_mem *mem);

/*
 * Map what the kernel made.  @ring: zeros, or as nhca_ring_place() left it.  @entry: bytes of an
 * entry at least.  An @info of zeros gives an empty ring.  Returns 0 or an errno.
 */
int nhca_ring_map(struct nhca_ring *ring, struct ibv_context *context,
		  const struct nhca_ring_info *info, size_t entry);
void nhca_ring_unmap(struct nhca_ring *ring);

static inline void nhca_ring_swap(struct nhca_ring *a, struct nhca_ring *b)
{
	struct nhca_ring old = *a;

	*a = *b;
	*b = old;
}

/*
 * @wqe: fixed bytes of an entry, @data: of what may follow.  The lock is made
 * even if the ring is empty.
 */
int nhca_wq_init(struct nhca_wq *wq, struct ibv_context *context,
		 const struct nhca_ring_info *info, size_t wqe, size_t data,
		 uint32_t max_wr, uint32_t max_sge);
void nhca_wq_fini(struct nhca_wq *wq);

static inline void nhca_wq_lock(struct nhca_wq *wq)
{
	if (!wq->single)
		pthread_spin_lock(&wq->lock);
}

static inline void nhca_wq_unlock(struct nhca_wq *wq)
{
	if (!wq->single)
		pthread_spin_unlock(&wq->lock);
}

/* Look where both indices stand: after the kernel has made or emptied the ring */
void nhca_wq_sync(struct nhca_wq *wq);

/* Is there no room for entry number @next?  Under the lock. */
static inline bool nhca_wq_full(struct nhca_wq *wq, uint32_t next)
{
	if (next - wq->cons < wq->max_wr)
		return false;
	if (!wq->ring.hdr)
		return true;
	wq->cons = nhca_load(&wq->ring.hdr->cons);
	return next - wq->cons >= wq->max_wr;
}

/* Hand the entries before number @next to the kernel.  Under the lock. */
static inline void nhca_wq_publish(struct nhca_wq *wq, uint32_t next)
{
	wq->prod = next;
	nhca_store(&wq->ring.hdr->prod, next);
}

/* ---- pd.c, mr.c, dm.c, ah.c ---- */

struct ibv_pd *nhca_alloc_pd(struct ibv_context *context);
int nhca_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *nhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int nhca_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *nhca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_pd *nhca_import_pd(struct ibv_context *context, uint32_t pd_handle);
void nhca_unimport_pd(struct ibv_pd *ibpd);

/* For a queue in @pd: the parent domain that it is, counted; NULL: it is none */
static inline struct nhca_pd *nhca_domain_get(struct ibv_pd *pd)
{
	struct nhca_pd *domain = pd ? to_npd(pd) : NULL;

	if (!domain || !domain->of)
		return NULL;
	atomic_fetch_add(&domain->users, 1);
	return domain;
}

static inline void nhca_domain_put(struct nhca_pd *domain)
{
	if (domain)
		atomic_fetch_sub(&domain->users, 1);
}

/* Is what is in it for one thread? */
static inline bool nhca_domain_single(const struct nhca_pd *domain)
{
	return domain && domain->td;
}

struct ibv_mr *nhca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access);
struct ibv_mr *nhca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
int nhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access);
int nhca_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *nhca_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
void nhca_unimport_mr(struct ibv_mr *ibmr);
struct ibv_dm *nhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int nhca_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *nhca_import_dm(struct ibv_context *context, uint32_t dm_handle);
void nhca_unimport_dm(struct ibv_dm *ibdm);
struct ibv_mr *nhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t dm_offset, size_t length,
			      unsigned int access);
struct ibv_mw *nhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int nhca_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *nhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int nhca_destroy_ah(struct ibv_ah *ah);

/* ---- cq.c, cq_ex.c ---- */

struct ibv_cq *nhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *nhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int nhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int nhca_resize_cq(struct ibv_cq *ibcq, int cqe);
int nhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);

/**
 * nhca_cq_leaves - does a consumer that has armed and polled leave entries?
 * @prod: where the kernel stood
 *
 * No event will speak of them, unless the kernel is asked, once, without the lock
 * (ibv_cmd_req_notify_cq()).
 * Context: nhca_cq_lock().
 */
bool nhca_cq_leaves(struct nhca_cq *cq, uint32_t prod);
int nhca_destroy_cq(struct ibv_cq *ibcq);
void nhca_cq_forget_qp(struct nhca_cq *cq, uint32_t qpn);
int nhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
uint64_t nhca_raw_clock(void);

static inline void nhca_cq_lock(struct nhca_cq *cq)
{
	if (!cq->single)
		pthread_spin_lock(&cq->lock);
}

static inline void nhca_cq_unlock(struct nhca_cq *cq)
{
	if (!cq->single)
		pthread_spin_unlock(&cq->lock);
}

/* Is it of a channel?  Then @cqe->chan is what it has, and nothing of UD. */
static inline bool nhca_cqe_of_channel(const struct nhca_cqe *cqe)
{
	return cqe->opcode >= NHCA_WC_CH_LOCAL;
}

/* EOPNOTSUPP if @wc_flags asks for what a CQE does not hold, else 0 */
int nhca_cq_check_wc_flags(uint64_t wc_flags);
void nhca_cq_set_ops(struct nhca_cq *cq, uint64_t wc_flags);

/* ---- cq_channel.c ---- */

void nhca_cq_set_channel_ops(struct nhca_cq *cq);

/* ---- srq.c ---- */

struct ibv_srq *nhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *nhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int nhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask);
int nhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int nhca_destroy_srq(struct ibv_srq *ibsrq);
int nhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num);

/* ---- flow.c ---- */

struct ibv_flow *nhca_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int nhca_destroy_flow(struct ibv_flow *flow);

/* ---- rss.c: work queues, and queue pairs that spread frames over them ---- */

struct ibv_wq *nhca_create_wq(struct ibv_context *context,
			      struct ibv_wq_init_attr *attr);
int nhca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr);
int nhca_destroy_wq(struct ibv_wq *ibwq);
struct ibv_rwq_ind_table *
nhca_create_rwq_ind_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr);
int nhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_qp *nhca_create_rss_qp(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
/* @attr is @attr_size bytes of what its caller knows */
void nhca_rss_caps(struct ibv_device_attr_ex *attr, size_t attr_size);

/* ---- xrcd.c ---- */

struct ibv_xrcd *nhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr);
int nhca_close_xrcd(struct ibv_xrcd *ibxrcd);
struct ibv_qp *nhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr);

/* ---- qp.c ---- */

struct ibv_qp *nhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *nhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int nhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int nhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask);
int nhca_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *attr);
int nhca_destroy_qp(struct ibv_qp *ibqp);

/* ---- post.c ---- */

int nhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int nhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int nhca_post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr);
int nhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int nhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *mw_bind);

/* The operation of a BIND_MW: @rkey is what @mw's key will be. */
void nhca_put_bind(struct nhca_send_wqe *wqe, const struct ibv_mw *mw,
		   uint32_t rkey, const struct ibv_mw_bind_info *info);

/* Tell the kernel that an SQ has new entries.  Returns 0 or an errno. */
int nhca_sq_doorbell(struct ibv_qp *ibqp);

/* What a QP of this kind may post: see nhca_qp.ops */
uint32_t nhca_send_ops(enum ibv_qp_type type, uint32_t features);

/*
 * The same in IBV_QP_EX_WITH_*, whose bit n is IBV_WR_* number n up to
 * SEND_WITH_INV
 */
uint64_t nhca_qp_ex_ops(uint32_t ops);

/* ---- wr.c: ibv_qp_ex ---- */

/* @ops: IBV_QP_EX_WITH_* */
void nhca_wr_set_ops(struct nhca_qp *qp, uint64_t ops);

/* Refuse what was posted since ibv_wr_start() */
void nhca_wr_fail(struct nhca_qp *qp, int err);

/*
 * The next slot with the common part filled in, for setters to go on with;
 * @opcode: NHCA_WR_*.  NULL if something went wrong.
 */
struct nhca_send_wqe *nhca_wr_begin(struct nhca_qp *qp, uint8_t opcode);

void nhca_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
			  const struct ibv_sge *sg_list);

/* ---- channel.c, wr_channel.c, fifo.c: behind nhcadv.h ---- */

/* Can there be channels?  0 or EOPNOTSUPP. */
int nhca_check_channels(struct ibv_context *context);

/* Is @ibqp a channel?  0 or EOPNOTSUPP. */
int nhca_check_channel(struct ibv_qp *ibqp);

/* What is not of a queue pair: the caller frees @ch. */
void nhca_channel_fini(struct nhca_channel *ch);

void nhca_wr_set_channel_ops(struct nhca_channel *ch);

/* Returns 0 or an errno.  nhca_fifo_fini() is fine after a failure, too. */
int nhca_fifo_init(struct nhca_fifo *fifo, struct ibv_context *context,
		   const struct nhca_ring_info *info);
void nhca_fifo_fini(struct nhca_fifo *fifo);

#endif /* NHCA_PROVIDER_H */
