/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of channel tests: a channel with its queues and memory, the data about it that the
 * other side needs, and functions that wait for completions and events.
 */
#ifndef CHANNELS_H
#define CHANNELS_H

#include <poll.h>

#include <infiniband/nhcadv.h>

#include "peers.h"

/*
 * Default sizes of what channel_open() makes. A program that needs other sizes defines these macros
 * before it includes this header, and stores the sizes in channel_sizes.
 */
#ifndef RCXTS
#define RCXTS		4
#define MEMORY		(4u << 20)
#define SEND_WR		16
#endif

#define RCXTS_MAX	1024

struct channel_sizes {
	uint32_t rcxts;			/* rCxts of a channel, at most RCXTS_MAX */
	uint32_t memory;		/* bytes of memory of a channel */
	uint32_t send_wr;
	uint32_t inline_data;		/* maximum bytes of inline data; 0: 256 */
};

/* Data about a channel that the other side needs */
struct address {
	uint32_t qpn, segment;
	uint64_t key, pvo, rcxts[RCXTS_MAX];
};

struct channel {
	struct ibv_comp_channel *events;	/* completion channel of both CQs */
	struct ibv_cq_ex *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct nhcadv_job_mem *mem;
	uint8_t *buf;
	uint32_t tid;			/* last tid of transfer(), for all rCxts */
	struct address here, there;
	struct nhcadv_peer peer;
};

struct done {
	enum nhcadv_wc_kind kind;
	enum ibv_wc_status status;
	uint64_t wr_id, rcxt;
	uint32_t tid, frame, src, byte_len;
};

extern struct channel_sizes channel_sizes;
extern uint32_t job;

/* True: the program recovers its device at any time, so a new channel may be in the error state. */
extern bool recoveries;

/* number of entries of each CQ of channels that are made from now on */
extern uint32_t cq_entries;

struct ibv_qp *make_qp(struct ibv_cq *scq, struct ibv_cq *rcq, uint32_t of_job, uint32_t frames);

/* Make a channel without rCxts and without memory. */
void channel_make(struct channel *c, uint32_t of_job, uint32_t frames);

void channel_open(struct channel *c, uint32_t frames);
void channel_meet(struct channel *c);
void channel_close(struct channel *c);
struct nhcadv_channel_info channel_info(struct channel *c);
bool poll_done(struct ibv_cq_ex *cq, struct done *d);
struct done wait_done(struct ibv_cq_ex *cq, const char *what);

/* Wait for the next completion, which must be that of @wr_id, successful, and of kind @kind. */
struct done expect(struct ibv_cq_ex *cq, enum nhcadv_wc_kind kind, uint64_t wr_id,
		   const char *what);

void expect_transfer(struct ibv_cq_ex *cq, enum nhcadv_wc_kind kind, uint64_t wr_id, uint64_t rcxt,
		     uint32_t tid, const char *what);

/* A signaled work request and its transfer may complete in either order. */
void expect_both(struct ibv_cq_ex *cq, uint64_t posted, enum nhcadv_wc_kind kind, uint64_t wr_id,
		 uint64_t rcxt, uint32_t tid, const char *what);

void expect_nothing(struct ibv_cq_ex *cq, uint32_t ms, const char *what);

const struct nhcadv_frame *expect_frame(struct channel *c, uint64_t cookie, uint32_t *index,
					const char *what);

/*
 * Wait until the counters @one and @or_other together have risen by @by since @before.  If @or_other
 * is @one, this counter counts once.  The sum must not rise by more.
 */
void wait_count(struct channel *c, const struct nhcadv_channel_info *before,
		enum nhcadv_channel_counter one, enum nhcadv_channel_counter or_other, uint64_t by,
		const char *what);

/* Read and acknowledge asynchronous events until one of @type arrives. */
void wait_event(enum ibv_event_type type, const char *what);

void start(struct channel *c, uint64_t wr_id, unsigned int flags);

/*
 * Return: the next transfer on rCxt @i of both ends, at offset @at of both memories, in the largest
 * packets that both ends accept.
 */
struct nhcadv_transfer transfer(struct channel *c, uint32_t i, uint32_t at, uint32_t total,
				uint32_t notify);

void post_write(struct channel *c, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t,
		uint64_t wr_id, unsigned int flags);

void post_probe(struct channel *c, const struct nhcadv_transfer *t, uint64_t wr_id,
		uint32_t offset);

void post_packet(struct channel *c, const void *data, uint32_t length, uint64_t cookie,
		 unsigned int flags);

uint8_t pattern(uint32_t seed, uint32_t i);
void paint(uint8_t *p, uint32_t size, uint32_t seed);

/* These bytes must be the pattern of @seed, and 64 bytes on each side must still be 0. */
void check_painted(const uint8_t *p, uint32_t size, uint32_t seed, const char *what);

#endif /* CHANNELS_H */
