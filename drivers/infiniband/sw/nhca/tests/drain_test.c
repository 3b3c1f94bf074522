// SPDX-License-Identifier: GPL-2.0
/* KUnit: the budget of one pass over a socket, after which other bottom halves run. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../ingress/ingress.h"
#include "../net/net.h"
#include "../net/sockets.h"

/* datagrams in a queue: more than three budgets */
#define DATAGRAMS	(3 * NHCA_RX_BUDGET + 7)
#define BIG		61440U

/**
 * struct drain - a receive socket as nhca has it, on a port that the stack selects
 * @nn:   nhca's part of the initial namespace
 * @ns:   the socket
 * @from: a socket that sends to @ns
 * @to:   address of @ns
 */
struct drain {
	struct nhca_net *nn;
	struct nhca_sock ns;
	struct socket *from;
	struct sockaddr_in to;
};

static void lo_up(void)
{
	rtnl_lock();
	dev_change_flags(init_net.loopback_dev, init_net.loopback_dev->flags | IFF_UP, NULL);
	rtnl_unlock();
}

static void drain_exit(struct kunit *test)
{
	struct drain *d = test->priv;

	if (!d)
		return;
	if (d->ns.sock) {
		rcu_assign_sk_user_data(d->ns.sock->sk, NULL);
		synchronize_rcu();
		nhca_bh_kill(&d->ns.rest);
		sock_release(d->ns.sock);
	}
	if (d->from)
		sock_release(d->from);
	nhca_net_put(d->nn);
}

static struct drain *drain_make(struct kunit *test)
{
	struct drain *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct sock *sk;

	KUNIT_ASSERT_NOT_NULL(test, d);
	lo_up();
	d->nn = nhca_net_get(&init_net);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, d->nn);
	test->priv = d;
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
					       &d->from), 0);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
					       &d->ns.sock), 0);
	d->ns.nn = d->nn;
	nhca_bh_init(&d->ns.rest, nhca_sk_rest);
	/*
	 * ready is 1 as if another CPU drained the socket, so nhca_sk_data_ready() processes no
	 * packet
	 */
	atomic_set(&d->ns.ready, 1);

	d->to.sin_family = AF_INET;
	d->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	KUNIT_ASSERT_EQ(test, kernel_bind(d->ns.sock, (void *)&d->to, sizeof(d->to)), 0);
	KUNIT_ASSERT_GT(test, kernel_getsockname(d->ns.sock, (void *)&d->to), 0);
	sk = d->ns.sock->sk;
	WRITE_ONCE(sk->sk_rcvbuf, 64 << 20);
	rcu_assign_sk_user_data(sk, &d->ns);
	WRITE_ONCE(sk->sk_data_ready, nhca_sk_data_ready);
	return d;
}

/* Return: number of skbs in the queues of the socket. */
static unsigned int drain_left(const struct drain *d)
{
	struct sock *sk = d->ns.sock->sk;

	return skb_queue_len_lockless(&udp_sk(sk)->reader_queue) +
	       skb_queue_len_lockless(&sk->sk_receive_queue);
}

static bool drain_comes_to(const struct drain *d, unsigned int left)
{
	int i;

	for (i = 0; i < 1000 && drain_left(d) != left; i++)
		msleep(20);
	return drain_left(d) == left;
}

/* Return: true if no CPU drains the socket. */
static bool drain_is_idle(const struct drain *d)
{
	int i;

	for (i = 0; i < 1000 && atomic_read(&d->ns.ready); i++)
		msleep(20);
	return !atomic_read(&d->ns.ready);
}

/*
 * Queue @count datagrams of @len bytes that are for no QP or channel. @d->ns.ready must not be 0,
 * so that no CPU drains the socket.
 */
static void drain_fill(struct kunit *test, struct drain *d, unsigned int count, unsigned int len)
{
	void *bytes = kunit_kzalloc(test, len, GFP_KERNEL);
	struct msghdr msg = {
		.msg_name = &d->to,
		.msg_namelen = sizeof(d->to),
	};
	struct kvec vec = { bytes, len };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_EQ(test, kernel_sendmsg(d->from, &msg, &vec, 1, len), len);
		/* let the stack process its backlog, so that it drops no datagram */
		if (i % 64 == 63)
			KUNIT_ASSERT_TRUE(test, drain_comes_to(d, i + 1));
	}
	KUNIT_ASSERT_TRUE(test, drain_comes_to(d, count));
}

/*
 * Let this CPU drain the socket, as if another packet had arrived. Return: number of skbs that the
 * call has processed.
 */
static unsigned int drain_once(struct drain *d)
{
	unsigned int before = drain_left(d);
	unsigned int taken;

	atomic_set(&d->ns.ready, 0);
	rcu_read_lock();
	local_bh_disable();
	nhca_sk_data_ready(d->ns.sock->sk);
	taken = before - drain_left(d);
	local_bh_enable();
	rcu_read_unlock();
	return taken;
}

/*
 * A call that finds a long queue processes one budget of packets and leaves the other packets to
 * the bottom half.
 */
static void drain_stops_at_budget(struct kunit *test)
{
	struct drain *d = drain_make(test);

	drain_fill(test, d, DATAGRAMS, 16);
	KUNIT_EXPECT_EQ(test, drain_once(d), NHCA_RX_BUDGET);
}

