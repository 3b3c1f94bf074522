// SPDX-License-Identifier: GPL-2.0
/*
 * qp_target: queue pairs as a target for forged packets, and commands that check the effects.
 *
 *   qp_target DEVICE GID_INDEX TCP_PORT [PEER]
 *
 * Serves one TCP connection.  The host at its other end is the peer of the QPs, unless the IPv4
 * address PEER is given.  A command is a line.  The answer is a line that begins with "ok", or says
 * what went wrong.
 *
 *   region			addresses and keys of three regions: remotely writable, remotely
 *				readable only, and one of another protection domain
 *   long BYTES		address and key of a new remotely readable region
 *   gap MS			watch the clock for MS milliseconds: the longest time, in
 *				microseconds, for which this program did not run
 *   qp TYPE STATE QPN RPSN SPSN	a new QP (RC, UC, UD): its index and number
 *   post INDEX N [BYTES]	post N receives
 *   send INDEX N		post N SENDs of 64 bytes; not for UD
 *   read INDEX ADDR RKEY	post an RDMA READ of 64 bytes
 *   state INDEX		state of the QP
 *   close INDEX		destroy the QP
 *   poll			completions since the last poll, STATUS/OPCODE/BYTES each
 *   clean [all]		"ok" if no memory except the writable region was written; with all:
 *				if no region was written
 *   counters			counters of the device, NAME=VALUE each
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define QPS		4096
#define REGION		8192
#define FENCE		4096
#define FILL		0x5c
#define BUFFER		16384		/* buffer of the receives; may be written */
#define QKEY		0x11111111
#define DEPTH		64

/* memory: guard, open, guard, readable, guard, foreign, guard */
enum { OPEN, READABLE, FOREIGN, REGIONS };

static struct {
	const char *name;
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr[REGIONS], *buffer_mr;
	struct ibv_qp *qp[QPS];
	int gid_index;
	enum ibv_mtu mtu;
	union ibv_gid peer;
	uint8_t *memory, *buffer;
} t;

#define MEMORY	(REGIONS * (REGION + FENCE) + FENCE)

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "qp_target: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *region(int which)
{
	return t.memory + FENCE + which * (REGION + FENCE);
}

static void setup(int gid_index)
{
	static const int access[REGIONS] = {
		[OPEN] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		[READABLE] = IBV_ACCESS_REMOTE_READ,
		[FOREIGN] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i] && strcmp(ibv_get_device_name(list[i]), t.name); i++)
		;
	need(list && list[i], "no such device");
	t.ctx = ibv_open_device(list[i]);
	need(t.ctx, "ibv_open_device");
	t.gid_index = gid_index;
	/* the smallest MTU, so that packets of full size are short */
	t.mtu = IBV_MTU_256;

	t.pd = ibv_alloc_pd(t.ctx);
	t.other_pd = ibv_alloc_pd(t.ctx);
	t.cq = ibv_create_cq(t.ctx, 4096, NULL, NULL, 0);
	need(t.pd && t.other_pd && t.cq, "PD or CQ");

	need(!posix_memalign((void **)&t.memory, 4096, MEMORY), "memory");
	need(!posix_memalign((void **)&t.buffer, 4096, BUFFER), "memory");
	memset(t.memory, FILL, MEMORY);
	for (i = 0; i < REGIONS; i++) {
		t.mr[i] = ibv_reg_mr(i == FOREIGN ? t.other_pd : t.pd, region(i), REGION, access[i]);
		need(t.mr[i], "ibv_reg_mr");
	}
	t.buffer_mr = ibv_reg_mr(t.pd, t.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE);
	need(t.buffer_mr, "ibv_reg_mr");
}

/* ---- commands ---- */

static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

static int modify(struct ibv_qp *qp, enum ibv_qp_type type, enum ibv_qp_state state,
		  uint32_t qpn, uint32_t rpsn, uint32_t spsn)
{
	bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;
	struct ibv_qp_attr a = {
		.qp_state = state, .port_num = 1, .qkey = QKEY, .path_mtu = t.mtu,
		.dest_qp_num = qpn, .rq_psn = rpsn, .sq_psn = spsn,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 12,
		.timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0),
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = t.peer, .sgid_index = t.gid_index, .hop_limit = 64 },
		},
	};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR && !ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	return ibv_modify_qp(qp, &a, mask);
}

