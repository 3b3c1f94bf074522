/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of test programs: random numbers, failures with a message, queue pairs that are
 * connected without rdma_cm and reconnected after an error, and two processes that communicate over
 * a TCP socket.
 */
#ifndef PEERS_H
#define PEERS_H

#include <errno.h>
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

#include "ktap.h"

#define REMOTE_ACCESS	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC)

/* Data that both sides need: the address, and values on which they must agree */
struct hello {
	union ibv_gid gid;
	uint32_t mtu, rd_atomic;
	uint64_t seed;
};

#define must(what) do {									\
	if (!(what))									\
		die("%s:%d: %s: %s", __func__, __LINE__, #what, strerror(errno));	\
} while (0)

/* For verbs that return an errno, or -1 with errno */
#define verb(call) do {									\
	int verb_ret = (call);								\
	if (verb_ret)									\
		die("%s:%d: %s: %s", __func__, __LINE__, #call,				\
		    strerror(verb_ret > 0 ? verb_ret : errno));				\
} while (0)

extern const char *program, *device_name, *peer_host, *peer_port;
extern int gid_index;
extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_device_attr device;
extern struct hello mine, theirs;
extern int sock;
extern uint64_t rnd_state;

__attribute__((format(printf, 1, 2), noreturn))
void die(const char *format, ...);

/* Handle -d DEVICE, -g GID-INDEX and -p TCP-PORT.  Return: true if @letter is one of them. */
bool peer_option(int letter);

/*
 * Return: the limit for each wait in seconds: 60, times SLOWER of lib.sh, which is above 1 on a
 * kernel that is slower than stock.
 */
unsigned int patience_s(void);

uint64_t now_ns(void);
uint64_t mix(uint64_t z);

/* Return: the next number of splitmix64; the same seed gives the same numbers. */
uint64_t rnd(void);

void sock_open(void);
void tell(const void *ours, size_t size);
void hear(void *other, size_t size);
void exchange(const void *ours, void *other, size_t size);
void meet(uint32_t where);

/* Return: true if the other side has closed its socket. */
bool abandoned(void);

/*
 * Open the device. The function also sets the peer's address (theirs) to that of this end, so a
 * process can connect to itself. say_hello() replaces it by the address that the other side sends.
 */
void open_device(void);

void say_hello(void);

struct ibv_qp *qp_make(enum ibv_qp_type type, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
		       uint32_t send_wr, uint32_t recv_wr);

void qp_init(struct ibv_qp *qp);

/* Move an RC or UC queue pair from INIT to RTS. */
void qp_connect(struct ibv_qp *qp, uint32_t peer_qpn, uint32_t rq_psn, uint32_t sq_psn);

/* Move a queue pair from any state to RESET, which discards its receives, and then to INIT. */
void qp_again(struct ibv_qp *qp);

/* Spin for the next completion, for tests that must react to it immediately. */
struct ibv_wc wait_wc(struct ibv_cq *cq, const char *what);

void wait_success(struct ibv_cq *cq, const char *what);

/* Return: page-aligned memory that is present and zero. */
void *pages(size_t size);

/* Return: the index of the first byte that is not @byte, or -1. */
long differs(const uint8_t *p, size_t size, uint8_t byte);

#endif /* PEERS_H */
