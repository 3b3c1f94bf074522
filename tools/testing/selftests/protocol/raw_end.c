// SPDX-License-Identifier: GPL-2.0
/* A part of raw.c: the other end of the cable, raw packet QPs, and rules. */
#define _GNU_SOURCE
#include "raw_end.h"

/* ---- the other end of the cable ---- */

int far = -1;
uint8_t far_mac[ETH_ALEN], near_mac[ETH_ALEN];

static bool in_far(bool enter)
{
	static int home = -1, there = -1;

	if (home < 0) {
		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		there = open("/run/netns/far", O_RDONLY | O_CLOEXEC);
	}
	REQUIRE(home >= 0 && there >= 0 && !setns(enter ? there : home, CLONE_NEWNET),
		"network namespace: %m");
	return true;
}

static bool mac_of(int fd, const char *name, uint8_t *mac)
{
	struct ifreq req = {};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	REQUIRE(!ioctl(fd, SIOCGIFHWADDR, &req), "%s: %m", name);
	memcpy(mac, req.ifr_hwaddr.sa_data, ETH_ALEN);
	return true;
}

/* Return: a socket in the other namespace, or -1. */
int far_socket(int family, int type, int protocol)
{
	int fd;

	if (!in_far(true))
		return -1;
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	if (!in_far(false))
		return -1;
	return fd;
}

static bool far_open(void)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, fd;

	if (far >= 0)
		return true;
	far = far_socket(AF_PACKET, SOCK_RAW, 0);
	REQUIRE(far >= 0, "no socket at the far end: %m");
	if (!mac_of(far, "far0", far_mac) || !in_far(true))
		return false;
	addr.sll_ifindex = if_nametoindex("far0");
	if (!in_far(false))
		return false;
	REQUIRE(!setsockopt(far, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) &&
		!bind(far, (struct sockaddr *)&addr, sizeof(addr)), "far0: %m");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	REQUIRE(fd >= 0, "socket: %m");
	if (!mac_of(fd, "raw0", near_mac))
		return false;
	close(fd);
	return true;
}

bool far_send(const struct frame *f)
{
	REQUIRE(send(far, f->bytes, f->len, 0) == (ssize_t)f->len, "far0 sends: %m");
	return true;
}

/*
 * Receive the next frame of these tests at the far end, with its VLAN tag inserted.  Return: false
 * if none has arrived within @ms.
 */
static bool far_next(struct frame *f, int ms)
{
	struct pollfd fd = { .fd = far, .events = POLLIN };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ULL;
	struct tpacket_auxdata *aux;
	struct sockaddr_ll from;
	uint8_t control[256];
	struct cmsghdr *c;

	while (clock_ns(CLOCK_MONOTONIC) < end) {
		struct iovec iov = { f->bytes, sizeof(f->bytes) };
		struct msghdr msg = {
			.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov,
			.msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
		};

		if (poll(&fd, 1, 10) <= 0)
			continue;
		f->len = recvmsg(far, &msg, 0);
		/* ignore frames that the far end sends */
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			aux = (void *)CMSG_DATA(c);
			if (c->cmsg_type == PACKET_AUXDATA && (aux->tp_status & TP_STATUS_VLAN_VALID))
				frame_tag(f, aux->tp_vlan_tci);
		}
		if (frame_is_ours(f))
			return true;
	}
	return false;
}

static bool same_frame(const struct frame *got, const struct frame *want, const char *where)
{
	REQUIRE(got->len == want->len, "%s: %zu bytes instead of %zu", where, got->len, want->len);
	for (size_t i = 0; i < want->len; i++)
		REQUIRE(got->bytes[i] == want->bytes[i], "%s: byte %zu is %#x instead of %#x", where,
			i, got->bytes[i], want->bytes[i]);
	return true;
}

bool far_gets(const struct frame *want)
{
	struct frame got;

	REQUIRE(far_next(&got, 5000), "no frame arrived at far0");
	return same_frame(&got, want, "far0");
}

bool far_gets_none(void)
{
	struct frame got;

	REQUIRE(!far_next(&got, NEVER_MS), "a frame of %zu bytes arrived at far0", got.len);
	return true;
}

/* ---- raw packet QPs ---- */

static bool raw_state(struct raw *r, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	VERB(ibv_modify_qp(r->qp, &attr,
			   IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)));
	return true;
}

