// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the server.  Each connection has a thread, which answers requests until the client
 * disconnects.  The kernel serves READs and WRITEs of the client without the thread.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "export.h"
#include "instance.h"

/* Requests that a client may send before it receives a reply; the client of this command sends 1 */
#define REQUESTS	2
/*
 * Local ACK timeout of the server's queue pairs, 4.096 us * 2^16 = 268 ms.  The server sends only
 * replies and WRITEs of 0 bytes, which the client's device acknowledges without access to a disk.
 */
#define ACK_TIMEOUT	16
/* wr_id of the WRITE of 0 bytes that checks whether the client's host still answers */
#define KEEPALIVE	REQUESTS

/**
 * struct pool - a pool of the server, for all connections of a device
 * @verbs: the device
 * @pool:  the pool of libnhca
 * @next:  next pool of the server
 */
struct pool {
	struct ibv_context *verbs;
	struct nhcadv_direct_pool *pool;
	struct pool *next;
};

static struct server {
	const struct store_config *config;
	struct rdma_cm_id *listen;
	int stopped;		/* eventfd: can be read when the server ends */
	pthread_mutex_t lock;	/* protects the members below */
	pthread_cond_t ended;	/* a connection has ended, or has closed its export */
	unsigned int connections;
	struct pool *pools;
	struct connection *list;
	uint64_t opens;		/* number of STORE_OPENs */
} server = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
};

/**
 * struct messages - buffers of a connection
 * @request: buffer of each receive request
 * @reply:   buffer of the reply to each request
 */
struct messages {
	struct store_request request[REQUESTS];
	struct store_reply reply[REQUESTS];
};

/**
 * struct connection - a connection of a client
 * @id:      the connection
 * @peer:    address of the client, for messages
 * @pd:      protection domain
 * @channel: completion channel of @cq
 * @cq:      completions of the send queue and of the receive queue
 * @messages: buffers
 * @messages_mr: region of @messages
 * @keepalive_sent: a WRITE of 0 bytes is outstanding
 * @opened:  the export that the client has opened
 * @stop:    eventfd: can be read when another connection replaces this connection
 * @next:    next connection of the server
 * @serving: export that is open, being opened or closed; NULL: none
 * @session: session of the client; see struct store_request
 * @order:   number of the STORE_OPEN of this connection, among all STORE_OPENs of the server
 * @closing: the connection ends, and closes its export
 *
 * The lock of the server protects @next and the members after it.
 */
struct connection {
	struct rdma_cm_id *id;
	char peer[64];
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct messages *messages;
	struct ibv_mr *messages_mr;
	bool keepalive_sent;
	struct opened opened;
	int stop;
	struct connection *next;
	const struct store_export *serving;
	uint64_t session[2];
	uint64_t order;
	bool closing;
};

/* Seconds that a STORE_OPEN waits until earlier connections have closed the export */
#define CLOSE_TIME	10

static struct nhcadv_direct_pool *pool_of(struct ibv_context *verbs)
{
	struct pool *pool;

	pthread_mutex_lock(&server.lock);
	for (pool = server.pools; pool && pool->verbs != verbs;)
		pool = pool->next;
	if (!pool) {
		pool = calloc(1, sizeof(*pool));
		if (pool) {
			pool->verbs = verbs;
			pool->pool = direct_alloc_pool(verbs, server.config->pool /
						       sysconf(_SC_PAGESIZE));
		}
		if (pool && pool->pool) {
			pool->next = server.pools;
			server.pools = pool;
		} else {
			warn_errno("%s: cannot allocate a pool of %llu bytes", ibv_get_device_name(verbs->device),
				   (unsigned long long)server.config->pool);
			free(pool);
			pool = NULL;
		}
	}
	pthread_mutex_unlock(&server.lock);
	return pool ? pool->pool : NULL;
}

