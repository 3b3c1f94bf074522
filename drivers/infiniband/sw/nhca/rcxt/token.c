// SPDX-License-Identifier: GPL-2.0
/*
 * Tokens: proof that the sender of a request receives packets at its source address.
 */
#include <linux/random.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "token.h"

/*
 * A period that no clock reaches.  Hashes with this period select entries of nhca_tokens.known.
 * These hashes are never sent, and are no valid tokens.
 */
#define TOKEN_PLACE	U64_MAX

static u64 token_hash(const struct nhca_tokens *t, const struct in6_addr *peer,
		      const struct in6_addr *own, u64 period)
{
	struct {
		struct in6_addr peer, own;
		u64 period;
	} __aligned(SIPHASH_ALIGNMENT) all = { *peer, *own, period };

	static_assert(sizeof(all) == 2 * sizeof(struct in6_addr) + sizeof(u64));
	return siphash(&all, sizeof(all), &t->secret);
}

static u64 token_of_period(const struct nhca_tokens *t, const struct in6_addr *peer,
			   const struct in6_addr *own, u64 period)
{
	/* 0 in a request means that the request has no token */
	return token_hash(t, peer, own, period) ?: 1;
}

void nhca_tokens_init(struct nhca_tokens *t)
{
	memset(t, 0, sizeof(*t));
	get_random_bytes(&t->secret, sizeof(t->secret));
	spin_lock_init(&t->lock);
}

u64 nhca_token_make(const struct nhca_tokens *t, const struct in6_addr *peer,
		    const struct in6_addr *own, u64 now)
{
	return token_of_period(t, peer, own, now >> NHCA_TOKEN_PERIOD_SHIFT);
}

bool nhca_token_good(const struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own, u64 now, u64 token)
{
	u64 period = now >> NHCA_TOKEN_PERIOD_SHIFT;

	if (!token)
		return false;
	return token == token_of_period(t, peer, own, period) ||
	       (period && token == token_of_period(t, peer, own, period - 1));
}

static struct nhca_token *token_place(struct nhca_tokens *t, const struct in6_addr *peer,
				      const struct in6_addr *own)
{
	return &t->known[token_hash(t, peer, own, TOKEN_PLACE) % NHCA_TOKENS];
}

void nhca_token_learn(struct nhca_tokens *t, const struct in6_addr *peer,
		      const struct in6_addr *own, u64 token)
{
	struct nhca_token *k = token_place(t, peer, own);

	spin_lock_bh(&t->lock);
	*k = (struct nhca_token) { *peer, *own, token };
	spin_unlock_bh(&t->lock);
}

u64 nhca_token_known(struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own)
{
	struct nhca_token *k = token_place(t, peer, own);
	u64 token = 0;

	spin_lock_bh(&t->lock);
	if (ipv6_addr_equal(&k->peer, peer) && ipv6_addr_equal(&k->own, own))
		token = k->value;
	spin_unlock_bh(&t->lock);
	return token;
}
