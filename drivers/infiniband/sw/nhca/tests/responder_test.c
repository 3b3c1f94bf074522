// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what the responder executes, refuses and drops (IBTA 9.7.4 for RC, 9.8.2 for UC, A19 for
 * ATOMIC WRITE and FLUSH).
 */
#include <linux/scatterlist.h>

#include "../observe/inject.h"
#include "qp_fixture.h"

#define OP(op)		(NHCA_SVC_RC | NHCA_OP_##op)
#define UC(op)		(NHCA_SVC_UC | NHCA_OP_##op)
#define ACK		OP(ACK)
#define NAK(code)	(NHCA_AETH_NAK | NHCA_NAK_##code)
#define MAY_R		IB_ACCESS_REMOTE_READ
#define MAY_W		IB_ACCESS_REMOTE_WRITE
#define MAY_A		IB_ACCESS_REMOTE_ATOMIC
#define GLOBAL		IB_ACCESS_FLUSH_GLOBAL

static u8 *page(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	return page_address(f->page);
}

static bool page_is_clear(struct kunit *test)
{
	return !memchr_inv(page(test), 0, PAGE_SIZE);
}

static void again(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	while (fix_poll(f->cq, &cqe))
		;
	memset(page(test), 0, PAGE_SIZE);
	f->nsent = 0;
}

/* Return: request @psn, counted from the first, for @len bytes at @va of the region. */
static struct nhca_hdr request(struct kunit *test, u8 opcode, u32 psn, u64 va, u32 len)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, FIX_RQ_PSN + psn);

	h.rkey = f->mr->ibmr.rkey;
	h.va = va;
	h.dmalen = len;
	h.imm = htonl(0x12345678);
	h.swap_add = 1;
	h.flush_type = NHCA_FETH_GLOBAL;
	return h;
}

/*
 * Expect that the newest packet is an acknowledgment for request @psn, and that its AETH has
 * @syndrome.
 */
static void expect_aeth(struct kunit *test, u8 syndrome, u32 psn, const char *what)
{
	struct qp_fixture *f = test->priv;
	struct sent *last = &f->sent[(f->nsent - 1) % FIX_SENT];

	KUNIT_ASSERT_GT_MSG(test, f->nsent, 0, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, last->hdr.opcode, ACK, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, last->hdr.syndrome, syndrome, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, last->hdr.psn, FIX_RQ_PSN + psn, "%s", what);
}

/* ---- RC: what is refused ---- */

