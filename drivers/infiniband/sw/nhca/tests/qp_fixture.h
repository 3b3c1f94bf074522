/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about queue pairs: a device without a working netdev, and a connected queue pair of a
 * kernel consumer. Tests make packets and deliver them to the queue pair. Packets that the queue
 * pair sends are recorded by fix_xmit(), and reach no network. The local ACK timeout is 0 (none).
 * The timers of the queue pair call an empty function, so tests call nhca_sq_timer() themselves.
 */
#ifndef NHCA_TEST_QP_FIXTURE_H
#define NHCA_TEST_QP_FIXTURE_H

#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <kunit/test-bug.h>
#include <linux/ip.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ipv6.h>

#include "../ingress/ingress.h"
#include "../memory/mr.h"
#include "../net/net.h"
#include "../net/xmit.h"
#include "../transport/engine.h"
#include "../transport/rx.h"

#define FIX_MTU		1024
#define FIX_PEER_QPN	0x4711
#define FIX_RQ_PSN	0x100000
#define FIX_SQ_PSN	0x200000
#define FIX_SENT	64
#define FIX_SADDR	0x0a000001	/* 10.0.0.1, the address of the device */
#define FIX_DADDR	0x0a000002
#define FIX_IPV4_ID	0xfffe	/* of the first packet of a batch; the next but one is 0 */

/**
 * struct sent - a packet that was sent
 * @hdr: headers of the packet
 * @payload: bytes of payload
 */
struct sent {
	struct nhca_hdr hdr;
	u32 payload;
};

/**
 * struct qp_fixture - objects of each test
 * @dev:    device without a driver
 * @netdev: netdev of @dev, not registered
 * @pd:     protection domain of @qp and @mr
 * @cq:     send and receive CQ of @qp
 * @comp:   number of completion events of all CQs from fix_cq()
 * @qp:     RC queue pair in RTS; NULL after fix_destroy()
 * @page:   page of @mr
 * @mr:     region of one page at address 0, with local write, remote read, write and atomic rights
 * @sent:   packets that were sent, at their number modulo FIX_SENT
 * @nsent:  number of packets that were sent
 * @xmit_err: error that sending a packet returns; 0: sending succeeds
 * @fail_at: number of the packet that fails with -ENOMEM; 1: the next packet; 0: no packet fails
 * @wire:   called with each packet that was sent and its payload, or NULL
 * @data:   payload of delivered packets; NULL: the payload is made of fix_byte()
 * @ce:     delivered packets have a congestion mark (CE)
 * @one_id: all packets of a delivered batch have the same IPv4 identification
 * @daddr:  destination address of delivered packets; 0: FIX_SADDR
 */
struct qp_fixture {
	struct nhca_dev *dev;
	struct net_device *netdev;
	struct ib_pd *pd;
	struct nhca_cq *cq;
	unsigned int comp;
	struct nhca_qp *qp;
	struct page *page;
	struct nhca_mr *mr;
	struct sent sent[FIX_SENT];
	unsigned int nsent;
	int xmit_err;
	unsigned int fail_at;
	void (*wire)(struct qp_fixture *f, const struct nhca_tx *tx, const u8 *payload);
	const u8 *data;
	bool ce;
	bool one_id;
	u32 daddr;
};

/*
 * Replaces nhca_xmit(): records the packet, and reads the payload and the flow, so that KASAN
 * reports a flow that was freed.
 */
static int fix_xmit(struct nhca_tx *tx)
{
	struct qp_fixture *f = kunit_get_current_test()->priv;
	struct sent *s = &f->sent[f->nsent % FIX_SENT];
	u8 buf[FIX_MTU];
	int err = 0;

	tx->hdr->info = nhca_opinfo(tx->hdr->opcode);
	tx->hdr->pad = -tx->payload & 3;
	nhca_flow_inflight(tx->flow);
	if (tx->payload) {
		nhca_live_enter();
		err = nhca_live_exit_fault(nhca_iter_read(tx->it, buf, tx->payload), tx->it,
					   tx->ahead, tx->fault);
	}
	if (err || f->xmit_err)
		return err ?: f->xmit_err;
	if (f->fail_at && !--f->fail_at)
		return -ENOMEM;
	s->hdr = *tx->hdr;
	s->payload = tx->payload;
	f->nsent++;
	if (f->wire)
		f->wire(f, tx, buf);
	return 0;
}

