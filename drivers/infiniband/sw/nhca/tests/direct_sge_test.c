// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: packets whose bytes go to several SGEs of one region of a file, or come from several SGEs.
 */
#include "fake_disk.h"
#include "regions.h"

#define SGE_IOVA	0x10000ULL
#define SGES		3
#define SGE_BLOCKS	16
#define PACKET_MAX	4096

/**
 * struct scatter - where the bytes of a message go
 * @num: number of SGEs
 * @at: offset of each SGE in the region
 * @len: length of each SGE
 * @sync: an operation ends only after its bytes are on the disk
 */
struct scatter {
	u32 num;
	u32 at[SGES];
	u32 len[SGES];
	bool sync;
};

static const struct scatter scatters[] = {
	/* adjacent, in one block */
	{ 2, { 0, 512 }, { 512, 512 } },
	{ 2, { 0, 512 }, { 512, 512 }, true },
	/*
	 * with gaps, in one block: at rising offsets, at falling offsets, and not aligned to 512
	 * bytes
	 */
	{ 2, { 0, 1024 }, { 512, 512 } },
	{ 2, { 1024, 0 }, { 512, 512 } },
	{ 3, { 100, 2000, 900 }, { 33, 500, 70 } },
	{ 3, { 100, 2000, 900 }, { 33, 500, 70 }, true },
	/* across a boundary of blocks, then in the first block, then in the second block */
	{ 3, { 4000, 100, 4200 }, { 200, 300, 100 } },
	/*
	 * SGEs of the same bytes, and SGEs that overlap: as in memory, the bytes of the later SGE
	 * remain
	 */
	{ 2, { 0, 0 }, { 512, 512 } },
	{ 2, { 0, 256 }, { 512, 512 } },
	{ 3, { 256, 0, 300 }, { 512, 512, 8 } },
};

/*
 * Replaces free() of the backing, because disk_free() frees the region itself, after the key was
 * destroyed.
 */
static void keep(struct nhca_backing *b)
{
}

/**
 * struct region - a region of a fake disk
 * @d:   disk of the region
 * @ops: functions of the region's backing, with keep() as free()
 * @mr:  memory region for the bytes of the disk
 */
struct region {
	struct fake_disk *d;
	struct nhca_backing_ops ops;
	struct ib_mr *mr;
};

static void region_make(struct kunit *test, struct region *r, u32 blocks, bool sync)
{
	struct fixture *f = test->priv;

	r->d = disk_make(test, blocks, sync);
	r->ops = nhca_store_ops;
	r->ops.free = keep;
	r->d->store.backing.ops = &r->ops;
	r->mr = nhca_mr_backed(f->dev, f->key_user.pd, &r->d->store.backing, DISK_BYTES, SGE_IOVA,
			       IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(r->mr));
}

/* Start an iterator at byte @skip of a message of @len bytes, as a responder or requester does. */
static void start(struct kunit *test, struct region *r, const struct nhca_sge *sge, u32 num,
		  u32 skip, u32 len, u64 op, struct nhca_iter *it)
{
	struct fixture *f = test->priv;

	nhca_iter_sges(it, &f->key_user, sge, num, skip, len - skip, IB_ACCESS_LOCAL_WRITE);
	nhca_iter_for(it, r->d->f[0], op);
}

/*
 * Execute the packet that has bytes @skip to @skip + @n - 1. Return: 0; -EAGAIN if the packet waits
 * for blocks; or another error of the iterator.
 */
static int execute(struct kunit *test, struct region *r, const struct nhca_sge *sge, u32 num,
		   const u8 *data, u32 skip, u32 n, u32 len, u64 op)
{
	struct nhca_iter it;
	int err;

	enter();
	start(test, r, sge, num, skip, len, op, &it);
	err = nhca_iter_write(&it, data + skip, n);
	if (!err) {
		start(test, r, sge, num, skip, len, op, &it);
		err = nhca_iter_placed(&it, n, skip + n == len);
	}
	if (err == -EAGAIN)
		err = nhca_iter_fault(&it, 0, r->d->f[0]);
	leave();
	return err;
}

/*
 * Scatter a message to the SGEs of @s in packets of @mtu bytes, and compare the disk with a copy in
 * memory. Each packet is executed twice at most: the first time it may have to wait for blocks, the
 * second time all its blocks are there.
 */
