// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: a connection of a client.  It works on any RDMA device.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include "store.h"

/* wr_id of the request and of the receive; READs and WRITEs have smaller ones */
#define WR_REQUEST	(UINT64_MAX - 1)
#define WR_REPLY	UINT64_MAX

/* Local ACK timeout of the QP, 4.096 us * 2^18 = 1 s: a READ may wait for the server's disk. */
#define ACK_TIMEOUT	18

__attribute__((format(printf, 2, 3)))
static void failed(struct store_client *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->why, sizeof(c->why), format, args);
	va_end(args);
	if (!c->quiet)
		warn("%s", c->why);
}

/*
 * Splits SERVER[:PORT].  An IPv6 address with a port is written [ADDRESS]:PORT.
 * Return: a string that the caller frees; @name and @port point into it, or @port to the default.
 */
static char *split_server(const char *server, const char **name, const char **port)
{
	char *host = strdup(server), *colon;

	if (!host)
		stop(STORE_FAILED, "not enough memory");
	*port = STORE_PORT;
	*name = host;
	colon = strrchr(host, ':');
	if (host[0] == '[') {
		char *end = strchr(host, ']');

		if (!end || (end[1] && end[1] != ':'))
			stop(STORE_MISUSED, "not an address: %s", server);
		*end = 0;
		*name = host + 1;
		if (end[1])
			*port = end + 2;
	} else if (colon && colon == strchr(host, ':')) {
		*colon = 0;
		*port = colon + 1;
	}
	return host;
}

/* Return: 0, or -1 with errno */
static int post_receive(struct store_client *c)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->recv,
		.length = sizeof(*c->recv),
		.lkey = c->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = WR_REPLY, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(c->id->qp, &wr, &bad);
	return errno ? -1 : 0;
}

static int set_up(struct store_client *c, unsigned int depth)
{
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = depth + 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct {
		struct store_request send;
		struct store_reply recv;
	} *buffers = calloc(1, sizeof(*buffers));

	if (!buffers)
		return -1;
	c->send = &buffers->send;
	c->recv = &buffers->recv;
	c->pd = ibv_alloc_pd(c->id->verbs);
	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (c->pd && c->channel)
		c->cq = ibv_create_cq(c->id->verbs, depth + 2, NULL, c->channel, 0);
	if (c->cq)
		c->mr = ibv_reg_mr(c->pd, buffers, sizeof(*buffers), IBV_ACCESS_LOCAL_WRITE);
	qp.send_cq = c->cq;
	qp.recv_cq = c->cq;
	return !c->mr || rdma_create_qp(c->id, c->pd, &qp) || post_receive(c) ? -1 : 0;
}

/* rdma_connect() negotiates the number of READs that may be outstanding. */
static int query_reads(struct store_client *c, const char *server)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int error = ibv_query_qp(c->id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init);

	if (error)
		failed(c, "%s: cannot query the queue pair: %s", server, strerror(error));
	else if (!attr.max_rd_atomic)
		failed(c, "%s: the server does not accept READs", server);
	else
		c->reads = attr.max_rd_atomic;
	return c->reads ? 0 : -1;
}

int client_try_connect(struct store_client *c, const char *server, unsigned int depth)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct rdma_conn_param param = {
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	const char *name, *port;
	uint8_t timeout = ACK_TIMEOUT;
	char *host = split_server(server, &name, &port);
	int error;

	*c = (struct store_client) { .quiet = c->quiet };
	error = rdma_getaddrinfo(name, port, &hints, &info);
	free(host);
	if (error) {
		failed(c, "%s: cannot find the address: %s", server, strerror(errno));
		return -1;
	}
	error = rdma_create_ep(&c->id, info, NULL, NULL);
	rdma_freeaddrinfo(info);
	if (error) {
		failed(c, "%s: no RDMA device has a route to this address: %s", server, strerror(errno));
		c->id = NULL;
		return -1;
	}
	rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			sizeof(timeout));
	error = set_up(c, depth);
	if (error) {
		failed(c, "%s: cannot create a queue pair: %s",
		       ibv_get_device_name(c->id->verbs->device), strerror(errno));
	} else {
		error = rdma_connect(c->id, &param);
		if (error)
			failed(c, "%s: %s", server, errno == ECONNREFUSED ?
			       "the server refuses the connection" : strerror(errno));
		else
			error = query_reads(c, server);
	}
	if (error)
		client_drop(c);
	return error ? -1 : 0;
}

