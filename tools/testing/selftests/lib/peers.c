// SPDX-License-Identifier: GPL-2.0
/* peers.h describes these functions. */
#include "peers.h"

const char *program = "?", *device_name, *peer_host, *peer_port = "18600";
int gid_index;
struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_device_attr device;
struct hello mine, theirs;
int sock = -1;

void die(const char *format, ...)
{
	char why[512];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	/* do not print the plan, because the program ends before its other tests */
	ktap_notok(why, "%s%s", program, peer_host ? " (client)" : "");
	exit(1);
}

bool peer_option(int letter)
{
	switch (letter) {
	case 'd':
		device_name = optarg;
		return true;
	case 'g':
		gid_index = atoi(optarg);
		return true;
	case 'p':
		peer_port = optarg;
		return true;
	}
	return false;
}

unsigned int patience_s(void)
{
	const char *slower = getenv("SLOWER");

	return 60 * (slower ? atoi(slower) : 1);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint64_t rnd_state = 1;

uint64_t rnd(void)
{
	return mix(rnd_state += 0x9e3779b97f4a7c15ULL);
}

/* ---- the socket ---- */

void sock_open(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_family = peer_host ? AF_UNSPEC : AF_INET6,
				  .ai_flags = peer_host ? 0 : AI_PASSIVE };
	uint64_t end = now_ns() + 20000000000ULL;
	int one = 1, error, listener;
	struct addrinfo *list;

	error = getaddrinfo(peer_host, peer_port, &hints, &list);
	if (error)
		die("%s: %s", peer_host, gai_strerror(error));
	if (peer_host) {
		do {
			sock = socket(list->ai_family, SOCK_STREAM, 0);
			must(sock >= 0);
			error = connect(sock, list->ai_addr, list->ai_addrlen);
			if (error) {
				close(sock);
				usleep(100000);
			}
		} while (error && now_ns() < end);
		if (error)
			die("cannot connect to %s: %s", peer_host, strerror(errno));
	} else {
		listener = socket(list->ai_family, SOCK_STREAM, 0);
		must(listener >= 0);
		must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
		must(!bind(listener, list->ai_addr, list->ai_addrlen));
		must(!listen(listener, 1));
		sock = accept(listener, NULL, NULL);
		must(sock >= 0);
		close(listener);
	}
	freeaddrinfo(list);
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void tell(const void *ours, size_t size)
{
	if (write(sock, ours, size) != (ssize_t)size)
		die("the other side is gone");
}

void hear(void *other, size_t size)
{
	size_t done = 0;
	ssize_t step;

	while (done < size) {
		step = read(sock, (char *)other + done, size - done);
		if (step <= 0)
			die("the other side is gone");
		done += step;
	}
}

void exchange(const void *ours, void *other, size_t size)
{
	/* @size must be small enough for the socket buffers of both sides */
	tell(ours, size);
	hear(other, size);
}

void meet(uint32_t where)
{
	uint32_t other;

	exchange(&where, &other, sizeof(where));
	if (other != where)
		die("at step %u, the other side at %u", where, other);
}

bool abandoned(void)
{
	char byte;

	return recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- the device ---- */

void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	int i;

	must(list);
	for (i = 0; list[i]; i++)
		if (!device_name || !strcmp(ibv_get_device_name(list[i]), device_name))
			break;
	if (!list[i])
		die("no RDMA device %s", device_name ?: "at all");
	context = ibv_open_device(list[i]);
	must(context);
	ibv_free_device_list(list);
	verb(ibv_query_port(context, 1, &port));
	verb(ibv_query_device(context, &device));
	verb(ibv_query_gid(context, 1, gid_index, &mine.gid));
	mine.mtu = port.active_mtu;
	mine.rd_atomic = device.max_qp_rd_atom < 16 ? device.max_qp_rd_atom : 16;
	pd = ibv_alloc_pd(context);
	must(pd);
	theirs = mine;
}

void say_hello(void)
{
	exchange(&mine, &theirs, sizeof(mine));
	if (theirs.seed != mine.seed)
		die("the other side was started with other options");
	if (theirs.mtu < mine.mtu)
		mine.mtu = theirs.mtu;
	if (theirs.rd_atomic < mine.rd_atomic)
		mine.rd_atomic = theirs.rd_atomic;
}

struct ibv_qp *qp_make(enum ibv_qp_type type, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
		       uint32_t send_wr, uint32_t recv_wr)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = send_cq, .recv_cq = recv_cq,
		.cap = { .max_send_wr = send_wr, .max_recv_wr = recv_wr, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 64 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		die("cannot create a QP: %s", strerror(errno));
	return qp;
}

void qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = qp->qp_type == IBV_QPT_RC ? REMOTE_ACCESS :
				   IBV_ACCESS_REMOTE_WRITE };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			   IBV_QP_ACCESS_FLAGS));
}

void qp_connect(struct ibv_qp *qp, uint32_t peer_qpn, uint32_t rq_psn, uint32_t sq_psn)
{
	bool rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = mine.mtu,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = theirs.gid,
			     .sgid_index = gid_index, .hop_limit = 64 } },
		.dest_qp_num = peer_qpn, .rq_psn = rq_psn, .sq_psn = sq_psn,
		.max_dest_rd_atomic = mine.rd_atomic, .max_rd_atomic = mine.rd_atomic,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			   (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				 IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

void qp_again(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	qp_init(qp);
}

struct ibv_wc wait_wc(struct ibv_cq *cq, const char *what)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	uint32_t spins = 0;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (++spins % 1024 == 0 && now_ns() > end)
			die("%s: no completion within %u s", what, patience_s());
	must(n == 1);
	return wc;
}

void wait_success(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc = wait_wc(cq, what);

	if (wc.status)
		die("%s: %s", what, ibv_wc_status_str(wc.status));
}

void *pages(size_t size)
{
	void *p;

	must(!posix_memalign(&p, 4096, size));
	memset(p, 0, size);
	return p;
}

long differs(const uint8_t *p, size_t size, uint8_t byte)
{
	size_t i;

	/* compare each byte with the one before it */
	if (p[0] == byte && !memcmp(p, p + 1, size - 1))
		return -1;
	for (i = 0; i < size && p[i] == byte; i++)
		;
	/* if all bytes are right now, one of them has changed since memcmp() read it */
	return i < size ? (long)i : (long)size - 1;
}
