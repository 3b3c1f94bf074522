// SPDX-License-Identifier: GPL-2.0
/*
 * cm_churn: opens and closes many RC connections over rdma_cm, each with its own
 * protection domain, completion queues and memory region.
 *
 *   cm_churn -s [-p PORT] -n N ADDRESS		serves N connections, then ends
 *   cm_churn [-p PORT] [-t THREADS] -n N ADDRESS	opens N, THREADS at a time
 *
 * The server rejects every fourth connection.  Over each other connection the
 * client sends a pattern, which the server checks.  The server writes another
 * pattern into the client's memory with RDMA WRITE, and then sends a SEND.  The
 * client checks the pattern.  The number of a connection determines in which of
 * the ways of enum ending it ends.  Exit status 0: all connections succeeded.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define BYTES		6000	/* several packets at any MTU; not a multiple of any MTU */
#define STUCK_SECONDS	60	/* the test fails if no connection ends in this time */

/* How a connection ends; the client chooses. */
enum ending {
	CLIENT_LEAVES,		/* the client calls rdma_disconnect() first */
	SERVER_LEAVES,		/* the server calls rdma_disconnect() first */
	CLIENT_DESTROYS,	/* the client destroys its objects without rdma_disconnect() */
	REFUSED,		/* the server rejects the connection */
	ENDINGS
};

/* Private data of the connection request */
struct wish {
	uint32_t number;
	uint32_t ending;
};

/* The client's message: its pattern, and the address for the server's pattern */
struct request {
	uint64_t addr;
	uint32_t rkey;
	uint32_t number;
	uint8_t pattern[BYTES];
};

struct end {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct memory {
		struct request request;
		uint8_t answer[BYTES];
		uint32_t done;
	} memory;
};

static const char *port = "7471";
static uint32_t wanted;
static volatile uint32_t finished;
static volatile int failures;
static uint32_t next_number;

static int complain(uint32_t number, const char *format, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "connection %" PRIu32 ": ", number);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (errno %d: %s)\n", error, strerror(error));
	return -1;
}

/* Byte @i of the pattern of a connection; each direction has its own pattern. */
static uint8_t pattern(uint32_t number, int answer, unsigned int i)
{
	uint32_t x = (number * 2 + answer) * 2654435761u + i * 40503u;

	return x ^ x >> 11 ^ x >> 23;
}

static void fill(uint8_t *to, uint32_t number, int answer)
{
	for (unsigned int i = 0; i < BYTES; i++)
		to[i] = pattern(number, answer, i);
}

static int check(const uint8_t *from, uint32_t number, int answer)
{
	for (unsigned int i = 0; i < BYTES; i++)
		if (from[i] != pattern(number, answer, i))
			return complain(number, "byte %u of the %s is %#x, not %#x", i,
					answer ? "answer" : "request", from[i],
					pattern(number, answer, i));
	return 0;
}

static int create_qp(struct end *end, uint32_t number)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
	};

	end->pd = ibv_alloc_pd(end->id->verbs);
	if (!end->pd)
		return complain(number, "ibv_alloc_pd");
	end->mr = ibv_reg_mr(end->pd, &end->memory, sizeof(end->memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!end->mr)
		return complain(number, "ibv_reg_mr");
	/* librdmacm makes a CQ and a completion channel for each direction */
	if (rdma_create_qp(end->id, end->pd, &init))
		return complain(number, "rdma_create_qp");
	return 0;
}

static void destroy(struct end *end, uint32_t number)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->mr && ibv_dereg_mr(end->mr)) {
		complain(number, "ibv_dereg_mr");
		failures++;
	}
	if (end->pd && ibv_dealloc_pd(end->pd)) {
		complain(number, "ibv_dealloc_pd");
		failures++;
	}
	if (end->id && rdma_destroy_id(end->id)) {
		complain(number, "rdma_destroy_id");
		failures++;
	}
	end->id = NULL;
	end->mr = NULL;
	end->pd = NULL;
}

static int completion(int (*get)(struct rdma_cm_id *id, struct ibv_wc *wc), struct end *end,
		      uint32_t number, const char *what)
{
	struct ibv_wc wc;

	if (get(end->id, &wc) != 1)
		return complain(number, "no completion of the %s", what);
	if (wc.status)
		return complain(number, "%s: %s", what, ibv_wc_status_str(wc.status));
	return 0;
}

