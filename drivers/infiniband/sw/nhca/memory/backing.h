/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions of a backing.  A backing supplies the bytes of a region: the backing brings the bytes
 * into memory when an operation needs them, and removes them afterwards.  The driver's only
 * backings are those of direct/, whose bytes are in a file or on a block device ("the disk").
 *
 * Two parameters of a backing's functions name the operation that needs the bytes: the struct
 * nhca_fault of the requester or responder (the owner) that executes the operation, and a number
 * that this owner uses for no other operation.  So a backing can separate the bytes of each
 * operation from those of other operations.
 */
#ifndef NHCA_BACKING_H
#define NHCA_BACKING_H

#include <linux/list.h>
#include <linux/types.h>

#include "memory.h"

struct nhca_backing;

/*
 * SGEs of one receive or READ may lie in the same block, and may even overlap.  So if an operation
 * writes, its number also identifies the SGE: the bits from NHCA_OP_SGE_SHIFT on contain the count
 * of SGEs that come later in the list (nhca_backing_op()).  The backing has one copy of the block
 * for each of these SGEs, so the bytes of a later SGE can replace those of an earlier one.
 */
#define NHCA_OP_SGE_SHIFT	56

/* Return: @op, which nhca_backing_op() has returned, without the SGE in the upper bits. */
static inline u64 nhca_backing_whole_op(u64 op)
{
	return op & (BIT_ULL(NHCA_OP_SGE_SHIFT) - 1);
}

/**
 * struct nhca_feed - position of a requester or responder (the owner) in a backing
 * @line:    entry in a list of the backing while the owner waits; a lock of the backing protects
 *           @line
 * @backing: the backing that @op to @run belong to; never dereferenced
 * @op:      number of the operation
 * @next:    number of the first block that the owner has not requested yet
 * @end:     offset in the region at which the operation ends, in bytes
 * @run:     number of blocks of the next I/O request that reads in advance
 * @error:   errno (positive) of a failed I/O request of operation @write_op, or 0; protected by the
 *           lock of the struct nhca_fault
 * @write_op: number of the last operation that has written to a backing or flushed it; written with
 *           the lock of the struct nhca_fault held
 *
 * Each struct nhca_fault contains a struct nhca_feed, which is zeroed at its allocation.  Only the
 * owner changes @backing to @run, with a lock of the backing held.
 */
struct nhca_feed {
	struct list_head line;
	const struct nhca_backing *backing;
	u64 op;
	u64 next;
	u64 end;
	u32 run;
	int error;
	u64 write_op;
};

/**
 * struct nhca_backing_ops - functions of a backing
 * @seg:   finds the contiguous bytes at offset @off of the region, at most @max.  @f and @op name
 *         the operation, and the SGE that is written (nhca_backing_op()); @f is NULL if the caller
 *         cannot wait.  The backing ignores the bytes that the caller writes to the segment until
 *         @placed is called for them.
 *         It is called in a live section, and returns 0; -EAGAIN: the bytes are not in memory, so
 *         the caller must call @want; also returned if @f is NULL; -EACCES: the region is being
 *         freed; -EIO: the bytes cannot be read.
 * @want:  called after @seg has returned -EAGAIN for @off: requests the bytes.  @len: bytes that
 *         the operation still needs from @off on; those after the end of the region are ignored.
 *         It is called in the live section of @seg, and returns -EAGAIN: the function has called
 *         nhca_fault_begin(), so the owner waits; -EACCES: the region is being freed.
 * @placed: the owner has written @len bytes, which are in one page, to the segments that @seg has
 *         returned for them and this @op.  The bytes are those of verified packets.  @end: these
 *         are the last bytes of the operation, or the last ones in this SGE.
 *         It is called in the live section of @seg, and returns 0; -EAGAIN: the backing has taken
 *         the segment back, so the owner must write the bytes again; -EACCES: the region is being
 *         freed, or @f is NULL.
 * @flush: writes to the disk the bytes of all operations that have ended before.  @op names the
 *         FLUSH; the owner calls @flush for the same @op again after its wait.  @persistent: the
 *         bytes must also leave the cache of the disk.  @flush is NULL if a backing has nothing to
 *         write.
 *         It is called in the live section in which the key was checked, and returns 0; -EAGAIN:
 *         the function has called nhca_fault_begin(), so the owner waits; -EACCES: the region is
 *         being freed, or @f is NULL; -EIO: some bytes could not be written.
 * @ahead: advises the backing that an operation will need @len bytes from @off on.
 *         It is called in the live section in which the key was checked.
 * @free:  frees the backing.  It is called in process context, and may sleep.  The key is closed,
 *         and the waits for live sections and packets have ended.
 */
struct nhca_backing_ops {
	int (*seg)(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   bool write, struct nhca_seg *seg);
	int (*want)(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len,
		    bool write);
	int (*placed)(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 len,
		      bool end);
	int (*flush)(struct nhca_backing *b, struct nhca_fault *f, u64 op, bool persistent);
	void (*ahead)(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len);
	void (*free)(struct nhca_backing *b);
};

/**
 * struct nhca_backing - a backing; embedded in a structure of the code that supplies the bytes
 * @ops: its functions
 * @key: L_Key of the region, for traces; 0 before nhca_mr_backed()
 */
