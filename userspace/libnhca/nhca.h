/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The nhca provider: rings that are shared with the kernel, and the verbs objects that own them.
 *
 * A function that is not inline and has no comment implements the verb of its name (struct
 * verbs_context_ops), as the manual page of the verb describes it.
 */
#ifndef NHCA_PROVIDER_H
#define NHCA_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>

#include "compat.h"
#include "nhca-abi.h"
#include "nhcadv.h"

/* Inline bytes of an ATOMIC WRITE: ibv_wr_atomic_write() copies its payload into the WQE. */
#define NHCA_ATOMIC_WRITE_BYTES	8

/**
 * struct nhca_context - an open device
 * @vctx:     part of libibverbs
 * @features: NHCA_FEATURE_* of the kernel driver
 */
struct nhca_context {
	struct verbs_context vctx;
	uint32_t features;
};

struct nhca_reg_cache;

/**
 * struct nhca_td - a thread domain: one thread at a time uses the objects in it
 * @td:    part of libibverbs
 * @users: number of parent domains that refer to the thread domain
 */
struct nhca_td {
	struct ibv_td td;
	atomic_uint users;
};

/**
 * struct nhca_pd - a protection domain, or a parent domain
 * @pd:    part of libibverbs; a parent domain has the kernel handle of its protection domain
 * @of:    parent domain: its protection domain.  Protection domain: NULL
 * @td:    parent domain: its thread domain, or NULL
 * @alloc: parent domain: function of the application that allocates memory of rings, or NULL
 * @free:  parent domain: function of the application that frees this memory, or NULL
 * @context: parent domain: argument of @alloc and @free
 * @users: protection domain: number of its parent domains.  Parent domain: number of queues in it
 * @cache: protection domain: its cache of registrations (reg_cache.c), or NULL
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
	_Atomic(struct nhca_reg_cache *) cache;
};

/**
 * struct nhca_ring - a ring in memory of this process
 * @hdr:     header of the ring, at the start of the memory; NULL: no ring
 * @slots:   slot 0
 * @size:    bytes of the memory
 * @entries: number of slots, a power of two
 * @stride:  bytes of a slot
 * @own:     the memory, if it comes from the allocator of @domain.  NULL: the ring is in memory of
 *           the kernel, which this process has mapped
 * @domain:  parent domain whose allocator has made @own
 * @type:    resource type that the allocator was called with
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
 * struct nhca_wq - a ring whose producer is user space: SQ, RQ or SRQ
 * @ring:    the ring; @lock also protects its entries and indices
 * @lock:    protects the members below it except @single
 * @single:  the queue is in a thread domain: one thread at a time uses the queue, without @lock
 * @prod:    producer index, as published in the ring
 * @cons:    consumer index of the kernel at the last read
 * @max_wr:  maximum number of entries in use, as granted; may be less than @ring.entries
 * @max_sge: maximum number of SGEs of an entry, as granted
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
 * @vcq:    part of libibverbs
 * @dv:     extended polling: functions that read values that only completions of channels have
 * @ring:   ring of struct nhca_cqe; a resize changes it under both locks
 * @arming: protects nhca_ring_hdr.arm_seq and @moderated.  A resize takes @lock and then @arming.
 *          Arming does not take @lock, because a thread that holds @lock between ibv_start_poll()
 *          and ibv_end_poll() may arm
 * @moderated: the CQ has or had moderation, so each arm needs a system call
 * @lock:   protects the members below it and the consumption of entries.  @lock is held from
 *          ibv_start_poll() to ibv_end_poll(), and during a resize.  See nhca_cq_lock()
 * @notified: the last arm_seq for which a poll has sent ibv_cmd_req_notify_cq(); see
 *          nhca_cq_leaves()
 * @single: one thread at a time uses the CQ, so @lock is not taken
 * @domain: parent domain of the CQ, or NULL
 * @cons:   consumer index
 * @prod:   extended polling: producer index of the kernel at the last read
 * @cqe:    extended polling: the current entry, number @cons
 * @wall:   extended polling: CLOCK_REALTIME - CLOCK_MONOTONIC_RAW in ns
 * @have_wall: @wall was measured since ibv_start_poll()
 *
 * When a QP is reset or destroyed, nhca_cq_forget_qp() removes its entries from the ring.
 */
