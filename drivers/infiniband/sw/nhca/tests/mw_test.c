// SPDX-License-Identifier: GPL-2.0
/* KUnit: binding memory windows: which binds are allowed, and what the bound key grants. */
#include "mw_fixture.h"

/* A window grants exactly the remote rights of its bind, although its region has none of them. */
static void rights_test(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC,
	};
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	int t, set, i, access;
	struct nhca_mw *mw;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (set = 0; set < 8; set++) {
			access = 0;
			for (i = 0; i < 3; i++)
				access |= set & BIT(i) ? rights[i] : 0;
			mw = window(test, types[t]);
			KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA, 64, access), 0);
			for (i = 0; i < 3; i++)
				KUNIT_EXPECT_EQ(test, opens(&f->qp, mw->mkey.key, IOVA, 1,
							    rights[i]), !!(set & BIT(i)));
			/* a window's key is not valid as an L_Key */
			KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 1, 0));
			KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 1,
						       IB_ACCESS_LOCAL_WRITE));
			window_free(f, mw);
		}
	}
	/* a bind may name local write, but the window does not grant this right */
	mw = window(test, NHCA_MKEY_MW2B);
	KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA, 64, IB_ACCESS_LOCAL_WRITE), 0);
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 1, IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 1, IB_ACCESS_REMOTE_WRITE));
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, mr->ibmr.rkey, IOVA, 1, IB_ACCESS_REMOTE_READ));
}

/*
 * A window gives access to exactly the range of its bind. The key that the window had before gives
 * no access.
 */
static void range_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	const u64 at = IOVA + 100, len = PAGE_SIZE + 7;
	struct nhca_mw *mw;
	u32 before;
	u64 off;
	int t;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		mw = window(test, types[t]);
		before = mw->ibmw.rkey;
		KUNIT_EXPECT_EQ(test, bind(f, mw, mr, at, len, REMOTE), 0);
		KUNIT_EXPECT_EQ(test, mw->ibmw.rkey, mw->mkey.key);
		KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), t + 1);
		KUNIT_EXPECT_PTR_EQ(test, reach(&f->qp, mw->mkey.key, at, len, REMOTE, &off), mr);
		KUNIT_EXPECT_EQ(test, off, 100);
		KUNIT_EXPECT_PTR_EQ(test, reach(&f->qp, mw->mkey.key, at + len - 1, 1, REMOTE,
						&off), mr);
		KUNIT_EXPECT_EQ(test, off, 100 + len - 1);
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, at - 1, 1, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, at - 1, len, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, at, len + 1, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, at + len, 1, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, at + 1, U32_MAX, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, U64_MAX, 2, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, before, at, 1, REMOTE));
	}
	/* binds of the whole region, and of its last byte */
	mw = window(test, NHCA_MKEY_MW1);
	KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA, LENGTH, REMOTE), 0);
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, mw->mkey.key, IOVA, LENGTH, REMOTE));
	KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA + LENGTH - 1, 1, REMOTE), 0);
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, mw->mkey.key, IOVA + LENGTH - 1, 1, REMOTE));
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 1, REMOTE));
}

/* Addresses of a zero-based window begin at 0. */
static void zero_based_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	struct nhca_mw *mw;
	u64 off;
	int t;

	for (t = 1; t < ARRAY_SIZE(types); t++) {
		mw = window(test, types[t]);
		KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA + 100, 64, REMOTE | IB_ZERO_BASED), 0);
		KUNIT_EXPECT_PTR_EQ(test, reach(&f->qp, mw->mkey.key, 0, 64, REMOTE, &off), mr);
		KUNIT_EXPECT_EQ(test, off, 100);
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, 0, 65, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, 64, 1, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, U64_MAX, 1, REMOTE));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA + 100, 1, REMOTE));
	}
}

/*
 * Any QP of the protection domain can use a type 1 window. Only a QP with the number of the QP that
 * bound a type 2 window can use this window. For type 2B this QP must also be in the protection
 * domain of the window.
 */
