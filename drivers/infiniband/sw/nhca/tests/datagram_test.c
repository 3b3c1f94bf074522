// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: datagrams of a UD QP: the headers that are sent, what a receive buffer contains, and which
 * datagrams are dropped (IBTA 9.8.3).
 */
#include <net/ip.h>

#include "addr_fixture.h"

#define SEND_ONLY	(NHCA_SVC_UD | NHCA_OP_SEND_ONLY)
#define SEND_IMM	(NHCA_SVC_UD | NHCA_OP_SEND_ONLY_IMM)
#define GRH		NHCA_GRH_LEN
#define AH_ID		7
#define PEER_QKEY	0x01020304
#define IMM		0xabcd0123
#define SENDER		0x815

/* address handle and destination QP number of all sends */
static struct nhca_ah ah;
static u32 to;

/* payload and address vector of the last datagram that was sent */
static u8 payload[FIX_MTU];
static const struct nhca_av *payload_av;

static void on_wire(struct qp_fixture *f, const struct nhca_tx *tx, const u8 *bytes)
{
	memcpy(payload, bytes, tx->payload);
	payload_av = tx->av;
}

static u8 *page(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	return page_address(f->page);
}

static int datagram_init(struct kunit *test)
{
	int err = addr_fixture_init(test);
	struct qp_fixture *f = test->priv;

	ah.av = NULL;
	/* only the lower 24 bits are a QP number; the QP must ignore the upper 8 bits */
	to = 0xff000000 | FIX_PEER_QPN;
	if (err)
		return err;
	ah.av = fix_av(FIX_SADDR, FIX_DADDR);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah.av));
	ah.av->pd = f->pd;
	ah.av->id = AH_ID;
	KUNIT_ASSERT_EQ(test, xa_err(xa_store(&f->dev->ah_ids, AH_ID, ah.av, GFP_KERNEL)), 0);
	f->wire = on_wire;
	return 0;
}

static void datagram_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	if (f && f->dev)
		xa_destroy(&f->dev->ah_ids);
	addr_fixture_exit(test);
	if (!IS_ERR(ah.av))
		nhca_av_put(ah.av);
}

/* ---- sending ---- */

static int post(struct kunit *test, enum ib_wr_opcode opcode, u64 addr, u32 len, u32 qkey,
		int flags)
{
	struct qp_fixture *f = test->priv;
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = f->mr->ibmr.lkey };
	struct ib_ud_wr wr = {
		.wr = {
			.wr_id = addr,
			.opcode = opcode,
			.send_flags = flags,
			.ex.imm_data = htonl(IMM),
			.sg_list = &sge,
			.num_sge = 1,
		},
		.ah = &ah.ibah,
		.remote_qpn = to,
		.remote_qkey = qkey,
	};

	return nhca_send_post(f->qp, &wr.wr);
}

/*
 * The headers of a datagram agree with its work request, its path is that of the address handle,
 * and its payload is right. The work request completes without a response. A Q_Key with the top bit
 * set selects the Q_Key of the QP.
 */
