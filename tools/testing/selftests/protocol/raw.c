// SPDX-License-Identifier: GPL-2.0
/*
 * Raw packet QPs and flow steering.  $RDMA_DEV is on netdev raw0, whose cable ends in far0, in the
 * network namespace far; raw.sh makes them.  verbs_test.h describes the printed results.
 *
 *   raw [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 *   raw hold			makes a rule for one EtherType, prints "held", and waits
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "raw_end.h"

/* ---- tests ---- */

static bool frames_leave(struct pair *p)
{
	static const size_t lengths[] = { 14, 15, 60, 61, 1000, 1513, 1514 };
	struct raw r;
	struct frame f;

	(void)p;
	if (!raw_make(&r, 0, 0))
		return false;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		f = frame_plain(far_mac, near_mac, lengths[i], i);
		if (!raw_send(&r, &f) || !far_gets(&f))
			return false;
	}
	if (!raw_sent(&r, &f, 3, false, IBV_WC_SUCCESS) || !far_gets(&f))
		return fail("three pieces: %s", strdup(reason));
	/* with the tag the frame has 1,518 bytes */
	frame_tag(&f, 0x6123);
	if (!raw_send(&r, &f) || !far_gets(&f))
		return fail("with a VLAN tag: %s", strdup(reason));
	f = frame_plain(far_mac, near_mac, 128, 99);
	return raw_sent(&r, &f, 1, true, IBV_WC_SUCCESS) && far_gets(&f) && raw_free(&r);
}

static bool frames_refused(struct pair *p)
{
	static const size_t lengths[] = { 0, 13, 1515, 1519, 4000 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct raw r;
	struct frame f;

	(void)p;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (!raw_make(&r, 0, 0))
			return false;
		f = frame_plain(far_mac, near_mac, 1514, i);
		f.len = lengths[i];
		if (!raw_sent(&r, &f, 1, false, IBV_WC_LOC_LEN_ERR))
			return false;
		VERB(ibv_query_qp(r.qp, &attr, IBV_QP_STATE, &init));
		REQUIRE(attr.qp_state == IBV_QPS_ERR, "QP state %d", attr.qp_state);
		if (!raw_free(&r))
			return false;
	}
	return far_gets_none();
}

/* Check that the host's UDP socket gets a datagram, or gets none, as @want says. */
static bool host_gets(int host, bool want)
{
	struct pollfd fd = { .fd = host, .events = POLLIN };
	char buf[2048];
	bool got = poll(&fd, 1, want ? 5000 : NEVER_MS) > 0;

	REQUIRE(got == want, "the host %s", want ? "gets nothing" : "gets it as well");
	if (got)
		recv(host, buf, sizeof(buf), 0);
	return true;
}

static int host_socket(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -1 : fd;
}

static bool host_or_rule(struct pair *p)
{
	struct frame f, other;
	struct ibv_flow *flow;
	struct raw r;
	int host = host_socket(PORT_HOST);

	(void)p;
	REQUIRE(host >= 0, "a UDP socket: %m");
	if (!raw_make(&r, 8, 0))
		return false;
	f = frame_udp4(&(struct fields){ .dmac = near_mac, .smac = far_mac, .dport = PORT_HOST });
	other = frame_udp4(&(struct fields){ .dmac = near_mac, .smac = far_mac, .dport = PORT_HOST + 1 });
	if (!far_send(&f) || !host_gets(host, true) || !raw_gets_none(&r))
		return fail("no rule: %s", strdup(reason));
	FLOW(flow, &r, rule_udp(PORT_HOST + 1));
	if (!far_send(&f) || !host_gets(host, true) || !raw_gets_none(&r))
		return fail("a rule for another port: %s", strdup(reason));
	if (!far_send(&other) || !raw_gets(&r, &other))
		return false;
	VERB(ibv_destroy_flow(flow));
	FLOW(flow, &r, rule_udp(PORT_HOST));
	for (int i = 0; i < 100; i++)
		if (!far_send(&f) || !raw_gets(&r, &f))
			return fail("with its rule: %s", strdup(reason));
	if (!host_gets(host, false))
		return false;
	VERB(ibv_destroy_flow(flow));
	if (!far_send(&f) || !host_gets(host, true) || !raw_gets_none(&r))
		return fail("after the rule was destroyed: %s", strdup(reason));
	close(host);
	return raw_free(&r);
}