static void key_user_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	const struct {
		struct nhca_key_user *key_user;
		bool may[3];
	} cases[] = {
		{ &f->qp, { true, true, true } },
		{ &f->sibling, { true, false, false } },
		{ &f->stranger, { false, false, false } },
		/* type 2A does not compare the domain, because QP numbers are unique on a host */
		{ &f->twin, { false, true, false } },
	};
	struct nhca_mw *mw;
	int t, i;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		mw = window(test, types[t]);
		KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA, 64, REMOTE), 0);
		for (i = 0; i < ARRAY_SIZE(cases); i++)
			KUNIT_EXPECT_EQ_MSG(test, opens(cases[i].key_user, mw->mkey.key, IOVA, 64,
							REMOTE), cases[i].may[t],
					    "type %d, key user %d", t, i);
	}
	/* any QP of the domain may bind a type 1 window again */
	mw = f->mws[0];
	{
		struct nhca_send_wqe wqe = bind_wqe(mw, mr, IOVA + 64, 64, REMOTE);

		KUNIT_EXPECT_EQ(test, bind_as(&f->sibling, &wqe), 0);
		KUNIT_EXPECT_TRUE(test, opens(&f->qp, mw->mkey.key, IOVA + 64, 64, REMOTE));
	}
}

/**
 * struct wrong - a bind that is wrong in one way
 * @what:  description
 * @make:  makes a right work request wrong
 * @err:   the expected error
 * @types: window types for which the bind is wrong: bits by index in types[]
 */
struct wrong {
	const char *what;
	void (*make)(struct fixture *f, struct nhca_send_wqe *wqe);
	int err;
	u8 types;
};

#define ALL_TYPES	7
#define TYPE_1		1
#define TYPES_2		6

/*
 * regions by index in mrs[]: 0: valid; 1: in another domain; 2: no bind right; 3: no local write;
 * 4: zero-based; 5: closed
 */
#define WRITE_RIGHT	IB_ACCESS_REMOTE_WRITE
#define ATOMIC_RIGHT	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define WRONG(name, ...) \
	static void name(struct fixture *f, struct nhca_send_wqe *wqe) { __VA_ARGS__; }

WRONG(no_window, wqe->mw.mw_rkey ^= 0x10000000)
WRONG(no_key_at_all, wqe->mw.mw_rkey = 0)
WRONG(stale_key, wqe->mw.mw_rkey ^= 0x80)
WRONG(region_as_window, wqe->mw.mw_rkey = wqe->mw.mr_lkey; wqe->mw.new_rkey = wqe->mw.mr_lkey ^ 1)
WRONG(window_as_region, wqe->mw.mr_lkey = f->mws[0]->mkey.key)
WRONG(itself_as_region, wqe->mw.mr_lkey = wqe->mw.mw_rkey)
WRONG(same_key, wqe->mw.new_rkey = wqe->mw.mw_rkey)
WRONG(no_region, wqe->mw.mr_lkey = 0)
WRONG(stale_lkey, wqe->mw.mr_lkey ^= 1)
WRONG(foreign_region, wqe->mw.mr_lkey = f->mrs[1]->ibmr.lkey)
WRONG(no_bind_right, wqe->mw.mr_lkey = f->mrs[2]->ibmr.lkey)
WRONG(no_local_write, wqe->mw.mr_lkey = f->mrs[3]->ibmr.lkey; wqe->mw.access = WRITE_RIGHT)
WRONG(no_local_atomic, wqe->mw.mr_lkey = f->mrs[3]->ibmr.lkey; wqe->mw.access = ATOMIC_RIGHT)
WRONG(zero_based_region, wqe->mw.mr_lkey = f->mrs[4]->ibmr.lkey; wqe->mw.addr = 0)
WRONG(closed_region, wqe->mw.mr_lkey = f->mrs[5]->ibmr.lkey)
WRONG(before_begin, wqe->mw.addr = IOVA - 1)
WRONG(behind_end, wqe->mw.addr = IOVA + LENGTH)
WRONG(over_end, wqe->mw.addr = IOVA + 1; wqe->mw.length = LENGTH)
WRONG(longer, wqe->mw.addr = IOVA; wqe->mw.length = LENGTH + 1)
WRONG(wraps, wqe->mw.addr = IOVA + 1; wqe->mw.length = U64_MAX - IOVA)
WRONG(wraps_to_itself, wqe->mw.addr = IOVA + 1; wqe->mw.length = U64_MAX)
WRONG(last_byte, wqe->mw.addr = U64_MAX; wqe->mw.length = 1)
WRONG(zero_based, wqe->mw.access |= IB_ZERO_BASED)
WRONG(zero_based_over, wqe->mw.access |= IB_ZERO_BASED; wqe->mw.length = LENGTH + 1)
WRONG(zero_based_from, wqe->mw.access |= IB_ZERO_BASED; wqe->mw.addr = 0)
WRONG(empty, wqe->mw.length = 0)

