/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of memory/ to the other directories: regions, windows, keys, and the translation of
 * a key and an address into bytes.
 *
 * All code that copies to or from registered memory runs in a live section: between
 * nhca_live_enter() and nhca_live_exit() (live.h).  In the same section this code checks the key,
 * the PVO (job.h) or the R_Key reference (rkm.h) by which it accesses the memory.  A key that was
 * closed before the section began is refused.  The code that closes a key waits for the sections
 * that may have found the key open.
 */
#ifndef NHCA_MEMORY_H
#define NHCA_MEMORY_H

#include "../nhca.h"
#include "fault.h"
#include "iter.h"
#include "job.h"
#include "live.h"
#include "mkey.h"
#include "rkm.h"

struct nhca_dm;
struct nhca_mr;

/**
 * struct nhca_pd - a protection domain
 * @ibpd:  the core's part
 * @owner: record that the domain and its objects are charged to; NULL: nobody is charged
 */
struct nhca_pd {
	struct ib_pd ibpd;
	struct nhca_user *owner;
};

static inline struct nhca_pd *to_nhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct nhca_pd, ibpd);
}

/* ---- on-demand regions ---- */

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_mr_odp - register user memory without pinning it (IB_ACCESS_ON_DEMAND)
 * @dev:    the device
 * @pd:     protection domain
 * @iova:   as for nhca_mr_user()
 * @access: as for nhca_mr_user()
 * @start:  first address; with 0 and a @length of SIZE_MAX the region is all memory of the process,
 *          present and future
 * @length: bytes; with 0 the function does the same as nhca_mr_user()
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EINVAL: a range wraps or exceeds the address space; or the region
 * is all memory of the process, but @iova is not 0 or @access has IB_ACCESS_HUGETLB; -EFAULT: the
 * range is not in the part of the address space that processes can use; -ENOMEM: no memory; or as
 * nhca_mkey_add().
 */
struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start, u64 length,
			  u64 iova, int access);

/**
 * nhca_mr_prefetch - make on-demand pages present in advance
 * @pd:     protection domain of the caller
 * @lkey:   the L_Key
 * @va:     first address, as in an SGE
 * @len:    bytes
 * @advice: prefetch for reading, for writing, or only the pages that the process has now
 * @wait:   true: return after the prefetch has ended; false: queue the prefetch for a worker, whose
 *          errors are not reported
 * Context: process, sleeps.
 * Return: 0; -ENOENT: @lkey is not an open key, or the region was deregistered during the prefetch;
 * -EINVAL: the key is not that of an on-demand region; -EPERM: the region is in another domain, or
 * is read-only and the prefetch is for writing; -EFAULT: the bytes are not all in the region;
 * -EAGAIN: NHCA_ODP_PREFETCHES prefetches of the region are queued; -EINTR: a signal is pending;
 * -ENOMEM: no memory; or as nhca_odp_fault().
 */
int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
		     enum ib_uverbs_advise_mr_advice advice, bool wait);

#else

static inline struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
					u64 length, u64 iova, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
				   enum ib_uverbs_advise_mr_advice advice, bool wait)
{
	return -EOPNOTSUPP;
}

#endif

/* ---- operations on keys, executed by requester or responder ---- */

/**
 * nhca_local_inv - execute IB_WR_LOCAL_INV: close the key of a region or window
 * @key_user: the QP
 * @key:      L_Key of a region or R_Key of a window
 * @user:     user space has posted the request, so the request may close only windows
 *
 * On return no byte moves through the key any more.
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL: @key is not open, or this QP may not use it; or @key is that of a type 1
 * window, of a region that is not for fast registration or has windows bound to it, or (if @user)
 * of any region.
 */
int nhca_local_inv(const struct nhca_key_user *key_user, u32 key, bool user);

/**
 * nhca_remote_inv - execute a peer's SEND with invalidate (IBTA 10.6.5.2)
 * @key_user: the QP that received it
 * @rkey:     the R_Key
 *
 * Like nhca_local_inv(), for type 2 windows of this QP and for fast-registered regions of its
 * domain that have a remote right.
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL: @rkey is not the open key of such a window or region, or windows are bound to
 * the region.
 */
int nhca_remote_inv(const struct nhca_key_user *key_user, u32 rkey);

/**
 * nhca_mw_bind - execute IB_WR_BIND_MW (IBTA 10.6.7.2): bind a window, or unbind it
 * @key_user: the QP that binds the window
 * @wqe:      the work request; only the member mw is used.  A length of 0 unbinds a type 1 window;
 *            for a type 2 window it is invalid.  Only the low 8 bits of new_rkey are used;
 *            afterwards the window's ibmw.rkey is the whole new key.
 *
 * If a check fails, the window does not change.  Otherwise the function closes a type 1 window that
 * is open, before it opens the window with the new range.
 * Context: BH disabled, not in a live section.
 * Return: 0; -EACCES: QP, window and region are not in one domain, or the region does not grant the
 * rights or the range; -EINVAL: a key, the rights or the length is invalid, or a type 2 window is
 * bound already.
 */