/* A rule for a field matches a frame with the right value, and no frame with another value. */
static bool each_field(struct pair *p)
{
	struct rule rules[FIELDS];
	struct ibv_flow *flow;
	struct frame f;
	struct raw r;

	(void)p;
	if (!raw_make(&r, SLOTS, 0))
		return false;
	for (int i = 0; i < FIELDS; i++) {
		uint8_t spec[128];
		size_t size = field_spec(i, spec);

		rules[i] = rule_none(0, 0);
		rule_add(&rules[i], spec, size);
		FLOW(flow, &r, rules[i]);
		for (int other = 0; other < 2; other++) {
			f = field_frame(i, other, near_mac, far_mac);
			if (!far_send(&f))
				return false;
		}
		f = field_frame(i, false, near_mac, far_mac);
		if (!raw_gets(&r, &f) || !raw_gets_none(&r))
			return fail("%s: %s", field_name(i), strdup(reason));
		VERB(ibv_destroy_flow(flow));
	}
	return raw_free(&r);
}

static bool priorities(struct pair *p)
{
	struct raw r[3];
	struct ibv_flow *flow[3];
	struct frame f;

	(void)p;
	for (int i = 0; i < 3; i++)
		if (!raw_make(&r[i], 8, 0))
			return false;
	f = frame_plain(near_mac, far_mac, 100, 1);
	/* flow[2] is evaluated first, flow[1] passes the frame on (DONT_TRAP), flow[0] is last */
	FLOW(flow[0], &r[0], rule_type(TYPE, 9, 0));
	FLOW(flow[1], &r[1], rule_type(TYPE, 5, IBV_FLOW_ATTR_FLAGS_DONT_TRAP));
	if (!far_send(&f) || !raw_gets(&r[0], &f) || !raw_gets(&r[1], &f))
		return fail("a rule with DONT_TRAP and one without: %s", strdup(reason));
	FLOW(flow[2], &r[2], rule_type(TYPE, 1, 0));
	if (!far_send(&f) || !raw_gets(&r[2], &f) || !raw_gets_none(&r[0]) || !raw_gets_none(&r[1]))
		return fail("a rule with the first priority: %s", strdup(reason));
	VERB(ibv_destroy_flow(flow[2]));
	VERB(ibv_destroy_flow(flow[0]));
	if (!far_send(&f) || !raw_gets(&r[1], &f))
		return false;
	VERB(ibv_destroy_flow(flow[1]));
	return raw_free(&r[0]) && raw_free(&r[1]) && raw_free(&r[2]);
}

/* A rule with DONT_TRAP passes the frame on to the host. */
static bool host_gets_it_too(struct pair *p)
{
	struct rule rule = rule_udp(PORT_HOST);
	int host = host_socket(PORT_HOST);
	struct ibv_flow *flow;
	struct frame f;
	struct raw r;

	(void)p;
	REQUIRE(host >= 0, "a UDP socket: %m");
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	if (!raw_make(&r, 8, 0))
		return false;
	FLOW(flow, &r, rule);
	f = frame_udp4(&(struct fields){ .dmac = near_mac, .smac = far_mac, .dport = PORT_HOST });
	if (!far_send(&f) || !raw_gets(&r, &f) || !host_gets(host, true))
		return false;
	close(host);
	VERB(ibv_destroy_flow(flow));
	return raw_free(&r);
}

static bool tags_stay(struct pair *p)
{
	struct ibv_flow *flow;
	struct frame f;
	struct raw r;

	(void)p;
	if (!raw_make(&r, 8, 0))
		return false;
	FLOW(flow, &r, rule_type(TYPE, 0, 0));
	f = frame_plain(near_mac, far_mac, 200, 3);
	frame_tag(&f, 0x4321);
	if (!far_send(&f) || !raw_gets(&r, &f))
		return false;
	VERB(ibv_destroy_flow(flow));
	return raw_free(&r);
}

/*
 * A UDP GSO batch, which the host's stack handles as one skb, reaches the QP as single frames, as
 * on the wire, with correct checksums.
 */