static const struct wrong wrongs[] = {
	{ "no such window", no_window, -EINVAL, ALL_TYPES },
	{ "key 0", no_key_at_all, -EINVAL, ALL_TYPES },
	{ "a former key of the window", stale_key, -EINVAL, TYPE_1 },
	{ "a region as window", region_as_window, -EINVAL, ALL_TYPES },
	{ "a window as region", window_as_region, -EINVAL, ALL_TYPES },
	{ "the window itself as region", itself_as_region, -EINVAL, ALL_TYPES },
	{ "the present key as new key", same_key, -EINVAL, TYPE_1 },
	{ "no region", no_region, -EINVAL, ALL_TYPES },
	{ "another variant of the L_Key", stale_lkey, -EINVAL, ALL_TYPES },
	{ "a region of another domain", foreign_region, -EACCES, ALL_TYPES },
	{ "a region without the bind right", no_bind_right, -EACCES, ALL_TYPES },
	{ "write without local write", no_local_write, -EACCES, ALL_TYPES },
	{ "atomics without local write", no_local_atomic, -EACCES, ALL_TYPES },
	{ "a zero-based region", zero_based_region, -EACCES, ALL_TYPES },
	{ "a closed region", closed_region, -EINVAL, ALL_TYPES },
	{ "begins before the region", before_begin, -EACCES, ALL_TYPES },
	{ "begins after the region", behind_end, -EACCES, ALL_TYPES },
	{ "ends after the region", over_end, -EACCES, ALL_TYPES },
	{ "longer than the region", longer, -EACCES, ALL_TYPES },
	{ "wraps", wraps, -EACCES, ALL_TYPES },
	{ "wraps to the byte before its begin", wraps_to_itself, -EACCES, ALL_TYPES },
	{ "the last byte of the address space", last_byte, -EACCES, ALL_TYPES },
	{ "zero-based", zero_based, -EINVAL, TYPE_1 },
	{ "zero-based, longer than the region", zero_based_over, -EACCES, TYPES_2 },
	{ "zero-based, from outside the region", zero_based_from, -EACCES, TYPES_2 },
	{ "no bytes", empty, -EINVAL, TYPES_2 },
};

static void wrong_regions(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *closed;

	region(test, f->pd, BINDABLE);
	region(test, f->other_pd, BINDABLE);
	region(test, f->pd, IB_ACCESS_LOCAL_WRITE | REMOTE);
	region(test, f->pd, IB_ACCESS_MW_BIND | REMOTE);
	region(test, f->pd, BINDABLE | IB_ZERO_BASED);
	closed = fast_region(test, f->pd, BINDABLE);
	KUNIT_ASSERT_EQ(test, local_inv(&f->qp, closed->mkey.key, false), 0);
}

/*
 * Expect that @wqe fails with @err and changes nothing.
 * @open: the window is bound and stays bound
 */
static void expect_refused(struct kunit *test, int t, bool open, const char *what,
			   struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe,
			   int err)
{
	struct fixture *f = test->priv;
	struct nhca_mw *mw = f->mws[0];
	u32 key = mw->mkey.key;
	int i;

	KUNIT_EXPECT_EQ_MSG(test, bind_as(key_user, wqe), err, "type %d: %s", t, what);
	KUNIT_EXPECT_EQ_MSG(test, mw->mkey.key, key, "type %d: %s", t, what);
	KUNIT_EXPECT_EQ_MSG(test, opens(&f->qp, key, IOVA + 8, 32, REMOTE), open,
			    "type %d: %s", t, what);
	if (wqe->mw.new_rkey != key)
		KUNIT_EXPECT_FALSE_MSG(test, opens(&f->qp, wqe->mw.new_rkey, wqe->mw.addr, 1,
						   IB_ACCESS_REMOTE_READ),
				       "type %d: %s", t, what);
	for (i = 0; i < f->nmrs; i++)
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&f->mrs[i]->windows), !i && open,
				    "type %d: %s: region %d", t, what, i);
}

