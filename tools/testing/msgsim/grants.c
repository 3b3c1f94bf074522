// SPDX-License-Identifier: GPL-2.0
/* Scenario with forged GRANTs: the library accepts none of them. */
#include <endian.h>
#include <string.h>

#include "world.h"

static const struct world_attr three = {
	.nodes = 3, .paths = 1, .lanes = 4, .packets = 8, .frames = 1024, .queue = 64,
	.dead_ms = 100, .mtu = 1500, .rcxts = 4096, .slots = 32, .slot_size = 16384,
};

/*
 * Offsets in a GRANT, which begins after a header of 72 bytes (Documentation/rcxt.rst, "Reliable
 * messages")
 */
enum {
	GRANT_GID = 0,
	GRANT_KEY = 16,
	GRANT_QPN = 24,
	GRANT_SEGMENT = 28,
	GRANT_VERSION = 32,
	GRANT_COUNT = 36,
	GRANT_RCXTS = 48,
};

/* Errors of a GRANT. FORGE_NUMBER: the number at offset @at is @value. Others: see forge(). */
static const struct forgery {
	const char *name;
	enum { FORGE_NUMBER, FORGE_GID, FORGE_LENGTH, FORGE_KIND } what;
	uint32_t at, value;
} forgeries[] = {
	{ "segment 0", FORGE_NUMBER, GRANT_SEGMENT, 0 },
	{ "segment 60", FORGE_NUMBER, GRANT_SEGMENT, 60 },
	{ "segment 66", FORGE_NUMBER, GRANT_SEGMENT, 66 },
	{ "segment 65536", FORGE_NUMBER, GRANT_SEGMENT, 65536 },
	{ "QP number 0", FORGE_NUMBER, GRANT_QPN, 0 },
	{ "QP number 1", FORGE_NUMBER, GRANT_QPN, 1 },
	{ "QP number 2^24", FORGE_NUMBER, GRANT_QPN, 1 << 24 },
	{ "no rCxts, but bytes of some", FORGE_NUMBER, GRANT_COUNT, 0 },
	{ "more rCxts than bytes", FORGE_NUMBER, GRANT_COUNT, 128 },
	{ "2^29 rCxts, whose bytes are 0 modulo 2^32", FORGE_NUMBER, GRANT_COUNT, 1 << 29 },
	{ "a multicast GID", FORGE_NUMBER, GRANT_GID, 0xff000000 },
	{ "the GID of another node", .what = FORGE_GID },
	{ "too short", .what = FORGE_LENGTH },
	{ "a half-receive write, which is no GRANT", .what = FORGE_KIND },
};

static const struct forgery *forged;
static uint32_t forge_left;
static bool forge_worked;		/* node 0 has sent to the channel of a forged GRANT */

/* Forge the first GRANTs of node 1, and record whether node 0 accepts a forged GRANT. */
static bool forge(struct sim_packet *p)
{
	struct sim_device *device = world.nodes[1].devices[0];
	struct sim_channel *ch = list_top(&device->channels, struct sim_channel, node);
	uint8_t *grant = p->data + 72;
	uint32_t value = htobe32(forged->value);

	if (!memcmp(&p->to, &device->gid, 16))
		forge_worked |= p->key != ch->key || p->qpn != ch->qpx.qp_base.qp_num;
	/*
	 * Skip all packets except the first GRANTs (type 4) of node 1. Packets of other kinds may
	 * have no data, so check the kind and the length first.
	 */
	if (p->kind != SIM_PACKET || p->length < 72 + GRANT_RCXTS || p->data[1] != 4 ||
	    memcmp(&p->from, &device->gid, 16) || !forge_left)
		return false;
	forge_left--;
	switch (forged->what) {
	case FORGE_NUMBER:
		memcpy(grant + forged->at, &value, sizeof(value));
		break;
	case FORGE_GID:
		memcpy(grant + GRANT_GID, &world.nodes[2].devices[0]->gid, 16);
		break;
	case FORGE_LENGTH:
		p->length = 72 + GRANT_RCXTS - 8;
		break;
	case FORGE_KIND:
		p->kind = SIM_HALF_WRITE;
		break;
	}
	/* If node 0 accepts the GRANT, it sends to another channel, and ignores valid GRANTs. */
	grant[GRANT_KEY] ^= 0xff;
	grant[GRANT_VERSION] = 0x40;
	return false;
}

static void forged_grants(uint64_t seed)
{
	uint32_t i, k;

	for (i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		forged = &forgeries[i];
		world_open(seed, &three);
		forge_left = 8;
		forge_worked = false;
		sim.tap = forge;
		node_start(&world.nodes[0]);
		node_start(&world.nodes[1]);
		node_connect(0, 1);
		node_connect(1, 0);
		run_ms(5);
		for (k = 0; k < 16; k++)
			post(k % 2 ? OP_WRITE : OP_READ, 0, 1, 4000, false);
		if (!run_until_done(5000))
			fail("GRANTs with %s: messages are not done after valid ones",
			     forged->name);
		if (forge_left || forge_worked)
			fail("GRANTs with %s: %u were sent%s", forged->name, 8 - forge_left,
			     forge_worked ? ", and one was accepted" : "");
		world_close();
		if (world.failed)
			return;
	}
}

const struct scenario grant_cases[] = {
	{ "invalid GRANTs are ignored", forged_grants },
	{}
};
