// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: which duplicate requests are answered again, and that SENDs and atomics are never executed
 * twice (IBTA 9.7.4.5).
 */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define SEND_LAST	(NHCA_SVC_RC | NHCA_OP_SEND_LAST)
#define SEND_FIRST	(NHCA_SVC_RC | NHCA_OP_SEND_FIRST)
#define READ_REQUEST	(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define FETCH_ADD	(NHCA_SVC_RC | NHCA_OP_FETCH_ADD)
#define ATOMIC_ACK	(NHCA_SVC_RC | NHCA_OP_ATOMIC_ACK)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)

static struct nhca_hdr request(struct kunit *test, u8 opcode, u32 psn, u64 va, u32 len)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, psn);

	h.rkey = f->mr->ibmr.rkey;
	h.va = va;
	h.dmalen = len;
	h.swap_add = 1;
	return h;
}

/*
 * A duplicate SEND consumes no receive. The duplicate is acknowledged if it ends a message or has
 * AckReq.
 */
static void send_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN);
	struct nhca_cqe cqe;
	struct sent sent;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 2 * FIX_MTU);
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);
	KUNIT_EXPECT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));

	h = fix_hdr(f->qp, SEND_FIRST, FIX_RQ_PSN + 1);
	fix_deliver(test, h, FIX_MTU);
	fix_deliver(test, h, FIX_MTU);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	h.psn = FIX_RQ_PSN + 1;
	h.ackreq = true;
	fix_deliver(test, h, FIX_MTU);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_DUP_REQUEST), 3);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 2);
	KUNIT_EXPECT_EQ(test, f->qp->rq.recv_off, FIX_MTU);
}

/*
 * The QP answers a duplicate of a READ of three packets, or of a part of this READ. It does not
 * answer a READ with the same PSNs whose address or length does not match this READ, or whose key
 * differs. Each row of the table has the number of response packets and of payload bytes.
 */
static void read_table_test(struct kunit *test)
{
	static const struct {
		u32 psn;
		u64 va;
		u32 len, key;
		u32 packets, bytes;
	} rows[] = {
		{ 0, 0, 3000, 0, 3, 3000 },
		/* parts of the READ: packets 2 and 3, 100 bytes of packet 2, and packet 3 */
		{ 1, FIX_MTU, 3000 - FIX_MTU, 0, 2, 3000 - FIX_MTU },
		{ 1, FIX_MTU, 100, 0, 1, 100 },
		{ 2, 2 * FIX_MTU, 3000 - 2 * FIX_MTU, 0, 1, 3000 - 2 * FIX_MTU },
		/* READs that differ from the READ that was executed */
		{ 0, 4, 3000, 0, 0, 0 },
		{ 1, 0, 100, 0, 0, 0 },
		{ 0, 0, 3001, 0, 0, 0 },
		{ 0, 0, 3 * FIX_MTU + 1, 0, 0, 0 },
		{ 1, FIX_MTU, 3000, 0, 0, 0 },
		{ 0, 0, 3000, 1, 0, 0 },
	};
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;
	u32 first, j, bytes;
	int i;

	fix_deliver(test, request(test, READ_REQUEST, FIX_RQ_PSN, 0, 3000), 0);
	KUNIT_ASSERT_EQ(test, f->nsent, 3);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 3);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		first = f->nsent;
		h = request(test, READ_REQUEST, FIX_RQ_PSN + rows[i].psn, rows[i].va,
			    rows[i].len);
		h.rkey += rows[i].key;
		fix_deliver(test, h, 0);
		KUNIT_ASSERT_EQ_MSG(test, f->nsent - first, rows[i].packets, "entry %d", i);
		bytes = 0;
		for (j = first; j < f->nsent; j++) {
			KUNIT_EXPECT_EQ(test, f->sent[j].hdr.psn, h.psn + j - first);
			bytes += f->sent[j].payload;
		}
		KUNIT_EXPECT_EQ_MSG(test, bytes, rows[i].bytes, "entry %d", i);
		KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 3);
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_READ_REQUESTS), 1);
}

/* The same atomic three times adds once, and all responses have the same value. */
static void atomic_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u64 *value = page_address(f->page);
	struct sent sent;
	u32 i;

	*value = 41;
	for (i = 0; i < 3; i++) {
		fix_deliver(test, request(test, FETCH_ADD, FIX_RQ_PSN, 0, 8), 0);
		KUNIT_EXPECT_EQ(test, *value, 42);
		KUNIT_ASSERT_EQ(test, fix_sent(f, ATOMIC_ACK, &sent), i + 1);
		KUNIT_EXPECT_EQ(test, sent.hdr.orig, 41);
		KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);
	}
	/* a request of another kind with the PSN of the atomic is not a duplicate of the atomic */
	fix_deliver(test, request(test, READ_REQUEST, FIX_RQ_PSN, 0, 8), 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 3);
}