static void send_test(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode wr;
		u8 opcode;
		u32 len, qkey, sent_qkey;
		int flags;
	} rows[] = {
		{ IB_WR_SEND, SEND_ONLY, 0, PEER_QKEY, PEER_QKEY, 0 },
		{ IB_WR_SEND, SEND_ONLY, 1, 0x80000000, FIX_QKEY, IB_SEND_SOLICITED },
		{ IB_WR_SEND_WITH_IMM, SEND_IMM, 333, 0xffffffff, FIX_QKEY, 0 },
		{ IB_WR_SEND_WITH_IMM, SEND_IMM, FIX_MTU, 0x7fffffff, 0x7fffffff,
		  IB_SEND_SOLICITED },
	};
	struct qp_fixture *f = test->priv;
	const struct nhca_hdr *h;
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < PAGE_SIZE; i++)
		page(test)[i] = fix_byte(i);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(payload, 0, sizeof(payload));
		KUNIT_ASSERT_EQ(test, post(test, rows[i].wr, 100 + i, rows[i].len, rows[i].qkey,
					   IB_SEND_SIGNALED | rows[i].flags), 0);
		nhca_send_doorbell(f->qp);
		KUNIT_ASSERT_EQ(test, f->nsent, i + 1);
		h = &f->sent[i].hdr;
		KUNIT_EXPECT_EQ_MSG(test, h->opcode, rows[i].opcode, "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, h->qkey, rows[i].sent_qkey, "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, h->solicited, !!(rows[i].flags & IB_SEND_SOLICITED),
				    "entry %u", i);
		KUNIT_EXPECT_EQ(test, h->qpn, FIX_PEER_QPN);
		KUNIT_EXPECT_EQ(test, h->src_qpn, f->qp->qpn);
		KUNIT_EXPECT_EQ(test, h->psn, FIX_SQ_PSN + i);
		KUNIT_EXPECT_EQ(test, h->pkey, NHCA_DEFAULT_PKEY);
		KUNIT_EXPECT_FALSE(test, h->ackreq);
		if (rows[i].opcode == SEND_IMM)
			KUNIT_EXPECT_EQ(test, be32_to_cpu(h->imm), IMM);
		KUNIT_EXPECT_EQ(test, f->sent[i].payload, rows[i].len);
		KUNIT_EXPECT_EQ(test, memcmp(payload, page(test) + 100 + i, rows[i].len), 0);
		KUNIT_EXPECT_PTR_EQ(test, payload_av, (const struct nhca_av *)ah.av);
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, 100 + i);
		KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_SEND);
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENDS), ARRAY_SIZE(rows));
}

/*
 * Post a bad and a good datagram. Expect that the bad datagram fails with @status and the good
 * datagram is flushed.
 */
static void expect_failure(struct kunit *test, u64 addr, u32 len, enum ib_wc_status status)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	f->nsent = 0;
	KUNIT_ASSERT_EQ(test, post(test, IB_WR_SEND, addr, len, PEER_QKEY, 0), 0);
	KUNIT_ASSERT_EQ(test, post(test, IB_WR_SEND, 0, 8, PEER_QKEY, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_SQE);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, status);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, addr);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
}

/* A datagram that cannot be built puts the send queue in error (SQE), and is not sent. */
static void send_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_pd other = {};

	/*
	 * first a datagram that is longer than the path MTU, then a datagram from outside the
	 * region
	 */
	expect_failure(test, 16, FIX_MTU + 1, IB_WC_LOC_LEN_ERR);
	expect_failure(test, PAGE_SIZE, 8, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_LOCAL_PROT_ERR), 1);
	/*
	 * first an address handle of another protection domain, then an address handle that does
	 * not exist
	 */
	ah.av->pd = &other;
	expect_failure(test, 24, 8, IB_WC_LOC_QP_OP_ERR);
	ah.av->pd = f->pd;
	xa_erase(&f->dev->ah_ids, AH_ID);
	expect_failure(test, 32, 8, IB_WC_LOC_QP_OP_ERR);
}

/* A datagram that the network stack does not accept is lost, but its request succeeds. */
static void send_lost_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	f->xmit_err = -ENOBUFS;
	KUNIT_ASSERT_EQ(test, post(test, IB_WR_SEND, 0, 8, PEER_QKEY, IB_SEND_SIGNALED), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	f->xmit_err = 0;
	KUNIT_ASSERT_EQ(test, post(test, IB_WR_SEND, 0, 8, PEER_QKEY, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_EQ(test, f->nsent, 1);
	KUNIT_EXPECT_EQ(test, f->sent[0].hdr.psn, FIX_SQ_PSN + 1);
}

/* ---- receiving ---- */

static struct nhca_hdr datagram(struct kunit *test, u8 opcode)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, 0x123);

	h.qkey = FIX_QKEY;
	h.src_qpn = SENDER;
	h.imm = htonl(IMM);
	return h;
}

/* Expect that @got is the GRH area of a datagram with @udp_len bytes after the UDP header. */
static void expect_grh4(struct kunit *test, const u8 *got, u32 udp_len)
{
	struct iphdr iph;

	memcpy(&iph, got + GRH - sizeof(iph), sizeof(iph));
	KUNIT_EXPECT_NULL(test, memchr_inv(got, 0, GRH - sizeof(iph)));
	KUNIT_EXPECT_EQ(test, *(u8 *)&iph, 0x45);
	KUNIT_EXPECT_EQ(test, iph.protocol, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, ntohl(iph.saddr), FIX_DADDR);
	KUNIT_EXPECT_EQ(test, ntohl(iph.daddr), FIX_SADDR);
	KUNIT_EXPECT_EQ(test, ntohs(iph.tot_len), sizeof(iph) + sizeof(struct udphdr) + udp_len);
}

