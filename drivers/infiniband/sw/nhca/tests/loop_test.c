// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the same-host path: two QPs of one kernel execute requests without packets. Bytes,
 * completions and PSNs are the same as with packets. Packets are used for everything that the
 * same-host path cannot do.
 */
#include "qp_fixture.h"

#define OP(op)		(NHCA_SVC_RC | NHCA_OP_##op)
#define ACK		OP(ACK)
#define HERE		(NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK)
/*
 * pages of the region that both ends use, and bytes of half of the region; the source is in the
 * first half
 */
#define PAGES		32
#define HALF		(PAGES / 2 * PAGE_SIZE)

static bool watched;
static u32 asked;

/* Replaces nhca_route_watched(). */
static bool route_watched(struct net *net, struct nhca_av *av, u16 sport)
{
	asked++;
	return watched;
}

/* The QP of the fixture sends, @peer executes. */
static struct loop {
	struct nhca_qp *peer;
	struct nhca_cq *cq;
	struct page *pages;
	struct nhca_mr *mr;
} *loop;

static u8 *at(u32 off)
{
	return (u8 *)page_address(loop->pages) + off;
}

/*
 * Connect two QPs to each other. @a and @b then have the state after marked packets have passed
 * both ways, so @a may use the same-host path.
 */
static void introduce(struct nhca_qp *a, struct nhca_qp *b)
{
	a->attr.dest_qp_num = b->qpn;
	b->attr.dest_qp_num = a->qpn;
	swap(b->av->saddr, b->av->daddr);
	b->rq.psn = a->sq.psn;
	a->rq.psn = b->sq.psn;
	a->peer_mark = b->mark;
	a->loop_until = jiffies + HZ * 3600;
	b->loop_until = jiffies + HZ * 3600;
	a->peer = HERE | NHCA_PEER_SAME_HOST;
}

static void pair(struct kunit *test, enum ib_qp_type type)
{
	struct qp_fixture *f = test->priv;

	fix_destroy(&f->qp);
	f->qp = fix_qp(test, type, NULL);
	fix_connect(test, f->qp);
	fix_destroy(&loop->peer);
	loop->peer = fix_qp_on(test, type, NULL, loop->cq, 32);
	fix_connect(test, loop->peer);
	introduce(f->qp, loop->peer);
}

static int loop_init(struct kunit *test)
{
	struct page *pages[PAGES];
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;
	u32 i;

	watched = false;
	kunit_activate_static_stub(test, nhca_route_watched, route_watched);
	if (err)
		return err;
	loop = kunit_kzalloc(test, sizeof(*loop), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, loop);
	loop->pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, get_order(PAGES * PAGE_SIZE));
	KUNIT_ASSERT_NOT_NULL(test, loop->pages);
	for (i = 0; i < PAGES; i++)
		pages[i] = loop->pages + i;
	loop->mr = nhca_mr_alloc(f->dev, f->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(loop->mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(loop->mr, pages, PAGES, 0, true), 0);
	nhca_mr_start(loop->mr, 0, PAGES * PAGE_SIZE);
	loop->cq = fix_cq(test, 64);
	pair(test, IB_QPT_RC);
	for (i = 0; i < HALF; i++)
		*at(i) = i * 13 + (i >> 8);
	return 0;
}

static void loop_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_destroy(&f->qp);
	fix_destroy(&loop->peer);
	nhca_cq_stop(loop->cq);
	nhca_ring_free(&loop->cq->ring);
	nhca_mr_free(loop->mr);
	__free_pages(loop->pages, get_order(PAGES * PAGE_SIZE));
	qp_fixture_exit(test);
}

static void post(struct kunit *test, enum ib_wr_opcode opcode, u64 addr, u32 len, u64 remote)
{
	struct qp_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, loop->mr, opcode, addr, len, remote,
					    IB_SEND_SIGNALED), 0);
	nhca_send_doorbell(f->qp);
}