static const struct refusal {
	const char *what;
	u8 opcode;
	/* access flags of the QP */
	int access;
	u64 va;
	u32 len, payload;
	/* no_resources: the QP has no responder resources for the request */
	bool other_key, no_resources;
	u8 type, level;
	/* bytes of the receive that is posted; 0: no receive is posted */
	u32 receive;
	u8 nak;
	/* status of the receive; IB_WC_SUCCESS: not checked */
	enum ib_wc_status status;
} refusals[] = {
	{ "WRITE not allowed", OP(WRITE_ONLY), MAY_R, 0, 8, 8, .nak = NAK(INVALID_REQ) },
	{ "WRITE too long", OP(WRITE_FIRST), MAY_W, 0, NHCA_MAX_MSG_SIZE + 1, FIX_MTU,
	  .nak = NAK(INVALID_REQ) },
	{ "WRITE longer than its RETH", OP(WRITE_ONLY), MAY_W, 0, 8, 12, .nak = NAK(INVALID_REQ) },
	{ "WRITE shorter than its RETH", OP(WRITE_ONLY), MAY_W, 0, 8, 4, .nak = NAK(INVALID_REQ) },
	{ "WRITE that should end", OP(WRITE_FIRST), MAY_W, 0, FIX_MTU, FIX_MTU,
	  .nak = NAK(INVALID_REQ) },
	{ "WRITE with another key", OP(WRITE_ONLY), MAY_W, 0, 8, 8, true, .nak = NAK(REM_ACCESS) },
	{ "WRITE outside", OP(WRITE_ONLY), MAY_W, PAGE_SIZE - 7, 8, 8, .nak = NAK(REM_ACCESS) },
	{ "long WRITE outside", OP(WRITE_FIRST), MAY_W, PAGE_SIZE - 2 * FIX_MTU + 1, 2 * FIX_MTU,
	  FIX_MTU, .nak = NAK(REM_ACCESS) },
	{ "WRITE with immediate outside", OP(WRITE_ONLY_IMM), MAY_W, PAGE_SIZE, 8, 8,
	  .nak = NAK(REM_ACCESS) },
	{ "WRITE with immediate outside, with a receive", OP(WRITE_ONLY_IMM), MAY_W, PAGE_SIZE, 8,
	  8, .receive = 16, .nak = NAK(REM_ACCESS), .status = IB_WC_LOC_ACCESS_ERR },
	{ "READ not allowed", OP(READ_REQUEST), MAY_W, 0, 8, .nak = NAK(INVALID_REQ) },
	{ "READ too long", OP(READ_REQUEST), MAY_R, 0, NHCA_MAX_MSG_SIZE + 1,
	  .nak = NAK(INVALID_REQ) },
	{ "READ outside", OP(READ_REQUEST), MAY_R, PAGE_SIZE - 7, 8, .nak = NAK(REM_ACCESS) },
	{ "long READ outside", OP(READ_REQUEST), MAY_R, 1, PAGE_SIZE, .nak = NAK(REM_ACCESS) },
	{ "READ without resources", OP(READ_REQUEST), MAY_R, 0, 8, .no_resources = true,
	  .nak = NAK(INVALID_REQ) },
	{ "atomic not allowed", OP(FETCH_ADD), MAY_R | MAY_W, 0, 8, .nak = NAK(INVALID_REQ) },
	{ "atomic unaligned", OP(CMP_SWAP), MAY_A, 4, 8, .nak = NAK(INVALID_REQ) },
	{ "atomic outside", OP(FETCH_ADD), MAY_A, PAGE_SIZE, 8, .nak = NAK(REM_ACCESS) },
	{ "atomic without resources", OP(FETCH_ADD), MAY_A, 0, 8, .no_resources = true,
	  .nak = NAK(INVALID_REQ) },
	{ "ATOMIC WRITE not allowed", OP(ATOMIC_WRITE), MAY_A, 0, 8, 8,
	  .nak = NAK(INVALID_REQ) },
	{ "ATOMIC WRITE unaligned", OP(ATOMIC_WRITE), MAY_W, 4, 8, 8, .nak = NAK(INVALID_REQ) },
	{ "ATOMIC WRITE of 16 bytes", OP(ATOMIC_WRITE), MAY_W, 0, 16, 16,
	  .nak = NAK(INVALID_REQ) },
	{ "ATOMIC WRITE of 4 bytes", OP(ATOMIC_WRITE), MAY_W, 0, 8, 4, .nak = NAK(INVALID_REQ) },
	{ "ATOMIC WRITE outside", OP(ATOMIC_WRITE), MAY_W, PAGE_SIZE, 8, 8,
	  .nak = NAK(REM_ACCESS) },
	{ "ATOMIC WRITE without resources", OP(ATOMIC_WRITE), MAY_W, 0, 8, 8,
	  .no_resources = true, .nak = NAK(INVALID_REQ) },
	{ "FLUSH not allowed", OP(FLUSH), MAY_W, 0, 8, .type = NHCA_FETH_GLOBAL,
	  .nak = NAK(INVALID_REQ) },
	{ "FLUSH of no type", OP(FLUSH), GLOBAL, 0, 8, .nak = NAK(INVALID_REQ) },
	{ "FLUSH of a type not allowed", OP(FLUSH), GLOBAL, 0, 8,
	  .type = NHCA_FETH_GLOBAL | NHCA_FETH_PERSISTENT, .nak = NAK(INVALID_REQ) },
	{ "FLUSH of a reserved type", OP(FLUSH), GLOBAL, 0, 8, .type = NHCA_FETH_GLOBAL | 4,
	  .nak = NAK(INVALID_REQ) },
	{ "FLUSH of a reserved level", OP(FLUSH), GLOBAL, 0, 8, .type = NHCA_FETH_GLOBAL,
	  .level = 2, .nak = NAK(INVALID_REQ) },
	/* the request names the region of the fixture, whose access flags grant no FLUSH */
	{ "FLUSH with a key that forbids it", OP(FLUSH), GLOBAL, 0, 8, .type = NHCA_FETH_GLOBAL,
	  .nak = NAK(REM_ACCESS) },
	{ "FLUSH without resources", OP(FLUSH), GLOBAL, 0, 8, .type = NHCA_FETH_GLOBAL,
	  .no_resources = true, .nak = NAK(INVALID_REQ) },
	{ "SEND that did not begin", OP(SEND_MIDDLE), 0, .payload = FIX_MTU, .receive = PAGE_SIZE,
	  .nak = NAK(INVALID_REQ) },
	{ "SEND of a wrong length", OP(SEND_FIRST), 0, .payload = FIX_MTU - 4,
	  .receive = PAGE_SIZE, .nak = NAK(INVALID_REQ) },
	{ "SEND too long for its receive", OP(SEND_ONLY), 0, .payload = 12, .receive = 11,
	  .nak = NAK(INVALID_REQ), .status = IB_WC_LOC_LEN_ERR },
	{ "SEND that invalidates no key", OP(SEND_ONLY_INV), 0, .payload = 0, .receive = 16,
	  .nak = NAK(REM_ACCESS), .status = IB_WC_LOC_QP_OP_ERR },
};