struct nhca_backing {
	const struct nhca_backing_ops *ops;
	u32 key;
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_mr_backed - make a region of a backing
 * @dev:    the device
 * @pd:     protection domain
 * @b:      the backing, which the region owns afterwards; after an error the caller still owns it
 * @length: bytes, not 0
 * @iova:   address of the first byte, a multiple of PAGE_SIZE
 * @access: enum ib_access_flags
 *
 * Packets may refer to the pages of the segments that @b returns.  The page of such a segment must
 * not be used for other bytes until no packet has a reference on the page.
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EINVAL: @length is 0, the range wraps, or @iova is not aligned;
 * -ENOMEM: no memory; -ENOSPC: nearly all indices of keys are in use.
 */
struct ib_mr *nhca_mr_backed(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_backing *b,
			     u64 length, u64 iova, int access);

/**
 * nhca_mr_backing - get the backing of a region
 * @ibmr: the region
 * Context: any; the caller prevents the deregistration of @ibmr.
 * Return: the backing; NULL: the region has none.
 */
struct nhca_backing *nhca_mr_backing(struct ib_mr *ibmr);

/**
 * nhca_fault_feed - get the position of a requester or responder in its backing
 * @f: the struct nhca_fault of the requester or responder (the owner)
 * Context: any.
 * Return: the position.
 */
struct nhca_feed *nhca_fault_feed(struct nhca_fault *f);

/**
 * nhca_fault_of - get the struct nhca_fault that contains a position
 * @feed: from nhca_fault_feed()
 * Context: any.
 * Return: the struct nhca_fault.
 */
struct nhca_fault *nhca_fault_of(struct nhca_feed *feed);

/**
 * nhca_fault_get - take a reference, so that @f is not freed before nhca_fault_put()
 * @f: the owner's struct nhca_fault
 * Context: any.
 * Return: @f.
 */
struct nhca_fault *nhca_fault_get(struct nhca_fault *f);

/**
 * nhca_fault_put - release a reference
 * @f: the owner's struct nhca_fault
 * Context: any.
 */
void nhca_fault_put(struct nhca_fault *f);

/**
 * nhca_fault_begin - let the owner wait until nhca_fault_end()
 * @f: the owner's struct nhca_fault
 * Context: BH disabled; also in a live section, and with a lock of the backing held.
 * Return: true: the caller must cause one call of nhca_fault_end(), even if the owner cancels the
 * wait or is freed; false: the owner waits already, and will try again when that wait has ended.
 */
bool nhca_fault_begin(struct nhca_fault *f);

/**
 * nhca_fault_end - end a wait of nhca_fault_begin() or nhca_fault_sync(): the owner tries again
 * @f: the owner's struct nhca_fault; the function releases the reference of the wait
 *
 * The owner is resumed unless it has canceled the wait.  If the bytes could not be read,
 * nhca_backing_ops.seg() returns -EIO when the owner tries again.
 * Context: process or softirq, not in a live section; no lock of the backing held.
 * Return: true if the owner was resumed.
 */
bool nhca_fault_end(struct nhca_fault *f);

/**
 * nhca_fault_write_op - record the operation with which the owner writes to a backing or flushes it
 * @f:  the owner's struct nhca_fault
 * @op: number of the operation; if it is the same as in the last call, nothing happens
 * Context: BH disabled; a lock of the backing may be held.
 */
void nhca_fault_write_op(struct nhca_fault *f, u64 op);

/**
 * nhca_fault_write_begin - count one more part of an operation that must be written to the disk
 * @f: the owner's struct nhca_fault
 *
 * nhca_fault_sync() waits until nhca_fault_write_end() was called for each part.
 * Context: BH disabled; a lock of the backing may be held.
 */
void nhca_fault_write_begin(struct nhca_fault *f);

/**
 * nhca_fault_write_end - end a part that nhca_fault_write_begin() has counted
 * @f:   the owner's struct nhca_fault
 * @op:  number of the operation
 * @err: 0: the part is on the disk; else the errno (positive) with which the write has failed
 * Context: BH disabled; a lock of the backing may be held.
 * Return: true: this was the last part for which the owner waits (nhca_fault_sync()), so the caller
 * must cause a call of nhca_fault_end().
 */
bool nhca_fault_write_end(struct nhca_fault *f, u64 op, int err);

/**
 * nhca_fault_flush_end - record the result of a FLUSH of the owner
 * @f:   the owner's struct nhca_fault
 * @op:  number of the FLUSH
 * @err: 0 or an errno (positive)
 * Context: BH disabled; a lock of the backing may be held.  Afterwards the caller must cause a call
 * of nhca_fault_end().
 */
void nhca_fault_flush_end(struct nhca_fault *f, u64 op, int err);

/**
 * nhca_fault_flushed - check whether a FLUSH of the owner has ended
 * @f:  the owner's struct nhca_fault
 * @op: number of the FLUSH
 * Context: BH disabled.
 * Return: 0: the FLUSH has succeeded; -EIO: the FLUSH has failed; -EAGAIN: the FLUSH has not ended,
 * or has not begun.
 */
int nhca_fault_flushed(struct nhca_fault *f, u64 op);

/**
 * nhca_fault_aborts - get the number of times that the owner has given up all operations
 * @f: the owner's struct nhca_fault
 * Context: any.
 * Return: the number; see nhca_fault_abort().
 */
u32 nhca_fault_aborts(const struct nhca_fault *f);

#endif

#endif /* NHCA_BACKING_H */