/* Expect that the next completion in @cq is that of the request @wr_id. */
static void expect_done(struct kunit *test, struct nhca_cq *cq, u64 wr_id, enum ib_wc_status status)
{
	struct nhca_cqe cqe;

	KUNIT_ASSERT_TRUE(test, fix_poll(cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, wr_id);
	KUNIT_EXPECT_EQ(test, cqe.status, status);
}

/* Expect that both ends have advanced by @npsn packets, and that the peer's lock is free. */
static void expect_psns(struct kunit *test, u32 npsn)
{
	struct qp_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + npsn);
	KUNIT_EXPECT_EQ(test, f->qp->sq.nxt, FIX_SQ_PSN + npsn);
	KUNIT_EXPECT_EQ(test, loop->peer->rq.psn, FIX_SQ_PSN + npsn);
	KUNIT_EXPECT_NULL(test, f->qp->sq.loop);
	KUNIT_ASSERT_TRUE(test, spin_trylock_bh(&loop->peer->rq.lock));
	spin_unlock_bh(&loop->peer->rq.lock);
}

/* ---- what is executed without packets ---- */

/*
 * SENDs, WRITEs and READs of several lengths are executed with no packet. Their bytes arrive, the
 * requests and the receives that they use complete, and PSNs and MSN advance as for packets.
 */
static void each(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, FIX_MTU - 1, FIX_MTU, FIX_MTU + 1, 3 * PAGE_SIZE + 5, 40000, HALF,
	};
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_RDMA_READ,
	};
	struct qp_fixture *f = test->priv;
	bool rc = f->qp->ibqp.qp_type == IB_QPT_RC;
	u32 psns = 0, messages = 0, i, k, len;
	u64 bytes = fix_count(f, NHCA_CNT_SAME_HOST_BYTES);
	bool receives, read;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		read = opcodes[i] == IB_WR_RDMA_READ;
		receives = opcodes[i] == IB_WR_SEND || opcodes[i] == IB_WR_RDMA_WRITE_WITH_IMM;
		for (k = 0; k < ARRAY_SIZE(lengths) && (rc || !read); k++) {
			len = lengths[k];
			memset(at(HALF), 0, HALF);
			if (receives)
				fix_post_recv(test, &loop->peer->rq.wq, loop->mr, HALF, HALF);
			if (read)
				post(test, opcodes[i], HALF, len, 0);
			else
				post(test, opcodes[i], 0, len, HALF);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(at(HALF), at(0), len), 0,
					    "opcode %d, %u bytes", opcodes[i], len);
			KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF + len), 0, HALF - len));
			expect_done(test, f->cq, read ? HALF : 0, IB_WC_SUCCESS);
			if (receives)
				expect_done(test, loop->cq, HALF, IB_WC_SUCCESS);
			psns += max(DIV_ROUND_UP(len, FIX_MTU), 1U);
			messages++;
			bytes += len;
			expect_psns(test, psns);
			KUNIT_EXPECT_EQ(test, loop->peer->rq.msn, messages);
		}
	}
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), bytes);
	KUNIT_EXPECT_EQ(test, f->cq->cons, f->cq->prod);
	KUNIT_EXPECT_EQ(test, loop->cq->cons, loop->cq->prod);
	KUNIT_EXPECT_FALSE(test, loop->peer->rq.ack_due);
}

/* SENDs, WRITEs and READs of each length are executed on RC. */
static void rc_test(struct kunit *test)
{
	each(test);
}

/* SENDs and WRITEs of each length are executed on UC, which has no READs. */
static void uc_test(struct kunit *test)
{
	pair(test, IB_QPT_UC);
	each(test);
}

/*
 * A READ and a SEND of one doorbell are executed in order: the SEND sends the bytes that the READ
 * has placed.
 */
static void order_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &loop->peer->rq.wq, loop->mr, HALF + PAGE_SIZE, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, loop->mr, IB_WR_RDMA_READ, HALF, 3000, 0, 0),
			0);
	post(test, IB_WR_SEND, HALF, 3000, 0);
	KUNIT_EXPECT_EQ(test, memcmp(at(HALF + PAGE_SIZE), at(0), 3000), 0);
	expect_done(test, f->cq, HALF, IB_WC_SUCCESS);
	expect_done(test, loop->cq, HALF + PAGE_SIZE, IB_WC_SUCCESS);
	expect_psns(test, 6);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
}

/* ---- what the peer refuses ---- */

/*
 * Expect that the peer has sent one response with @syndrome for PSN @psn, and deliver this response
 * to the QP.
 */
static void refusal(struct kunit *test, u8 syndrome, u32 psn)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;
	struct sent sent;

	KUNIT_ASSERT_EQ(test, f->nsent, 1);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, syndrome);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + psn);
	KUNIT_EXPECT_EQ(test, sent.hdr.qpn, f->qp->qpn);
	h = fix_hdr(f->qp, ACK, sent.hdr.psn);
	h.syndrome = syndrome;
	f->nsent = 0;
	fix_deliver(test, h, 0);
}