static void refuse(struct kunit *test, const struct refusal *r)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, r->opcode, 0, r->va, r->len);
	enum nhca_counter counter = r->nak == NAK(REM_ACCESS) ? NHCA_CNT_SENT_ACCESS_NAK :
								NHCA_CNT_SENT_INVAL_NAK;
	u64 before = fix_count(f, counter);
	u32 nres = f->qp->rq.nres;
	struct nhca_cqe cqe;

	f->qp->attr.qp_access_flags = r->access;
	h.flush_type = r->type;
	h.flush_level = r->level;
	if (r->other_key)
		h.rkey += 256;
	if (r->no_resources)
		f->qp->rq.nres = 0;
	if (r->receive)
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, r->receive);
	fix_deliver(test, h, r->payload);
	f->qp->rq.nres = nres;
	KUNIT_EXPECT_EQ_MSG(test, f->nsent, 1, "%s", r->what);
	expect_aeth(test, r->nak, 0, r->what);
	KUNIT_EXPECT_EQ_MSG(test, fix_count(f, counter), before + 1, "%s", r->what);
	KUNIT_EXPECT_EQ_MSG(test, f->qp->state, IB_QPS_ERR, "%s", r->what);
	KUNIT_EXPECT_EQ_MSG(test, f->qp->rq.psn, FIX_RQ_PSN, "%s", r->what);
	KUNIT_EXPECT_TRUE_MSG(test, page_is_clear(test), "%s", r->what);
	if (r->status) {
		KUNIT_ASSERT_TRUE_MSG(test, fix_poll(f->cq, &cqe), "%s", r->what);
		KUNIT_EXPECT_EQ_MSG(test, cqe.status, r->status, "%s", r->what);
	}
	again(test);
}

/*
 * A request that the specification forbids gets the NAK that the specification names, and does not
 * change memory.
 */
static void refuse_test(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		refuse(test, &refusals[i]);
}

/*
 * If a receive has a wrong L_Key or too many SGEs, or if the producer index is wrong, the request
 * that needs the receive gets a NAK. The receive completes in error, except if the producer index
 * is wrong.
 */
