// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs interface, on the device named by $RDMA_DEV.  Both ends are in this process.
 * verbs_test.h describes the printed results.
 *
 *   verbs_api [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#include "verbs_api_shared.h"

/* ---- queries ---- */

static bool query_device(struct pair *p)
{
	struct ibv_device_attr *attr = &dev.attr.orig_attr;

	(void)p;
	REQUIRE(attr->phys_port_cnt == 1, "%d ports", attr->phys_port_cnt);
	REQUIRE(attr->max_sge >= 32, "max_sge %d", attr->max_sge);
	REQUIRE(attr->atomic_cap != IBV_ATOMIC_NONE, "no atomics");
	REQUIRE(attr->max_srq > 0 && attr->max_mcast_grp > 0, "no SRQ or no multicast");
	REQUIRE(attr->fw_ver[0], "no firmware version");
	REQUIRE(dev.port.state == IBV_PORT_ACTIVE, "port state %d", dev.port.state);
	REQUIRE(dev.port.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer %d",
		dev.port.link_layer);
	REQUIRE(dev.port.active_mtu >= IBV_MTU_256 && dev.port.active_mtu <= dev.port.max_mtu,
		"MTU %d of %d", dev.port.active_mtu, dev.port.max_mtu);
	if (!dev.nhca)
		return true;
	REQUIRE(attr->max_qp_rd_atom == 16 && attr->max_qp_init_rd_atom == 16,
		"%d and %d READs outstanding", attr->max_qp_rd_atom, attr->max_qp_init_rd_atom);
	REQUIRE(dev.port.max_msg_sz == 1u << 31, "max_msg_sz %u", dev.port.max_msg_sz);
	REQUIRE(dev.attr.hca_core_clock == 1000000, "hca_core_clock %lu kHz",
		(unsigned long)dev.attr.hca_core_clock);
	REQUIRE(dev.attr.completion_timestamp_mask == UINT64_MAX, "timestamp mask %lx",
		(unsigned long)dev.attr.completion_timestamp_mask);
	return true;
}

static bool query_clock(struct pair *p)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t before = clock_ns(CLOCK_MONOTONIC_RAW), clock;
	int ret;

	(void)p;
	ret = ibv_query_rt_values_ex(dev.ctx, &values);
	if (ret)
		return missing("ibv_query_rt_values_ex");
	clock = values.raw_clock.tv_sec * 1000000000ULL + values.raw_clock.tv_nsec;
	REQUIRE(clock >= before && clock <= clock_ns(CLOCK_MONOTONIC_RAW),
		"the raw clock is not CLOCK_MONOTONIC_RAW");
	return true;
}

