/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which opcode may follow which inside one QP's stream of requests
 * (IBTA 9.7.4.1.2 RC, 9.8.2.2.2 UC).  A pure state machine.
 */
#ifndef NHCA_WIRE_OPSEQ_H
#define NHCA_WIRE_OPSEQ_H

#include "bth.h"

enum nhca_opseq {
	NHCA_SEQ_IDLE = 0,	/* a message may begin */
	NHCA_SEQ_SEND,		/* inside a SEND */
	NHCA_SEQ_WRITE,		/* inside an RDMA WRITE */
};

/**
 * nhca_opseq_ok - may a request with @info come in state @state?
 * FIRST and ONLY, READ and atomics need NHCA_SEQ_IDLE; MIDDLE and LAST need
 * the state of their own kind.
 */
bool nhca_opseq_ok(enum nhca_opseq state, const struct nhca_opinfo *info);

/**
 * nhca_opseq_next - the state after a request that was accepted
 */
enum nhca_opseq nhca_opseq_next(enum nhca_opseq state, const struct nhca_opinfo *info);

/**
 * nhca_opseq_len_ok - does the payload fit the opcode?
 * FIRST (not ONLY) and MIDDLE: exactly @mtu; LAST: 1 to @mtu; ONLY: 0 to
 * @mtu; READ request and atomics: none (IBTA 9.7.4.1.6, 9.8.2.2.4).
 */
bool nhca_opseq_len_ok(const struct nhca_opinfo *info, u32 payload, u32 mtu);

#endif /* NHCA_WIRE_OPSEQ_H */
