// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: regions of a file, with a disk whose I/O ends when the test says so: which blocks are read
 * and when, for which operation, and which bytes or errors a requester or responder gets.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/task.h>

#include "../direct/store.h"

#define DISK_IOS	64
#define DISK_BYTES	(512 * PAGE_SIZE + 512)

/**
 * struct disk - objects of each test, and the I/O of the disk
 * @pool:  a pool
 * @store: a region of a file with DISK_BYTES bytes
 * @f:     four owners of operations, each standing for a requester or responder
 * @told:  number of times that each owner was resumed after it had to wait
 * @lock:  protects @io and @n
 * @io:    I/O requests in progress, in the order of submission; NULL: the request has ended
 * @n:     number of elements of @io in use
 * @seed:  content of the disk: the byte at offset o is disk_byte(o, @seed)
 */
struct disk {
	struct nhca_direct_pool *pool;
	struct nhca_store *store;
	struct nhca_fault *f[4];
	u32 told[4];
	/* protects @io and @n */
	spinlock_t lock;
	struct nhca_direct_io *io[DISK_IOS];
	u32 n;
	u8 seed;
};

static struct disk *the_disk;

static u8 disk_byte(u64 off, u8 seed)
{
	return off * 7 + (off >> PAGE_SHIFT) * 31 + seed;
}

/* nhca_store.submit: record the I/O request, which disk_end() ends later. */
static void disk_submit(struct nhca_direct_io *io)
{
	struct disk *d = the_disk;

	spin_lock_bh(&d->lock);
	if (d->n < DISK_IOS)
		d->io[d->n++] = io;
	spin_unlock_bh(&d->lock);
}

static void resumed(void *arg)
{
	u32 *n = arg;

	++*n;
}

static void make_disk_of(struct kunit *test, u32 blocks, u32 ranges)
{
	struct disk *d = test->priv;
	int i;

	d->pool = nhca_direct_pool_create(NULL, NULL, blocks, ranges);
	KUNIT_ASSERT_FALSE(test, IS_ERR(d->pool));
	d->store = kzalloc(sizeof(*d->store), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d->store);
	nhca_direct_pool_get(d->pool);
	d->store->pool = d->pool;
	d->store->length = DISK_BYTES;
	d->store->submit = disk_submit;
	nhca_store_init(d->store);
	for (i = 0; i < ARRAY_SIZE(d->f); i++) {
		d->f[i] = nhca_fault_alloc(resumed, &d->told[i]);
		KUNIT_ASSERT_NOT_NULL(test, d->f[i]);
	}
}

static void make_disk(struct kunit *test, u32 blocks)
{
	make_disk_of(test, blocks, 0);
}

/* Wait until the region's work item and BH work have run. */
static void settle(struct disk *d)
{
	int i;

	for (i = 0; i < 3; i++) {
		flush_work(&d->store->work);
		nhca_bh_kill(&d->pool->complete_bh);
		local_bh_disable();
		nhca_direct_pool_complete(d->pool);
		local_bh_enable();
	}
}

/*
 * End I/O request @i. @ret: number of bytes that the disk has read; 1: all bytes; negative: an
 * error
 */
static void disk_end(struct disk *d, u32 i, ssize_t ret)
{
	struct nhca_direct_io *io = d->io[i];
	u64 off = io->arr[0]->key.index * PAGE_SIZE;
	u32 j, k;
	u8 *p;

	for (j = 0; j < io->n; j++) {
		p = page_address(io->bvec[j].bv_page);
		for (k = 0; k < io->bvec[j].bv_len; k++)
			p[k] = disk_byte(off + j * PAGE_SIZE + k, d->seed);
	}
	spin_lock_bh(&d->lock);
	d->io[i] = NULL;
	spin_unlock_bh(&d->lock);
	nhca_io_done(io, ret == 1 ? io->bytes : ret);
	settle(d);
}

static void disk_end_all(struct disk *d)
{
	u32 i, n;

	do {
		settle(d);
		n = 0;
		for (i = 0; i < d->n; i++)
			if (d->io[i]) {
				disk_end(d, i, 1);
				n++;
			}
		d->n = 0;
	} while (n);
}

