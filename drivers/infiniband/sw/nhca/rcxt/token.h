/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tokens: proof that the sender of a request receives packets at the request's source address.
 *
 * A read request of about 150 bytes makes a channel send up to 16 MiB to the source address of the
 * request, which a sender can forge.  So a host sends an answer that is longer than the request
 * only if the request has a valid token.  A token is a keyed hash of source address, destination
 * address and time.  The responder sends the token to the source address in a challenge, which is
 * as long as the request.  The responder stores nothing for a token.  The requester stores the
 * latest token of each of up to NHCA_TOKENS hosts.
 *
 * The functions use no skb and no socket.  nhca_tokens.lock nests inside all other locks.
 */
#ifndef NHCA_RCXT_TOKEN_H
#define NHCA_RCXT_TOKEN_H

#include <linux/in6.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/*
 * maximum number of tokens of other hosts that a device stores; a request without a token takes one
 * more round trip
 */
#define NHCA_TOKENS		256u
/* log2 of a period in seconds: 256 s; a token is valid for one to two periods */
#define NHCA_TOKEN_PERIOD_SHIFT	8

/**
 * struct nhca_token - a token that another host has sent
 * @peer:  address of that host
 * @own:   address of this device to which that host sent the token
 * @value: the token; 0: the entry is free
 */
struct nhca_token {
	struct in6_addr peer;
	struct in6_addr own;
	u64 value;
};

/**
 * struct nhca_tokens - tokens of a device
 * @secret: hash key of the tokens that the device issues; constant
 * @lock:   BHs disabled; protects @known
 * @known:  tokens of other hosts; a hash of the two addresses selects the entry
 */
struct nhca_tokens {
	siphash_key_t secret;
	/* known */
	spinlock_t lock;
	struct nhca_token known[NHCA_TOKENS];
};

/**
 * nhca_tokens_init - initialize the tokens of a device, with a new secret
 * @t: filled in, without tokens of other hosts; tokens that an earlier secret made become invalid
 * Context: any, before other functions use @t.
 */
void nhca_tokens_init(struct nhca_tokens *t);

/**
 * nhca_token_make - compute the token for the address of a peer
 * @t:    tokens of the device
 * @peer: source address of the request; IPv4 as an IPv4-mapped address
 * @own:  destination address of the request
 * @now:  seconds since boot
 * Context: any.
 * Return: the token, never 0.
 */
u64 nhca_token_make(const struct nhca_tokens *t, const struct in6_addr *peer,
		    const struct in6_addr *own, u64 now);

/**
 * nhca_token_good - check the token of a request
 * @t:     tokens of the device
 * @peer:  source address of the request
 * @own:   destination address of the request
 * @now:   seconds since boot
 * @token: token of the request; 0: the request has none
 * Context: any.
 * Return: true if nhca_token_make() returns @token for these addresses in the current period of
 * 256 seconds, or returned it in the previous period.
 */
bool nhca_token_good(const struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own, u64 now, u64 token);

/**
 * nhca_token_learn - store a token that another host has sent in a challenge
 * @t:     tokens of the device
 * @peer:  address of that host
 * @own:   address of this device to which the challenge was sent
 * @token: the token; replaces the earlier token of this host, or of a host with the same hash
 * Context: process or softirq.
 */
void nhca_token_learn(struct nhca_tokens *t, const struct in6_addr *peer,
		      const struct in6_addr *own, u64 token);

/**
 * nhca_token_known - look up the token for a request
 * @t:    tokens of the device
 * @peer: destination address of the request
 * @own:  source address of the request
 * Context: process or softirq.
 * Return: the latest token that @peer has sent to @own; 0 if there is none, or if the token of
 * another host has replaced this token.
 */
u64 nhca_token_known(struct nhca_tokens *t, const struct in6_addr *peer,
		     const struct in6_addr *own);

#endif /* NHCA_RCXT_TOKEN_H */
