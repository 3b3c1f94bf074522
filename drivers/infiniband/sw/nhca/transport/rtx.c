// SPDX-License-Identifier: GPL-2.0
/* When a requester retransmits: see rtx.h. */
#include <linux/kernel.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "../wire/psn.h"
#include "rtx.h"

unsigned int nhca_max_backoff __read_mostly = 3;

void nhca_rtx_init(struct nhca_rtx *rtx, unsigned long now)
{
	rtx->rto_backoff = 0;
	rtx->acks_since_rto = 0;
	rtx->waits = 0;
	rtx->tlp_count = 0;
	rtx->rtt = 0;
	rtx->rtt_begun = 0;
	rtx->rto = 0;
	/* long enough ago that the first CNP counts */
	rtx->cnp_at = now - HZ;
}

/* Return: jiffies at which the current try ends. */
static unsigned long rtx_try_end(const struct nhca_rtx *rtx)
{
	unsigned long factor = 1;

	if (rtx->rto_backoff)
		factor = min(1U << rtx->rto_backoff, READ_ONCE(nhca_max_backoff));
	return rtx->try_since + rtx->timeout * factor + 1;
}

unsigned long nhca_rtx_deadline(const struct nhca_rtx *rtx)
{
	unsigned long end = rtx_try_end(rtx), probe;

	if (!rtx->rto || rtx->tlp_count >= NHCA_TLP_MAX)
		return end;
	probe = rtx->since + (rtx->rto << rtx->tlp_count) + 1;
	return time_before(probe, end) ? probe : end;
}

unsigned long nhca_rtx_restart(struct nhca_rtx *rtx, unsigned long now)
{
	/* after a probe, the oldest packet is retransmitted within the try that has begun before */
	if (rtx->since == rtx->try_since)
		rtx->try_since = now;
	rtx->since = now;
	return nhca_rtx_deadline(rtx);
}

void nhca_rtx_rtt_end(struct nhca_rtx *rtx, u64 ns)
{
	u32 us = clamp_t(u64, div_u64(ns - rtx->rtt_begun, NSEC_PER_USEC), 1, USEC_PER_SEC);
	s32 off;

	rtx->rtt_begun = 0;
	if (!rtx->rtt) {
		rtx->rtt = us << 3;
		rtx->rtt_dev = us << 1;
	} else {
		off = us - (rtx->rtt >> 3);
		rtx->rtt = max_t(s32, rtx->rtt + off, 1);
		rtx->rtt_dev += abs(off) - (rtx->rtt_dev >> 2);
	}
	rtx->rto = max(usecs_to_jiffies((rtx->rtt >> 3) + rtx->rtt_dev), NHCA_TLP_MIN);
}

bool nhca_rtx_retry(struct nhca_rtx *rtx)
{
	if (!rtx->retries)
		return false;
	rtx->retries--;
	return true;
}

bool nhca_rtx_congested(struct nhca_rtx *rtx, unsigned long now)
{
	if (time_before(now, rtx->cnp_at + max(rtx->rto, 2UL)))
		return false;
	rtx->cnp_at = now;
	return true;
}

bool nhca_rtx_is_early(const struct nhca_rtx *rtx, unsigned long now)
{
	return time_before(now, nhca_rtx_deadline(rtx));
}

enum nhca_rtx_step nhca_rtx_expire(struct nhca_rtx *rtx, unsigned long now,
				   enum nhca_rtx_held held, bool ackreq)
{
	if (nhca_rtx_is_early(rtx, now))
		return NHCA_RTX_EARLY;
	if (held == NHCA_RTX_HELD_WAIT ||
	    (held == NHCA_RTX_HELD_STACK && rtx->waits < NHCA_WAITS_MAX)) {
		rtx->waits += held == NHCA_RTX_HELD_STACK;
		nhca_rtx_begin(rtx, now);
		return NHCA_RTX_POSTPONE;
	}
	/* perhaps nothing was lost, but no packet has requested an ACK */
	if (ackreq)
		return NHCA_RTX_ACKREQ;
	/*
	 * Tail loss probe: perhaps the last packet of a message, or a response, was lost, and no
	 * later packet has revealed the loss.
	 */
	if (rtx->rto && rtx->tlp_count < NHCA_TLP_MAX && time_before(now, rtx_try_end(rtx))) {
		rtx->tlp_count++;
		rtx->since = now;
		return NHCA_RTX_PROBE;
	}
	if (!nhca_rtx_retry(rtx))
		return NHCA_RTX_GIVE_UP;
	/* allow the next try more time: the peer may be slow, or queues on the path may be full */
	if (1U << rtx->rto_backoff < READ_ONCE(nhca_max_backoff))
		rtx->rto_backoff++;
	rtx->acks_since_rto = 0;
	nhca_rtx_begin(rtx, now);
	return NHCA_RTX_RETRANSMIT;
}
