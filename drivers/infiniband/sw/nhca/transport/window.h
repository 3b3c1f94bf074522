/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The congestion window of a requester.  The functions only compute: they use no queue pair, and
 * take no lock.
 *
 * Congestion window (cwnd): number of unacknowledged PSNs that a QP may have.  A chunk of a READ
 * may be longer than the window if nothing else is outstanding.  The window doubles each
 * round trip up to ssthresh, then grows by one each round trip, and shrinks at a loss.  With
 * go-back-N the responder discards the packets that arrive after a lost one, and all of them are
 * sent again.  If as many packets as before were sent, the queue that has overflowed would overflow
 * again.  So only a smaller window drains the queue.  But after a loss the window must not become
 * smaller than that of TCP with CUBIC would become (RFC 9438, 4.6), because otherwise TCP flows
 * take all of a shared link.
 */
#ifndef NHCA_TRANSPORT_WINDOW_H
#define NHCA_TRANSPORT_WINDOW_H

#include <linux/minmax.h>
#include <linux/types.h>

#define NHCA_CWND_MIN		4
#define NHCA_CWND_FIRST	16
#define NHCA_CWND_MAX		256
/* cwnd after a loss, in tenths of cwnd before the loss (0.7, as CUBIC) */
#define NHCA_CWND_KEPT	7

/**
 * struct nhca_window - congestion window of a requester
 * @cwnd:     number of PSNs that may be unacknowledged
 * @ssthresh: slow start threshold: below it @cwnd grows by the number of acknowledged PSNs
 * @grown:    from @ssthresh on: number of PSNs acknowledged since @cwnd last grew
 */
struct nhca_window {
	u32 cwnd;
	u32 ssthresh;
	u32 grown;
};

/**
 * nhca_window_init - set the window for a new connection, whose path is not known yet
 * @w: the window
 * Context: any.
 */
static inline void nhca_window_init(struct nhca_window *w)
{
	w->cwnd = NHCA_CWND_FIRST;
	w->ssthresh = NHCA_CWND_MAX;
	w->grown = 0;
}

/**
 * nhca_window_room - compute how many more PSNs may be sent
 * @w:    the window
 * @used: number of PSNs that are unacknowledged
 * Context: any.
 * Return: number of PSNs.
 */
static inline u32 nhca_window_room(const struct nhca_window *w, u32 used)
{
	return used < w->cwnd ? w->cwnd - used : 0;
}

/**
 * nhca_window_grow - grow the window after an acknowledgment
 * @w:     the window
 * @acked: number of PSNs that were acknowledged
 * Context: any.
 */
static inline void nhca_window_grow(struct nhca_window *w, u32 acked)
{
	if (w->cwnd < w->ssthresh) {
		w->cwnd += acked;
	} else {
		w->grown += acked;
		if (w->grown < w->cwnd)
			return;
		w->grown = 0;
		w->cwnd++;
	}
	w->cwnd = min_t(u32, w->cwnd, NHCA_CWND_MAX);
}

/**
 * nhca_window_shrink - reduce the window after a loss
 * @w:     the window
 * @stall: reduce the window to NHCA_CWND_MIN, because the local ACK timeout, or the second or third
 *         tail loss probe, has come without progress
 * Context: any.
 */
static inline void nhca_window_shrink(struct nhca_window *w, bool stall)
{
	w->ssthresh = max_t(u32, w->cwnd * NHCA_CWND_KEPT / 10, NHCA_CWND_MIN);
	w->cwnd = stall ? NHCA_CWND_MIN : w->ssthresh;
	w->grown = 0;
}

#endif /* NHCA_TRANSPORT_WINDOW_H */
