/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: a port is a device and its channel.  Only msg_port.c calls verbs.
 * tools/testing/msgsim runs the library over simulated verbs.
 *
 * Context: the caller holds the lock of the endpoint, or no other thread can use the endpoint.  The
 * functions for memory do not need the lock.
 */
#ifndef NHCA_MSG_PORT_H
#define NHCA_MSG_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/nhcadv.h>

#include "nhcadv_msg.h"

struct msg_ah;

/* Address of a channel */
struct msg_dest {
	struct msg_ah *ah;
	uint64_t key;
	uint32_t qpn;
};

/* Maximum number of work requests in a send FIFO */
#define PORT_SLOTS	512
/* Maximum number of transfers in flight: each needs a CQE in addition to its work request's CQE. */
#define PORT_TRANSFERS	1024

/**
 * struct msg_fifo - work requests in the send FIFO of a channel
 * @names: wr_id of each work request, by sequence number modulo PORT_SLOTS
 * @done:  bitmap of work requests that are done
 * @first: sequence number of the oldest work request whose slot is in use
 * @next:  sequence number of the next work request
 *
 * The kernel frees slots in order: a long write blocks the slots of the work requests that were
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
 * @info:    key, QP number and current segment (bytes) of the channel
 * @announced: the segment that grants last reported to peers
 * @gid:     GID of the device
 * @open:    the channel exists
 * @broken:  the channel has failed: close it and open another one
 * @freed:   since the flag was cleared, a slot has become free, or a transfer has ended
 * @fences:  the device supports port_fence()
 * @moves:   the device supports port_move()
 * @fifo:    work requests of the channel
 * @slots:   size of the send FIFO, at most PORT_SLOTS
 * @transfers: number of transfers in flight, at most PORT_TRANSFERS
 * @retry:   time to try to open the channel again
 * @checked: time of the last port_check(); 0: check in the next pass
 * @lost:    NHCADV_DROP_CQ at the last port_check(): completions lost because a CQ was full
 * @recoveries: number of successful port_open() calls, which identifies the present channel
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
	bool moves;
	struct msg_fifo fifo;
	uint32_t slots;
	uint32_t transfers;
	uint64_t retry;
	uint64_t checked;
	uint64_t lost;
	uint32_t recoveries;
};

enum port_event_kind {
	PORT_POSTED,	/* a work request is done; every work request is signaled */
	PORT_WRITE,	/* all bytes of a write are in place at the peer */
	PORT_READ,	/* all bytes of a read are in place here */
	PORT_MOVE,	/* all bytes of a third-party transfer are in place at the target */
	PORT_FRAME,	/* a frame was received */
};

/**
 * struct port_event - one completion
 * @status: PORT_POSTED: 0, EMSGSIZE (packets longer than the MTU allows), or EIO
 * @wr_id:  not PORT_FRAME: wr_id of the work request
 * @index:  PORT_FRAME: index of the frame, for port_frame_done()
 * @frame:  PORT_FRAME: the frame; otherwise NULL
 */
struct port_event {
	enum port_event_kind kind;
	int status;
	uint64_t wr_id;
	uint32_t index;
	const struct nhcadv_frame *frame;
};

/** port_create - create a port without a channel; Return: the port, or NULL with errno */
struct msg_port *port_create(const struct nhcadv_msg_path *path, uint32_t job, uint32_t frames);
/** port_destroy - free a port, after port_close() */
void port_destroy(struct msg_port *port);

/** port_open - create the channel; Return: 0, EMSGSIZE (the MTU is too small) or an errno */
int port_open(struct msg_port *port);
/**
 * port_close - destroy the channel, if any
 * @port: the port
 * Return: 0: none of the channel's packets refers to memory; or an errno: the channel exists, and
 * @broken is set.
 */
int port_close(struct msg_port *port);

/**
 * port_check - query the channel, and set @broken and @info.segment
 * Return: false if the link is down, or the channel does not exist or is in the error state.
 */
bool port_check(struct msg_port *port);

