// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the packets in which a QP accepts capability bits, marks of QPs on this host, PSN gaps and
 * congestion marks. The attacker knows addresses and QPNs, but the PSN only in
 * other_namespace_test(). Other cases test where receives may be placed.
 */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define UC_SEND_ONLY	(NHCA_SVC_UC | NHCA_OP_SEND_ONLY)
#define HERE		(NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK)
/* PSNs of an attacker, relative to the expected PSN; none is within a window of the expected PSN */
static const s32 guesses[] = { -0x700000, -0x1000, -257, 257, 0x1000, 0x10000, 0x700000 };

static struct nhca_hdr noticed(struct nhca_qp *qp, u8 opcode, u32 psn, u8 notice)
{
	struct nhca_hdr h = fix_hdr(qp, opcode, psn);

	h.caps = notice;
	return h;
}

/* Deliver packets with capability bits and wrong PSNs. Expect that the QP ignores the bits. */
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

/*
 * Deliver packets without capability bits and with wrong PSNs. Expect that the QP keeps the bits of
 * its peer.
 */
static void stray(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 1000, 10);
	KUNIT_EXPECT_EQ(test, f->qp->peer, HERE);
}

/*
 * Capability bits count only in a packet with the right PSN. Otherwise an attacker could make a QP
 * omit the ICRC.
 */
static void caps_test(struct kunit *test)
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
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN, 10);
	KUNIT_EXPECT_EQ(test, f->qp->peer, 0);
}

/*
 * A UC message may begin with any PSN. If the PSN is not the expected PSN, the capability bits of
 * the packet are ignored, and so are the bits of later packets, because an attacker may have sent
 * the packet with the unexpected PSN.
 */
static void uc_caps_test(struct kunit *test)
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

/*
 * If a peer does not answer, the retransmission has an ICRC, because the peer may have been
 * replaced by another implementation, which drops packets without an ICRC.
 */
static void icrc_again_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	f->qp->attr.timeout = 14;
	f->qp->sq.rtx->timeout = HZ;
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	fix_deliver(test, noticed(f->qp, ACK, FIX_SQ_PSN, HERE), 0);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_TRUE(test, sent.hdr.caps & NHCA_CAP_NO_ICRC);

	/* let much more time pass than an ACK usually takes */
	local_bh_disable();
	f->qp->sq.rtx->rto = 1;
	fix_age(f->qp, 10 * HZ);
	nhca_sq_timer(&f->qp->sq.timer);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 3);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_FALSE(test, sent.hdr.caps & NHCA_CAP_NO_ICRC);
}

/*
 * A PSN far ahead causes no NAK. Otherwise an attacker who guesses PSNs could make the peer of the
 * QP go back.
 */
static void gap_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 0x10000, 10);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 0x7fffff, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), 0);
	/* a gap of three packets can come from lost packets, so it causes a NAK */
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 3, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), 1);
}

/* A congestion mark counts only in an accepted packet, and the QP answers it by one CNP. */
static void congestion_mark_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	f->ce = true;
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 5000, 10);
	fix_packet(test, ACK, FIX_SQ_PSN + 5000, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_OPCODE_CNP, NULL), 0);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_OPCODE_CNP, NULL), 1);
}

static void cnp(struct kunit *test, struct nhca_qp *qp)
{
	struct nhca_hdr h = fix_hdr(qp, NHCA_OPCODE_CNP, 0);

	h.becn = true;
	qp->sq.rtx->cnp_at = jiffies - 10 * HZ;
	fix_deliver(test, h, 0);
}

/*
 * A CNP reduces the window only if packets are in flight whose traffic class lets routers mark
 * them.
 */
static void cnp_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 window = f->qp->sq.window.cwnd;

	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.window.cwnd, window);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	f->qp->av->tclass = 0;
	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.window.cwnd, window);
	f->qp->av->tclass = 2;
	cnp(test, f->qp);
	KUNIT_EXPECT_LT(test, f->qp->sq.window.cwnd, window);
	fix_state(test, f->qp, IB_QPS_ERR);
	f->qp->sq.window.cwnd = window;
	cnp(test, f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->sq.window.cwnd, window);
}

