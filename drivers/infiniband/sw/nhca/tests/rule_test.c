// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: rules of fault injection: parsing and printing, the packets that a rule matches, and that
 * a rule makes the same decisions in each run.
 */
#include <kunit/test.h>
#include <linux/math.h>
#include <linux/seq_file.h>

#include "../nhca.h"
#include "../observe/rule.h"
#include "../wire/bth.h"

static int parse(struct nhca_rule *r, const char *words)
{
	char text[256];

	memset(r, 0, sizeof(*r));
	strscpy(text, words, sizeof(text));
	return nhca_rule_parse(r, text);
}

/* Return: the rule as nhca_rule_show() prints it. */
static const char *shown(struct kunit *test, const struct nhca_rule *r)
{
	struct seq_file m = { .size = 256 };

	m.buf = kunit_kzalloc(test, m.size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	nhca_rule_show(r, &m);
	return m.buf;
}

/* Each form of a rule is parsed, and printed with all its values. */
static void rule_words(struct kunit *test)
{
	static const char * const rules[][2] = {
		{ "drop", "0: drop send probability 100%: hit 0 of 0\n" },
		{ "drop receive qp 0x11 opcode cnp probability 25% seed 7",
		  "0: drop receive qp 17 opcode cnp probability 25% seed 7: hit 0 of 0\n" },
		{ "  delay  10\tevery 3 times 2\n",
		  "0: delay 10 send every 3 times 2: hit 0 of 0\n" },
		{ "reorder 2 probability 0.01%",
		  "0: reorder 2 send probability 0.0100%: hit 0 of 0\n" },
		{ "corrupt send probability 12.5%",
		  "0: corrupt send probability 12.5000%: hit 0 of 0\n" },
		{ "nak access opcode write",
		  "0: nak access opcode write probability 100%: hit 0 of 0\n" },
		{ "rnr times 3", "0: rnr probability 100% times 3: hit 0 of 0\n" },
		{ "cq qp 5", "0: cq qp 5 probability 100%: hit 0 of 0\n" },
		{ "mr ENOMEM every 2", "0: mr ENOMEM every 2: hit 0 of 0\n" },
		{ "link 500 opcode send_only",
		  "0: link 500 opcode send_only probability 100%: hit 0 of 0\n" },
	};
	struct nhca_rule r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		KUNIT_EXPECT_EQ_MSG(test, parse(&r, rules[i][0]), 0, "%s", rules[i][0]);
		KUNIT_EXPECT_STREQ(test, shown(test, &r), rules[i][1]);
	}
	KUNIT_EXPECT_EQ(test, parse(&r, "link 5 now"), 0);
	KUNIT_EXPECT_TRUE(test, r.now);
}

/*
 * A text that is not a rule is refused with -EINVAL, a number out of range with -ERANGE, and an
 * unknown opcode with -ENXIO.
 */
