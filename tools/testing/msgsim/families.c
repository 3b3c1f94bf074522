// SPDX-License-Identifier: GPL-2.0
/* Moves between nodes whose paths have no address family in common. */
#include <errno.h>
#include <string.h>

#include "moves.h"

/* A move that cannot work with any pair of paths fails soon, and does not wait. */
static void expect_impossible(uint64_t seed, const struct world_attr *attr, const char *why)
{
	struct move *v;

	open_nodes(attr, seed);
	allow_all();
	moves_impossible = true;
	v = post_move(2, 0, 1, 5000, false);
	run_moves(500);
	if (!v || !v->done || v->status != EOPNOTSUPP)
		fail("a move %s: %s", why, v && v->done ? strerror(v->status) : "not done");
	if (v && !v->done)
		cancel_move(v);
	finish(1000);
}

/*
 * Node 0 is the source, node 1 the target, and the manager has an IPv6 and an IPv4 device. The
 * paths of source and target have no address family in common, or none on which both support moves.
 */
void move_families(uint64_t seed)
{
	struct world_attr attr = three_nodes(2, 0);

	attr.v4[1] = 3;
	attr.v4[2] = 2;
	expect_impossible(seed, &attr, "from IPv6 to IPv4");
	if (world.failed)
		return;

	attr.v4[0] = 2;
	attr.v4[1] = 2;
	attr.no_moves[0] = 2;
	attr.no_moves[1] = 1;
	expect_impossible(seed, &attr, "from a path to one of another family");
	if (world.failed)
		return;

	/* if the common path is only down, the move waits for it */
	attr.no_moves[1] = 0;
	open_nodes(&attr, seed);
	allow_all();
	world.nodes[1].devices[0]->up = false;
	run_ms(500);
	post_move(2, 0, 1, 5000, false);
	if (run_moves(500))
		fail("a move does not wait for a path that is down");
	world.nodes[1].devices[0]->up = true;
	finish(3000);
}
