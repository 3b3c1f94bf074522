/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a requester retransmits: round-trip times, timeouts, probes and retries (IBTA 9.7.5, 9.7.6).
 *
 * The functions know no queue pair, no timer, no lock and no clock.  The caller (retry.c) holds
 * nhca_sq.lock, says what time it is, and does what they decide.
 */
#ifndef NHCA_TRANSPORT_RTX_H
#define NHCA_TRANSPORT_RTX_H

#include <linux/types.h>

/* timeouts in a row that may be postponed because the network stack holds packets */
#define NHCA_WAITS_MAX		8
/* doublings of the local ACK timeout, at most: 2^5 times the attribute */
#define NHCA_RTO_BACKOFF_MAX	5
/* acknowledgments without a timeout after which the local ACK timeout is halved again */
#define NHCA_RTO_CALM_ACKS		64
/* tail loss probes before falling back to the local ACK timeout */
#define NHCA_TLP_MAX		3
/* the least retransmission timeout: a peer in software may have to wait for a CPU */
#define NHCA_TLP_MIN		msecs_to_jiffies(10)
/* the least local ACK timeout: a peer in software may have to wait for a CPU */
#define NHCA_TIMEOUT_MIN	msecs_to_jiffies(20)

/**
 * struct nhca_rtx - retransmission state of a requester
 * @rtt:      smoothed round-trip time, in eighths of a microsecond; 0: not measured yet
 * @rtt_dev:  smoothed deviation of it, in quarters of a microsecond
 * @rtt_psn:  PSN of the packet whose round trip is being measured
 * @retries:  retries left for the oldest request
 * @rto_backoff: the local ACK timeout is multiplied by 2^@rto_backoff; each timeout adds 1, and
 *           each NHCA_RTO_CALM_ACKS acknowledgments without a timeout subtract 1
 * @acks_since_rto: acknowledgments since the last timeout, or since @rto_backoff was reduced
 * @tlp_count: tail loss probes sent since the last progress
 * @rtt_begun: when it was sent, in ns; 0: no measurement is in progress
 * @cnp_at:   jiffies at the last reduction of the window after a CNP
 * @since:    jiffies from which the timeout counts: last progress, or when the oldest packet left
 * @timeout:  the local ACK timeout of the attributes in jiffies, NHCA_TIMEOUT_MIN at least
 * @rto:      retransmission timeout by the measured round trips, in jiffies; 0: not known
 * @waits:    timeouts postponed since the last progress, because the stack held packets
 *
 * nhca_sq.lock protects it.  It is allocated separately, so that struct nhca_qp fits in a kilobyte.
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
	unsigned long timeout;
	unsigned long rto;
	u8 waits;
};

/* What holds the oldest packet on this host: a packet that has not left is not lost. */
enum nhca_rtx_held {
	NHCA_RTX_HELD_NOT,
	/* the network stack: for ever, if a link is dead */
	NHCA_RTX_HELD_STACK,
	/* the flow waits for its turn, a page is faulted in, or a rate limit delays: it will end */
	NHCA_RTX_HELD_TURN,
};

/* What the requester does when its timer expires. */
enum nhca_rtx_step {
	/* the timeout has not passed yet: set the timer to nhca_rtx_deadline() */
	NHCA_RTX_EARLY,
	/* restart the timer, and send nothing */
	NHCA_RTX_POSTPONE,
	/* request an ACK; if that is not possible, decide again */
	NHCA_RTX_ACKREQ,
	/* tail loss probe: go back, long before the local ACK timeout */
	NHCA_RTX_PROBE,
	/* a timeout: go back, and use up a retry */
	NHCA_RTX_RETRANSMIT,
	/* a timeout without a retry left: fail the oldest request */
	NHCA_RTX_GIVE_UP,
};

/**
 * nhca_rtx_init - forget round trips and timeouts: nothing is known of the path to the peer
 * @rtx: the state; @timeout and @retries stay
 * @now: jiffies
 * Context: any.
 */
void nhca_rtx_init(struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_rto - compute how long to wait for the next ACK
 * @rtx: the state
 *
 * It is the retransmission timeout, doubled with each tail loss probe; or the local ACK timeout, if
 * that is shorter, if no probe is left, or if no round trip was measured.
 * Context: any.
 * Return: jiffies.
 */
unsigned long nhca_rtx_rto(const struct nhca_rtx *rtx);

/**
 * nhca_rtx_deadline - compute when the timeout passes
 * @rtx: the state
 * Context: any.
 * Return: jiffies.
 */
static inline unsigned long nhca_rtx_deadline(const struct nhca_rtx *rtx)
{
	return rtx->since + nhca_rtx_rto(rtx);
}

/**
 * nhca_rtx_restart - let the timeout count from now
 * @rtx: the state
 * @now: jiffies
 * Context: any.
 * Return: the new nhca_rtx_deadline().
 */
unsigned long nhca_rtx_restart(struct nhca_rtx *rtx, unsigned long now);

/**
 * nhca_rtx_rtt_begin - begin an RTT sample; one that is in progress ends without a result
 * @rtx: the state
 * @psn: of a packet with AckReq that is sent for the first time
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
 * @psn: everything before it is acknowledged
 * Context: any.
 * Return: true if the caller has to call nhca_rtx_rtt_end().
 */
bool nhca_rtx_rtt_ends(const struct nhca_rtx *rtx, u32 psn);

/**
 * nhca_rtx_rtt_end - end the RTT sample that is in progress, and compute the timeout from it
 * @rtx: the state
 * @ns:  time in nanoseconds
 *
 * RFC 6298, in the fixed-point form of TCP's code.
 * Context: any.
 */
void nhca_rtx_rtt_end(struct nhca_rtx *rtx, u64 ns);

/**
 * nhca_rtx_progress - count an acknowledgment of something new
 * @rtx:     the state
 * @now:     jiffies
 * @retries: retries that the next request has
 * Context: any.
 */
void nhca_rtx_progress(struct nhca_rtx *rtx, unsigned long now, u8 retries);

/**
 * nhca_rtx_retry - use up a retry
 * @rtx: the state
 * Context: any.
 * Return: false if none is left.
 */
bool nhca_rtx_retry(struct nhca_rtx *rtx);

/**
 * nhca_rtx_congested - check whether a CNP reduces the window
 * @rtx: the state
 * @now: jiffies
 *
 * One full queue may mark several packets, so only one CNP counts in a retransmission timeout.
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
 * @ackreq: perhaps no packet has requested an ACK, because all requests are unsignaled
 *
 * Counts the step, and lets the timeout count from now, except for NHCA_RTX_EARLY, NHCA_RTX_ACKREQ
 * and NHCA_RTX_GIVE_UP.
 * Context: any.
 * Return: the step.
 */
enum nhca_rtx_step nhca_rtx_expire(struct nhca_rtx *rtx, unsigned long now,
				   enum nhca_rtx_held held, bool ackreq);

#endif /* NHCA_TRANSPORT_RTX_H */
