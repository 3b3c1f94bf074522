// SPDX-License-Identifier: GPL-2.0
/*
 * greedy: one user takes as many resources of one kind as the device gives, and keeps them.
 *
 *   greedy DEVICE KIND JOB [BOUND]
 *
 * KIND:
 *   rcxts	rCxts
 *   bitmaps	bitmaps of channel READs that get no response
 *   cqs	CQs of 4 MiB, at most 64
 *   qps	QPs with the longest queues, at most 64
 *   dm		KiB of device memory
 *   groups	multicast groups
 *   members	QPs of one multicast group, at most 4,096
 *   objects	objects of each kind that objects[] lists
 *   deferred	datagrams into an on-demand region of the file $GREEDY_FILE
 *   quantum	writes of 60 KiB, 1,024 at a time on each of 16 channels, until the program is
 *		killed
 *
 * $GREEDY_GID is the GID index (default 0).  The program prints "KIND: N taken, then ERROR" and
 * keeps the resources until SIGTERM.  With BOUND the program takes at most BOUND resources and
 * ends, with status 0 if it got BOUND.  The buffer of the output is static, because a process at
 * its memory limit cannot allocate one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEND_WR		1024
#define RCXTS		1024
#define MEMORY		(1u << 20)
#include "channels.h"

#define MOST		1024	/* rCxts that one call acquires at most */
#define CQ_ENTRIES	65536	/* entries of 64 bytes: 4 MiB */
#define CQS		64
#define QPS		64
#define MEMBERS		4096
#define READ_TOTAL	(1u << 20)	/* 16,384 packets of 64 bytes: the maximum of a transfer */
#define DEFER_QPS	60
#define DEFER_PACKETS	256	/* maximum number of packets that a QP defers */
#define DEFER_BYTES	984	/* 1,024 bytes with the GRH */
#define WRITERS		16
#define WRITE_BYTES	(60u << 10)

static uint64_t bound = ~0ULL;

static struct channel *channel_new(void)
{
	struct channel *c = calloc(1, sizeof(*c));

	must(c);
	channel_make(c, job, 0);
	return c;
}

/*
 * After a refusal acquire fewer rCxts at a time, down to one. If a single rCxt is refused, continue
 * with a new channel. End when a new channel gets no rCxt.
 */
static uint64_t take_rcxts(int *error)
{
	static uint64_t ids[MOST];
	struct channel *c = channel_new();
	uint64_t taken = 0;
	uint32_t step = MOST, n;
	bool got = false;

	while (taken < bound) {
		n = step < bound - taken ? step : bound - taken;
		*error = nhcadv_acquire_rcxts(c->qp, ids, n);
		if (!*error) {
			taken += n;
			got = true;
		} else if (step > 1) {
			step /= 2;
		} else if (got) {
			c = channel_new();
			step = MOST;
			got = false;
		} else {
			break;
		}
	}
	return taken;
}

static uint64_t take_cqs(int *error)
{
	uint64_t taken;

	for (taken = 0; taken < CQS && taken < bound; taken++)
		if (!ibv_create_cq(context, CQ_ENTRIES, NULL, NULL, 0)) {
			*error = errno;
			break;
		}
	return taken;
}

/* Return: a UD QP with the shortest queues, or an RC QP with the longest. */
static struct ibv_qp *qp_new(struct ibv_cq *cq, enum ibv_qp_type type)
{
	uint32_t depth = type == IBV_QPT_UD ? 1 : device.max_qp_wr;
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	return ibv_create_qp(pd, &init);
}

static uint64_t take_qps(int *error)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	uint64_t taken;

	must(cq);
	for (taken = 0; taken < QPS && taken < bound; taken++)
		if (!qp_new(cq, IBV_QPT_RC)) {
			*error = errno;
			break;
		}
	return taken;
}

static struct ibv_ah *ah_new(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	attr.grh.sgid_index = gid_index;
	verb(ibv_query_gid(context, 1, gid_index, &attr.grh.dgid));
	return ibv_create_ah(pd, &attr);
}

/* ---- objects of each kind ---- */