/*
 * The budget also limits bytes, because channels have long packets: a packet of 60 KiB counts as 15
 * packets of 4 KiB.
 */
static void drain_counts_bytes(struct kunit *test)
{
	struct drain *d = drain_make(test);

	drain_fill(test, d, 2 * NHCA_RX_BUDGET * SZ_4K / BIG, BIG);
	KUNIT_EXPECT_EQ(test, drain_once(d), DIV_ROUND_UP(NHCA_RX_BUDGET * SZ_4K, BIG));
}

/*
 * The packets beyond the budget are processed although no further packet arrives. Afterwards no CPU
 * drains the socket.
 */
static void drain_continues(struct kunit *test)
{
	struct drain *d = drain_make(test);

	drain_fill(test, d, DATAGRAMS, 16);
	drain_once(d);
	KUNIT_EXPECT_TRUE(test, drain_comes_to(d, 0));
	KUNIT_EXPECT_TRUE(test, drain_is_idle(d));
}

/*
 * While packets beyond the budget wait for the bottom half, the call for a new packet processes
 * nothing. So new packets cannot overtake waiting packets.
 */
static void drain_keeps_order(struct kunit *test)
{
	struct drain *d = drain_make(test);
	unsigned int left;

	drain_fill(test, d, DATAGRAMS, 16);
	atomic_set(&d->ns.ready, 0);
	rcu_read_lock();
	local_bh_disable();
	nhca_sk_data_ready(d->ns.sock->sk);
	left = drain_left(d);
	nhca_sk_data_ready(d->ns.sock->sk);
	KUNIT_EXPECT_EQ(test, drain_left(d), left);
	local_bh_enable();
	rcu_read_unlock();
	KUNIT_EXPECT_TRUE(test, drain_comes_to(d, 0));
}

/*
 * Only one CPU processes a queue, however many packets have arrived since the queue was last empty
 * (here 2^32 - 1).
 */
static void drain_count_never_wraps(struct kunit *test)
{
	struct drain *d = drain_make(test);
	unsigned int left, taken;

	drain_fill(test, d, DATAGRAMS, 16);
	atomic_set(&d->ns.ready, -1);
	rcu_read_lock();
	local_bh_disable();
	nhca_sk_rest(&d->ns.rest);
	left = drain_left(d);
	nhca_sk_data_ready(d->ns.sock->sk);
	nhca_sk_data_ready(d->ns.sock->sk);
	taken = left - drain_left(d);
	local_bh_enable();
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, left, DATAGRAMS - NHCA_RX_BUDGET);
	KUNIT_EXPECT_EQ(test, taken, 0);
	KUNIT_EXPECT_TRUE(test, drain_comes_to(d, 0));
}

/*
 * All calls of nhca_sk_data_ready() in one jiffy together may process NHCA_RX_JIFFY packets. A call
 * that reaches this limit (here after 10 packets) stops, and the bottom half continues.
 */
static void drain_stops_in_jiffy(struct kunit *test)
{
	struct drain *d = drain_make(test);
	unsigned int taken, tries;
	u32 now;

	drain_fill(test, d, DATAGRAMS, 16);
	/* try again if another jiffy began before drain_once() computed its budget */
	for (tries = 0; tries < 3; tries++) {
		local_bh_disable();
		now = jiffies;
		d->ns.since = now;
		d->ns.left = 10;
		taken = drain_once(d);
		if (d->ns.since == now)
			break;
		local_bh_enable();
		KUNIT_ASSERT_TRUE(test, drain_comes_to(d, 0));
		atomic_set(&d->ns.ready, 1);
		drain_fill(test, d, DATAGRAMS, 16);
	}
	KUNIT_ASSERT_LT(test, tries, 3);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, taken, 10);
	KUNIT_EXPECT_TRUE(test, drain_comes_to(d, 0));
	/* in a new jiffy the whole allowance is available again */
	msleep(20);
	atomic_set(&d->ns.ready, 1);
	drain_fill(test, d, DATAGRAMS, 16);
	KUNIT_EXPECT_EQ(test, drain_once(d), NHCA_RX_BUDGET);
}

/* A queue of exactly one budget is emptied, and the socket is idle. */
static void drain_empties_queue(struct kunit *test)
{
	struct drain *d = drain_make(test);

	drain_fill(test, d, NHCA_RX_BUDGET, 16);
	KUNIT_EXPECT_EQ(test, drain_once(d), NHCA_RX_BUDGET);
	KUNIT_EXPECT_TRUE(test, drain_is_idle(d));
}

static struct kunit_case drain_cases[] = {
	KUNIT_CASE(drain_stops_at_budget),
	KUNIT_CASE(drain_counts_bytes),
	KUNIT_CASE(drain_continues),
	KUNIT_CASE(drain_keeps_order),
	KUNIT_CASE(drain_count_never_wraps),
	KUNIT_CASE(drain_empties_queue),
	KUNIT_CASE(drain_stops_in_jiffy),
	{}
};

static struct kunit_suite drain_suite = {
	.name = "nhca_drain",
	.exit = drain_exit,
	.test_cases = drain_cases,
};

kunit_test_suite(drain_suite);
