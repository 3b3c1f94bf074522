// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: a whole write, read or move: the bytes that lanes still have to transfer, and
 * the completion.
 */
#include <stdlib.h>

#include "msg.h"

bool msg_op_has_work(const struct msg_op *op)
{
	return !list_empty(&op->pieces) || op->cut < op->length || !op->begun;
}

struct list_head *msg_op_list(const struct msg_op *op)
{
	return op->to ? &op->peer->moves : &op->peer->todo;
}

void msg_op_sort(struct msg_op *op)
{
	list_del(&op->node);
	if (msg_op_has_work(op))
		list_add(msg_op_list(op), &op->node);
	else
		list_add_tail(&op->peer->going, &op->node);
}

static void drop_pieces(struct msg_op *op)
{
	struct msg_piece *piece;

	while ((piece = list_pop(&op->pieces, struct msg_piece, node)))
		free(piece);
}

void msg_op_free(struct msg_op *op)
{
	drop_pieces(op);
	if (op->to)
		op->peer->ep->moves--;
	else if (op->mem)
		op->mem->users--;
	free(op->iov);
	free(op->notice);
	free(op);
}

static enum nhcadv_msg_kind kind_of(const struct msg_op *op)
{
	if (op->to)
		return NHCADV_MSG_MOVED;
	return op->read ? NHCADV_MSG_READ : NHCADV_MSG_WRITE;
}

void msg_op_finish(struct msg_op *op)
{
	list_del(&op->node);
	msg_complete(op->peer, kind_of(op), op->status, op->id,
		     op->done, 0, NULL);
	msg_op_free(op);
}

void msg_op_check(struct msg_op *op)
{
	if (op->lanes || msg_op_has_work(op)) {
		msg_op_sort(op);
		return;
	}
	/* All bytes were in place before the cancel or the failure took effect: success. */
	if (op->length && op->done == op->length)
		op->status = 0;
	if (!op->status && op->notice) {
		msg_op_sort(op);
		msg_stream_notify(op->peer, op);
	} else {
		msg_op_finish(op);
	}
}

void msg_op_fail(struct msg_op *op, int status)
{
	if (!op->status)
		op->status = status;
	drop_pieces(op);
	op->cut = op->length;
	op->begun = true;
}

bool msg_op_again(struct msg_op *op, uint64_t offset, uint32_t length)
{
	struct msg_piece *piece;

	if (op->status)
		return true;
	/* A timer may run after msg_pump(), so the peer needs another turn in this pass. */
	msg_peer_ready(op->peer);
	if (!op->length) {
		op->begun = false;
		return true;
	}
	piece = malloc(sizeof(*piece));
	if (!piece)
		return false;
	piece->offset = offset;
	piece->length = length;
	list_add_tail(&op->pieces, &piece->node);
	return true;
}

uint32_t msg_op_take(struct msg_op *op, uint32_t most, uint64_t *offset)
{
	struct msg_piece *piece = list_top(&op->pieces, struct msg_piece, node);
	uint32_t length;

	op->begun = true;
	if (!piece) {
		*offset = op->cut;
		length = min_t(uint64_t, op->length - op->cut, most);
		op->cut += length;
		return length;
	}
	*offset = piece->offset;
	length = min_t(uint64_t, piece->length, most);
	piece->offset += length;
	piece->length -= length;
	if (!piece->length) {
		list_del(&piece->node);
		free(piece);
	}
	return length;
}
