// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what the requester does with ACKs, NAKs, READ responses and atomic results (IBTA 9.7.5,
 * 9.7.7).
 */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define READ_REQUEST	(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define RESP_ONLY	(NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY)
#define RESP_FIRST	(NHCA_SVC_RC | NHCA_OP_READ_RESP_FIRST)
#define RESP_MIDDLE	(NHCA_SVC_RC | NHCA_OP_READ_RESP_MIDDLE)
#define RESP_LAST	(NHCA_SVC_RC | NHCA_OP_READ_RESP_LAST)
#define ATOMIC_ACK	(NHCA_SVC_RC | NHCA_OP_ATOMIC_ACK)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)

/* Deliver an acknowledgment packet with @psn, whose AETH has @syndrome. */
static void answer(struct kunit *test, u8 syndrome, u32 psn)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, ACK, psn);

	h.syndrome = syndrome;
	fix_deliver(test, h, 0);
}

static void post_sends(struct kunit *test, u32 count)
{
	struct qp_fixture *f = test->priv;

	while (count--)
		KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0,
						    IB_SEND_SIGNALED), 0);
	nhca_send_doorbell(f->qp);
}

/* Bring the QP back to RTS, with nothing posted and an empty CQ. */
static void again(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	while (fix_poll(f->cq, &cqe))
		;
	f->nsent = 0;
}

static u32 completions(struct kunit *test, enum ib_wc_status status)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 n = 0;

	while (fix_poll(f->cq, &cqe))
		n += cqe.status == status;
	return n;
}

/*
 * Four SENDs are outstanding. Each row of the table has a response and its effect on the requester:
 * una and psn count from FIX_SQ_PSN, done is the number of completions if the QP stays in RTS, and
 * sent is the number of packets sent so far.
 */
static void aeth_table_test(struct kunit *test)
{
	static const struct {
		u8 syndrome;
		int psn;
		u32 una, done, sent;
		/*
		 * status of the request that fails; IB_WC_SUCCESS: none fails, so the QP stays in
		 * RTS
		 */
		enum ib_wc_status error;
		enum nhca_counter counter;
	} rows[] = {
		{ NHCA_AETH_ACK, 0, 1, 1, 4, IB_WC_SUCCESS, NHCA_CNT_MAX },
		{ NHCA_AETH_ACK, 3, 4, 4, 4, IB_WC_SUCCESS, NHCA_CNT_MAX },
		/*
		 * the PSN was acknowledged before or was not sent yet, so the response is only
		 * counted
		 */
		{ NHCA_AETH_ACK, -1, 0, 0, 4, IB_WC_SUCCESS, NHCA_CNT_DUP_RESPONSE },
		{ NHCA_AETH_ACK, 4, 0, 0, 4, IB_WC_SUCCESS, NHCA_CNT_DUP_RESPONSE },
		/*
		 * a NAK acknowledges all PSNs before its own PSN; a sequence NAK also makes the
		 * requester send the packets from this PSN on again
		 */
		{ NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, 2, 2, 2, 6, IB_WC_SUCCESS,
		  NHCA_CNT_RCVD_SEQ_NAK },
		{ NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ, 1, 1, 1, 4, IB_WC_REM_INV_REQ_ERR,
		  NHCA_CNT_RCVD_INVAL_NAK },
		{ NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS, 0, 0, 0, 4, IB_WC_REM_ACCESS_ERR,
		  NHCA_CNT_RCVD_ACCESS_NAK },
		{ NHCA_AETH_NAK | NHCA_NAK_REM_OP, 3, 3, 3, 4, IB_WC_REM_OP_ERR,
		  NHCA_CNT_RCVD_OP_NAK },
		/*
		 * a NAK with a reserved code (9) acknowledges the PSNs before its own; an AETH of
		 * the reserved type (0x40) has no effect
		 */
		{ NHCA_AETH_NAK | 9, 1, 1, 1, 4, IB_WC_SUCCESS, NHCA_CNT_MAX },
		{ 0x40, 1, 0, 0, 4, IB_WC_SUCCESS, NHCA_CNT_MAX },
		{ NHCA_AETH_RNR, 1, 1, 1, 4, IB_WC_SUCCESS, NHCA_CNT_RCVD_RNR },
	};
	struct qp_fixture *f = test->priv;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		post_sends(test, 4);
		before = rows[i].counter == NHCA_CNT_MAX ? 0 : fix_count(f, rows[i].counter);
		answer(test, rows[i].syndrome, FIX_SQ_PSN + rows[i].psn);
		KUNIT_EXPECT_EQ_MSG(test, nhca_psn_diff(f->qp->sq.una, FIX_SQ_PSN), rows[i].una,
				    "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->nsent, rows[i].sent, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->qp->state,
				    rows[i].error ? IB_QPS_ERR : IB_QPS_RTS, "entry %d", i);
		if (rows[i].counter != NHCA_CNT_MAX)
			KUNIT_EXPECT_EQ_MSG(test, fix_count(f, rows[i].counter), before + 1,
					    "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, completions(test, rows[i].error),
				    rows[i].error ? 1 : rows[i].done, "entry %d", i);
		again(test);
	}
}

