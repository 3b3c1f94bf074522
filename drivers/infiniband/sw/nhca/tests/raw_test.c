// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: raw packet QPs: frames are sent and received as they are. Received frames go to one queue,
 * or to several queues (RSS).
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include "../net/rss.h"
#include "../net/steering.h"
#include "../observe/inject.h"
#include "qp_fixture.h"

#define MTU	1500
#define QUEUES	4

/* the last frame that was sent, its length, and the number of frames */
static u8 frame[2048];
static u32 frame_len, frames;
/* the error with which frame_send() fails; 0: none */
static int frame_err;

/* Replaces nhca_frame_send(): stores the frame. */
static int frame_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_flow *flow,
		      struct nhca_iter *it, u32 len, struct nhca_fault *fault)
{
	int err;

	nhca_live_enter();
	err = nhca_iter_read(it, frame, len);
	nhca_live_exit();
	if (err || frame_err)
		return err ?: frame_err;
	frame_len = len;
	frames++;
	return 0;
}

static void raw_connect(struct kunit *test, struct nhca_qp *qp)
{
	struct ib_qp_attr attr = { .port_num = NHCA_PORT };

	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_INIT, &attr, IB_QP_STATE | IB_QP_PORT), 0);
	fix_state(test, qp, IB_QPS_RTR);
	fix_state(test, qp, IB_QPS_RTS);
}

static int raw_init(struct kunit *test)
{
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;
	u32 i;

	if (err)
		return err;
	frames = 0;
	frame_err = 0;
	f->netdev->mtu = MTU;
	kunit_activate_static_stub(test, nhca_frame_send, frame_send);
	fix_destroy(&f->qp);
	f->qp = fix_qp(test, IB_QPT_RAW_PACKET, NULL);
	raw_connect(test, f->qp);
	for (i = 0; i < PAGE_SIZE; i++)
		((u8 *)page_address(f->page))[i] = fix_byte(i);
	return 0;
}

/* Frames are sent without changes, up to a length of Ethernet header, VLAN tag and MTU. */
static void send_test(struct kunit *test)
{
	static const u32 lengths[] = {
		ETH_HLEN, ETH_HLEN + 1, 64, ETH_HLEN + MTU, ETH_HLEN + MTU + VLAN_HLEN,
	};
	struct qp_fixture *f = test->priv;
	u8 *p = page_address(f->page);
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		fix_post_send(test, f->qp, f->mr, i, lengths[i], IB_SEND_SIGNALED);
		KUNIT_ASSERT_EQ(test, frames, i + 1);
		KUNIT_EXPECT_EQ(test, frame_len, lengths[i]);
		KUNIT_EXPECT_EQ(test, memcmp(frame, p + i, lengths[i]), 0);
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
	}
	/* nhca_xmit(), which adds RoCE headers, has sent nothing */
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
}

/*
 * A frame of a wrong length, or outside its region, fails and puts the QP in error, because raw
 * packet QPs have no SQE state.
 */
static void send_error_test(struct kunit *test)
{
	static const struct {
		u64 addr;
		u32 len;
		int err;
		enum ib_wc_status status;
	} rows[] = {
		{ 0, ETH_HLEN - 1, 0, IB_WC_LOC_LEN_ERR },
		{ 0, ETH_HLEN + MTU + VLAN_HLEN + 1, 0, IB_WC_LOC_LEN_ERR },
		/* nhca_frame_send() refuses this length if the frame has no VLAN tag */
		{ 0, ETH_HLEN + MTU + VLAN_HLEN, -EMSGSIZE, IB_WC_LOC_LEN_ERR },
		{ PAGE_SIZE, 64, 0, IB_WC_LOC_PROT_ERR },
		/* the frame is lost on this host, but the request succeeds */
		{ 0, 64, -ENETDOWN, IB_WC_SUCCESS },
	};
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		frame_err = rows[i].err;
		fix_post_send(test, f->qp, f->mr, rows[i].addr, rows[i].len, IB_SEND_SIGNALED);
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ_MSG(test, cqe.status, rows[i].status, "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, f->qp->state,
				    rows[i].status ? IB_QPS_ERR : IB_QPS_RTS, "entry %u", i);
		KUNIT_EXPECT_EQ(test, frames, 0);
		fix_state(test, f->qp, IB_QPS_RESET);
		raw_connect(test, f->qp);
	}
}

/* Return: a frame of @len bytes with Ethernet and IPv4 headers; the IPv4 source is @saddr. */
static struct sk_buff *make_frame(struct kunit *test, u32 len, u32 saddr)
{
	struct sk_buff *skb = alloc_skb(len, GFP_KERNEL);
	struct iphdr *iph;
	struct ethhdr *eth;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	eth = skb_put(skb, len);
	for (i = 0; i < len; i++)
		skb->data[i] = fix_byte(i + 5);
	eth->h_proto = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = htons(ETH_P_IP);
	iph = ip_hdr(skb);
	iph->version = 4;
	iph->ihl = 5;
	iph->frag_off = 0;
	iph->protocol = IPPROTO_ICMP;
	iph->saddr = htonl(saddr);
	iph->daddr = htonl(FIX_SADDR);
	return skb;
}

static void receive(struct nhca_qp *qp, struct sk_buff *skb)
{
	local_bh_disable();
	rcu_read_lock();
	nhca_raw_rx(qp, skb);
	rcu_read_unlock();
	local_bh_enable();
}

