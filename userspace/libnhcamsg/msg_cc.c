// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: round trip time, reordering and congestion window of a route.
 *
 * Round trip time: The smoothed time and its mean deviation are those of TCP (RFC 6298).  Samples
 * are transfers without a retransmission, probes of writes and moves, and the time that an
 * incomplete read or move has taken so far, if this time exceeds the smoothed time.  Each probe has
 * a different number, so that its answer is not taken for the answer to another probe.
 *
 * Reordering: a transfer may arrive after one that was sent later.  msg_cc.extent is the recent
 * maximum of the time between these two arrivals.  A transfer is considered lost if it is later
 * than 1.25 times this maximum, and later than a quarter of the smoothed round trip time: see
 * msg_cc_reordering().
 *
 * Congestion window: The window limits the bytes in flight.  It starts in slow start, and grows
 * only while it limits the sender.  If more than one packet in eight is lost, the window shrinks by
 * a quarter, and then grows by one transfer per window.  A lower loss rate is treated as random
 * loss, because slower sending would not reduce it.  If no answer arrives at all, the window is
 * halved.
 *
 * A slow link with a deep queue loses nothing: packets wait in the queue for seconds, so that the
 * library considers them lost and probes.  Therefore the window does not grow while the smoothed
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
#define FORGET		256	/* msg_cc.extent decays by 1 / FORGET per transfer */
#define FIRST_STEPS	8	/* initial window, in transfers */
#define LEAST_STEPS	2	/* minimum window, in transfers */
#define QUEUE		(100 * MS)	/* maximum queueing delay while the window grows */

void msg_cc_init(struct msg_cc *cc, uint64_t step, uint64_t limit)
{
	*cc = (struct msg_cc){
		.step = step, .limit = limit, .starting = true,
		.window = min(FIRST_STEPS * step, limit),
	};
}

void msg_cc_sample(struct msg_cc *cc, uint64_t rtt)
{
	uint64_t off;

	cc->fastest = cc->srtt ? min(cc->fastest, rtt) : rtt;
	if (!cc->srtt) {
		cc->srtt = max_t(uint64_t, rtt, 1);
		cc->rttvar = rtt / 2;
		return;
	}
	off = rtt > cc->srtt ? rtt - cc->srtt : cc->srtt - rtt;
	cc->rttvar += off / 4;
	cc->rttvar -= cc->rttvar / 4;
	cc->srtt += rtt / 8;
	cc->srtt -= cc->srtt / 8;
}

void msg_cc_at_least(struct msg_cc *cc, uint64_t time)
{
	if (time > cc->srtt)
		msg_cc_sample(cc, time);
}

uint64_t msg_spread(uint64_t time)
{
	return time + msg_random() % (time / 2 + 1);
}

uint64_t msg_cc_overdue(const struct msg_cc *cc, unsigned int tries)
{
	unsigned int doublings = min_t(unsigned int, tries, MOST_DOUBLINGS);
	uint64_t time = FIRST_OVERDUE;

	if (cc->srtt)
		time = cc->srtt + max(4 * cc->rttvar, LEAST_MARGIN);
	time = min(time << doublings, MOST_OVERDUE);
	return tries ? msg_spread(time) : time;
}

uint64_t msg_cc_reordering(const struct msg_cc *cc)
{
	return max(cc->srtt / 4, cc->extent + cc->extent / 4);
}

void msg_cc_reordered(struct msg_cc *cc, uint64_t extent)
{
	cc->extent = max(cc->extent - cc->extent / FORGET, extent);
}

bool msg_cc_has_room(const struct msg_cc *cc, uint32_t bytes)
{
	/* The window may be smaller than a transfer: always allow one transfer. */
	return !cc->inflight || cc->inflight + bytes <= cc->window;
}

bool msg_cc_may_send(struct msg_cc *cc, uint32_t bytes)
{
	cc->limited = !msg_cc_has_room(cc, bytes);
	return !cc->limited;
}

static void shrink(struct msg_cc *cc, unsigned int num, unsigned int den)
{
	cc->window = max(cc->window * num / den, LEAST_STEPS * cc->step);
	cc->starting = false;
}

void msg_cc_sent(struct msg_cc *cc, uint32_t packets)
{
	cc->sent += packets;
	if (cc->sent < ENOUGH)
		return;
	if (cc->lost * CHANCE > cc->sent)
		shrink(cc, 3, 4);
	cc->sent = 0;
	cc->lost = 0;
}

/* Queueing delay: smoothed minus minimum round trip time, in ns */
static uint64_t waits(const struct msg_cc *cc)
{
	return cc->srtt > cc->fastest ? cc->srtt - cc->fastest : 0;
}

/* Shrink the window at most once for each window of completed bytes. */
static void shorten_queue(struct msg_cc *cc, uint64_t bytes)
{
	uint64_t first = FIRST_STEPS * cc->step;

	cc->queued += bytes;
	if (cc->queued < cc->window || waits(cc) < 2 * QUEUE || cc->window <= first)
		return;
	cc->queued = 0;
	shrink(cc, 3, 4);
	cc->window = max(cc->window, first);
}

void msg_cc_done(struct msg_cc *cc, uint64_t bytes)
{
	if (waits(cc) > QUEUE) {
		shorten_queue(cc, bytes);
		return;
	}
	if (!cc->limited)
		return;
	cc->window += cc->starting ? bytes : cc->step * bytes / cc->window;
	cc->window = min(cc->window, cc->limit);
}

void msg_cc_lost(struct msg_cc *cc, uint32_t packets)
{
	cc->lost += packets;
}

void msg_cc_silent(struct msg_cc *cc, uint64_t now)
{
	if (now < cc->shrunk)
		return;
	cc->shrunk = now + 2 * msg_cc_overdue(cc, 0);
	shrink(cc, 1, 2);
}
