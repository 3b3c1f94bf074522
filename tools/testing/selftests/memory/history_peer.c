// SPDX-License-Identifier: GPL-2.0
/* history.h describes these functions. */
#define _GNU_SOURCE
#include "history.h"

void pattern(uint8_t *at, uint64_t len, uint64_t seed)
{
	uint64_t i, value = mix(seed);

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(at + i, &value, 8);
		value += 0x9e3779b97f4a7c15ULL;
	}
	memcpy(at + i, &value, len - i);
}

uint64_t hash(const uint8_t *at, uint64_t len)
{
	uint64_t i, value, sum = len;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&value, at + i, 8);
		sum = (sum ^ value) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 29;
	}
	value = 0;
	memcpy(&value, at + i, len - i);
	return (sum ^ value) * 0xbf58476d1ce4e5b9ULL;
}

static enum ibv_wc_status obey(struct ibv_qp *mate, struct ibv_cq *done, const struct command *c,
			       uint8_t *buf, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)buf, c->len, lkey };
	struct ibv_send_wr wr = { .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { c->addr, c->key } }, *bad;

	switch (c->kind) {
	case WRITE:
		pattern(buf, c->len, c->seed);
		wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	case READ:
		wr.opcode = IBV_WR_RDMA_READ;
		break;
	case ADD:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = c->addr;
		wr.wr.atomic.rkey = c->key;
		wr.wr.atomic.compare_add = c->seed;
		break;
	default:
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.num_sge = 0;
		wr.invalidate_rkey = c->key;
	}
	verb(ibv_post_send(mate, &wr, &bad));
	return wait_wc(done, "the peer's request").status;
}

static void attend(void)
{
	struct ibv_cq *done;
	struct ibv_qp *mate;
	struct ibv_mr *mr;
	struct command c;
	struct reply r;
	uint64_t value;
	struct ibv_wc wc;
	uint8_t *buf;

	open_device();
	say_hello();
	done = ibv_create_cq(context, 64, NULL, NULL, 0);
	must(done);
	mate = qp_make(IBV_QPT_RC, done, done, 8, 1);
	buf = pages(SIZE + 8);
	mr = ibv_reg_mr(pd, buf, SIZE + 8, IBV_ACCESS_LOCAL_WRITE);
	must(mr);
	tell(&mate->qp_num, sizeof(mate->qp_num));
	while (read(sock, &c, 1) == 1) {
		hear((char *)&c + 1, sizeof(c) - 1);
		r = (struct reply){};
		if (c.kind == BYE)
			break;
		if (c.kind == CONNECT) {
			qp_again(mate);
			while (ibv_poll_cq(done, 1, &wc))
				;
			qp_connect(mate, c.qpn, c.psn, c.peer_psn);
		} else {
			r.status = obey(mate, done, &c, buf, mr->lkey);
			memcpy(&value, buf, 8);
			r.hash = c.kind == ADD ? value : hash(buf, c.len);
		}
		tell(&r, sizeof(r));
	}
}

/* Fork a peer for each owner that connects.  An owner may be killed at any time: ignore SIGPIPE. */
int serve(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(peer_port)) };
	int listener = socket(AF_INET6, SOCK_STREAM, 0), one = 1;

	must(listener >= 0);
	must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	must(!bind(listener, (struct sockaddr *)&at, sizeof(at)));
	must(!listen(listener, 64));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	while ((sock = accept(listener, NULL, NULL)) >= 0) {
		setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!fork()) {
			close(listener);
			attend();
			exit(0);
		}
		close(sock);
	}
	return 1;
}
