// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a queue pair that has refused a request repeats the NAK to a peer that retransmits, and
 * does not answer packets with guessed PSNs.
 */
#include "qp_fixture.h"

#define RC_READ		(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define READ_RESPONSE	(NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY)
#define WRITE_ONLY	(NHCA_SVC_RC | NHCA_OP_WRITE_ONLY)
#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define REFUSED		(FIX_RQ_PSN + 1)

/* guessed PSNs: distances before the refused request, where the peer has no outstanding request */
static const u32 guesses[] = { 0x4001, 0x8000, 0x100000, 0x700000 };

static void deliver(struct kunit *test, u8 opcode, u32 psn, u32 rkey)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, psn);
	u32 payload = opcode == RC_READ ? 0 : 10;

	h.rkey = rkey;
	h.dmalen = 10;
	fix_deliver(test, h, payload);
}

/* Return: number of NAKs so far. Expect that the last NAK has @psn. */
static u32 naks(struct kunit *test, u32 psn)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;
	u32 n = fix_sent(f, ACK, &sent);

	if (!n)
		return 0;
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, psn);
	return n;
}

/* Deliver a READ, which is answered, and then a WRITE, which is refused. */
static void refuse(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	deliver(test, RC_READ, FIX_RQ_PSN, f->mr->ibmr.rkey);
	KUNIT_ASSERT_EQ(test, fix_sent(f, READ_RESPONSE, NULL), 1);
	deliver(test, WRITE_ONLY, REFUSED, ~f->mr->ibmr.rkey);
	KUNIT_ASSERT_EQ(test, naks(test, REFUSED), 1);
	KUNIT_ASSERT_EQ(test, f->qp->state, IB_QPS_ERR);
}

/*
 * If the READ response or the NAK was lost, the peer retransmits the READ or the WRITE, and gets a
 * NAK with the PSN of this request.
 */
static void retransmitted_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	refuse(test);
	deliver(test, WRITE_ONLY, REFUSED, ~f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 2);
	deliver(test, RC_READ, FIX_RQ_PSN, f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, FIX_RQ_PSN), 3);
	deliver(test, WRITE_ONLY, REFUSED, ~f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 4);
	/* an earlier SEND, whose ACK was lost, gets a NAK with the PSN of the refused request */
	deliver(test, SEND_ONLY, FIX_RQ_PSN - 3, 0);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 5);
	/* requests after the refused request are not answered */
	deliver(test, SEND_ONLY, REFUSED + 1, 0);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 5);
}

/* A guessed PSN without an outstanding request gets no answer, but a retransmission gets a NAK. */
static void guessed_psn_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	refuse(test);
	for (i = 0; i < ARRAY_SIZE(guesses); i++) {
		deliver(test, RC_READ, REFUSED - guesses[i], f->mr->ibmr.rkey);
		deliver(test, SEND_ONLY, REFUSED - guesses[i], 0);
	}
	/* this PSN is near the refused PSN, but the responder has executed no READ with this PSN */
	deliver(test, RC_READ, FIX_RQ_PSN - 5, f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_STATE), 2 * ARRAY_SIZE(guesses) + 1);
	deliver(test, WRITE_ONLY, REFUSED, ~f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, REFUSED), 2);
}

/*
 * A retransmission of the longest READ, 2^23 packets directly before the refused request, gets a
 * NAK with the PSN of the READ.
 */
static void longest_read_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 psn = REFUSED - 0x800000;
	struct nhca_res *res;

	refuse(test);
	res = nhca_res_at(&f->qp->rq, f->qp->rq.res_head - 1);
	res->psn = psn & NHCA_PSN_MASK;
	res->npsn = 0x800000;
	deliver(test, RC_READ, psn, f->mr->ibmr.rkey);
	KUNIT_EXPECT_EQ(test, naks(test, psn & NHCA_PSN_MASK), 2);
}

static struct kunit_case refused_cases[] = {
	KUNIT_CASE(retransmitted_test),
	KUNIT_CASE(guessed_psn_test),
	KUNIT_CASE(longest_read_test),
	{}
};

static struct kunit_suite refused_suite = {
	.name = "nhca_qp_refused",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = refused_cases,
};

kunit_test_suite(refused_suite);