/*
 * Each sequence NAK without progress uses a retry, except the first NAK. When the 7 retries are
 * used up, the next NAK fails the request.
 */
static void seq_nak_retries_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	post_sends(test, 4);
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
		KUNIT_EXPECT_EQ(test, f->qp->sq.rtx->retries, i ? 8 - i : 7);
		answer(test, NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, FIX_SQ_PSN);
	}
	KUNIT_EXPECT_EQ(test, f->qp->sq.window.cwnd, NHCA_CWND_MIN);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RETRY_EXCEEDED), 0);
	answer(test, NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, FIX_SQ_PSN);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RETRY_EXCEEDED), 1);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_RETRY_EXC_ERR), 1);
}

/*
 * After an RNR NAK nothing is sent until the RNR timer has expired. Each wait uses up one RNR
 * retry.
 */
static void rnr_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	u32 i;

	f->qp->attr.rnr_retry = 2;
	sq->rnr_retries = 2;
	post_sends(test, 1);
	for (i = 0; i < 2; i++) {
		/* the timer code is 0, which means 655 ms */
		answer(test, NHCA_AETH_RNR, FIX_SQ_PSN);
		KUNIT_EXPECT_TRUE(test, sq->rnr_wait);
		/* a second RNR NAK during the wait uses up no retry */
		answer(test, NHCA_AETH_RNR, FIX_SQ_PSN);
		nhca_send_doorbell(f->qp);
		KUNIT_EXPECT_EQ(test, f->nsent, 1 + i);
		KUNIT_EXPECT_EQ(test, sq->rnr_retries, 1 - i);
		/*
		 * a callback of the timer that waited for the lock does not end the wait, because
		 * the RNR NAK has started the timer again: the timer is pending
		 */
		set_bit(0, &sq->kicked);
		local_bh_disable();
		nhca_sq_timer(&sq->timer);
		local_bh_enable();
		KUNIT_EXPECT_FALSE(test, test_bit(0, &sq->kicked));
		KUNIT_EXPECT_TRUE(test, sq->rnr_wait);
		KUNIT_EXPECT_EQ(test, f->nsent, 1 + i);
		timer_delete(&sq->timer);
		local_bh_disable();
		nhca_sq_timer(&sq->timer);
		local_bh_enable();
		KUNIT_EXPECT_FALSE(test, sq->rnr_wait);
		KUNIT_EXPECT_EQ(test, f->nsent, 2 + i);
	}
	answer(test, NHCA_AETH_RNR, FIX_SQ_PSN);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_RNR_RETRY_EXC_ERR), 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RNR_RETRY_EXCEEDED), 1);
}

/* ---- responses with data ---- */

static void post_read(struct kunit *test, u32 len)
{
	struct qp_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_RDMA_READ, 0, len, 0,
					    IB_SEND_SIGNALED), 0);
	nhca_send_doorbell(f->qp);
}

static u32 wrong_bytes(struct kunit *test, u32 len)
{
	struct qp_fixture *f = test->priv;
	u8 *p = page_address(f->page);
	u32 i, wrong = 0;

	for (i = 0; i < len; i++)
		wrong += p[i] != fix_byte(i % FIX_MTU);
	return wrong;
}

static void read_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	post_read(test, 3 * FIX_MTU + 5);
	fix_packet(test, RESP_FIRST, FIX_SQ_PSN, FIX_MTU);
	/*
	 * dropped: a duplicate response, a response of the wrong length, a response that ends the
	 * READ too early, and a response to an atomic
	 */
	fix_packet(test, RESP_FIRST, FIX_SQ_PSN, FIX_MTU);
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 1, 100);
	fix_packet(test, RESP_LAST, FIX_SQ_PSN + 1, FIX_MTU);
	fix_packet(test, ATOMIC_ACK, FIX_SQ_PSN + 1, 0);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + 1);
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 1, FIX_MTU);
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 2, FIX_MTU);
	fix_packet(test, RESP_LAST, FIX_SQ_PSN + 3, 5);
	KUNIT_EXPECT_EQ(test, wrong_bytes(test, 3 * FIX_MTU + 5), 0);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 1);
	KUNIT_EXPECT_EQ(test, f->qp->sq.rd_atomic, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_REQUEST, NULL), 1);
}