/* Replaces nhca_burst_run(): builds no batch, so that each packet is sent alone. */
static u32 fix_burst_run(struct nhca_tx *tx, u32 count)
{
	return 0;
}

static struct nhca_av *fix_av(u32 saddr, u32 daddr)
{
	struct nhca_av *av = kzalloc(sizeof(*av), GFP_ATOMIC);

	if (!av)
		return ERR_PTR(-ENOMEM);
	refcount_set(&av->ref, 1);
	av->v4 = true;
	/* ECT(0): routers may mark the packets */
	av->tclass = 2;
	ipv6_addr_set_v4mapped(htonl(saddr), &av->saddr);
	ipv6_addr_set_v4mapped(htonl(daddr), &av->daddr);
	return av;
}

/* Replaces nhca_av_create(). */
static struct nhca_av *fix_av_create(struct nhca_dev *dev, const struct rdma_ah_attr *attr,
				     gfp_t gfp)
{
	return fix_av(FIX_SADDR, FIX_DADDR);
}

static void fix_completed(struct ib_cq *ibcq, void *context)
{
	struct qp_fixture *f = context;

	f->comp++;
}

static inline struct nhca_cq *fix_cq(struct kunit *test, u32 entries)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	nhca_cq_init(cq, false);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&cq->ring, entries, sizeof(struct nhca_cqe), NULL),
			0);
	cq->ibcq.device = &f->dev->ibdev;
	cq->ibcq.comp_handler = fix_completed;
	cq->ibcq.cq_context = f;
	return cq;
}

/* Poll one completion. Return: false if the CQ has no completion. */
static inline bool fix_poll(struct nhca_cq *cq, struct nhca_cqe *cqe)
{
	if (cq->cons == cq->prod)
		return false;
	*cqe = *(struct nhca_cqe *)nhca_ring_slot(&cq->ring, cq->cons++);
	nhca_ring_release(&cq->ring, cq->cons);
	return true;
}

static void fix_no_timer(struct timer_list *t)
{
}

/*
 * Initialize a queue pair, and replace the functions of its timers. On a busy machine a timer of 20
 * ms may expire during a test. Its function would run outside the thread of the test, where static
 * stubs have no effect: it would call the real nhca_xmit(). Tests call these functions themselves.
 * @rings: rings of a QP of user space; NULL: the QP is of the kernel
 */
static inline void fix_qp_init(struct kunit *test, struct nhca_qp *qp,
			       struct ib_qp_init_attr *init, struct nhca_qp_rings *rings)
{
	KUNIT_ASSERT_EQ(test, nhca_qp_init(qp, init, rings), 0);
	timer_setup(&qp->sq.timer, fix_no_timer, 0);
	if (qp->piggyback)
		timer_setup(&qp->piggyback->timer, fix_no_timer, 0);
}

/* Return: a queue pair in RESET with rings of @max_wr entries and CQ @cq. @srq may be NULL. */
static inline struct nhca_qp *fix_qp_on(struct kunit *test, enum ib_qp_type type,
					struct ib_srq *srq, struct nhca_cq *cq, u32 max_wr)
{
	struct qp_fixture *f = test->priv;
	struct ib_qp_init_attr init = {
		.cap = {
			.max_send_wr = max_wr,
			.max_recv_wr = max_wr,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64,
		},
		.qp_type = type,
	};
	struct nhca_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->dev = f->dev;
	qp->ibqp.device = &f->dev->ibdev;
	qp->ibqp.pd = f->pd;
	qp->ibqp.qp_type = type;
	qp->ibqp.send_cq = &cq->ibcq;
	qp->ibqp.recv_cq = &cq->ibcq;
	qp->ibqp.srq = srq;
	qp->who.counters = f->dev->counters;
	mutex_init(&qp->modify);
	fix_qp_init(test, qp, &init, NULL);
	return qp;
}

static inline struct nhca_qp *fix_qp(struct kunit *test, enum ib_qp_type type, struct ib_srq *srq)
{
	struct qp_fixture *f = test->priv;

	return fix_qp_on(test, type, srq, f->cq, 32);
}