/* A WRITE beyond the end of the region changes nothing. The NAK of the peer comes as a packet. */
static void access_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	post(test, IB_WR_RDMA_WRITE, 0, 3000, PAGES * PAGE_SIZE - 2999);
	KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
	KUNIT_EXPECT_EQ(test, loop->peer->rq.psn, FIX_SQ_PSN);
	refusal(test, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS, 0);
	expect_done(test, f->cq, 0, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, loop->peer->state, IB_QPS_ERR);
}

/*
 * Without a receive the peer sends an RNR NAK. After the wait the SEND is executed without packets.
 */
static void rnr_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	/* 0: the longest RNR timer, so that only the test ends the wait */
	loop->peer->attr.min_rnr_timer = 0;
	post(test, IB_WR_SEND, 0, 3000, 0);
	refusal(test, NHCA_AETH_RNR, 0);
	KUNIT_EXPECT_TRUE(test, f->qp->sq.rnr_wait);
	f->qp->peer = HERE | NHCA_PEER_SAME_HOST;
	fix_post_recv(test, &loop->peer->rq.wq, loop->mr, HALF, HALF);
	timer_delete(&f->qp->sq.timer);
	local_bh_disable();
	nhca_sq_timer(&f->qp->sq.timer);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, memcmp(at(HALF), at(0), 3000), 0);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	expect_done(test, loop->cq, HALF, IB_WC_SUCCESS);
	expect_psns(test, 3);
}

/*
 * The peer refuses a SEND of 2^23 packets, the longest message. The QP counts only the first
 * NHCA_CWND_MAX packets as sent (nhca_loop_refused()), so it accepts the RNR NAK. If the QP counted
 * 2^23 packets, half of all PSNs, the QP could not tell that the PSN of the RNR NAK is before the
 * next PSN to send. The second SEND waits for the RNR NAK.
 */
static void longest_rnr_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	f->qp->mtu = 256;
	loop->peer->mtu = 256;
	loop->peer->attr.min_rnr_timer = 0;
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, loop->mr, IB_WR_SEND, 0, 0x80000000, 0, 0), 0);
	post(test, IB_WR_SEND, 0, 10, 0);
	refusal(test, NHCA_AETH_RNR, 0);
	KUNIT_EXPECT_TRUE(test, f->qp->sq.rnr_wait);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN);
}

/* ---- requests that are sent as packets ---- */

/* Post a WRITE, expect that it is sent as a packet, and acknowledge it. */
static void expect_packet(struct kunit *test, u8 opcode)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	f->nsent = 0;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_ASSERT_EQ(test, f->nsent, 1);
	KUNIT_ASSERT_EQ(test, fix_sent(f, opcode, &sent), 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
	KUNIT_EXPECT_NULL(test, f->qp->sq.loop);
	fix_packet(test, ACK, sent.hdr.psn, 0);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	loop->peer->rq.psn = f->qp->sq.nxt;
	f->qp->peer = HERE | NHCA_PEER_SAME_HOST;
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), 0);
}

/*
 * While packets are in flight, a request is sent as a packet too, because it must not overtake
 * them.
 */
static void in_flight_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	/* the port is down, so the first request is sent as a packet */
	f->dev->port_state = IB_PORT_DOWN;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	f->dev->port_state = IB_PORT_ACTIVE;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(WRITE_ONLY), NULL), 2);
	fix_packet(test, ACK, FIX_SQ_PSN + 1, 0);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
	loop->peer->rq.psn = f->qp->sq.nxt;
	f->qp->peer = HERE | NHCA_PEER_SAME_HOST;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(at(HALF), at(0), 100), 0);
}

/*
 * If another CPU runs the peer's responder, packets are used, because the requester does not wait
 * for the lock.
 */
static void locked_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	/* without SMP no spinlock is ever found locked */
	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "no SMP");
	spin_lock_bh(&loop->peer->rq.lock);
	KUNIT_EXPECT_EQ(test, fix_post_rdma(f->qp, loop->mr, IB_WR_RDMA_WRITE, 0, 100, HALF, 0), 0);
	nhca_send_doorbell(f->qp);
	spin_unlock_bh(&loop->peer->rq.lock);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(WRITE_ONLY), NULL), 1);
	KUNIT_EXPECT_TRUE(test, nhca_peer_same_host(f->qp));
}

