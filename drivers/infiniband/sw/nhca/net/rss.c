// SPDX-License-Identifier: GPL-2.0
/* Receive side scaling. */
#include <linux/ipv6.h>
#include <linux/string.h>

#include "rss.h"
#include "../wire/compat.h"

/**
 * struct nhca_rss_sum - a Toeplitz hash in progress
 * @key:    the part of the key after @window
 * @window: the 32 bits of the key for the next bit of the input
 * @hash:   the hash of the input so far
 */
struct nhca_rss_sum {
	const u8 *key;
	u32 window;
	u32 hash;
};

/*
 * Toeplitz: for each bit of the input that is 1, XOR into the hash the 32 bits of the key that
 * begin at the position of this bit.
 */
static void nhca_rss_add(struct nhca_rss_sum *sum, const void *input, size_t len)
{
	const u8 *p = input;
	int bit;

	for (; len; len--, p++, sum->key++) {
		for (bit = 7; bit >= 0; bit--) {
			if (*p & BIT(bit))
				sum->hash ^= sum->window;
			sum->window = sum->window << 1 | ((*sum->key >> bit) & 1);
		}
	}
}

u32 nhca_rss_hash(const u8 *key, u32 fields, const struct nhca_steer_key *what)
{
	struct nhca_rss_sum sum = {
		.key = key + sizeof(u32),
		.window = get_unaligned_be32(key),
	};
	bool v6 = what->type == htons(ETH_P_IPV6);
	bool tcp = what->proto == IPPROTO_TCP;

	/* the longest input and a window of 32 bits together are exactly as long as the key */
	BUILD_BUG_ON(2 * sizeof(struct in6_addr) + 2 * sizeof(__be16) + sizeof(u32) !=
		     NHCA_RSS_KEY);
	if (v6 && (fields & NHCA_RSS_SRC_IPV6))
		nhca_rss_add(&sum, &what->src, sizeof(what->src));
	else if (!v6 && (fields & NHCA_RSS_SRC_IPV4))
		nhca_rss_add(&sum, &what->src.s6_addr32[3], sizeof(__be32));
	if (v6 && (fields & NHCA_RSS_DST_IPV6))
		nhca_rss_add(&sum, &what->dst, sizeof(what->dst));
	else if (!v6 && (fields & NHCA_RSS_DST_IPV4))
		nhca_rss_add(&sum, &what->dst.s6_addr32[3], sizeof(__be32));
	if (fields & (tcp ? NHCA_RSS_SRC_PORT_TCP : NHCA_RSS_SRC_PORT_UDP))
		nhca_rss_add(&sum, &what->sport, sizeof(what->sport));
	if (fields & (tcp ? NHCA_RSS_DST_PORT_TCP : NHCA_RSS_DST_PORT_UDP))
		nhca_rss_add(&sum, &what->dport, sizeof(what->dport));
	return sum.hash;
}

struct nhca_qp *nhca_rss_pick(const struct nhca_rss *rss, const struct sk_buff *skb)
{
	struct nhca_steer_key what;

	nhca_steer_parse(skb, &what);
	return rss->queue[nhca_rss_hash(rss->key, rss->fields, &what) & rss->mask];
}
