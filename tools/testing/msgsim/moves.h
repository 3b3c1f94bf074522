/* SPDX-License-Identifier: GPL-2.0 */
/* What the scenarios of moves share: moves.c has the checks of each move. */
#ifndef MSGSIM_MOVES_H
#define MSGSIM_MOVES_H

#include "world.h"

/**
 * struct move - a move that was posted
 * @manager: number of the node that has posted the move
 * @from:   number of the source
 * @to:     number of the target
 * @source: slot at the source
 * @target: slot at the target; -1: none
 * @seed:   seed of the bytes
 * @closed: memory protection of the target must refuse the move
 * @cancelled: the move may complete with ECANCELED
 * @dropped: the move gets no completion
 * @done:   the move has completed
 * @lost:   the manager has disconnected from the target, so late bytes may be placed there until
 *          the target has disconnected from the manager (@refuses)
 */
struct move {
	uint32_t manager, from, to, length;
	int source, target;
	uint64_t seed;
	bool closed, cancelled, dropped, done, lost, refuses;
	int status;
};

/* No pair of paths can work, although all nodes have devices that support moves. */
extern bool moves_impossible;

/** three_nodes - Return: attributes of a source, a target and a manager */
struct world_attr three_nodes(uint32_t paths, uint32_t old_moves_ppm);
/** open_nodes - create the nodes, and connect each to the others */
void open_nodes(const struct world_attr *attr, uint64_t seed);
/** allow_all - let each node allow all others as targets */
void allow_all(void);
/** post_move - post a move; Return: the move, or NULL if there was no room */
struct move *post_move(uint32_t manager, uint32_t from, uint32_t to, uint32_t length,
			      bool closed);
/** cancel_move - cancel a move; does nothing after its completion */
void cancel_move(struct move *v);
/** run_moves - run up to @ms milliseconds; Return: true if all moves are done */
bool run_moves(uint64_t ms);
/** finish - wait up to @ms milliseconds for all moves, and close the world */
void finish(uint64_t ms);

/** move_families - a scenario of families.c */
void move_families(uint64_t seed);

#endif /* MSGSIM_MOVES_H */