static void bad_receive_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rwq *wq = &f->qp->rq.wq;
	struct nhca_recv_wqe *wqe;
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < 3; i++) {
		fix_post_recv(test, wq, f->mr, 16, 100);
		wqe = nhca_ring_slot(&wq->ring, wq->cons);
		if (i == 0)
			wqe->sge[0].lkey += 256;
		else if (i == 1)
			wqe->num_sge = wq->max_sge + 1;
		else
			WRITE_ONCE(wq->ring.hdr->prod, wq->cons - 1);
		fix_deliver(test, request(test, OP(SEND_ONLY), 0, 0, 0), 10);
		expect_aeth(test, NAK(REM_OP), 0, "bad receive");
		KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
		KUNIT_EXPECT_TRUE(test, page_is_clear(test));
		KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENT_OP_NAK), i + 1);
		/*
		 * if the producer index is wrong, the responder cannot tell which receive to
		 * complete
		 */
		KUNIT_ASSERT_EQ(test, fix_poll(f->cq, &cqe), i < 2);
		if (i < 2)
			KUNIT_EXPECT_EQ(test, cqe.status,
					i ? IB_WC_LOC_QP_OP_ERR : IB_WC_LOC_PROT_ERR);
		KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_BAD_RING), i == 2);
		WRITE_ONCE(wq->ring.hdr->prod, wq->prod);
		again(test);
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_LOCAL_PROT_ERR), 1);
}

/* ---- RC: what is executed ---- */

/*
 * ATOMIC WRITE writes 8 bytes once, although the request arrives twice. The response is a READ
 * response without data.
 */
static void atomic_write_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(ATOMIC_WRITE), 0, 64, 8);
	u64 *at = (u64 *)(page(test) + 64);
	u64 value = 0x1122334455667788;
	struct sent sent;
	u32 i;

	f->data = (u8 *)&value;
	for (i = 0; i < 2; i++) {
		fix_deliver(test, h, 8);
		KUNIT_ASSERT_EQ(test, fix_sent(f, OP(READ_RESP_ONLY), &sent), i + 1);
		KUNIT_EXPECT_EQ(test, sent.payload, 0);
		KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);
		KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT);
		/*
		 * a duplicate is answered but not executed, so the 5 that this test has stored
		 * stays
		 */
		KUNIT_EXPECT_EQ(test, *at, i ? 5 : value);
		*at = 5;
	}
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, at[1], 0);
	f->data = NULL;
}

/* FLUSH of a range or of a whole region is answered by a READ response without data. */
static void flush_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->pd, GLOBAL | MAY_W);
	struct nhca_hdr h;
	struct sent sent;
	u32 i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, &f->page, 1, 0, true), 0);
	nhca_mr_start(mr, 0, PAGE_SIZE);
	f->qp->attr.qp_access_flags = GLOBAL;
	for (i = 0; i < 2; i++) {
		h = request(test, OP(FLUSH), i, 8, 16);
		h.rkey = mr->ibmr.rkey;
		h.flush_level = i ? NHCA_FETH_REGION : NHCA_FETH_RANGE;
		/*
		 * a FLUSH of the whole region succeeds although its address is outside the region,
		 * because the responder ignores the range
		 */
		if (i)
			h.va = 2 * PAGE_SIZE;
		fix_deliver(test, h, 0);
		KUNIT_ASSERT_EQ(test, fix_sent(f, OP(READ_RESP_ONLY), &sent), i + 1);
		KUNIT_EXPECT_EQ(test, sent.payload, 0);
		KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN + i);
	}
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	/* FLUSH of a range outside the region */
	h = request(test, OP(FLUSH), 2, PAGE_SIZE - 7, 8);
	h.rkey = mr->ibmr.rkey;
	fix_deliver(test, h, 0);
	expect_aeth(test, NAK(REM_ACCESS), 2, "FLUSH outside");
	nhca_mr_free(mr);
}

/*
 * The completion of a receive has the immediate data of the SEND or WRITE. A WRITE with immediate
 * that finds no receive gets an RNR NAK and places no data.
 */
static void immediate_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(SEND_ONLY_IMM), 0, 0, 0);
	struct nhca_cqe cqe;
	u32 i;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 2048, 100);
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, cqe.ex.imm_data, (__force u32)h.imm);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, 10);

	/*
	 * without a receive: the RNR NAK is sent before data is placed, because the request must
	 * have no effect
	 */
	h = request(test, OP(WRITE_ONLY_IMM), 1, 512, 20);
	fix_deliver(test, h, 20);
	expect_aeth(test, NHCA_AETH_RNR | 1, 1, "WRITE without a receive");
	KUNIT_EXPECT_NULL(test, memchr_inv(page(test) + 512, 0, 20));
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 2048, 100);
	fix_deliver(test, h, 20);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, 20);
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, page(test)[512 + i], fix_byte(i));
}

