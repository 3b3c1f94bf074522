// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: operations that write to a region of a file: which bytes reach the disk, in which order,
 * and when an operation ends; and random histories, compared with a copy of the disk in memory.
 */
#include <linux/prandom.h>

#include "fake_disk.h"

#define HISTORY_STEPS	4000
/* number of regions that wait for room in the pool, in more_test() */
#define WAITERS		(4 * NHCA_MORE_BATCH)
/*
 * half_begin() gives the two owners different parts of the disk; adjacent parts meet inside a block
 */
#define PART		5300
#define PARTS		(DISK_BYTES / PART)
#define OP_MAX		(4 * PART)

static bool disk_is(const struct fake_disk *d, u64 off, u32 len, u8 byte)
{
	return !memchr_inv(d->bytes + off, byte, len);
}

static u32 count_io(struct fake_disk *d)
{
	return disk_begin(d);
}

static u32 free_pmbs(const struct nhca_direct_pool *pool)
{
	return pool->num - pool->allocated;
}

/*
 * A whole block goes to the disk without a read, after nhca_store_placed() was called for its last
 * byte.
 */
static void block_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct nhca_arr *arr;

	memset(data, 7, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, PAGE_SIZE, data, 1024, false, true), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 0);
	arr = list_first_entry(&d->store.arrs, struct nhca_arr, by_store);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_COLLECTING);
	KUNIT_EXPECT_EQ(test, d->pool->pmbs[arr->pmb].owner, NHCA_PMB_ADAPTER);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, PAGE_SIZE + 1024, data, 3072, true, true), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_DRAINING);
	KUNIT_EXPECT_EQ(test, d->pool->pmbs[arr->pmb].owner, NHCA_PMB_DEVICE);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, DISK_BYTES, 0));
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, PAGE_SIZE, PAGE_SIZE, 7));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, PAGE_SIZE, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 2 * PAGE_SIZE, DISK_BYTES - 2 * PAGE_SIZE, 0));
	KUNIT_EXPECT_EQ(test, d->store.writes, 1);
	KUNIT_EXPECT_EQ(test, d->store.edges, 0);
	KUNIT_EXPECT_EQ(test, free_pmbs(d->pool), 16);
	disk_free(test, d);
}

/*
 * Whole units of direct I/O (DISK_ALIGN bytes) are also written without a read, and four adjacent
 * blocks need at most two requests.
 */
static void units_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);

	memset(data, 9, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, PAGE_SIZE - 1024, data, 2 * PAGE_SIZE + 1536,
					  true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, d->store.edges, 0);
	KUNIT_EXPECT_LE(test, d->store.writes, 2);
	KUNIT_EXPECT_TRUE(test, disk_is(d, PAGE_SIZE - 1024, 2 * PAGE_SIZE + 1536, 9));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, PAGE_SIZE - 1024, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 3 * PAGE_SIZE + 512, PAGE_SIZE, 0));
	disk_free(test, d);
}

/*
 * Two operations change parts of one unit. The second operation reads the block after the bytes of
 * the first operation were written, so no byte of either operation is lost.
 */
static void edges_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 data[200];

	memset(d->bytes, 1, PAGE_SIZE);
	memset(data, 2, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 100, data, 50, true, true), 0);
	memset(data, 3, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 1, 1, 200, data, 100, true, true), 0);
	KUNIT_EXPECT_EQ(test, d->store.ndirty, 2);
	/* the first operation reads and writes the block, then the second operation does */
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, PAGE_SIZE, 1));
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 100, 50, 2));
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	disk_end_all(d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 100, 1));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 100, 50, 2));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 150, 50, 1));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 200, 100, 3));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 300, PAGE_SIZE - 300, 1));
	KUNIT_EXPECT_EQ(test, d->store.edges, 2);
	KUNIT_EXPECT_EQ(test, d->store.ndirty, 0);
	disk_free(test, d);
}

/*
 * Bytes that were copied, but for which nhca_store_placed() was not called, never reach the disk.
 */