static void scatter(struct kunit *test, const struct scatter *s, u32 mtu)
{
	struct fixture *f = test->priv;
	u8 *model = kunit_kzalloc(test, DISK_BYTES, GFP_KERNEL);
	u8 *data = kunit_kzalloc(test, PACKET_MAX, GFP_KERNEL);
	struct nhca_sge sge[SGES];
	struct region r;
	u32 i, n, len = 0, skip;
	int err;

	KUNIT_ASSERT_TRUE(test, model && data);
	region_make(test, &r, SGE_BLOCKS, s->sync);
	for (i = 0; i < PACKET_MAX; i++)
		data[i] = i % 251 + 1;
	for (i = 0; i < s->num; i++) {
		sge[i] = (struct nhca_sge) {
			.addr = SGE_IOVA + s->at[i],
			.length = s->len[i],
			.lkey = r.mr->lkey,
		};
		memcpy(model + s->at[i], data + len, s->len[i]);
		len += s->len[i];
	}
	for (skip = 0; skip < len; skip += n) {
		n = min(mtu, len - skip);
		err = execute(test, &r, sge, s->num, data, skip, n, len, 1);
		if (err == -EAGAIN) {
			disk_end_all(r.d);
			err = execute(test, &r, sge, s->num, data, skip, n, len, 1);
		}
		KUNIT_EXPECT_EQ_MSG(test, err, 0, "list %td, MTU %u", s - scatters, mtu);
	}
	if (s->sync)
		KUNIT_EXPECT_EQ(test, nhca_fault_sync(r.d->f[0]), -EAGAIN);
	disk_end_all(r.d);
	if (s->sync)
		KUNIT_EXPECT_EQ(test, nhca_fault_sync(r.d->f[0]), 0);
	KUNIT_EXPECT_EQ(test, r.d->store.ndirty, 0);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(model, r.d->bytes, DISK_BYTES), 0, "list %td, MTU %u",
			    s - scatters, mtu);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, r.mr), 0);
	disk_free(test, r.d);
}

static void scatter_test(struct kunit *test)
{
	static const u32 mtus[] = { 256, 1024, PACKET_MAX };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(scatters); i++)
		for (k = 0; k < ARRAY_SIZE(mtus); k++)
			scatter(test, &scatters[i], mtus[k]);
}

/* Gather a packet. Return: as nhca_iter_read(), or -EAGAIN: the requester waits for the disk. */
static int gather(struct kunit *test, struct region *r, const struct nhca_sge *sge, u32 num,
		  u8 *data, u32 len, u64 op)
{
	struct fixture *f = test->priv;
	struct nhca_iter it;
	int err;

	enter();
	nhca_iter_sges(&it, &f->key_user, sge, num, 0, len, 0);
	nhca_iter_for(&it, r->d->f[0], op);
	err = nhca_iter_read(&it, data, len);
	if (err == -EAGAIN)
		err = nhca_iter_fault(&it, 0, r->d->f[0]);
	leave();
	return err;
}

/*
 * The smallest pool has enough blocks for a packet with the maximum number of SGEs, even if each
 * SGE needs bytes of two blocks.
 */
static void most_blocks_test(struct kunit *test)
{
	const u32 len = PACKET_MAX / NHCA_MAX_SGE;
	struct fixture *f = test->priv;
	u8 *model = kunit_kzalloc(test, PACKET_MAX, GFP_KERNEL);
	u8 *data = kunit_kzalloc(test, PACKET_MAX, GFP_KERNEL);
	struct nhca_sge sge[NHCA_MAX_SGE];
	struct region r;
	int err, i;
	u32 at;

	KUNIT_ASSERT_TRUE(test, model && data);
	static_assert(2 * NHCA_MAX_SGE * PAGE_SIZE <= DISK_BYTES);
	region_make(test, &r, NHCA_DIRECT_BLOCKS_MIN, false);
	for (i = 0; i < DISK_BYTES; i++)
		r.d->bytes[i] = i % 251;
	for (i = 0; i < NHCA_MAX_SGE; i++) {
		at = (2 * i + 1) * PAGE_SIZE - len / 2;
		memcpy(model + i * len, r.d->bytes + at, len);
		sge[i] = (struct nhca_sge) {
			.addr = SGE_IOVA + at, .length = len, .lkey = r.mr->lkey,
		};
	}
	err = -EAGAIN;
	for (i = 0; err == -EAGAIN && i < 4 * NHCA_DIRECT_BLOCKS_MIN; i++) {
		err = gather(test, &r, sge, NHCA_MAX_SGE, data, PACKET_MAX, 1);
		disk_end_all(r.d);
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_MEMEQ(test, data, model, PACKET_MAX);

	for (i = 0; i < PACKET_MAX; i++)
		data[i] = i % 241 + 1;
	err = -EAGAIN;
	for (i = 0; err == -EAGAIN && i < 4 * NHCA_DIRECT_BLOCKS_MIN; i++) {
		err = execute(test, &r, sge, NHCA_MAX_SGE, data, 0, PACKET_MAX, PACKET_MAX, 2);
		disk_end_all(r.d);
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	disk_end_all(r.d);
	for (i = 0; i < NHCA_MAX_SGE; i++)
		KUNIT_EXPECT_MEMEQ(test, r.d->bytes + sge[i].addr - SGE_IOVA, data + i * len, len);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, r.mr), 0);
	disk_free(test, r.d);
}

static struct kunit_case direct_sge_cases[] = {
	KUNIT_CASE(scatter_test),
	KUNIT_CASE(most_blocks_test),
	{}
};

static struct kunit_suite direct_sge_suite = {
	.name = "nhca_direct_sge",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = direct_sge_cases,
};

kunit_test_suite(direct_sge_suite);