/* Return: the export number @index of those that the client may open, or NULL */
static const struct store_export *export_at(const struct connection *c, uint32_t index)
{
	const struct store_config *config = server.config;
	unsigned int i;

	for (i = 0; i < config->count; i++)
		if (config_allows(&config->exports[i], rdma_get_peer_addr(c->id)) && !index--)
			return &config->exports[i];
	return NULL;
}

/* Return: the export with this name, or NULL, also if the client may not open it */
static const struct store_export *export_named(const struct connection *c, const char *name)
{
	const struct store_export *export;
	uint32_t i;

	for (i = 0; (export = export_at(c, i)); i++)
		if (!strncmp(export->name, name, STORE_NAME))
			return export;
	return NULL;
}

static int answer_list(struct connection *c, uint32_t index, struct store_reply *reply)
{
	const struct store_export *export = export_at(c, index);

	if (!export)
		return ENOENT;
	export_describe(export, reply);
	return 0;
}

/* Return: true if @c must not open its export before @other has closed it. */
static bool must_wait_for(const struct connection *c, const struct connection *other)
{
	return other != c && other->serving == c->serving && other->order < c->order &&
		(other->closing || ((c->session[0] || c->session[1]) &&
				    !memcmp(other->session, c->session, sizeof(c->session))));
}

/* Makes the connections end that @c must wait for.  Return: true if there are some. */
static bool end_earlier(const struct connection *c)
{
	const struct connection *other;
	uint64_t one = 1;
	bool any = false;

	for (other = server.list; other; other = other->next) {
		if (!must_wait_for(c, other))
			continue;
		any = true;
		if (write(other->stop, &one, sizeof(one)) != sizeof(one))
			warn_errno("%s: cannot end the connection", other->peer);
	}
	return any;
}

/*
 * Claims the export for a session.  Connections of the same session, which the client has lost, end
 * before: a packet that is still in the network or in a queue must not change the export after the
 * client has repeated its request.  Connections that end must have written all bytes to the disk,
 * so that the client reads them.
 * Return: 0 or an errno.
 */
static int begin_session(struct connection *c, const struct store_export *export,
			 const uint64_t *session)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CLOSE_TIME;
	pthread_mutex_lock(&server.lock);
	c->serving = export;
	memcpy(c->session, session, sizeof(c->session));
	c->order = ++server.opens;
	while (end_earlier(c) && !error)
		error = pthread_cond_clockwait(&server.ended, &server.lock, CLOCK_MONOTONIC,
					       &until);
	if (error)
		c->serving = NULL;
	pthread_mutex_unlock(&server.lock);
	return error ? EBUSY : 0;
}

static void end_session(struct connection *c)
{
	pthread_mutex_lock(&server.lock);
	c->serving = NULL;
	pthread_cond_broadcast(&server.ended);
	pthread_mutex_unlock(&server.lock);
}

static int answer_open(struct connection *c, const struct store_request *request,
		       struct store_reply *reply)
{
	const struct store_export *export = export_named(c, request->name);
	uint16_t flags = le16toh(request->flags);
	struct nhcadv_direct_pool *pool = pool_of(c->id->verbs);
	int error;

	if (!export)
		return ENOENT;
	if (flags & ~STORE_F_WRITE)
		return EOPNOTSUPP;
	if (flags & STORE_F_WRITE && !export->write)
		return EROFS;
	if (c->opened.export)
		return EBUSY;
	if (!pool)
		return ENOMEM;
	error = begin_session(c, export, request->session);
	if (error)
		return error;
	c->opened.export = export;
	c->opened.write = flags & STORE_F_WRITE;
	error = export_open(&c->opened, c->pd, pool, reply);
	if (error)
		end_session(c);
	return error;
}

static int answer_range(struct connection *c, const struct store_request *request)
{
	uint16_t flags = le16toh(request->flags);

	if (flags & ~STORE_F_UNMAP)
		return EOPNOTSUPP;
	return export_range(&c->opened, request->op, flags & STORE_F_UNMAP,
			    le64toh(request->offset), le64toh(request->bytes));
}