/* A datagram is placed after its GRH, and its completion names the sender. */
static void receive_test(struct kunit *test)
{
	const u32 len = 77, at = 200;
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = datagram(test, SEND_IMM);
	struct nhca_cqe cqe;
	u8 *p = page(test);
	u32 i;

	memset(p, 0xee, PAGE_SIZE);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, at, GRH + len + 1);
	fix_deliver(test, h, len);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, at);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, GRH + len);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, SENDER);
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_GRH | NHCA_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, cqe.ex.imm_data, (__force u32)htonl(IMM));
	KUNIT_EXPECT_EQ(test, cqe.sl, NHCA_SL_IPV4);
	KUNIT_EXPECT_EQ(test, cqe.network_hdr_type, RDMA_NETWORK_IPV4);
	KUNIT_EXPECT_EQ(test, cqe.vlan_id, NHCA_VLAN_NONE);
	expect_grh4(test, p + at, nhca_opinfo(SEND_IMM)->hdr_len + ALIGN(len, 4) + NHCA_ICRC_LEN);
	for (i = 0; i < len; i++)
		KUNIT_ASSERT_EQ(test, p[at + GRH + i], fix_byte(i));
	KUNIT_EXPECT_EQ(test, p[at - 1], 0xee);
	KUNIT_EXPECT_EQ(test, p[at + GRH + len], 0xee);
	/* datagrams are not acknowledged, and their PSN has no meaning */
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RECVS), 1);
}

/* The GRH and the payload fill the SGEs of a receive one after the other, without gaps. */
static void scatter_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_sge sge[] = {
		{ .addr = 1000, .length = 30, .lkey = f->mr->ibmr.lkey },
		{ .addr = 0, .length = 100, .lkey = f->mr->ibmr.lkey },
	};
	struct ib_recv_wr wr = { .wr_id = 5, .sg_list = sge, .num_sge = 2 };
	struct nhca_cqe cqe;
	u8 *p = page(test);
	u8 all[GRH + 50];
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_rwq_post(&f->qp->rq.wq, &wr), 0);
	fix_deliver(test, datagram(test, SEND_ONLY), 50);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.byte_len, sizeof(all));
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_GRH);
	memcpy(all, p + 1000, 30);
	memcpy(all + 30, p, sizeof(all) - 30);
	expect_grh4(test, all, nhca_opinfo(SEND_ONLY)->hdr_len + 52 + NHCA_ICRC_LEN);
	for (i = 0; i < 50; i++)
		KUNIT_ASSERT_EQ(test, all[GRH + i], fix_byte(i));
	KUNIT_EXPECT_EQ(test, p[1030], 0);
	KUNIT_EXPECT_EQ(test, p[sizeof(all) - 30], 0);
}

/*
 * Each datagram of a batch gets its own GRH. The IP header of the batch has the length of the whole
 * batch, and the identification of the first datagram.
 */
static void gro_test(struct kunit *test)
{
	const u32 udp_len = nhca_opinfo(SEND_ONLY)->hdr_len + 52 + NHCA_ICRC_LEN;
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	struct iphdr iph;
	u8 *got;
	u32 i;

	for (i = 0; i < 6; i++)
		fix_post_recv(test, &f->qp->rq.wq, f->mr, i * 200, 200);
	fix_deliver_batch(test, datagram(test, SEND_ONLY), 50, 3);
	f->one_id = true;
	fix_deliver_batch(test, datagram(test, SEND_ONLY), 50, 3);
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, GRH + 50);
		got = page(test) + i * 200;
		expect_grh4(test, got, udp_len);
		memcpy(&iph, got + GRH - sizeof(iph), sizeof(iph));
		KUNIT_EXPECT_EQ_MSG(test, ip_fast_csum(&iph, iph.ihl), 0, "datagram %u", i);
		KUNIT_EXPECT_EQ_MSG(test, ntohs(iph.id), (u16)(FIX_IPV4_ID + (i < 3 ? i : 0)),
				    "datagram %u", i);
	}
}

#if IS_ENABLED(CONFIG_IPV6)
/*
 * Over IPv6 the GRH is the IPv6 header of the packet. In a batch, all fields but the length are
 * those of the packet.
 */
