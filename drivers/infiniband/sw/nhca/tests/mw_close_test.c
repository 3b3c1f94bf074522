// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: memory windows that are bound again, closed or invalidated, and invalidation of regions.
 */
#include "mw_fixture.h"

/* windows of a QP in many_test() */
#define MANY		5

/* ---- binding again and closing ---- */

static bool get_ref(struct fixture *f, struct nhca_rkey_ref *h, u32 key, u64 va)
{
	int err;

	memset(h, 0, sizeof(*h));
	local_bh_disable();
	err = nhca_rkey_get(h, &f->qp, key, va, 64, IB_ACCESS_REMOTE_WRITE);
	local_bh_enable();
	return !err;
}

/* Release the R_Key reference. Return: true if its key was closed. */
static bool revoked(struct nhca_rkey_ref *h)
{
	struct nhca_iter it;
	struct nhca_seg seg;
	bool gone;
	int err;

	local_bh_disable();
	nhca_live_enter();
	gone = !nhca_rkey_ref_valid(h);
	nhca_iter_rkey(&it, h, 0, 64, true);
	err = nhca_iter_next(&it, 64, &seg);
	nhca_live_exit();
	nhca_rkey_put(h);
	local_bh_enable();
	return gone && err == -EACCES;
}

/*
 * Binding a window again closes its old key and revokes the R_Key references to this key. Only the
 * new region counts the window.
 */
static void move_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *a = region(test, f->pd, BINDABLE), *b = region(test, f->pd, BINDABLE);
	struct nhca_mw *mw = window(test, NHCA_MKEY_MW1);
	const struct {
		struct nhca_mr *mr;
		u64 at, len;
	} steps[] = {
		{ a, IOVA, LENGTH },
		/* shrink, move, grow; move to another region and back; unbind twice */
		{ a, IOVA, 64 },
		{ a, IOVA + PAGE_SIZE, 64 },
		{ a, IOVA, LENGTH },
		{ b, IOVA, 64 },
		{ a, IOVA, 64 },
		{ NULL, 0, 0 },
		{ NULL, 0, 0 },
		{ b, IOVA + PAGE_SIZE, 64 },
		/*
		 * an unbind (length 0) checks neither region nor address; this address is outside
		 * the region
		 */
		{ b, 1, 0 },
		{ a, IOVA, 64 },
	};
	u32 old = mw->mkey.key;
	u64 old_at = IOVA, off;
	struct nhca_rkey_ref h;
	bool held = false;
	int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		KUNIT_ASSERT_EQ(test, bind(f, mw, steps[i].mr, steps[i].at, steps[i].len, REMOTE),
				0);
		KUNIT_EXPECT_EQ(test, mw->mkey.key, next_key(old));
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, old, old_at, 1, REMOTE));
		if (held)
			KUNIT_EXPECT_TRUE(test, revoked(&h));
		held = false;
		old = mw->mkey.key;
		KUNIT_EXPECT_EQ(test, atomic_read(&a->windows), steps[i].mr == a && steps[i].len);
		KUNIT_EXPECT_EQ(test, atomic_read(&b->windows), steps[i].mr == b && steps[i].len);
		if (!steps[i].len) {
			KUNIT_EXPECT_FALSE(test, opens(&f->qp, old, IOVA, 1, REMOTE));
			KUNIT_EXPECT_FALSE(test, opens(&f->qp, old, IOVA, 0, REMOTE));
			continue;
		}
		old_at = steps[i].at;
		KUNIT_EXPECT_PTR_EQ(test, reach(&f->qp, old, old_at, steps[i].len, REMOTE, &off),
				    steps[i].mr);
		KUNIT_EXPECT_EQ(test, off, old_at - IOVA);
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, old, old_at, steps[i].len + 1, REMOTE));
		held = get_ref(f, &h, old, old_at);
		KUNIT_EXPECT_TRUE(test, held);
	}
	if (held)
		KUNIT_EXPECT_FALSE(test, revoked(&h));
}

