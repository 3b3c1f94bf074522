/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: the pool of rCxts of a device (reference: rCxt structure;
 * failover, round robin assignment and key field).
 *
 * An rCxt is handed out from the head of a list and taken back at its tail, so that it rests for
 * as long as the pool is large.  Its key is another one each time: how often it was handed out,
 * from a random start, encrypted (memory/shuffle.h).  So packets from before a recovery, a module
 * load, or a change of hands name a key that is no more; 2^32 keys come before one comes again;
 * and a peer that has seen keys of this rCxt or of others cannot tell the next.
 *
 * No skb, no socket, no lock: the caller has one for the pool, and one for each rCxt (tid.h).
 */
#ifndef NHCA_RCXT_POOL_H
#define NHCA_RCXT_POOL_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "../memory/shuffle.h"
#include "../wire/rcxt.h"

#define NHCA_RCXT_DEFAULT	100000u
#define NHCA_RCXT_MAX		BIT(20)
#define NHCA_RCXT_NONE		U32_MAX		/* end of a list */
#define NHCA_RCXT_NOBODY	U32_MAX		/* INVALID_UID: no limit but the pool's */
/* packets whose bits are in the rCxt itself */
#define NHCA_RCXT_FEW		64u

/**
 * enum nhca_rcxt_state - what an rCxt is doing
 * @NHCA_RCXT_FREE:    in the pool
 * @NHCA_RCXT_IDLE:    nothing: since it was acquired, or its last transfer was cancelled or
 *                     needed no notice
 * @NHCA_RCXT_SENDING: its channel writes to a peer
 * @NHCA_RCXT_WAITING: all of that is sent, and a notice is to come
 * @NHCA_RCXT_RELEASING: that has come, and packets still refer to the transfer's pages: it is
 *                     complete when they are released
 * @NHCA_RCXT_READING: its channel reads from a peer: payload is to come
 * @NHCA_RCXT_SINKING: a peer writes: some of the payload has come
 * @NHCA_RCXT_ANSWERING: a peer reads: payload is to be sent
 * @NHCA_RCXT_ANSWERED: that is sent, and a notice may come; a peer may begin anew
 * @NHCA_RCXT_DONE:    the transfer is complete
 * @NHCA_RCXT_VIOLATED: memory protection refused a packet of it: it will never be complete
 */
enum nhca_rcxt_state {
	NHCA_RCXT_FREE = 0,
	NHCA_RCXT_IDLE,
	NHCA_RCXT_SENDING,
	NHCA_RCXT_WAITING,
	NHCA_RCXT_RELEASING,
	NHCA_RCXT_READING,
	NHCA_RCXT_SINKING,
	NHCA_RCXT_ANSWERING,
	NHCA_RCXT_ANSWERED,
	NHCA_RCXT_DONE,
	NHCA_RCXT_VIOLATED,
};

/**
 * struct nhca_rcxt - one active transfer of a channel: 64 bytes
 * @key:     while acquired: the key of its id; in the pool: the place of its last key in the order
 *           of nhca_rcxt_pool.keys
 * @tid:     of the latest transfer; 0: none since it was acquired
 * @channel: QPN of the channel that has it
 * @uid:     of the user whose limits it counts to, or NHCA_RCXT_NOBODY
 * @next, @prev: in the pool: the next free one; acquired: neighbours in the channel's list
 * @total:   bytes of the transfer
 * @missing: packets that have not come (READING, SINKING)
 * @zcopy:   the newest zero-copy reference to its pages: nhca_zcopy_seq() (WAITING, RELEASING)
 * @segment: bytes of each packet but the last
 * @copies:  engines that are copying payload for it now, of this tid (the reference's outstanding
 *           DMA count)
 * @state:   enum nhca_rcxt_state
 * @notify:  NHCA_RX_NOTIFY_*
 * @noticed: SENDING, ANSWERING: the notice has come before the last packet left
 * @map_kept: @map is allocated
 * @wrote:   its channel wrote, and packets may refer to pages of that: the write is not complete
 * @pvo:     where the transfer's first byte goes
 * @line_next, @line_prev: neighbours in nhca_channel.noticed (RELEASING)
 * @bits:    which packets have come, if they are NHCA_RCXT_FEW at most
 * @map:     the same if they are more; owned: allocated when the transfer begins, freed when it
 *           ends, in whatever way (tid.c); at most NHCA_RCXT_MAX_PACKETS bits
 * @noticed_by: QPN of the channel that has sent the notice (@noticed)
 * @cookie:  of the work request that began the transfer here
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
	};
	u16 segment;
	u16 copies;
	u8 state;
	u8 notify;
	u8 noticed:1;
	u8 map_kept:1;
	u8 wrote:1;
	u32 uid;
	union {
		u64 pvo;
		struct {
			u32 line_next;
			u32 line_prev;
		};
	};
	union {
		unsigned long bits[NHCA_RCXT_FEW / BITS_PER_LONG];
		unsigned long *map;
		u32 noticed_by;
	};
	u64 cookie;
};

static_assert(sizeof(struct nhca_rcxt) <= 64);

/**
 * struct nhca_rcxt_user - what one user has of a device's pool
 * @uid:       as the initial user namespace sees it: the index in nhca_rcxt_pool.users
 * @channels:  that it has; whoever serializes nhca_rcxt_user_get()
 * @count:     rCxts of these channels, half of the pool at most; the pool's lock
 * @map_bytes: their bitmaps, half of nhca_rcxt_pool.map_limit at most; any lock
 *
 * One half of everything stays for others, whatever one user does.  Whoever may exceed limits
 * of resources (CAP_SYS_RESOURCE) is not counted.
 */