static bool batches_apart(struct pair *p)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT_HOST) };
	static uint8_t data[20 * 1000 - 300];
	struct ibv_flow *flow;
	int segment = 1000, fd;
	size_t want, got = 0;
	struct completion c;
	struct raw r;

	(void)p;
	if (!raw_make(&r, SLOTS, 0))
		return false;
	FLOW(flow, &r, rule_udp(PORT_HOST));
	inet_pton(AF_INET, NEAR_IP, &to.sin_addr);
	fd = far_socket(AF_INET, SOCK_DGRAM, 0);
	REQUIRE(fd >= 0 && !setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)),
		"a UDP socket with segments: %m");
	fill(data, sizeof(data), 5);
	REQUIRE(sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)) ==
		sizeof(data), "sendto: %m");
	while (got < sizeof(data)) {
		const uint8_t *bytes;

		if (!wait_any(r.cq, &c))
			return fail("after %zu bytes: %s", got, strdup(reason));
		want = sizeof(data) - got < 1000 ? sizeof(data) - got : 1000;
		bytes = r.buf + c.wr_id * SLOT;
		REQUIRE(c.status == IBV_WC_SUCCESS && c.byte_len == UDP4_HEADERS + want,
			"%s, %u bytes", ibv_wc_status_str(c.status), c.byte_len);
		REQUIRE(udp4_sums_hold(bytes, c.byte_len), "at byte %zu: a wrong checksum", got);
		REQUIRE(!memcmp(bytes + UDP4_HEADERS, data + got, want), "at byte %zu: wrong bytes", got);
		got += want;
	}
	close(fd);
	VERB(ibv_destroy_flow(flow));
	return raw_gets_none(&r) && raw_free(&r);
}

static bool looped(struct pair *p)
{
	static const uint8_t group[ETH_ALEN] = { 1, 0, 0x5e, 1, 2, 3 };
	struct ibv_flow *flow;
	struct raw a, b;
	struct frame f;

	(void)p;
	if (!raw_make(&a, 8, 0) || !raw_make(&b, 8, 0))
		return false;
	f = frame_plain(near_mac, near_mac, 300, 4);
	FLOW(flow, &b, rule_type(TYPE, 0, 0));
	if (!raw_send(&a, &f) || !raw_gets(&b, &f) || !far_gets_none() || !raw_gets_none(&a))
		return fail("to one: %s", strdup(reason));
	f = frame_plain(group, near_mac, 300, 5);
	if (!raw_send(&a, &f) || !raw_gets(&b, &f) || !far_gets(&f))
		return fail("to a group: %s", strdup(reason));
	f = frame_plain(group, near_mac, 200, 6);
	frame_tag(&f, 5);
	if (!raw_send(&a, &f) || !raw_gets(&b, &f) || !far_gets(&f))
		return fail("with a tag: %s", strdup(reason));
	VERB(ibv_destroy_flow(flow));
	f = frame_plain(far_mac, near_mac, 300, 7);
	if (!raw_send(&a, &f) || !far_gets(&f) || !raw_gets_none(&b))
		return fail("without the rule: %s", strdup(reason));
	return raw_free(&a) && raw_free(&b);
}

static bool no_room(struct pair *p)
{
	long before = counter("out_of_buffer"), lengths = counter("rx_bad_length");
	struct ibv_flow *flow;
	struct frame f, small;
	struct raw r;

	(void)p;
	REQUIRE(before >= 0 && lengths >= 0, "no such counters");
	if (!raw_make(&r, 0, 0))
		return false;
	r.lasts = true;
	FLOW(flow, &r, rule_type(TYPE, 0, 0));
	f = frame_plain(near_mac, far_mac, 1000, 1);
	small = frame_plain(near_mac, far_mac, 100, 2);
	if (!far_send(&f) || !raw_gets_none(&r))
		return false;
	REQUIRE(counter("out_of_buffer") == before + 1, "%ld frames without a receive were counted",
		counter("out_of_buffer") - before);
	/*
	 * a frame that is too long for the posted receive is dropped, and the receive stays for the
	 * next frame
	 */
	if (!raw_post(&r, 999) || !far_send(&f) || !raw_gets_none(&r))
		return false;
	REQUIRE(counter("rx_bad_length") == lengths + 1, "%ld overlong frames were counted",
		counter("rx_bad_length") - lengths);
	if (!far_send(&small) || !raw_gets(&r, &small))
		return false;
	if (!raw_post(&r, 1000) || !far_send(&f) || !raw_gets(&r, &f))
		return false;
	VERB(ibv_destroy_flow(flow));
	return raw_free(&r);
}