/*
 * Closing a window revokes R_Key references to its own key, not to keys of other windows or of its
 * region.
 */
static void others_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE | REMOTE);
	struct nhca_mw *mw = window(test, NHCA_MKEY_MW2B), *other = window(test, NHCA_MKEY_MW2B);
	struct nhca_rkey_ref h[3];

	KUNIT_ASSERT_EQ(test, bind(f, mw, mr, IOVA, 64, REMOTE), 0);
	KUNIT_ASSERT_EQ(test, bind(f, other, mr, IOVA, 64, REMOTE), 0);
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h[0], mw->mkey.key, IOVA));
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h[1], other->mkey.key, IOVA));
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h[2], mr->mkey.key, IOVA));
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, mw->mkey.key, true), 0);
	KUNIT_EXPECT_TRUE(test, revoked(&h[0]));
	KUNIT_EXPECT_FALSE(test, revoked(&h[1]));
	KUNIT_EXPECT_FALSE(test, revoked(&h[2]));
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, other->mkey.key, IOVA, 64, REMOTE));
}

static int inv(bool remote, const struct nhca_key_user *key_user, u32 key)
{
	return remote ? remote_inv(key_user, key) : local_inv(key_user, key, true);
}

/*
 * A QP can invalidate a bound type 2 window that it may access, but no type 1 window. A wrong key
 * or key user changes nothing.
 */
static void invalidate_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE);
	struct nhca_send_wqe wqe;
	struct nhca_mw *mw;
	struct nhca_rkey_ref h;
	int t, remote;
	u32 key;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (remote = 0; remote < 2; remote++) {
			mw = window(test, types[t]);
			KUNIT_EXPECT_EQ(test, inv(remote, &f->qp, mw->mkey.key), -EINVAL);
			KUNIT_EXPECT_EQ(test, bind(f, mw, mr, IOVA, 64, REMOTE), 0);
			key = mw->mkey.key;
			KUNIT_EXPECT_EQ(test, inv(remote, &f->qp, key ^ 1), -EINVAL);
			KUNIT_EXPECT_EQ(test, inv(remote, &f->sibling, key), -EINVAL);
			KUNIT_EXPECT_EQ(test, inv(remote, &f->stranger, key), -EINVAL);
			if (types[t] != NHCA_MKEY_MW2A)
				KUNIT_EXPECT_EQ(test, inv(remote, &f->twin, key), -EINVAL);
			KUNIT_EXPECT_TRUE(test, opens(&f->qp, key, IOVA, 64, REMOTE));
			KUNIT_EXPECT_TRUE(test, get_ref(f, &h, key, IOVA));
			KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);
			if (types[t] == NHCA_MKEY_MW1) {
				KUNIT_EXPECT_EQ(test, inv(remote, &f->qp, key), -EINVAL);
				KUNIT_EXPECT_TRUE(test, opens(&f->qp, key, IOVA, 64, REMOTE));
				KUNIT_EXPECT_FALSE(test, revoked(&h));
			} else {
				KUNIT_EXPECT_EQ(test, inv(remote, &f->qp, key), 0);
				KUNIT_EXPECT_FALSE(test, opens(&f->qp, key, IOVA, 64, REMOTE));
				KUNIT_EXPECT_TRUE(test, revoked(&h));
				KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);
				KUNIT_EXPECT_EQ(test, inv(remote, &f->qp, key), -EINVAL);
				/*
				 * the window is unbound, so another QP of the protection domain may
				 * bind it
				 */
				wqe = bind_wqe(mw, mr, IOVA, 64, REMOTE);
				wqe.mw.mw_rkey = mw->ibmw.rkey;
				KUNIT_EXPECT_EQ(test, bind_as(&f->sibling, &wqe), 0);
				KUNIT_EXPECT_FALSE(test, opens(&f->qp, mw->mkey.key, IOVA, 64,
							       REMOTE));
				KUNIT_EXPECT_TRUE(test, opens(&f->sibling, mw->mkey.key, IOVA, 64,
							      REMOTE));
			}
			window_free(f, mw);
			KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);
		}
	}
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, 0, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, remote_inv(&f->qp, U32_MAX), -EINVAL);
}

