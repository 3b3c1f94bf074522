// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what packets may do to a queue pair by what they say: capability bits, marks of a QP of
 * this host, gaps, congestion.  The attacker of these tests knows addresses and numbers of queue
 * pairs, but no PSN.  And where receives may be placed.
 */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define UC_SEND_ONLY	(NHCA_SVC_UC | NHCA_OP_SEND_ONLY)
#define HERE		(NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK)
/* PSNs that an attacker may try, from the expected ones: none is within a window */
static const s32 guesses[] = { -0x700000, -0x1000, -257, 257, 0x1000, 0x10000, 0x700000 };

static struct nhca_hdr noticed(struct nhca_qp *qp, u8 opcode, u32 psn, u8 notice)
{
	struct nhca_hdr h = fix_hdr(qp, opcode, psn);

	h.caps = notice;
	return h;
}

/* Packets with wrong PSNs that say that they are of an nhca; nobody believes it. */
static void guess(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(guesses); i++) {
		fix_deliver(test, noticed(f->qp, ACK, FIX_SQ_PSN + guesses[i], HERE), 0);
		fix_deliver(test, noticed(f->qp, SEND_ONLY, FIX_RQ_PSN + guesses[i], HERE), 10);
		KUNIT_EXPECT_EQ_MSG(test, f->qp->peer, 0, "PSN off by %d", guesses[i]);
	}
}

/* Such packets without the bits do not take them back, either. */
static void stray(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_deliver(test, fix_hdr(f->qp, ACK, FIX_SQ_PSN), 0);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 1000), 10);
	KUNIT_EXPECT_EQ(test, f->qp->peer, HERE);
}

/* Capability bits are believed in packets with the right PSN, and in no others. */
static void notice_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	guess(test);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_FALSE(test, sent.hdr.caps & NHCA_CAP_NO_ICRC);

	fix_deliver(test, noticed(f->qp, ACK, FIX_SQ_PSN, HERE), 0);
	KUNIT_EXPECT_EQ(test, f->qp->peer, HERE);
	stray(test);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN), 10);
	KUNIT_EXPECT_EQ(test, f->qp->peer, 0);
}

/* A message of UC may begin with any PSN: whoever sends one is believed no bits. */
static void uc_notice_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *qp = fix_qp(test, IB_QPT_UC, NULL);

	fix_connect(test, qp);
	fix_post_recv(test, &qp->rq.wq, f->mr, 0, 100);
	fix_post_recv(test, &qp->rq.wq, f->mr, 0, 100);
	fix_post_recv(test, &qp->rq.wq, f->mr, 0, 100);
	fix_deliver(test, noticed(qp, UC_SEND_ONLY, FIX_RQ_PSN, NHCA_CAP_PRESENT), 10);
	KUNIT_EXPECT_EQ(test, qp->peer, NHCA_CAP_PRESENT);
	fix_deliver(test, noticed(qp, UC_SEND_ONLY, FIX_RQ_PSN + 77, HERE), 10);
	KUNIT_EXPECT_EQ(test, qp->peer, NHCA_CAP_PRESENT);
	fix_deliver(test, noticed(qp, UC_SEND_ONLY, FIX_RQ_PSN + 78, HERE), 10);
	KUNIT_EXPECT_EQ(test, qp->peer, NHCA_CAP_PRESENT);
	fix_destroy(&qp);
}

/* A peer that says nothing may be another, or not understand: the first packet again is plain. */
static void plain_again_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	f->qp->attr.timeout = 14;
	f->qp->sq.times->timeout = HZ;
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	fix_deliver(test, noticed(f->qp, ACK, FIX_SQ_PSN, HERE), 0);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_TRUE(test, sent.hdr.caps & NHCA_CAP_NO_ICRC);

	/* long ago, and answers come at once as a rule */
	local_bh_disable();
	f->qp->sq.times->rto = 1;
	f->qp->sq.times->since = jiffies - 10 * HZ;
	nhca_sq_timer(&f->qp->sq.timer);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 3);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_FALSE(test, sent.hdr.caps & NHCA_CAP_NO_ICRC);
}

/* Nobody who guesses PSNs makes us tell the peer to go back. */
static void gap_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 0x10000), 10);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 0x7fffff), 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), 0);
	/* a gap that there may be */
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 3), 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), 1);
}