/* The peer disconnects first: wait for the event, then disconnect. */
static int peer_leaves(struct end *end, uint32_t number)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(end->id->channel, &event))
		return complain(number, "rdma_get_cm_event");
	type = event->event;
	rdma_ack_cm_event(event);
	if (type != RDMA_CM_EVENT_DISCONNECTED)
		return complain(number, "%s instead of a disconnect", rdma_event_str(type));
	rdma_disconnect(end->id);
	return 0;
}

/* ---- server ---- */

static int serve_data(struct end *end, const struct wish *wish)
{
	struct request *request = &end->memory.request;
	struct memory *memory = &end->memory;

	if (completion(rdma_get_recv_comp, end, wish->number, "request"))
		return -1;
	if (request->number != wish->number)
		return complain(wish->number, "got the request of %" PRIu32, request->number);
	if (check(request->pattern, wish->number, 0))
		return -1;

	fill(memory->answer, wish->number, 1);
	memory->done = wish->number;
	if (rdma_post_write(end->id, NULL, memory->answer, sizeof(memory->answer), end->mr, 0,
			    request->addr, request->rkey) ||
	    rdma_post_send(end->id, NULL, &memory->done, sizeof(memory->done), end->mr,
			   IBV_SEND_SIGNALED))
		return complain(wish->number, "post");
	/* a client that destroys its objects may not have acknowledged the SEND */
	if (wish->ending == CLIENT_DESTROYS)
		return 0;
	return completion(rdma_get_send_comp, end, wish->number, "answer");
}

static int serve(struct end *end)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct memory *memory = &end->memory;
	struct wish wish;

	if (end->id->event->param.conn.private_data_len < sizeof(wish))
		return complain(0, "a connection request without its private data");
	memcpy(&wish, end->id->event->param.conn.private_data, sizeof(wish));

	if (wish.ending == REFUSED) {
		if (rdma_reject(end->id, &wish, sizeof(wish)))
			return complain(wish.number, "rdma_reject");
		destroy(end, wish.number);
		return 0;
	}
	if (create_qp(end, wish.number))
		return -1;
	if (rdma_post_recv(end->id, NULL, &memory->request, sizeof(memory->request), end->mr))
		return complain(wish.number, "rdma_post_recv");
	if (rdma_accept(end->id, &param))
		return complain(wish.number, "rdma_accept");
	if (serve_data(end, &wish))
		return -1;

	if (wish.ending == SERVER_LEAVES) {
		if (rdma_disconnect(end->id))
			return complain(wish.number, "rdma_disconnect");
	} else if (peer_leaves(end, wish.number)) {
		return -1;
	}
	destroy(end, wish.number);
	return 0;
}

static void count(int status)
{
	if (status)
		__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
}

static void *serve_one(void *argument)
{
	struct end *end = argument;
	int status = serve(end);

	if (status)
		destroy(end, 0);
	free(end);
	count(status);
	return NULL;
}

static int server(const char *node)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *address;
	struct rdma_cm_id *listener;
	pthread_attr_t attr;
	pthread_t thread;

	if (rdma_getaddrinfo(node, port, &hints, &address))
		return complain(0, "rdma_getaddrinfo(%s)", node);
	if (rdma_create_ep(&listener, address, NULL, NULL))
		return complain(0, "rdma_create_ep");
	rdma_freeaddrinfo(address);
	if (rdma_listen(listener, 128))
		return complain(0, "rdma_listen");

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (uint32_t i = 0; i < wanted; i++) {
		struct end *end = calloc(1, sizeof(*end));

		if (!end || rdma_get_request(listener, &end->id))
			return complain(i, "rdma_get_request");
		if (pthread_create(&thread, &attr, serve_one, end))
			return complain(i, "pthread_create");
	}
	while (finished < wanted)
		usleep(10000);
	return rdma_destroy_id(listener);
}

/* ---- client ---- */