static void not_placed_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	memset(data, 5, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 1000, false, true), 0);
	memset(data, 6, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 1000, data, 1000, false, false), 0);
	/* the packet comes again, with the right bytes */
	memset(data, 8, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 1000, data, 500, true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 1000, 5));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 1000, 500, 8));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 1500, PAGE_SIZE - 1500, 0));
	disk_free(test, d);
}

/*
 * The incomplete block of an operation is not written if the operation is aborted, or if its owner
 * begins another operation instead of ending it.
 */
static void aborted_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u64 epoch;

	memset(data, 5, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 1000, false, true), 0);
	nhca_fault_abort(d->f[0]);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 1, 1, PAGE_SIZE, data, 1000, false, true), 0);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 1, 2, 2 * PAGE_SIZE, data, 100, true, true), 0);
	spin_lock_bh(&d->pool->lock);
	epoch = nhca_direct_pool_release(d->pool, 2);
	spin_unlock_bh(&d->pool->lock);
	KUNIT_EXPECT_NE(test, epoch, 0);
	disk_end_all(d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 2 * PAGE_SIZE, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 2 * PAGE_SIZE, 100, 5));
	KUNIT_EXPECT_EQ(test, d->store.splits, 0);
	disk_free(test, d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 2 * PAGE_SIZE, 0));
}

/*
 * Set the age of all COLLECTING blocks to @age jiffies. The age is the time since the last bytes
 * came. With an age far below 0 the blocks stay younger than NHCA_READY_AGE for as long as the test
 * takes. The caller holds the lock of the pool.
 */
static void age_blocks(struct fake_disk *d, long age)
{
	struct nhca_arr *arr;

	list_for_each_entry(arr, &d->pool->arrs_in[NHCA_ARR_COLLECTING], list)
		arr->stamp = jiffies - age;
}

/*
 * If other operations need blocks, a pool writes and releases an incomplete block to which no bytes
 * have come for NHCA_READY_AGE. The operation continues in another PMB.
 */
static void split_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	memset(data, 5, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 1000, false, true), 0);
	spin_lock_bh(&d->pool->lock);
	age_blocks(d, NHCA_READY_AGE - 1000 * HZ);
	nhca_direct_pool_release(d->pool, 1);
	spin_unlock_bh(&d->pool->lock);
	KUNIT_EXPECT_EQ(test, d->store.splits, 0);
	spin_lock_bh(&d->pool->lock);
	age_blocks(d, NHCA_READY_AGE);
	nhca_direct_pool_release(d->pool, 1);
	spin_unlock_bh(&d->pool->lock);
	KUNIT_EXPECT_EQ(test, d->store.splits, 1);
	memset(data, 6, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 1000, data, 1000, true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 1000, 5));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 1000, 1000, 6));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 2000, PAGE_SIZE - 2000, 0));
	disk_free(test, d);
}

/*
 * The packets of one operation take effect in a block in the order of their arrival, even if the
 * offset of a packet is lower than the offset of the packet before, or bytes are written again.
 */
static void arrival_order_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 data[100];

	memset(data, 1, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 1000, data, 100, false, true), 0);
	memset(data, 2, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 500, data, 100, false, true), 0);
	memset(data, 3, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 1050, data, 100, true, true), 0);
	disk_end_all(d);
	spin_lock_bh(&d->pool->lock);
	KUNIT_EXPECT_EQ(test, d->store.ndirty, 0);
	spin_unlock_bh(&d->pool->lock);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 1000, 50, 1));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 500, 100, 2));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 1050, 100, 3));
	disk_free(test, d);
}

