// SPDX-License-Identifier: GPL-2.0
/* KUnit: which packets of local sockets the netfilter hook refuses. */
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../net/guard.h"
#include "../wire/bth.h"

#ifdef CONFIG_NETFILTER

/**
 * struct guard_ctx - the sockets of a test
 * @kernel: a socket of the kernel
 * @root:   the file of a socket that a program with all capabilities has opened
 * @user:   the file of a socket that a program without capabilities has opened
 * @raw:    the file of a raw socket that a program with all capabilities has opened
 */
struct guard_ctx {
	struct socket *kernel;
	struct file *root;
	struct file *user;
	struct file *raw;
};

static struct file *guard_file(struct kunit *test, int type, int protocol)
{
	struct socket *sock;
	struct file *file;

	KUNIT_ASSERT_EQ(test, sock_create(AF_INET, type, protocol, &sock), 0);
	/* after an error sock_alloc_file() has released the socket */
	file = sock_alloc_file(sock, 0, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	return file;
}

static int guard_init(struct kunit *test)
{
	struct guard_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	const struct cred *before;
	struct cred *cred;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
					       &ctx->kernel), 0);
	ctx->root = guard_file(test, SOCK_DGRAM, IPPROTO_UDP);
	ctx->raw = guard_file(test, SOCK_RAW, IPPROTO_UDP);

	cred = prepare_creds();
	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_clear(cred->cap_effective);
	before = override_creds(cred);
	ctx->user = guard_file(test, SOCK_DGRAM, IPPROTO_UDP);
	revert_creds(before);
	put_cred(cred);
	return 0;
}

static void guard_exit(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;

	if (ctx->kernel)
		sock_release(ctx->kernel);
	if (ctx->root)
		fput(ctx->root);
	if (ctx->raw)
		fput(ctx->raw);
	if (ctx->user)
		fput(ctx->user);
}

static struct sock *guard_sk(struct file *file)
{
	return sock_from_file(file)->sk;
}

/* Return: a packet that begins with @network bytes of headers before the UDP header. */
static struct sk_buff *guard_skb(struct kunit *test, unsigned int network, u16 port)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct udphdr *uh;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reset_network_header(skb);
	skb_put_zero(skb, network);
	skb_set_transport_header(skb, network);
	uh = skb_put_zero(skb, sizeof(*uh));
	uh->dest = htons(port);
	return skb;
}

static struct sk_buff *guard_ip4(struct kunit *test, u8 protocol, u16 port)
{
	struct sk_buff *skb = guard_skb(test, sizeof(struct iphdr), port);

	ip_hdr(skb)->protocol = protocol;
	return skb;
}

/* Pass @skb of @sk to the hook, and free @skb. Return: the hook's verdict. */
static unsigned int guard_pass(struct sk_buff *skb, struct sock *sk, u8 family)
{
	struct nf_hook_state state = { .hook = NF_INET_LOCAL_OUT, .pf = family, .net = &init_net };
	unsigned int verdict;

	skb->sk = sk;
	verdict = nhca_guard_hook(NULL, skb, &state);
	skb->sk = NULL;
	kfree_skb(skb);
	return verdict;
}

static void guard_user_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);

	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->user), NFPROTO_IPV4), NF_DROP);
}

static void guard_privileged_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);

	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->root), NFPROTO_IPV4), NF_ACCEPT);
	skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);
	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->raw), NFPROTO_IPV4), NF_ACCEPT);
}

/*
 * nhca's own packets have no socket, and rdma_rxe's have a kernel socket, so the hook accepts both.
 */
static void guard_kernel_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);

	KUNIT_EXPECT_EQ(test, guard_pass(skb, NULL, NFPROTO_IPV4), NF_ACCEPT);
	skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);
	KUNIT_EXPECT_EQ(test, guard_pass(skb, ctx->kernel->sk, NFPROTO_IPV4), NF_ACCEPT);
}

static void guard_other_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT + 1);

	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->user), NFPROTO_IPV4), NF_ACCEPT);
	/*
	 * a TCP header has its ports at the same offset as a UDP header, but the hook refuses only
	 * UDP
	 */
	skb = guard_ip4(test, IPPROTO_TCP, NHCA_ROCE_UDP_PORT);
	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->user), NFPROTO_IPV4), NF_ACCEPT);
}

static void guard_ip6_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_skb(test, sizeof(struct ipv6hdr), NHCA_ROCE_UDP_PORT);

	ipv6_hdr(skb)->nexthdr = IPPROTO_UDP;
	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->user), NFPROTO_IPV6), NF_DROP);
	/* 8 bytes of hop-by-hop options are between the IPv6 header and the UDP header */
	skb = guard_skb(test, sizeof(struct ipv6hdr) + 8, NHCA_ROCE_UDP_PORT);
	ipv6_hdr(skb)->nexthdr = IPPROTO_HOPOPTS;
	KUNIT_EXPECT_EQ(test, guard_pass(skb, guard_sk(ctx->user), NFPROTO_IPV6), NF_DROP);
}

/*
 * A program has closed its socket while packets were queued: the hook cannot check the program's
 * privilege, so it drops the packets.
 */
static void guard_closed_test(struct kunit *test)
{
	struct guard_ctx *ctx = test->priv;
	struct sk_buff *skb = guard_ip4(test, IPPROTO_UDP, NHCA_ROCE_UDP_PORT);
	struct sock *sk = guard_sk(ctx->root);
	struct socket *sock = sk->sk_socket;
	unsigned int verdict;

	sk->sk_socket = NULL;
	verdict = guard_pass(skb, sk, NFPROTO_IPV4);
	sk->sk_socket = sock;
	KUNIT_EXPECT_EQ(test, verdict, NF_DROP);
}

static struct kunit_case guard_cases[] = {
	KUNIT_CASE(guard_user_test),
	KUNIT_CASE(guard_privileged_test),
	KUNIT_CASE(guard_kernel_test),
	KUNIT_CASE(guard_other_test),
	KUNIT_CASE(guard_ip6_test),
	KUNIT_CASE(guard_closed_test),
	{}
};

static struct kunit_suite guard_suite = {
	.name = "nhca_guard",
	.init = guard_init,
	.exit = guard_exit,
	.test_cases = guard_cases,
};

kunit_test_suite(guard_suite);

#endif
