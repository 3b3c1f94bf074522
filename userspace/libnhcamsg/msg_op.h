/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: whole writes, reads and moves; msg.h includes this header. */
#ifndef NHCA_MSG_OP_H
#define NHCA_MSG_OP_H

/** msg_op_list - Return: the list of the peer for operations of this kind with bytes to transfer */
struct list_head *msg_op_list(const struct msg_op *op);
/** msg_op_has_work - Return: true if a lane can take bytes of the operation */
bool msg_op_has_work(const struct msg_op *op);
/** msg_op_sort - move the operation to the list of msg_op_list(), or to msg_peer.going */
void msg_op_sort(struct msg_op *op);
/** msg_op_check - if no lane has or needs bytes of @op, send its notice, or finish @op */
void msg_op_check(struct msg_op *op);
/** msg_op_fail - let lanes take no more bytes of @op; @status: errno for its completion */
void msg_op_fail(struct msg_op *op, int status);
/** msg_op_again - queue bytes to transfer again; Return: false if there is no memory */
bool msg_op_again(struct msg_op *op, uint64_t offset, uint32_t length);
/** msg_op_take - take the next bytes to transfer, at most @most; Return: their number */
uint32_t msg_op_take(struct msg_op *op, uint32_t most, uint64_t *offset);
/** msg_op_finish - complete the operation, and free it */
void msg_op_finish(struct msg_op *op);
void msg_op_free(struct msg_op *op);

#endif /* NHCA_MSG_OP_H */