/* Bring @qp from RESET to RTS, connected to FIX_PEER_QPN at FIX_DADDR. */
static inline void fix_connect(struct kunit *test, struct nhca_qp *qp)
{
	struct ib_qp_attr attr = {
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = FIX_PEER_QPN,
		.rq_psn = FIX_RQ_PSN,
		.sq_psn = FIX_SQ_PSN,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.port_num = NHCA_PORT,
	};
	bool reliable = qp->ibqp.qp_type == IB_QPT_RC;
	int mask;

	mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;
	mask |= nhca_is_datagram(qp) ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_INIT, &attr, mask), 0);
	mask = IB_QP_STATE;
	if (!nhca_is_datagram(qp))
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	if (reliable)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_RTR, &attr, mask), 0);
	mask = IB_QP_STATE | IB_QP_SQ_PSN;
	if (reliable)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_RTS, &attr, mask), 0);
}

static inline void fix_state(struct kunit *test, struct nhca_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, state, &attr, IB_QP_STATE), 0);
}

/* Return: a region of the fixture's page in @pd. */
static inline struct nhca_mr *fix_mr(struct kunit *test, struct ib_pd *pd)
{
	struct qp_fixture *f = test->priv;
	struct nhca_mr *mr;

	mr = nhca_mr_alloc(f->dev, pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			   IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, &f->page, 1, 0, true), 0);
	nhca_mr_start(mr, 0, PAGE_SIZE);
	return mr;
}

/*
 * Replace nhca_route_watched() and nhca_lo_watched(), because they need a namespace. The result
 * false means that the netdev has no packet socket and no queueing discipline.
 */
static bool fix_route_watched(struct net *net, struct nhca_av *av, u16 sport)
{
	return false;
}

static bool fix_lo_watched(struct net *net)
{
	return false;
}

static inline int qp_fixture_init(struct kunit *test)
{
	struct qp_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->dev = kunit_kzalloc(test, sizeof(*f->dev), GFP_KERNEL);
	f->netdev = kunit_kzalloc(test, sizeof(*f->netdev), GFP_KERNEL);
	f->pd = kunit_kzalloc(test, sizeof(*f->pd), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, f->dev && f->netdev && f->pd);
	set_bit(__LINK_STATE_START, &f->netdev->state);
	f->pd->device = &f->dev->ibdev;
	f->dev->netdev = f->netdev;
	f->dev->port_state = IB_PORT_ACTIVE;
	f->dev->mtu = FIX_MTU;
	/* nn is only compared, never dereferenced */
	f->dev->nn = (struct nhca_net *)f->dev;
	f->dev->txq = nhca_txq_create();
	f->dev->counters = alloc_percpu(struct nhca_counters);
	xa_init(&f->dev->ah_ids);
	xa_init(&f->dev->srq_ids);
	KUNIT_ASSERT_TRUE(test, f->dev->txq && f->dev->counters);
	kunit_activate_static_stub(test, nhca_xmit, fix_xmit);
	kunit_activate_static_stub(test, nhca_burst_run, fix_burst_run);
	kunit_activate_static_stub(test, nhca_av_create, fix_av_create);
	kunit_activate_static_stub(test, nhca_route_watched, fix_route_watched);
	kunit_activate_static_stub(test, nhca_lo_watched, fix_lo_watched);

	f->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, f->page);
	f->mr = fix_mr(test, f->pd);
	f->cq = fix_cq(test, 64);
	f->qp = fix_qp(test, IB_QPT_RC, NULL);
	fix_connect(test, f->qp);
	return 0;
}

static inline void fix_destroy(struct nhca_qp **qp)
{
	if (*qp)
		nhca_qp_fini(*qp);
	*qp = NULL;
}

static inline void qp_fixture_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	if (!f)
		return;
	fix_destroy(&f->qp);
	if (!IS_ERR_OR_NULL(f->mr))
		nhca_mr_free(f->mr);
	if (f->cq) {
		nhca_cq_stop(f->cq);
		nhca_ring_free(&f->cq->ring);
	}
	if (f->page)
		__free_page(f->page);
	if (f->dev) {
		nhca_txq_put(f->dev->txq);
		free_percpu(f->dev->counters);
	}
}