int nhca_mw_bind(struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe);

/**
 * nhca_reg_fast - execute IB_WR_REG_MR: open a fast-registered region
 * @key_user: the QP that opens it
 * @lkey:     L_Key of the region; only the index in it is used
 * @key:      the new key, as in struct ib_reg_wr
 * @access:   enum ib_access_flags, as in struct ib_reg_wr
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL: @lkey does not name a region for fast registration of the QP's domain, the
 * region is open or has no mapping, its range wraps, @key has another index, or @access is invalid.
 */
int nhca_reg_fast(const struct nhca_key_user *key_user, u32 lkey, u32 key, int access);

/* ---- regions and windows ---- */

/**
 * nhca_mr_user - register user memory
 * @dev:    the device
 * @pd:     protection domain
 * @start:  first address in the process
 * @length: bytes; with 0 the region has no pages, and only operations of no bytes can use it
 * @iova:   the address that peers and SGEs use for @start; ignored if @access has IB_ZERO_BASED,
 *          because the addresses then begin at 0
 * @access: enum ib_access_flags
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EINVAL: a range wraps or exceeds the address space; or an error of
 * nhca_mkey_add(), ib_umem_get_va() or nhca_mr_map_sgt().
 */
struct ib_mr *nhca_mr_user(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
			   u64 length, u64 iova, int access);

/**
 * nhca_mr_user_args - get the arguments with which a user region was registered
 * @ibmr:   the region; the caller prevents its deregistration
 * @start:  first address in the process, 0 if the region has no pages; not set if the function
 *          fails
 * @length: bytes
 * @iova:   address of the first byte for peers and SGEs
 * @access: enum ib_access_flags
 * Context: process.
 * Return: 0; -EOPNOTSUPP: the memory is neither pinned nor on-demand user memory, so the region has
 * no @start; the function has set the other parameters.
 */
int nhca_mr_user_args(const struct ib_mr *ibmr, u64 *start, u64 *length, u64 *iova,
		      int *access);

/**
 * nhca_mr_change - change the rights or the domain of a user region; its keys stay
 * @ibmr:   the region
 * @pd:     the new protection domain
 * @access: the new rights; IB_ACCESS_ON_DEMAND must be as it was
 *
 * On return no byte moves by the old rights any more.  The function also waits for packets that
 * refer to pages by the old rights, within the limits of nhca_pageref_wait().
 * Context: process, sleeps.
 * Return: 0; -EPERM: the pages were pinned only for reading and @access
 * includes writing, so the caller must register the memory again; -EBUSY: windows are bound to the
 * region; -EOPNOTSUPP: the memory of the region is neither pinned nor on-demand user memory.
 */
int nhca_mr_change(struct ib_mr *ibmr, struct ib_pd *pd, int access);

/**
 * nhca_mr_dma - make a region of all kernel memory
 * @dev:    the device
 * @pd:     protection domain of a kernel consumer
 * @access: as for nhca_mr_user()
 *
 * Addresses in the region are kernel virtual addresses (ib_virt_dma).
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EPERM: @pd belongs to user space; or as nhca_mkey_add().
 */
struct ib_mr *nhca_mr_dma(struct nhca_dev *dev, struct ib_pd *pd, int access);

/**
 * nhca_mr_fast - make a region for fast registration, without a mapping and with its key closed
 * @dev:    the device
 * @pd:     protection domain
 * @max_sg: maximum number of pages, or with @gaps of elements, that nhca_mr_fast_map() can map
 * @gaps:   elements may begin and end anywhere, not only at page boundaries
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -ENOMEM: no memory, or nhca_range_alloc() has failed with -EDQUOT or
 * -ENOSPC; or as nhca_mkey_add().
 */
struct ib_mr *nhca_mr_fast(struct nhca_dev *dev, struct ib_pd *pd, u32 max_sg, bool gaps);

/**
 * nhca_mr_fast_map - execute ib_map_mr_sg(): set the memory that the next IB_WR_REG_MR opens
 * @ibmr:      the region.  If its key is open, the key still leads to the previous memory.
 * @sg:        scatterlist with kernel virtual addresses as DMA addresses
 * @sg_nents:  elements of @sg
 * @sg_offset: NULL, or bytes of the first element to skip; see ib_map_mr_sg()
 * Context: any; the caller serializes the calls for a region.
 * Return: number of elements mapped; -EINVAL: the region is not for fast registration, an address
 * is not in the direct map, or an argument or the page size is invalid; -ENOMEM: no memory for a
 * list of pages.
 */