static struct ibv_cq *small_cq;
static struct ibv_wq *a_wq;
static void *a_page;

static bool new_pd(void) { return ibv_alloc_pd(context); }
static bool new_cq(void) { return ibv_create_cq(context, 1, NULL, NULL, 0); }
static bool new_qp(void) { return qp_new(small_cq, IBV_QPT_UD); }
static bool new_mr(void) { return ibv_reg_mr(pd, a_page, 4096, IBV_ACCESS_LOCAL_WRITE); }
static bool new_mw(void) { return ibv_alloc_mw(pd, IBV_MW_TYPE_1); }
static bool new_ah(void) { return ah_new(); }
static bool new_mem(void) { return nhcadv_reg_job_mem(context, job, a_page, 4096, IBV_ACCESS_LOCAL_WRITE); }

static bool new_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}

static bool new_xrcd(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(context, &init);
}

static bool new_table(void)
{
	struct ibv_rwq_ind_table_init_attr init = { .ind_tbl = &a_wq };

	return ibv_create_rwq_ind_table(context, &init);
}

static const struct {
	const char *name;
	bool (*make)(void);
} objects[] = {
	{ "pds", new_pd }, { "cqs", new_cq }, { "qps", new_qp }, { "srqs", new_srq }, { "ahs", new_ah },
	{ "mrs", new_mr }, { "mws", new_mw }, { "xrcds", new_xrcd }, { "tables", new_table },
	{ "job memory", new_mem },
};

/*
 * With a bound, take that many of each kind.  Return: the number of objects of the kind with the
 * fewest.
 */
static uint64_t take_objects(int *error)
{
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd };
	uint64_t taken, least = ~0ULL;
	size_t i;

	a_page = pages(4096);
	must(small_cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	wq.cq = small_cq;
	must(a_wq = ibv_create_wq(context, &wq));
	for (i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		for (taken = 0; taken < bound && objects[i].make(); taken++)
			;
		if (taken < bound && !*error)
			*error = errno;
		if (bound == ~0ULL || taken < bound)
			printf("%s: %" PRIu64 ", then %s\n", objects[i].name, taken, strerrorname_np(errno));
		if (taken < least)
			least = taken;
	}
	return least;
}

/* After a refusal allocate fewer bytes at a time, down to a page. */
static uint64_t take_dm(int *error)
{
	struct ibv_alloc_dm_attr attr = { .length = 1 << 20 };
	uint64_t taken = 0;

	while (taken < bound && attr.length >= 4096) {
		if (ibv_alloc_dm(context, &attr)) {
			taken += attr.length >> 10;
		} else {
			*error = errno;
			attr.length /= 2;
		}
	}
	return taken;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
}

/* Attach QPs to one multicast group, which is the same for all users. */
static uint64_t take_members(int *error)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 0x77 } };
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	uint64_t taken;

	must(cq);
	for (taken = 0; taken < MEMBERS && taken < bound; taken++) {
		must(qp = qp_new(cq, IBV_QPT_UD));
		to_init(qp);
		*error = ibv_attach_mcast(qp, &gid, 0);
		if (*error)
			break;
	}
	return taken;
}

/* Attach a QP to many groups. Each user has its own groups, because the GIDs contain the job. */
static uint64_t take_groups(int *error)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	uint64_t taken;

	must(cq && (qp = qp_new(cq, IBV_QPT_UD)));
	to_init(qp);
	for (taken = 0; taken < bound; taken++) {
		memcpy(gid.raw + 8, &job, sizeof(job));
		gid.raw[14] = taken >> 8;
		gid.raw[15] = taken;
		*error = ibv_attach_mcast(qp, &gid, 0);
		if (*error)
			break;
	}
	return taken;
}

/* ---- memory that the engines allocate ---- */

/*
 * Post reads from a channel that does not exist. Each read waits for 16,384 packets, so it has a
 * bitmap for these packets. A read without memory for its bitmap completes with an error.
 */