/*
 * As operation @op of owner d->f[i], read @len bytes at @off, and compare them with disk_byte(...,
 * @seed). @ahead: number of bytes after these bytes that the operation needs later.
 * Return: 0; -EAGAIN: the owner has to wait for blocks; -EIO: the disk could not read them;
 * -EILSEQ: wrong bytes.
 */
static int fetch(struct disk *d, int i, u64 op, u64 off, u32 len, u64 ahead, u8 seed)
{
	struct nhca_backing *b = &d->store->backing;
	struct nhca_seg seg;
	int err = 0;
	u32 n;

	local_bh_disable();
	nhca_live_enter();
	while (len && !err) {
		err = nhca_store_seg(b, d->f[i], op, off, len, false, &seg);
		for (n = 0; !err && n < seg.len; n++)
			if (((u8 *)seg.addr)[n] != disk_byte(off + n, seed))
				err = -EILSEQ;
		if (err)
			break;
		off += seg.len;
		len -= seg.len;
	}
	if (err == -EAGAIN)
		err = nhca_store_want(b, d->f[i], op, off, len + ahead, false);
	nhca_live_exit();
	local_bh_enable();
	return err;
}

static int disk_init(struct kunit *test)
{
	struct disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	if (!d)
		return -ENOMEM;
	spin_lock_init(&d->lock);
	test->priv = d;
	the_disk = d;
	return 0;
}

static void disk_close(struct disk *d)
{
	if (!d->store)
		return;
	nhca_store_stop(d->store);
	nhca_direct_pool_put(d->pool);
	kfree(d->store);
	d->store = NULL;
}

static void disk_exit(struct kunit *test)
{
	struct disk *d = test->priv;
	int i;

	if (!d || !d->pool)
		return;
	if (d->store)
		disk_end_all(d);
	disk_close(d);
	KUNIT_EXPECT_EQ(test, d->pool->nfree_arrs, d->pool->ranges);
	for (i = 0; i < ARRAY_SIZE(d->f); i++)
		nhca_fault_free(d->f[i]);
	nhca_direct_pool_put(d->pool);
}

/*
 * The example of the direct RDMA reference (FIG. 19a; see the glossary): the region begins at
 * address 0x12345678, so address 0x12347700 is byte 0x88 of block 2.
 */
static void fig19a_test(struct kunit *test)
{
	struct disk *d = test->priv;
	const u64 off = 0x12347700 - 0x12345678;
	struct nhca_seg seg;

	make_disk(test, 16);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, off, 4, 0, 0), -EAGAIN);
	settle(d);
	KUNIT_ASSERT_EQ(test, d->n, 1);
	KUNIT_EXPECT_EQ(test, d->io[0]->n, 1);
	KUNIT_EXPECT_EQ(test, d->io[0]->arr[0]->key.index, 2);
	disk_end(d, 0, 1);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	local_bh_disable();
	nhca_live_enter();
	KUNIT_EXPECT_EQ(test, nhca_store_seg(&d->store->backing, d->f[0], 1, off, 4, false, &seg),
			0);
	KUNIT_EXPECT_EQ(test, offset_in_page(seg.addr), 0x88);
	KUNIT_EXPECT_EQ(test, seg.len, 4);
	nhca_live_exit();
	local_bh_enable();
}

/*
 * The I/O requests for a long operation read 4, 8, 16, ... blocks. The operation can send blocks
 * that were read while the disk reads later blocks.
 */