bool raw_post(struct raw *r, uint32_t len)
{
	uint32_t slot = r->posted++ % SLOTS;
	struct ibv_sge sge = { (uintptr_t)r->buf + slot * SLOT, len, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	VERB(ibv_post_recv(r->qp, &wr, &bad));
	return true;
}

/* Make a QP and post @receives receives; @access is added to the rights of its memory. */
bool raw_make(struct raw *r, int receives, int access)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = SLOTS, .max_send_sge = 3,
			 .max_recv_sge = 1, .max_inline_data = 128 },
	};

	*r = (struct raw){ .cq = make_cq(256, NULL, 0) };
	REQUIRE(r->cq, "ibv_create_cq_ex: %m");
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(r->cq);
	r->qp = ibv_create_qp(dev.pd, &attr);
	REQUIRE(r->qp, "ibv_create_qp: %m");
	REQUIRE(!posix_memalign((void **)&r->buf, 4096, (SLOTS + 1) * SLOT), "no memory");
	r->mr = ibv_reg_mr(dev.pd, r->buf, (SLOTS + 1) * SLOT, IBV_ACCESS_LOCAL_WRITE | access);
	REQUIRE(r->mr, "ibv_reg_mr: %m");
	if (!raw_state(r, IBV_QPS_INIT))
		return false;
	for (int i = 0; i < receives; i++)
		if (!raw_post(r, SLOT))
			return false;
	return raw_state(r, IBV_QPS_RTR) && raw_state(r, IBV_QPS_RTS) && far_open();
}

bool raw_free(struct raw *r)
{
	VERB(ibv_destroy_qp(r->qp));
	VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(r->cq)));
	VERB(ibv_dereg_mr(r->mr));
	free(r->buf);
	return true;
}

/* Send a frame from @pieces SGEs, or inline; it must complete with status @want. */
bool raw_sent(struct raw *r, const struct frame *f, int pieces, bool inl, enum ibv_wc_status want)
{
	uint8_t *from = r->buf + SLOTS * SLOT;
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {
		.wr_id = 77, .sg_list = sge, .num_sge = pieces, .opcode = IBV_WR_SEND,
		.send_flags = inl ? IBV_SEND_INLINE : 0,
	};
	struct ibv_send_wr *bad;
	struct completion c;
	size_t at = 0, len;

	memcpy(from, f->bytes, f->len);
	for (int i = 0; i < pieces; i++) {
		len = i == pieces - 1 ? f->len - at : f->len / pieces;
		sge[i] = (struct ibv_sge){ (uintptr_t)from + at, len, r->mr->lkey };
		at += len;
	}
	VERB(ibv_post_send(r->qp, &wr, &bad));
	if (!wait_any(r->cq, &c))
		return false;
	REQUIRE(c.wr_id == 77 && c.status == want, "%zu bytes: request %lu: %s instead of %s", f->len,
		(unsigned long)c.wr_id, ibv_wc_status_str(c.status), ibv_wc_status_str(want));
	return true;
}

bool raw_send(struct raw *r, const struct frame *f)
{
	return raw_sent(r, f, 1, false, IBV_WC_SUCCESS);
}

bool raw_gets(struct raw *r, const struct frame *want)
{
	struct frame got;
	struct completion c;

	if (!wait_any(r->cq, &c))
		return false;
	REQUIRE(c.status == IBV_WC_SUCCESS && c.opcode == IBV_WC_RECV, "%s, opcode %d",
		ibv_wc_status_str(c.status), c.opcode);
	REQUIRE(!c.flags && c.qp_num == r->qp->qp_num, "flags %#x of QP %u", c.flags, c.qp_num);
	got.len = c.byte_len;
	memcpy(got.bytes, r->buf + c.wr_id * SLOT, c.byte_len);
	return same_frame(&got, want, "the QP") && (r->lasts || raw_post(r, SLOT));
}

bool raw_gets_none(struct raw *r)
{
	struct completion c;

	usleep(NEVER_MS * 1000);
	REQUIRE(!poll_one(r->cq, &c), "a completion with %s, %u bytes", ibv_wc_status_str(c.status),
		c.byte_len);
	return true;
}

/* ---- rules ---- */

void rule_add(struct rule *rule, const void *spec, size_t size)
{
	memcpy((uint8_t *)(&rule->attr + 1) + rule->attr.size - sizeof(rule->attr), spec, size);
	rule->attr.size += size;
	rule->attr.num_of_specs++;
}

struct rule rule_none(uint16_t priority, uint32_t flags)
{
	return (struct rule){ .attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(struct ibv_flow_attr),
					.priority = priority, .port = 1, .flags = flags } };
}

/* Return: a rule for one EtherType. */
struct rule rule_type(uint16_t type, uint16_t priority, uint32_t flags)
{
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth),
		.val.ether_type = htons(type), .mask.ether_type = 0xffff,
	};
	struct rule rule = rule_none(priority, flags);

	rule_add(&rule, &eth, sizeof(eth));
	return rule;
}

struct rule rule_udp(uint16_t port)
{
	struct ibv_flow_spec_tcp_udp udp = {
		.type = IBV_FLOW_SPEC_UDP, .size = sizeof(udp),
		.val.dst_port = htons(port), .mask.dst_port = 0xffff,
	};
	struct rule rule = rule_none(0, 0);

	rule_add(&rule, &udp, sizeof(udp));
	return rule;
}
