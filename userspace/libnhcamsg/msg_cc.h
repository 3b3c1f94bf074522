/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: round trip time and congestion window of a route; see msg_cc.c. */
#ifndef NHCA_MSG_CC_H
#define NHCA_MSG_CC_H

#include <stdbool.h>
#include <stdint.h>

/* All times are in nanoseconds.  The lock of the endpoint protects all members. */
struct msg_cc {
	uint64_t srtt;		/* smoothed round trip time; 0: no sample yet */
	uint64_t rttvar;	/* mean deviation of the round trip time */
	uint64_t fastest;	/* minimum round trip time */
	uint64_t window;	/* congestion window, in bytes */
	uint64_t inflight;	/* bytes in flight */
	uint64_t step;		/* bytes of a transfer */
	uint64_t limit;		/* maximum of @window */
	uint64_t extent;	/* recent maximum delay by reordering; see msg_cc_reordered() */
	uint64_t shrunk;	/* until this time msg_cc_silent() does not halve @window again */
	uint64_t queued;	/* bytes completed under queueing delay; see shorten_queue() */
	uint32_t sent;		/* packets sent since the last evaluation of the loss rate */
	uint32_t lost;		/* packets lost since then */
	bool limited;		/* the last msg_cc_may_send() returned false */
	bool starting;		/* slow start */
};

/** msg_cc_init - initialize; @step: bytes of a transfer; @limit: maximum window, in bytes */
void msg_cc_init(struct msg_cc *cc, uint64_t step, uint64_t limit);
/** msg_cc_sample - add a sample of the round trip time */
void msg_cc_sample(struct msg_cc *cc, uint64_t rtt);
/** msg_cc_at_least - report that a transfer has taken @time and is not complete */
void msg_cc_at_least(struct msg_cc *cc, uint64_t time);
/**
 * msg_spread - add a random delay, so that peers that lost packets at the same time do not
 * retransmit at the same time
 * Return: @time to 1.5 * @time.
 */
uint64_t msg_spread(uint64_t time);
/** msg_cc_overdue - Return: timeout for an answer, with backoff after @tries timeouts */
uint64_t msg_cc_overdue(const struct msg_cc *cc, unsigned int tries);
/** msg_cc_reordering - Return: time after which a transfer that was overtaken counts as lost */
uint64_t msg_cc_reordering(const struct msg_cc *cc);
/** msg_cc_reordered - report that a transfer arrived @extent after one that was sent later */
void msg_cc_reordered(struct msg_cc *cc, uint64_t extent);
/** msg_cc_has_room - Return: true if the window has room for @bytes */
bool msg_cc_has_room(const struct msg_cc *cc, uint32_t bytes);
/** msg_cc_may_send - like msg_cc_has_room(), and set @limited */
bool msg_cc_may_send(struct msg_cc *cc, uint32_t bytes);
/** msg_cc_sent - count packets, and evaluate the loss rate */
void msg_cc_sent(struct msg_cc *cc, uint32_t packets);
/** msg_cc_done - report that a transfer of @bytes is complete, and adapt the window */
void msg_cc_done(struct msg_cc *cc, uint64_t bytes);
/** msg_cc_lost - count lost packets */
void msg_cc_lost(struct msg_cc *cc, uint32_t packets);
/** msg_cc_silent - halve the window, because no answer arrives; at most once in two timeouts */
void msg_cc_silent(struct msg_cc *cc, uint64_t now);

#endif /* NHCA_MSG_CC_H */
