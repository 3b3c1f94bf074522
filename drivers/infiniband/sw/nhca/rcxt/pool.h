/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: the pool of rCxts of a device (reference US 8,023,417: rCxt
 * structure; failover, round robin assignment and key field).
 *
 * A channel acquires the rCxt at the head of a list.  A released rCxt goes to the tail of the list,
 * and stays unused until all rCxts before it have been acquired.  Each acquisition gives the rCxt
 * a new key.  The key is the encrypted value (memory/shuffle.h) of a counter, which counts the
 * acquisitions of this rCxt from a random start.  So packets for an earlier owner of the rCxt, or
 * from before a recovery or a module load, name a wrong key.  An rCxt has the same key again only
 * after 2^32 acquisitions, and a peer that has seen keys of this or other rCxts cannot predict the
 * next key.
 *
 * The functions use no skb, no socket and no lock.  The kernel-doc of each function says whether
 * the caller holds the lock of the pool (nhca_rcxt_dev.lock) or of the rCxt (nhca_rcxt_lock()).
 */
#ifndef NHCA_RCXT_POOL_H
#define NHCA_RCXT_POOL_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>

#include "../memory/shuffle.h"
#include "../user.h"
#include "../wire/rcxt.h"

#define NHCA_RCXT_DEFAULT	100000u		/* default number of rCxts of a device */
#define NHCA_RCXT_MAX		BIT(20)
#define NHCA_RCXT_NONE		U32_MAX		/* end of a list */
#define NHCA_RCXT_NO_USER	U32_MAX		/* INVALID_UID: no limits of a user apply */
/* the bitmap of a transfer of at most this number of packets is in the rCxt itself, in 8 bytes */
#define NHCA_RCXT_FEW		64u

/*
 * maximum number of requests of one third-party transfer or half-receive read whose packets an rCxt
 * sends at a time
 */
#define NHCA_RCXT_PARTS		64u

/**
 * enum nhca_rcxt_state - state of an rCxt
 * @NHCA_RCXT_FREE:    in the pool
 * @NHCA_RCXT_IDLE:    owned by a channel, without a transfer: no transfer has begun, or the latest
 *                     one was canceled (also by a fence, or because the program has revoked the
 *                     target), or was sent and gets no notice
 * @NHCA_RCXT_SENDING: initiator of a write: not all packets are sent
 * @NHCA_RCXT_WAITING: initiator of a write: all packets are sent, the notice has not arrived;
 *                     half-send write: the program sends its packets by work requests
 * @NHCA_RCXT_RELEASING: initiator of a write: the notice has arrived; the write completes when no
 *                     packet refers to its pages any more
 * @NHCA_RCXT_READING: initiator of a read: not all payload is placed
 * @NHCA_RCXT_RECEIVING: target of a write: not all payload is placed
 * @NHCA_RCXT_ANSWERING: target of a read: not all requested payload is sent
 * @NHCA_RCXT_ANSWERED: target of a read: all requested payload is sent, and a notice, or a further
 *                     request of a half-receive read, may arrive; a peer may begin another
 *                     transfer.  Half-send read: the program sends the payload
 * @NHCA_RCXT_MOVING:  manager of a third-party transfer: the notice has not arrived
 * @NHCA_RCXT_FORWARDING: source of a third-party transfer: not all payload of the requests is sent
 * @NHCA_RCXT_FORWARDED: source of a third-party transfer: all payload of the requests is sent;
 *                     the manager may request a part again, and a peer may begin another transfer
 * @NHCA_RCXT_DONE:    the transfer is complete
 * @NHCA_RCXT_VIOLATED: memory protection refused bytes of the transfer, which never completes
 */