/* Post a SEND with an invalid L_Key, which moves the send queue of a UC or UD QP to SQE. */
static int to_sqe(struct ibv_qp *qp, uint32_t qpn)
{
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = t.peer, .sgid_index = t.gid_index, .hop_limit = 64 },
	};
	struct ibv_ah *ah = qp->qp_type == IBV_QPT_UD ? ibv_create_ah(t.pd, &path) : NULL;
	struct ibv_sge sge = { (uintptr_t)t.buffer, 64, t.buffer_mr->lkey ^ 0x100 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, qpn, QKEY },
	}, *bad;
	int err = ibv_post_send(qp, &wr, &bad);
	struct ibv_wc wc = {};
	int tries;

	for (tries = 0; tries < 1000 && !err && ibv_poll_cq(t.cq, 1, &wc) != 1; tries++)
		usleep(1000);
	if (ah)
		ibv_destroy_ah(ah);
	return err ?: wc.status == IBV_WC_LOC_PROT_ERR ? 0 : EPROTO;
}

static void do_qp(FILE *out, const char *type_name, const char *state_name, uint32_t qpn,
		  uint32_t rpsn, uint32_t spsn)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t.cq, .recv_cq = t.cq,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = !strcmp(type_name, "RC") ? IBV_QPT_RC :
			   !strcmp(type_name, "UC") ? IBV_QPT_UC : IBV_QPT_UD,
	};
	/* states on the way to RTS */
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	enum ibv_qp_state to;
	struct ibv_qp *qp;
	int i, s, err = 0;

	for (to = 0; strcmp(states[to], state_name); to++)
		;
	for (i = 0; i < QPS && t.qp[i]; i++)
		;
	qp = i < QPS ? ibv_create_qp(t.pd, &init) : NULL;
	if (!qp) {
		fprintf(out, "no QP: %s\n", strerror(errno));
		return;
	}
	for (s = 0; s < 3 && way[s] <= to && !err; s++)
		err = modify(qp, init.qp_type, way[s], qpn, rpsn, spsn);
	if (!err && to == IBV_QPS_SQE)
		err = to_sqe(qp, qpn);
	else if (!err && to > IBV_QPS_RTS)
		err = modify(qp, init.qp_type, to, 0, 0, 0);
	t.qp[i] = qp;
	if (err)
		fprintf(out, "modify to %s: %s\n", state_name, strerror(err));
	else
		fprintf(out, "ok %d %u\n", i, qp->qp_num);
}

static void do_post(FILE *out, struct ibv_qp *qp, int n, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)t.buffer, bytes, t.buffer_mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = 0;

	while (n-- > 0 && !err)
		err = ibv_post_recv(qp, &wr, &bad);
	fprintf(out, err ? "post: %s\n" : "ok\n", strerror(err));
}

static void do_send(FILE *out, struct ibv_qp *qp, enum ibv_wr_opcode op, int n, uint64_t addr,
		    uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)t.buffer, 64, t.buffer_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey },
	}, *bad;
	int err = 0;

	while (n-- > 0 && !err)
		err = ibv_post_send(qp, &wr, &bad);
	fprintf(out, err ? "send: %s\n" : "ok\n", strerror(err));
}

static void do_state(FILE *out, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(qp, &a, IBV_QP_STATE, &init))
		fprintf(out, "query: %s\n", strerror(errno));
	else
		fprintf(out, "ok %s\n", states[a.qp_state]);
}

static void do_poll(FILE *out)
{
	struct ibv_wc wc;

	fprintf(out, "ok");
	while (ibv_poll_cq(t.cq, 1, &wc) > 0)
		fprintf(out, " %d/%d/%u", wc.status, wc.opcode, wc.status ? 0 : wc.byte_len);
	fprintf(out, "\n");
}

static void do_clean(FILE *out, bool all)
{
	ptrdiff_t i, open = region(OPEN) - t.memory;

	for (i = 0; i < MEMORY; i++) {
		if (t.memory[i] == FILL || (!all && i >= open && i < open + REGION))
			continue;
		fprintf(out, "byte %td is %#x, region OPEN is at %td\n", i, t.memory[i], open);
		memset(t.memory, FILL, MEMORY);
		return;
	}
	memset(t.memory, FILL, MEMORY);
	fprintf(out, "ok\n");
}

static void do_counters(FILE *out)
{
	char path[512], text[64];
	struct dirent *d;
	DIR *dir;
	FILE *f;

	/* the RDMA core caches counters for some milliseconds */
	usleep(30000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters", t.name);
	dir = opendir(path);
	if (!dir) {
		fprintf(out, "%s: %s\n", path, strerror(errno));
		return;
	}
	fprintf(out, "ok");
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || !strcmp(d->d_name, "lifespan"))
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%.64s",
			 t.name, d->d_name);
		f = fopen(path, "r");
		if (f && fgets(text, sizeof(text), f))
			fprintf(out, " %s=%" PRIu64, d->d_name, (uint64_t)strtoull(text, NULL, 10));
		if (f)
			fclose(f);
	}
	closedir(dir);
	fprintf(out, "\n");
}