static bool query_objects(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq;
	struct ibv_qp_attr attr;

	if (!make_pair(p, (struct pair_opts){ .srq_wr = 30 }))
		return false;
	VERB(ibv_query_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	REQUIRE(attr.qp_state == IBV_QPS_RTS, "state %d", attr.qp_state);
	REQUIRE(attr.dest_qp_num == p->b.qp->qp_num, "dest_qp_num %u", attr.dest_qp_num);
	REQUIRE(attr.path_mtu == dev.port.active_mtu, "path_mtu %d", attr.path_mtu);
	REQUIRE(attr.timeout == 14 && attr.retry_cnt == 7 && attr.rnr_retry == 7 &&
		attr.min_rnr_timer == 1, "timers");
	REQUIRE(attr.max_rd_atomic == 8 && attr.max_dest_rd_atomic == 8, "READ depths %d %d",
		attr.max_rd_atomic, attr.max_dest_rd_atomic);
	REQUIRE(attr.ah_attr.is_global && attr.ah_attr.grh.sgid_index == dev.gid_index &&
		!memcmp(&attr.ah_attr.grh.dgid, &dev.gid, 16), "address");
	REQUIRE(attr.cap.max_send_wr == p->a.cap.max_send_wr && attr.cap.max_send_wr >= 64 &&
		init.cap.max_recv_sge == p->a.cap.max_recv_sge, "capacities");
	VERB(ibv_query_srq(p->srq, &srq));
	REQUIRE(srq.max_wr >= 30 && srq.max_sge >= 4 && !srq.srq_limit, "SRQ %u %u %u",
		srq.max_wr, srq.max_sge, srq.srq_limit);
	return true;
}

/* A QP may have more READs outstanding than its device reports, up to 128. */
static bool read_depths(struct pair *p)
{
	struct ibv_qp_attr got, attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_init_attr init;

	if (!make_pair(p, (struct pair_opts){ .unconnected = true }) ||
	    !modify(p->a.qp, IBV_QPS_INIT, 0) || !modify(p->a.qp, IBV_QPS_RTR, p->b.qp->qp_num))
		return false;
	if (!dev.nhca)
		return missing("more READs than the device reports");
	attr.max_rd_atomic = 129;
	REQUIRE(ibv_modify_qp(p->a.qp, &attr, mask) == EINVAL, "129 READs are accepted");
	attr.max_rd_atomic = 128;
	VERB(ibv_modify_qp(p->a.qp, &attr, mask));
	VERB(ibv_query_qp(p->a.qp, &got, IBV_QP_MAX_QP_RD_ATOMIC, &init));
	REQUIRE(got.max_rd_atomic == 128, "max_rd_atomic %u", got.max_rd_atomic);
	return true;
}

/* ---- creation that must be refused ---- */

static bool refusals(struct pair *p)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_UD, .pd = dev.pd, .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.cap = { 1, 1, 1, 1, 0 },
	};

	if (!make_pair(p, (struct pair_opts){ .unconnected = true }))
		return false;
	REQUIRE(!ibv_create_cq_ex(dev.ctx, &attr) && errno == EOPNOTSUPP, "flow tags: %m");
	if (!dev.nhca)
		return true;
	attr.wc_flags = 0;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	REQUIRE(!ibv_create_cq_ex(dev.ctx, &attr) && errno == EOPNOTSUPP, "IGNORE_OVERRUN: %m");
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(p->a.cq);
	REQUIRE(!ibv_create_qp_ex(dev.ctx, &qp) && errno == EOPNOTSUPP, "READ on UD: %m");
	qp.qp_type = IBV_QPT_RAW_PACKET;
	REQUIRE(!ibv_create_qp_ex(dev.ctx, &qp) && errno == EOPNOTSUPP, "READ of raw packets: %m");
	qp.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp.qp_type = IBV_QPT_XRC_RECV + 1;
	REQUIRE(!ibv_create_qp_ex(dev.ctx, &qp) && errno == EOPNOTSUPP, "an unknown QP type: %m");
	qp.qp_type = IBV_QPT_RC;
	qp.cap.max_send_wr = dev.attr.orig_attr.max_qp_wr + 1;
	REQUIRE(!ibv_create_qp_ex(dev.ctx, &qp) && errno == EINVAL, "too many requests: %m");
	return true;
}

static bool early_posts(struct pair *p)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_recv_wr recv = {}, *bad_recv = NULL;

	if (!make_pair(p, (struct pair_opts){ .unconnected = true }))
		return false;
	if (!dev.nhca)
		return missing("a check of the state");
	REQUIRE(ibv_post_recv(p->b.qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv,
		"a QP in RESET accepts a receive");
	if (!modify(p->a.qp, IBV_QPS_INIT, 0))
		return false;
	VERB(ibv_post_recv(p->a.qp, &recv, &bad_recv));
	REQUIRE(ibv_post_send(p->a.qp, &send, &bad_send) == EINVAL && bad_send == &send,
		"a QP in INIT accepts a send");
	ibv_wr_start(p->a.qpx);
	ibv_wr_send(p->a.qpx);
	REQUIRE(ibv_wr_complete(p->a.qpx) == EINVAL, "INIT accepts a send through ibv_qp_ex");
	return true;
}

/* ---- operations, through the ibv_qp_ex interface ---- */