/* Marks of congestion count in packets that are accepted, and one CNP answers them. */
static void congestion_mark_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	f->ce = true;
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 5000), 10);
	fix_deliver(test, fix_hdr(f->qp, ACK, FIX_SQ_PSN + 5000), 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_OPCODE_CNP, NULL), 0);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN), 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_OPCODE_CNP, NULL), 1);
}

static void cnp(struct kunit *test, struct nhca_qp *qp)
{
	struct nhca_hdr h = fix_hdr(qp, NHCA_OPCODE_CNP, 0);

	h.becn = true;
	qp->sq.times->cnp_at = jiffies - 10 * HZ;
	fix_deliver(test, h, 0);
}

/* A CNP shrinks the window only if packets are under way that could have been marked. */
static void cnp_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 window = f->qp->sq.cwnd;

	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.cwnd, window);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	f->qp->av->tclass = 0;
	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.cwnd, window);
	f->qp->av->tclass = 2;
	cnp(test, f->qp);
	KUNIT_EXPECT_LT(test, f->qp->sq.cwnd, window);
	fix_state(test, f->qp, IB_QPS_ERR);
	f->qp->sq.cwnd = window;
	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.cwnd, window);
}

/* ---- other namespaces of this host ---- */

/* A packet, BARE, comes in by the namespace @nn, from the address @saddr. */
static noinline_for_stack void deliver_from(struct kunit *test, struct nhca_net *nn, u32 saddr,
					    u8 opcode, u32 psn, u32 payload)
{
	struct qp_fixture *f = test->priv;
	/* its UDP checksum holds, so that no ICRC has to be made again */
	struct nhca_hdr h = noticed(f->qp, opcode, psn, HERE | NHCA_CAP_NO_ICRC);
	struct sk_buff *skb = fix_skb(test, &h, payload, 1);

	ip_hdr(skb)->saddr = htonl(saddr);
	local_bh_disable();
	nhca_rx_late(nn, skb);
	local_bh_enable();
	kfree_skb(skb);
}

/* A request, a response and a congestion notification, as only the peer may send them. */
static void deliver_three(struct kunit *test, struct nhca_net *nn, u32 saddr)
{
	deliver_from(test, nn, saddr, SEND_ONLY, FIX_RQ_PSN, 10);
	deliver_from(test, nn, saddr, ACK, FIX_SQ_PSN, 0);
	deliver_from(test, nn, saddr, NHCA_OPCODE_CNP, 0, 0);
}

/*
 * A container has the peer's address, QP number, and even the right PSN, in a namespace of its own:
 * its packets reach nothing of this QP, and count as nothing that the QP has received.  The same
 * for another address in this QP's namespace.
 */
static void other_namespace_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_net *other = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u64 packets, bytes, cnps, refused;
	struct nhca_cqe cqe;

	KUNIT_ASSERT_NOT_NULL(test, other);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	packets = fix_count(f, NHCA_CNT_RCVD_PKTS);
	bytes = fix_count(f, NHCA_CNT_RCVD_BYTES);
	cnps = fix_count(f, NHCA_CNT_CNP_RCVD);
	refused = fix_count(f, NHCA_CNT_RX_BAD_ADDR);
	deliver_three(test, other, FIX_DADDR);
	deliver_three(test, f->dev->nn, FIX_DADDR + 1);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN);
	KUNIT_EXPECT_EQ(test, f->qp->peer, 0);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_PKTS), packets);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_BYTES), bytes);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_CNP_RCVD), cnps);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_ADDR), refused + 4);

	/* the control: the same from the peer */
	deliver_three(test, f->dev->nn, FIX_DADDR);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, f->qp->peer, HERE);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_PKTS), packets + 2);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_CNP_RCVD), cnps + 1);
}

/* ---- QPs of one host ---- */

/* @qp and @f->qp, which has to be in RESET, become each other's peers. */
static struct nhca_qp *neighbour(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *peer = fix_qp(test, IB_QPT_RC, NULL);

	fix_connect(test, peer);
	swap(peer->av->saddr, peer->av->daddr);
	peer->attr.dest_qp_num = f->qp->qpn;
	f->qp->attr.dest_qp_num = peer->qpn;
	return peer;
}

/* A packet that is right in all but, perhaps, its mark. */
static void marked(struct kunit *test, __le32 mark)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = noticed(f->qp, SEND_ONLY, f->qp->rq.psn, HERE | NHCA_CAP_NO_ICRC);

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.mark = mark;
	fix_deliver(test, h, 10);
}