/* SYNC: an operation ends only when all its blocks are on the disk. */
static void sync_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, true);
	u8 *data = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);

	memset(data, 5, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), 0);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 100, data, PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), -EAGAIN);
	/* the other owner has written nothing, so it need not wait */
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[1]), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 2);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_EQ(test, d->told[0], 0);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), 0);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 100, PAGE_SIZE, 5));

	/*
	 * an error of the disk fails the operation whose bytes are lost, and not the next operation
	 */
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 2, 0, data, PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, -ENOSPC));
	KUNIT_EXPECT_EQ(test, d->told[0], 2);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), -EIO);
	KUNIT_EXPECT_EQ(test, d->store.last_error, ENOSPC);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 3, 0, data, PAGE_SIZE, true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), 0);
	/* an owner that has canceled its wait is not resumed */
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 4, 0, data, PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, nhca_fault_sync(d->f[0]), -EAGAIN);
	nhca_fault_cancel(d->f[0]);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, d->told[0], 2);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(d->f[0]));
	disk_free(test, d);
}

/*
 * If a file system returns -EAGAIN for a request of several blocks, because it would wait, nhca
 * requests each block alone. After another -EAGAIN nhca allows the file system to wait.
 */
static void again_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct nhca_direct_io *io;

	memset(data, 4, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 2 * PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, -EAGAIN));
	KUNIT_EXPECT_EQ(test, count_io(d), 2);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, -EAGAIN));
	KUNIT_ASSERT_EQ(test, count_io(d), 2);
	io = list_last_entry(&d->begun, struct nhca_direct_io, list);
	KUNIT_EXPECT_TRUE(test, io->blocking);
	KUNIT_EXPECT_EQ(test, nhca_io_offset(io), 0);
	disk_end_all(d);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 2 * PAGE_SIZE, 4));
	KUNIT_EXPECT_EQ(test, d->store.writes, 2);
	KUNIT_EXPECT_EQ(test, d->store.errors + d->store.lost, 0);
	KUNIT_EXPECT_EQ(test, free_pmbs(d->pool), 16);
	disk_free(test, d);
}

/*
 * If a request of several blocks fails, each block is requested alone, so only the bad block is
 * lost.
 */
static void bad_block_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);

	memset(data, 5, 4 * PAGE_SIZE);
	d->bad = 2;
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 4 * PAGE_SIZE, true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, d->store.lost, 1);
	KUNIT_EXPECT_EQ(test, d->store.last_error, EIO);
	KUNIT_EXPECT_EQ(test, d->store.last_error_at, 2 * PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, disk_is(d, 0, 2 * PAGE_SIZE, 5));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 2 * PAGE_SIZE, PAGE_SIZE, 0));
	KUNIT_EXPECT_TRUE(test, disk_is(d, 3 * PAGE_SIZE, PAGE_SIZE, 5));
	KUNIT_EXPECT_EQ(test, free_pmbs(d->pool), 16);
	disk_free(test, d);
}

/* A read that begins after a write waits for the write, and returns the bytes of the write. */
static void read_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 data[100], got[100];

	memset(data, 5, sizeof(data));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 10, data, 100, true, true), 0);
	KUNIT_EXPECT_EQ(test, disk_read(d, 1, 1, 10, got, 100), -EAGAIN);
	/* only the read that the partial write needs has begun */
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_EQ(test, d->told[1], 0);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, d->told[1], 1);
	KUNIT_EXPECT_EQ(test, disk_read(d, 1, 1, 10, got, 100), 100);
	KUNIT_EXPECT_EQ(test, memcmp(got, data, 100), 0);
	disk_free(test, d);
}

/* When a region ends, its DIRTY blocks are written. Blocks of incomplete operations are not. */
static void stop_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u8 *bytes = d->bytes;

	memset(data, 5, PAGE_SIZE);
	d->quick = true;
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, 100, true, true), 0);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 2, 100, data, 100, true, true), 0);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 3, PAGE_SIZE, data, 100, false, true), 0);
	disk_free(test, d);
	KUNIT_EXPECT_FALSE(test, memchr_inv(bytes, 5, 200));
	KUNIT_EXPECT_FALSE(test, memchr_inv(bytes + 200, 0, 2 * PAGE_SIZE - 200));
}

