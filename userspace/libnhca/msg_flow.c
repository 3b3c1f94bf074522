// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: how long things take on a route, and how much may be under way.
 *
 * Time: smoothed, with its mean deviation, as for TCP (RFC 6298), of transfers that went through at
 * once, and of probes: each of those has a number of its own, so that no answer is taken for
 * another's.
 *
 * Window: bytes that are thought to be under way.  It doubles every smoothed time while it is in
 * the way, until more is lost than chance takes (one packet in eight), or all of it: then it
 * shrinks, and from then on grows by one transfer a time.  Less than that is random loss, as far
 * as can be known, and is only sent again: being slower would not make it less.
 */
#include "msg.h"

#define FIRST_OVERDUE	(10 * MS)
#define LEAST_MARGIN	(MS / 5)
#define MOST_OVERDUE	(1000 * MS)
#define CHANCE		8	/* one packet of so many */
#define ENOUGH		256	/* packets, to judge from */
#define FIRST_STEPS	8
#define LEAST_STEPS	2

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void msg_flow_init(struct msg_flow *flow, uint64_t step, uint64_t limit)
{
	*flow = (struct msg_flow){
		.step = step, .limit = limit, .starting = true,
		.window = least(FIRST_STEPS * step, limit),
	};
}

void msg_flow_sample(struct msg_flow *flow, uint64_t rtt)
{
	uint64_t off;

	if (!flow->srtt) {
		flow->srtt = most(rtt, 1);
		flow->rttvar = rtt / 2;
		return;
	}
	off = rtt > flow->srtt ? rtt - flow->srtt : flow->srtt - rtt;
	flow->rttvar += off / 4;
	flow->rttvar -= flow->rttvar / 4;
	flow->srtt += rtt / 8;
	flow->srtt -= flow->srtt / 8;
}

uint64_t msg_flow_overdue(const struct msg_flow *flow, unsigned int tries)
{
	uint64_t time = FIRST_OVERDUE;

	if (flow->srtt)
		time = flow->srtt + most(4 * flow->rttvar, LEAST_MARGIN);
	return least(time << least(tries, 10), MOST_OVERDUE);
}

uint64_t msg_flow_reordering(const struct msg_flow *flow)
{
	return most(flow->srtt / 4, flow->rttvar);
}

bool msg_flow_may_send(struct msg_flow *flow, uint32_t bytes)
{
	/* A transfer alone may be larger than a window. */
	if (!flow->inflight || flow->inflight + bytes <= flow->window)
		return true;
	flow->limited = true;
	return false;
}

static void shrink(struct msg_flow *flow, unsigned int num, unsigned int den)
{
	flow->window = most(flow->window * num / den, LEAST_STEPS * flow->step);
	flow->starting = false;
}

static void epoch_begin(struct msg_flow *flow, uint64_t now)
{
	flow->epoch = now + msg_flow_overdue(flow, 0);
	flow->sent = 0;
	flow->lost = 0;
	flow->limited = false;
}

void msg_flow_sent(struct msg_flow *flow, uint32_t packets, uint64_t now)
{
	flow->sent += packets;
	if (now < flow->epoch)
		return;
	if (flow->lost * CHANCE > flow->sent && flow->sent >= ENOUGH)
		shrink(flow, 3, 4);
	else if (flow->limited)
		flow->window = least(flow->window + (flow->starting ? flow->window : flow->step),
				     flow->limit);
	/* Too few to tell: they count in the next one, too. */
	if (flow->lost && flow->sent < ENOUGH)
		flow->epoch = now + msg_flow_overdue(flow, 0);
	else
		epoch_begin(flow, now);
}

void msg_flow_lost(struct msg_flow *flow, uint32_t packets)
{
	flow->lost += packets;
}

void msg_flow_silent(struct msg_flow *flow, uint64_t now)
{
	if (now < flow->epoch && !flow->sent)
		return;
	shrink(flow, 1, 2);
	epoch_begin(flow, now);
}