static int answer_write_tail(struct connection *c, const struct store_request *request,
			     uint32_t received)
{
	uint32_t length = le32toh(request->length);

	if (received - offsetof(struct store_request, data) != length)
		return EINVAL;
	return export_write_tail(&c->opened, request->data, length);
}

/* Fills in the reply to a request of @received bytes.  Return: the errno for the client. */
static int answer(struct connection *c, const struct store_request *request, uint32_t received,
		  struct store_reply *reply)
{
	if (received < offsetof(struct store_request, data) ||
	    le32toh(request->magic) != STORE_MAGIC)
		return EINVAL;
	if (request->version != STORE_VERSION)
		return EPROTONOSUPPORT;
	reply->op = request->op;
	switch (request->op) {
	case STORE_LIST:
		return answer_list(c, le32toh(request->index), reply);
	case STORE_OPEN:
		return answer_open(c, request, reply);
	case STORE_SYNC:
		return export_sync(&c->opened);
	case STORE_READ_TAIL:
		return export_read_tail(&c->opened, reply);
	case STORE_WRITE_TAIL:
		return answer_write_tail(c, request, received);
	case STORE_DISCARD:
	case STORE_ZERO:
		return answer_range(c, request);
	}
	return EOPNOTSUPP;
}

static int post_receive(struct connection *c, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&c->messages->request[slot],
		.length = sizeof(struct store_request),
		.lkey = c->messages_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(c->id->qp, &wr, &bad);
}

static int post_reply(struct connection *c, unsigned int slot, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&c->messages->reply[slot],
		.length = bytes,
		.lkey = c->messages_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	return ibv_post_send(c->id->qp, &wr, &bad);
}

/* Posts a WRITE of 0 bytes, which changes no memory and fails if the client's host is gone. */
static int post_keepalive(struct connection *c)
{
	struct ibv_send_wr wr = {
		.wr_id = KEEPALIVE,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (c->keepalive_sent)
		return 0;
	c->keepalive_sent = true;
	return ibv_post_send(c->id->qp, &wr, &bad);
}

static int handle_request(struct connection *c, unsigned int slot, uint32_t received)
{
	struct store_reply *reply = &c->messages->reply[slot];
	uint32_t bytes = offsetof(struct store_reply, data);
	int error;

	*reply = (struct store_reply) { .magic = htole32(STORE_MAGIC), .version = STORE_VERSION };
	error = answer(c, &c->messages->request[slot], received, reply);
	if (!error)
		bytes += reply->length;
	reply->error = htole32(error);
	reply->flags = htole16(reply->flags);
	reply->rkey = htole32(reply->rkey);
	reply->addr = htole64(reply->addr);
	reply->region = htole64(reply->region);
	reply->size = htole64(reply->size);
	reply->identity = htole64(reply->identity);
	reply->instance = htole64(reply->instance);
	reply->unit = htole32(reply->unit);
	reply->length = htole32(error ? 0 : reply->length);
	return post_reply(c, slot, bytes);
}

/* Return: 0, or -1 if the connection is broken. */
static int handle_completion(struct connection *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			warn("%s: %s", c->peer, ibv_wc_status_str(wc->status));
		return -1;
	}
	if (wc->opcode & IBV_WC_RECV)
		return handle_request(c, wc->wr_id, wc->byte_len) ? -1 : 0;
	if (wc->wr_id == KEEPALIVE) {
		c->keepalive_sent = false;
		return 0;
	}
	/* the reply has arrived: its slot is free for another request */
	return post_receive(c, wc->wr_id) ? -1 : 0;
}

/* Handles all completions, and arms the CQ.  Return: 0, or -1 if the connection is broken. */
static int handle_completions(struct connection *c)
{
	struct ibv_wc wc;
	bool armed = false;
	int count;

	for (;;) {
		while ((count = ibv_poll_cq(c->cq, 1, &wc)) > 0)
			if (handle_completion(c, &wc))
				return -1;
		if (count < 0)
			return -1;
		if (armed)
			return 0;
		if (ibv_req_notify_cq(c->cq, 0))
			return -1;
		armed = true;
	}
}