/* A flush waits for bytes that were written before it, and not for later bytes. */
static void flush_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	memset(data, 5, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 1);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 2, true), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, nhca_fault_waiting(d->f[0]));
	KUNIT_EXPECT_EQ(test, disk_packet(d, 1, 1, PAGE_SIZE, data, PAGE_SIZE, true, true), 0);
	KUNIT_EXPECT_EQ(test, count_io(d), 2);
	KUNIT_EXPECT_EQ(test, d->fsyncs, 0);
	KUNIT_EXPECT_TRUE(test, disk_end(d, 0, 0));
	flush_work(&d->store.flush_work);
	disk_tell(d);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_EQ(test, d->fsyncs, 1);
	KUNIT_EXPECT_EQ(test, d->store.ndirty, 1);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 2, true), 0);

	/*
	 * two flushes: the first flush waits for the other block, the second flush for the first
	 * flush
	 */
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 3, false), -EAGAIN);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 1, 2, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	disk_end_all(d);
	flush_work(&d->store.flush_work);
	flush_work(&d->store.flush_work);
	disk_tell(d);
	KUNIT_EXPECT_EQ(test, d->told[0], 2);
	KUNIT_EXPECT_EQ(test, d->told[1], 1);
	/* a flush for GLOBAL visibility alone does not flush the cache of the disk */
	KUNIT_EXPECT_EQ(test, d->fsyncs, 2);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 3, false), 0);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 1, 2, true), 0);
	KUNIT_EXPECT_EQ(test, d->store.flushes, 3);
	KUNIT_EXPECT_EQ(test, nhca_store_sync(&d->store), 0);
	KUNIT_EXPECT_EQ(test, d->fsyncs, 3);
	disk_free(test, d);
}

/*
 * A flush fails if a block was lost since the last flush, or if the file cannot be made durable.
 * Later flushes succeed.
 */
static void flush_error_test(struct kunit *test)
{
	struct fake_disk *d = disk_make(test, 16, false);
	u8 *data = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	d->bad = 0;
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 1, 0, data, PAGE_SIZE, true, true), 0);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, d->store.lost, 1);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 2, false), -EAGAIN);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 2, false), -EIO);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 3, false), -EAGAIN);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 3, false), 0);
	d->fsync_err = -ENOSPC;
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 4, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 4, true), -EIO);
	KUNIT_EXPECT_EQ(test, nhca_store_sync(&d->store), -ENOSPC);
	d->fsync_err = 0;
	KUNIT_EXPECT_EQ(test, nhca_store_sync(&d->store), 0);
	/* the result of a canceled FLUSH does not complete the next FLUSH of the same responder */
	KUNIT_EXPECT_EQ(test, disk_packet(d, 0, 5, PAGE_SIZE, data, 100, true, true), 0);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 6, true), -EAGAIN);
	nhca_fault_cancel(d->f[0]);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 7, true), -EAGAIN);
	disk_end_all(d);
	flush_work(&d->store.flush_work);
	disk_tell(d);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 7, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, disk_flush(d, 0, 7, true), 0);
	disk_free(test, d);
}

static atomic_t kicked;

static void count_kick(struct work_struct *work)
{
	atomic_inc(&kicked);
}

/*
 * When a block was sent, or an I/O request has ended, regions that wait for room in the pool try
 * again. nhca_direct_more() lets at most NHCA_MORE_BATCH regions try, to bound the time with the
 * lock held. The work item of the pool lets all regions try.
 */