int nhca_mr_fast_map(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset);

/**
 * nhca_mr_dm - make a region of device memory (dm.h); its addresses begin at 0
 * @dev:    the device
 * @pd:     protection domain
 * @access: as for nhca_mr_user()
 * @dm:     the device memory; the caller keeps it until it has destroyed the region
 * @offset: byte of @dm at which the region begins
 * @length: bytes
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EINVAL: the bytes are not all in @dm; -ENOMEM: no memory, or
 * nhca_range_alloc() has failed with -EDQUOT or -ENOSPC; or as nhca_mkey_add().
 */
struct ib_mr *nhca_mr_dm(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_dm *dm,
			 u64 offset, u64 length, int access);

#ifdef CONFIG_DMA_SHARED_BUFFER
/**
 * nhca_mr_dmabuf - make a region of a dma-buf
 * @dev:    the device
 * @pd:     protection domain
 * @iova:   as for nhca_mr_user()
 * @access: as for nhca_mr_user()
 * @offset: byte of the buffer at which the region begins
 * @length: bytes
 * @fd:     file descriptor of the dma-buf
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EOPNOTSUPP: the buffer is I/O memory, which this driver cannot
 * access; -EACCES: @fd is open only for reading and @access includes writing; -EINVAL: @length is
 * 0, the range wraps, or the bytes are not all in the buffer; -ENOMEM: no memory; or as
 * dma_buf_get(), dma_buf_begin_cpu_access(), dma_buf_vmap_unlocked() or nhca_mkey_add().
 */
struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset, u64 length,
			     u64 iova, int fd, int access);
#else
static inline struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset,
					   u64 length, u64 iova, int fd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

/**
 * nhca_mr_close - close the key of a region that ibv_rereg_mr() replaces by another region
 * @ibmr: the region; its key is not opened again
 * Context: process.
 * Return: 0; -EBUSY: windows are bound to the region.
 */
int nhca_mr_close(struct ib_mr *ibmr);

/**
 * nhca_mr_destroy - close the key of a region and free the region
 * @dev:  the device
 * @ibmr: the region
 *
 * The function waits for live sections.  It then waits for packets that refer to pages of the
 * region, within the limits of nhca_pageref_wait(), and unpins the pages.
 * Context: process, sleeps.
 * Return: 0; -EBUSY: windows are bound to the region.
 */
int nhca_mr_destroy(struct nhca_dev *dev, struct ib_mr *ibmr);

/**
 * struct nhca_mw - a memory window
 * @ibmw:  the core's part
 * @mkey:  its key; while the key is open, nhca_mr.windows of its region counts the window
 * @by_qp: entry in nhca_key_user.windows of the QP that has bound it; private to memory/mw.c
 */
struct nhca_mw {
	struct ib_mw ibmw;
	struct nhca_mkey mkey;
	struct hlist_node by_qp;
};

/**
 * nhca_mw_init - give a window a key; the window is unbound
 * @mw:   the window; the function sets ibmw.rkey
 * @pd:   protection domain
 * @type: type of the window
 * Context: process, sleeps.
 * Return: as nhca_mkey_add().
 */
int nhca_mw_init(struct nhca_mw *mw, struct ib_pd *pd, enum ib_mw_type type);

/**
 * nhca_mw_fini - close a window's key and wait for live sections; then the caller may free @mw
 * @mw: the window
 * Context: process, sleeps.
 */
void nhca_mw_fini(struct nhca_mw *mw);

/**
 * nhca_mw_qp_gone - close the type 2 windows that a QP has bound
 * @key_user: the QP, which is being destroyed, so that another QP may get its number afterwards.
 *            Requester and responder of the QP have stopped, so the QP binds no more windows.
 * Context: process, sleeps.
 */
void nhca_mw_qp_gone(struct nhca_key_user *key_user);

/**
 * nhca_mw_device_cap - get the kind of type 2 windows that module parameter mw_type selects
 * Context: any.
 * Return: IB_DEVICE_MEM_WINDOW_TYPE_2A or _2B.
 */
u64 nhca_mw_device_cap(void);

/**
 * nhca_mr_dump - fill in the reply to a resource query of a region (memory/debug.c)
 * @ibmr: the region
 * @res:  filled in
 * Context: process.
 */
void nhca_mr_dump(struct ib_mr *ibmr, struct nhca_res_mr *res);

/**
 * nhca_memory_init - initialize memory/ when the module is loaded
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_memory_init(void);

/**
 * nhca_memory_exit - undo nhca_memory_init() when the module is unloaded
 * Context: process, sleeps.
 */
void nhca_memory_exit(void);

#endif /* NHCA_MEMORY_H */