static bool sends(struct pair *p)
{
	struct completion c;

	fill(p->a.buf, 5000, 1);
	if (!post_recv(p, 1, 0, 8192) || !post_recv(p, 2, 8192, 8192))
		return false;
	WR(p, 11, IBV_SEND_SIGNALED, ibv_wr_send(x); SGE(p, 0, 5000));
	if (!wait_for(p->b.cq, 1, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == 5000 && c.qp_num == p->b.qp->qp_num && !(c.flags & IBV_WC_WITH_IMM),
		"receive: %u bytes, QP %u, flags %x", c.byte_len, c.qp_num, c.flags);
	if (!filled(p->b.buf, 5000, 1) || !wait_for(p->a.cq, 11, IBV_WC_SEND, &c))
		return false;
	WR(p, 12, IBV_SEND_SIGNALED, ibv_wr_send_imm(x, htonl(0x12345678)); SGE(p, 0, 77));
	if (!wait_for(p->b.cq, 2, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.flags & IBV_WC_WITH_IMM && c.imm == htonl(0x12345678) && c.byte_len == 77,
		"immediate: %x, flags %x", ntohl(c.imm), c.flags);
	return filled(p->b.buf + 8192, 77, 1) && wait_for(p->a.cq, 12, IBV_WC_SEND, &c);
}

static bool writes(struct pair *p)
{
	struct completion c;

	fill(p->a.buf, 30000, 2);
	WR(p, 1, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 100)); SGE(p, 0, 30000));
	if (!wait_for(p->a.cq, 1, IBV_WC_RDMA_WRITE, &c))
		return false;
	/* a WRITE of UC completes when it is sent; the next message shows that it has arrived */
	if (!post_recv(p, 2, 0, 16))
		return false;
	WR(p, 3, IBV_SEND_SIGNALED,
	   ibv_wr_rdma_write_imm(x, REMOTE(p, 40000), htonl(7)); SGE(p, 0, 300));
	if (!wait_for(p->b.cq, 2, IBV_WC_RECV_RDMA_WITH_IMM, &c))
		return false;
	REQUIRE(c.imm == htonl(7) && c.byte_len == 300, "immediate %u, %u bytes", ntohl(c.imm),
		c.byte_len);
	return filled(p->b.buf + 100, 30000, 2) && filled(p->b.buf + 40000, 300, 2) &&
	       wait_for(p->a.cq, 3, IBV_WC_RDMA_WRITE, &c);
}

static bool rc_sends(struct pair *p)
{
	return make_pair(p, (struct pair_opts){}) && sends(p);
}

static bool rc_writes(struct pair *p)
{
	return make_pair(p, (struct pair_opts){}) && writes(p);
}

static bool uc_all(struct pair *p)
{
	return make_pair(p, (struct pair_opts){ .type = IBV_QPT_UC }) && sends(p) && writes(p);
}

static bool rc_read(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	fill(p->b.buf, 50000, 3);
	WR(p, 1, IBV_SEND_SIGNALED, ibv_wr_rdma_read(x, REMOTE(p, 0)); SGE(p, 10, 50000));
	if (!wait_for(p->a.cq, 1, IBV_WC_RDMA_READ, &c))
		return false;
	REQUIRE(c.byte_len == 50000, "byte_len %u", c.byte_len);
	return filled(p->a.buf + 10, 50000, 3);
}

static bool rc_atomics(struct pair *p)
{
	struct completion c;
	uint64_t *there, *here;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	there = (uint64_t *)(p->b.buf + 64);
	here = (uint64_t *)p->a.buf;
	*there = 0x1122334455667788;
	WR(p, 1, IBV_SEND_SIGNALED,
	   ibv_wr_atomic_cmp_swp(x, REMOTE(p, 64), 0x1122334455667788, 5); SGE(p, 0, 8));
	if (!wait_for(p->a.cq, 1, IBV_WC_COMP_SWAP, &c))
		return false;
	REQUIRE(here[0] == 0x1122334455667788 && *there == 5, "swap: %lx, %lx",
		(unsigned long)here[0], (unsigned long)*there);
	WR(p, 2, IBV_SEND_SIGNALED,
	   ibv_wr_atomic_cmp_swp(x, REMOTE(p, 64), 6, 9); SGE(p, 0, 8));
	WR(p, 3, IBV_SEND_SIGNALED,
	   ibv_wr_atomic_fetch_add(x, REMOTE(p, 64), UINT64_MAX); SGE(p, 8, 8));
	if (!wait_for(p->a.cq, 2, IBV_WC_COMP_SWAP, &c) ||
	    !wait_for(p->a.cq, 3, IBV_WC_FETCH_ADD, &c))
		return false;
	REQUIRE(here[0] == 5 && here[1] == 5 && *there == 4, "no swap, then add: %lx, %lx, %lx",
		(unsigned long)here[0], (unsigned long)here[1], (unsigned long)*there);
	return true;
}

