// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: local operations of a send queue: a key opens or closes when the operation is executed,
 * and the operation completes in order with the requests around it (IBTA 10.6.7.2, 10.8.4).
 */
#include <linux/scatterlist.h>

#include "qp_fixture.h"

#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define WRITE_ONLY	(NHCA_SVC_RC | NHCA_OP_WRITE_ONLY)
#define REMOTE		(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* Post @wqe itself, because no struct ib_send_wr stands for this kind of request. */
static void post_wqe(struct nhca_qp *qp, const struct nhca_send_wqe *wqe)
{
	struct nhca_sq *sq = &qp->sq;

	memcpy(nhca_ring_slot(&sq->ring, sq->prod), wqe, sizeof(*wqe));
	WRITE_ONCE(sq->ring.hdr->prod, ++sq->prod);
	nhca_send_doorbell(qp);
}

static void invalidate(struct kunit *test, u32 key, u64 wr_id)
{
	struct qp_fixture *f = test->priv;
	struct ib_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};

	KUNIT_ASSERT_EQ(test, nhca_send_post(f->qp, &wr), 0);
	nhca_send_doorbell(f->qp);
}

/* Expect that the next completion is that of the request @wr_id. */
static void expect_done(struct kunit *test, u64 wr_id, enum ib_wc_opcode opcode,
			enum ib_wc_status status)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, wr_id);
	KUNIT_EXPECT_EQ(test, cqe.status, status);
	if (status == IB_WC_SUCCESS)
		KUNIT_EXPECT_EQ(test, cqe.opcode, opcode);
}

static void expect_idle(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
}

/* Return: true if the peer may write one byte at @va with @key. */
static bool opens(struct nhca_qp *qp, u32 key, u64 va)
{
	struct nhca_iter it;
	int err;

	local_bh_disable();
	nhca_live_enter();
	err = nhca_iter_key(&it, &qp->key_user, key, va, 1, IB_ACCESS_REMOTE_WRITE);
	nhca_live_exit();
	local_bh_enable();
	return !err;
}

/* Return: a region for fast registration, mapped to @page. */
static struct ib_mr *fast_region(struct kunit *test, struct page *page)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = nhca_mr_fast(f->dev, f->pd, 1, false);
	struct scatterlist sg;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->page_size = PAGE_SIZE;
	sg_init_table(&sg, 1);
	sg_set_page(&sg, page, PAGE_SIZE, 0);
	sg_dma_address(&sg) = (uintptr_t)page_address(page);
	sg_dma_len(&sg) = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(mr, &sg, 1, NULL), 1);
	return mr;
}

static void reg(struct kunit *test, struct ib_mr *mr, u64 wr_id, int access)
{
	struct qp_fixture *f = test->priv;
	struct ib_reg_wr wr = {
		.wr = {
			.wr_id = wr_id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	KUNIT_ASSERT_EQ(test, nhca_send_post(f->qp, &wr.wr), 0);
	nhca_send_doorbell(f->qp);
}

/*
 * A fast-registered region is open from its IB_WR_REG_MR to its local invalidate. A second
 * invalidate fails, and puts the QP in error.
 */
static void reg_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = fast_region(test, f->page);

	KUNIT_EXPECT_FALSE(test, opens(f->qp, mr->rkey, mr->iova));
	reg(test, mr, 1, IB_ACCESS_LOCAL_WRITE | REMOTE);
	expect_done(test, 1, IB_WC_REG_MR, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, opens(f->qp, mr->rkey, mr->iova));
	invalidate(test, mr->rkey, 2);
	expect_done(test, 2, IB_WC_LOCAL_INV, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, opens(f->qp, mr->rkey, mr->iova));
	/* local operations need no packets */
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, f->qp->sq.nxt, FIX_SQ_PSN);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);

	invalidate(test, mr->rkey, 3);
	expect_done(test, 3, IB_WC_LOCAL_INV, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	expect_idle(test);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/* Rights that the specification forbids are refused: remote write requires local write. */
static void reg_rights_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = fast_region(test, f->page);

	reg(test, mr, 1, IB_ACCESS_REMOTE_WRITE);
	expect_done(test, 1, IB_WC_REG_MR, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_FALSE(test, opens(f->qp, mr->rkey, mr->iova));
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * A peer writes through a window that this QP has bound. Its next request is refused after the
 * window was invalidated.
 */
static void bind_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->pd, IB_ACCESS_LOCAL_WRITE |
					   IB_ACCESS_MW_BIND);
	struct nhca_hdr h = fix_hdr(f->qp, WRITE_ONLY, FIX_RQ_PSN);
	struct nhca_send_wqe wqe = {
		.opcode = NHCA_WR_BIND_MW,
		.wr_id = 9,
		.flags = NHCA_SEND_SIGNALED,
	};
	u8 *p = page_address(f->page);
	struct sent sent;
	u32 i;

	KUNIT_ASSERT_TRUE(test, mw && !IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, &f->page, 1, 0, true), 0);
	nhca_mr_start(mr, 0, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, nhca_mw_init(mw, f->pd, IB_MW_TYPE_2), 0);
	wqe.mw.addr = 512;
	wqe.mw.length = 64;
	wqe.mw.mr_lkey = mr->ibmr.lkey;
	wqe.mw.mw_rkey = mw->ibmw.rkey;
	wqe.mw.new_rkey = mw->ibmw.rkey + 1;
	wqe.mw.access = IB_ACCESS_REMOTE_WRITE;
	post_wqe(f->qp, &wqe);
	expect_done(test, 9, IB_WC_BIND_MW, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 1);

	h.rkey = mw->ibmw.rkey;
	h.va = 512;
	h.dmalen = 64;
	h.ackreq = true;
	fix_deliver(test, h, 64);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT);
	for (i = 0; i < 64; i++)
		KUNIT_ASSERT_EQ(test, p[512 + i], fix_byte(i));

	invalidate(test, mw->ibmw.rkey, 10);
	expect_done(test, 10, IB_WC_LOCAL_INV, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->windows), 0);
	memset(p, 0, PAGE_SIZE);
	h.psn = FIX_RQ_PSN + 1;
	fix_deliver(test, h, 64);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(p, 0, PAGE_SIZE));
	nhca_mw_fini(mw);
	nhca_mr_free(mr);
}