/** port_acquire - acquire rCxts, all or none; Return: as nhcadv_acquire_rcxts() */
int port_acquire(struct msg_port *port, uint64_t *ids, uint32_t count);
/** port_release - release rCxts; set @broken if the kernel refuses */
void port_release(struct msg_port *port, const uint64_t *ids, uint32_t count);

/** port_ah - create an address handle; Return: the handle, or NULL (unreachable, or no memory) */
struct msg_ah *port_ah(struct msg_port *port, const union ibv_gid *gid);
/** port_ah_free - free @ah (or NULL), after the work requests that name it are done */
void port_ah_free(struct msg_ah *ah);

/** port_reg - register job memory; Return: as nhcadv_reg_job_mem() */
struct nhcadv_job_mem *port_reg(struct msg_port *port, uint32_t job, void *addr, size_t length,
				unsigned int access);
/** port_reg_again - open a handle of @mem on this port; Return: the handle, or NULL with errno */
struct nhcadv_job_mem *port_reg_again(struct msg_port *port, const struct nhcadv_job_mem *mem);
/**
 * port_dereg - close a handle; the call may wait: see nhcadv_dereg_job_mem()
 * @mem: the handle
 * Return: 0, or an errno: the handle is still open.
 */
int port_dereg(struct nhcadv_job_mem *mem);

/*
 * Return: true if there is room for @n work requests; the caller must check this before it posts.
 */
static inline bool port_room(const struct msg_port *port, uint32_t n)
{
	return port->open && !port->broken &&
	       port->slots - (port->fifo.next - port->fifo.first) >= n;
}

/* Return: true if the CQ has room for the completion of one more transfer */
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

/*
 * Functions that post a work request; port_flush() rings the doorbell.
 * port_rewrite() retransmits @length bytes from @offset on.
 */
void port_write(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);
void port_rewrite(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		  const struct nhcadv_transfer *t, uint32_t offset, uint32_t length);
void port_read(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t);
void port_cancel(struct msg_port *port, uint64_t wr_id, uint64_t local_rcxt, uint32_t tid);
/* The answer is a status frame with the cookie @t->cookie. */
void port_probe(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);
/*
 * Request that the kernel of the peer drops packets to @remote_rcxt up to @tid.  The answer is a
 * status frame of @local_rcxt with the cookie @wr_id.
 */
void port_fence(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid);
/*
 * Third-party transfer from @dest to @target, whose rCxt is @rcxt, and its first byte at @pvo.
 * @again: request only @length bytes from @offset on.  The address handle of @target belongs to
 * @port.
 */
void port_move(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct msg_dest *target, uint64_t rcxt, uint64_t pvo,
	       const struct nhcadv_transfer *t, bool again, uint32_t offset, uint32_t length);
/** port_allow - allow a target of third-party transfers; Return: as nhcadv_allow_target() */
int port_allow(struct msg_port *port, const struct msg_ah *ah);
/** port_revoke - revoke a target; set @broken if the kernel refuses */
void port_revoke(struct msg_port *port, const struct msg_ah *ah);
void port_packet(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		 const void *header, uint32_t header_length, const void *data, uint32_t length);

/** port_flush - ring the doorbell for all posted work requests; set @broken on failure */
void port_flush(struct msg_port *port);

/** port_poll - flush, and poll both CQs; Return: number of events, at most @num */
int port_poll(struct msg_port *port, struct port_event *events, int num);
/** port_frame_done - release the frame of an event */
void port_frame_done(struct msg_port *port, const struct port_event *event);

/** port_fd - Return: a file descriptor that is readable if there is an event after port_arm() */
int port_fd(const struct msg_port *port);
/** port_arm - request an event of both CQs */
void port_arm(struct msg_port *port);
/** port_disarm - read all events from the file descriptor */
void port_disarm(struct msg_port *port);

/** msg_clock - Return: monotonic time in nanoseconds */
uint64_t msg_clock(void);

/** msg_random - Return: a random number of 64 bits, which can identify an endpoint on any host */
uint64_t msg_random(void);

#endif /* NHCA_MSG_PORT_H */