/*
 * If the key of a WRITE with immediate is closed before the last packet of the WRITE, the receive
 * completes in error.
 */
static void closed_write_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr last = request(test, OP(WRITE_LAST_IMM), 1, 0, 0);
	struct nhca_cqe cqe;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 2048, 100);
	fix_deliver(test, request(test, OP(WRITE_FIRST), 0, 0, FIX_MTU + 8), FIX_MTU);
	KUNIT_ASSERT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	fix_deliver(test, last, 8);
	expect_aeth(test, NAK(REM_ACCESS), 1, "WRITE through a closed key");
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_ACCESS_ERR);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
}

/* A SEND with invalidate closes the key before the receive completes. */
static void invalidate_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = nhca_mr_fast(f->dev, f->pd, 1, false);
	struct nhca_hdr h = request(test, OP(SEND_ONLY_INV), 0, 0, 0);
	struct scatterlist sg;
	struct nhca_cqe cqe;
	int err;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->page_size = PAGE_SIZE;
	sg_init_table(&sg, 1);
	sg_set_page(&sg, f->page, PAGE_SIZE, 0);
	sg_dma_address(&sg) = (uintptr_t)page(test);
	sg_dma_len(&sg) = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(mr, &sg, 1, NULL), 1);
	local_bh_disable();
	err = nhca_reg_fast(&f->qp->key_user, mr->lkey, mr->rkey, IB_ACCESS_LOCAL_WRITE | MAY_W);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, err, 0);

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.inv_rkey = mr->rkey;
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_WITH_INV);
	KUNIT_EXPECT_EQ(test, cqe.ex.invalidated_rkey, mr->rkey);
	h = request(test, OP(WRITE_ONLY), 1, mr->iova, 8);
	h.rkey = mr->rkey;
	fix_deliver(test, h, 8);
	expect_aeth(test, NAK(REM_ACCESS), 1, "WRITE after the invalidate");
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * MIDDLE packets that have no ICRC and arrive in one batch are executed as if they had arrived one
 * by one.
 */
static void middle_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	bool write;
	struct nhca_hdr h;
	struct nhca_cqe cqe;
	u32 i, wrong;

	for (write = false;; write = true) {
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, PAGE_SIZE);
		h = request(test, write ? OP(WRITE_FIRST) : OP(SEND_FIRST), 0, 0, PAGE_SIZE);
		fix_deliver(test, h, FIX_MTU);
		h = request(test, write ? OP(WRITE_MIDDLE) : OP(SEND_MIDDLE), 1, 0, 0);
		h.caps = NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK |
			 NHCA_CAP_NO_ICRC;
		fix_deliver_batch(test, h, FIX_MTU, 2);
		KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 3);
		h = request(test, write ? OP(WRITE_LAST) : OP(SEND_LAST), 3, 0, 0);
		h.ackreq = true;
		fix_deliver(test, h, FIX_MTU);
		expect_aeth(test, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT, 3, "batch");
		for (i = 0, wrong = 0; i < PAGE_SIZE; i++)
			wrong += page(test)[i] != fix_byte(i % FIX_MTU);
		KUNIT_EXPECT_EQ(test, wrong, 0);
		KUNIT_EXPECT_EQ(test, fix_poll(f->cq, &cqe), !write);
		KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_PKTS), write ? 8 : 4);
		if (write)
			break;
		again(test);
	}
}

/*
 * Pause the responder after a packet of its response: the next packet gets -EAGAIN, as from a full
 * queue.
 */
static void pause_sending(struct qp_fixture *f, const struct nhca_tx *tx, const u8 *payload)
{
	f->xmit_err = -EAGAIN;
}

/*
 * If the key of a READ is closed after the first packet of the response was sent, the responder
 * sends no more data. Instead it sends a NAK with the PSN of the second packet.
 */