enum nhca_rcxt_state {
	NHCA_RCXT_FREE = 0,
	NHCA_RCXT_IDLE,
	NHCA_RCXT_SENDING,
	NHCA_RCXT_WAITING,
	NHCA_RCXT_RELEASING,
	NHCA_RCXT_READING,
	NHCA_RCXT_RECEIVING,
	NHCA_RCXT_ANSWERING,
	NHCA_RCXT_ANSWERED,
	NHCA_RCXT_DONE,
	NHCA_RCXT_VIOLATED,
	NHCA_RCXT_MOVING,
	NHCA_RCXT_FORWARDING,
	NHCA_RCXT_FORWARDED,
};

/**
 * struct nhca_rcxt - state of one transfer at one end, at most 64 bytes
 * @key:     acquired: key of the rCxt; in the pool: position of its latest key in the order of
 *           nhca_rcxt_pool.keys, or a random position before the first acquisition
 * @tid:     tid of the latest transfer, or of a later cancel or fence; 0: there was none since the
 *           rCxt was acquired
 * @channel: QPN of the channel that owns the rCxt
 * @next:    index of the next rCxt in the free list of the pool or, if it is acquired, in the list
 *           of the channel; the pool's lock protects @next and @prev
 * @prev:    acquired: index of the previous rCxt in the list of the channel
 * @total:   bytes of the transfer
 * @missing: READING, RECEIVING: number of packets that have not arrived
 * @zcopy:   WAITING, RELEASING: number (nhca_zcopy_seq()) of the last zero-copy reference that the
 *           transfer can have
 * @number:  MOVING, FORWARDING, FORWARDED; half-receive read: ANSWERING, ANSWERED: number of the
 *           latest request (nhca_rxeth.number)
 * @segment: payload bytes of each packet but the last
 * @copies:  number of CPUs that copy payload for the rCxt now, perhaps of a canceled transfer
 *           (reference: outstanding DMA count)
 * @state:   enum nhca_rcxt_state
 * @notify:  NHCA_RX_NOTIFY_*
 * @noticed: the notice has arrived; in SENDING and ANSWERING it came before the last packet was
 *           sent
 * @map_kept: the bitmap is @map, and not @bits
 * @wrote:   the channel has begun to send a write from job memory, and nhca_rcxt_released() was not
 *           called since: packets may refer to pages of the write
 * @answers: a peer has sent a request, or the channel has sent packets of a half-send write: the
 *           send engine may be copying payload to packets, so nhca_channel_release() waits for it
 * @awaited: a work request of the channel waits until no CPU copies payload: see nhca_rcxt_await()
 * @wanted:  a work request of the channel waits to begin a transfer: see nhca_rcxt_want()
 * @making:  the send engine makes packets of a third-party transfer: it reads the payload
 * @half:    RECEIVING, READING: the payload goes into frames of the receive FIFO; ANSWERING,
 *           ANSWERED: the payload goes into frames of the reader, which may request parts again
 * @program: half-send read: READING: the program of the peer sends the payload; ANSWERED: the
 *           program of the rCxt's own channel sends it by work requests
 * @own_write: the latest transfer is a write that the channel has begun
 * @ordered: the latest transfer is an ordered accumulate of the channel (NHCA_RCXT_WR_ORDERED), and
 *           no status has said that it is complete
 * @uid:     user against whose limits the rCxt counts, or NHCA_RCXT_NO_USER
 * @pvo:     READING, RECEIVING: destination of the transfer's first byte; FORWARDING, FORWARDED;
 *           half-receive read: ANSWERING, ANSWERED: source of the transfer's first byte
 * @asked:   half-receive read: READING: number of the latest request (nhca_rxeth.number)
 * @digest:  MOVING: nhca_third_digest() of the latest request
 * @noticed_next: RELEASING: index of the next rCxt in nhca_channel.noticed
 * @noticed_prev: RELEASING: index of the previous rCxt in nhca_channel.noticed
 * @bits:    READING, RECEIVING: bit i is set if packet i has arrived; at most NHCA_RCXT_FEW packets
 * @map:     bitmap as @bits, for more packets, at most NHCA_RCXT_MAX_PACKETS; allocated when the
 *           transfer begins, freed when it ends or is replaced (tid.c); owned by the rCxt
 * @target:  MOVING, and ordered accumulate without a notice: rCxt of the target, which sends the
 *           notice
 * @parts:   FORWARDING; half-receive read: ANSWERING: number of requests whose packets are not all
 *           sent, at most NHCA_RCXT_PARTS
 * @noticed_by: write, third-party transfer: QPN of the channel that sent the notice; valid if
 *           @noticed is set
 * @cookie:  wr_id of the work request, if the rCxt's own channel began the transfer
 * @op:      RECEIVING: enum nhca_element_op of the transfer; NHCA_ELEM_NONE: it is no accumulate
 * @type:    RECEIVING, accumulate: enum nhca_element_type of the transfer; otherwise 0
 *
 * The rCxt's lock (nhca_rcxt_lock()) protects all fields of an acquired rCxt but @next and @prev.
 */
