/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a requester retransmits: round-trip times, timeouts, probes and retries (IBTA 9.7.5, 9.7.6).
 *
 * The functions only compute: they use no queue pair, timer, lock or clock.  The caller holds
 * nhca_sq.lock, passes the present time, and executes the decisions (retry.c).
 */
#ifndef NHCA_TRANSPORT_RTX_H
#define NHCA_TRANSPORT_RTX_H

#include <linux/types.h>

#include "../wire/psn.h"

/* maximum of nhca_rtx.waits */
#define NHCA_WAITS_MAX		8
/* highest value of the module parameter max_backoff */
#define NHCA_MAX_BACKOFF	32
/* number of acknowledgments without a timeout after which nhca_rtx.rto_backoff decreases by 1 */
#define NHCA_RTO_CALM_ACKS		64
/* number of tail loss probes before the requester falls back to the local ACK timeout */
#define NHCA_TLP_MAX		3
/* minimum of the retransmission timeout, because a peer in software may have to wait for a CPU */
#define NHCA_TLP_MIN		msecs_to_jiffies(10)
/* minimum of the local ACK timeout, because a peer in software may have to wait for a CPU */
#define NHCA_TIMEOUT_MIN	msecs_to_jiffies(20)

/*
 * The module parameter max_backoff: maximum number of local ACK timeouts that one try lasts.  IBTA
 * 9.7.6.1.3 allows 4.  The default is 3, because a timer of the kernel may be late by an eighth.
 */
extern unsigned int nhca_max_backoff;

/**
 * struct nhca_rtx - retransmission state of a requester
 * @rtt:      smoothed round-trip time, in eighths of a microsecond; 0: not measured yet
 * @rtt_dev:  smoothed deviation of the round-trip time, in quarters of a microsecond
 * @rtt_psn:  PSN of the packet whose round trip is being measured
 * @retries:  number of retries left for the oldest request
 * @rto_backoff: the local ACK timeout is multiplied by 2^@rto_backoff, or by nhca_max_backoff if
 *           nhca_max_backoff is less; each timeout adds 1 until the factor is nhca_max_backoff, and
 *           each NHCA_RTO_CALM_ACKS acknowledgments without a timeout subtract 1
 * @acks_since_rto: number of acknowledgments since the last timeout, or since @rto_backoff was
 *           reduced
 * @tlp_count: number of tail loss probes sent since the last progress
 * @rtt_begun: time in ns at which the packet @rtt_psn was sent; 0: no measurement is in progress
 * @cnp_at:   jiffies at the last reduction of the window after a CNP
 * @since:    jiffies from which the retransmission timeout counts: @try_since, or later if a tail
 *           loss probe was sent since: the last probe, or the retransmission that it caused
 * @try_since: jiffies at the begin of the try, from which the local ACK timeout counts: the last
 *           progress, timeout (also a postponed one), request for an ACK, or transmission of the
 *           oldest packet, unless this transmission was due to a tail loss probe
 * @timeout:  local ACK timeout of the QP's attributes in jiffies, at least NHCA_TIMEOUT_MIN
 * @rto:      retransmission timeout in jiffies, from the measured round trips; 0: not known
 * @waits:    number of timeouts postponed since the last progress, because the stack held packets
 *
 * nhca_sq.lock protects the struct.  The struct is allocated separately to keep struct nhca_qp
 * small.
 */
struct nhca_rtx {
	u32 rtt;
	u32 rtt_dev;
	u32 rtt_psn;
	u8 retries;
	u8 rto_backoff;
	u8 acks_since_rto;
	u8 tlp_count;
	u64 rtt_begun;
	unsigned long cnp_at;
	unsigned long since;
	unsigned long try_since;
	unsigned long timeout;
	unsigned long rto;
	u8 waits;
};

/* What holds the oldest packet on this host: a packet that has not left is not lost. */
enum nhca_rtx_held {
	NHCA_RTX_HELD_NOT,
	/* the network stack, which may hold the packet for ever if a link is dead */
	NHCA_RTX_HELD_STACK,
	/* a wait that ends: for other flows of the device, a page, a disk, or a rate limit */
	NHCA_RTX_HELD_WAIT,
};

/* What the requester does when its timer expires. */
enum nhca_rtx_step {
	/* the timeout has not passed yet: set the timer to nhca_rtx_deadline() */
	NHCA_RTX_EARLY,
	/* restart the timer, and send nothing */
	NHCA_RTX_POSTPONE,
	/* request an ACK; if this fails, call nhca_rtx_expire() again with @ackreq false */
	NHCA_RTX_ACKREQ,
	/* tail loss probe: go back before the local ACK timeout has passed */
	NHCA_RTX_PROBE,
	/* a timeout: go back; a retry is used up */
	NHCA_RTX_RETRANSMIT,
	/* a timeout without a retry left: fail the oldest request */
	NHCA_RTX_GIVE_UP,
};

/**
 * nhca_rtx_init - reset round trips and timeouts, because the path to the peer is not known
 * @rtx: the state; its members timeout, retries, since and try_since keep their values
 * @now: jiffies
 * Context: any.
 */