/* Responder resources are reused: the oldest atomics are neither answered nor executed again. */
static void resource_reused_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u64 *value = page_address(f->page);
	u32 i;

	for (i = 0; i < 20; i++)
		fix_deliver(test, request(test, FETCH_ADD, FIX_RQ_PSN + i, 0, 8), 0);
	KUNIT_EXPECT_EQ(test, *value, 20);
	KUNIT_EXPECT_EQ(test, f->nsent, 20);
	for (i = 0; i < 20; i++)
		fix_deliver(test, request(test, FETCH_ADD, FIX_RQ_PSN + i, 0, 8), 0);
	KUNIT_EXPECT_EQ(test, *value, 20);
	/* the QP has 4 responder resources, so it answers the last 4 atomics again */
	KUNIT_EXPECT_EQ(test, f->nsent, 24);
}

/*
 * A duplicate READ makes the QP drop its unsent responses to later requests, because the peer will
 * repeat these requests as well.
 */
static void later_responses_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr first = request(test, READ_REQUEST, FIX_RQ_PSN, 0, 10);
	struct nhca_hdr second = request(test, READ_REQUEST, FIX_RQ_PSN + 1, 0, 20);

	fix_deliver(test, first, 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	f->xmit_err = -EAGAIN;
	fix_deliver(test, second, 0);
	fix_deliver(test, first, 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	f->xmit_err = 0;
	fix_deliver(test, first, 0);
	KUNIT_ASSERT_EQ(test, f->nsent, 2);
	KUNIT_EXPECT_EQ(test, f->sent[1].hdr.psn, FIX_RQ_PSN);
	fix_deliver(test, second, 0);
	KUNIT_ASSERT_EQ(test, f->nsent, 3);
	KUNIT_EXPECT_EQ(test, f->sent[2].payload, 20);
}

/*
 * A gap in the PSNs causes one NAK. The missing request ends the gap, so the next gap causes
 * another NAK.
 */
static void gap_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;
	struct sent sent;
	u32 i;

	for (i = 0; i < 3; i++) {
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
		fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 1 + i, 10);
	}
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);
	h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN);
	h.ackreq = true;
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 2, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), 3);
}

/*
 * A batch has a duplicate READ, whose key was closed after the READ, and an invalid request. The
 * READ cannot be answered, because its key is closed, but the invalid request is still refused: the
 * peer gets the NAK, and the QP goes to error.
 */
static void fatal_after_replay_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr read = request(test, READ_REQUEST, FIX_RQ_PSN, 0, 3000);
	struct nhca_hdr wrong = fix_hdr(f->qp, SEND_LAST, FIX_RQ_PSN + 3);
	struct sk_buff *skb;
	struct sent sent;

	fix_deliver(test, read, 0);
	KUNIT_ASSERT_EQ(test, f->nsent, 3);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	/* both packets have 32 bytes, so one batch can contain both */
	skb = fix_skb(test, &read, 0, 2);
	skb_trim(skb, skb_shinfo(skb)->gso_size);
	fix_put(skb, &wrong, 16, 1, NULL);
	fix_deliver_skb(test, skb);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN + 3);
	KUNIT_EXPECT_EQ(test, f->nsent, 4);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_TRUE(test, f->qp->rq.fatal);
}

/*
 * The indices of responder resources do not wrap, even if there is always a response to send. If
 * they wrapped, a resource whose response was not sent would be reused, because index modulo 3
 * selects the resource here, and 2^32 is no multiple of 3.
 */
static void indices_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rq *rq = &f->qp->rq;
	u32 i;

	rq->nres = 3;
	fix_deliver(test, request(test, READ_REQUEST, FIX_RQ_PSN, 0, 8), 0);
	fix_deliver(test, request(test, READ_REQUEST, FIX_RQ_PSN + 1, 0, 8), 0);
	KUNIT_ASSERT_EQ(test, rq->res_head, 2);
	f->nsent = 0;
	/* the first of these READs gets index 2; index U32_MAX - 1 selects the same resource */
	KUNIT_ASSERT_EQ(test, (U32_MAX - 1) % 3, 2);
	for (i = 0; i < 3; i++) {
		if (i == 1) {
			rq->res_tail = U32_MAX - 1;
			rq->res_head = U32_MAX;
		}
		f->xmit_err = i < 2 ? -EAGAIN : 0;
		fix_deliver(test, request(test, READ_REQUEST, FIX_RQ_PSN + 2 + 2 * i, 0,
					  FIX_MTU + 8), 0);
		KUNIT_EXPECT_LE(test, rq->res_head, 3 * rq->nres);
		KUNIT_EXPECT_GE(test, rq->res_head, rq->res_tail);
	}
	KUNIT_ASSERT_EQ(test, f->nsent, 6);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, f->sent[i].hdr.psn, FIX_RQ_PSN + 2 + i);
	KUNIT_EXPECT_EQ(test, rq->res_head, rq->res_tail);
}

static struct kunit_case duplicate_cases[] = {
	KUNIT_CASE(send_test),
	KUNIT_CASE(read_table_test),
	KUNIT_CASE(atomic_test),
	KUNIT_CASE(resource_reused_test),
	KUNIT_CASE(later_responses_test),
	KUNIT_CASE(gap_test),
	KUNIT_CASE(fatal_after_replay_test),
	KUNIT_CASE(indices_test),
	{}
};

static struct kunit_suite duplicate_suite = {
	.name = "nhca_duplicate",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = duplicate_cases,
};

kunit_test_suite(duplicate_suite);
