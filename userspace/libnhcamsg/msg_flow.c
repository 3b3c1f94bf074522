// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: round trip time, reordering and congestion window of a route.
 *
 * Round trip time: The smoothed time and its mean deviation are those of TCP (RFC 6298).  Samples
 * are transfers without a retransmission, probes of writes, and the time that an incomplete read
 * has taken so far, if this exceeds the smoothed time.  Each probe has a different number, so that
 * its answer is not taken for the answer to another probe.
 *
 * Reordering: msg_flow.extent is the recent maximum of the time by which a transfer arrived after
 * one that was sent later.  A transfer that is later than this is considered lost.
 *
 * Congestion window: It limits the bytes in flight.  It starts in slow start, and grows only while
 * it limits the sender.  If more than one packet in eight is lost, it shrinks by a quarter, and
 * then grows by one transfer per window.  A lower loss rate is treated as random loss, because
 * slower sending would not reduce it.  If no answer arrives at all, the window is halved.
 *
 * A slow link with a deep queue loses nothing: packets wait in the queue for seconds, so that the
 * library takes them for lost and probes.  Therefore the window does not grow while the smoothed
 * time exceeds the fastest round trip time by more than QUEUE, as in LEDBAT (RFC 6817).  If the
 * difference is 2 * QUEUE or more, the window shrinks by a quarter per window of completed bytes,
 * but not below its initial size, because the path may have become longer.
 */
#include "msg.h"

#define FIRST_OVERDUE	(50 * MS)	/* timeout before the first sample */
#define LEAST_MARGIN	(MS / 5)	/* minimum of timeout - srtt */
#define MOST_OVERDUE	(1000 * MS)	/* maximum timeout */
#define MOST_DOUBLINGS	10		/* maximum doublings of the backoff */
#define CHANCE		8	/* a loss rate above 1 / CHANCE shrinks the window */
#define ENOUGH		1024	/* packets between two evaluations of the loss rate */
#define FORGET		256	/* msg_flow.extent decays by 1 / FORGET per transfer */
#define FIRST_STEPS	8	/* initial window, in transfers */
#define LEAST_STEPS	2	/* minimum window, in transfers */
#define QUEUE		(100 * MS)	/* maximum queueing delay while the window grows */

void msg_flow_init(struct msg_flow *flow, uint64_t step, uint64_t limit)
{
	*flow = (struct msg_flow){
		.step = step, .limit = limit, .starting = true,
		.window = min(FIRST_STEPS * step, limit),
	};
}

void msg_flow_sample(struct msg_flow *flow, uint64_t rtt)
{
	uint64_t off;

	flow->fastest = flow->srtt ? min(flow->fastest, rtt) : rtt;
	if (!flow->srtt) {
		flow->srtt = max_t(uint64_t, rtt, 1);
		flow->rttvar = rtt / 2;
		return;
	}
	off = rtt > flow->srtt ? rtt - flow->srtt : flow->srtt - rtt;
	flow->rttvar += off / 4;
	flow->rttvar -= flow->rttvar / 4;
	flow->srtt += rtt / 8;
	flow->srtt -= flow->srtt / 8;
}

void msg_flow_at_least(struct msg_flow *flow, uint64_t time)
{
	if (time > flow->srtt)
		msg_flow_sample(flow, time);
}

uint64_t msg_spread(uint64_t time)
{
	return time + msg_random() % (time / 2 + 1);
}

uint64_t msg_flow_overdue(const struct msg_flow *flow, unsigned int tries)
{
	unsigned int doublings = min_t(unsigned int, tries, MOST_DOUBLINGS);
	uint64_t time = FIRST_OVERDUE;

	if (flow->srtt)
		time = flow->srtt + max(4 * flow->rttvar, LEAST_MARGIN);
	time = min(time << doublings, MOST_OVERDUE);
	return tries ? msg_spread(time) : time;
}

uint64_t msg_flow_reordering(const struct msg_flow *flow)
{
	return max(flow->srtt / 4, flow->extent + flow->extent / 4);
}

void msg_flow_reordered(struct msg_flow *flow, uint64_t extent)
{
	flow->extent = max(flow->extent - flow->extent / FORGET, extent);
}

bool msg_flow_has_room(const struct msg_flow *flow, uint32_t bytes)
{
	/* The window may be smaller than a transfer: always allow one. */
	return !flow->inflight || flow->inflight + bytes <= flow->window;
}

bool msg_flow_may_send(struct msg_flow *flow, uint32_t bytes)
{
	flow->limited = !msg_flow_has_room(flow, bytes);
	return !flow->limited;
}

static void shrink(struct msg_flow *flow, unsigned int num, unsigned int den)
{
	flow->window = max(flow->window * num / den, LEAST_STEPS * flow->step);
	flow->starting = false;
}

void msg_flow_sent(struct msg_flow *flow, uint32_t packets)
{
	flow->sent += packets;
	if (flow->sent < ENOUGH)
		return;
	if (flow->lost * CHANCE > flow->sent)
		shrink(flow, 3, 4);
	flow->sent = 0;
	flow->lost = 0;
}

/* Queueing delay: smoothed minus minimum round trip time, in ns */
static uint64_t waits(const struct msg_flow *flow)
{
	return flow->srtt > flow->fastest ? flow->srtt - flow->fastest : 0;
}

/* Shrink the window at most once for each window of completed bytes. */
static void shorten_queue(struct msg_flow *flow, uint64_t bytes)
{
	uint64_t first = FIRST_STEPS * flow->step;

	flow->queued += bytes;
	if (flow->queued < flow->window || waits(flow) < 2 * QUEUE || flow->window <= first)
		return;
	flow->queued = 0;
	shrink(flow, 3, 4);
	flow->window = max(flow->window, first);
}

void msg_flow_done(struct msg_flow *flow, uint64_t bytes)
{
	if (waits(flow) > QUEUE) {
		shorten_queue(flow, bytes);
		return;
	}
	if (!flow->limited)
		return;
	flow->window += flow->starting ? bytes : flow->step * bytes / flow->window;
	flow->window = min(flow->window, flow->limit);
}

void msg_flow_lost(struct msg_flow *flow, uint32_t packets)
{
	flow->lost += packets;
}

void msg_flow_silent(struct msg_flow *flow, uint64_t now)
{
	if (now < flow->shrunk)
		return;
	flow->shrunk = now + 2 * msg_flow_overdue(flow, 0);
	shrink(flow, 1, 2);
}