void client_connect(struct store_client *c, const char *server, unsigned int depth)
{
	*c = (struct store_client) { };
	if (client_try_connect(c, server, depth))
		exit(STORE_FAILED);
}

void client_drop(struct store_client *c)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (!c->id)
		return;
	if (c->id->qp) {
		ibv_modify_qp(c->id->qp, &error, IBV_QP_STATE);
		rdma_destroy_qp(c->id);
	}
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	/* last, because it may close the device */
	rdma_destroy_id(c->id);
	c->id = NULL;
	free(c->send);
}

void client_close(struct store_client *c)
{
	rdma_disconnect(c->id);
	client_drop(c);
}

/* Return: true if the connection is lost, false if the operation has failed. */
static bool is_loss(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
		status == IBV_WC_WR_FLUSH_ERR;
}

/* Return: what an unsuccessful completion means for the user of the command. */
static const char *status_text(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_REM_OP_ERR:
		return "the server's disk has failed, or its file has become shorter";
	case IBV_WC_REM_ACCESS_ERR:
		return "the server does not allow this access any more";
	case IBV_WC_RETRY_EXC_ERR:
		return "the server does not answer";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the local disk has failed";
	default:
		return ibv_wc_status_str(status);
	}
}

/*
 * Waits for an event of the CQ.  Return: 0; -1 with a message: an error, or the server has
 * disconnected, after which a completion would come only after all retries.
 */
static int wait_for_event(struct store_client *c)
{
	struct pollfd fds[] = {
		{ .fd = c->channel->fd, .events = POLLIN },
		{ .fd = c->id->channel->fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR) {
			failed(c, "cannot wait for the server: %s", strerror(errno));
			return -1;
		}
	if (!fds[0].revents) {
		failed(c, "the server has disconnected");
		return -1;
	}
	if (ibv_get_cq_event(c->channel, &cq, &context)) {
		failed(c, "cannot read an event of the completion queue: %s", strerror(errno));
		return -1;
	}
	ibv_ack_cq_events(cq, 1);
	return 0;
}

int client_poll(struct store_client *c, uint64_t *wr_id, bool wait)
{
	struct ibv_wc wc;
	bool armed = false;
	int count, error;

	c->lost = true;
	for (;;) {
		count = ibv_poll_cq(c->cq, 1, &wc);
		if (count || !wait)
			break;
		if (armed) {
			if (wait_for_event(c))
				return -1;
		} else {
			error = ibv_req_notify_cq(c->cq, 0);
			if (error) {
				failed(c, "cannot arm the completion queue: %s", strerror(error));
				return -1;
			}
		}
		armed = !armed;
	}
	if (count < 0) {
		failed(c, "cannot poll the completion queue: %s", strerror(-count));
		return -1;
	}
	if (!count)
		return 0;
	if (wc.status != IBV_WC_SUCCESS) {
		failed(c, "%s", wc.status == IBV_WC_WR_FLUSH_ERR ? "the server has disconnected" :
		       status_text(wc.status));
		c->lost = is_loss(wc.status);
		c->failed = wc.wr_id;
		return -1;
	}
	if (wc.wr_id == WR_REQUEST)
		c->sent = true;
	else if (wc.wr_id == WR_REPLY)
		c->received = wc.byte_len;
	*wr_id = wc.wr_id;
	return 1;
}

int client_send(struct store_client *c, enum store_op op)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->send,
		.length = offsetof(struct store_request, data) +
			(op == STORE_WRITE_TAIL ? le32toh(c->send->length) : 0),
		.lkey = c->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = WR_REQUEST,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int error;

	c->send->magic = htole32(STORE_MAGIC);
	c->send->version = STORE_VERSION;
	c->send->op = op;
	c->sent = false;
	c->received = 0;
	error = ibv_post_send(c->id->qp, &wr, &bad);
	if (!error)
		return 0;
	failed(c, "cannot send a request: %s", strerror(error));
	c->lost = true;
	return EPROTO;
}

bool client_replied(const struct store_client *c)
{
	return c->sent && c->received;
}