struct nhca_cq {
	struct verbs_cq vcq;
	struct nhcadv_cq dv;
	struct nhca_ring ring;
	pthread_spinlock_t arming;
	bool moderated;
	pthread_spinlock_t lock;
	uint32_t notified;
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
 * @vsrq:   part of libibverbs
 * @wq:     the receive queue
 * @domain: parent domain of the SRQ, or NULL
 * @srqn:   SRQ number
 */
struct nhca_srq {
	struct verbs_srq vsrq;
	struct nhca_wq wq;
	struct nhca_pd *domain;
	uint32_t srqn;
};

/**
 * struct nhca_work_queue - a receive work queue
 * @ibwq:   part of libibverbs
 * @rq:     the receive queue
 * @domain: parent domain of the work queue, or NULL
 */
struct nhca_work_queue {
	struct ibv_wq ibwq;
	struct nhca_wq rq;
	struct nhca_pd *domain;
};

/**
 * struct nhca_qp - a queue pair
 * @vqp:        part of libibverbs
 * @sq:         send queue
 * @rq:         receive queue; @rq.ring is empty if the QP has an SRQ
 * @domain:     parent domain of the QP, or NULL
 * @max_inline: maximum bytes of inline data, as granted
 * @ops:        bit n: the QP may post IBV_WR_* number n
 * @wr_next:    ibv_qp_ex: number of the next entry to build.  @sq.lock, which is held from
 *              ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort(), protects the wr_* members
 * @wr_wqe:     ibv_qp_ex: the entry that is being built, or NULL
 * @wr_err:     ibv_qp_ex: the first error since ibv_wr_start(), an errno
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
 * @ring:     ring of struct nhca_frame; its producer is the kernel
 * @lock:     protects the members below it
 * @cons:     consumer index, as published in the ring
 * @released: bitmap of slots that were released, but not returned to the kernel because an earlier
 *            slot is in use
 */
struct nhca_fifo {
	struct nhca_ring ring;
	pthread_spinlock_t lock;
	uint32_t cons;
	uint32_t *released;
};

/**
 * struct nhca_channel - a queue pair of type IBV_QPT_DRIVER
 * @qp:   the QP, which has no RQ.  @qp must be the first member, because nhca_destroy_qp() frees
 *        the channel through a pointer to @qp
 * @dv:   functions to post work requests
 * @fifo: the receive FIFO; @fifo.ring is empty if the channel has no receive FIFO
 * @key:  key of the channel; a peer needs it to send to the channel
 */
struct nhca_channel {
	struct nhca_qp qp;
	struct nhcadv_qp_ex dv;
	struct nhca_fifo fifo;
	uint64_t key;
};

/**
 * struct nhca_ah - an address handle
 * @ah: part of libibverbs
 * @id: number of the address handle, by which send requests name it
 */
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

/* Send flags that have a meaning for this device.  For others, see nhca_send_flags_ok(). */
#define NHCA_USED_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/*
 * Return: false if @flags request checksums in a raw packet, which the driver does not compute.
 * Other flags that are not in NHCA_USED_FLAGS are ignored.
 */
static inline bool nhca_send_flags_ok(const struct nhca_qp *qp, unsigned int flags)
{
	return !(flags & IBV_SEND_IP_CSUM) || qp->vqp.qp.qp_type != IBV_QPT_RAW_PACKET;
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

/**
 * nhca_is_device - test whether a device is an nhca device
 * @device: a device of libibverbs
 * Return: true if this provider created the device.
 */
bool nhca_is_device(struct ibv_device *device);

/* ---- ring.c ---- */

/**
 * nhca_load - load an index of a ring with acquire semantics
 * @index: the index; each index has one writer, see rdma/nhca-abi.h
 *
 * The load pairs with the release store of the kernel, or of nhca_store().
 * Return: the index.
 */
static inline uint32_t nhca_load(const __u32 *index)
{
	return atomic_load_explicit((const _Atomic(__u32) *)index,
				    memory_order_acquire);
}

/**
 * nhca_store - store an index of a ring with release semantics
 * @index: the index
 * @value: its new value
 *
 * The store pairs with the acquire load of the kernel.
 */
static inline void nhca_store(__u32 *index, uint32_t value)
{
	atomic_store_explicit((_Atomic(__u32) *)index, value,
			      memory_order_release);
}

/**
 * nhca_slot - get the address of an entry of a ring
 * @ring:  the ring
 * @index: number of the entry; the number counts all entries, modulo 2^32
 * Return: the address.
 */
static inline void *nhca_slot(const struct nhca_ring *ring, uint32_t index)
{
	return ring->slots +
	       (size_t)(index & (ring->entries - 1)) * ring->stride;
}

/**
 * nhca_ring_place - allocate memory of the application for a ring that the kernel will create
 * @ring: output; nhca_ring_unmap() frees the memory, also if the kernel did not create the ring
 * @pd: PD of the ring; only a parent domain with allocators provides memory
 * @entries: number of entries; the function rounds it up to a power of two
 * @stride: bytes of an entry: nhca_send_stride(), nhca_recv_stride(), ...
 * @type: NHCADV_RES_TYPE_*
 * @mem: output: the memory, for the command to the kernel; zeros: the kernel allocates the ring
 * Return: 0; ENOMEM: the allocator of the application returned NULL.
 */
int nhca_ring_place(struct nhca_ring *ring, struct ibv_pd *pd, uint32_t entries,
		    size_t stride, uint64_t type, struct nhca_ring_mem *mem);

/**
 * nhca_ring_map - map a ring that the kernel has created
 * @ring: zeros, or the result of nhca_ring_place()
 * @context: the device
 * @info: description of the ring by the kernel; zeros: the object does not have this ring
 * @entry: minimum size of an entry in bytes
 * Return: 0, EPROTO (@info is invalid), or an errno of mmap(2).
 */
int nhca_ring_map(struct nhca_ring *ring, struct ibv_context *context,
		  const struct nhca_ring_info *info, size_t entry);

/**
 * nhca_ring_unmap - unmap the memory of a ring, or return it to its allocator
 * @ring: the ring; the function does nothing if it has no memory
 */
void nhca_ring_unmap(struct nhca_ring *ring);

static inline void nhca_ring_swap(struct nhca_ring *a, struct nhca_ring *b)
{
	struct nhca_ring old = *a;

	*a = *b;
	*b = old;
}

/**
 * nhca_wq_init - map the ring of a queue, and initialize its lock, even if the ring is empty
 * @wq: zeros, or with a ring from nhca_ring_place()
 * @context: the device
 * @info: description of the ring by the kernel
 * @wqe: bytes of the fixed part of an entry
 * @data: maximum bytes of the SGEs or inline data that follow the fixed part
 * @max_wr: maximum number of entries in use, as granted
 * @max_sge: maximum number of SGEs of an entry, as granted
 * Return: 0 or an errno of nhca_ring_map(); on failure the lock does not exist.
 */
int nhca_wq_init(struct nhca_wq *wq, struct ibv_context *context,
		 const struct nhca_ring_info *info, size_t wqe, size_t data,
		 uint32_t max_wr, uint32_t max_sge);

/**
 * nhca_wq_fini - unmap the ring of a queue, and destroy its lock
 * @wq: the queue
 */
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

/**
 * nhca_wq_sync - read both indices from the ring, which the kernel has just created or emptied
 * @wq: the queue
 * Context: nhca_wq_lock(), or no other thread can use the queue yet.
 */
void nhca_wq_sync(struct nhca_wq *wq);

/**
 * nhca_wq_full - test whether a queue has no room for an entry
 * @wq:   the queue
 * @next: number of the entry
 * Context: nhca_wq_lock().
 * Return: true if there is no room.
 */
static inline bool nhca_wq_full(struct nhca_wq *wq, uint32_t next)
{
	if (next - wq->cons < wq->max_wr)
		return false;
	if (!wq->ring.hdr)
		return true;
	wq->cons = nhca_load(&wq->ring.hdr->cons);
	return next - wq->cons >= wq->max_wr;
}

/**
 * nhca_wq_publish - publish new entries of a queue to the kernel
 * @wq:   the queue
 * @next: number of the first entry that is not published
 * Context: nhca_wq_lock().
 */
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

/**
 * nhca_domain_get - count a queue in a parent domain
 * @pd: PD of the queue; NULL: none
 * Return: the parent domain; NULL: @pd is not a parent domain.
 */
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

/* Return: true if one thread at a time uses the objects of the domain */
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
 * nhca_cq_leaves - test whether a poll leaves entries in a CQ that is armed
 * @cq: the CQ, after a poll
 * @prod: producer index of the kernel at the last read
 *
 * The kernel raises no event for these entries, because it raises an event only with a new entry.
 * Context: nhca_cq_lock().
 * Return: true, but only once for each arm, if the poll leaves entries.  The caller must then send
 * ibv_cmd_req_notify_cq() after the unlock.
 */
bool nhca_cq_leaves(struct nhca_cq *cq, uint32_t prod);
int nhca_destroy_cq(struct ibv_cq *ibcq);

/**
 * nhca_cq_forget_qp - remove the completions of a QP that was reset or destroyed
 * @cq: the CQ; the function takes its lock
 * @qpn: QP number; the kernel adds no more completions of this QP
 */
void nhca_cq_forget_qp(struct nhca_cq *cq, uint32_t qpn);
int nhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);

/**
 * nhca_raw_clock - read CLOCK_MONOTONIC_RAW, the clock of completion timestamps
 * Return: the time in ns.
 */
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

/**
 * nhca_cqe_of_channel - test whether a CQE belongs to a channel
 * @cqe: the CQE
 * Return: true if the CQE belongs to a channel; then @cqe->chan is valid, and the fields of UD are
 * invalid.
 */
static inline bool nhca_cqe_of_channel(const struct nhca_cqe *cqe)
{
	return cqe->opcode >= NHCA_WC_CH_LOCAL;
}

/**
 * nhca_cq_check_wc_flags - check the values of completions that an application requests
 * @wc_flags: IBV_WC_EX_WITH_*
 * Return: 0, or EOPNOTSUPP if CQEs lack one of the values.
 */
int nhca_cq_check_wc_flags(uint64_t wc_flags);

/**
 * nhca_cq_set_ops - set the functions of extended polling
 * @cq:       the CQ
 * @wc_flags: IBV_WC_EX_WITH_*: the values that the application requests
 */
void nhca_cq_set_ops(struct nhca_cq *cq, uint64_t wc_flags);

/* ---- cq_channel.c ---- */

/**
 * nhca_cq_set_channel_ops - set the functions of struct nhcadv_cq
 * @cq: the CQ
 */
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

/* ---- rss.c: work queues, and queue pairs that distribute frames over them ---- */

struct ibv_wq *nhca_create_wq(struct ibv_context *context,
			      struct ibv_wq_init_attr *attr);
int nhca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr);
int nhca_destroy_wq(struct ibv_wq *ibwq);
struct ibv_rwq_ind_table *
nhca_create_rwq_ind_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr);
int nhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/**
 * nhca_create_rss_qp - nhca_create_qp_ex() for a QP with an indirection table
 * @context: the device
 * @attr:    attributes of the QP
 * Return: the QP, or NULL with errno.
 */
struct ibv_qp *nhca_create_rss_qp(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);

/**
 * nhca_rss_caps - set the hash members of ibv_device_attr_ex.rss_caps
 * @attr:      the attributes
 * @attr_size: bytes of @attr; an older program has a struct without these members
 */
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

#include "nhca_post.h"

#endif /* NHCA_PROVIDER_H */
