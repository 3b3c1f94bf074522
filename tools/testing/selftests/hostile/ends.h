/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs whose rings the test program accesses directly, as memory shared with the kernel.
 * The program finds the rings in /proc/self/maps: a new CQ adds one mapping, and the slots of an SQ
 * or RQ have known wr_ids.
 */
#ifndef ENDS_H
#define ENDS_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/nhca-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define DEPTH		64
#define SGES		4
#define INLINE		128
#define QKEY		0x11111111
#define REGION		(64 * 1024)
#define FENCE		4096		/* guard bytes on each side of a region; must not change */
#define FENCE_BYTE	0xa7
#define MAGIC		0x6e6863615f747374ULL
#define PATIENCE	10.0		/* seconds to wait for an expected change */
#define ALONE_ROUNDS	100		/* rounds of the bystander before the first attack */

/* Memory that all processes of the test share */
struct shared {
	volatile uint64_t rounds;	/* messages that the bystander has moved and checked */
	volatile double longest_alone;	/* longest wait for a completion before the attacks, in s */
	volatile double longest;	/* longest wait for a completion since the attacks began */
	volatile bool stop;
	pid_t bystander;
	char why[320];			/* first failure of the current attack or the bystander */
};

#define must(what) do { if (!(what)) die("%s:%d: %s: %s", __func__, __LINE__, #what, \
					 strerror(errno)); } while (0)

struct map {
	char *start;
	size_t size;
	uint64_t offset;
};

struct ring {
	struct nhca_ring_hdr *hdr;
	size_t size;
	uint64_t offset;
	uint32_t stride;
	uint32_t entries;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	enum ibv_qp_type type;
	char *block;		/* guard, region, guard */
	char *buf;
	struct ring cqr, sqr, rqr, srqr;
	uint32_t ah_id;
	struct ibv_qp_cap cap;	/* limits that the device has granted */
	bool patient;		/* long timeout and many retries, for a busy machine */
	union ibv_gid gid;
	enum ibv_mtu mtu;
};

extern const char *device_name;
extern int gid_index;

/* number of slots in each queue of QPs that are made from now on */
extern uint32_t depth;

extern struct shared *shared;
extern uint64_t seed_state;

__attribute__((format(printf, 1, 2), noreturn))
void die(const char *format, ...);
double now(void);
uint64_t rnd(void);
void rnd_fill(void *where, size_t bytes);
int maps_read(struct map *maps, int room);
char *slot(const struct ring *r, uint32_t index);
uint32_t load(const __u32 *p);
void store(__u32 *p, uint32_t v);
void end_modify(struct end *e, enum ibv_qp_state state, uint32_t dest, bool unchecked);
enum ibv_qp_state end_state(struct end *e);
void bring_up(struct end *a, struct end *b, bool unchecked);
void connect_ends(struct end *a, struct end *b);
void post_recv(struct end *e, uint64_t wr_id, void *addr, uint32_t length);
void post_send(struct end *e, uint64_t wr_id, enum ibv_wr_opcode op, void *addr, uint32_t length,
	       struct end *to);
void end_make(struct end *e, enum ibv_qp_type type, bool with_srq, int cqes);
void end_destroy(struct end *e);
void fences_hold(const struct end *e);
void ring_sq(struct end *e);
bool broken(enum ibv_qp_state state);
void wait_broken(struct end *e, const char *what);
void drain(struct end *e);
bool saw_event(struct end *e, enum ibv_event_type type);

#endif /* ENDS_H */