static bool batch_and_abort(struct pair *p)
{
	struct ibv_qp_ex *x;
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	x = p->a.qpx;
	for (int i = 0; i < 40; i++)
		if (!post_recv(p, 100 + i, 1000 * i, 1000))
			return false;
	ibv_wr_start(x);
	for (int i = 0; i < 5; i++) {
		x->wr_id = 999;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(x);
		SGE(p, 0, 1);
	}
	ibv_wr_abort(x);
	fill(p->a.buf, 1000, 4);
	ibv_wr_start(x);
	for (int i = 0; i < 32; i++) {
		x->wr_id = i;
		x->wr_flags = i == 31 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_send(x);
		SGE(p, 0, 100 + i);
	}
	VERB(ibv_wr_complete(x));
	for (int i = 0; i < 32; i++) {
		if (!wait_for(p->b.cq, 100 + i, IBV_WC_RECV, &c) ||
		    !filled(p->b.buf + 1000 * i, 100 + i, 4))
			return false;
		REQUIRE(c.byte_len == 100u + i, "message %d: %u bytes", i, c.byte_len);
	}
	if (!wait_for(p->a.cq, 31, IBV_WC_SEND, &c))
		return false;
	REQUIRE(!poll_one(p->a.cq, &c) && !poll_one(p->b.cq, &c), "an aborted batch was sent");
	return true;
}

/* ---- inline data, no bytes, many SGEs, large messages ---- */

static bool inline_data(struct pair *p)
{
	uint8_t text[512], half[2][100];
	struct ibv_data_buf bufs[2] = { { half[0], 100 }, { half[1], 100 } };
	struct ibv_send_wr read = { .opcode = IBV_WR_RDMA_READ, .num_sge = 1,
				    .send_flags = IBV_SEND_INLINE };
	struct ibv_qp_ex *q;
	struct ibv_sge sge;
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .inline_data = 256 }))
		return false;
	q = p->a.qpx;
	REQUIRE(p->a.cap.max_inline_data >= 256, "max_inline_data %u", p->a.cap.max_inline_data);
	for (int i = 0; i < 3; i++)
		if (!post_recv(p, i, 1024 * i, 1024))
			return false;
	fill(text, 256, 5);
	WR(p, 10, IBV_SEND_SIGNALED, ibv_wr_send(x); ibv_wr_set_inline_data(x, text, 256));
	memset(text, 0, sizeof(text));
	memset(half[0], 'a', 100);
	memset(half[1], 'b', 100);
	WR(p, 11, IBV_SEND_SIGNALED, ibv_wr_send(x); ibv_wr_set_inline_data_list(x, 2, bufs));
	memset(half, 0, sizeof(half));
	if (!wait_for(p->b.cq, 0, IBV_WC_RECV, &c) || !filled(p->b.buf, 256, 5) ||
	    !wait_for(p->b.cq, 1, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == 200 && p->b.buf[1024 + 99] == 'a' && p->b.buf[1024 + 100] == 'b',
		"list of buffers");
	if (!wait_for(p->a.cq, 10, IBV_WC_SEND, &c) || !wait_for(p->a.cq, 11, IBV_WC_SEND, &c))
		return false;
	/* a READ ignores IBV_SEND_INLINE, even with more bytes than max_inline_data */
	if (dev.nhca) {
		fill(p->b.buf, 4000, 6);
		sge = sge_of(&p->a, 0, 4000);
		read.sg_list = &sge;
		read.wr.rdma.remote_addr = (uintptr_t)p->b.buf;
		read.wr.rdma.rkey = p->b.mr->rkey;
		if (!request_ends(p, &read, IBV_WC_SUCCESS, "an inline READ") ||
		    !filled(p->a.buf, 4000, 6))
			return false;
	}
	/* an invalid request makes the whole batch fail */
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, text, 1);
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, p->a.buf, p->a.cap.max_inline_data + 1);
	REQUIRE(ibv_wr_complete(q), "more than max_inline_data is accepted");
	usleep(100000);
	REQUIRE(!poll_one(p->a.cq, &c) && !poll_one(p->b.cq, &c), "part of a bad batch was sent");
	return true;
}

