/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tokens: proof that the sender of a request receives what is sent to its address.
 *
 * A read request of 100 bytes makes a channel send 16 MiB to the request's source address, which
 * anybody can write into a packet.  So an answer that is longer than its request goes only to a
 * host that has shown a token.  The token is a keyed hash of the two addresses and the time, and
 * was sent to that address in a challenge, which is not longer than the request.  The responder
 * keeps no state for it; the requester keeps the last token of each of a number of hosts.
 *
 * No skb and no socket; one lock, which nests in any other.
 */
#ifndef NHCA_RCXT_TOKEN_H
#define NHCA_RCXT_TOKEN_H

#include <linux/in6.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* tokens of other hosts that a device remembers; one that is forgotten costs a round trip */
#define NHCA_TOKENS		256u
/* a token is good for one to two periods of 2^8 seconds */
#define NHCA_TOKEN_PERIOD_SHIFT	8

/**
 * struct nhca_token - a token that another host has sent
 * @peer:  that host
 * @own:   address of this device that it was sent to
 * @value: what it was; 0: the entry is free
 */
struct nhca_token {
	struct in6_addr peer;
	struct in6_addr own;
	u64 value;
};

/**
 * struct nhca_tokens - tokens of a device
 * @secret: of those that it hands out
 * @lock:   of @known
 * @known:  those that it was sent, each in the place that its addresses hash to
 */
struct nhca_tokens {
	siphash_key_t secret;
	/* of the tokens that are known */
	spinlock_t lock;
	struct nhca_token known[NHCA_TOKENS];
};

/**
 * nhca_tokens_init - no token is known, and all that were handed out before are void
 * @t: filled in
 * Context: any, before anybody uses @t.
 */
void nhca_tokens_init(struct nhca_tokens *t);

/**
 * nhca_token_make - the token that vouches for a peer's address
 * @t:    of the device
 * @peer: source address of the request; IPv4 addresses are mapped
 * @own:  its destination address
 * @now:  seconds since boot
 * Context: any.
 * Return: the token, never 0.
 */
u64 nhca_token_make(const struct nhca_tokens *t, const struct in6_addr *peer,
		    const struct in6_addr *own, u64 now);

/**
 * nhca_token_good - does a request's token vouch for its source address?
 * @t:     of the device
 * @peer:  source address of the request
 * @own:   its destination address
 * @now:   seconds since boot
 * @token: what the request has; 0: none
 * Context: any.
 * Return: true if nhca_token_make() gave @token for these addresses in this period or the last.
 */
bool nhca_token_good(const struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own, u64 now, u64 token);

/**
 * nhca_token_learn - a host that was asked has sent a token
 * @t:     of the device
 * @peer:  that host's address
 * @own:   address of this device
 * @token: the token; takes the place of an older one
 * Context: any but hard interrupts.
 */
void nhca_token_learn(struct nhca_tokens *t, const struct in6_addr *peer,
		      const struct in6_addr *own, u64 token);

/**
 * nhca_token_known - the token for a request
 * @t:    of the device
 * @peer: destination address of the request
 * @own:  its source address
 * Context: any but hard interrupts.
 * Return: the last token that @peer has sent, 0 if it has sent none or was forgotten.
 */
u64 nhca_token_known(struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own);

#endif /* NHCA_RCXT_TOKEN_H */