/* ---- other namespaces of this host ---- */

/* Deliver a packet without an ICRC in namespace @nn, with source address @saddr. */
static noinline_for_stack void deliver_from(struct kunit *test, struct nhca_net *nn, u32 saddr,
					    u8 opcode, u32 psn, u32 payload)
{
	struct qp_fixture *f = test->priv;
	/* the packet has a valid UDP checksum, which is enough in place of the ICRC */
	struct nhca_hdr h = noticed(f->qp, opcode, psn, HERE | NHCA_CAP_NO_ICRC);
	struct sk_buff *skb = fix_skb(test, &h, payload, 1);

	ip_hdr(skb)->saddr = htonl(saddr);
	local_bh_disable();
	nhca_rx_late(nn, skb);
	local_bh_enable();
	kfree_skb(skb);
}

/* Deliver a request, a response and a CNP in namespace @nn, with source address @saddr. */
static void deliver_three(struct kunit *test, struct nhca_net *nn, u32 saddr)
{
	deliver_from(test, nn, saddr, SEND_ONLY, FIX_RQ_PSN, 10);
	deliver_from(test, nn, saddr, ACK, FIX_SQ_PSN, 0);
	deliver_from(test, nn, saddr, NHCA_OPCODE_CNP, 0, 0);
}

/*
 * An attacker in another namespace knows the peer's address, the QPN and even the PSN. The
 * attacker's packets do not reach the QP, and do not count as received. The same holds for packets
 * in the QP's namespace that come from another address.
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
	/*
	 * two packets are counted: the request and the response from the wrong address; a CNP is
	 * dropped without a count, and in the other namespace no QP has the QPN
	 */
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_ADDR), refused + 2);

	/* the same packets are accepted if they come from the peer */
	deliver_three(test, f->dev->nn, FIX_DADDR);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_EQ(test, f->qp->peer, HERE);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_PKTS), packets + 2);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_CNP_RCVD), cnps + 1);
}

/* ---- QPs of one host ---- */

/* Connect @f->qp and a new QP with each other. Return: the new QP. */
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

/* Deliver the expected packet with @mark, which may be wrong. */
static void marked(struct kunit *test, __le32 mark)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = noticed(f->qp, SEND_ONLY, f->qp->rq.psn, HERE | NHCA_CAP_NO_ICRC);

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.mark = mark;
	fix_deliver(test, h, 10);
}

/* Return: true if f->qp copies a SEND to @peer by the same-host path. */
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
 * Only the current mark of the peer opens the same-host path. The mark of a third QP on this host
 * does not open the path, because the namespace of the third QP may have the peer's address.
 * Neither does an old mark of the peer.
 */
static void same_host_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *third = fix_qp(test, IB_QPT_RC, NULL);
	struct nhca_qp *peer = neighbour(test);
	__le32 old = peer->mark;

	KUNIT_EXPECT_NE(test, (__force u32)third->mark, (__force u32)peer->mark);
	marked(test, third->mark);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	marked(test, f->qp->mark);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	marked(test, peer->mark);
	KUNIT_EXPECT_TRUE(test, nhca_peer_same_host(f->qp));
	/*
	 * as if the peer had received a mark too; the path stays open for longer than the test
	 * takes
	 */
	f->qp->loop_until = jiffies + 1000 * HZ;
	peer->loop_until = jiffies + 1000 * HZ;
	KUNIT_EXPECT_TRUE(test, way_is_open(test, peer));

	/*
	 * the peer is connected again, so the same-host path closes and the peer has another mark
	 */
	fix_state(test, peer, IB_QPS_RESET);
	KUNIT_EXPECT_NE(test, (__force u32)old, (__force u32)peer->mark);
	fix_connect(test, peer);
	swap(peer->av->saddr, peer->av->daddr);
	peer->attr.dest_qp_num = f->qp->qpn;
	peer->loop_until = jiffies + 1000 * HZ;
	KUNIT_EXPECT_FALSE(test, way_is_open(test, peer));
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	marked(test, old);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	fix_destroy(&peer);
	fix_destroy(&third);
}