static uint64_t take_bitmaps(int *error)
{
	uint64_t taken = 0, sent, failed = 0;
	struct channel *c;
	struct done d;
	uint32_t i;

	while (taken < bound && !failed) {
		struct nhcadv_peer peer = { .qpn = 0xfffffd, .key = 1, .ah = ah_new() };

		c = channel_new();
		must(peer.ah);
		c->mem = nhcadv_reg_job_mem(context, job, pages(READ_TOTAL), READ_TOTAL,
					    IBV_ACCESS_LOCAL_WRITE);
		must(c->mem);
		*error = nhcadv_acquire_rcxts(c->qp, c->here.rcxts, RCXTS);
		if (*error)
			break;
		for (i = 0; i < RCXTS && taken + i < bound; i++) {
			struct nhcadv_transfer t = {
				.local_rcxt = c->here.rcxts[i], .local_pvo = c->mem->pvo, .tid = 1,
				.remote_pvo = 1 << 20, .total = READ_TOTAL, .segment = 64,
				.notify = NHCADV_NOTIFY_INITIATOR,
			};

			start(c, i, 0);
			nhcadv_wr_read(c->dv, &peer, &t);
			verb(ibv_wr_complete(c->qpx));
		}
		do {
			while (poll_done(c->scq, &d))
				failed += d.status == IBV_WC_GENERAL_ERR;
			sent = channel_info(c).counters[NHCADV_SENT_PACKETS];
		} while (sent + failed < i);
		taken += sent;
		*error = failed ? ENOMEM : 0;
	}
	return taken;
}

