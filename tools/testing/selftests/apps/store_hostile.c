// SPDX-License-Identifier: GPL-2.0
/*
 * A client and a server of nhca-store that send wrong messages:
 *   store_hostile client SERVER	sends requests that a server must refuse, to the
 *				exports "disk", which may be written, and "odd", which may
 *				only be read
 *   store_hostile server	answers each connection with a different wrong reply, on port
 *				4799
 *   store_hostile replies	prints how many wrong replies there are
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "ktap.h"

enum { LIST = 1, OPEN, SYNC, READ_TAIL, WRITE_TAIL, DISCARD, ZERO };

#define MAGIC	0x7473686e
#define PAGE	4096

/* The messages, as in tools/nhca-store/store.h */
struct request {
	uint32_t magic;
	uint8_t version, op;
	uint16_t flags;
	uint32_t index, length;
	uint64_t session[2], offset, bytes;
	char name[64];
	uint8_t data[PAGE];
};

struct reply {
	uint32_t magic;
	uint8_t version, op;
	uint16_t flags;
	uint32_t error, rkey;
	uint64_t addr, region, size, identity, instance;
	uint32_t unit, length;
	char name[64];
	uint8_t data[PAGE];
};

#define HEAD	offsetof(struct request, data)

struct end {
	struct rdma_cm_id *id;
	struct request request;
	struct reply reply;
	struct ibv_mr *mr;
};

static struct ibv_qp_init_attr attr = {
	.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	.sq_sig_all = 1,
};

static bool begin(struct end *e, const char *server)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct rdma_conn_param param = {
		.initiator_depth = RDMA_MAX_INIT_DEPTH, .retry_count = 7, .rnr_retry_count = 7,
	};

	/* a copy, because rdma_create_ep() stores the CQs that it creates in the attributes */
	struct ibv_qp_init_attr copy = attr;

	memset(e, 0, sizeof(*e));
	if (rdma_getaddrinfo(server, "4792", &hints, &info) ||
	    rdma_create_ep(&e->id, info, NULL, &copy))
		return false;
	e->mr = rdma_reg_msgs(e->id, e, sizeof(*e));
	return e->mr && !rdma_connect(e->id, &param);
}

/*
 * Do not call rdma_disconnect(): it would wait for an event that does not come if the peer has
 * disconnected.
 */
static void finish(struct end *e)
{
	rdma_dereg_mr(e->mr);
	rdma_destroy_ep(e->id);
}

/* Sends @bytes of the request.  Return: the error of the reply, or -1. */
static int ask(struct end *e, size_t bytes)
{
	struct ibv_wc wc;

	if (rdma_post_recv(e->id, NULL, &e->reply, sizeof(e->reply), e->mr) ||
	    rdma_post_send(e->id, NULL, &e->request, bytes, e->mr, 0) ||
	    rdma_get_send_comp(e->id, &wc) != 1 || wc.status ||
	    rdma_get_recv_comp(e->id, &wc) != 1 || wc.status)
		return -1;
	return le32toh(e->reply.error);
}

static void fill(struct end *e, uint8_t op)
{
	e->request = (struct request) { .magic = htole32(MAGIC), .version = 1, .op = op };
}

static void expect(const char *what, int got, int wanted)
{
	char why[80];

	snprintf(why, sizeof(why), "error %d instead of %d", got, wanted);
	if (got == wanted)
		ktap_ok("server: %s", what);
	else
		ktap_notok(why, "server: %s", what);
}

static int ask_open(struct end *e, const char *name, uint16_t flags, uint64_t session)
{
	fill(e, OPEN);
	memcpy(e->request.name, name, strnlen(name, sizeof(e->request.name)));
	e->request.flags = htole16(flags);
	e->request.session[1] = session;
	return ask(e, HEAD);
}

static int ask_range(struct end *e, uint8_t op, uint64_t offset, uint64_t bytes)
{
	fill(e, op);
	e->request.offset = htole64(offset);
	e->request.bytes = htole64(bytes);
	return ask(e, HEAD);
}

