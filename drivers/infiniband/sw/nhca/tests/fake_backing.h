/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A backing (memory/backing.h) of one page. The test decides whether its bytes are present, missing
 * or unreadable.
 */
#ifndef NHCA_TEST_FAKE_BACKING_H
#define NHCA_TEST_FAKE_BACKING_H

#include <kunit/test.h>
#include <linux/mm.h>

#include "../memory/backing.h"
#include "../memory/mr.h"

/**
 * struct fake_backing - the backing
 * @b: the backing, as memory/ uses it
 * @page:  page with the bytes of the backing
 * @err:   result of seg() if the caller can wait and may access the bytes: 0, -EAGAIN or -EIO
 * @segs:  number of calls of seg()
 * @wants: number of calls of want()
 * @aheads: number of calls of ahead()
 * @ahead_len: bytes of the last call of ahead()
 * @frees: number of calls of free()
 * @waiter: requester or responder that waits because of want(), or NULL
 * @seg_op: operation of the last call of seg()
 * @op: operation of the last call of want() or placed()
 * @off: offset of the first byte in the last call of want()
 * @len: number of bytes in the last call of want()
 * @writes: the region may be written
 * @placed: bytes for which placed() was called
 * @ends: number of calls of placed() with the end of an operation or SGE
 */
struct fake_backing {
	struct nhca_backing b;
	struct page *page;
	int err;
	u32 segs;
	u32 wants;
	u32 aheads;
	u64 ahead_len;
	u32 frees;
	struct nhca_fault *waiter;
	u64 seg_op;
	u64 op;
	u64 off;
	u64 len;
	bool writes;
	u32 placed;
	u32 ends;
};

static inline struct fake_backing *to_fake(struct nhca_backing *b)
{
	return container_of(b, struct fake_backing, b);
}

static inline int fake_seg(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 max,
			   bool write, struct nhca_seg *seg)
{
	struct fake_backing *fake = to_fake(b);

	fake->segs++;
	fake->seg_op = op;
	if (!f)
		return -EAGAIN;
	if (write && !fake->writes)
		return -EACCES;
	if (fake->err)
		return fake->err;
	seg->addr = page_address(fake->page) + offset_in_page(off);
	seg->len = min_t(u64, max, PAGE_SIZE - offset_in_page(off));
	return 0;
}

static inline int fake_want(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len,
			    bool write)
{
	struct fake_backing *fake = to_fake(b);

	fake->wants++;
	fake->op = op;
	fake->off = off;
	fake->len = len;
	if (nhca_fault_begin(f))
		fake->waiter = f;
	return -EAGAIN;
}

static inline int fake_placed(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off,
			      u32 len, bool end)
{
	struct fake_backing *fake = to_fake(b);

	fake->op = op;
	fake->placed += len;
	fake->ends += end;
	return 0;
}

static inline void fake_ahead(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off,
			      u64 len)
{
	struct fake_backing *fake = to_fake(b);

	fake->aheads++;
	fake->ahead_len = len;
}

static inline void fake_free(struct nhca_backing *b)
{
	to_fake(b)->frees++;
}

static const struct nhca_backing_ops fake_backing_ops = {
	.seg = fake_seg,
	.want = fake_want,
	.placed = fake_placed,
	.ahead = fake_ahead,
	.free = fake_free,
};

static inline struct fake_backing *fake_make(struct kunit *test)
{
	struct fake_backing *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, fake->page);
	fake->b.ops = &fake_backing_ops;
	fake->err = -EAGAIN;
	return fake;
}

/* End the wait of the last want(). After that, seg() returns @err. */
static inline void fake_end(struct fake_backing *fake, int err)
{
	struct nhca_fault *f = fake->waiter;

	fake->err = err;
	fake->waiter = NULL;
	if (f)
		nhca_fault_end(f);
}

#endif /* NHCA_TEST_FAKE_BACKING_H */
