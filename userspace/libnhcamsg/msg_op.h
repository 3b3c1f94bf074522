/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: whole writes, reads and moves; msg.h includes this header. */
#ifndef NHCA_MSG_OP_H
#define NHCA_MSG_OP_H

#include "msg_iov.h"

/**
 * msg_op_list - get the list for an operation that has bytes to transfer
 * @op: the operation
 * Return: msg_peer.moves (move) or msg_peer.todo (write, read).
 */
struct list_head *msg_op_list(const struct msg_op *op);

/**
 * msg_op_has_work - test whether a lane can take bytes of an operation
 * @op: the operation
 * Return: true if there are bytes that no lane has taken. An operation of 0 bytes also needs one
 * transfer.
 */
bool msg_op_has_work(const struct msg_op *op);

/**
 * msg_op_sort - move an operation to msg_op_list() if it has bytes to transfer, or else to
 * msg_peer.going
 * @op: the operation
 */
void msg_op_sort(struct msg_op *op);

/**
 * msg_op_check - if no lane has or needs bytes of an operation, send its notice, or finish the
 * operation
 * @op: the operation
 */
void msg_op_check(struct msg_op *op);

/**
 * msg_op_fail - let lanes take no more bytes of an operation
 * @op:     the operation
 * @status: errno for the completion; an earlier errno takes precedence
 */
void msg_op_fail(struct msg_op *op, int status);

/**
 * msg_op_again - queue bytes of an operation to be transferred again
 * @op:     the operation
 * @offset: first byte
 * @length: number of bytes
 * Return: true; false: there is no memory, so the caller must try again later.
 */
bool msg_op_again(struct msg_op *op, uint64_t offset, uint32_t length);

/**
 * msg_op_take - take the next bytes to transfer
 * @op:     the operation
 * @most:   maximum number of bytes
 * @offset: output: the first of these bytes
 * Return: number of bytes.
 */
uint32_t msg_op_take(struct msg_op *op, uint32_t most, uint64_t *offset);

/**
 * msg_op_finish - store the completion of an operation, and free the operation
 * @op: the operation
 */
void msg_op_finish(struct msg_op *op);

/**
 * msg_op_free - free an operation without a completion
 * @op: the operation
 */
void msg_op_free(struct msg_op *op);

#endif /* NHCA_MSG_OP_H */