static void run_test(struct kunit *test)
{
	static const u32 ios[] = { 4, 8, 16, 32, 64 };
	struct disk *d = test->priv;
	u32 i;

	make_disk(test, 256);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 1024, DISK_BYTES - 1024, 0), -EAGAIN);
	settle(d);
	KUNIT_ASSERT_GE(test, d->n, ARRAY_SIZE(ios));
	for (i = 0; i < ARRAY_SIZE(ios); i++)
		KUNIT_EXPECT_EQ(test, d->io[i]->n, ios[i]);
	/* an operation reads at most half of the pool's 256 blocks in advance */
	KUNIT_EXPECT_LE(test, d->pool->allocated, 128);
	/* the first I/O request has ended, so its 4 blocks can be sent */
	disk_end(d, 0, 1);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 4 * PAGE_SIZE, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 4 * PAGE_SIZE, 1, DISK_BYTES - 4 * PAGE_SIZE - 1, 0),
			-EAGAIN);
	disk_end(d, 1, 1);
	KUNIT_EXPECT_EQ(test, d->told[0], 2);
}

/* An operation reads the whole region through a pool of 16 blocks, and gets the right bytes. */
static void stream_test(struct kunit *test)
{
	struct disk *d = test->priv;
	u64 off = 0;
	u32 n, tries = 0;
	int err;

	make_disk(test, 16);
	while (off < DISK_BYTES && tries < 10000) {
		n = min_t(u64, 3000, DISK_BYTES - off);
		err = fetch(d, 0, 1, off, n, DISK_BYTES - off - n, 0);
		if (!err) {
			off += n;
			continue;
		}
		KUNIT_ASSERT_EQ(test, err, -EAGAIN);
		tries++;
		disk_end_all(d);
	}
	KUNIT_EXPECT_EQ(test, off, DISK_BYTES);
	KUNIT_EXPECT_LE(test, d->pool->most, 16);
	KUNIT_EXPECT_EQ(test, d->store->read_bytes, DISK_BYTES);
	KUNIT_EXPECT_EQ(test, d->store->refills, 0);
}

/* Blocks are no cache: an operation gets no byte that the disk read before the operation began. */
static void fresh_test(struct kunit *test)
{
	struct disk *d = test->priv;

	make_disk(test, 16);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EAGAIN);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), 0);
	/* another process writes to the file */
	d->seed = 99;
	/*
	 * the same operation may get the old bytes, but another operation and another owner may not
	 */
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, 0, 100, 0, 99), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 99), -EAGAIN);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, 0, 100, 0, 99), 0);
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 99), 0);
}

/*
 * An error of the disk fails only the operation that needs the block. If the file has become
 * shorter, the operation gets an error for the bytes that the file has lost.
 */
static void error_test(struct kunit *test)
{
	struct disk *d = test->priv;

	make_disk(test, 16);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EAGAIN);
	settle(d);
	disk_end(d, 0, -ENODATA);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EIO);
	/*
	 * the second try gets the error again, because an engine first tries a packet in a batch
	 * and then alone
	 */
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EIO);
	KUNIT_EXPECT_EQ(test, d->store->errors, 1);
	KUNIT_EXPECT_EQ(test, d->store->last_error, ENODATA);
	KUNIT_EXPECT_EQ(test, d->pool->nqueued, 0);

	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, 0, 100, 2 * PAGE_SIZE, 0), -EAGAIN);
	settle(d);
	disk_end(d, 1, PAGE_SIZE + 512);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, 0, PAGE_SIZE + 512, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, PAGE_SIZE + 512, 1, 0, 0), -EIO);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 2, 2 * PAGE_SIZE, 1, 0, 0), -EIO);
	KUNIT_EXPECT_EQ(test, d->store->last_error, EIO);
	KUNIT_EXPECT_EQ(test, d->store->last_error_at, PAGE_SIZE + 512);
}