void nhca_rtx_init(struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_deadline - compute when the timeout passes
 * @rtx: the state
 *
 * The next tail loss probe is due after the retransmission timeout, which doubles with each probe.
 * If the local ACK timeout passes earlier, if no probe is left, or if no round trip was measured,
 * the deadline is the end of the local ACK timeout.
 * Context: any.
 * Return: jiffies.
 */
unsigned long nhca_rtx_deadline(const struct nhca_rtx *rtx);

/**
 * nhca_rtx_begin - let the retransmission timeout and the local ACK timeout count from now
 * @rtx: the state
 * @now: jiffies
 * Context: any.
 */
static inline void nhca_rtx_begin(struct nhca_rtx *rtx, unsigned long now)
{
	rtx->since = now;
	rtx->try_since = now;
}

/**
 * nhca_rtx_restart - let the timeouts count from now, because the oldest packet was sent
 * @rtx: the state
 * @now: jiffies
 *
 * If a tail loss probe was sent in this try, only the retransmission timeout counts from now: the
 * packet is sent again because of the probe, and probes do not make a try longer.
 * Context: any.
 * Return: the new nhca_rtx_deadline().
 */
unsigned long nhca_rtx_restart(struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_rtt_begin - begin an RTT sample
 * @rtx: the state; a sample that is in progress is replaced
 * @psn: PSN of a packet with AckReq that is sent for the first time
 * @ns:  time in nanoseconds
 * Context: any.
 */
static inline void nhca_rtx_rtt_begin(struct nhca_rtx *rtx, u32 psn, u64 ns)
{
	rtx->rtt_psn = psn;
	rtx->rtt_begun = ns;
}

/**
 * nhca_rtx_rtt_ends - check whether an acknowledgment ends the RTT sample
 * @rtx: the state
 * @psn: all PSNs before this one are acknowledged
 * Context: any.
 * Return: true if the caller has to call nhca_rtx_rtt_end().
 */
static inline bool nhca_rtx_rtt_ends(const struct nhca_rtx *rtx, u32 psn)
{
	return rtx->rtt_begun && nhca_psn_diff(psn, rtx->rtt_psn) > 0;
}

/**
 * nhca_rtx_rtt_end - end the RTT sample in progress, and compute the retransmission timeout from it
 * @rtx: the state
 * @ns:  time in nanoseconds
 *
 * The computation is that of RFC 6298, in the fixed-point form of Linux TCP.
 * Context: any.
 */
void nhca_rtx_rtt_end(struct nhca_rtx *rtx, u64 ns);

/**
 * nhca_rtx_progress - count an acknowledgment of PSNs that were not acknowledged before
 * @rtx:     the state
 * @now:     jiffies
 * @retries: number of retries from now on, as in the QP's attributes
 * Context: any.
 */
static inline void nhca_rtx_progress(struct nhca_rtx *rtx, unsigned long now, u8 retries)
{
	rtx->waits = 0;
	rtx->tlp_count = 0;
	if (rtx->rto_backoff && ++rtx->acks_since_rto >= NHCA_RTO_CALM_ACKS) {
		rtx->acks_since_rto = 0;
		rtx->rto_backoff--;
	}
	rtx->retries = retries;
	nhca_rtx_begin(rtx, now);
}

/**
 * nhca_rtx_retry - use up a retry
 * @rtx: the state
 * Context: any.
 * Return: false if no retry was left.
 */
bool nhca_rtx_retry(struct nhca_rtx *rtx);

/**
 * nhca_rtx_congested - check whether a CNP reduces the window
 * @rtx: the state
 * @now: jiffies
 *
 * One full queue may mark several packets, so at most one CNP counts in a retransmission timeout,
 * or in two jiffies if this timeout is shorter or not known.
 * Context: any.
 * Return: true if the CNP counts.
 */
bool nhca_rtx_congested(struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_is_early - check whether the timer has expired before the timeout has passed
 * @rtx: the state
 * @now: jiffies
 * Context: any.
 * Return: true if the timer has to be set to nhca_rtx_deadline().
 */
bool nhca_rtx_is_early(const struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_expire - decide what the requester does when its timer expires
 * @rtx:    the state
 * @now:    jiffies
 * @held:   what holds the oldest packet on this host
 * @ackreq: true: the caller can try to request an ACK, in case no packet has requested one (perhaps
 *          all requests are unsignaled); false: the caller has tried, and could not
 *
 * For NHCA_RTX_EARLY, NHCA_RTX_ACKREQ and NHCA_RTX_GIVE_UP the function changes nothing.  Any other
 * step is recorded in @rtx, and the timeout counts from @now: for NHCA_RTX_PROBE only the
 * retransmission timeout, otherwise also the local ACK timeout.
 *
 * For a requester that receives nothing from its peer the step is NHCA_RTX_GIVE_UP after at most
 * nhca_max_backoff local ACK timeouts for each of its retries + 1 tries (IBTA 9.7.6.1.3).  A try
 * counts from the last change of nhca_rtx.try_since, so it does not include the time for which this
 * host holds packets, or the time before an NHCA_RTX_ACKREQ.
 * Context: any.
 * Return: the step.
 */
enum nhca_rtx_step nhca_rtx_expire(struct nhca_rtx *rtx, unsigned long now,
				   enum nhca_rtx_held held, bool ackreq);

#endif /* NHCA_TRANSPORT_RTX_H */