/* A bind to a region that does not allow windows fails, and the window stays closed. */
static void bind_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	struct nhca_send_wqe wqe = { .opcode = NHCA_WR_BIND_MW, .wr_id = 9 };

	KUNIT_ASSERT_NOT_NULL(test, mw);
	KUNIT_ASSERT_EQ(test, nhca_mw_init(mw, f->pd, IB_MW_TYPE_2), 0);
	wqe.mw.length = 64;
	/* the region of the fixture has no IB_ACCESS_MW_BIND */
	wqe.mw.mr_lkey = f->mr->ibmr.lkey;
	wqe.mw.mw_rkey = mw->ibmw.rkey;
	wqe.mw.new_rkey = mw->ibmw.rkey + 1;
	wqe.mw.access = IB_ACCESS_REMOTE_READ;
	post_wqe(f->qp, &wqe);
	/* a failed request always has a completion, although the bind is unsignaled */
	expect_done(test, 9, IB_WC_BIND_MW, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_FALSE(test, opens(f->qp, wqe.mw.new_rkey, 0));
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	nhca_mw_fini(mw);
}

/*
 * A local operation is executed while an earlier SEND is unacknowledged, but it completes after
 * this SEND. Two operations and the SEND complete in order with one ACK.
 */
static void order_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = fast_region(test, f->page);

	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	reg(test, mr, 21, IB_ACCESS_LOCAL_WRITE | REMOTE);
	KUNIT_EXPECT_TRUE(test, opens(f->qp, mr->rkey, mr->iova));
	invalidate(test, mr->rkey, 22);
	KUNIT_EXPECT_FALSE(test, opens(f->qp, mr->rkey, mr->iova));
	expect_idle(test);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, NULL), 1);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	expect_done(test, 0, IB_WC_SEND, IB_WC_SUCCESS);
	expect_done(test, 21, IB_WC_REG_MR, IB_WC_SUCCESS);
	expect_done(test, 22, IB_WC_LOCAL_INV, IB_WC_SUCCESS);
	expect_idle(test);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * The error of a local operation is reported only after the earlier SEND was acknowledged. A later
 * SEND is not sent, and is flushed.
 */
static void late_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	invalidate(test, f->mr->ibmr.rkey, 31);
	fix_post_send(test, f->qp, f->mr, 1, 10, IB_SEND_SIGNALED);
	expect_idle(test);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	expect_done(test, 0, IB_WC_SEND, IB_WC_SUCCESS);
	expect_done(test, 31, IB_WC_LOCAL_INV, IB_WC_MW_BIND_ERR);
	expect_done(test, 1, IB_WC_SEND, IB_WC_WR_FLUSH_ERR);
	expect_idle(test);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, NULL), 1);
	/*
	 * the invalidate has not closed the region, because the region is not for fast registration
	 */
	KUNIT_EXPECT_TRUE(test, opens(f->qp, f->mr->ibmr.rkey, 0));
}

static struct kunit_case local_cases[] = {
	KUNIT_CASE(reg_test),
	KUNIT_CASE(reg_rights_test),
	KUNIT_CASE(bind_test),
	KUNIT_CASE(bind_error_test),
	KUNIT_CASE(order_test),
	KUNIT_CASE(late_error_test),
	{}
};

static struct kunit_suite local_suite = {
	.name = "nhca_local",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = local_cases,
};

kunit_test_suite(local_suite);