/* Return: -1: the client has disconnected or the device is removed. */
static int handle_cm_event(struct connection *c)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(c->id->channel, &event))
		return -1;
	rdma_ack_cm_event(event);
	/* every event of an established connection ends it */
	return -1;
}

static void run(struct connection *c)
{
	struct pollfd fds[] = {
		{ .fd = c->id->channel->fd, .events = POLLIN },
		{ .fd = c->channel->fd, .events = POLLIN },
		{ .fd = server.stopped, .events = POLLIN },
		{ .fd = c->stop, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int count;

	while (!handle_completions(c)) {
		count = poll(fds, 4, server.config->keepalive * 1000);
		if (count < 0 && errno != EINTR)
			return;
		if (count > 0 && (fds[2].revents || fds[3].revents))
			return;
		if (!count && post_keepalive(c))
			return;
		if (count <= 0)
			continue;
		if (fds[0].revents && handle_cm_event(c))
			return;
		if (fds[1].revents) {
			if (ibv_get_cq_event(c->channel, &cq, &context))
				return;
			ibv_ack_cq_events(cq, 1);
		}
	}
}

/* Makes the objects of a connection, and accepts it.  Return: 0 or -1. */
static int set_up(struct connection *c)
{
	struct rdma_conn_param param = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.rnr_retry_count = 7,
	};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = REQUESTS + 1, .max_recv_wr = REQUESTS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	uint8_t timeout = ACK_TIMEOUT;
	unsigned int slot;

	if (!pool_of(c->id->verbs))
		return -1;
	rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			sizeof(timeout));
	c->pd = ibv_alloc_pd(c->id->verbs);
	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->pd || !c->channel)
		return -1;
	c->cq = ibv_create_cq(c->id->verbs, 2 * REQUESTS + 1, NULL, c->channel, 0);
	c->messages = calloc(1, sizeof(*c->messages));
	if (!c->cq || !c->messages)
		return -1;
	c->messages_mr = ibv_reg_mr(c->pd, c->messages, sizeof(*c->messages),
				    IBV_ACCESS_LOCAL_WRITE);
	if (!c->messages_mr)
		return -1;
	qp.send_cq = c->cq;
	qp.recv_cq = c->cq;
	if (rdma_create_qp(c->id, c->pd, &qp))
		return -1;
	for (slot = 0; slot < REQUESTS; slot++)
		if (post_receive(c, slot))
			return -1;
	return rdma_accept(c->id, &param);
}

static void tear_down(struct connection *c)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	/*
	 * First stop the client's READs and WRITEs.  rdma_destroy_id() disconnects without a wait
	 * for the client, whose host may be gone.
	 */
	if (c->id->qp)
		ibv_modify_qp(c->id->qp, &error, IBV_QP_STATE);
	pthread_mutex_lock(&server.lock);
	c->closing = true;
	pthread_mutex_unlock(&server.lock);
	export_close(&c->opened);
	end_session(c);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	if (c->messages_mr)
		ibv_dereg_mr(c->messages_mr);
	free(c->messages);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
}

/* Frees all of a connection. */
static void end_connection(struct connection *c)
{
	struct connection **at;

	tear_down(c);
	pthread_mutex_lock(&server.lock);
	for (at = &server.list; *at != c;)
		at = &(*at)->next;
	*at = c->next;
	server.connections--;
	pthread_cond_broadcast(&server.ended);
	pthread_mutex_unlock(&server.lock);
	close(c->stop);
	free(c);
}

static void *connection_thread(void *arg)
{
	struct connection *c = arg;

	getnameinfo(rdma_get_peer_addr(c->id), sizeof(struct sockaddr_in6), c->peer,
		    sizeof(c->peer), NULL, 0, NI_NUMERICHOST);
	if (!set_up(c)) {
		run(c);
		warn("%s: disconnected", c->peer);
	} else {
		warn_errno("%s: cannot accept the connection", c->peer);
		rdma_reject(c->id, NULL, 0);
	}
	end_connection(c);
	return NULL;
}