int client_reply(struct store_client *c)
{
	struct store_reply *reply = c->recv;
	uint32_t data = c->received - offsetof(struct store_reply, data);

	reply->error = le32toh(reply->error);
	reply->flags = le16toh(reply->flags);
	reply->rkey = le32toh(reply->rkey);
	reply->addr = le64toh(reply->addr);
	reply->region = le64toh(reply->region);
	reply->size = le64toh(reply->size);
	reply->identity = le64toh(reply->identity);
	reply->instance = le64toh(reply->instance);
	reply->unit = le32toh(reply->unit);
	reply->length = le32toh(reply->length);
	reply->name[STORE_NAME - 1] = 0;
	if (c->received < offsetof(struct store_reply, data) || reply->length > data ||
	    le32toh(reply->magic) != STORE_MAGIC || reply->version != STORE_VERSION ||
	    reply->error > 4095 || reply->error == EPROTO ||
	    (!reply->error && reply->op != c->send->op)) {
		failed(c, "the server has sent an invalid reply");
		c->lost = false;
		return EPROTO;
	}
	if (post_receive(c)) {
		failed(c, "cannot post a receive: %s", strerror(errno));
		c->lost = true;
		return EPROTO;
	}
	return reply->error;
}

int client_call(struct store_client *c, enum store_op op)
{
	uint64_t wr_id;
	int error = client_send(c, op);

	if (error)
		return error;
	while (!client_replied(c))
		if (client_poll(c, &wr_id, true) < 0)
			return EPROTO;
	return client_reply(c);
}

/* Return: true if the members of the reply fit together. */
static bool is_valid(const struct store_reply *open)
{
	return open->region <= open->size && open->size - open->region < STORE_TAIL &&
		!(open->region % STORE_TAIL) && open->addr + open->region >= open->addr;
}

int client_try_open(struct store_client *c, const char *name, bool write, const uint64_t *session)
{
	int error;

	memset(c->send->name, 0, sizeof(c->send->name));
	memcpy(c->send->name, name, strnlen(name, STORE_NAME - 1));
	c->send->flags = htole16(write ? STORE_F_WRITE : 0);
	c->send->session[0] = session ? session[0] : 0;
	c->send->session[1] = session ? session[1] : 0;
	error = client_call(c, STORE_OPEN);
	switch (error) {
	case 0:
		memcpy(&c->open, c->recv, offsetof(struct store_reply, data));
		if (is_valid(&c->open))
			return 0;
		failed(c, "%s: the server has sent an invalid reply", name);
		return EPROTO;
	case EPROTO:
		break;
	case ENOENT:
		failed(c, "%s: the server has no such export for this host", name);
		break;
	case EROFS:
		failed(c, "%s: the server does not allow writes", name);
		break;
	default:
		failed(c, "%s: the server cannot open it: %s", name, strerror(error));
	}
	return error;
}

void client_open(struct store_client *c, const char *name, bool write, const uint64_t *session)
{
	if (strlen(name) >= STORE_NAME)
		stop(STORE_MISUSED, "a name has at most %u characters: %s", STORE_NAME - 1, name);
	if (client_try_open(c, name, write, session))
		exit(STORE_FAILED);
}

void client_session(uint64_t *session)
{
	if (getrandom(session, 2 * sizeof(*session), 0) != 2 * sizeof(*session))
		stop(STORE_FAILED, "cannot get random numbers: %s", strerror(errno));
}

int client_check_again(struct store_client *c, const struct store_reply *open, bool unflushed)
{
	const struct store_reply *now = &c->open;

	if (now->identity != open->identity || now->size != open->size ||
	    now->region != open->region || now->unit != open->unit)
		failed(c, "the server has another file or disk now");
	else if (now->instance != open->instance && unflushed)
		failed(c, "the server may have lost bytes that it has acknowledged");
	else
		return 0;
	return -1;
}

int client_rdma(struct store_client *c, enum ibv_wr_opcode opcode, uint64_t offset, uint64_t buffer,
		uint32_t length, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = buffer, .length = length, .lkey = lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = c->open.addr + offset, .rkey = c->open.rkey },
	}, *bad;

	int error = ibv_post_send(c->id->qp, &wr, &bad);

	if (error) {
		failed(c, "cannot post a work request: %s", strerror(error));
		c->lost = true;
	}
	return error;
}