/*
 * Invalidation closes a fast registration region if no window is bound to it. Invalidation does not
 * close a region that a user registered.
 */
static void regions_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *user = region(test, f->pd, BINDABLE | REMOTE);
	struct nhca_mr *fast = fast_region(test, f->pd, BINDABLE | IB_ACCESS_REMOTE_READ);
	struct nhca_mr *near = fast_region(test, f->pd, BINDABLE);
	struct nhca_mw *mw = window(test, NHCA_MKEY_MW2B);
	struct nhca_rkey_ref h;

	/* nobody can invalidate a region that a user registered */
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, user->mkey.key, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, user->mkey.key, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, remote_inv(&f->qp, user->mkey.key), -EINVAL);
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, user->mkey.key, IOVA, 64, REMOTE));

	/* refused: another domain, a work request of user space, a wrong key, a bound window */
	KUNIT_EXPECT_EQ(test, local_inv(&f->stranger, fast->mkey.key, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, remote_inv(&f->twin, fast->mkey.key), -EINVAL);
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, fast->mkey.key, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, fast->mkey.key ^ 1, false), -EINVAL);
	KUNIT_ASSERT_EQ(test, bind(f, mw, fast, IOVA, 64, REMOTE), 0);
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, fast->mkey.key, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, remote_inv(&f->qp, fast->mkey.key), -EINVAL);
	KUNIT_EXPECT_EQ(test, remote_inv(&f->qp, mw->mkey.key), 0);
	KUNIT_EXPECT_TRUE(test, opens(&f->sibling, fast->mkey.key, IOVA, 64,
				      IB_ACCESS_REMOTE_READ));
	/* any QP of the domain can invalidate the region; then the key is closed */
	KUNIT_EXPECT_EQ(test, remote_inv(&f->sibling, fast->mkey.key), 0);
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, fast->mkey.key, IOVA, 64, IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, fast->mkey.key, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, bind(f, mw, fast, IOVA, 64, REMOTE), -EINVAL);

	/* a peer cannot invalidate a region without remote rights; a local work request can */
	KUNIT_EXPECT_EQ(test, remote_inv(&f->qp, near->mkey.key), -EINVAL);
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, near->mkey.key, IOVA, 64, IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_EQ(test, local_inv(&f->sibling, near->mkey.key, false), 0);
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, near->mkey.key, IOVA, 64, 0));
	KUNIT_EXPECT_TRUE(test, get_ref(f, &h, user->mkey.key, IOVA));
	KUNIT_EXPECT_FALSE(test, revoked(&h));
}

/* ---- regions, QPs and windows that are destroyed ---- */

/*
 * A region with bound windows cannot be destroyed. The destruction of a QP closes the type 2
 * windows that the QP has bound, and the destruction of a window closes its key. Other keys stay
 * open.
 */
