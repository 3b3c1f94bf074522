/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Common code of test programs on plain libibverbs: a list of tests, whose results are a KTAP
 * report, and a pair of queue pairs on one device, with both ends in this process.  $RDMA_DEV names
 * the device.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "ktap.h"
#include "proc.h"

#define QKEY		0x11111111
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define RC_OPS		(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define UC_OPS		(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | UD_OPS)
#define UD_OPS		(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define STAMPS		(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* The device; filled in by device_open() */
struct device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_pd *domain;	/* parent domain of CQs, or NULL; if set, @pd is the same */
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	bool ipv4;
	bool nhca;		/* a device of nhca: a missing feature is a failure, not a skip */
	bool stamps;		/* CQEs of the device can have timestamps */
};

/* One end: a queue pair, its CQ and memory */
struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_qp_cap cap;
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* Objects that make_pair() creates; pair_free() destroys those that exist */
struct pair {
	struct end a, b;
	struct ibv_comp_channel *channel;	/* completion channel of b's CQ */
	struct ibv_srq *srq;			/* shared receive queue of b */
	struct ibv_ah *ah;
	size_t size;
};

/* Options of make_pair(); zero selects a default */
struct pair_opts {
	enum ibv_qp_type type;
	size_t size;		/* bytes of memory at each end */
	int cqe;
	int wr;
	int sge;
	int inline_data;
	int srq_wr;
	uint64_t more_ops;	/* IBV_QP_EX_WITH_*, besides those of the type */
	int more_access;	/* access flags of the memory, besides the default */
	bool channel;
	bool unconnected;
};

struct completion {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t byte_len;
	uint32_t imm;
	uint32_t qp_num;
	uint32_t src_qp;
	uint8_t sl;
	uint64_t stamp;
	uint64_t wall;
};

#define REQUIRE(cond, ...) do {		\
	if (!(cond))			\
		return fail(__VA_ARGS__);	\
} while (0)

/* Fail the test if a verb returns an errno, or -1 with errno */
#define VERB(call) do {								\
	int verb_ret = (call);							\
	if (verb_ret)								\
		return fail("%s: %s", #call, strerror(verb_ret > 0 ? verb_ret : errno)); \
} while (0)

/* @loose: devices other than nhca are known to fail the test, so their failure counts as a skip. */
struct test {
	const char *name;
	bool (*run)(struct pair *p);
	bool loose;
};

/* bound of each wait, in s; no operation takes that long */
extern unsigned int wait_s;

extern struct device dev;
extern char reason[256];
extern bool skipped;

/* Store the reason of a failure: `return fail(...)` */
__attribute__((format(printf, 1, 2)))
bool fail(const char *fmt, ...);

/*
 * Store the reason that a feature is missing: `return missing(...)`.  The test fails for nhca, and
 * is skipped for other devices, which may lack the feature.
 */
bool missing(const char *what);

uint64_t clock_ns(clockid_t clock);

/* Write a pattern that differs by byte and by @seed, so that filled() detects a misplaced byte. */
void fill(uint8_t *p, size_t len, uint32_t seed);

bool filled(const uint8_t *p, size_t len, uint32_t seed);

/* Return: the value of one of the device's hw_counters, or -1 if it does not exist. */
long counter(const char *name);

/*
 * Read and acknowledge asynchronous events until one of @type arrives; -1 reads all pending events.
 * @ms: the longest wait for each event.
 */
bool async_event(int type, int ms);

/* Return: true if the completion channel gets an event within @ms. */
bool cq_event(struct ibv_comp_channel *channel, int ms);

/* Return: true if there was a completion; it is copied to @c. */
bool poll_one(struct ibv_cq_ex *cq, struct completion *c);

bool wait_any(struct ibv_cq_ex *cq, struct completion *c);

/* Wait for the next completion, which must be that of @wr_id, with @opcode, and successful. */
bool wait_for(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode,
	      struct completion *c);

struct ibv_sge sge_of(const struct end *e, size_t off, uint32_t len);
bool post_recv(struct pair *p, uint64_t wr_id, size_t off, uint32_t len);

/* Post a SEND from a to b; @flags are IBV_SEND_*. */
bool post_send(struct pair *p, uint64_t wr_id, size_t off, uint32_t len, unsigned int flags);

bool modify(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer);
bool connect_pair(struct pair *p);

/* Move both queue pairs to RESET, empty their CQs, and connect them again. */
bool reconnect(struct pair *p);

/* Post a request on a, which must complete with status @want.  After an error, reconnect. */
bool request_ends(struct pair *p, struct ibv_send_wr *wr, enum ibv_wc_status want,
		  const char *what);

struct ibv_cq_ex *make_cq(int cqe, struct ibv_comp_channel *channel, uint64_t more);
bool make_end(struct pair *p, struct end *e, const struct pair_opts *o, bool receiver);
bool make_pair(struct pair *p, struct pair_opts o);
bool end_free(struct end *e);
bool pair_free(struct pair *p);

/* Find a RoCEv2 GID; one of an IPv4 address is preferred. */
bool find_gid(void);

bool device_open(void);

/*
 * Run the tests whose name contains @only, or all if it is NULL.  Return: the exit status of the
 * program.
 */
int run_tests(const struct test *tests, size_t count, const char *only);

#endif /* VERBS_TEST_H */
