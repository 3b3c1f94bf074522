/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Third-party transfers (reference: third party RDMA operations): a manager requests that a source
 * writes into the memory of a target.  The payload goes from the source to the target, and the
 * notice from the target to the manager.  The programs of source and target need not run.
 *
 * The manager chooses the target, so a source sends only to addresses that its own program has
 * allowed.  Otherwise a member of the job could make the source flood any host.
 */
#ifndef NHCA_RCXT_THIRD_H
#define NHCA_RCXT_THIRD_H

#include "engine.h"

/**
 * nhca_third_digest - compute keyed hashes of the fields of a third-party request
 * @ch: the manager's channel
 * @x:  RXETH of a request or of a challenge
 * @mirrored: true: @x is that of a challenge, which has source and destination exchanged
 *
 * Context: any.
 * Return: upper half: a hash of the fields that all requests of a transfer have in common: both
 * PVOs, the source's rCxt, and the fields that name the target.  Lower half: a hash of these fields
 * and of cookie, offset, part and notify.
 */
u64 nhca_third_digest(const struct nhca_channel *ch, const struct nhca_rxeth *x, bool mirrored);

/**
 * nhca_third_target - fill in the target of a third-party request from the work request in ch->wqe
 * @ch:     the channel; the work request is NHCA_WR_CH_MOVE
 * @source: address vector of the source
 * @x:      RXETH of the request; the function fills in the fields of the target, both PVOs, offset,
 *          part and notify
 *
 * Source, target and manager have addresses of one IP version, because the target sends the notice
 * to the manager by the IP version in which the payload has arrived.
 * Context: the channel's turn.
 * Return: 0; -EINVAL: the work request is malformed, or names no unicast address handle of the
 * channel's PD; -EAFNOSUPPORT: only one of source and target has an IPv4 address.
 */
int nhca_third_target(const struct nhca_channel *ch, const struct nhca_av *source,
		      struct nhca_rxeth *x);

/**
 * nhca_third_allowed - look up the address vector of an allowed target
 * @ch: the channel
 * @rx: the third-party request, which has the GID of the target
 * Context: any; the caller does not hold nhca_channel.lock.
 * Return: the address vector with a reference for the caller; NULL: the program has not allowed the
 * target, or the manager has an address of another IP version than the target.
 */
struct nhca_av *nhca_third_allowed(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_third_begin - prepare to make packets of a third-party transfer
 * @ch: the channel
 * @s:  the transfer
 *
 * The send engine reads the payload until nhca_third_end(), so a fence for the rCxt gets no status
 * until then.  If the program has revoked the target, the function ends the transfer in the rCxt
 * and sends a status to the manager.
 * Context: the channel's turn.
 * Return: false if the caller must make no packets.
 */
bool nhca_third_begin(struct nhca_channel *ch, const struct nhca_sending *s);

/**
 * nhca_third_end - end nhca_third_begin()
 * @ch: the channel
 * @id: rCxt of the transfer
 * Context: the channel's turn.
 */
void nhca_third_end(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_third_tell - send a status to the manager: the source makes no more packets of a transfer
 * @ch:     the channel of the source
 * @s:      the transfer
 * @status: enum nhca_rx_status
 * Context: the channel's turn.
 */
void nhca_third_tell(struct nhca_channel *ch, const struct nhca_sending *s,
		     enum nhca_rx_status status);

/**
 * nhca_third_manager_ok - check the GID of a manager, to which a notice will be sent
 * @ch: the channel of the target
 * @rx: third-party payload
 * Context: softirq.
 * Return: true if the GID is a unicast address of the address family of the packet, other than a
 * loopback address.
 */
bool nhca_third_manager_ok(const struct nhca_channel *ch, const struct nhca_rx *rx);

#endif /* NHCA_RCXT_THIRD_H */