static void rule_invalid(struct kunit *test)
{
	static const struct {
		const char *words;
		int err;
	} rules[] = {
		{ "", -EINVAL }, { "lose", -EINVAL }, { "delay", -EINVAL }, { "delay x", -EINVAL },
		{ "delay 0", -ERANGE }, { "delay 10001", -ERANGE },
		{ "delay 99999999999", -ERANGE },
		{ "reorder 65", -ERANGE }, { "link 60001", -ERANGE }, { "nak", -EINVAL },
		{ "nak rude", -EINVAL }, { "mr", -EINVAL }, { "mr 12", -EINVAL },
		{ "drop qp", -EINVAL }, { "drop qp 0", -ERANGE }, { "drop qp 0x1000000", -ERANGE },
		{ "drop qp -1", -EINVAL }, { "drop opcode", -EINVAL }, { "drop opcode x", -ENXIO },
		{ "drop opcode an_opcode_with_a_name_that_is_longer_than_any", -ENXIO },
		{ "drop probability 50", -EINVAL }, { "drop probability %", -EINVAL },
		{ "drop probability 0%", -ERANGE }, { "drop probability 100.0001%", -ERANGE },
		{ "drop probability 4294967396%", -ERANGE }, { "drop probability -1%", -EINVAL },
		{ "drop probability 0.00001%", -EINVAL }, { "drop probability 1.2.3%", -EINVAL },
		{ "drop probability 1%%", -EINVAL }, { "drop every 0", -ERANGE },
		{ "drop every 2 probability 5%", -EINVAL }, { "drop every 2 every 3", -EINVAL },
		{ "drop send receive", -EINVAL }, { "drop times 0", -ERANGE },
		{ "drop seed 0x8000000000000000", -ERANGE }, { "drop seed", -EINVAL },
		{ "drop now", -EINVAL }, { "link 5 now times 1", -EINVAL },
		{ "link 5 times 1 now", -EINVAL }, { "link 5 receive", -EINVAL },
		{ "nak access receive", -EINVAL }, { "cq opcode send", -EINVAL },
		{ "mr ENOMEM qp 5", -EINVAL }, { "drop drop", -EINVAL }, { "rnr 5", -EINVAL },
	};
	struct nhca_rule r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		KUNIT_EXPECT_EQ_MSG(test, parse(&r, rules[i].words), rules[i].err, "%s",
				    rules[i].words);
}

/*
 * A rule matches packets of its place, its QP and its opcode. An opcode name without a service
 * matches the opcode of all services, and a name without FIRST, MIDDLE, LAST or ONLY matches all of
 * them.
 */
static void rule_matches(struct kunit *test)
{
	struct nhca_rule r;

	KUNIT_ASSERT_EQ(test, parse(&r, "drop qp 300 opcode send_only"), 0);
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_SEND, 300, NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_SEND, 300,
						  NHCA_SVC_UD | NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_SEND, 300,
						  NHCA_SVC_XRC | NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_RECEIVE, 300, NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_SEND, 301, NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_SEND, 300, NHCA_OP_SEND_FIRST));

	KUNIT_ASSERT_EQ(test, parse(&r, "drop receive opcode ud_send_only"), 0);
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_RECEIVE, 7,
						  NHCA_SVC_UD | NHCA_OP_SEND_ONLY));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_RECEIVE, 7, NHCA_OP_SEND_ONLY));

	KUNIT_ASSERT_EQ(test, parse(&r, "nak invalid opcode write"), 0);
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_REQUEST, 7, NHCA_OP_WRITE_MIDDLE));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_REQUEST, 7, NHCA_OP_SEND_MIDDLE));

	KUNIT_ASSERT_EQ(test, parse(&r, "nak access opcode flush"), 0);
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_REQUEST, 7, NHCA_OP_FLUSH));
	KUNIT_EXPECT_FALSE(test, nhca_rule_matches(&r, NHCA_AT_REQUEST, 7, NHCA_OP_ATOMIC_WRITE));

	KUNIT_ASSERT_EQ(test, parse(&r, "cq"), 0);
	KUNIT_EXPECT_TRUE(test, nhca_rule_matches(&r, NHCA_AT_CQE, 9, 0));
}

/*
 * Return: the decisions for the first 64 items of a stream: bit n is set if the rule hits item n.
 */
static u64 pattern(const struct nhca_rule *r, u32 stream)
{
	u64 bits = 0;
	unsigned int n;

	for (n = 0; n < 64; n++)
		bits |= (u64)nhca_rule_hits(r, stream, n) << n;
	return bits;
}

