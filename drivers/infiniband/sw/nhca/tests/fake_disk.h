/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk in memory for tests of direct/: the test decides when an I/O request ends, and with which
 * result.
 */
#ifndef NHCA_TEST_FAKE_DISK_H
#define NHCA_TEST_FAKE_DISK_H

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "../direct/store.h"
#include "../memory/live.h"

#define DISK_BYTES	(64 * PAGE_SIZE)
#define DISK_ALIGN	512

/**
 * struct fake_disk - a region of a disk, and two owners of operations
 * @store: the region
 * @pool:  pool of @store
 * @bytes: contents of the disk
 * @lock:  protects @begun
 * @begun: I/O requests that have begun and not ended
 * @bad:   index of a block that the disk cannot write; -1: the disk can write all blocks
 * @quick: an I/O request ends as soon as it begins
 * @fsyncs: number of calls of disk_fsync()
 * @fsync_err: result of disk_fsync(): 0 or a negative errno
 * @f:     two requesters or responders
 * @told:  number of times that each of @f was resumed after a wait
 */
struct fake_disk {
	struct nhca_store store;
	struct nhca_direct_pool *pool;
	u8 *bytes;
	/* protects @begun */
	spinlock_t lock;
	struct list_head begun;
	int bad;
	bool quick;
	u32 fsyncs;
	int fsync_err;
	struct nhca_fault *f[2];
	u32 told[2];
};

static inline void disk_resumed(void *arg)
{
	u32 *n = arg;

	++*n;
}

/*
 * Copy the bytes of an I/O request from or to the disk. Return: number of bytes, or a negative
 * errno.
 */
static inline ssize_t disk_move(struct fake_disk *d, const struct nhca_direct_io *io)
{
	u64 at = nhca_io_offset(io);
	u32 i;

	for (i = 0; i < io->n; i++) {
		const struct bio_vec *bv = &io->bvec[i];
		void *mem = page_address(bv->bv_page) + bv->bv_offset;

		if (nhca_io_writes(io) && d->bad == at / PAGE_SIZE)
			return -EIO;
		if (nhca_io_writes(io))
			memcpy(d->bytes + at, mem, bv->bv_len);
		else
			memcpy(mem, d->bytes + at, bv->bv_len);
		at += bv->bv_len;
	}
	return io->bytes;
}

static inline void disk_submit(struct nhca_direct_io *io)
{
	struct fake_disk *d = container_of(io->store, struct fake_disk, store);

	if (d->quick) {
		nhca_io_done(io, disk_move(d, io));
		return;
	}
	spin_lock_bh(&d->lock);
	list_add_tail(&io->list, &d->begun);
	spin_unlock_bh(&d->lock);
}

static inline int disk_fsync(struct nhca_store *store)
{
	struct fake_disk *d = container_of(store, struct fake_disk, store);

	d->fsyncs++;
	return d->fsync_err;
}

/* Handle I/O requests that have ended, in place of the BH work that would do so later. */
static inline void disk_tell(struct fake_disk *d)
{
	local_bh_disable();
	nhca_direct_pool_complete(d->pool);
	local_bh_enable();
}

/* Begin queued I/O requests. Return: number of I/O requests in progress. */
static inline u32 disk_begin(struct fake_disk *d)
{
	struct list_head *pos;
	u32 n = 0;

	/* the work item of the region may begin requests too, so wait until it has ended */
	nhca_store_run(&d->store);
	flush_work(&d->store.work);
	spin_lock_bh(&d->lock);
	list_for_each(pos, &d->begun)
		n++;
	spin_unlock_bh(&d->lock);
	return n;
}

/*
 * End I/O request @nth, counted from 0, of the requests in progress. @err: 0 or an error of the
 * disk. Return: false if @nth or fewer requests are in progress.
 */
static inline bool disk_end(struct fake_disk *d, u32 nth, int err)
{
	struct nhca_direct_io *io = NULL, *pos;

	disk_begin(d);
	spin_lock_bh(&d->lock);
	list_for_each_entry(pos, &d->begun, list)
		if (!nth--) {
			io = pos;
			break;
		}
	if (io)
		list_del(&io->list);
	spin_unlock_bh(&d->lock);
	if (!io)
		return false;
	nhca_io_done(io, err ?: disk_move(d, io));
	disk_tell(d);
	return true;
}

static inline void disk_end_all(struct fake_disk *d)
{
	while (disk_end(d, 0, 0))
		;
}