static void revoked_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	f->wire = pause_sending;
	fix_deliver(test, request(test, OP(READ_REQUEST), 0, 0, 3 * FIX_MTU), 0);
	KUNIT_ASSERT_EQ(test, f->nsent, 1);
	KUNIT_EXPECT_EQ(test, f->sent[0].hdr.opcode, OP(READ_RESP_FIRST));
	nhca_mr_free(f->mr);
	f->mr = NULL;
	f->xmit_err = 0;
	f->wire = NULL;
	spin_lock_bh(&f->qp->rq.lock);
	rcu_read_lock();
	nhca_resp_run(f->qp);
	rcu_read_unlock();
	spin_unlock_bh(&f->qp->rq.lock);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	expect_aeth(test, NAK(REM_ACCESS), 1, "READ through a closed key");
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENT_ACCESS_NAK), 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, f->qp->rq.res_tail, f->qp->rq.res_head);
}

/* ---- fault injection ---- */

static void no_link(struct work_struct *work)
{
}

static u32 place_of(u32 qpn)
{
	return 0;
}

/*
 * A rule of fault injection makes the responder answer one request with the NAK that the rule
 * names. The rule for RNR applies although a receive is posted.
 */
static void inject_test(struct kunit *test)
{
	static const struct {
		const char *rule;
		u8 syndrome;
		enum ib_qp_state state;
	} rows[] = {
		{ "add nak sequence times 1", NAK(PSN_SEQ), IB_QPS_RTS },
		{ "add nak invalid times 1", NAK(INVALID_REQ), IB_QPS_ERR },
		{ "add nak access times 1", NAK(REM_ACCESS), IB_QPS_ERR },
		{ "add nak operational times 1", NAK(REM_OP), IB_QPS_ERR },
		{ "add rnr times 1", NHCA_AETH_RNR | 1, IB_QPS_RTS },
	};
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(SEND_ONLY), 0, 0, 0);
	char text[64];
	u32 i;

	f->dev->inject = nhca_inject_create(f->dev, no_link);
	KUNIT_ASSERT_NOT_NULL(test, f->dev->inject);
	h.ackreq = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		strscpy(text, rows[i].rule, sizeof(text));
		KUNIT_ASSERT_EQ(test, nhca_inject_write(f->dev->inject, text, 0, place_of), 0);
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
		fix_deliver(test, h, 10);
		expect_aeth(test, rows[i].syndrome, 0, rows[i].rule);
		KUNIT_EXPECT_EQ_MSG(test, f->qp->state, rows[i].state, "%s", rows[i].rule);
		KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN);
		KUNIT_EXPECT_TRUE(test, page_is_clear(test));
		if (rows[i].state == IB_QPS_RTS) {
			/*
			 * the rule was for one request, so the same request is executed when it
			 * arrives again
			 */
			fix_deliver(test, h, 10);
			expect_aeth(test, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT, 0, rows[i].rule);
		}
		strscpy(text, "clear", sizeof(text));
		KUNIT_ASSERT_EQ(test, nhca_inject_write(f->dev->inject, text, 0, place_of), 0);
		again(test);
	}
	nhca_inject_destroy(f->dev->inject);
	f->dev->inject = NULL;
}

/* ---- UC ---- */

static int uc_init(struct kunit *test)
{
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;

	if (err)
		return err;
	fix_destroy(&f->qp);
	f->qp = fix_qp(test, IB_QPT_UC, NULL);
	fix_connect(test, f->qp);
	return 0;
}

/* Expect that the CQ has @n completions of receives, each for @len bytes, and clear the page. */
static void expect_messages(struct kunit *test, u32 n, u32 len)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 i, wrong = 0;

	for (i = 0; i < len && n; i++)
		wrong += page(test)[i] != fix_byte(i % FIX_MTU);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	for (; n; n--) {
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
	}
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	/* UC has no responses, and an error of the peer does not change the state of a UC QP */
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	memset(page(test), 0, PAGE_SIZE);
}

static void uc_packet(struct kunit *test, u8 opcode, u32 psn, u32 payload)
{
	fix_deliver(test, request(test, opcode, psn, 0, 0), payload);
}

/*
 * If a packet of a SEND is missing, the whole SEND is dropped, and the next SEND uses the same
 * receive. A UC message may begin with any PSN, because lost packets are not sent again.
 */