static void more_test(struct kunit *test)
{
	struct nhca_store *stores = kunit_kcalloc(test, WAITERS, sizeof(*stores), GFP_KERNEL);
	struct fake_disk *d = disk_make(test, 16, false);
	struct nhca_direct_pool *pool = d->pool;
	u32 i, n;

	KUNIT_ASSERT_NOT_NULL(test, stores);
	atomic_set(&kicked, 0);
	spin_lock_bh(&pool->lock);
	for (i = 0; i < WAITERS; i++) {
		stores[i].pool = pool;
		INIT_LIST_HEAD(&stores[i].list);
		INIT_WORK(&stores[i].work, count_kick);
		nhca_store_wait(&stores[i]);
		nhca_store_wait(&stores[i]);
	}
	/* pool->short_of is not set, so the call lets no region try */
	nhca_direct_more(pool);
	KUNIT_EXPECT_FALSE(test, list_empty(&stores[0].list));
	for (n = 0; n < WAITERS; n += NHCA_MORE_BATCH) {
		pool->short_of = true;
		nhca_direct_more(pool);
		for (i = 0; i < WAITERS; i++)
			KUNIT_EXPECT_EQ(test, list_empty(&stores[i].list), i < n + NHCA_MORE_BATCH);
	}
	KUNIT_EXPECT_FALSE(test, pool->short_of);
	spin_unlock_bh(&pool->lock);
	flush_workqueue(pool->wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&kicked), WAITERS);

	spin_lock_bh(&pool->lock);
	for (i = 0; i < WAITERS; i++)
		nhca_store_wait(&stores[i]);
	spin_unlock_bh(&pool->lock);
	mod_delayed_work(pool->wq, &pool->poll, 0);
	flush_delayed_work(&pool->poll);
	flush_workqueue(pool->wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&kicked), 2 * WAITERS);
	disk_free(test, d);
}

/* ---- random histories ---- */

/**
 * struct half - an operation in progress
 * @op:   number of the operation
 * @off:  offset of the operation's first byte on the disk
 * @len:  number of bytes of the operation
 * @done: number of bytes that are placed, or read
 * @from: offset of the first placed byte that is not DIRTY yet
 * @reads: the operation is a read
 * @ends: all bytes are placed, and the operation waits until they are on the disk
 * @data: bytes that the operation writes or has read
 */
struct half {
	u64 op;
	u64 off;
	u32 len;
	u32 done;
	u64 from;
	bool reads;
	bool ends;
	u8 *data;
};

/* Copy placed bytes up to @to to the model. They have become DIRTY, so they will be on the disk. */
static void half_install(struct half *h, u8 *model, u64 to)
{
	memcpy(model + h->from, h->data + (h->from - h->off), to - h->from);
	h->from = to;
}

static void half_begin(struct half *h, int who, struct rnd_state *rnd)
{
	/* each owner has every second part of the disk */
	u64 part = prandom_u32_state(rnd) % (PARTS / 2) * 2 + who;
	u32 skip = prandom_u32_state(rnd) % PART;

	h->op++;
	h->off = part * PART + skip;
	h->len = 1 + prandom_u32_state(rnd) % (PART - skip);
	h->done = 0;
	h->from = h->off;
	h->ends = false;
	h->reads = prandom_u32_state(rnd) % 4 == 0;
	if (!h->reads)
		prandom_bytes_state(rnd, h->data, h->len);
}

/* Execute the next packet of an operation. Return: true if the operation has ended. */
static bool half_step(struct kunit *test, struct fake_disk *d, struct half *h, int who, u8 *model,
		      struct rnd_state *rnd)
{
	u32 n = min_t(u32, h->len - h->done, 256 << prandom_u32_state(rnd) % 5);
	u64 at = h->off + h->done;
	bool last = n == h->len - h->done;
	int err;

	if (nhca_fault_waiting(d->f[who]))
		return false;
	if (h->ends) {
		err = nhca_fault_sync(d->f[who]);
		KUNIT_ASSERT_TRUE(test, err == 0 || err == -EAGAIN);
		return !err;
	}
	if (h->reads) {
		err = disk_read(d, who, h->op, at, h->data, n);
		KUNIT_ASSERT_TRUE(test, err == -EAGAIN || err > 0);
		if (err > 0) {
			KUNIT_ASSERT_EQ(test, memcmp(h->data, model + at, err), 0);
			h->done += err;
		}
		return h->done == h->len;
	}
	/* one of 16 packets is bad: it is copied, but its bytes are not placed */
	if (prandom_u32_state(rnd) % 16 == 0) {
		memset(h->data + h->len, 0xee, n);
		disk_packet(d, who, h->op, at, h->data + h->len, n, false, false);
		return false;
	}
	err = disk_packet(d, who, h->op, at, h->data + h->done, n, last, true);
	KUNIT_ASSERT_TRUE(test, err == 0 || err == -EAGAIN);
	if (err)
		return false;
	h->done += n;
	at += n;
	if (last)
		half_install(h, model, at);
	else if (round_down(at, PAGE_SIZE) > h->from)
		half_install(h, model, round_down(at, PAGE_SIZE));
	h->ends = last;
	return false;
}