/*
 * Packets are used if the peer cannot execute the request, or the link is down. Afterwards the
 * same-host path is used again.
 */
static void closed_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rq *rq = &loop->peer->rq;

	f->dev->port_state = IB_PORT_DOWN;
	expect_packet(test, OP(WRITE_ONLY));
	f->dev->port_state = IB_PORT_ACTIVE;
	clear_bit(__LINK_STATE_START, &f->netdev->state);
	expect_packet(test, OP(WRITE_ONLY));
	set_bit(__LINK_STATE_START, &f->netdev->state);
	/* the peer expects another PSN, has a NAK to send, or drops a message */
	rq->psn++;
	expect_packet(test, OP(WRITE_ONLY));
	rq->nak_due = true;
	expect_packet(test, OP(WRITE_ONLY));
	rq->nak_due = false;
	rq->drop = true;
	expect_packet(test, OP(WRITE_ONLY));
	rq->drop = false;
	/* the peer is not ready to receive */
	loop->peer->state = IB_QPS_INIT;
	expect_packet(test, OP(WRITE_ONLY));
	loop->peer->state = IB_QPS_RTR;

	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	expect_done(test, f->cq, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(at(HALF), at(0), 100), 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), 100);
}

/*
 * If the QP with the peer's number is not connected to this QP, or has another mark or type,
 * packets are used until a packet shows again that the peer is in this kernel.
 */
static void wrong_peer_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *peer = loop->peer;
	u32 i;

	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_TRUE(test, nhca_peer_same_host(f->qp));
		switch (i) {
		case 0:
			f->qp->peer_mark ^= cpu_to_le32(1);
			break;
		case 1:
			peer->attr.dest_qp_num++;
			break;
		case 2:
			peer->av->daddr.s6_addr[15]++;
			break;
		case 3:
			peer->av->saddr.s6_addr[15]++;
			break;
		case 4:
			peer->ibqp.qp_type = IB_QPT_UC;
			break;
		}
		f->nsent = 0;
		post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
		KUNIT_EXPECT_EQ_MSG(test, f->nsent, 1, "case %u", i);
		KUNIT_EXPECT_FALSE_MSG(test, nhca_peer_same_host(f->qp), "case %u", i);
		peer->ibqp.qp_type = IB_QPT_RC;
		pair(test, IB_QPT_RC);
		peer = loop->peer;
	}
	/* no QP has the number */
	f->qp->attr.dest_qp_num = 0;
	f->nsent = 0;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
}

/*
 * The same-host path expires after half a second. Then packets must pass again, because a filter
 * that refuses them may have been added.
 */
static void expired_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	f->qp->loop_until = jiffies - 1;
	f->nsent = 0;
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
}

/*
 * If a filter refuses only the packets to the peer, the packets of the peer still arrive, and show
 * that the peer is on this host. But the peer's loop_until has expired, because no packet has
 * reached the peer, so packets are used.
 */
static void one_way_test(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC };
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		pair(test, types[i]);
		loop->peer->loop_until = jiffies - 1;
		f->nsent = 0;
		post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
		KUNIT_EXPECT_EQ_MSG(test, f->nsent, 1, "case %u", i);
		KUNIT_EXPECT_FALSE_MSG(test, nhca_peer_same_host(f->qp), "case %u", i);
		KUNIT_EXPECT_NULL(test, memchr_inv(at(HALF), 0, HALF));
	}
}

/*
 * An end that only receives keeps its part of the same-host path open: packets of the peer renew
 * loop_until when loop_until has expired.
 */