/* Return: a connection in the list of the server; NULL: there are too many, or no memory. */
static struct connection *add_connection(struct rdma_cm_id *id)
{
	struct connection *c = calloc(1, sizeof(*c));
	bool full;

	if (!c)
		return NULL;
	c->id = id;
	c->opened = (struct opened) { .fd = -1, .peer = c->peer };
	c->stop = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_lock(&server.lock);
	full = c->stop < 0 || server.connections >= server.config->connections;
	if (!full) {
		server.connections++;
		c->next = server.list;
		server.list = c;
	}
	pthread_mutex_unlock(&server.lock);
	if (!full)
		return c;
	if (c->stop >= 0)
		close(c->stop);
	free(c);
	return NULL;
}

static void begin_connection(struct rdma_cm_id *id)
{
	struct connection *c = add_connection(id);
	pthread_t thread;

	if (c && !pthread_create(&thread, NULL, connection_thread, c)) {
		pthread_detach(thread);
		return;
	}
	warn("refused a connection: there are already %u, or memory or threads are short",
	     server.connections);
	rdma_reject(id, NULL, 0);
	if (c)
		end_connection(c);
	else
		rdma_destroy_id(id);
}

/* Return: 0, or -1 with errno. */
static int listen_on(const char *address, const char *port)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info;
	int error;

	if (rdma_getaddrinfo(address, port, &hints, &info))
		return -1;
	error = rdma_create_ep(&server.listen, info, NULL, NULL) || rdma_listen(server.listen, 64);
	rdma_freeaddrinfo(info);
	return error ? -1 : 0;
}

static void listen_for_clients(const struct store_config *config)
{
	const char *address = config->address;

	/*
	 * "::" accepts connections over IPv4 as well.  It is given here, because without an address
	 * rdma_getaddrinfo() returns only the IPv4 address 0.0.0.0.
	 */
	if (address ? !listen_on(address, config->port) :
	    !listen_on("::", config->port) || !listen_on("0.0.0.0", config->port))
		return;
	stop(STORE_FAILED, "cannot listen on %s port %s: %s", address ? address : "all addresses,",
	     config->port, strerror(errno));
}

static void accept_until(int signals)
{
	struct pollfd fds[] = {
		{ .fd = server.listen->channel->fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	struct rdma_cm_id *id;

	while (poll(fds, 2, -1) > 0 || errno == EINTR) {
		if (fds[1].revents)
			return;
		if (!fds[0].revents)
			continue;
		if (!rdma_get_request(server.listen, &id))
			begin_connection(id);
		else
			warn_errno("a connection was not established");
	}
}

int serve(const struct store_config *config)
{
	uint64_t one = 1;
	struct pool *pool;
	sigset_t signals;

	if (!direct_load())
		stop(STORE_FAILED, "cannot load libnhca: the server needs an nhca device and its provider");
	server.config = config;
	server.stopped = eventfd(0, EFD_CLOEXEC);
	/* block the signals before any thread starts, so that all threads block them */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	export_claim(config);
	listen_for_clients(config);
	instance_begin(config);
	warn("%u exports on port %s", config->count, config->port);

	accept_until(signalfd(-1, &signals, SFD_CLOEXEC));

	if (write(server.stopped, &one, sizeof(one)) != sizeof(one))
		stop(STORE_FAILED, "cannot stop connections: %s", strerror(errno));
	pthread_mutex_lock(&server.lock);
	while (server.connections)
		pthread_cond_wait(&server.ended, &server.lock);
	pthread_mutex_unlock(&server.lock);
	instance_end();
	rdma_destroy_ep(server.listen);
	while ((pool = server.pools)) {
		server.pools = pool->next;
		direct_free_pool(pool->pool);
		free(pool);
	}
	return 0;
}