/* A page is used for no other block while a packet refers to the page. */
static void page_in_use_test(struct kunit *test)
{
	struct disk *d = test->priv;
	struct page *lent[16];
	u32 i, n = 0, j;

	make_disk(test, 16);
	for (i = 0; i < 16; i++) {
		KUNIT_EXPECT_EQ(test, fetch(d, 0, i + 1, i * PAGE_SIZE, PAGE_SIZE, 0, 0), -EAGAIN);
		settle(d);
		KUNIT_ASSERT_EQ(test, d->n, 1);
		/* the disk does not write to a page to which a packet refers */
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_PTR_NE(test, d->io[0]->bvec[0].bv_page, lent[j]);
		lent[n++] = d->io[0]->bvec[0].bv_page;
		disk_end_all(d);
		KUNIT_EXPECT_EQ(test, fetch(d, 0, i + 1, i * PAGE_SIZE, PAGE_SIZE, 0, 0), 0);
		get_page(lent[n - 1]);
	}
	/*
	 * packets refer to all 16 pages, so the next operation waits until a packet releases a page
	 */
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 0), -EAGAIN);
	settle(d);
	KUNIT_EXPECT_EQ(test, d->n, 0);
	put_page(lent[3]);
	for (i = 0; i < 1000 && !READ_ONCE(d->n); i++)
		usleep_range(1000, 2000);
	KUNIT_ASSERT_EQ(test, d->n, 1);
	KUNIT_EXPECT_PTR_EQ(test, d->io[0]->bvec[0].bv_page, lent[3]);
	disk_end_all(d);
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 0), 0);
	for (i = 0; i < 16; i++)
		if (i != 3)
			put_page(lent[i]);
}

/*
 * The blocks of operations whose peers do not fetch the data are released when another operation
 * needs blocks.
 */
static void starve_test(struct kunit *test)
{
	struct disk *d = test->priv;
	u32 i;

	make_disk(test, 16);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, fetch(d, i, 1, 0, 100, 8 * PAGE_SIZE, 0), -EAGAIN);
		disk_end_all(d);
	}
	/*
	 * the three operations have used none of their blocks, yet the next operation gets blocks
	 */
	KUNIT_EXPECT_EQ(test, fetch(d, 3, 1, 0, 100, 8 * PAGE_SIZE, 0), -EAGAIN);
	for (i = 0; i < 2000 && !d->told[3]; i++) {
		usleep_range(1000, 2000);
		disk_end_all(d);
	}
	KUNIT_EXPECT_EQ(test, fetch(d, 3, 1, 0, 100, 8 * PAGE_SIZE, 0), 0);
	KUNIT_EXPECT_GT(test, d->store->refills, 0);
	KUNIT_EXPECT_LE(test, d->pool->most, 16);
}

/* The disk reads for all READs that wait for their responses, not only for the first READ. */
static void ahead_test(struct kunit *test)
{
	struct disk *d = test->priv;
	u32 i;

	make_disk(test, 64);
	local_bh_disable();
	nhca_live_enter();
	for (i = 0; i < 8; i++)
		nhca_store_ahead(&d->store->backing, d->f[0], 10 + i, i * 3 * PAGE_SIZE, 4096);
	nhca_live_exit();
	local_bh_enable();
	settle(d);
	KUNIT_EXPECT_EQ(test, d->n, 8);
	disk_end_all(d);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, fetch(d, 0, 10 + i, i * 3 * PAGE_SIZE, 4096, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, d->told[0], 0);
}

static int stop_thread(void *arg)
{
	disk_close(arg);
	return 0;
}

/*
 * The end of a region waits for the region's I/O, resumes the owners that wait, and frees all
 * blocks.
 */
static void stop_test(struct kunit *test)
{
	struct disk *d = test->priv;
	struct nhca_direct_io *io;
	struct task_struct *t;

	make_disk(test, 16);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EAGAIN);
	settle(d);
	KUNIT_ASSERT_EQ(test, d->n, 1);
	io = d->io[0];
	t = kthread_create(stop_thread, d, "nhca_stop");
	KUNIT_ASSERT_FALSE(test, IS_ERR(t));
	get_task_struct(t);
	wake_up_process(t);
	msleep(20);
	KUNIT_EXPECT_NOT_NULL(test, d->store);
	nhca_io_done(io, io->bytes);
	kthread_stop(t);
	put_task_struct(t);
	KUNIT_EXPECT_NULL(test, d->store);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(d->f[0]));
	KUNIT_EXPECT_EQ(test, d->pool->nfree_arrs, d->pool->ranges);
	KUNIT_EXPECT_FALSE(test, nhca_direct_pool_used(d->pool));
}

/* ---- owners that are destroyed, fast disks, and long operations ---- */

