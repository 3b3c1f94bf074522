// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the order of opcodes, and their payload lengths. The references (IBTA 9.7.4.1.2 and
 * 9.7.4.1.6) use opcode numbers, while opseq.h uses the flags of the opcodes.
 */
#include <kunit/test.h>
#include "../wire/opseq.h"

#define REFUSED	(-1)

static const enum nhca_opseq opseq_states[] = {
	NHCA_SEQ_IDLE, NHCA_SEQ_SEND, NHCA_SEQ_WRITE,
};

/*
 * Return: the RC opcode whose order and payload lengths also hold for the XRC opcode @opcode; other
 * opcodes are returned unchanged. XRC has no FLUSH and no ATOMIC WRITE.
 */
static u8 as_rc(u8 opcode)
{
	return opcode >= 0xa0 && opcode < 0xb8 ? opcode - 0xa0 : opcode;
}

/* Return: the state after @opcode in @state, or REFUSED. */
static int reference_next(enum nhca_opseq state, u8 opcode)
{
	switch (as_rc(opcode)) {
	case 0x00: case 0x20:					/* SEND First */
		return state == NHCA_SEQ_IDLE ? NHCA_SEQ_SEND : REFUSED;
	case 0x01: case 0x21:					/* SEND Middle */
		return state == NHCA_SEQ_SEND ? NHCA_SEQ_SEND : REFUSED;
	case 0x02: case 0x03: case 0x16: case 0x22: case 0x23:	/* SEND Last */
		return state == NHCA_SEQ_SEND ? NHCA_SEQ_IDLE : REFUSED;
	case 0x06: case 0x26:					/* WRITE First */
		return state == NHCA_SEQ_IDLE ? NHCA_SEQ_WRITE : REFUSED;
	case 0x07: case 0x27:					/* WRITE Middle */
		return state == NHCA_SEQ_WRITE ? NHCA_SEQ_WRITE : REFUSED;
	case 0x08: case 0x09: case 0x28: case 0x29:		/* WRITE Last */
		return state == NHCA_SEQ_WRITE ? NHCA_SEQ_IDLE : REFUSED;
	case 0x04: case 0x05: case 0x17: case 0x24: case 0x25:	/* SEND Only */
	case 0x0a: case 0x0b: case 0x2a: case 0x2b:		/* WRITE Only */
	case 0x0c:						/* READ */
	case 0x13: case 0x14:					/* atomics */
	case 0x1c: case 0x1d:					/* FLUSH, ATOMIC WRITE */
	case 0x64: case 0x65:					/* UD */
		return state == NHCA_SEQ_IDLE ? NHCA_SEQ_IDLE : REFUSED;
	}
	return REFUSED;
}

/*
 * In every state, each opcode is accepted or refused as the reference says, and leads to the
 * reference's next state.
 */
static void opseq_whole_table(struct kunit *test)
{
	unsigned int opcode, i, accepted = 0;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct nhca_opinfo *info = nhca_opinfo(opcode);

		if (!info)
			continue;
		for (i = 0; i < ARRAY_SIZE(opseq_states); i++) {
			enum nhca_opseq state = opseq_states[i];
			int next = reference_next(state, opcode);

			KUNIT_EXPECT_EQ_MSG(test, nhca_opseq_ok(state, info), next != REFUSED,
					    "%s in state %d", info->name, state);
			if (next == REFUSED)
				continue;
			accepted++;
			KUNIT_EXPECT_EQ_MSG(test, (int)nhca_opseq_next(state, info), next,
					    "%s in state %d", info->name, state);
		}
	}
	/* 19 requests of RC, 12 of UC, 2 of UD, 17 of XRC; each is accepted in exactly one state */
	KUNIT_EXPECT_EQ(test, accepted, 19 + 12 + 2 + 17);
}

/* Responses, CNPs and packets of channels are not requests, so they are refused in every state. */
static void opseq_refuses_non_requests(struct kunit *test)
{
	static const u8 opcodes[] = {
		0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x81,
		0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb2,
		0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		const struct nhca_opinfo *info = nhca_opinfo(opcodes[i]);

		KUNIT_ASSERT_NOT_NULL(test, info);
		for (j = 0; j < ARRAY_SIZE(opseq_states); j++)
			KUNIT_EXPECT_FALSE(test, nhca_opseq_ok(opseq_states[j], info));
	}
}

/* Set the smallest and the largest payload of @opcode at @mtu (IBTA 9.7.4.1.6, 9.8.2.2.4). */
static void reference_len(u8 opcode, u32 mtu, u32 *least, u32 *most)
{
	*least = 0;
	*most = 0;
	switch (as_rc(opcode)) {
	case 0x00: case 0x01: case 0x06: case 0x07: case 0x0d: case 0x0e:
	case 0x20: case 0x21: case 0x26: case 0x27:		/* First, Middle */
		*least = mtu;
		*most = mtu;
		break;
	case 0x02: case 0x03: case 0x16: case 0x08: case 0x09: case 0x0f:
	case 0x22: case 0x23: case 0x28: case 0x29:		/* Last */
		*least = 1;
		*most = mtu;
		break;
	case 0x04: case 0x05: case 0x17: case 0x0a: case 0x0b: case 0x10:
	case 0x1d:
	case 0x24: case 0x25: case 0x2a: case 0x2b:
	case 0x64: case 0x65:					/* Only */
		*most = mtu;
		break;
	}
}

/* A payload length is accepted exactly if the reference allows it for the opcode and the MTU. */
static void opseq_payload_lengths(struct kunit *test)
{
	unsigned int opcode, payload, mtu;
	u32 least, most;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct nhca_opinfo *info = nhca_opinfo(opcode);

		/* packets of a channel have no path MTU; rxeth_test.c tests their lengths */
		if (!info || info->flags & NHCA_OPF_RXETH)
			continue;
		for (mtu = 256; mtu <= 4096; mtu *= 2) {
			reference_len(opcode, mtu, &least, &most);
			for (payload = 0; payload <= mtu + 4; payload++)
				KUNIT_ASSERT_EQ_MSG(test, nhca_opseq_len_ok(info, payload, mtu),
						    payload >= least && payload <= most,
						    "%s with %u bytes, MTU %u", info->name,
						    payload, mtu);
			KUNIT_EXPECT_FALSE(test, nhca_opseq_len_ok(info, U32_MAX, mtu));
		}
	}
}

static struct kunit_case opseq_cases[] = {
	KUNIT_CASE(opseq_whole_table),
	KUNIT_CASE(opseq_refuses_non_requests),
	KUNIT_CASE(opseq_payload_lengths),
	{}
};

static struct kunit_suite opseq_suite = {
	.name = "nhca_opseq",
	.test_cases = opseq_cases,
};

kunit_test_suite(opseq_suite);