static bool zero_length(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int i = 0; i < 2; i++)
		if (!post_recv(p, i, 0, 16))
			return false;
	WR(p, 10, IBV_SEND_SIGNALED, ibv_wr_send(x));
	WR(p, 11, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 0)));
	WR(p, 12, IBV_SEND_SIGNALED, ibv_wr_rdma_write_imm(x, REMOTE(p, 0), 0));
	WR(p, 13, IBV_SEND_SIGNALED, ibv_wr_rdma_read(x, REMOTE(p, 0)));
	if (!wait_for(p->b.cq, 0, IBV_WC_RECV, &c))
		return false;
	REQUIRE(!c.byte_len, "SEND of %u bytes", c.byte_len);
	if (!wait_for(p->b.cq, 1, IBV_WC_RECV_RDMA_WITH_IMM, &c))
		return false;
	REQUIRE(!c.byte_len, "WRITE of %u bytes", c.byte_len);
	return wait_for(p->a.cq, 10, IBV_WC_SEND, &c) &&
	       wait_for(p->a.cq, 11, IBV_WC_RDMA_WRITE, &c) &&
	       wait_for(p->a.cq, 12, IBV_WC_RDMA_WRITE, &c) &&
	       wait_for(p->a.cq, 13, IBV_WC_RDMA_READ, &c);
}

static bool many_sges(struct pair *p, bool by_qp_ex)
{
	struct ibv_sge from[32], to[32];
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = to, .num_sge = 32 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 2, .sg_list = from, .num_sge = 32,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	uint8_t all[32 * 200];
	uint32_t total = 0, at = 0;
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .sge = 32 }))
		return false;
	for (int i = 0; i < 32; i++) {
		from[i] = sge_of(&p->a, 1021 * i, 60 + 3 * i);
		to[31 - i] = sge_of(&p->b, 1033 * i, 60 + 3 * i);
		total += 60 + 3 * i;
	}
	fill(all, total, 6);
	for (int i = 0; i < 32; at += from[i++].length)
		memcpy((void *)(uintptr_t)from[i].addr, all + at, from[i].length);
	VERB(ibv_post_recv(p->b.qp, &recv, &bad_recv));
	if (by_qp_ex)
		WR(p, 2, IBV_SEND_SIGNALED, ibv_wr_send(x); ibv_wr_set_sge_list(x, 32, from));
	else
		VERB(ibv_post_send(p->a.qp, &send, &bad_send));
	if (!wait_for(p->b.cq, 1, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == total, "%u bytes of %u", c.byte_len, total);
	at = 0;
	for (int i = 0; i < 32; at += to[i++].length)
		for (uint32_t j = 0; j < to[i].length; j++)
			REQUIRE(((uint8_t *)(uintptr_t)to[i].addr)[j] == all[at + j],
				"byte %u (%u of element %d) is wrong", at + j, j, i);
	return wait_for(p->a.cq, 2, IBV_WC_SEND, &c);
}

static bool elements_post(struct pair *p)
{
	return many_sges(p, false);
}

static bool elements_wr(struct pair *p)
{
	return many_sges(p, true);
}

static bool large(struct pair *p)
{
	const uint32_t len = 64 << 20;
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .size = len }))
		return false;
	fill(p->a.buf, len, 7);
	if (!post_recv(p, 1, 0, len))
		return false;
	WR(p, 2, IBV_SEND_SIGNALED, ibv_wr_send(x); SGE(p, 0, len));
	if (!wait_for(p->b.cq, 1, IBV_WC_RECV, &c) || !filled(p->b.buf, len, 7) ||
	    !wait_for(p->a.cq, 2, IBV_WC_SEND, &c))
		return false;
	REQUIRE(c.status == IBV_WC_SUCCESS, "SEND");
	fill(p->a.buf, len, 8);
	WR(p, 3, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 0)); SGE(p, 0, len));
	if (!wait_for(p->a.cq, 3, IBV_WC_RDMA_WRITE, &c) || !filled(p->b.buf, len, 8))
		return false;
	memset(p->a.buf, 0, len);
	WR(p, 4, IBV_SEND_SIGNALED, ibv_wr_rdma_read(x, REMOTE(p, 0)); SGE(p, 0, len));
	return wait_for(p->a.cq, 4, IBV_WC_RDMA_READ, &c) && filled(p->a.buf, len, 8);
}