/*
 * If a response of a READ is missing, the requester requests the READ again from the missing
 * response on, but only once until the READ makes progress.
 */
static void implied_nak_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	post_read(test, 4 * FIX_MTU);
	fix_packet(test, RESP_FIRST, FIX_SQ_PSN, FIX_MTU);
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 2, FIX_MTU);
	fix_packet(test, RESP_LAST, FIX_SQ_PSN + 3, FIX_MTU);
	KUNIT_ASSERT_EQ(test, fix_sent(f, READ_REQUEST, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.va, FIX_MTU);
	KUNIT_EXPECT_EQ(test, sent.hdr.dmalen, 3 * FIX_MTU);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_IMPLIED_NAK), 2);
	/* late responses to the first READ request are accepted, so that the READ completes */
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 1, FIX_MTU);
	fix_packet(test, RESP_MIDDLE, FIX_SQ_PSN + 2, FIX_MTU);
	fix_packet(test, RESP_LAST, FIX_SQ_PSN + 3, FIX_MTU);
	KUNIT_EXPECT_EQ(test, wrong_bytes(test, 4 * FIX_MTU), 0);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 1);
}

/*
 * If no response of a READ has arrived, an ACK of a later SEND makes the requester retransmit the
 * READ. An RNR NAK or sequence NAK of the SEND completes no request, because the data of the READ
 * is missing. A NAK that refuses the READ completes the READ with an error.
 */
static void read_lost_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	post_read(test, 10);
	post_sends(test, 1);
	answer(test, NHCA_AETH_ACK, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_IMPLIED_NAK), 1);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_REQUEST, NULL), 2);
	answer(test, NHCA_AETH_RNR, FIX_SQ_PSN + 1);
	answer(test, NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 0);
	fix_packet(test, RESP_ONLY, FIX_SQ_PSN, 10);
	answer(test, NHCA_AETH_ACK, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 2);
	again(test);

	post_read(test, 3 * FIX_MTU);
	answer(test, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS, FIX_SQ_PSN + 2);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_REM_ACCESS_ERR), 1);
}

/* A READ whose region is gone when the response arrives completes with a protection error. */
static void read_fault_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	post_read(test, 10);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	fix_packet(test, RESP_ONLY, FIX_SQ_PSN, 10);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_LOC_PROT_ERR), 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_LOCAL_PROT_ERR), 1);
}

/* Two middle responses in one skb, without ICRC: nhca_ack_middle() places the second one. */
static void read_batch_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;

	post_read(test, 4 * FIX_MTU);
	fix_packet(test, RESP_FIRST, FIX_SQ_PSN, FIX_MTU);
	h = fix_hdr(f->qp, RESP_MIDDLE, FIX_SQ_PSN + 1);
	h.caps = NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK | NHCA_CAP_NO_ICRC;
	fix_deliver_batch(test, h, FIX_MTU, 2);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + 3);
	fix_packet(test, RESP_LAST, FIX_SQ_PSN + 3, FIX_MTU);
	KUNIT_EXPECT_EQ(test, wrong_bytes(test, 4 * FIX_MTU), 0);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 1);
}

static void atomic_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, ATOMIC_ACK, FIX_SQ_PSN);
	u64 *result = page_address(f->page) + 64;

	KUNIT_ASSERT_EQ(test, fix_post_atomic(f->qp, f->mr, IB_WR_ATOMIC_FETCH_AND_ADD, 64, 0, 1,
					      0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.rd_atomic, 1);
	h.orig = 0x1122334455667788;
	/* a READ response does not answer an atomic */
	fix_packet(test, RESP_ONLY, FIX_SQ_PSN, 8);
	KUNIT_EXPECT_EQ(test, *result, 0);
	fix_deliver(test, h, 0);
	KUNIT_EXPECT_EQ(test, *result, 0x1122334455667788);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 1);
	KUNIT_EXPECT_EQ(test, f->qp->sq.rd_atomic, 0);

	KUNIT_ASSERT_EQ(test, fix_post_atomic(f->qp, f->mr, IB_WR_ATOMIC_CMP_AND_SWP, 64, 0, 1, 0),
			0);
	nhca_send_doorbell(f->qp);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	h.psn = FIX_SQ_PSN + 1;
	fix_deliver(test, h, 0);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_LOC_PROT_ERR), 1);
}

