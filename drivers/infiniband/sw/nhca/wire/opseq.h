/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The valid order of opcodes in the requests that a QP receives (IBTA 9.7.4.1.2 for RC, 9.8.2.2.2
 * for UC), as a state machine.
 */
#ifndef NHCA_WIRE_OPSEQ_H
#define NHCA_WIRE_OPSEQ_H

#include "bth.h"

enum nhca_opseq {
	NHCA_SEQ_IDLE = 0,	/* the next request begins a message */
	NHCA_SEQ_SEND,		/* the next request continues a SEND */
	NHCA_SEQ_WRITE,		/* the next request continues an RDMA WRITE */
};

/**
 * nhca_opseq_ok - check that the opcode of a request is valid after that of the previous request
 * @state: state after the previous request
 * @info:  row of the request's opcode
 * Context: any.
 * Return: true if the opcode is valid: FIRST, ONLY, READ, FLUSH and all atomics in NHCA_SEQ_IDLE;
 * MIDDLE and LAST of a SEND in NHCA_SEQ_SEND; MIDDLE and LAST of an RDMA WRITE in NHCA_SEQ_WRITE.
 */
static inline bool nhca_opseq_ok(enum nhca_opseq state, const struct nhca_opinfo *info)
{
	u32 flags = info->flags;

	if (!(flags & NHCA_OPF_REQUEST))
		return false;
	if (flags & NHCA_OPF_FIRST)
		return state == NHCA_SEQ_IDLE;
	if (flags & NHCA_OPF_SEND)
		return state == NHCA_SEQ_SEND;
	return state == NHCA_SEQ_WRITE;
}

/**
 * nhca_opseq_next - compute the state after a request that was accepted
 * @state: state before the request
 * @info:  row of the request's opcode
 * Context: any.
 * Return: the new state.
 */
static inline enum nhca_opseq nhca_opseq_next(enum nhca_opseq state, const struct nhca_opinfo *info)
{
	u32 flags = info->flags;

	if (flags & NHCA_OPF_LAST)
		return NHCA_SEQ_IDLE;
	if (flags & NHCA_OPF_FIRST)
		return flags & NHCA_OPF_SEND ? NHCA_SEQ_SEND : NHCA_SEQ_WRITE;
	return state;
}

/**
 * nhca_opseq_len_ok - check the payload length of a request (IBTA 9.7.4.1.6, 9.8.2.2.4)
 * @info:    row of the request's opcode
 * @payload: bytes of payload, without pad
 * @mtu:     path MTU, in bytes
 * Context: any.
 * Return: true if the length is valid: FIRST and MIDDLE: exactly @mtu; LAST: 1 to @mtu; ONLY and
 * ATOMIC WRITE: 0 to @mtu; opcodes without payload (READ request, CmpSwap, FetchAdd, FLUSH): 0.
 */
bool nhca_opseq_len_ok(const struct nhca_opinfo *info, u32 payload, u32 mtu);

#endif /* NHCA_WIRE_OPSEQ_H */