static inline struct fake_disk *disk_make(struct kunit *test, u32 blocks, bool sync)
{
	struct fake_disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->bytes = kunit_kzalloc(test, DISK_BYTES, GFP_KERNEL);
	d->pool = kunit_kzalloc(test, sizeof(*d->pool), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, d->bytes && d->pool);
	KUNIT_ASSERT_EQ(test, nhca_direct_pool_init(d->pool, blocks, 4 * blocks), 0);
	KUNIT_ASSERT_EQ(test, nhca_io_init(d->pool), 0);
	spin_lock_init(&d->lock);
	INIT_LIST_HEAD(&d->begun);
	d->bad = -1;
	d->store.pool = d->pool;
	d->store.length = DISK_BYTES;
	d->store.align = DISK_ALIGN;
	d->store.sync = sync;
	d->store.submit = disk_submit;
	d->store.fsync = disk_fsync;
	nhca_store_init(&d->store);
	for (i = 0; i < 2; i++) {
		d->f[i] = nhca_fault_alloc(disk_resumed, &d->told[i]);
		KUNIT_ASSERT_NOT_NULL(test, d->f[i]);
	}
	return d;
}

/* Write the blocks in state DIRTY, and free the region. */
static inline void disk_free(struct kunit *test, struct fake_disk *d)
{
	int i;

	d->quick = true;
	disk_end_all(d);
	nhca_store_stop(&d->store);
	disk_tell(d);
	for (i = 0; i < 2; i++)
		nhca_fault_free(d->f[i]);
	KUNIT_EXPECT_EQ(test, d->pool->nfree_arrs, d->pool->ranges);
	KUNIT_EXPECT_EQ(test, d->pool->edges_free, d->pool->nedges);
	nhca_io_fini(d->pool);
	nhca_direct_pool_fini(d->pool);
}

/* FLUSH as a responder does. Return: as nhca_store_flush(). */
static inline int disk_flush(struct fake_disk *d, int who, u64 op, bool persistent)
{
	int err;

	local_bh_disable();
	nhca_live_enter();
	err = nhca_store_flush(&d->store.backing, d->f[who], op, persistent);
	nhca_live_exit();
	local_bh_enable();
	flush_work(&d->store.flush_work);
	disk_tell(d);
	return err;
}

/*
 * Place one packet in blocks, as a responder or requester does.
 * @placed: also call nhca_store_placed() for the bytes. false: only copy the bytes, as for a packet
 * whose copy fails before its end.
 * Return: 0, or an error; after -EAGAIN the owner waits for the disk.
 */
static inline int disk_packet(struct fake_disk *d, int who, u64 op, u64 off, const u8 *from,
			      u32 len, bool end, bool placed)
{
	struct nhca_backing *b = &d->store.backing;
	struct nhca_seg seg;
	u64 at = off;
	u32 n;
	int err = 0;

	local_bh_disable();
	nhca_live_enter();
	for (at = off; !err && at < off + len; ) {
		err = nhca_store_seg(b, d->f[who], op, at, off + len - at, true, &seg);
		if (err)
			break;
		memcpy(seg.addr, from + (at - off), seg.len);
		at += seg.len;
	}
	for (at = off; placed && !err && at < off + len; at += n) {
		n = min_t(u32, off + len - at, PAGE_SIZE - offset_in_page(at));
		err = nhca_store_placed(b, d->f[who], op, at, n, end && at + n == off + len);
		if (err)
			break;
	}
	if (err == -EAGAIN)
		err = nhca_store_want(b, d->f[who], op, at, off + len - at, true);
	nhca_live_exit();
	local_bh_enable();
	return err;
}

/*
 * Read up to @len bytes of a block. Return: number of bytes, or an error; -EAGAIN: the owner waits.
 */
static inline int disk_read(struct fake_disk *d, int who, u64 op, u64 off, u8 *to, u32 len)
{
	struct nhca_backing *b = &d->store.backing;
	struct nhca_seg seg;
	int err;

	local_bh_disable();
	nhca_live_enter();
	err = nhca_store_seg(b, d->f[who], op, off, len, false, &seg);
	if (!err)
		memcpy(to, seg.addr, seg.len);
	else if (err == -EAGAIN)
		err = nhca_store_want(b, d->f[who], op, off, len, false);
	nhca_live_exit();
	local_bh_enable();
	return err ?: seg.len;
}

#endif /* NHCA_TEST_FAKE_DISK_H */