static bool on_demand(struct pair *p)
{
	struct ibv_flow *flow;
	struct frame f[8];
	struct raw r;

	(void)p;
	if (!raw_make(&r, 8, IBV_ACCESS_ON_DEMAND))
		return false;
	FLOW(flow, &r, rule_type(TYPE, 0, 0));
	/* each receive has its own page, and a frame is the first access of the device to it */
	for (int i = 0; i < 8; i++) {
		f[i] = frame_plain(near_mac, far_mac, 700 + i, i);
		if (!far_send(&f[i]))
			return false;
	}
	for (int i = 0; i < 8; i++)
		if (!raw_gets(&r, &f[i]))
			return fail("frame %d: %s", i, strdup(reason));
	VERB(ibv_destroy_flow(flow));
	return raw_free(&r);
}

/* ---- work queues ---- */

enum { QUEUES = 4, PER_QUEUE = 32 };

static bool queue_state(struct ibv_wq *wq, enum ibv_wq_state state, int want)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };
	int ret = ibv_modify_wq(wq, &attr);

	REQUIRE(ret == want, "to state %d: %s", state, strerror(ret));
	return true;
}

static bool queue_post(struct raw *r, struct ibv_wq *wq, uint32_t id)
{
	struct ibv_sge sge = { (uintptr_t)r->buf, SLOT, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	VERB(ibv_post_wq_recv(wq, &wr, &bad));
	return true;
}

static struct ibv_qp *spread_qp(struct ibv_rwq_ind_table *table, uint8_t *key, uint8_t key_len,
				uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, key_len, key, fields },
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

/*
 * All frames of one connection go to one queue, and those of many connections to all queues.  In
 * ERR a queue flushes its receives, in RESET it discards them.
 */
static bool spread(struct pair *p)
{
	static const uint64_t fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
				       IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 2 * PER_QUEUE, .max_sge = 1, .pd = dev.pd,
	};
	struct ibv_wq *wqs[QUEUES];
	struct ibv_rwq_ind_table_init_attr table_init = { .log_ind_tbl_size = 2, .ind_tbl = wqs };
	struct ibv_rwq_ind_table *table;
	struct rule rule;
	uint32_t got[QUEUES] = {}, flushed = 0, filled_queues = 0;
	struct ibv_flow *flow;
	struct completion c;
	uint8_t key[40];
	struct ibv_qp *qp;
	struct frame f;
	struct raw r;

	(void)p;
	fill(key, sizeof(key), 3);
	if (!raw_make(&r, 0, 0))
		return false;
	init.cq = ibv_cq_ex_to_cq(r.cq);
	for (int q = 0; q < QUEUES; q++) {
		wqs[q] = ibv_create_wq(dev.ctx, &init);
		REQUIRE(wqs[q], "ibv_create_wq: %m");
		if (!queue_state(wqs[q], IBV_WQS_ERR, EINVAL) ||
		    !queue_state(wqs[q], IBV_WQS_RDY, 0))
			return false;
		for (int i = 0; i < PER_QUEUE; i++)
			if (!queue_post(&r, wqs[q], q))
				return false;
	}
	table = ibv_create_rwq_ind_table(dev.ctx, &table_init);
	REQUIRE(table, "ibv_create_rwq_ind_table: %m");
	REQUIRE(!spread_qp(table, key, 39, fields) && errno == EINVAL, "a key of 39 bytes: %m");
	REQUIRE(!spread_qp(table, key, 40, 1ULL << 40) && errno == EOPNOTSUPP, "a field: %m");
	qp = spread_qp(table, key, 40, fields);
	REQUIRE(qp, "ibv_create_qp_ex: %m");
	REQUIRE(ibv_destroy_wq(wqs[0]) == EBUSY, "a work queue in a table can be destroyed");
	rule = rule_udp(PORT_HOST);
	flow = ibv_create_flow(qp, &rule.attr);
	REQUIRE(flow, "ibv_create_flow: %m");

	for (int i = 0; i < PER_QUEUE; i++) {
		f = frame_udp4(&(struct fields){ .dmac = near_mac, .smac = far_mac,
						 .dport = PORT_HOST, .sport = 4000 + i / 2 });
		if (!far_send(&f) || !wait_any(r.cq, &c))
			return fail("frame %d: %s", i, strdup(reason));
		REQUIRE(c.status == IBV_WC_SUCCESS && c.byte_len == f.len && c.wr_id < QUEUES &&
			c.qp_num == wqs[c.wr_id]->wq_num, "frame %d: %s, %u bytes, QP %u", i,
			ibv_wc_status_str(c.status), c.byte_len, c.qp_num);
		got[c.wr_id]++;
	}
	for (int q = 0; q < QUEUES; q++) {
		REQUIRE(got[q] % 2 == 0, "a connection is in two queues");
		filled_queues += got[q] > 0;
	}
	REQUIRE(filled_queues == QUEUES, "only %u of %u queues get frames", filled_queues, QUEUES);

	/* queue 0 flushes its receives, queue 1 discards them */
	if (!queue_state(wqs[0], IBV_WQS_ERR, 0) || !queue_state(wqs[1], IBV_WQS_RESET, 0))
		return false;
	while (flushed < PER_QUEUE - got[0]) {
		if (!wait_any(r.cq, &c))
			return fail("%u flushed: %s", flushed, strdup(reason));
		REQUIRE(!c.wr_id && c.status == IBV_WC_WR_FLUSH_ERR, "request %lu: %s",
			(unsigned long)c.wr_id, ibv_wc_status_str(c.status));
		flushed++;
	}
	if (!raw_gets_none(&r) || !queue_state(wqs[0], IBV_WQS_RDY, EINVAL) ||
	    !queue_state(wqs[0], IBV_WQS_RESET, 0) || !queue_state(wqs[0], IBV_WQS_RDY, 0))
		return false;
	VERB(ibv_destroy_flow(flow));
	VERB(ibv_destroy_qp(qp));
	VERB(ibv_destroy_rwq_ind_table(table));
	for (int q = 0; q < QUEUES; q++)
		VERB(ibv_destroy_wq(wqs[q]));
	return raw_free(&r);
}