struct nhca_rcxt {
	u32 key;
	u32 tid;
	u32 channel;
	u32 next;
	u32 prev;
	u32 total;
	union {
		u32 missing;
		u32 zcopy;
		u32 number;
	};
	u16 segment;
	u16 copies;
	u8 state;
	u8 notify;
	u8 noticed:1;
	u8 map_kept:1;
	u8 wrote:1;
	u8 answers:1;
	u8 awaited:1;
	u8 wanted:1;
	u8 making:1;
	u8 half:1;
	u8 program:1;
	u8 own_write:1;
	u8 ordered:1;
	u32 uid;
	union {
		u64 pvo;
		u64 digest;
		u32 asked;
		struct {
			u32 noticed_next;
			u32 noticed_prev;
		};
	};
	union {
		unsigned long bits[NHCA_RCXT_FEW / BITS_PER_LONG];
		unsigned long *map;
		struct nhca_rcxt_id target;
		u32 parts;
		u32 noticed_by;
	};
	union {
		u64 cookie;
		struct {
			u8 op;
			u8 type;
		};
	};
};

static_assert(sizeof(struct nhca_rcxt) <= 64);

static inline bool nhca_rcxt_id_equal(const struct nhca_rcxt_id *a, const struct nhca_rcxt_id *b)
{
	return a->index == b->index && a->key == b->key;
}

/**
 * struct nhca_rcxt_pool - the rCxts of a device
 * @rcxts: array of @size rCxts; owned
 * @size:  number of rCxts; constant
 * @free:  number of free rCxts
 * @head:  index of the first free rCxt; NHCA_RCXT_NONE if none is free
 * @tail:  index of the last free rCxt; NHCA_RCXT_NONE if none is free
 * @recoveries: recovery count, starts at a random value
 * @keys:  order of the keys; the counter in @keys is not used, because each rCxt has a counter
 * @map_bytes: bytes of all bitmaps that are allocated; atomic
 * @map_limit: upper bound of @map_bytes
 * @users: the users of the device; the creator of the pool sets it, if channels have users
 *
 * The pool's lock (nhca_rcxt_dev.lock) protects @free, @head, @tail and @recoveries.
 */
struct nhca_rcxt_pool {
	struct nhca_rcxt *rcxts;
	u32 size;
	u32 free;
	u32 head;
	u32 tail;
	u16 recoveries;
	struct nhca_shuffle keys;
	atomic_long_t map_bytes;
	unsigned long map_limit;
	struct nhca_users *users;
};

/**
 * struct nhca_rcxt_list - the rCxts of a channel
 * @first: index of the first rCxt, or NHCA_RCXT_NONE
 * @count: number of rCxts
 * @user:  user of the channel, with a reference; nhca_share_ok() limits the user's rCxts and
 *         bitmaps.  NULL: no limits of a user apply, because the process that created the channel
 *         had CAP_SYS_RESOURCE.  Constant
 *
 * The pool's lock protects @first and @count.
 */
struct nhca_rcxt_list {
	u32 first;
	u32 count;
	struct nhca_user *user;
};

#define NHCA_RCXT_LIST_INIT	{ .first = NHCA_RCXT_NONE }