static bool way_is_open(struct kunit *test, struct nhca_qp *peer)
{
	struct qp_fixture *f = test->priv;
	u64 before = fix_count(f, NHCA_CNT_SAME_HOST_BYTES);

	f->qp->sq.una = f->qp->sq.psn;
	peer->rq.psn = f->qp->sq.psn;
	fix_post_recv(test, &peer->rq.wq, f->mr, 0, 100);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	return fix_count(f, NHCA_CNT_SAME_HOST_BYTES) > before;
}

/*
 * Only the mark of the peer itself opens the way without packets.  A third one of this host, whose
 * namespace may have the peer's address, knows its own marks, and old ones of the peer.
 */
static void same_host_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *third = fix_qp(test, IB_QPT_RC, NULL);
	struct nhca_qp *peer = neighbour(test);
	__le32 old = peer->mark;

	KUNIT_EXPECT_NE(test, (__force u32)third->mark, (__force u32)peer->mark);
	marked(test, third->mark);
	KUNIT_EXPECT_FALSE(test, nhca_peer_is_here(f->qp));
	marked(test, f->qp->mark);
	KUNIT_EXPECT_FALSE(test, nhca_peer_is_here(f->qp));
	marked(test, peer->mark);
	KUNIT_EXPECT_TRUE(test, nhca_peer_is_here(f->qp));
	KUNIT_EXPECT_TRUE(test, way_is_open(test, peer));

	/* the peer has become another: what was found is no longer so, and its old mark is void */
	fix_state(test, peer, IB_QPS_RESET);
	KUNIT_EXPECT_NE(test, (__force u32)old, (__force u32)peer->mark);
	fix_connect(test, peer);
	swap(peer->av->saddr, peer->av->daddr);
	peer->attr.dest_qp_num = f->qp->qpn;
	KUNIT_EXPECT_FALSE(test, way_is_open(test, peer));
	KUNIT_EXPECT_FALSE(test, nhca_peer_is_here(f->qp));
	marked(test, old);
	KUNIT_EXPECT_FALSE(test, nhca_peer_is_here(f->qp));
	fix_destroy(&peer);
	fix_destroy(&third);
}

/* ---- where receives are placed ---- */

/* An element may be longer than its region, as long as the message is not (as with adapters). */
static void long_element_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, PAGE_SIZE - 600, 1024);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN), 500);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ((u8 *)page_address(f->page))[PAGE_SIZE - 101], fix_byte(499));

	fix_post_recv(test, &f->qp->rq.wq, f->mr, PAGE_SIZE - 600, 1024);
	fix_deliver(test, fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + 1), 601);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);
}

/* Receives of an SRQ are placed by keys of its domain, not of the QP's. */
static void srq_domain_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct ib_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	struct nhca_cqe cqe;
	struct nhca_mr *mr;
	struct nhca_qp *qp;

	KUNIT_ASSERT_TRUE(test, srq && pd);
	pd->device = &f->dev->ibdev;
	srq->ibsrq.device = &f->dev->ibdev;
	srq->ibsrq.pd = pd;
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&srq->wq, 8, 1, NULL), 0);
	nhca_srq_init(srq);
	mr = fix_mr(test, pd);
	qp = fix_qp(test, IB_QPT_RC, &srq->ibsrq);
	fix_connect(test, qp);

	fix_post_recv(test, &srq->wq, mr, 0, 100);
	fix_deliver(test, fix_hdr(qp, SEND_ONLY, FIX_RQ_PSN), 50);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	/* a region of the QP's domain is none of the SRQ's */
	fix_post_recv(test, &srq->wq, f->mr, 0, 100);
	fix_deliver(test, fix_hdr(qp, SEND_ONLY, FIX_RQ_PSN + 1), 50);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);

	fix_destroy(&qp);
	nhca_mr_free(mr);
	nhca_rwq_free(&srq->wq);
}

static struct kunit_case nhca_trust_cases[] = {
	KUNIT_CASE(notice_test),
	KUNIT_CASE(uc_notice_test),
	KUNIT_CASE(plain_again_test),
	KUNIT_CASE(gap_test),
	KUNIT_CASE(congestion_mark_test),
	KUNIT_CASE(cnp_test),
	KUNIT_CASE(other_namespace_test),
	KUNIT_CASE(same_host_test),
	KUNIT_CASE(long_element_test),
	KUNIT_CASE(srq_domain_test),
	{}
};

static struct kunit_suite nhca_trust_suite = {
	.name = "nhca_qp_trust",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = nhca_trust_cases,
};

kunit_test_suite(nhca_trust_suite);