/* ---- refusals ---- */

static bool flow_refused(struct ibv_qp *qp, struct rule rule, int want, const char *what)
{
	struct ibv_flow *flow;

	errno = 0;
	flow = ibv_create_flow(qp, &rule.attr);
	REQUIRE(!flow && errno == want, "%s: %s instead of %s", what, flow ? "made" : strerror(errno),
		strdup(strerror(want)));
	return true;
}

static bool refusals(struct pair *p)
{
	struct ibv_flow_spec_action_drop drop = { .type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(drop) };
	struct ibv_flow_spec_ipv6 ip6 = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(ip6) };
	struct ibv_flow_spec_tunnel vxlan = {
		.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(vxlan), .mask.tunnel_id = htonl(1),
	};
	struct rule rule = rule_type(TYPE, 0, 0), two;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct ibv_flow *flow;
	struct raw r;

	if (!make_pair(p, (struct pair_opts){ .type = IBV_QPT_UD }) || !raw_make(&r, 0, 0))
		return false;
	if (!flow_refused(p->a.qp, rule, EOPNOTSUPP, "UD"))
		return false;
	rule.attr.port = 2;
	if (!flow_refused(r.qp, rule, EINVAL, "port 2"))
		return false;
	rule = rule_none(0, 0);
	for (int type = IBV_FLOW_ATTR_ALL_DEFAULT; type <= IBV_FLOW_ATTR_SNIFFER; type++) {
		rule.attr.type = type;
		if (!flow_refused(r.qp, rule, EOPNOTSUPP, "another type"))
			return false;
	}
	if (!flow_refused(r.qp, rule_type(TYPE, 0, IBV_FLOW_ATTR_FLAGS_EGRESS), EOPNOTSUPP, "egress"))
		return false;
	rule = rule_none(0, 0);
	rule_add(&rule, &vxlan, sizeof(vxlan));
	if (!flow_refused(r.qp, rule, EOPNOTSUPP, "VXLAN"))
		return false;
	rule = rule_none(0, 0);
	rule_add(&rule, &drop, sizeof(drop));
	if (!flow_refused(r.qp, rule, EOPNOTSUPP, "drop"))
		return false;
	two = rule_type(ETH_P_IP, 0, 0);
	ip6.mask.dst_ip[15] = 0xff;
	rule_add(&two, &ip6, sizeof(ip6));
	if (!flow_refused(r.qp, two, EINVAL, "IPv6 in frames of IPv4"))
		return false;
	REQUIRE(ibv_post_send(r.qp, &wr, &bad), "a WRITE of frames can be posted");

	FLOW(flow, &r, rule_type(TYPE, 0, 0));
	REQUIRE(ibv_destroy_qp(r.qp) == EBUSY, "a QP with a rule can be destroyed");
	VERB(ibv_destroy_flow(flow));
	return raw_free(&r);
}