static void ends_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE | REMOTE);
	struct nhca_mw *mw[4];
	struct nhca_send_wqe wqe;
	struct nhca_rkey_ref h, h2;
	u32 key;
	int i;

	for (i = 0; i < 3; i++) {
		mw[i] = window(test, types[i]);
		KUNIT_ASSERT_EQ(test, bind(f, mw[i], mr, IOVA, 64, REMOTE), 0);
	}
	mw[3] = window(test, NHCA_MKEY_MW2B);
	wqe = bind_wqe(mw[3], mr, IOVA, 64, REMOTE);
	KUNIT_ASSERT_EQ(test, bind_as(&f->sibling, &wqe), 0);

	/* the region cannot be destroyed while a window is bound to it */
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), -EBUSY);
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, mr->mkey.key, IOVA, 64, REMOTE));
	KUNIT_EXPECT_TRUE(test, opens(&f->qp, mw[0]->mkey.key, IOVA, 64, REMOTE));

	/* the destruction of a QP closes the type 2 windows that it bound, and no other windows */
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h, mw[1]->mkey.key, IOVA));
	nhca_mw_qp_gone(&f->qp);
	KUNIT_EXPECT_TRUE(test, revoked(&h));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, opens(i < 3 ? &f->qp : &f->sibling, mw[i]->mkey.key, IOVA, 64,
					    REMOTE), i == 0 || i == 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 2);
	nhca_mw_qp_gone(&f->qp);
	nhca_mw_qp_gone(&f->stranger);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 2);
	KUNIT_EXPECT_EQ(test, bind(f, mw[2], mr, IOVA, 64, REMOTE), 0);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), -EBUSY);

	/* the destruction of a window closes its key */
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h, mw[0]->mkey.key, IOVA));
	KUNIT_ASSERT_TRUE(test, get_ref(f, &h2, mr->mkey.key, IOVA));
	key = mw[0]->mkey.key;
	for (i = 0; i < 4; i++)
		window_free(f, mw[i]);
	KUNIT_EXPECT_TRUE(test, revoked(&h));
	KUNIT_EXPECT_FALSE(test, revoked(&h2));
	KUNIT_EXPECT_FALSE(test, opens(&f->qp, key, IOVA, 64, REMOTE));
	KUNIT_EXPECT_EQ(test, local_inv(&f->qp, key, true), -EINVAL);

	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), 0);
	f->mrs[0] = NULL;
}

/*
 * The destruction of a QP closes all type 2 windows that the QP has bound, and no windows of other
 * QPs.
 */
static void many_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = region(test, f->pd, BINDABLE | REMOTE);
	struct nhca_mw *mine[MANY], *theirs[MANY];
	struct nhca_key_user *other = &f->sibling;
	struct nhca_send_wqe wqe;
	int i;

	for (i = 0; i < MANY; i++) {
		mine[i] = window(test, types[1 + i % 2]);
		KUNIT_ASSERT_EQ(test, bind(f, mine[i], mr, IOVA, 64, REMOTE), 0);
		theirs[i] = window(test, NHCA_MKEY_MW2B);
		wqe = bind_wqe(theirs[i], mr, IOVA, 64, REMOTE);
		KUNIT_ASSERT_EQ(test, bind_as(other, &wqe), 0);
	}
	/* windows leave the list of their QP in any order */
	for (i = 0; i < MANY; i += 3)
		KUNIT_EXPECT_EQ(test, local_inv(&f->qp, mine[i]->mkey.key, true), 0);
	nhca_mw_qp_gone(&f->qp);
	KUNIT_EXPECT_TRUE(test, hlist_empty(&f->qp.windows));
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), MANY);
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_FALSE(test, opens(&f->qp, mine[i]->mkey.key, IOVA, 64, REMOTE));
		KUNIT_EXPECT_TRUE(test, opens(other, theirs[i]->mkey.key, IOVA, 64, REMOTE));
	}
	nhca_mw_qp_gone(other);
	KUNIT_EXPECT_TRUE(test, hlist_empty(&other->windows));
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);
}

static struct kunit_case mw_close_cases[] = {
	KUNIT_CASE(move_test),
	KUNIT_CASE(others_test),
	KUNIT_CASE(invalidate_test),
	KUNIT_CASE(regions_test),
	KUNIT_CASE(ends_test),
	KUNIT_CASE(many_test),
	{}
};

static struct kunit_suite mw_close_suite = {
	.name = "nhca_mw_close",
	.init = mw_test_init,
	.exit = mw_test_exit,
	.test_cases = mw_close_cases,
};

kunit_test_suite(mw_close_suite);