static void uc_send_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	uc_packet(test, UC(SEND_ONLY), 0, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 1);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 3 * FIX_MTU);
	uc_packet(test, UC(SEND_FIRST), 1, FIX_MTU);
	uc_packet(test, UC(SEND_LAST), 3, 10);
	expect_messages(test, 0, 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_OUT_OF_SEQ_REQUEST), 1);
	/*
	 * without effect: further packets of the dropped SEND, and a SEND whose FIRST packet is
	 * shorter than the MTU
	 */
	uc_packet(test, UC(SEND_MIDDLE), 4, FIX_MTU);
	uc_packet(test, UC(SEND_LAST), 5, 10);
	uc_packet(test, UC(SEND_FIRST), 6, FIX_MTU - 4);
	uc_packet(test, UC(SEND_LAST), 7, 10);
	expect_messages(test, 0, 0);
	uc_packet(test, UC(SEND_FIRST), 20, FIX_MTU);
	uc_packet(test, UC(SEND_MIDDLE), 21, FIX_MTU);
	uc_packet(test, UC(SEND_LAST), 22, 10);
	expect_messages(test, 1, 2 * FIX_MTU + 10);
}

/*
 * If a SEND begins before the previous SEND has ended, it uses the receive of the previous SEND,
 * because the rest of the previous SEND was lost.
 */
static void uc_restart_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 3 * FIX_MTU);
	uc_packet(test, UC(SEND_FIRST), 0, FIX_MTU);
	uc_packet(test, UC(SEND_MIDDLE), 1, FIX_MTU);
	uc_packet(test, UC(SEND_FIRST), 2, FIX_MTU);
	uc_packet(test, UC(SEND_LAST), 3, 20);
	expect_messages(test, 1, FIX_MTU + 20);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_OUT_OF_SEQ_REQUEST), 0);
}

/*
 * On UC, a SEND longer than its receive, a WRITE outside the region and a WRITE that is not allowed
 * are dropped without a NAK.
 */
static void uc_drop_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 11);
	uc_packet(test, UC(SEND_ONLY), 0, 12);
	expect_messages(test, 0, 0);
	uc_packet(test, UC(SEND_ONLY), 1, 11);
	expect_messages(test, 1, 11);

	h = request(test, UC(WRITE_ONLY), 2, PAGE_SIZE - 7, 8);
	fix_deliver(test, h, 8);
	f->qp->attr.qp_access_flags = MAY_R;
	h = request(test, UC(WRITE_ONLY), 3, 0, 8);
	fix_deliver(test, h, 8);
	KUNIT_EXPECT_TRUE(test, page_is_clear(test));
	expect_messages(test, 0, 0);
	f->qp->attr.qp_access_flags = MAY_W;
	h = request(test, UC(WRITE_ONLY), 4, 0, 8);
	fix_deliver(test, h, 8);
	KUNIT_EXPECT_EQ(test, page(test)[7], fix_byte(7));
	KUNIT_EXPECT_EQ(test, page(test)[8], 0);
}

static struct kunit_case responder_cases[] = {
	KUNIT_CASE(refuse_test),
	KUNIT_CASE(bad_receive_test),
	KUNIT_CASE(atomic_write_test),
	KUNIT_CASE(flush_test),
	KUNIT_CASE(immediate_test),
	KUNIT_CASE(closed_write_test),
	KUNIT_CASE(invalidate_test),
	KUNIT_CASE(middle_test),
	KUNIT_CASE(revoked_test),
	KUNIT_CASE(inject_test),
	{}
};

static struct kunit_suite responder_suite = {
	.name = "nhca_responder",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = responder_cases,
};

static struct kunit_case uc_cases[] = {
	KUNIT_CASE(uc_send_test),
	KUNIT_CASE(uc_restart_test),
	KUNIT_CASE(uc_drop_test),
	{}
};

static struct kunit_suite uc_suite = {
	.name = "nhca_responder_uc",
	.init = uc_init,
	.exit = qp_fixture_exit,
	.test_cases = uc_cases,
};

kunit_test_suites(&responder_suite, &uc_suite);