/* After a go-back, packets that a late ACK covers are not sent again. */
static void late_ack_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	fix_timeout(f->qp);
	f->qp->sq.window.cwnd = NHCA_CWND_MAX;
	fix_post_send(test, f->qp, f->mr, 0, 4 * FIX_MTU, IB_SEND_SIGNALED);
	f->xmit_err = -ENETDOWN;
	fix_expire(f->qp);
	f->xmit_err = 0;
	KUNIT_EXPECT_EQ(test, f->nsent, 4);
	answer(test, NHCA_AETH_ACK, FIX_SQ_PSN + 2);
	KUNIT_EXPECT_EQ(test, f->nsent, 5);
	fix_sent(f, NHCA_SVC_RC | NHCA_OP_SEND_LAST, &sent);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 3);
	answer(test, NHCA_AETH_ACK, FIX_SQ_PSN + 3);
	KUNIT_EXPECT_EQ(test, completions(test, IB_WC_SUCCESS), 1);
}

/*
 * Pretend that the oldest request, which was sent as one packet, has @npsn packets, that all were
 * sent, and that all but the last are acknowledged.
 */
static void lengthen(struct nhca_qp *qp, u32 npsn)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr = list_first_entry(&sq->inflight, struct nhca_swr, list);

	swr->npsn = npsn;
	swr->sent = npsn;
	swr->high = npsn;
	sq->psn = nhca_psn_add(swr->psn, npsn);
	sq->nxt = sq->psn;
	sq->una = nhca_psn_add(sq->psn, -1);
}

/*
 * 2 GiB at a path MTU of 256 bytes are 2^23 packets: half of all PSNs. The ACK of the last packet
 * completes the message, and so does an ACK of later messages.
 */
static void longest_test(struct kunit *test)
{
	static const struct {
		u32 npsn, after;
	} rows[] = {
		{ 0x800000, 0 }, { 0x800000, 3 }, { 0x7fffff, 0 }, { 0x7fffff, 4 },
		{ 0x7fff80, 200 },
	};
	struct qp_fixture *f = test->priv;
	u32 i, k, psn;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f->qp->sq.window.cwnd = NHCA_CWND_MAX;
		post_sends(test, 1);
		lengthen(f->qp, rows[i].npsn);
		psn = nhca_psn_add(FIX_SQ_PSN, rows[i].npsn);
		/*
		 * The ring has too few entries (32) for 200 messages, so post 3 at most. The third
		 * message gets all packets of rows[i].after that the first two do not have.
		 */
		for (k = 0; k < min(rows[i].after, 3U); k++)
			post_sends(test, 1);
		if (rows[i].after > 3) {
			f->qp->sq.nxt = nhca_psn_add(psn, rows[i].after);
			f->qp->sq.psn = f->qp->sq.nxt;
			list_last_entry(&f->qp->sq.inflight, struct nhca_swr, list)->npsn =
				rows[i].after - 2;
			list_last_entry(&f->qp->sq.inflight, struct nhca_swr, list)->sent =
				rows[i].after - 2;
		}
		psn = nhca_psn_add(psn, rows[i].after);
		answer(test, NHCA_AETH_ACK, psn - 1);
		KUNIT_EXPECT_EQ_MSG(test, f->qp->sq.una, psn, "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, completions(test, IB_WC_SUCCESS),
				    1 + min(rows[i].after, 3U), "entry %u", i);
		KUNIT_EXPECT_TRUE(test, list_empty(&f->qp->sq.inflight));
		again(test);
	}
}

static struct kunit_case ack_cases[] = {
	KUNIT_CASE(aeth_table_test),
	KUNIT_CASE(seq_nak_retries_test),
	KUNIT_CASE(rnr_test),
	KUNIT_CASE(read_test),
	KUNIT_CASE(implied_nak_test),
	KUNIT_CASE(read_lost_test),
	KUNIT_CASE(read_fault_test),
	KUNIT_CASE(read_batch_test),
	KUNIT_CASE(atomic_test),
	KUNIT_CASE(late_ack_test),
	KUNIT_CASE(longest_test),
	{}
};

static struct kunit_suite ack_suite = {
	.name = "nhca_ack",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = ack_cases,
};

kunit_test_suite(ack_suite);