static void renewal_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	unsigned long before;
	struct nhca_hdr h;
	u32 i;

	f->qp->peer = HERE | NHCA_PEER_SAME_HOST;
	f->qp->peer_mark = loop->peer->mark;
	for (i = 0; i < 2; i++) {
		before = i ? jiffies + 1000 * HZ : jiffies - 1;
		f->qp->loop_until = before;
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
		h = fix_hdr(f->qp, OP(SEND_ONLY), f->qp->rq.psn);
		h.caps = HERE | NHCA_CAP_NO_ICRC;
		h.mark = loop->peer->mark;
		fix_deliver_skb(test, fix_skb(test, &h, 10, 1));
		KUNIT_EXPECT_TRUE(test, nhca_peer_same_host(f->qp));
		/*
		 * loop_until that has not expired is not renewed, because a renewal costs two route
		 * lookups
		 */
		KUNIT_EXPECT_EQ(test, f->qp->loop_until != before, !i);
	}
	/*
	 * a packet socket or queueing discipline is added and must see the packets, so the path
	 * closes
	 */
	watched = true;
	f->qp->loop_until = jiffies - 1;
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.psn = f->qp->rq.psn;
	fix_deliver_skb(test, fix_skb(test, &h, 10, 1));
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
}

/*
 * Atomics, READs that the peer refuses, and requests of a QP with a rate limit are sent as packets.
 */
static void packets_test(struct kunit *test)
{
	struct ib_qp_attr attr = { .rate_limit = 1000000 };
	struct qp_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, fix_post_atomic(f->qp, loop->mr, IB_WR_ATOMIC_FETCH_AND_ADD, 0, HALF,
					      1, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(FETCH_ADD), NULL), 1);
	KUNIT_EXPECT_EQ(test, *at(HALF), 0);

	pair(test, IB_QPT_RC);
	loop->peer->attr.qp_access_flags = IB_ACCESS_REMOTE_WRITE;
	post(test, IB_WR_RDMA_READ, HALF, 100, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(READ_REQUEST), NULL), 1);
	KUNIT_EXPECT_EQ(test, *at(HALF), 0);

	pair(test, IB_QPT_RC);
	post(test, IB_WR_RDMA_READ, HALF, 100, PAGES * PAGE_SIZE - 99);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(READ_REQUEST), NULL), 2);
	KUNIT_EXPECT_EQ(test, *at(HALF), 0);

	pair(test, IB_QPT_RC);
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(f->qp, IB_QPS_RTS, &attr,
					     IB_QP_STATE | IB_QP_RATE_LIMIT), 0);
	post(test, IB_WR_RDMA_WRITE, 0, 100, HALF);
	KUNIT_EXPECT_EQ(test, fix_sent(f, OP(WRITE_ONLY), NULL), 1);
	KUNIT_EXPECT_EQ(test, *at(HALF), 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), 0);
}

/* If the L_Key does not cover the payload, the request fails as it does with packets. */
static void source_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &loop->peer->rq.wq, loop->mr, HALF, HALF);
	post(test, IB_WR_SEND, PAGES * PAGE_SIZE - 9, 10, 0);
	expect_done(test, f->cq, PAGES * PAGE_SIZE - 9, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, loop->peer->state, IB_QPS_RTS);
	KUNIT_EXPECT_FALSE(test, loop->peer->rq.nak_due);
	KUNIT_EXPECT_EQ(test, loop->cq->cons, loop->cq->prod);
}

/* ---- how an end detects that the peer is on this host ---- */

/*
 * A packet without an ICRC that has the mark of the QP with the peer's number lets the QP use the
 * same-host path. A packet has no such effect if it has another mark or an ICRC, if a NIC has
 * verified its checksum (so it has left a host), or if its route is watched.
 */
static void found_test(struct kunit *test)
{
	static const struct {
		u8 summed;
		u32 mark;
		u8 caps;
		bool found;
		bool watched;
	} rows[] = {
		{ CHECKSUM_NONE, 1, NHCA_CAP_NO_ICRC, false },
		{ CHECKSUM_UNNECESSARY, 0, NHCA_CAP_NO_ICRC, false },
		{ CHECKSUM_COMPLETE, 0, NHCA_CAP_NO_ICRC, false },
		{ CHECKSUM_NONE, 0, 0, false },
		{ CHECKSUM_NONE, 0, NHCA_CAP_NO_ICRC, true },
		{ CHECKSUM_PARTIAL, 0, NHCA_CAP_NO_ICRC, true },
		/* the route is watched by a packet socket or a queueing discipline */
		{ CHECKSUM_PARTIAL, 0, NHCA_CAP_NO_ICRC, false, true },
	};
	struct qp_fixture *f = test->priv;
	unsigned long before;
	struct sk_buff *skb;
	struct nhca_hdr h;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f->qp->peer = HERE;
		f->qp->peer_mark = 0;
		before = jiffies;
		f->qp->loop_until = before;
		f->qp->watched_until = before;
		watched = rows[i].watched;
		fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
		h = fix_hdr(f->qp, OP(SEND_ONLY), f->qp->rq.psn);
		h.caps = HERE | rows[i].caps;
		h.mark = loop->peer->mark ^ cpu_to_le32(rows[i].mark);
		skb = fix_skb(test, &h, 10, 1);
		skb->ip_summed = rows[i].summed;
		fix_deliver_skb(test, skb);
		KUNIT_EXPECT_EQ_MSG(test, nhca_peer_same_host(f->qp), rows[i].found, "entry %u", i);
		if (rows[i].found)
			KUNIT_EXPECT_EQ(test, le32_to_cpu(f->qp->peer_mark),
					le32_to_cpu(loop->peer->mark));
		KUNIT_EXPECT_EQ(test, time_after(f->qp->loop_until, before), rows[i].found);
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RECVS), ARRAY_SIZE(rows));
}