/* As fetch(), for any owner @f. */
static int fetch_by(struct disk *d, struct nhca_fault *f, u64 op, u64 off, u32 len, u64 ahead)
{
	struct nhca_fault *old = d->f[0];
	int err;

	d->f[0] = f;
	err = fetch(d, 0, op, off, len, ahead, d->seed);
	d->f[0] = old;
	return err;
}

#define OWNERS	64
#define DEAD	300

struct crowd {
	struct nhca_fault *f[OWNERS];
	struct nhca_fault *dead[DEAD];
	u32 told[OWNERS];
	u32 dead_told[DEAD];
};

/*
 * Owners wait in a queue for an ARR. An ARR that becomes free wakes only the first owner. If this
 * owner was destroyed, the ARR wakes the next owner, so that no owner waits forever.
 */
static void arr_queue_test(struct kunit *test)
{
	struct crowd *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct disk *d = test->priv;
	bool sent[OWNERS] = {};
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, c);
	make_disk(test, 16);
	KUNIT_ASSERT_EQ(test, d->pool->ranges, OWNERS);
	for (i = 0; i < OWNERS; i++) {
		c->f[i] = nhca_fault_alloc(resumed, &c->told[i]);
		KUNIT_EXPECT_EQ(test, fetch_by(d, c->f[i], 1, i * PAGE_SIZE, 100, 0), -EAGAIN);
	}
	for (i = 0; i < DEAD; i++) {
		c->dead[i] = nhca_fault_alloc(resumed, &c->dead_told[i]);
		KUNIT_EXPECT_EQ(test, fetch_by(d, c->dead[i], 1, i * PAGE_SIZE, 100, 0), -EAGAIN);
	}
	/* the last owner in the queue remains, and the owners before it are destroyed */
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 0), -EAGAIN);
	for (i = 0; i < DEAD; i++)
		nhca_fault_free(c->dead[i]);
	/* the first 64 operations end, so that their ARRs and PMBs become free */
	for (j = 0; j < 200; j++) {
		disk_end_all(d);
		for (i = 0; i < OWNERS; i++)
			if (c->told[i] && !sent[i])
				sent[i] = !fetch_by(d, c->f[i], 1, i * PAGE_SIZE, 100, 0);
		usleep_range(1000, 2000);
	}
	for (i = 0; i < OWNERS; i++)
		KUNIT_EXPECT_TRUE_MSG(test, sent[i], "owner %u", i);
	KUNIT_EXPECT_EQ(test, d->told[1], 1);
	for (i = 0; i < OWNERS; i++)
		nhca_fault_free(c->f[i]);
}

/*
 * Requesters that were destroyed have left blocks that they never used. A requester that waits gets
 * these blocks. This holds even if the pool has only as many ARRs as PMBs: then these blocks occupy
 * all ARRs.
 */
static void dead_blocks_test(struct kunit *test)
{
	struct crowd *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct disk *d = test->priv;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	make_disk_of(test, 16, 16);
	for (i = 0; i < 16; i++) {
		c->f[i] = nhca_fault_alloc(resumed, &c->told[i]);
		KUNIT_EXPECT_EQ(test, fetch_by(d, c->f[i], 1, i * PAGE_SIZE, 100, 0), -EAGAIN);
	}
	disk_end_all(d);
	for (i = 0; i < 16; i++)
		nhca_fault_free(c->f[i]);
	KUNIT_EXPECT_EQ(test, fetch(d, 1, 1, 0, 100, 0, 0), -EAGAIN);
	for (i = 0; i < 1000 && !d->told[1]; i++) {
		usleep_range(1000, 2000);
		disk_end_all(d);
	}
	KUNIT_EXPECT_EQ(test, d->told[1], 1);
}

/*
 * The pool releases the unused blocks of some operations although a peer uses the blocks of 256
 * other operations again and again, as with repeated first packets.
 */