/* ---- UD ---- */

static bool make_ud(struct pair *p, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = *to, .sgid_index = dev.gid_index, .hop_limit = 64 } };

	if (!make_pair(p, (struct pair_opts){ .type = IBV_QPT_UD }))
		return false;
	p->ah = ibv_create_ah(dev.pd, &attr);
	REQUIRE(p->ah, "ibv_create_ah: %m");
	return true;
}

static bool ud_send(struct pair *p, uint32_t qpn)
{
	struct completion c;

	fill(p->a.buf, 1000, 9);
	if (!post_recv(p, 1, 0, 2048))
		return false;
	WR(p, 2, IBV_SEND_SIGNALED, ibv_wr_send_imm(x, htonl(3));
	   ibv_wr_set_ud_addr(x, p->ah, qpn, QKEY); SGE(p, 0, 200));
	if (!wait_for(p->a.cq, 2, IBV_WC_SEND, &c) || !wait_for(p->b.cq, 1, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == 240 && c.flags & IBV_WC_GRH && c.flags & IBV_WC_WITH_IMM &&
		c.imm == htonl(3), "%u bytes, flags %x", c.byte_len, c.flags);
	REQUIRE(c.src_qp == p->a.qp->qp_num, "src_qp %u", c.src_qp);
	/* nhca reports the packet type in wc.sl, as mlx5 does: RoCEv2 over IPv4 or IPv6 */
	REQUIRE(!dev.nhca || c.sl == (dev.ipv4 ? 0xa : 0x9), "service level %x", c.sl);
	return filled(p->b.buf + 40, 200, 9);
}

static bool ud_unicast(struct pair *p)
{
	return make_ud(p, &dev.gid) && ud_send(p, p->b.qp->qp_num);
}

static bool ud_multicast(struct pair *p)
{
	/* group 239.9.9.9, mapped as rdma_cm does, or ff1e::9:9 */
	union ibv_gid v4 = { .raw = { [10] = 0xff, 0xff, 239, 9, 9, 9 } };
	union ibv_gid v6 = { .raw = { 0xff, 0x1e, [13] = 9, [15] = 9 } };
	union ibv_gid *group = dev.ipv4 ? &v4 : &v6;

	if (!make_ud(p, group))
		return false;
	VERB(ibv_attach_mcast(p->b.qp, group, 0));
	if (!ud_send(p, 0xffffff))
		return false;
	VERB(ibv_detach_mcast(p->b.qp, group, 0));
	return true;
}

/* ---- cases that adapters agree on (Documentation/conformance.rst) ---- */

/* Flags that are unknown, or do not apply to the operation or QP type, have no effect. */
static bool needless_flags(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	fill(p->a.buf, 64, 3);
	if (!post_recv(p, 1, 0, 64) || !post_recv(p, 2, 64, 64))
		return false;
	if (!post_send(p, 1, 0, 64, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM | 1 << 20) ||
	    !wait_for(p->b.cq, 1, IBV_WC_RECV, &c) || !wait_for(p->a.cq, 1, IBV_WC_SEND, &c))
		return false;
	WR(p, 2, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM, ibv_wr_send(x); SGE(p, 0, 64));
	return wait_for(p->b.cq, 2, IBV_WC_RECV, &c) && wait_for(p->a.cq, 2, IBV_WC_SEND, &c) &&
	       filled(p->b.buf, 64, 3) && filled(p->b.buf + 64, 64, 3);
}

/*
 * A parent domain of a parent domain refers to the PD below both, so the inner one can be
 * deallocated first.
 */
static bool nested_domains(struct pair *p)
{
	struct ibv_parent_domain_init_attr attr = { .pd = dev.pd };
	struct ibv_pd *outer, *inner;

	if (!dev.nhca)
		return missing("parent domains");
	inner = ibv_alloc_parent_domain(dev.ctx, &attr);
	REQUIRE(inner, "a parent domain: %m");
	attr.pd = inner;
	outer = ibv_alloc_parent_domain(dev.ctx, &attr);
	REQUIRE(outer, "a parent domain of it: %m");
	VERB(ibv_dealloc_pd(inner));
	VERB(ibv_dealloc_pd(outer));
	return make_pair(p, (struct pair_opts){});
}

static bool refused_srqs(struct pair *p)
{
	struct ibv_srq_attr attr = { .srq_limit = 12 };
	struct ibv_srq_init_attr_ex xrc = {
		.attr = { 4, 1, 0 }, .srq_type = IBV_SRQT_XRC, .pd = dev.pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
	};

	if (!make_pair(p, (struct pair_opts){ .srq_wr = 16 }))
		return false;
	VERB(ibv_modify_srq(p->srq, &attr, IBV_SRQ_LIMIT));
	attr = (struct ibv_srq_attr){ .max_wr = 8 };
	REQUIRE(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR) == EINVAL,
		"a size below the armed limit is accepted");
	attr = (struct ibv_srq_attr){ .max_wr = 8, .srq_limit = 4 };
	VERB(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	if (!dev.nhca)
		return true;
	REQUIRE(!ibv_create_srq_ex(dev.ctx, &xrc) && errno == EINVAL, "XRC without a CQ: %m");
	return true;
}

static const struct test tests[] = {
	{ "ibv_query_device_ex and ibv_query_port", query_device, false },
	{ "ibv_query_rt_values_ex", query_clock, false },
	{ "ibv_query_qp and ibv_query_srq", query_objects, false },
	{ "more READs outstanding than the device reports", read_depths, false },
	{ "unsupported attributes are refused", refusals, false },
	{ "posting too early is refused", early_posts, false },
	{ "RC SEND, SEND_IMM", rc_sends, false },
	{ "RC WRITE, WRITE_IMM", rc_writes, false },
	{ "RC READ", rc_read, false },
	{ "RC CMP_SWAP, FETCH_ADD", rc_atomics, false },
	{ "UC SEND, SEND_IMM, WRITE, WRITE_IMM", uc_all, false },
	{ "UD SEND_IMM", ud_unicast, false },
	{ "UD multicast", ud_multicast, true },
	{ "a batch, and an aborted batch", batch_and_abort, false },
	{ "inline data", inline_data, true },
	{ "zero length", zero_length, false },
	{ "32 SGEs through ibv_post_send", elements_post, false },
	{ "32 SGEs through ibv_wr_set_sge_list", elements_wr, true },
	{ "64 MiB messages", large, false },
	{ "timestamps", timestamps, false },
	{ "a list with a bad request", bad_in_list, false },
	{ "a full send queue", full_sq, false },
	{ "rings wrap", ring_wrap, false },
	{ "slots of unsignaled requests are freed", unsignalled, false },
	{ "four threads on one QP", threads, false },
	{ "fence", fence, false },
	{ "CQ resize with entries in it", cq_resize, false },
	{ "CQ overflow", cq_overflow, false },
	{ "completion events", cq_events, false },
	{ "an event for completions before arming", event_between, false },
	{ "no event for completions that the last event covers", event_behind, false },
	{ "an event for entries left unpolled", event_left, false },
	{ "events and CQ resize", event_resized, false },
	{ "an event for completions during arming", event_race, false },
	{ "fewer events with moderation", cq_moderation, false },
	{ "solicited events only", solicited, false },
	{ "SRQ: order and limit event", srq_limit, false },
	{ "SRQ resize with requests in it", srq_resize, false },
	{ "SQ drain", sq_drain, true },
	{ "a receive posted late (RNR)", late_receive, false },
	{ "a rate limit", rate_limit, false },
	{ "flush in the error state", flush, true },
	{ "RESET and reconnection", reset_again, false },
	{ "a wrong R_Key", wrong_rkey, false },
	{ "flags without a meaning are ignored", needless_flags, false },
	{ "a parent domain of a parent domain", nested_domains, false },
	{ "SRQs that must be refused", refused_srqs, false },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