/* Deliver a packet that has the mark of the peer. */
static void marked(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sk_buff *skb;
	struct nhca_hdr h;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h = fix_hdr(f->qp, OP(SEND_ONLY), f->qp->rq.psn);
	h.caps = HERE | NHCA_CAP_NO_ICRC;
	h.mark = loop->peer->mark;
	skb = fix_skb(test, &h, 10, 1);
	skb->ip_summed = CHECKSUM_PARTIAL;
	fix_deliver_skb(test, skb);
}

/*
 * While a packet socket or queueing discipline must see the packets, the routes are looked up once
 * in half a second, and not for each packet. A reset clears watched_until, because the next
 * connection may take another route.
 */
static void watched_test(struct kunit *test)
{
	struct ib_qp_attr attr = { };
	struct qp_fixture *f = test->priv;
	unsigned long before;
	u32 i;

	f->qp->peer = HERE;
	watched = true;
	asked = 0;
	before = jiffies;
	marked(test);
	KUNIT_EXPECT_TRUE(test, time_after(f->qp->watched_until, before));
	KUNIT_EXPECT_TRUE(test, time_before(f->qp->watched_until, jiffies + HZ));
	/* extend the half second, so that it does not end during the test */
	f->qp->watched_until = jiffies + 1000 * HZ;
	for (i = 0; i < 4; i++)
		marked(test);
	KUNIT_EXPECT_EQ(test, asked, 1);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));

	/* half a second later the routes are looked up again, once */
	f->qp->watched_until = jiffies - 1;
	marked(test);
	KUNIT_EXPECT_EQ(test, asked, 2);
	f->qp->watched_until = jiffies + 1000 * HZ;
	marked(test);
	KUNIT_EXPECT_EQ(test, asked, 2);
	/*
	 * as if the packet socket or queueing discipline was removed: the path opens only at the
	 * end of the half second
	 */
	watched = false;
	marked(test);
	KUNIT_EXPECT_FALSE(test, nhca_peer_same_host(f->qp));
	f->qp->watched_until = jiffies - 1;
	marked(test);
	KUNIT_EXPECT_TRUE(test, nhca_peer_same_host(f->qp));

	f->qp->watched_until = jiffies + 1000 * HZ;
	KUNIT_EXPECT_EQ(test, nhca_qp_modify(f->qp, IB_QPS_RESET, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_FALSE(test, time_before(jiffies, f->qp->watched_until));
}

static struct kunit_case loop_cases[] = {
	KUNIT_CASE(watched_test),
	KUNIT_CASE(rc_test),
	KUNIT_CASE(uc_test),
	KUNIT_CASE(order_test),
	KUNIT_CASE(access_test),
	KUNIT_CASE(rnr_test),
	KUNIT_CASE(longest_rnr_test),
	KUNIT_CASE(in_flight_test),
	KUNIT_CASE(locked_test),
	KUNIT_CASE(closed_test),
	KUNIT_CASE(wrong_peer_test),
	KUNIT_CASE(expired_test),
	KUNIT_CASE(one_way_test),
	KUNIT_CASE(renewal_test),
	KUNIT_CASE(packets_test),
	KUNIT_CASE(source_test),
	KUNIT_CASE(found_test),
	{}
};

static struct kunit_suite loop_suite = {
	.name = "nhca_loop",
	.init = loop_init,
	.exit = loop_exit,
	.test_cases = loop_cases,
};

kunit_test_suite(loop_suite);