/* A device has at most 1,024 rules. */
static bool table_full(struct pair *p)
{
	enum { RULES = 1024 };
	static struct ibv_flow *flows[RULES];
	struct frame f;
	struct raw r;

	(void)p;
	if (!raw_make(&r, 8, 0))
		return false;
	for (int i = 0; i < RULES; i++)
		FLOW(flows[i], &r, rule_udp(20000 + i));
	if (!flow_refused(r.qp, rule_type(TYPE, 0, 0), ENOMEM, "one rule too many"))
		return false;
	f = frame_udp4(&(struct fields){ .dmac = near_mac, .smac = far_mac, .dport = 20000 + RULES - 1 });
	if (!far_send(&f) || !raw_gets(&r, &f))
		return fail("the last rule: %s", strdup(reason));
	for (int i = 0; i < RULES; i++)
		VERB(ibv_destroy_flow(flows[i]));
	return raw_free(&r);
}

/* ---- the end of a rule ---- */

static atomic_bool flooding;

static void *flood(void *arg)
{
	struct frame f = frame_plain(near_mac, far_mac, 64, 1);

	(void)arg;
	while (flooding)
		send(far, f.bytes, f.len, 0);
	return NULL;
}

/* After ibv_destroy_flow() has returned, the QP must receive no frame through the rule. */
static bool gone_is_gone(struct pair *p)
{
	struct ibv_flow *flow;
	struct completion c;
	pthread_t thread;
	bool good = true;
	struct raw r;

	(void)p;
	if (!raw_make(&r, SLOTS, 0))
		return false;
	flooding = true;
	REQUIRE(!pthread_create(&thread, NULL, flood, NULL), "no thread");
	for (int round = 0; good && round < 200; round++) {
		FLOW(flow, &r, rule_type(TYPE, 0, 0));
		good = wait_any(r.cq, &c);
		for (int i = 0; good && i < round % 7; i++)
			good = raw_post(&r, SLOT) && wait_any(r.cq, &c);
		VERB(ibv_destroy_flow(flow));
		for (good = good && raw_post(&r, SLOT); good && poll_one(r.cq, &c); )
			good = raw_post(&r, SLOT);
		usleep(1000);
		if (good && poll_one(r.cq, &c))
			good = fail("round %d: a frame without a rule", round);
	}
	flooding = false;
	pthread_join(thread, NULL);
	return good && raw_free(&r);
}

static int hold(void)
{
	struct ibv_flow *flow = NULL;
	struct rule rule = rule_type(TYPE, 0, 0);
	struct raw r;

	if (device_open() && raw_make(&r, SLOTS, 0))
		flow = ibv_create_flow(r.qp, &rule.attr);
	printf("%s\n", flow ? "held" : reason);
	fflush(stdout);
	if (!flow)
		return 1;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "frames are sent unchanged", frames_leave, false },
		{ "frames too short or too long: length error", frames_refused, false },
		{ "frames that match a rule go to its QP", host_or_rule, false },
		{ "a rule can match each field", each_field, false },
		{ "rules apply in the order of their priority", priorities, false },
		{ "a rule with DONT_TRAP passes frames on", host_gets_it_too, false },
		{ "VLAN tags are kept in the frame", tags_stay, false },
		{ "a GSO batch arrives as single frames", batches_apart, false },
		{ "between QPs of one device", looped, false },
		{ "no receive, or too small: dropped and counted", no_room, false },
		{ "receives in on-demand memory", on_demand, false },
		{ "spread over work queues", spread, false },
		{ "refusals: errno", refusals, false },
		{ "1,024 rules", table_full, false },
		{ "no frame arrives through a destroyed rule", gone_is_gone, false },
	};

	if (argc > 1 && !strcmp(argv[1], "hold"))
		return hold();
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