static int refused(struct end *end, uint32_t number, struct rdma_conn_param *param)
{
	if (!rdma_connect(end->id, param))
		return complain(number, "connected, but should have been refused");
	if (errno != ECONNREFUSED)
		return complain(number, "rdma_connect, which should have been refused");
	return 0;
}

static int talk(struct end *end, const struct wish *wish)
{
	struct memory *memory = &end->memory;

	memory->request.addr = (uintptr_t)memory->answer;
	memory->request.rkey = end->mr->rkey;
	memory->request.number = wish->number;
	fill(memory->request.pattern, wish->number, 0);
	if (rdma_post_send(end->id, NULL, &memory->request, sizeof(memory->request), end->mr,
			   IBV_SEND_SIGNALED))
		return complain(wish->number, "rdma_post_send");
	if (completion(rdma_get_send_comp, end, wish->number, "request") ||
	    completion(rdma_get_recv_comp, end, wish->number, "answer"))
		return -1;
	if (memory->done != wish->number)
		return complain(wish->number, "got the answer of %" PRIu32, memory->done);
	return check(memory->answer, wish->number, 1);
}

static int open_and_close(struct end *end, struct rdma_addrinfo *address, uint32_t number)
{
	struct wish wish = { .number = number, .ending = number % ENDINGS };
	struct rdma_conn_param param = {
		.private_data = &wish,
		.private_data_len = sizeof(wish),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (rdma_create_ep(&end->id, address, NULL, NULL))
		return complain(number, "rdma_create_ep");
	if (create_qp(end, number))
		return -1;
	if (rdma_post_recv(end->id, NULL, &end->memory.done, sizeof(end->memory.done), end->mr))
		return complain(number, "rdma_post_recv");
	if (wish.ending == REFUSED)
		return refused(end, number, &param);
	if (rdma_connect(end->id, &param))
		return complain(number, "rdma_connect");
	if (talk(end, &wish))
		return -1;

	if (wish.ending == CLIENT_LEAVES && rdma_disconnect(end->id))
		return complain(number, "rdma_disconnect");
	if (wish.ending == SERVER_LEAVES)
		return peer_leaves(end, number);
	return 0;
}

static void *open_many(void *argument)
{
	struct rdma_addrinfo *address = argument;
	uint32_t number;

	while ((number = __atomic_add_fetch(&next_number, 1, __ATOMIC_SEQ_CST)) <= wanted) {
		struct end *end = calloc(1, sizeof(*end));
		int status = end ? open_and_close(end, address, number) : -1;

		if (end)
			destroy(end, number);
		free(end);
		count(status);
	}
	return NULL;
}

static int client(const char *node, unsigned int threads)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *address;
	pthread_t thread[threads];

	if (rdma_getaddrinfo(node, port, &hints, &address))
		return complain(0, "rdma_getaddrinfo(%s)", node);
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, open_many, address))
			return complain(0, "pthread_create");
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	rdma_freeaddrinfo(address);
	return 0;
}

/* Fail if no connection ends for STUCK_SECONDS, so that a hang is reported. */
static void *watch(void *unused)
{
	uint32_t before = finished;
	int quiet = 0;

	(void)unused;
	for (;;) {
		sleep(1);
		quiet = finished == before ? quiet + 1 : 0;
		before = finished;
		if (quiet == STUCK_SECONDS) {
			fprintf(stderr, "stuck: %" PRIu32 " of %" PRIu32 " connections done\n",
				finished, wanted);
			exit(3);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads = 4;
	pthread_t watcher;
	int serving = 0;
	int option;
	int status;

	while ((option = getopt(argc, argv, "sp:n:t:")) != -1) {
		if (option == 's')
			serving = 1;
		else if (option == 'p')
			port = optarg;
		else if (option == 'n')
			wanted = strtoul(optarg, NULL, 0);
		else if (option == 't')
			threads = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (!wanted || !threads || optind != argc - 1) {
		fprintf(stderr, "usage: cm_churn -n N [-p PORT] (-s | [-t THREADS]) ADDRESS\n");
		return 2;
	}
	pthread_create(&watcher, NULL, watch, NULL);
	status = serving ? server(argv[optind]) : client(argv[optind], threads);
	printf("%" PRIu32 " connections, %d failed\n", finished, failures);
	return status || failures || finished != wanted;
}