static void all_wrongs(struct kunit *test, int t, bool open)
{
	struct fixture *f = test->priv;
	struct nhca_mw *mw = f->mws[0];
	struct nhca_send_wqe wqe;
	int i, bit;

	for (i = 0; i < ARRAY_SIZE(wrongs); i++) {
		if (!(wrongs[i].types & BIT(t)))
			continue;
		wqe = bind_wqe(mw, f->mrs[0], IOVA, 64, REMOTE);
		wrongs[i].make(f, &wqe);
		expect_refused(test, t, open, wrongs[i].what, &f->qp, &wqe, wrongs[i].err);
	}
	/* rights that no window can have */
	for (bit = 0; bit < 32; bit++) {
		if (BIT(bit) & (REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED))
			continue;
		wqe = bind_wqe(mw, f->mrs[0], IOVA, 64, IB_ACCESS_REMOTE_READ);
		wqe.mw.access |= BIT(bit);
		expect_refused(test, t, open, "a right that no window has", &f->qp, &wqe, -EINVAL);
		wqe.mw.length = 0;
		expect_refused(test, t, open, "unbind with such a right", &f->qp, &wqe, -EINVAL);
	}
	wqe = bind_wqe(mw, f->mrs[0], IOVA, 64, REMOTE);
	expect_refused(test, t, open, "a QP of another domain", &f->stranger, &wqe, -EACCES);
	expect_refused(test, t, open, "same QPN in another domain", &f->twin, &wqe, -EACCES);
	wqe.mw.mr_lkey = f->mrs[1]->ibmr.lkey;
	expect_refused(test, t, open, "QP and region of another domain", &f->stranger, &wqe,
		       -EACCES);
}

/* A wrong bind fails with the right error, and leaves keys, windows and regions as they are. */
static void refuse_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_send_wqe wqe;
	struct nhca_mw *mw;
	int t;

	wrong_regions(test);
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		mw = window(test, types[t]);
		all_wrongs(test, t, false);
		KUNIT_EXPECT_EQ(test, bind(f, mw, f->mrs[0], IOVA, 64, REMOTE), 0);
		if (types[t] == NHCA_MKEY_MW1) {
			all_wrongs(test, t, true);
		} else {
			wqe = bind_wqe(mw, f->mrs[0], IOVA, 64, REMOTE);
			expect_refused(test, t, true, "bound", &f->qp, &wqe, -EINVAL);
			expect_refused(test, t, true, "bound by another", &f->sibling, &wqe,
				       -EINVAL);
			wqe.mw.length = 0;
			expect_refused(test, t, true, "bound, no bytes", &f->qp, &wqe, -EINVAL);
		}
		window_free(f, mw);
	}
	/* a window with only remote read needs no local write right of the region */
	mw = window(test, NHCA_MKEY_MW1);
	KUNIT_EXPECT_EQ(test, bind(f, mw, f->mrs[3], IOVA, 64, IB_ACCESS_REMOTE_READ), 0);
}

/*
 * The consumer chooses only the variant (8 bits) of the new key; the driver ignores the index in
 * new_rkey.
 */
static void low_byte_test(struct kunit *test)
{
	static const u32 above[] = { 0, 0x100, 0xffffff00 };
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	struct nhca_send_wqe wqe;
	struct nhca_mw *mw;
	u32 key, want;
	int t, i;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		mw = window(test, types[t]);
		for (i = 0; i < ARRAY_SIZE(above); i++) {
			key = mw->mkey.key;
			want = ib_inc_rkey(key);
			wqe = bind_wqe(mw, mr, IOVA, 64, REMOTE);
			wqe.mw.new_rkey = above[i] | (want & 0xff);
			KUNIT_EXPECT_EQ_MSG(test, bind_as(&f->qp, &wqe), 0, "type %d, %#x", t,
					    wqe.mw.new_rkey);
			KUNIT_EXPECT_EQ(test, mw->mkey.key, want);
			KUNIT_EXPECT_EQ(test, mw->ibmw.rkey, want);
			KUNIT_EXPECT_TRUE(test, opens(&f->qp, want, IOVA, 64, REMOTE));
			KUNIT_EXPECT_FALSE(test, opens(&f->qp, key, IOVA, 64, REMOTE));
			if (types[t] != NHCA_MKEY_MW1)
				KUNIT_EXPECT_EQ(test, local_inv(&f->qp, want, true), 0);
		}
	}
	/*
	 * new_rkey has the current variant, so with the window's index the new key would be the
	 * current key, which is invalid for a type 1 window
	 */
	mw = f->mws[0];
	wqe = bind_wqe(mw, mr, IOVA, 64, REMOTE);
	wqe.mw.new_rkey = mw->mkey.key & 0xff;
	KUNIT_EXPECT_EQ(test, bind_as(&f->qp, &wqe), -EINVAL);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(low_byte_test),
	KUNIT_CASE(rights_test),
	KUNIT_CASE(range_test),
	KUNIT_CASE(zero_based_test),
	KUNIT_CASE(key_user_test),
	KUNIT_CASE(refuse_test),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "nhca_mw",
	.init = mw_test_init,
	.exit = mw_test_exit,
	.test_cases = mw_cases,
};

kunit_test_suite(mw_suite);
