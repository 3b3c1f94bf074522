/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions for a caller whose iterator has returned -EAGAIN: they request the missing bytes, and
 * let the caller wait for these bytes.
 *
 * memory.h includes this file.
 */
#ifndef NHCA_FAULT_H
#define NHCA_FAULT_H

#include <linux/types.h>

#include "iter.h"
#include "live.h"

/*
 * The state of a requester, responder or channel (the owner) that waits for on-demand pages, or for
 * bytes of a backing (backing.h).  A QP has one such state for its requester and one for its
 * responder; a channel has one such state.
 */
struct nhca_fault;

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_fault_alloc - allocate the state
 * @resume: called when a fault or another wait of the owner has ended, so that the owner tries
 *          again.  The function runs with a lock of the state held and BH disabled, and may only
 *          queue work (struct nhca_bh).
 * @arg:    argument of @resume
 * Context: process, sleeps.
 * Return: the state, for nhca_fault_free(); NULL: out of memory.
 */
struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg);

/**
 * nhca_fault_free - free the state
 * @f: the state or NULL
 *
 * On return @resume is not running and will not be called.  The function does not wait for a page
 * fault that is in progress: after this fault the worker frees the state.
 * Context: process or softirq; the owner does not request faults any more.
 */
void nhca_fault_free(struct nhca_fault *f);

/**
 * nhca_fault_cancel - cancel a request, because the owner no longer needs the pages (QP reset)
 * @f: the state or NULL
 *
 * On return @resume is not running, and will not be called before the owner requests another fault.
 * Context: process or softirq.
 */
void nhca_fault_cancel(struct nhca_fault *f);

/**
 * nhca_fault_abort - give up the operations of the owner (QP error)
 * @f: the state or NULL
 *
 * If these operations have written only a part of a block of a backing (NHCA_ARR_COLLECTING of
 * direct/pool.h), the part is not written to the disk.  nhca_fault_cancel() and nhca_fault_free()
 * also give up the operations.
 * Context: process or softirq.
 */
void nhca_fault_abort(struct nhca_fault *f);

/**
 * nhca_fault_sync - wait for the disk at the end of an operation that has written to a backing
 * @f: the state
 *
 * Before this call the owner has handed over all bytes of the operation (nhca_iter_placed()).
 * Context: BH disabled, in or out of a live section.
 * Return: 0: the bytes are on the disk, or the region needs no wait (nhca_direct_attr.sync is not
 * set); -EAGAIN: @resume of @f will be called; -EIO: the disk could not write some bytes.
 */
int nhca_fault_sync(struct nhca_fault *f);

/**
 * nhca_fault_has_job - nhca_fault_waiting() without the check for NULL
 * @f: the state
 * Context: any.
 * Return: true if @resume will be called.
 */
bool nhca_fault_has_job(const struct nhca_fault *f);

/**
 * nhca_fault_waiting - check whether the owner waits for a fault
 * @f: the state or NULL
 * Context: any.
 * Return: true if a fault or another wait of the owner has not ended; @resume will be called at the
 * end of the wait.
 */
static inline bool nhca_fault_waiting(const struct nhca_fault *f)
{
	return f && nhca_fault_has_job(f);
}

/**
 * nhca_iter_fault - request the bytes for which an iterator has returned -EAGAIN
 * @it:    the iterator, as the call that returned -EAGAIN left it
 * @ahead: bytes of the same message that follow those of @it in the same buffer, 0 if not known;
 *         on-demand pages of these bytes are faulted in as well, for at most 1 MiB in all
 * @f:     state of the caller; with NULL the function returns -EACCES
 * Context: the live section in which the iterator was used.
 * Return: -EAGAIN: @resume of @f will be called; a retry before that call is useless but harmless.
 * -EACCES: @f is NULL; or the last fault that @f requested was for the same bytes, and failed less
 * than 5 s ago; or the region has a backing, and @it does not name an operation of @f
 * (nhca_iter_for()); or the region is being deregistered.  The caller must handle -EACCES as it
 * handles an access that the key does not grant.
 */
int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f);

#else

/* without on-demand paging no iterator returns -EAGAIN, so no caller waits */
static inline struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg)
{
	return ZERO_SIZE_PTR;
}

static inline void nhca_fault_free(struct nhca_fault *f) { }
static inline void nhca_fault_cancel(struct nhca_fault *f) { }
static inline void nhca_fault_abort(struct nhca_fault *f) { }
static inline int nhca_fault_sync(struct nhca_fault *f) { return 0; }
static inline bool nhca_fault_waiting(const struct nhca_fault *f) { return false; }

static inline int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f)
{
	return -EACCES;
}

#endif

/**
 * nhca_live_exit_fault - end a live section, and request the bytes that were missing in it
 * @err:   result of the function that used the iterator in the section
 * @it:    the iterator
 * @ahead: as for nhca_iter_fault()
 * @f:     state of the caller, or NULL
 * Context: the live section.
 * Return: @err; for an @err of -EAGAIN, the result of nhca_iter_fault().
 */
static inline int nhca_live_exit_fault(int err, const struct nhca_iter *it, u32 ahead,
				       struct nhca_fault *f)
{
	if (err == -EAGAIN)
		err = nhca_iter_fault(it, ahead, f);
	nhca_live_exit();
	return err;
}

#endif /* NHCA_FAULT_H */