/* Register a region that exists until the program ends. */
static void do_long(FILE *out, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = p == MAP_FAILED ? NULL :
			    ibv_reg_mr(t.pd, p, bytes, IBV_ACCESS_REMOTE_READ);

	if (mr)
		fprintf(out, "ok %" PRIu64 " %u\n", (uint64_t)(uintptr_t)p, mr->rkey);
	else
		fprintf(out, "no region of %zu bytes: %s\n", bytes, strerror(errno));
}

static uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static void do_gap(FILE *out, unsigned int ms)
{
	uint64_t begin = microseconds(), before = begin, longest = 0, now;

	for (; before < begin + ms * 1000ull; before = now) {
		now = microseconds();
		if (now - before > longest)
			longest = now - before;
	}
	fprintf(out, "ok %" PRIu64 "\n", longest);
}

static void command(FILE *out, char *line)
{
	char word[16] = "", type[8] = "", state[8] = "";
	uint32_t qpn, rpsn, spsn, rkey, bytes = 4096;
	unsigned int index = 0;
	uint64_t addr;
	int i, n = 0;

	if (sscanf(line, "qp %7s %7s %u %u %u", type, state, &qpn, &rpsn, &spsn) == 5) {
		do_qp(out, type, state, qpn, rpsn, spsn);
		return;
	}
	sscanf(line, "%15s", word);
	if (!strcmp(word, "region")) {
		fprintf(out, "ok");
		for (i = 0; i < REGIONS; i++)
			fprintf(out, " %" PRIu64 " %u", (uint64_t)(uintptr_t)region(i), t.mr[i]->rkey);
		fprintf(out, "\n");
	} else if (!strcmp(word, "poll")) {
		do_poll(out);
	} else if (!strcmp(word, "clean")) {
		do_clean(out, strstr(line, "all"));
	} else if (!strcmp(word, "counters")) {
		do_counters(out);
	} else if (sscanf(line, "long %" SCNu64, &addr) == 1) {
		do_long(out, addr);
	} else if (sscanf(line, "gap %u", &bytes) == 1) {
		do_gap(out, bytes);
	} else if (sscanf(line, "%*s %u", &index) != 1 || index >= QPS || !t.qp[index]) {
		fprintf(out, "unknown command\n");
	} else if (sscanf(line, "post %u %d %u", &index, &n, &bytes) >= 2) {
		do_post(out, t.qp[index], n, bytes);
	} else if (sscanf(line, "send %u %d", &index, &n) == 2) {
		do_send(out, t.qp[index], IBV_WR_SEND, n, 0, 0);
	} else if (sscanf(line, "read %u %" SCNu64 " %u", &index, &addr, &rkey) == 3) {
		do_send(out, t.qp[index], IBV_WR_RDMA_READ, 1, addr, rkey);
	} else if (!strcmp(word, "state")) {
		do_state(out, t.qp[index]);
	} else if (!strcmp(word, "close")) {
		n = ibv_destroy_qp(t.qp[index]);
		t.qp[index] = NULL;
		fprintf(out, n ? "close: %s\n" : "ok\n", strerror(n));
	} else {
		fprintf(out, "unknown command\n");
	}
}

int main(int argc, char **argv)
{
	/* an IPv6 socket accepts both families; a peer's IPv4 address has the form of a GID */
	struct sockaddr_in6 here = { .sin6_family = AF_INET6 }, peer;
	socklen_t size = sizeof(peer);
	int one = 1, listener, fd;
	char line[256];
	FILE *in, *out;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: %s DEVICE GID_INDEX TCP_PORT [PEER]\n", argv[0]);
		return 2;
	}
	t.name = argv[1];
	setup(atoi(argv[2]));

	listener = socket(AF_INET6, SOCK_STREAM, 0);
	here.sin6_port = htons(atoi(argv[3]));
	need(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "setsockopt");
	need(!bind(listener, (void *)&here, sizeof(here)) && !listen(listener, 1), "listen");
	fd = accept(listener, (void *)&peer, &size);
	need(fd >= 0, "accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	memcpy(t.peer.raw, &peer.sin6_addr, sizeof(t.peer.raw));
	/* the last four bytes of a GID of an IPv4 address */
	if (argc == 5)
		need(inet_pton(AF_INET, argv[4], t.peer.raw + 12) == 1, "address of the peer");

	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	need(in && out, "fdopen");
	while (fgets(line, sizeof(line), in)) {
		command(out, line);
		fflush(out);
	}
	return 0;
}