/**
 * nhca_rcxt_pool_init - create a pool of rCxts, all free
 * @pool: filled in
 * @size: number of rCxts, 1 to NHCA_RCXT_MAX
 * Context: process, sleeps.
 * Return: 0; -EINVAL: @size is out of bounds; -ENOMEM: no memory.
 */
int nhca_rcxt_pool_init(struct nhca_rcxt_pool *pool, u32 size);

/**
 * nhca_rcxt_pool_destroy - free the memory of a pool
 * @pool: the pool, whose rCxts are all free; may be zeroed
 * Context: process, sleeps.
 */
void nhca_rcxt_pool_destroy(struct nhca_rcxt_pool *pool);

/**
 * nhca_rcxt_acquire - give @count rCxts to a channel, or none if the function fails
 * @pool:    the pool
 * @channel: QPN of the channel
 * @list:    rCxts of the channel
 * @count:   number of rCxts
 * @ids:     room for @count ids, filled in
 *
 * The tid of the rCxts is 0, so that their first transfer has a tid of at least 1.
 * Context: any; the pool's lock held.
 * Return: 0; -EDQUOT: nhca_share_ok() does not permit the user that many rCxts; -ENOSPC: fewer than
 * @count rCxts are free.
 */
int nhca_rcxt_acquire(struct nhca_rcxt_pool *pool, u32 channel, struct nhca_rcxt_list *list,
		      u32 count, struct nhca_rcxt_id *ids);

/**
 * nhca_rcxt_release - return an rCxt, which may be in any state, to the pool
 * @pool: the pool
 * @list: rCxts of the channel that owns @rc
 * @rc:   the rCxt, from nhca_rcxt_find().  No CPU copies payload for @rc, and no copy can begin:
 *        the caller has ended the transfer and waited for copies
 * Context: any; the pool's lock and the rCxt's lock held.
 */
void nhca_rcxt_release(struct nhca_rcxt_pool *pool, struct nhca_rcxt_list *list,
		       struct nhca_rcxt *rc);

/**
 * nhca_rcxt_pool_recover - count a recovery of the device
 * @pool: the pool, whose rCxts are all free.  Each rCxt gets a new key when it is acquired again,
 *        so packets with its earlier keys are dropped
 * Context: any; the pool's lock held.
 * Return: the new recovery count.
 */
u16 nhca_rcxt_pool_recover(struct nhca_rcxt_pool *pool);

/**
 * enum nhca_rcxt_lookup - result of a lookup of an rCxt
 * @NHCA_RCXT_FOUND:    the channel owns the rCxt
 * @NHCA_RCXT_NO_INDEX: the pool has no rCxt with this index
 * @NHCA_RCXT_NOT_OURS: the rCxt is free, or another channel owns it
 * @NHCA_RCXT_OLD_KEY:  the key is wrong, for example that of an earlier acquisition of the rCxt
 */
enum nhca_rcxt_lookup {
	NHCA_RCXT_FOUND = 0,
	NHCA_RCXT_NO_INDEX,
	NHCA_RCXT_NOT_OURS,
	NHCA_RCXT_OLD_KEY,
};

/**
 * nhca_rcxt_find - look up an rCxt of a channel
 * @pool:    the pool
 * @channel: QPN of the channel
 * @id:      index and key of the rCxt, as a packet or work request names them
 * @rc:      set to the rCxt, or to NULL
 * Context: any; the lock of the rCxt with this index (nhca_rcxt_lock()) held.
 * Return: enum nhca_rcxt_lookup.
 */
enum nhca_rcxt_lookup nhca_rcxt_find(const struct nhca_rcxt_pool *pool, u32 channel,
				     const struct nhca_rcxt_id *id, struct nhca_rcxt **rc);

static inline u32 nhca_rcxt_index(const struct nhca_rcxt_pool *pool, const struct nhca_rcxt *rc)
{
	return rc - pool->rcxts;
}

#endif /* NHCA_RCXT_POOL_H */