/* ---- where receives are placed ---- */

/*
 * An SGE of a receive may extend beyond its region, as on adapters, if the message ends inside the
 * region.
 */
static void long_element_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, PAGE_SIZE - 600, 1024);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN, 500);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ((u8 *)page_address(f->page))[PAGE_SIZE - 101], fix_byte(499));

	fix_post_recv(test, &f->qp->rq.wq, f->mr, PAGE_SIZE - 600, 1024);
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN + 1, 601);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);
}

/* A receive of an SRQ needs an L_Key of the SRQ's protection domain, not of the QP's. */
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
	/*
	 * the L_Key of a region in the QP's protection domain is refused for a receive of the SRQ
	 */
	fix_post_recv(test, &srq->wq, f->mr, 0, 100);
	fix_deliver(test, fix_hdr(qp, SEND_ONLY, FIX_RQ_PSN + 1), 50);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);

	fix_destroy(&qp);
	nhca_mr_free(mr);
	nhca_rwq_free(&srq->wq);
}

/*
 * Return: why the QP refuses an ACK with the addresses of @av that arrives on interface @iif;
 * NHCA_CNT_MAX: the ACK is accepted.
 */
static enum nhca_counter refusal(struct qp_fixture *f, const struct nhca_av *av, int iif)
{
	const struct nhca_ip ip = {
		.nn = f->dev->nn,
		.saddr = av->daddr,
		.daddr = av->saddr,
		.v4 = av->v4,
		.iif = iif,
	};
	struct nhca_hdr h = noticed(f->qp, ACK, FIX_SQ_PSN, 0);
	enum nhca_counter why;

	h.info = nhca_opinfo(h.opcode);
	rcu_read_lock();
	why = nhca_rx_refusal(f->qp, &h, &ip);
	rcu_read_unlock();
	return why;
}

/*
 * A packet with a link-local address must arrive on the interface of the QP or on lo. On another
 * interface, such as another VLAN, another host may have the same address.
 */
static void link_local_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_av *av = f->qp->av, saved = *av;

	av->ifindex = 7;
	KUNIT_EXPECT_EQ(test, refusal(f, av, 7), NHCA_CNT_MAX);
	KUNIT_EXPECT_EQ(test, refusal(f, av, 8), NHCA_CNT_MAX);
	av->v4 = false;
	av->saddr = (struct in6_addr) { .s6_addr = { 0xfd, 1, [15] = 1 } };
	av->daddr = (struct in6_addr) { .s6_addr = { 0xfd, 1, [15] = 2 } };
	KUNIT_EXPECT_EQ(test, refusal(f, av, 8), NHCA_CNT_MAX);
	av->saddr = (struct in6_addr) { .s6_addr = { 0xfe, 0x80, [15] = 1 } };
	av->daddr = (struct in6_addr) { .s6_addr = { 0xfe, 0x80, [15] = 2 } };
	KUNIT_EXPECT_EQ(test, refusal(f, av, 7), NHCA_CNT_MAX);
	KUNIT_EXPECT_EQ(test, refusal(f, av, LOOPBACK_IFINDEX), NHCA_CNT_MAX);
	KUNIT_EXPECT_EQ(test, refusal(f, av, 8), NHCA_CNT_RX_BAD_ADDR);
	/* one link-local address of the two is enough for the refusal */
	av->saddr = (struct in6_addr) { .s6_addr = { 0xfd, 1, [15] = 1 } };
	KUNIT_EXPECT_EQ(test, refusal(f, av, 8), NHCA_CNT_RX_BAD_ADDR);
	*av = saved;
}

static struct kunit_case nhca_trust_cases[] = {
	KUNIT_CASE(link_local_test),
	KUNIT_CASE(caps_test),
	KUNIT_CASE(uc_caps_test),
	KUNIT_CASE(icrc_again_test),
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