struct nhca_rcxt_user {
	u32 uid;
	u32 channels;
	u32 count;
	atomic_long_t map_bytes;
};

/**
 * struct nhca_rcxt_pool - the rCxts of a device
 * @rcxts: @size of them; owned
 * @size:  constant
 * @free:  number of free ones
 * @head, @tail: of their list: NHCA_RCXT_NONE if there are none
 * @recoveries: recovery count, from a random start
 * @keys:  the order of keys; its counter is not used, because each rCxt has its own
 * @map_bytes: bitmaps that are allocated; any lock
 * @map_limit: how many bytes they may be
 * @users: struct nhca_rcxt_user by uid; owned by their channels
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
	struct xarray users;
};

/**
 * struct nhca_rcxt_list - the rCxts of a channel
 * @first: or NHCA_RCXT_NONE
 * @count: how many
 * @user:  whose channel it is, or NULL if its rCxts count to nobody
 */
struct nhca_rcxt_list {
	u32 first;
	u32 count;
	struct nhca_rcxt_user *user;
};

#define NHCA_RCXT_LIST_INIT	{ .first = NHCA_RCXT_NONE }

/**
 * nhca_rcxt_pool_init - make a pool of @size rCxts, all free
 * @size: 1 to NHCA_RCXT_MAX
 * Context: process, sleeps.  Return: 0, -EINVAL, -ENOMEM.
 */
int nhca_rcxt_pool_init(struct nhca_rcxt_pool *pool, u32 size);

/* all of them have been given back; a zeroed pool is fine; process context */
void nhca_rcxt_pool_destroy(struct nhca_rcxt_pool *pool);

/**
 * nhca_rcxt_user_get - the account of a user, for one more channel of it
 * @uid: not NHCA_RCXT_NOBODY
 * @user: set if it succeeds; until nhca_rcxt_user_put()
 * Context: process, sleeps; the caller serializes it with nhca_rcxt_user_put().
 * Return: 0, -ENOMEM.
 */
int nhca_rcxt_user_get(struct nhca_rcxt_pool *pool, u32 uid, struct nhca_rcxt_user **user);

/**
 * nhca_rcxt_user_put - the channel is gone, and its rCxts have been taken back
 * @user: or NULL
 * Context: process; the caller serializes it with nhca_rcxt_user_get().
 */
void nhca_rcxt_user_put(struct nhca_rcxt_pool *pool, struct nhca_rcxt_user *user);

/**
 * nhca_rcxt_acquire - give @count rCxts to a channel, or none
 * @ids: filled in
 * Their tid is 0, so that the first transfer's is 1 or more.
 * Context: any; the pool's lock.
 * Return: 0; -EDQUOT: the user would have more than half of the pool; -ENOSPC: so many are not
 * free.
 */
int nhca_rcxt_acquire(struct nhca_rcxt_pool *pool, u32 channel, struct nhca_rcxt_list *list,
		      u32 count, struct nhca_rcxt_id *ids);

/**
 * nhca_rcxt_release - take one back that nhca_rcxt_find() has found, and whatever it was doing
 * The caller has seen nhca_rcxt_quiet() with the rCxt's lock held, and still holds it: no engine
 * copies for it.
 * Context: any; the pool's lock and the rCxt's.
 */
void nhca_rcxt_release(struct nhca_rcxt_pool *pool, struct nhca_rcxt_list *list,
		       struct nhca_rcxt *rc);

/**
 * nhca_rcxt_pool_recover - packets from before are of another time
 * All rCxts have been taken back; each has another key when it is handed out the next time.
 * Context: any; the pool's lock.  Return: the new recovery count.
 */
u16 nhca_rcxt_pool_recover(struct nhca_rcxt_pool *pool);

/**
 * enum nhca_rcxt_lookup - why an id names no rCxt of a channel
 * @NHCA_RCXT_NO_INDEX: there is no such rCxt
 * @NHCA_RCXT_NOT_OURS: it is free, or another channel's
 * @NHCA_RCXT_OLD_KEY:  it has changed hands, or the device has recovered
 */
enum nhca_rcxt_lookup {
	NHCA_RCXT_FOUND = 0,
	NHCA_RCXT_NO_INDEX,
	NHCA_RCXT_NOT_OURS,
	NHCA_RCXT_OLD_KEY,
};

/**
 * nhca_rcxt_find - the rCxt of a channel that an id names
 * Context: any; the lock of the rCxt that has this index, if there is one.
 */
enum nhca_rcxt_lookup nhca_rcxt_find(const struct nhca_rcxt_pool *pool, u32 channel,
				     const struct nhca_rcxt_id *id, struct nhca_rcxt **rc);

static inline u32 nhca_rcxt_index(const struct nhca_rcxt_pool *pool, const struct nhca_rcxt *rc)
{
	return rc - pool->rcxts;
}

#endif /* NHCA_RCXT_POOL_H */