static void release_scan_test(struct kunit *test)
{
	struct disk *d = test->priv;
	u32 i, j;

	make_disk(test, 320);
	for (i = 0; i < 256; i++) {
		KUNIT_EXPECT_EQ(test, fetch(d, 0, i + 1, i * PAGE_SIZE, 100, 100, 0), -EAGAIN);
		disk_end_all(d);
	}
	/* 64 blocks that no operation will use, so that all 320 blocks are allocated */
	for (i = 0; i < 64; i++) {
		KUNIT_EXPECT_EQ(test, fetch(d, 1, i + 1, i * PAGE_SIZE, 100, 0, 0), -EAGAIN);
		disk_end_all(d);
	}
	KUNIT_EXPECT_EQ(test, d->pool->allocated, 320);
	KUNIT_EXPECT_EQ(test, fetch(d, 2, 1, 0, 100, 0, 0), -EAGAIN);
	for (j = 0; j < 100 && !d->told[2]; j++) {
		for (i = 0; i < 256; i++)
			fetch(d, 0, i + 1, i * PAGE_SIZE, 100, 100, 0);
		usleep_range(3000, 4000);
		disk_end_all(d);
	}
	KUNIT_EXPECT_EQ(test, d->told[2], 1);
}

/* quick_submit() has found its I/O request in the list of free requests */
static bool reused;

/*
 * nhca_store.submit of a fast disk: the I/O request ends before the function returns. After that,
 * the file system still uses the kiocb, to update the atime.
 */
static void quick_submit(struct nhca_direct_io *io)
{
	struct nhca_direct_pool *pool = io->store->pool;
	struct nhca_direct_io *free;

	io->iocb.ki_filp = (void *)io;
	nhca_io_done(io, io->bytes);
	local_bh_disable();
	nhca_direct_pool_complete(pool);
	spin_lock(&pool->lock);
	list_for_each_entry(free, &pool->free_ios, list)
		if (free == io)
			reused = true;
	spin_unlock(&pool->lock);
	local_bh_enable();
	/* at this point ext4_dio_read_iter() calls file_accessed(iocb->ki_filp) */
}

/*
 * One call of nhca_store_want() queues a limited number of blocks, here at most 1024, because it
 * runs in a live section and holds the pool's lock.
 */
static void depth_test(struct kunit *test)
{
	struct disk *d = test->priv;

	make_disk(test, 16384);
	nhca_store_stop(d->store);
	d->store->length = 1ULL << 40;
	d->store->depth = U32_MAX;
	d->store->dying = false;
	d->store->submit = quick_submit;
	nhca_store_init(d->store);
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 1024, 1U << 31, 0), -EAGAIN);
	KUNIT_EXPECT_LE(test, d->pool->nqueued + d->pool->allocated, 1024);
	settle(d);
	disk_end_all(d);
	disk_close(d);
}

/* The kiocb of an I/O request is not used for another I/O request until submit() has returned. */
static void iocb_reuse_test(struct kunit *test)
{
	struct disk *d = test->priv;

	make_disk(test, 16);
	d->store->submit = quick_submit;
	reused = false;
	KUNIT_EXPECT_EQ(test, fetch(d, 0, 1, 0, 100, 0, 0), -EAGAIN);
	settle(d);
	KUNIT_EXPECT_EQ(test, d->told[0], 1);
	KUNIT_EXPECT_FALSE(test, reused);
}

static struct kunit_case store_cases[] = {
	KUNIT_CASE(arr_queue_test),
	KUNIT_CASE(release_scan_test),
	KUNIT_CASE(depth_test),
	KUNIT_CASE(iocb_reuse_test),
	KUNIT_CASE(fig19a_test),
	KUNIT_CASE(run_test),
	KUNIT_CASE(stream_test),
	KUNIT_CASE(fresh_test),
	KUNIT_CASE(error_test),
	KUNIT_CASE(page_in_use_test),
	KUNIT_CASE(starve_test),
	KUNIT_CASE(ahead_test),
	KUNIT_CASE(stop_test),
	KUNIT_CASE(dead_blocks_test),
	{}
};

static struct kunit_suite store_suite = {
	.name = "nhca_store",
	.init = disk_init,
	.exit = disk_exit,
	.test_cases = store_cases,
};

kunit_test_suite(store_suite);