static void receive6_test(struct kunit *test)
{
	const u32 outer = sizeof(struct ipv6hdr) + sizeof(struct udphdr), len = 20, count = 2;
	struct in6_addr from = { { { 0xfd, [15] = 2 } } }, to = { { { 0xfd, [15] = 1 } } };
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = datagram(test, SEND_ONLY);
	const u32 udp_len = h.info->hdr_len + len + NHCA_ICRC_LEN;
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct ipv6hdr *ip6h;
	struct nhca_cqe cqe;
	union ib_gid gid;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	memcpy(gid.raw, &to, sizeof(to));
	KUNIT_ASSERT_EQ(test, nhca_addr_add(f->dev, &gid, LOOPBACK_IFINDEX), 0);
	ip6h = skb_put_zero(skb, outer);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip6h));
	ip6h->version = 6;
	ip6h->nexthdr = IPPROTO_UDP;
	ip6h->hop_limit = 33;
	ip6h->saddr = from;
	ip6h->daddr = to;
	ip6h->payload_len = htons(sizeof(struct udphdr) + count * udp_len);
	udp_hdr(skb)->len = ip6h->payload_len;
	udp_hdr(skb)->check = 1;
	skb_pull(skb, outer);
	for (i = 0; i < count; i++)
		fix_put(skb, &h, len, 0, NULL);
	skb_shinfo(skb)->gso_size = udp_len;
	skb_shinfo(skb)->gso_segs = count;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;

	for (i = 0; i < count; i++)
		fix_post_recv(test, &f->qp->rq.wq, f->mr, i * 200, 200);
	fix_deliver_skb(test, skb_get(skb));
	ip6h->payload_len = htons(sizeof(struct udphdr) + udp_len);
	for (i = 0; i < count * len; i++) {
		u8 *got = page(test) + i / len * 200;

		if (i % len == 0) {
			KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
			KUNIT_EXPECT_EQ(test, cqe.byte_len, GRH + len);
			KUNIT_EXPECT_EQ(test, cqe.sl, NHCA_SL_IPV6);
			KUNIT_EXPECT_EQ(test, cqe.network_hdr_type, RDMA_NETWORK_IPV6);
			KUNIT_EXPECT_EQ(test, memcmp(got, ip6h, GRH), 0);
		}
		KUNIT_ASSERT_EQ(test, got[GRH + i % len], fix_byte(i % len));
	}
	kfree_skb(skb);
	nhca_addr_del(f->dev, &gid, LOOPBACK_IFINDEX);
}

/*
 * A link-local address of a device matches only packets that the interface of the address (here 77)
 * or the loopback interface has received.
 */
static void link_local_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	union ib_gid gid = { .raw = { 0xfe, 0x80, [15] = 1 } };
	struct nhca_ip ip = { .nn = f->dev->nn, .saddr = { .s6_addr = { 0xfe, 0x80, [15] = 2 } } };

	memcpy(&ip.daddr, gid.raw, sizeof(ip.daddr));
	KUNIT_ASSERT_EQ(test, nhca_addr_add(f->dev, &gid, 77), 0);
	rcu_read_lock();
	ip.iif = 77;
	KUNIT_EXPECT_TRUE(test, nhca_addr_is(f->dev, &ip));
	KUNIT_EXPECT_PTR_EQ(test, nhca_addr_find(ip.nn, &ip.daddr, ip.iif), f->dev);
	ip.iif = 78;
	KUNIT_EXPECT_FALSE(test, nhca_addr_is(f->dev, &ip));
	KUNIT_EXPECT_NULL(test, nhca_addr_find(ip.nn, &ip.daddr, ip.iif));
	ip.iif = LOOPBACK_IFINDEX;
	KUNIT_EXPECT_TRUE(test, nhca_addr_is(f->dev, &ip));
	KUNIT_EXPECT_PTR_EQ(test, nhca_addr_find(ip.nn, &ip.daddr, ip.iif), f->dev);
	rcu_read_unlock();
	nhca_addr_del(f->dev, &gid, 77);
}
#endif

/*
 * A datagram is counted and dropped if its Q_Key or address is wrong, no receive is posted, or the
 * receive is too short. The QP stays in its state, and the next datagram uses the receive.
 */
