/* SPDX-License-Identifier: GPL-2.0 */
/* A part of verify_xfer.c: options, contents of messages, memory, and the TCP socket. */
#ifndef XFER_H
#define XFER_H

#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define GRH		40	/* bytes before the message in a UD receive */
#define GUARD		32	/* bytes after a message that must not be written */
#define GUARD_BYTE	0xa5
#define INLINE		64

enum op { SEND, WRITE, WRITE_IMM, READ, ATOMIC, MIXED, OPS };

struct options {
	const char *device, *host, *port;
	enum ibv_qp_type type;
	enum op op;
	int gid, mtu, retry, timeout, patience, linger;
	uint32_t qps, messages, window, size;
	bool both, events, fixed, drain;
};

/* Registered memory with one purpose, such as the targets of WRITEs */
struct area {
	uint8_t *base;
	struct ibv_mr *mr;
};

struct flow {
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	uint32_t peer_qpn, peer_psn, psn;
	uint32_t signalled, received;	/* completions polled in this round */
	uint32_t signals, receives;	/* completions expected in this round */
	uint32_t before_drain;		/* signals of requests that may complete in SQD */
	uint32_t posted;		/* receives in the queue */
	uint64_t sum;			/* expected value of the peer's counter */
	uint64_t peer_sum;		/* expected value of this side's counter */
};

/* Data that both sides exchange.  Both must have the same byte order and layout of structs. */
struct hello {
	uint32_t qps, messages, window, size, type, op, both, fixed, mtu, rd_atomic;
	uint64_t in_addr, out_addr, counter_addr;
	uint32_t in_rkey, out_rkey, counter_rkey;
	union ibv_gid gid;
};

struct hello_qp {
	uint32_t qpn, psn;
};

#define must(what) do { if (!(what)) die("%s: %s", #what, strerror(errno)); } while (0)

extern const char * const op_names[OPS];
extern struct options opt;
extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_comp_channel *channel;
extern struct area in, out, from, got, counters, fetched;
extern struct hello mine, theirs;
extern struct flow *flows;
extern uint32_t slots, stride;
extern bool active, passive;	/* this side starts operations; this side is their target */
extern uint64_t delivered, lost, moved, sent;
extern uint32_t round_first, round_count, drains;

__attribute__((format(printf, 1, 2), noreturn))
void die(const char *format, ...);
double now(void);
uint64_t seed(bool from_client, uint32_t q, uint32_t k);
uint32_t size_of(bool from_client, uint32_t q, uint32_t k);
enum op op_of(uint32_t k);
uint64_t addend(uint32_t q, uint32_t k);
bool takes_receive(uint32_t k);
void fill(uint8_t *at, uint64_t base, uint32_t size);
void check(const char *what, uint32_t q, uint32_t k, const uint8_t *at, uint64_t base,
	   uint32_t size);
void check_guard(const char *what, uint32_t q, uint32_t k, const uint8_t *at);
void check_partial(uint32_t q, uint32_t k, const uint8_t *at, uint32_t size);
uint64_t place(uint32_t q, uint32_t slot);
void make_memory(void);
void sock_open(void);
void exchange(const void *ours, void *other, size_t size);
void meet(uint32_t where);
void parse(int argc, char **argv);

#endif /* XFER_H */
