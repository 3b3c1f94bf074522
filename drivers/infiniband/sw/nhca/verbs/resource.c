// SPDX-License-Identifier: GPL-2.0
/*
 * `rdma resource': prints the state of objects, as a struct (-r) or field by field (-dd).
 */
#include <net/netlink.h>
#include <rdma/restrack.h>

#include "objects.h"
#include "verbs.h"
#include "../memory/memory.h"
#include "../memory/mr.h"
#include "../queue/cq.h"
#include "../queue/srq.h"
#include "../rcxt/rcxt.h"
#include "../transport/qp.h"

enum nhca_res_how {
	RES_U32,
	RES_HEX,
	RES_U64,
	RES_HEX64,
	RES_MR_KIND,
};

/**
 * struct nhca_res_field - a field of the state of an object
 * @name: name in the output
 * @how:  format of the output
 * @off:  offset in the struct, in bytes
 */
struct nhca_res_field {
	const char *name;
	enum nhca_res_how how;
	unsigned int off;
};

#define FIELD(how, type, field)	{ #field, how, offsetof(struct type, field) }

static int res_put(struct sk_buff *msg, const struct nhca_res_field *f, const void *context)
{
	/* Indexed by nhca_res_mr.kind */
	static const char * const mr_kinds[] = {
		[NHCA_MR_TCE] = "tce", [NHCA_MR_ALL] = "all", [NHCA_MR_LIST] = "list",
		[NHCA_MR_ODP] = "on-demand", [NHCA_MR_LINEAR] = "linear",
		[NHCA_MR_BACKED] = "disk",
	};
	const u32 *p = context + f->off;

	static_assert(ARRAY_SIZE(mr_kinds) == NHCA_MR_KINDS);
	switch (f->how) {
	case RES_U32:
		return rdma_nl_put_driver_u32(msg, f->name, *p);
	case RES_HEX:
		return rdma_nl_put_driver_u32_hex(msg, f->name, *p);
	case RES_U64:
		return rdma_nl_put_driver_u64(msg, f->name, *(const u64 *)p);
	case RES_HEX64:
		return rdma_nl_put_driver_u64_hex(msg, f->name, *(const u64 *)p);
	case RES_MR_KIND:
		return rdma_nl_put_driver_string(msg, f->name, mr_kinds[*p]);
	}
	return -EINVAL;
}

static int res_table(struct sk_buff *msg, const struct nhca_res_field *fields, unsigned int n,
		     const void *context)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	unsigned int i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (res_put(msg, &fields[i], context)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/*
 * ---- queue pairs and channels ----
 *
 * The core reports qpn, type, state, dest_qpn, sq_psn and rq_psn, so the table omits them.  The
 * table also omits oldest_wr_id, because programs use pointers as wr_id, and any user may read the
 * table.  The raw struct has this field, because reading the struct needs CAP_NET_ADMIN.
 */

static const struct nhca_res_field qp_fields[] = {
	FIELD(RES_U32, nhca_res_qp, path_mtu),
	FIELD(RES_U32, nhca_res_qp, udp_sport),
	FIELD(RES_HEX, nhca_res_qp, peer),
	FIELD(RES_U32, nhca_res_qp, tx_queued),
	FIELD(RES_U32, nhca_res_qp, sq_size),
	FIELD(RES_U32, nhca_res_qp, sq_posted),
	FIELD(RES_U32, nhca_res_qp, sq_outstanding),
	FIELD(RES_U32, nhca_res_qp, sq_una),
	FIELD(RES_U32, nhca_res_qp, sq_nxt),
	FIELD(RES_U32, nhca_res_qp, cwnd),
	FIELD(RES_U32, nhca_res_qp, ssthresh),
	FIELD(RES_U32, nhca_res_qp, rd_atomic),
	FIELD(RES_U32, nhca_res_qp, retries_left),
	FIELD(RES_U32, nhca_res_qp, rnr_retries_left),
	FIELD(RES_U32, nhca_res_qp, rnr_wait),
	FIELD(RES_U32, nhca_res_qp, rto_backoff),
	FIELD(RES_U32, nhca_res_qp, tlp_count),
	FIELD(RES_U32, nhca_res_qp, srtt_us),
	FIELD(RES_U32, nhca_res_qp, rttvar_us),
	FIELD(RES_HEX, nhca_res_qp, oldest_opcode),
	FIELD(RES_U32, nhca_res_qp, oldest_packets),
	FIELD(RES_U32, nhca_res_qp, oldest_sent),
	FIELD(RES_U32, nhca_res_qp, rq_posted),
	FIELD(RES_U32, nhca_res_qp, msn),
	FIELD(RES_U32, nhca_res_qp, rq_bytes),
	FIELD(RES_HEX, nhca_res_qp, nak_syndrome),
	FIELD(RES_U32, nhca_res_qp, deferred),
	FIELD(RES_U32, nhca_res_qp, responder_active),
};

static const struct nhca_res_field channel_fields[] = {
	FIELD(RES_U32, nhca_res_channel, reason),
	FIELD(RES_U32, nhca_res_channel, job),
	FIELD(RES_U32, nhca_res_channel, rcxts),
	FIELD(RES_U32, nhca_res_channel, segment),
	FIELD(RES_U32, nhca_res_channel, quantum),
	FIELD(RES_U32, nhca_res_channel, violation),
	FIELD(RES_U32, nhca_res_channel, tx_queued),
	FIELD(RES_U64, nhca_res_channel, sent),
	FIELD(RES_U64, nhca_res_channel, sent_bytes),
	FIELD(RES_U64, nhca_res_channel, received),
	FIELD(RES_U64, nhca_res_channel, received_bytes),
	FIELD(RES_U64, nhca_res_channel, dropped),
};

static void channel_state(struct nhca_qp *qp, struct nhca_res_channel *res)
{
	struct nhca_channel_info info;
	unsigned int i;

	memset(res, 0, sizeof(*res));
	res->tx_queued = nhca_channel_dump(qp->channel, &info);
	res->size = sizeof(*res);
	res->qpn = qp->qpn;
	res->type = qp->ibqp.qp_type;
	res->state = info.state;
	res->reason = info.reason;
	res->job = info.job;
	res->rcxts = info.rcxts;
	res->segment = info.segment;
	res->quantum = info.quantum;
	res->violation = info.violation;
	res->sent = info.counters[NHCA_CH_SENT_PACKETS];
	res->sent_bytes = info.counters[NHCA_CH_SENT_BYTES];
	res->received = info.counters[NHCA_CH_RECEIVED_PACKETS];
	res->received_bytes = info.counters[NHCA_CH_RECEIVED_BYTES];
	for (i = NHCA_CH_DROP_FIFO; i <= NHCA_CH_DROP_SEGMENT; i++)
		res->dropped += info.counters[i];
	res->dropped += info.counters[NHCA_CH_DROP_TARGET] + info.counters[NHCA_CH_DROP_MANAGER];
}

int nhca_channel_res_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw)
{
	struct nhca_res_channel res;

	channel_state(qp, &res);
	if (raw)
		return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(res), &res);
	return res_table(msg, channel_fields, ARRAY_SIZE(channel_fields), &res);
}

