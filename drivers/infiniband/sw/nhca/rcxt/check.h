/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/: checks of work requests.  The functions check the kernel's copy of a work
 * request, which user space cannot change.
 */
#ifndef NHCA_RCXT_CHECK_H
#define NHCA_RCXT_CHECK_H

#include "engine.h"

/**
 * nhca_check_header - check the first part of a work request: struct nhca_send_wqe
 * @ch:  the channel
 * @wqe: the work request
 *
 * The first part determines the length of the second part (nhca_check_rest()).  The check ensures
 * that the second part does not extend beyond the slot of the FIFO.
 * Context: any.
 * Return: false if the work request is malformed.
 */
bool nhca_check_header(const struct nhca_channel *ch, const struct nhca_send_wqe *wqe);

/**
 * nhca_check_rest - compute the length of the second part of a work request
 * @wqe: its first part, which nhca_check_header() has accepted
 * Context: any.
 * Return: bytes of SGEs, inline data, struct nhca_rcxt_wr and struct nhca_rcxt_target.
 */
size_t nhca_check_rest(const struct nhca_send_wqe *wqe);

/**
 * nhca_check_length - compute the payload of a work request that contains its payload or its SGEs
 * @wqe: the work request
 * Context: any.
 * Return: bytes.
 */
u64 nhca_check_length(const struct nhca_send_wqe *wqe);

/**
 * nhca_check_bytes - compute the bytes that traces show of a work request
 * @wqe: the work request
 * Context: any.
 * Return: bytes of the payload that the work request contains or names by SGEs
 * (nhca_check_length()); for other work requests, bytes of the whole transfer.
 */
u32 nhca_check_bytes(const struct nhca_send_wqe *wqe);

/**
 * nhca_check_rcxt - check the struct nhca_rcxt_wr of a work request
 * @ch:     the channel, whose @ch->wqe is the work request
 * @opcode: opcode of the work request
 * @wr:     the struct nhca_rcxt_wr; the function replaces a segment of 0 by the default
 * Context: any.
 * Return: false if the work request is malformed.
 */
bool nhca_check_rcxt(const struct nhca_channel *ch, u8 opcode, struct nhca_rcxt_wr *wr);

/**
 * nhca_check_too_short - check for a segment that only the current MTU makes too short
 * @ch: the channel, whose @ch->wqe is the work request
 * @wr: its struct nhca_rcxt_wr
 * Context: any.
 * Return: true if the transfer is valid, but needs too many packets with the current MTU.
 */
bool nhca_check_too_short(const struct nhca_channel *ch, const struct nhca_rcxt_wr *wr);

#endif /* NHCA_RCXT_CHECK_H */