static void wrong_heads(const char *server)
{
	static char endless[64];
	struct end e;

	if (!begin(&e, server)) {
		ktap_notok(strerror(errno), "server: it accepts connections");
		return;
	}
	memset(endless, 'x', sizeof(endless));
	fill(&e, LIST);
	expect("a request that is too short", ask(&e, HEAD - 1), EINVAL);
	e.request.magic = 1;
	expect("a request with a wrong magic number", ask(&e, HEAD), EINVAL);
	fill(&e, LIST);
	e.request.version = 9;
	expect("a request with another version", ask(&e, HEAD), EPROTONOSUPPORT);
	fill(&e, 99);
	expect("an unknown request", ask(&e, HEAD), EOPNOTSUPP);
	fill(&e, LIST);
	e.request.index = UINT32_MAX;
	expect("an export that does not exist", ask(&e, HEAD), ENOENT);
	expect("a name without an end", ask_open(&e, endless, 0, 0), ENOENT);
	expect("an unknown flag", ask_open(&e, "disk", 0x8000, 0), EOPNOTSUPP);
	for (uint8_t op = SYNC; op <= ZERO; op++) {
		fill(&e, op);
		expect("a request before STORE_OPEN", ask(&e, HEAD), EBADF);
	}
	finish(&e);
}

static void wrong_rights(const char *server)
{
	struct end e;

	if (!begin(&e, server)) {
		ktap_notok(strerror(errno), "server: it accepts connections");
		return;
	}
	expect("writing a read-only export", ask_open(&e, "odd", 1, 0), EROFS);
	expect("reading it", ask_open(&e, "odd", 0, 0), 0);
	expect("opening another export", ask_open(&e, "disk", 1, 0), EBUSY);
	expect("STORE_DISCARD of a read-only export", ask_range(&e, DISCARD, 0, PAGE), EBADF);
	expect("STORE_ZERO of a read-only export", ask_range(&e, ZERO, 0, PAGE), EBADF);
	fill(&e, WRITE_TAIL);
	e.request.length = htole32(1);
	expect("STORE_WRITE_TAIL of a read-only export", ask(&e, HEAD + 1), EBADF);
	finish(&e);
}

static void wrong_ranges(const char *server)
{
	struct end e;
	uint64_t size;

	if (!begin(&e, server)) {
		ktap_notok(strerror(errno), "server: it accepts connections");
		return;
	}
	expect("writing an export", ask_open(&e, "disk", 1, 0), 0);
	size = le64toh(e.reply.region);
	for (uint8_t op = DISCARD; op <= ZERO; op++) {
		expect("a range without bytes", ask_range(&e, op, 0, 0), EINVAL);
		expect("a range behind the end", ask_range(&e, op, size, 512), EINVAL);
		expect("a range over the end", ask_range(&e, op, size - 512, 1024), EINVAL);
		expect("a range whose end overflows", ask_range(&e, op, -512ull, 1024), EINVAL);
		expect("a range of too many bytes", ask_range(&e, op, 512, -512ull), EINVAL);
		expect("an odd offset", ask_range(&e, op, 1, 512), EINVAL);
		expect("an odd number of bytes", ask_range(&e, op, 0, 513), EINVAL);
	}
	fill(&e, ZERO);
	e.request.flags = htole16(1);
	expect("STORE_ZERO with an unknown flag", ask(&e, HEAD), EOPNOTSUPP);
	fill(&e, WRITE_TAIL);
	e.request.length = htole32(UINT32_MAX);
	expect("a tail with a wrong length", ask(&e, HEAD), EINVAL);
	e.request.length = htole32(5);
	expect("a tail where there is none", ask(&e, HEAD + 5), EINVAL);
	finish(&e);
}

static bool is_connected(struct end *e)
{
	struct pollfd fd = { .fd = e->id->channel->fd, .events = POLLIN };

	return !poll(&fd, 1, 1000);
}