static void history(struct kunit *test, bool sync, u32 seed)
{
	struct fake_disk *d = disk_make(test, 24, sync);
	u8 *model = kunit_kzalloc(test, DISK_BYTES, GFP_KERNEL);
	struct rnd_state rnd;
	struct half half[2] = {};
	u32 i, ops = 0;
	int who;

	KUNIT_ASSERT_NOT_NULL(test, model);
	prandom_seed_state(&rnd, seed);
	for (who = 0; who < 2; who++) {
		half[who].data = kunit_kzalloc(test, 2 * OP_MAX, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, half[who].data);
		half_begin(&half[who], who, &rnd);
	}
	for (i = 0; i < HISTORY_STEPS; i++) {
		who = prandom_u32_state(&rnd) % 2;
		if (half_step(test, d, &half[who], who, model, &rnd)) {
			ops++;
			half_begin(&half[who], who, &rnd);
		}
		if (prandom_u32_state(&rnd) % 2)
			disk_end(d, prandom_u32_state(&rnd) % 4, 0);
		/* cancel an operation at random: no byte of its incomplete block may be written */
		if (prandom_u32_state(&rnd) % 64 == 0 && !half[who].reads && !half[who].ends) {
			nhca_fault_cancel(d->f[who]);
			half_begin(&half[who], who, &rnd);
		}
	}
	disk_end_all(d);
	KUNIT_EXPECT_GT(test, ops, HISTORY_STEPS / 100);
	KUNIT_EXPECT_GT(test, d->store.edges, 0);
	KUNIT_EXPECT_EQ(test, d->store.errors, 0);
	KUNIT_EXPECT_LE(test, d->pool->most, 24);
	/*
	 * on a slow machine the pool may write incomplete blocks early (a split), and the model
	 * does not have their bytes
	 */
	if (!d->store.splits)
		KUNIT_EXPECT_EQ(test, memcmp(model, d->bytes, DISK_BYTES), 0);
	disk_free(test, d);
	if (!d->store.splits)
		KUNIT_EXPECT_EQ(test, memcmp(model, d->bytes, DISK_BYTES), 0);
}

static void history_test(struct kunit *test)
{
	history(test, false, 1);
	history(test, false, 2);
}

static void history_sync_test(struct kunit *test)
{
	history(test, true, 3);
	history(test, true, 4);
}

static struct kunit_case direct_write_cases[] = {
	KUNIT_CASE(block_test),
	KUNIT_CASE(units_test),
	KUNIT_CASE(edges_test),
	KUNIT_CASE(not_placed_test),
	KUNIT_CASE(aborted_test),
	KUNIT_CASE(split_test),
	KUNIT_CASE(arrival_order_test),
	KUNIT_CASE(sync_test),
	KUNIT_CASE(again_test),
	KUNIT_CASE(bad_block_test),
	KUNIT_CASE(read_test),
	KUNIT_CASE(stop_test),
	KUNIT_CASE(flush_test),
	KUNIT_CASE(flush_error_test),
	KUNIT_CASE(more_test),
	KUNIT_CASE(history_test),
	KUNIT_CASE(history_sync_test),
	{}
};

static struct kunit_suite direct_write_suite = {
	.name = "nhca_direct_write",
	.test_cases = direct_write_cases,
};

kunit_test_suite(direct_write_suite);