/* Send datagrams to QPs of this process, into a page whose fault does not complete. */
static uint64_t take_deferred(int *error)
{
	static struct ibv_qp *qps[DEFER_QPS];
	struct ibv_cq *cq = ibv_create_cq(context, DEFER_QPS * DEFER_PACKETS, NULL, NULL, 0);
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR }, rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_sge from = { .length = DEFER_BYTES }, to = { .length = DEFER_BYTES + 40 };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_ah *ah = ah_new();
	struct ibv_mr *mr, *source;
	struct ibv_wc wc[16];
	int fd, i, n, k, got, received = 0;
	struct stat st;
	char go[256];
	uint64_t taken = 0;
	char *p;

	fd = open(getenv("GREEDY_FILE"), O_RDONLY);
	/* fstat() makes the kernel request the size from the file system */
	must(cq && ah && fd >= 0 && !fstat(fd, &st) && st.st_size == 4096);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	must(p != MAP_FAILED);
	must(mr = ibv_reg_mr(pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	must(source = ibv_reg_mr(pd, pages(4096), 4096, 0));
	from.addr = (uintptr_t)source->addr;
	from.lkey = source->lkey;
	to.addr = (uintptr_t)p;
	to.lkey = mr->lkey;
	for (i = 0; i < DEFER_QPS; i++) {
		struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
			.cap = { .max_send_wr = 16, .max_recv_wr = DEFER_PACKETS, .max_send_sge = 1,
				 .max_recv_sge = 1 } };

		must(qps[i] = ibv_create_qp(pd, &init));
		to_init(qps[i]);
		verb(ibv_modify_qp(qps[i], &rtr, IBV_QP_STATE));
		verb(ibv_modify_qp(qps[i], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
		for (n = 0; n < DEFER_PACKETS; n++)
			verb(ibv_post_recv(qps[i], &recv, &bad_recv));
	}
	send.wr.ud.ah = ah;
	send.wr.ud.remote_qkey = 1;
	send.send_flags = IBV_SEND_SIGNALED;
	/*
	 * two_users.sh may now move the process to another cgroup; its QPs stay charged to the old
	 * cgroup
	 */
	printf("deferred: ready\n");
	snprintf(go, sizeof(go), "%s.go", getenv("GREEDY_FILE"));
	while (access(go, F_OK))
		usleep(10000);
	/*
	 * from here on, do not change the address space: the change would wait for the page fault,
	 * which holds the lock of the address space
	 */
	for (n = 0; n < DEFER_PACKETS; n++)
		for (i = 0; i < DEFER_QPS && taken < bound; i++) {
			send.wr.ud.remote_qpn = qps[i]->qp_num;
			verb(ibv_post_send(qps[0], &send, &bad));
			do {
				got = ibv_poll_cq(cq, 16, wc);
				for (k = 0; k < got; k++)
					if (wc[k].opcode == IBV_WC_RECV || wc[k].status)
						received++;
			} while (got < 1);
			taken++;
		}
	if (received)
		printf("deferred: %d datagrams did not wait: %s\n", received, ibv_wc_status_str(wc[0].status));
	*error = 0;
	return taken;
}

/* Post a write for each that completes, so that all channels have data.  Does not return. */
static uint64_t take_quantum(int *error)
{
	static struct channel from[WRITERS], to[WRITERS];
	struct nhcadv_job_mem *mem;
	struct done d;
	uint32_t i, k;

	(void)error;
	mem = nhcadv_reg_job_mem(context, job, pages(WRITE_BYTES), WRITE_BYTES,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(mem);
	channel_sizes = (struct channel_sizes){ RCXTS, MEMORY, SEND_WR, 0 };
	cq_entries = 2 * SEND_WR;
	for (i = 0; i < WRITERS; i++) {
		channel_make(&from[i], job, 16);
		channel_make(&to[i], job, 16);
		verb(nhcadv_acquire_rcxts(from[i].qp, from[i].here.rcxts, RCXTS));
		verb(nhcadv_acquire_rcxts(to[i].qp, to[i].here.rcxts, RCXTS));
		from[i].here.pvo = mem->pvo;
		to[i].here.pvo = mem->pvo;
		from[i].there = to[i].here;
		from[i].peer = (struct nhcadv_peer){ .qpn = to[i].here.qpn, .key = to[i].here.key,
						     .ah = ah_new() };
		must(from[i].peer.ah);
	}
	for (i = 0; i < WRITERS; i++)
		for (k = 0; k < RCXTS; k++) {
			struct nhcadv_transfer t = transfer(&from[i], k, 0, WRITE_BYTES, 0);

			post_write(&from[i], &from[i].peer, &t, k, IBV_SEND_SIGNALED);
		}
	printf("quantum: %u taken, then no limit\n", WRITERS * RCXTS);
	for (;;)
		for (i = 0; i < WRITERS; i++)
			for (k = 0; k < 64 && poll_done(from[i].scq, &d); k++) {
				struct nhcadv_transfer t;

				if (d.status)
					die("a write fails: %s", ibv_wc_status_str(d.status));
				t = transfer(&from[i], d.wr_id, 0, WRITE_BYTES, 0);
				post_write(&from[i], &from[i].peer, &t, d.wr_id, IBV_SEND_SIGNALED);
			}
	return 0;
}

static const struct {
	const char *name;
	uint64_t (*take)(int *error);
} kinds[] = {
	{ "rcxts", take_rcxts }, { "bitmaps", take_bitmaps }, { "cqs", take_cqs }, { "qps", take_qps },
	{ "dm", take_dm }, { "groups", take_groups }, { "members", take_members },
	{ "objects", take_objects }, { "deferred", take_deferred },
	{ "quantum", take_quantum },
};

int main(int argc, char **argv)
{
	static char text[4096];
	uint64_t taken = 0;
	int error = 0;
	sigset_t set;
	unsigned int i;

	program = "greedy";
	if (argc < 4) {
		fprintf(stderr, "usage: greedy DEVICE KIND JOB [BOUND]\n");
		return 2;
	}
	setvbuf(stdout, text, _IOLBF, sizeof(text));
	device_name = argv[1];
	job = atoi(argv[3]);
	if (argc > 4)
		bound = strtoull(argv[4], NULL, 0);
	if (getenv("GREEDY_GID"))
		gid_index = atoi(getenv("GREEDY_GID"));
	open_device();
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[2], kinds[i].name))
			taken = kinds[i].take(&error);
	printf("%s: %" PRIu64 " taken, then %s\n", argv[2], taken, error ? strerrorname_np(error) : "no error");
	if (argc > 4)
		return taken < bound;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwaitinfo(&set, NULL);
	return 0;
}