/* Return: the value of a counter of the device. */
static inline u64 fix_count(struct qp_fixture *f, enum nhca_counter which)
{
	u64 values[NHCA_CNT_MAX];

	nhca_counters_sum(f->dev->counters, values);
	return values[which];
}

/* ---- packets from the peer ---- */

/* Return: headers of a packet to @qp, without capability bits. */
static inline struct nhca_hdr fix_hdr(const struct nhca_qp *qp, u8 opcode, u32 psn)
{
	return (struct nhca_hdr) {
		.opcode = opcode,
		.info = nhca_opinfo(opcode),
		.migreq = true,
		.pkey = NHCA_DEFAULT_PKEY,
		.qpn = qp->qpn,
		.psn = psn & NHCA_PSN_MASK,
		.syndrome = NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT,
	};
}

/* Return: byte @i of the payload of delivered packets while qp_fixture.data is NULL. */
static inline u8 fix_byte(u32 i)
{
	return i * 7 + 1;
}

/*
 * Append a packet to @skb. @index: number of the packet in the batch. @data: payload; NULL: the
 * payload consists of fix_byte().
 */
static inline void fix_put(struct sk_buff *skb, struct nhca_hdr *h, u32 payload, u32 index,
			   const u8 *data)
{
	u32 hdr_len = h->info->hdr_len, crc = 0, i;
	u8 *p;

	h->pad = -payload & 3;
	p = skb_put(skb, hdr_len + payload + h->pad + NHCA_ICRC_LEN);
	nhca_hdr_encode(h, p);
	for (i = 0; i < payload; i++)
		p[hdr_len + i] = data ? data[i] : fix_byte(i);
	if (!(h->caps & NHCA_CAP_NO_ICRC)) {
		crc = nhca_icrc_head(skb, p, hdr_len, hdr_len + payload + h->pad + NHCA_ICRC_LEN,
				     index);
		crc = nhca_icrc_more(crc, p + hdr_len, payload);
	}
	nhca_tail_encode(h, crc, p + hdr_len + payload);
}

/*
 * Return: an skb as GRO makes it, with @count packets from FIX_DADDR and consecutive PSNs. Its data
 * begins after the UDP header. The packets have consecutive IPv4 identifications; with f->one_id
 * all have the same.
 */
static inline struct sk_buff *fix_skb(struct kunit *test, struct nhca_hdr *h, u32 payload,
				      u32 count)
{
	u32 len = h->info->hdr_len + ALIGN(payload, 4) + NHCA_ICRC_LEN;
	struct qp_fixture *f = test->priv;
	const u32 outer = sizeof(struct iphdr) + sizeof(struct udphdr);
	struct sk_buff *skb = alloc_skb(outer + count * len, GFP_KERNEL);
	struct iphdr *iph;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	iph = skb_put_zero(skb, outer);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*iph));
	*iph = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*iph) / 4,
		.tos = f->ce ? 3 : 0,
		.tot_len = htons(outer + count * len),
		.id = htons(FIX_IPV4_ID),
		.frag_off = htons(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = htonl(FIX_DADDR),
		.daddr = htonl(f->daddr ?: FIX_SADDR),
	};
	/*
	 * not 0: the packet has a UDP checksum, which the stack has verified before nhca gets the
	 * packet
	 */
	udp_hdr(skb)->check = 1;
	udp_hdr(skb)->len = htons(sizeof(struct udphdr) + count * len);
	ip_send_check(iph);
	skb_pull(skb, outer);
	for (i = 0; i < count; i++) {
		fix_put(skb, h, payload, f->one_id ? 0 : i, f->data);
		h->psn = nhca_psn_add(h->psn, 1);
	}
	if (count > 1) {
		skb_shinfo(skb)->gso_size = len;
		skb_shinfo(skb)->gso_segs = count;
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	}
	return skb;
}

static inline void fix_deliver_skb(struct kunit *test, struct sk_buff *skb)
{
	struct qp_fixture *f = test->priv;

	local_bh_disable();
	nhca_rx_late(f->dev->nn, skb);
	local_bh_enable();
	kfree_skb(skb);
}

static noinline_for_stack __maybe_unused
void fix_deliver_batch(struct kunit *test, struct nhca_hdr h, u32 payload, u32 count)
{
	fix_deliver_skb(test, fix_skb(test, &h, payload, count));
}

