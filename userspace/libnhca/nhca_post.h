/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The nhca provider: posting of work requests, and channels; nhca.h includes this header. */
#ifndef NHCA_PROVIDER_POST_H
#define NHCA_PROVIDER_POST_H

/* ---- post.c ---- */

int nhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int nhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);

/**
 * nhca_post_wq_recv - ibv_wq.post_recv: post receive requests to a work queue
 * @ibwq:   the work queue
 * @wr:     list of requests
 * @bad_wr: output: the first request that was not posted, after an error
 * Return: 0 or an errno.
 */
int nhca_post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr);
int nhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int nhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *mw_bind);

/**
 * nhca_put_bind - fill in the operation of a BIND_MW
 * @wqe:  the entry
 * @mw:   the memory window
 * @rkey: the new R_Key of @mw
 * @info: region, range and access rights of the binding
 */
void nhca_put_bind(struct nhca_send_wqe *wqe, const struct ibv_mw *mw,
		   uint32_t rkey, const struct ibv_mw_bind_info *info);

/**
 * nhca_sq_doorbell - let the kernel process the new entries of an SQ
 * @ibqp: the QP
 * Return: 0 or an errno.
 */
int nhca_sq_doorbell(struct ibv_qp *ibqp);

/**
 * nhca_send_ops - get the operations that a QP may post
 * @type:     type of the QP
 * @features: NHCA_FEATURE_* of the kernel driver
 * Return: the operations, as nhca_qp.ops.
 */
uint32_t nhca_send_ops(enum ibv_qp_type type, uint32_t features);

/**
 * nhca_qp_ex_ops - convert operations to the numbering of ibv_qp_ex
 * @ops: operations, as nhca_qp.ops
 *
 * Both numberings agree up to SEND_WITH_INV: bit n of IBV_QP_EX_WITH_* is IBV_WR_* number n.
 * Return: the operations, as IBV_QP_EX_WITH_*.
 */
uint64_t nhca_qp_ex_ops(uint32_t ops);

/* ---- wr.c: ibv_qp_ex ---- */

/**
 * nhca_wr_set_ops - set the functions of ibv_qp_ex
 * @qp:  the QP
 * @ops: IBV_QP_EX_WITH_*: the operations that the application may post
 */
void nhca_wr_set_ops(struct nhca_qp *qp, uint64_t ops);

/**
 * nhca_wr_fail - record an error, so that ibv_wr_complete() posts nothing and returns the first
 * error
 * @qp:  the QP
 * @err: the errno
 */
void nhca_wr_fail(struct nhca_qp *qp, int err);

/**
 * nhca_wr_begin - fill in the common part of the next entry, for the setters that follow
 * @qp: the QP
 * @opcode: NHCA_WR_*
 * Context: between ibv_wr_start() and ibv_wr_complete().
 * Return: the entry, or NULL after an error: see nhca_wr_fail().
 */
struct nhca_send_wqe *nhca_wr_begin(struct nhca_qp *qp, uint8_t opcode);

/**
 * nhca_wr_set_sge_list - ibv_qp_ex.wr_set_sge_list: set the SGEs of the current request
 * @ibqp:    the QP
 * @num_sge: number of SGEs
 * @sg_list: the SGEs
 */
void nhca_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
			  const struct ibv_sge *sg_list);

/* ---- channel.c, wr_channel.c, fifo.c: functions that implement nhcadv.h ---- */

/**
 * nhca_check_channels - check that a device has channels
 * @context: the device
 * Return: 0, or EOPNOTSUPP if the device has no channels.
 */
int nhca_check_channels(struct ibv_context *context);

/**
 * nhca_check_channel - check that a QP is a channel
 * @ibqp: the QP
 * Return: 0, or EOPNOTSUPP if the QP is not a channel.
 */
int nhca_check_channel(struct ibv_qp *ibqp);

/**
 * nhca_channel_fini - release the receive FIFO of a channel; the caller frees @ch
 * @ch: the channel
 */
void nhca_channel_fini(struct nhca_channel *ch);

/**
 * nhca_wr_set_channel_ops - set the functions of struct nhcadv_qp_ex
 * @ch: the channel
 */
void nhca_wr_set_channel_ops(struct nhca_channel *ch);

/**
 * nhca_fifo_init - map the receive FIFO of a channel
 * @fifo:    the FIFO; the caller must call nhca_fifo_fini(), also after an error
 * @context: the device
 * @info:    description of the ring by the kernel
 * Return: 0 or an errno.
 */
int nhca_fifo_init(struct nhca_fifo *fifo, struct ibv_context *context,
		   const struct nhca_ring_info *info);

/**
 * nhca_fifo_fini - unmap the receive FIFO of a channel
 * @fifo: the FIFO
 */
void nhca_fifo_fini(struct nhca_fifo *fifo);

#endif /* NHCA_PROVIDER_POST_H */