int nhca_transport_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw)
{
	struct nhca_res_qp res;

	nhca_qp_dump(qp, &res);
	if (raw)
		return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(res), &res);
	return res_table(msg, qp_fields, ARRAY_SIZE(qp_fields), &res);
}

static int qp_dump(struct sk_buff *msg, struct nhca_qp *qp, bool raw)
{
	int err;

	/* nhca_destroy_qp() may be running, and waits for this read-side section */
	rcu_read_lock();
	err = READ_ONCE(qp->ops)->dump(qp, msg, raw);
	rcu_read_unlock();
	return err;
}

int nhca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	return qp_dump(msg, to_nhca_qp(ibqp), false);
}

int nhca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	return qp_dump(msg, to_nhca_qp(ibqp), true);
}

/* ---- completion queues ---- */

static const struct nhca_res_field cq_fields[] = {
	FIELD(RES_U32, nhca_res_cq, entries),
	FIELD(RES_U32, nhca_res_cq, unpolled),
	FIELD(RES_U32, nhca_res_cq, produced),
	FIELD(RES_U32, nhca_res_cq, armed),
	FIELD(RES_U32, nhca_res_cq, overrun),
};

int nhca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct nhca_res_cq res;

	nhca_cq_dump(to_nhca_cq(ibcq), &res);
	return res_table(msg, cq_fields, ARRAY_SIZE(cq_fields), &res);
}

int nhca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct nhca_res_cq res;

	nhca_cq_dump(to_nhca_cq(ibcq), &res);
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(res), &res);
}

/* ---- shared receive queues ---- */

static const struct nhca_res_field srq_fields[] = {
	FIELD(RES_U32, nhca_res_srq, max_wr),
	FIELD(RES_U32, nhca_res_srq, posted),
	FIELD(RES_U32, nhca_res_srq, limit),
	FIELD(RES_U32, nhca_res_srq, error),
};

int nhca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct nhca_res_srq res;

	nhca_srq_dump(to_nhca_srq(ibsrq), &res);
	return res_table(msg, srq_fields, ARRAY_SIZE(srq_fields), &res);
}

int nhca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct nhca_res_srq res;

	nhca_srq_dump(to_nhca_srq(ibsrq), &res);
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(res), &res);
}

/* ---- memory regions: keys, PVO and address are in the raw struct only (CAP_NET_ADMIN) ---- */

static const struct nhca_res_field mr_fields[] = {
	FIELD(RES_MR_KIND, nhca_res_mr, kind),
	FIELD(RES_U32, nhca_res_mr, valid),
	FIELD(RES_HEX, nhca_res_mr, access),
	FIELD(RES_U32, nhca_res_mr, bound_mws),
	FIELD(RES_U32, nhca_res_mr, page_shift),
	FIELD(RES_U64, nhca_res_mr, tces),
};

int nhca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct nhca_res_mr res;

	nhca_mr_dump(ibmr, &res);
	return res_table(msg, mr_fields, ARRAY_SIZE(mr_fields), &res);
}

int nhca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct nhca_res_mr res;

	nhca_mr_dump(ibmr, &res);
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(res), &res);
}