static noinline_for_stack __maybe_unused
void fix_deliver(struct kunit *test, struct nhca_hdr h, u32 payload)
{
	fix_deliver_batch(test, h, payload, 1);
}

/* Deliver a packet with the headers of fix_hdr() to the QP of the fixture. */
static noinline_for_stack __maybe_unused
void fix_packet(struct kunit *test, u8 opcode, u32 psn, u32 payload)
{
	struct qp_fixture *f = test->priv;

	fix_deliver_batch(test, fix_hdr(f->qp, opcode, psn), payload, 1);
}

/* ---- actions of the consumer ---- */

/* Post a receive of @len bytes at @addr of @mr. */
static inline void fix_post_recv(struct kunit *test, struct nhca_rwq *wq, struct nhca_mr *mr,
				 u64 addr, u32 len)
{
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = mr->ibmr.lkey };
	struct ib_recv_wr wr = { .wr_id = addr, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(test, nhca_rwq_post(wq, &wr), 0);
}

/* Post a SEND of @len bytes from @addr of @mr, and ring the doorbell. */
static inline void fix_post_send(struct kunit *test, struct nhca_qp *qp, struct nhca_mr *mr,
				 u64 addr, u32 len, int flags)
{
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = mr->ibmr.lkey };
	struct ib_send_wr wr = {
		.wr_id = addr,
		.opcode = IB_WR_SEND,
		.send_flags = flags,
		.sg_list = &sge,
		.num_sge = 1,
	};

	KUNIT_ASSERT_EQ(test, nhca_send_post(qp, &wr), 0);
	nhca_send_doorbell(qp);
}

/*
 * Post a work request with the remote address @remote and the R_Key of @mr. The caller rings the
 * doorbell.
 */
static inline int fix_post_rdma(struct nhca_qp *qp, struct nhca_mr *mr, enum ib_wr_opcode opcode,
				u64 addr, u32 len, u64 remote, int flags)
{
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = mr->ibmr.lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = addr,
			.opcode = opcode,
			.send_flags = flags,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = remote,
		.rkey = mr->ibmr.rkey,
	};

	return nhca_send_post(qp, &wr.wr);
}

/*
 * Post an atomic on the remote address @remote with the R_Key of @mr; @addr gets the result. The
 * caller rings the doorbell.
 */
static inline int fix_post_atomic(struct nhca_qp *qp, struct nhca_mr *mr, enum ib_wr_opcode opcode,
				  u64 addr, u64 remote, u64 operand, u64 swap)
{
	struct ib_sge sge = { .addr = addr, .length = 8, .lkey = mr->ibmr.lkey };
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_id = addr,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = remote,
		.compare_add = operand,
		.swap = swap,
		.rkey = mr->ibmr.rkey,
	};

	return nhca_send_post(qp, &wr.wr);
}

/* Set a local ACK timeout, which expires only when the test calls fix_expire(). */
static inline void fix_timeout(struct nhca_qp *qp)
{
	qp->attr.timeout = 14;
	qp->sq.rtx->timeout = 100 * HZ;
}

/* Set the start of the timeouts to @age jiffies ago. */
static inline void fix_age(struct nhca_qp *qp, unsigned long age)
{
	nhca_rtx_begin(qp->sq.rtx, jiffies - age);
}

/* Let the whole local ACK timeout expire, so that no tail loss probe is sent. */
static inline void fix_expire(struct nhca_qp *qp)
{
	local_bh_disable();
	fix_age(qp, 100 * HZ * NHCA_MAX_BACKOFF + 2);
	nhca_sq_timer(&qp->sq.timer);
	local_bh_enable();
}

/*
 * Return: number of recorded packets with @opcode. @last: gets the last of these packets, if at
 * most FIX_SENT packets were sent; may be NULL.
 */
static inline u32 fix_sent(struct qp_fixture *f, u8 opcode, struct sent *last)
{
	u32 i, n = 0;

	for (i = 0; i < min_t(u32, f->nsent, FIX_SENT); i++) {
		if (f->sent[i].hdr.opcode != opcode)
			continue;
		n++;
		if (last)
			*last = f->sent[i];
	}
	return n;
}

#endif /* NHCA_TEST_QP_FIXTURE_H */