static void drop_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = datagram(test, SEND_ONLY);
	struct nhca_cqe cqe;

	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 1);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 8, GRH + 10);
	h.qkey = FIX_QKEY + 1;
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_QKEY), 1);
	h.qkey = FIX_QKEY;
	f->daddr = FIX_SADDR + 1;
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_ADDR), 1);
	f->daddr = 0;
	fix_deliver(test, h, 11);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_LENGTH), 1);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_NULL(test, memchr_inv(page(test), 0, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);

	fix_deliver(test, h, 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 8);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, GRH + 10);
}

/* Deliver a datagram to a bad receive. Expect a completion with @status, and the QP in error. */
static void expect_bad_receive(struct kunit *test, enum ib_wc_status status)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_deliver(test, datagram(test, SEND_ONLY), 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, status);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 16);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(page(test), 0, PAGE_SIZE));
	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	f->qp->attr.qkey = FIX_QKEY;
}

/* An invalid receive completes with an error, and the QP goes to error. */
static void bad_receive_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rwq *wq = &f->qp->rq.wq;
	struct nhca_recv_wqe *wqe;

	/* an L_Key of no region */
	fix_post_recv(test, wq, f->mr, 16, 100);
	wqe = nhca_ring_slot(&wq->ring, wq->cons);
	wqe->sge[0].lkey += 256;
	expect_bad_receive(test, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_LOCAL_PROT_ERR), 1);
	/* a receive with too many SGEs */
	fix_post_recv(test, wq, f->mr, 16, 100);
	wqe = nhca_ring_slot(&wq->ring, wq->cons);
	wqe->num_sge = wq->max_sge + 1;
	expect_bad_receive(test, IB_WC_LOC_QP_OP_ERR);
	/* an impossible producer index: no receive can complete, so only the QP goes to error */
	WRITE_ONCE(wq->ring.hdr->prod, wq->cons + nhca_ring_entries(&wq->ring) + 1);
	fix_deliver(test, datagram(test, SEND_ONLY), 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_BAD_RING), 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, f->cq->cons, f->cq->prod);
	WRITE_ONCE(wq->ring.hdr->prod, wq->prod);
}

/* ---- the same-host path ---- */

/* Let @peer receive a datagram of the fixture's QP from the loopback netdev. */
static void hear(struct kunit *test, struct nhca_qp *peer)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = datagram(test, SEND_ONLY);
	unsigned long before = peer->loop_until;
	struct sk_buff *skb;

	h.qpn = peer->qpn;
	h.src_qpn = f->qp->qpn;
	skb = fix_skb(test, &h, 10, 1);
	skb->skb_iif = LOOPBACK_IFINDEX;
	fix_deliver_skb(test, skb);
	/* if the path was opened, keep it open for longer than the test takes */
	if (peer->loop_until != before)
		peer->loop_until = jiffies + 1000 * HZ;
}

/* Send 50 bytes from offset 0 to the QP whose number is in the variable "to". */
static void send_here(struct kunit *test, u32 qkey)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	KUNIT_ASSERT_EQ(test, post(test, IB_WR_SEND_WITH_IMM, 0, 50, qkey, IB_SEND_SIGNALED), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
}

static bool lo_watched;

/* Replaces nhca_lo_watched(). */
static bool is_lo_watched(struct net *net)
{
	return lo_watched;
}

/*
 * A QP that has received a packet of a sender on this host gets the sender's next datagrams by the
 * same-host path, without packets. The GRH and the completion are the same as for a packet.
 */
