/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: a port is a device and its channel.  All that the messages know of verbs is behind
 * this header.  tools/testing/msgsim runs the library over simulated verbs.
 *
 * Context: all functions are called with the endpoint's lock held.
 */
#ifndef NHCA_MSG_PORT_H
#define NHCA_MSG_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <ccan/list.h>

#include "nhcadv.h"
#include "nhcadv_msg.h"

struct msg_ah;

/* A channel to talk to */
struct msg_dest {
	struct msg_ah *ah;
	uint64_t key;
	uint32_t qpn;
};

/* Work requests in a send FIFO */
#define PORT_SLOTS	512
/* Transfers that may be under way on a port: each has a completion beside that of its work request. */
#define PORT_TRANSFERS	1024

/**
 * struct msg_fifo - the send FIFO of a channel, as the adapter accounts for it
 * @names: wr_id of each work request, by sequence number modulo PORT_SLOTS
 * @done:  a bit for each of them: it has completed
 * @first: sequence number of the oldest one whose slot is in use
 * @next:  sequence number of the next one
 *
 * The adapter frees slots in order: a long write at the front keeps the slots of all that were
 * posted after it, even if these are done.
 */
struct msg_fifo {
	uint64_t names[PORT_SLOTS];
	uint64_t done[PORT_SLOTS / 64];
	uint32_t first;
	uint32_t next;
};

/**
 * struct msg_port - a device and its channel
 * @info:    of the channel
 * @announced: the segment that peers were last told of
 * @gid:     the device's address
 * @open:    the channel exists
 * @broken:  the channel does not work any more: close and open
 * @fifo:    its work requests
 * @slots:   size of its send FIFO, at most PORT_SLOTS
 * @transfers: transfers whose completion may still come, at most PORT_TRANSFERS
 * @freed:   a slot or a transfer has become free since the flag was cleared
 * @fences:  the adapter can fence: port_fence()
 * @retry:   when to try to open it again
 * @checked: when its state was last queried
 * @lost:    completions that its CQs had no room for, at the last query
 * @recoveries: how often it was opened
 */
struct msg_port {
	struct {
		uint64_t key;
		uint32_t qpn;
		uint32_t segment;
	} info;
	uint32_t announced;
	union ibv_gid gid;
	bool open;
	bool broken;
	bool freed;
	bool fences;
	struct msg_fifo fifo;
	uint32_t slots;
	uint32_t transfers;
	uint64_t retry;
	uint64_t checked;
	uint64_t lost;
	uint32_t recoveries;
};

enum port_event_kind {
	PORT_POSTED,	/* a work request is done; all of them say so */
	PORT_WRITE,	/* a write of ours is in place */
	PORT_READ,	/* a read of ours is in place */
	PORT_FRAME,	/* a frame has come */
};

/**
 * struct port_event - one completion
 * @status: PORT_POSTED: 0, EMSGSIZE (packets longer than the MTU allows), or EIO
 * @index, @frame: PORT_FRAME
 */
struct port_event {
	enum port_event_kind kind;
	int status;
	uint64_t wr_id;
	uint32_t index;
	const struct nhcadv_frame *frame;
};

/* NULL and errno; the port has no channel yet. */
struct msg_port *port_create(const struct nhcadv_msg_path *path, uint32_t job, uint32_t frames);
void port_destroy(struct msg_port *port);

int port_open(struct msg_port *port);
void port_close(struct msg_port *port);

/* Look whether the channel still serves and what its packets hold; false: the link is down */
bool port_check(struct msg_port *port);

int port_acquire(struct msg_port *port, uint64_t *ids, uint32_t count);
void port_release(struct msg_port *port, const uint64_t *ids, uint32_t count);

struct msg_ah *port_ah(struct msg_port *port, const union ibv_gid *gid);
/* Frees it when the work requests that name it are done.  @ah may be NULL. */
void port_ah_free(struct msg_ah *ah);

struct nhcadv_job_mem *port_reg(struct msg_port *port, uint32_t job, void *addr, size_t length,
				unsigned int access);
struct nhcadv_job_mem *port_reg_again(struct msg_port *port, const struct nhcadv_job_mem *mem);
void port_dereg(struct nhcadv_job_mem *mem);

/* Is there room for @n work requests?  Posting without is a bug. */
static inline bool port_room(const struct msg_port *port, uint32_t n)
{
	return port->open && !port->broken &&
	       port->slots - (port->fifo.next - port->fifo.first) >= n;
}

/* Is there room for one more transfer's completion? */
static inline bool port_may_begin(const struct msg_port *port)
{
	return port->transfers < PORT_TRANSFERS;
}

static inline void port_begun(struct msg_port *port)
{
	port->transfers++;
}

static inline void port_ended(struct msg_port *port)
{
	port->transfers--;
	port->freed = true;
}

void port_write(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);
void port_rewrite(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		  const struct nhcadv_transfer *t, uint32_t offset, uint32_t length);
void port_read(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t);
void port_cancel(struct msg_port *port, uint64_t wr_id, uint64_t local_rcxt, uint32_t tid);
/* The answer has t->cookie. */
void port_probe(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);
/*
 * The peer's adapter is to refuse what comes for @remote_rcxt up to @tid.  The answer is a status frame
 * of @local_rcxt, with @wr_id as its cookie.
 */
void port_fence(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid);
void port_packet(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		 const void *header, uint32_t header_length, const void *data, uint32_t length);

/* What was posted leaves now, at the latest. */
void port_flush(struct msg_port *port);

/* Sets @broken when it comes upon it. */
int port_poll(struct msg_port *port, struct port_event *events, int num);
void port_frame_done(struct msg_port *port, const struct port_event *event);

/* Readable when there is something to poll for, after port_arm() */
int port_fd(const struct msg_port *port);
void port_arm(struct msg_port *port);
/* Take the events out of the file descriptor. */
void port_disarm(struct msg_port *port);

/* Nanoseconds of a clock that never goes back */
uint64_t msg_clock(void);

/* Different for each endpoint, of whatever host */
uint64_t msg_random(void);

#endif /* NHCA_MSG_PORT_H */