/* A frame is placed from its Ethernet header on, without a GRH. */
static void receive_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sk_buff *skb = make_frame(test, 100, FIX_DADDR);
	u8 *p = page_address(f->page);
	struct nhca_cqe cqe;

	memset(p, 0xee, PAGE_SIZE);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 50, 100);
	receive(f->qp, skb);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 50);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, 100);
	KUNIT_EXPECT_EQ(test, cqe.flags, 0);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, 0);
	KUNIT_EXPECT_EQ(test, memcmp(p + 50, skb->data, 100), 0);
	KUNIT_EXPECT_EQ(test, p[49], 0xee);
	KUNIT_EXPECT_EQ(test, p[150], 0xee);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_PKTS), 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RCVD_BYTES), 100);
	kfree_skb(skb);
}

/* A frame is dropped if no receive is posted, the receive is too short, or the QP is in INIT. */
static void drop_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sk_buff *skb = make_frame(test, 100, FIX_DADDR);
	u8 *p = page_address(f->page);
	struct nhca_cqe cqe;

	memset(p, 0, PAGE_SIZE);
	receive(f->qp, skb);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 1);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 99);
	receive(f->qp, skb);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_LENGTH), 1);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);

	fix_state(test, f->qp, IB_QPS_RESET);
	raw_connect(test, f->qp);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 200);
	f->qp->state = IB_QPS_INIT;
	receive(f->qp, skb);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_NULL(test, memchr_inv(p, 0, PAGE_SIZE));
	f->qp->state = IB_QPS_RTS;
	receive(f->qp, skb);
	KUNIT_EXPECT_TRUE(test, fix_poll(f->cq, &cqe));
	kfree_skb(skb);
}

/* The hash of a frame selects the queue that receives it. Each queue gets frames. */
static void rss_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rss *rss = kunit_kzalloc(test, struct_size(rss, queue, QUEUES), GFP_KERNEL);
	struct nhca_qp *front = kunit_kzalloc(test, sizeof(*front), GFP_KERNEL);
	struct nhca_steer_key what;
	struct sk_buff *skb;
	struct nhca_cqe cqe;
	u32 i, want, used = 0;

	KUNIT_ASSERT_TRUE(test, rss && front);
	rss->fields = NHCA_RSS_SRC_IPV4;
	rss->mask = QUEUES - 1;
	for (i = 0; i < NHCA_RSS_KEY; i++)
		rss->key[i] = i * 91 + 7;
	for (i = 0; i < QUEUES; i++) {
		rss->queue[i] = fix_qp(test, IB_QPT_RAW_PACKET, NULL);
		raw_connect(test, rss->queue[i]);
	}
	front->rss = rss;
	for (i = 0; i < 32; i++) {
		skb = make_frame(test, 64, FIX_DADDR + i);
		nhca_steer_parse(skb, &what);
		want = nhca_rss_hash(rss->key, rss->fields, &what) % QUEUES;
		used |= BIT(want);
		fix_post_recv(test, &rss->queue[want]->rq.wq, f->mr, i, 64);
		receive(front, skb);
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.qp_num, rss->queue[want]->qpn);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, used, BIT(QUEUES) - 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 0);
	for (i = 0; i < QUEUES; i++)
		fix_destroy(&rss->queue[i]);
}

/* Never called: only a rule of fault injection queues this work item, and there are no rules. */
static void no_link(struct work_struct *work)
{
}

/* Send a frame through the netdev.  Return: as nhca_frame_send(). */
static int send_really(struct qp_fixture *f)
{
	static const u8 bytes[ETH_ZLEN] = { [12] = 0x88, [13] = 0xb5 };
	struct nhca_iter it;
	int err;

	nhca_iter_bytes(&it, bytes);
	local_bh_disable();
	rcu_read_lock();
	err = nhca_frame_send(f->dev, &f->qp->who, f->qp->flow, &it, sizeof(bytes), NULL);
	rcu_read_unlock();
	local_bh_enable();
	return err;
}

/*
 * After nhca_steer_stop() the netdev may be running in another namespace. QPs that still exist must
 * send no frame there.
 */
static void stop_test(struct kunit *test)
{
	struct net_device *ndev = init_net.loopback_dev;
	struct qp_fixture *f = test->priv;
	bool up = ndev->flags & IFF_UP;
	u64 sent;

	kunit_deactivate_static_stub(test, nhca_frame_send);
	f->dev->steer = nhca_steer_create(ndev, NULL);
	f->dev->inject = nhca_inject_create(f->dev, no_link);
	KUNIT_ASSERT_TRUE(test, f->dev->steer && f->dev->inject);
	f->dev->netdev = ndev;
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, up ? 0 : dev_open(ndev, NULL), 0);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, send_really(f), 0);
	sent = fix_count(f, NHCA_CNT_SENT_PKTS);
	rtnl_lock();
	nhca_steer_stop(f->dev->steer);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, netif_running(ndev));
	KUNIT_EXPECT_EQ(test, send_really(f), -ENETDOWN);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENT_PKTS), sent);
	if (!up) {
		rtnl_lock();
		dev_close(ndev);
		rtnl_unlock();
	}
	nhca_inject_destroy(f->dev->inject);
	f->dev->inject = NULL;
	nhca_steer_destroy(f->dev->steer);
	f->dev->steer = NULL;
	f->dev->netdev = f->netdev;
}

static struct kunit_case raw_cases[] = {
	KUNIT_CASE(send_test),
	KUNIT_CASE(send_error_test),
	KUNIT_CASE(receive_test),
	KUNIT_CASE(drop_test),
	KUNIT_CASE(rss_test),
	KUNIT_CASE(stop_test),
	{}
};

static struct kunit_suite raw_suite = {
	.name = "nhca_raw",
	.init = raw_init,
	.exit = qp_fixture_exit,
	.test_cases = raw_cases,
};

kunit_test_suite(raw_suite);