/* The same rule and seed give the same decisions. Another seed or stream gives other decisions. */
static void rule_repeats(struct kunit *test)
{
	struct nhca_rule a, b;

	KUNIT_ASSERT_EQ(test, parse(&a, "drop probability 50% seed 7"), 0);
	KUNIT_ASSERT_EQ(test, parse(&b, "drop probability 50% seed 7"), 0);
	KUNIT_EXPECT_EQ(test, pattern(&a, 0), pattern(&b, 0));
	KUNIT_EXPECT_NE(test, pattern(&a, 0), pattern(&a, 1));
	b.seed = 8;
	KUNIT_EXPECT_NE(test, pattern(&a, 0), pattern(&b, 0));
	/*
	 * expected values: SipHash-2-4 of n with key (seed, stream), little endian, from another
	 * implementation
	 */
	KUNIT_EXPECT_EQ(test, nhca_rule_dice(&a, 0, 0), 0x20dd4b78fb033135ULL);
	KUNIT_EXPECT_EQ(test, nhca_rule_dice(&a, 3, 1000000), 0x62e3b26407394eceULL);

	KUNIT_ASSERT_EQ(test, parse(&a, "drop every 3"), 0);
	KUNIT_EXPECT_EQ(test, pattern(&a, 0), 0x4924924924924924ULL);
	KUNIT_ASSERT_EQ(test, parse(&a, "drop"), 0);
	KUNIT_EXPECT_EQ(test, pattern(&a, 5), U64_MAX);
}

static u32 rule_place_backwards(u32 qpn)
{
	return NHCA_QPN_MAX - qpn;
}

/*
 * A QP's stream depends on the position of its QPN in the order of allocation after the rule was
 * added, so that the stream is the same in each run. Positions continue where QPNs wrap.
 */
static void rule_streams(struct kunit *test)
{
	const u32 last = NHCA_QPN_MAX, before = NHCA_QPN_MIN;
	struct nhca_rule a = { .base = 0x5000 - before }, b = { .base = last - before };

	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, 0x5000, NHCA_OP_SEND_ONLY), 0);
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, 0x5000, NHCA_OP_ACK), 1);
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, 0x5007, NHCA_OP_SEND_ONLY), 14);
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&b, last, NHCA_OP_SEND_ONLY), 0);
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&b, NHCA_QPN_MIN, NHCA_OP_SEND_ONLY), 2);
	/* a.place is set, so a.place() gives the position of a QPN */
	a.place = rule_place_backwards;
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, last - a.base, NHCA_OP_SEND_ONLY), 0);
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, last - a.base - 3, NHCA_OP_ACK), 7);
	/* QP 1 has the same stream with each base; items without a QP (0) have another stream */
	KUNIT_EXPECT_EQ(test, nhca_rule_stream(&a, 1, 0), nhca_rule_stream(&b, 1, 0));
	KUNIT_EXPECT_NE(test, nhca_rule_stream(&a, 0, 0), nhca_rule_stream(&a, 1, 0));
}

/* A rule hits as many items as its probability says, except for a statistical deviation. */
static void rule_probability_holds(struct kunit *test)
{
	static const u32 ppm[] = { 100, 10000, 250000, 500000, 900000, 1000000 };
	const u32 count = 200000;
	u32 i, n, hits, expected, slack;
	struct nhca_rule r = {};

	for (i = 0; i < ARRAY_SIZE(ppm); i++) {
		r.ppm = ppm[i];
		r.seed = i;
		for (n = 0, hits = 0; n < count; n++)
			hits += nhca_rule_hits(&r, n % 10, n / 10);
		expected = count / 100 * (ppm[i] / 100) / 100;
		/*
		 * at least 4.4 standard deviations, because int_sqrt() rounds down; 0 for 100%,
		 * because then all items are hit
		 */
		slack = ppm[i] == 1000000 ? 0 : 5 * int_sqrt(expected);
		KUNIT_EXPECT_LE_MSG(test, abs((s32)hits - (s32)expected), slack,
				    "%u ppm: %u of %u", ppm[i], hits, count);
	}
}

static struct kunit_case rule_cases[] = {
	KUNIT_CASE(rule_words),
	KUNIT_CASE(rule_invalid),
	KUNIT_CASE(rule_matches),
	KUNIT_CASE(rule_repeats),
	KUNIT_CASE(rule_streams),
	KUNIT_CASE(rule_probability_holds),
	{}
};

static struct kunit_suite rule_suite = {
	.name = "nhca_rule",
	.test_cases = rule_cases,
};

kunit_test_suite(rule_suite);
