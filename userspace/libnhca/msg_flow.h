/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: how long things take on a route, and how much may be under way; see msg_flow.c. */
#ifndef NHCA_MSG_FLOW_H
#define NHCA_MSG_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct msg_flow {
	uint64_t srtt;
	uint64_t rttvar;
	uint64_t fastest;	/* round trip of all */
	uint64_t window;
	uint64_t inflight;
	uint64_t step;		/* bytes of a transfer */
	uint64_t limit;
	uint64_t extent;	/* of reordering */
	uint64_t shrunk;	/* until then, for silence */
	uint64_t queued;	/* bytes done while there was a queue, since that last made it shrink */
	uint32_t sent;		/* packets, since losses were judged */
	uint32_t lost;
	bool limited;		/* the window was in the way, when last asked */
	bool starting;		/* nothing was lost yet beyond what chance does */
};

void msg_flow_init(struct msg_flow *flow, uint64_t step, uint64_t limit);
void msg_flow_sample(struct msg_flow *flow, uint64_t rtt);
/* Something takes that long, and is not done. */
void msg_flow_at_least(struct msg_flow *flow, uint64_t time);
/*
 * @time, or up to half as much more: what many peers lost at the same moment they do not send again at the
 * same moment.
 */
uint64_t msg_spread(uint64_t time);
/* After how long an answer is overdue, when @tries have not been answered */
uint64_t msg_flow_overdue(const struct msg_flow *flow, unsigned int tries);
/* How much later than what was sent behind it something may come */
uint64_t msg_flow_reordering(const struct msg_flow *flow);
/* So much later something did come. */
void msg_flow_reordered(struct msg_flow *flow, uint64_t extent);
/* Do so many bytes fit into the window?  And: may they be sent?  If not, the window is in the way. */
bool msg_flow_has_room(const struct msg_flow *flow, uint32_t bytes);
bool msg_flow_may_send(struct msg_flow *flow, uint32_t bytes);
void msg_flow_sent(struct msg_flow *flow, uint32_t packets);
void msg_flow_done(struct msg_flow *flow, uint64_t bytes);
void msg_flow_lost(struct msg_flow *flow, uint32_t packets);
void msg_flow_silent(struct msg_flow *flow, uint64_t now);

#endif /* NHCA_MSG_FLOW_H */