/* A connection replaces an earlier connection of the same session, but none of another session. */
static void sessions(const char *server)
{
	struct end first, other, second;

	if (!begin(&first, server) || !begin(&other, server)) {
		ktap_notok(strerror(errno), "server: it accepts connections");
		return;
	}
	expect("a session", ask_open(&first, "disk", 1, 1), 0);
	expect("another session", ask_open(&other, "disk", 1, 2), 0);
	if (is_connected(&first) && is_connected(&other))
		ktap_ok("server: two sessions write an export");
	else
		ktap_notok("one was ended", "server: two sessions write an export");
	if (!begin(&second, server)) {
		ktap_notok(strerror(errno), "server: it accepts connections");
		return;
	}
	expect("the first session again", ask_open(&second, "disk", 1, 1), 0);
	if (!is_connected(&first) && is_connected(&other) && is_connected(&second))
		ktap_ok("server: only the earlier connection of a session ends");
	else
		ktap_notok("another one ended, or none",
			   "server: only the earlier connection of a session ends");
	finish(&first);
	finish(&other);
	finish(&second);
}

/* ---- the server ---- */

enum wrong {
	SHORT, BAD_MAGIC, BAD_VERSION, OTHER_OP, BAD_ERROR, LONG_DATA, LARGE_REGION, LARGE_TAIL,
	ODD_REGION, WRAPPING, NO_KEY, WRONGS
};

/* Fill in a reply to STORE_OPEN that has the error @wrong.  Return: its length. */
static size_t spoil(struct reply *r, enum wrong wrong)
{
	*r = (struct reply) {
		.magic = htole32(MAGIC), .version = 1, .op = OPEN, .addr = 0,
		.region = htole64(1 << 20), .size = htole64(1 << 20), .unit = htole32(512),
		.rkey = htole32(0x12345678),
	};
	switch (wrong) {
	case SHORT:
		return offsetof(struct reply, name);
	case BAD_MAGIC:
		r->magic = 0;
		break;
	case BAD_VERSION:
		r->version = 77;
		break;
	case OTHER_OP:
		r->op = LIST;
		break;
	case BAD_ERROR:
		r->error = UINT32_MAX;
		break;
	case LONG_DATA:
		r->length = htole32(5000);
		break;
	case LARGE_REGION:
		r->region = htole64(-4096ull);
		break;
	case LARGE_TAIL:
		r->size = htole64((1 << 20) + PAGE);
		break;
	case ODD_REGION:
		r->region = htole64((1 << 20) - 1);
		break;
	case WRAPPING:
		r->addr = htole64(-4096ull);
		break;
	default:
		break;
	}
	return offsetof(struct reply, data);
}

static bool answer(struct rdma_cm_id *listen, enum wrong wrong)
{
	static struct end e;
	struct rdma_conn_param param = {
		.responder_resources = RDMA_MAX_RESP_RES, .rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;
	struct ibv_wc wc;
	bool good;

	if (rdma_get_request(listen, &e.id))
		return false;
	e.mr = rdma_reg_msgs(e.id, &e, sizeof(e));
	good = e.mr && !rdma_post_recv(e.id, NULL, &e.request, sizeof(e.request), e.mr) &&
		!rdma_accept(e.id, &param) && rdma_get_recv_comp(e.id, &wc) == 1 && !wc.status &&
		!rdma_post_send(e.id, NULL, &e.reply, spoil(&e.reply, wrong), e.mr, 0);
	/* wait until the client has disconnected */
	if (good && !rdma_get_cm_event(e.id->channel, &event))
		rdma_ack_cm_event(event);
	finish(&e);
	return good;
}

static int serve(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;
	struct rdma_cm_id *listen;

	if (rdma_getaddrinfo(NULL, "4799", &hints, &info) ||
	    rdma_create_ep(&listen, info, NULL, &attr) || rdma_listen(listen, 8)) {
		perror("store_hostile");
		return 1;
	}
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		if (!answer(listen, wrong)) {
			perror("store_hostile");
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "server"))
		return serve();
	if (argc == 2 && !strcmp(argv[1], "replies")) {
		printf("%u\n", WRONGS);
		return 0;
	}
	if (argc != 3 || strcmp(argv[1], "client"))
		return 2;
	wrong_heads(argv[2]);
	wrong_rights(argv[2]);
	wrong_ranges(argv[2]);
	sessions(argv[2]);
	return ktap_end();
}
