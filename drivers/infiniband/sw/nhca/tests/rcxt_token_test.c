// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a token is valid for one pair of addresses, for a limited time, on one device. The last
 * case tests which challenges a read accepts.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../rcxt/tid.h"
#include "../rcxt/token.h"

#define PERIOD	BIT_ULL(NHCA_TOKEN_PERIOD_SHIFT)
#define NOW	(10 * PERIOD)

static struct in6_addr addr(u32 host)
{
	return (struct in6_addr) { .s6_addr32 = { 0, 0, htonl(0xffff), htonl(host) } };
}

static struct nhca_tokens *tokens_new(struct kunit *test)
{
	struct nhca_tokens *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	nhca_tokens_init(t);
	return t;
}

/* A token is valid only for the pair of addresses and the device that it was made for. */
static void token_bound_to_address(struct kunit *test)
{
	struct nhca_tokens *t = tokens_new(test), *other = tokens_new(test);
	struct in6_addr own = addr(1), host, wrong;
	u64 token;
	u32 i, bit;

	for (i = 2; i < 500; i++) {
		host = addr(i);
		token = nhca_token_make(t, &host, &own, NOW);
		KUNIT_EXPECT_NE(test, token, 0);
		KUNIT_EXPECT_TRUE(test, nhca_token_good(t, &host, &own, NOW, token));
		KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &host, &own, NOW, 0));
		KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &own, &host, NOW, token));
		KUNIT_EXPECT_FALSE(test, nhca_token_good(other, &host, &own, NOW, token));
		for (bit = 0; bit < 128; bit++) {
			wrong = host;
			wrong.s6_addr[bit / 8] ^= BIT(bit % 8);
			KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &wrong, &own, NOW, token));
			wrong = own;
			wrong.s6_addr[bit / 8] ^= BIT(bit % 8);
			KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &host, &wrong, NOW, token));
		}
		for (bit = 0; bit < 64; bit++)
			KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &host, &own, NOW,
								 token ^ BIT_ULL(bit)));
	}
}

/* A token is valid for at least one period and at most two. */
static void token_expires(struct kunit *test)
{
	struct nhca_tokens *t = tokens_new(test);
	struct in6_addr own = addr(1), host = addr(2);
	u64 token, begin, age;

	for (begin = 0; begin < 3 * PERIOD; begin += 7) {
		token = nhca_token_make(t, &host, &own, begin);
		for (age = 0; age <= PERIOD; age += 16)
			KUNIT_EXPECT_TRUE(test, nhca_token_good(t, &host, &own, begin + age,
								token));
		KUNIT_EXPECT_FALSE(test, nhca_token_good(t, &host, &own, begin + 2 * PERIOD,
							 token));
	}
}

/* The cache returns the latest token of a host, or none, but never the token of another host. */
static void token_cache(struct kunit *test)
{
	struct nhca_tokens *t = tokens_new(test);
	struct in6_addr own = addr(1), other = addr(0x80000001), host;
	u32 i, found = 0;
	u64 token;

	for (i = 2; i < 100; i++) {
		host = addr(i);
		KUNIT_EXPECT_EQ(test, nhca_token_known(t, &host, &own), 0);
		nhca_token_learn(t, &host, &own, i);
		KUNIT_EXPECT_EQ(test, nhca_token_known(t, &host, &own), i);
		nhca_token_learn(t, &host, &own, i + 1000);
		KUNIT_EXPECT_EQ(test, nhca_token_known(t, &host, &own), i + 1000);
		KUNIT_EXPECT_EQ(test, nhca_token_known(t, &host, &other), 0);
		KUNIT_EXPECT_EQ(test, nhca_token_known(t, &own, &host), 0);
	}
	for (i = 2; i < 100; i++) {
		host = addr(i);
		token = nhca_token_known(t, &host, &own);
		found += token == i + 1000;
		KUNIT_EXPECT_TRUE(test, !token || token == i + 1000);
	}
	/* 98 random slots of 256: on average later hosts overwrite 16 of them */
	KUNIT_EXPECT_GT(test, found, 40);
	/* more hosts than slots, so later hosts overwrite the tokens of earlier hosts */
	for (i = 2; i < 4000; i++) {
		host = addr(i);
		nhca_token_learn(t, &host, &own, i);
	}
	for (i = 2, found = 0; i < 4000; i++) {
		host = addr(i);
		token = nhca_token_known(t, &host, &own);
		found += !!token;
		KUNIT_EXPECT_TRUE(test, !token || token == i);
	}
	KUNIT_EXPECT_LE(test, found, NHCA_TOKENS);
	KUNIT_EXPECT_GT(test, found, NHCA_TOKENS / 2);
}

/*
 * A read accepts a challenge only while the read is in progress. The challenge must repeat values
 * of the request, which prove that the sender of the challenge has received the request.
 */
static void token_challenge_of_read(struct kunit *test)
{
	struct nhca_rcxt rc = { .state = NHCA_RCXT_READING, .tid = 7, .total = 2000,
				.segment = 1024, .pvo = 0x123456789000 };
	struct nhca_rxeth x = { .tid = 7, .total = 2000, .segment = 1024,
				.reply_pvo = 0x123456789000, .pvo = 0x4000 }, y;
	int state;

	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &x), NHCA_RCXT_ACCEPT);
	y = x;
	y.tid = 6;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &y), NHCA_RCXT_STALE);
	y.tid = 8;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &y), NHCA_RCXT_UNSOLICITED);
	y = x;
	y.reply_pvo += 4096;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &y), NHCA_RCXT_MISMATCH);
	y = x;
	y.total--;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &y), NHCA_RCXT_MISMATCH);
	y = x;
	y.segment = 512;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &y), NHCA_RCXT_MISMATCH);
	for (state = NHCA_RCXT_FREE; state <= NHCA_RCXT_VIOLATED; state++) {
		rc.state = state;
		KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &x) == NHCA_RCXT_ACCEPT,
				state == NHCA_RCXT_READING);
	}
}

static struct kunit_case token_cases[] = {
	KUNIT_CASE(token_bound_to_address),
	KUNIT_CASE(token_expires),
	KUNIT_CASE(token_cache),
	KUNIT_CASE(token_challenge_of_read),
	{}
};

static struct kunit_suite token_suite = {
	.name = "nhca_rcxt_token",
	.test_cases = token_cases,
};

kunit_test_suite(token_suite);
