/* SPDX-License-Identifier: GPL-2.0 */
/* The part of libibverbs that userspace/libnhcamsg/msg_port.c calls; sim_verbs.c implements it. */
#ifndef MSGSIM_VERBS_H
#define MSGSIM_VERBS_H

#include <stddef.h>
#include <stdint.h>

union ibv_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix;
		uint64_t interface_id;
	} global;
};

struct ibv_device;
struct ibv_cq_ex;

struct ibv_context {
	struct ibv_device *device;
};

struct ibv_pd {
	struct ibv_context *context;
};

struct ibv_comp_channel {
	struct ibv_context *context;
	int fd;
};

struct ibv_cq {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	void *cq_context;
};

enum ibv_qp_type { IBV_QPT_DRIVER = 0xff };
enum ibv_qp_state { IBV_QPS_RTS = 3, IBV_QPS_ERR = 6 };
enum ibv_port_state { IBV_PORT_DOWN = 1, IBV_PORT_ACTIVE = 4 };
enum ibv_send_flags { IBV_SEND_SIGNALED = 2, IBV_SEND_SOLICITED = 4, IBV_SEND_INLINE = 8 };
enum ibv_qp_init_attr_mask { IBV_QP_INIT_ATTR_PD = 1 };
enum ibv_access_flags {
	IBV_ACCESS_LOCAL_WRITE = 1, IBV_ACCESS_REMOTE_WRITE = 2, IBV_ACCESS_REMOTE_READ = 4,
};
enum ibv_wc_status {
	IBV_WC_SUCCESS = 0, IBV_WC_LOC_LEN_ERR = 1, IBV_WC_LOC_QP_OP_ERR = 2,
	IBV_WC_LOC_PROT_ERR = 4, IBV_WC_WR_FLUSH_ERR = 5, IBV_WC_GENERAL_ERR = 21,
};

struct ibv_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct ibv_qp_init_attr_ex {
	enum ibv_qp_type qp_type;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap;
	uint32_t comp_mask;
	struct ibv_pd *pd;
};

struct ibv_qp {
	struct ibv_context *context;
	uint32_t qp_num;
};

struct ibv_qp_ex {
	struct ibv_qp qp_base;
	uint64_t wr_id;
	unsigned int wr_flags;
};

struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class;
};

struct ibv_ah_attr {
	struct ibv_global_route grh;
	uint8_t is_global, port_num;
};

struct ibv_ah {
	struct ibv_pd *pd;
};

struct ibv_port_attr {
	enum ibv_port_state state;
};

struct ibv_data_buf {
	void *addr;
	size_t length;
};

struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	int opcode;
	uint32_t vendor_err, byte_len, invalidated_rkey, qp_num, src_qp;
};

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
int ibv_dealloc_pd(struct ibv_pd *pd);
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context);
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector);
int ibv_destroy_cq(struct ibv_cq *cq);
int ibv_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context);
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n);
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int ibv_destroy_ah(struct ibv_ah *ah);
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp);
int ibv_destroy_qp(struct ibv_qp *qp);
void ibv_wr_start(struct ibv_qp_ex *qp);
int ibv_wr_complete(struct ibv_qp_ex *qp);
void ibv_wr_abort(struct ibv_qp_ex *qp);
void ibv_wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num, const struct ibv_data_buf *bufs);

#endif /* MSGSIM_VERBS_H */
