/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: round trip time and congestion window of a route; see msg_cc.c. */
#ifndef NHCA_MSG_CC_H
#define NHCA_MSG_CC_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct msg_cc - round trip time and congestion window of a route, or of a stream
 * @srtt:     smoothed round trip time; 0: no sample yet
 * @rttvar:   mean deviation of the round trip time
 * @fastest:  minimum round trip time
 * @window:   congestion window, in bytes
 * @inflight: bytes in flight
 * @step:     maximum bytes of a transfer
 * @limit:    maximum of @window
 * @extent:   recent maximum delay by reordering; see msg_cc_reordered()
 * @shrunk:   until this time msg_cc_silent() does not halve @window again
 * @queued:   bytes completed while packets waited in a queue; see shorten_queue()
 * @sent:     packets sent since the last evaluation of the loss rate
 * @lost:     packets lost since the last evaluation of the loss rate
 * @limited:  the last msg_cc_may_send() returned false
 * @starting: slow start
 *
 * All times are in nanoseconds. The lock of the endpoint protects all members.
 */
struct msg_cc {
	uint64_t srtt;
	uint64_t rttvar;
	uint64_t fastest;
	uint64_t window;
	uint64_t inflight;
	uint64_t step;
	uint64_t limit;
	uint64_t extent;
	uint64_t shrunk;
	uint64_t queued;
	uint32_t sent;
	uint32_t lost;
	bool limited;
	bool starting;
};

/**
 * msg_cc_init - initialize the state of a route
 * @cc:    the state of the route
 * @step:  maximum bytes of a transfer
 * @limit: maximum congestion window, in bytes
 */
void msg_cc_init(struct msg_cc *cc, uint64_t step, uint64_t limit);

/**
 * msg_cc_sample - add a sample of the round trip time
 * @cc:  the state of the route
 * @rtt: the round trip time
 */
void msg_cc_sample(struct msg_cc *cc, uint64_t rtt);

/**
 * msg_cc_at_least - report a transfer that is not complete, whose final round trip time is not
 * known yet
 * @cc:   the state of the route
 * @time: time since the post of the transfer; a sample if longer than the smoothed time
 */
void msg_cc_at_least(struct msg_cc *cc, uint64_t time);

/**
 * msg_spread - add a random part to a delay
 * @time: the delay
 *
 * Without the random part, peers that lost packets at the same time would retransmit at the same
 * time.
 * Return: @time to 1.5 * @time.
 */
uint64_t msg_spread(uint64_t time);

/**
 * msg_cc_overdue - get the time to wait for an answer before a probe or retransmission
 * @cc:    the state of the route
 * @tries: number of timeouts in a row; each doubles the time
 * Return: the timeout.
 */
uint64_t msg_cc_overdue(const struct msg_cc *cc, unsigned int tries);

/**
 * msg_cc_reordering - get the delay after which a transfer that was overtaken counts as lost
 * @cc: the state of the route
 * Return: the delay.
 */
uint64_t msg_cc_reordering(const struct msg_cc *cc);

/**
 * msg_cc_reordered - report the reordering of a transfer that has arrived
 * @cc:     the state of the route
 * @extent: time by which the transfer arrived after a transfer that was sent later; 0: in order
 */
void msg_cc_reordered(struct msg_cc *cc, uint64_t extent);

/**
 * msg_cc_has_room - test whether the congestion window has room for a transfer
 * @cc:    the state of the route
 * @bytes: bytes of the transfer
 * Return: true if @bytes fit in the window, or nothing is in flight.
 */
bool msg_cc_has_room(const struct msg_cc *cc, uint32_t bytes);

/**
 * msg_cc_may_send - like msg_cc_has_room(), but also record in msg_cc.limited whether the window
 * was full
 * @cc:    the state of the route
 * @bytes: bytes of the transfer
 * Return: true if @bytes fit in the window, or nothing is in flight.
 */
bool msg_cc_may_send(struct msg_cc *cc, uint32_t bytes);

/**
 * msg_cc_sent - count sent packets, and evaluate the loss rate
 * @cc:      the state of the route
 * @packets: number of packets
 */
void msg_cc_sent(struct msg_cc *cc, uint32_t packets);

/**
 * msg_cc_done - adapt the window after a transfer is complete
 * @cc:    the state of the route
 * @bytes: bytes of the transfer
 */
void msg_cc_done(struct msg_cc *cc, uint64_t bytes);

/**
 * msg_cc_lost - count lost packets
 * @cc:      the state of the route
 * @packets: number of packets
 */
void msg_cc_lost(struct msg_cc *cc, uint32_t packets);

/**
 * msg_cc_silent - halve the window, because no answer arrives; at most once in two timeouts
 * @cc:  the state of the route
 * @now: the time
 */
void msg_cc_silent(struct msg_cc *cc, uint64_t now);

#endif /* NHCA_MSG_CC_H */