static void same_host_test(struct kunit *test)
{
	const u32 at = 1024;
	struct qp_fixture *f = test->priv;
	struct nhca_cq *cq = fix_cq(test, 16);
	struct nhca_qp *peer = fix_qp_on(test, IB_QPT_UD, NULL, cq, 8);
	u8 *p = page(test);
	struct nhca_cqe cqe;
	struct iphdr iph;
	u32 i;

	lo_watched = false;
	kunit_activate_static_stub(test, nhca_lo_watched, is_lo_watched);
	fix_connect(test, peer);
	peer->attr.qkey = FIX_QKEY;
	to = peer->qpn;
	swap(ah.av->saddr, ah.av->daddr);
	for (i = 0; i < 50; i++)
		p[i] = fix_byte(i);
	/* the peer has not received a packet of the sender yet, so a packet is sent */
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	hear(test, peer);
	KUNIT_EXPECT_EQ(test, peer->loop_path.qpn, f->qp->qpn);

	fix_post_recv(test, &peer->rq.wq, f->mr, at, GRH + 50);
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	KUNIT_ASSERT_TRUE(test, fix_poll(cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, at);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, GRH + 50);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, f->qp->qpn);
	KUNIT_EXPECT_EQ(test, cqe.flags, NHCA_WC_GRH | NHCA_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, cqe.ex.imm_data, (__force u32)htonl(IMM));
	KUNIT_EXPECT_EQ(test, memcmp(p + at + GRH, p, 50), 0);
	memcpy(&iph, p + at + GRH - sizeof(iph), sizeof(iph));
	KUNIT_EXPECT_EQ(test, ntohl(iph.saddr), FIX_DADDR);
	KUNIT_EXPECT_EQ(test, ntohl(iph.daddr), FIX_SADDR);
	KUNIT_EXPECT_EQ(test, ntohs(iph.tot_len), sizeof(iph) + sizeof(struct udphdr) +
			nhca_opinfo(SEND_IMM)->hdr_len + 52 + NHCA_ICRC_LEN);
	KUNIT_EXPECT_EQ(test, ip_fast_csum(&iph, iph.ihl), 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), 50);

	/*
	 * packets are sent instead if the peer refuses the Q_Key, if the address is multicast, if
	 * the last packet that the peer received came from another QP, or if the same-host path has
	 * expired
	 */
	fix_post_recv(test, &peer->rq.wq, f->mr, at, GRH + 50);
	send_here(test, FIX_QKEY + 1);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	ah.av->mcast = true;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 3);
	ah.av->mcast = false;
	peer->loop_path.qpn++;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 4);
	peer->loop_path.qpn--;
	peer->loop_until = jiffies - 1;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 5);
	KUNIT_EXPECT_FALSE(test, fix_poll(cq, &cqe));
	/* another packet opens the same-host path again, except while nhca_lo_watched() is true */
	lo_watched = true;
	hear(test, peer);
	KUNIT_EXPECT_TRUE(test, time_before(peer->loop_until, jiffies));
	lo_watched = false;
	hear(test, peer);
	KUNIT_EXPECT_TRUE(test, time_after(peer->loop_until, jiffies));
	fix_destroy(&peer);
	nhca_cq_stop(cq);
	nhca_ring_free(&cq->ring);
}

/*
 * The path is open only for the addresses and the traffic class of the datagram that passed,
 * because a filter may refuse other datagrams of the same two QPs.
 */
static void same_host_filter_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cq *cq = fix_cq(test, 16);
	struct nhca_qp *peer = fix_qp_on(test, IB_QPT_UD, NULL, cq, 8);
	struct nhca_av *av = ah.av;
	u32 i;

	fix_connect(test, peer);
	peer->attr.qkey = FIX_QKEY;
	to = peer->qpn;
	swap(av->saddr, av->daddr);
	hear(test, peer);
	for (i = 0; i < 4; i++)
		fix_post_recv(test, &peer->rq.wq, f->mr, 1024, GRH + 50);
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);

	av->saddr.s6_addr[15]++;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	av->saddr.s6_addr[15]--;
	av->tclass = 0x20;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	/* the low two bits are the ECN field, which the path does not compare */
	av->tclass = 2;
	send_here(test, FIX_QKEY);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SAME_HOST_BYTES), 100);
	fix_destroy(&peer);
	nhca_cq_stop(cq);
	nhca_ring_free(&cq->ring);
}

static struct kunit_case datagram_cases[] = {
	KUNIT_CASE(send_test),
	KUNIT_CASE(send_error_test),
	KUNIT_CASE(send_lost_test),
	KUNIT_CASE(receive_test),
	KUNIT_CASE(scatter_test),
	KUNIT_CASE(gro_test),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(receive6_test),
	KUNIT_CASE(link_local_test),
#endif
	KUNIT_CASE(drop_test),
	KUNIT_CASE(bad_receive_test),
	KUNIT_CASE(same_host_test),
	KUNIT_CASE(same_host_filter_test),
	{}
};

static struct kunit_suite datagram_suite = {
	.name = "nhca_datagram",
	.init = datagram_init,
	.exit = datagram_exit,
	.test_cases = datagram_cases,
};

kunit_test_suite(datagram_suite);
