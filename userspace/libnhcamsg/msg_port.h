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

/**
 * struct msg_dest - address of a channel
 * @ah:  address handle of the host
 * @key: key of the channel
 * @qpn: QP number of the channel
 */
struct msg_dest {
	struct msg_ah *ah;
	uint64_t key;
	uint32_t qpn;
};

/*
 * Maximum bytes of a packet of port_part().  A slot of the send FIFO has room for these bytes, for
 * the description of the transfer, and for the largest packet of msg_wire.c.
 */
#define PORT_PART	(NHCADV_FRAME_DATA - NHCADV_PART_HEADER)
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
 * @info:    the channel
 * @info.key: key
 * @info.qpn: QP number
 * @info.segment: current maximum payload of a packet of a transfer, in bytes
 * @announced: @info.segment in the latest grants to peers
 * @gid:     GID of the device
 * @open:    the channel exists
 * @broken:  the channel has failed: close it and open another one
 * @freed:   since the flag was cleared, a slot has become free, or a transfer has ended
 * @fences:  the device supports port_fence()
 * @moves:   the device supports port_move()
 * @parts:   the device supports port_part()
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
	bool parts;
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
 * @kind:   enum port_event_kind
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

/**
 * port_create - create a port without a channel
 * @path:   the device and the address to send from
 * @job:    job id of the channels
 * @frames: slots of the receive FIFO
 * Return: the port; NULL with errno: EOPNOTSUPP (the device is not an nhca device, or has no
 * channels), or an errno of verbs.
 */
struct msg_port *port_create(const struct nhcadv_msg_path *path, uint32_t job, uint32_t frames);

/**
 * port_destroy - free a port
 * @port: the port; port_close() has closed its channel
 */
void port_destroy(struct msg_port *port);

/**
 * port_open - create the channel of a port
 * @port: the port
 * Return: 0; EMSGSIZE: the MTU is too small; or an errno of nhcadv_create_channel() or
 * nhcadv_query_channel().
 */
int port_open(struct msg_port *port);

/**
 * port_close - destroy the channel of a port, if there is one
 * @port: the port
 * Return: 0: no packet of the channel refers to memory any more; or an errno: the channel still
 * exists, and msg_port.broken is set.
 */
int port_close(struct msg_port *port);

/**
 * port_check - query the channel, and update msg_port.broken and msg_port.info.segment
 * @port: the port
 * Return: false if the link is down, or the channel does not exist or is in the error state.
 */
bool port_check(struct msg_port *port);

/**
 * port_acquire - acquire rCxts, all or none
 * @port:  the port
 * @ids:   output: the ids
 * @count: number of rCxts
 * Return: as nhcadv_acquire_rcxts(); EIO: there is no channel.
 */
int port_acquire(struct msg_port *port, uint64_t *ids, uint32_t count);

/**
 * port_release - release rCxts; set msg_port.broken if the kernel refuses
 * @port:  the port
 * @ids:   ids of the rCxts
 * @count: number of rCxts
 */
void port_release(struct msg_port *port, const uint64_t *ids, uint32_t count);

/**
 * port_ah - create an address handle
 * @port: the port
 * @gid:  GID of the host
 * Return: the handle; NULL: the host is unreachable, or there is no memory.
 */
struct msg_ah *port_ah(struct msg_port *port, const union ibv_gid *gid);

/**
 * port_ah_free - destroy an address handle after the work requests that name it are done
 * @ah: the handle, or NULL
 */
void port_ah_free(struct msg_ah *ah);

/**
 * port_reg - register job memory
 * @port:   the port
 * @job:    job id
 * @addr:   first byte
 * @length: number of bytes
 * @access: IBV_ACCESS_*, as for nhcadv_reg_job_mem()
 * Return: as nhcadv_reg_job_mem().
 */
struct nhcadv_job_mem *port_reg(struct msg_port *port, uint32_t job, void *addr, size_t length,
				unsigned int access);

/**
 * port_reg_again - open a handle of memory of another port
 * @port: the port
 * @mem:  a handle of the memory
 * Return: as nhcadv_open_job_mem().
 */
struct nhcadv_job_mem *port_reg_again(struct msg_port *port, const struct nhcadv_job_mem *mem);

/**
 * port_dereg - close a handle; the call may wait: see nhcadv_dereg_job_mem()
 * @mem: the handle
 * Return: 0; an errno: the handle is still open.
 */
int port_dereg(struct nhcadv_job_mem *mem);

/**
 * port_room - test whether the send FIFO has room; each caller tests this before it posts
 * @port: the port
 * @n:    number of work requests
 * Return: true if there is room for @n work requests.
 */
static inline bool port_room(const struct msg_port *port, uint32_t n)
{
	return port->open && !port->broken &&
	       port->slots - (port->fifo.next - port->fifo.first) >= n;
}

/**
 * port_may_begin - test whether another transfer may start
 * @port: the port
 * Return: true if the CQ has room for the completion of one more transfer.
 */
static inline bool port_may_begin(const struct msg_port *port)
{
	return port->transfers < PORT_TRANSFERS;
}

/**
 * port_begun - count a transfer that starts
 * @port: the port
 */
static inline void port_begun(struct msg_port *port)
{
	port->transfers++;
}

/**
 * port_ended - count a transfer that has ended
 * @port: the port
 */
static inline void port_ended(struct msg_port *port)
{
	port->transfers--;
	port->freed = true;
}

/**
 * port_write - post a write; port_flush() rings the doorbell
 * @port:  the port
 * @wr_id: wr_id of the work request
 * @dest:  channel of the peer
 * @t:     the transfer
 */
void port_write(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);

/**
 * port_rewrite - post the retransmission of a part of a write
 * @port:   the port
 * @wr_id:  wr_id of the work request
 * @dest:   channel of the peer
 * @t:      the transfer
 * @offset: first byte of the part
 * @length: bytes of the part
 */
void port_rewrite(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		  const struct nhcadv_transfer *t, uint32_t offset, uint32_t length);

/**
 * port_part - post one packet of a write, whose bytes the work request contains
 * @port:   the port; msg_port.parts is set
 * @wr_id:  wr_id of the work request, which is the same for all packets of a write
 * @dest:   channel of the peer
 * @t:      the transfer, whose segment is at most PORT_PART
 * @offset: first byte of the packet in the transfer
 * @num:    number of buffers
 * @bufs:   the buffers, which together have the bytes of the packet
 */
void port_part(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t, uint32_t offset, uint32_t num,
	       const struct ibv_data_buf *bufs);

/**
 * port_read - post a read
 * @port:  the port
 * @wr_id: wr_id of the work request
 * @dest:  channel of the peer
 * @t:     the transfer
 */
void port_read(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct nhcadv_transfer *t);

/**
 * port_cancel - post a cancel of the transfers of a local rCxt
 * @port:       the port
 * @wr_id:      wr_id of the work request
 * @local_rcxt: the rCxt
 * @tid:        transfers with this tid and lower ones are cancelled
 */
void port_cancel(struct msg_port *port, uint64_t wr_id, uint64_t local_rcxt, uint32_t tid);

/**
 * port_probe - post a probe of an rCxt; the answer is a status frame with the cookie of @t
 * @port:  the port
 * @wr_id: wr_id of the work request
 * @dest:  channel that owns the rCxt @t->remote_rcxt
 * @t:     the transfer
 */
void port_probe(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		const struct nhcadv_transfer *t);

/**
 * port_fence - post a request that the kernel of the peer drops packets to an rCxt
 * @port:        the port
 * @wr_id:       wr_id of the work request, and cookie of the answer
 * @dest:        channel of the peer
 * @remote_rcxt: the rCxt
 * @local_rcxt:  local rCxt that the answer, a status frame, names
 * @tid:         packets with this tid and lower ones are dropped
 */
void port_fence(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid);

/**
 * port_move - post the request of a third-party transfer, or of a part of one
 * @port:   the port
 * @wr_id:  wr_id of the work request
 * @dest:   channel of the source
 * @target: channel of the target; its address handle belongs to @port
 * @rcxt:   rCxt of the target
 * @pvo:    PVO of the first byte at the target
 * @t:      the transfer
 * @again:  request only @length bytes from @offset on
 * @offset: first byte of the part
 * @length: bytes of the part
 */
void port_move(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
	       const struct msg_dest *target, uint64_t rcxt, uint64_t pvo,
	       const struct nhcadv_transfer *t, bool again, uint32_t offset, uint32_t length);

/**
 * port_allow - allow a target of third-party transfers
 * @port: the port
 * @ah:   address handle of the target
 * Return: as nhcadv_allow_target().
 */
int port_allow(struct msg_port *port, const struct msg_ah *ah);

/**
 * port_revoke - revoke a target; set msg_port.broken if the kernel refuses
 * @port: the port
 * @ah:   address handle of the target
 */
void port_revoke(struct msg_port *port, const struct msg_ah *ah);

/**
 * port_packet - post a packet for the receive FIFO of the peer
 * @port:          the port
 * @wr_id:         wr_id of the work request
 * @dest:          channel of the peer
 * @header:        first part of the payload
 * @header_length: bytes of @header
 * @data:          second part of the payload, or NULL
 * @length:        bytes of @data
 */
void port_packet(struct msg_port *port, uint64_t wr_id, const struct msg_dest *dest,
		 const void *header, uint32_t header_length, const void *data, uint32_t length);

/**
 * port_flush - ring the doorbell for all posted work requests; set msg_port.broken on failure
 * @port: the port
 */
void port_flush(struct msg_port *port);

/**
 * port_poll - flush, and poll both CQs
 * @port:   the port
 * @events: output: the events
 * @num:    maximum number of events
 * Return: number of events.
 */
int port_poll(struct msg_port *port, struct port_event *events, int num);

/**
 * port_frame_done - release the frame of an event
 * @port:  the port
 * @event: the event
 */
void port_frame_done(struct msg_port *port, const struct port_event *event);

/**
 * port_fd - get the file descriptor of the events of both CQs
 * @port: the port
 * Return: the file descriptor; it is readable when an event has come after port_arm().
 */
int port_fd(const struct msg_port *port);

/**
 * port_arm - request an event of both CQs
 * @port: the port
 */
void port_arm(struct msg_port *port);

/**
 * port_disarm - read all events from the file descriptor of a port
 * @port: the port
 */
void port_disarm(struct msg_port *port);

/**
 * msg_clock - read the monotonic clock
 * Return: nanoseconds.
 */
uint64_t msg_clock(void);

/**
 * msg_random - get a random number, which can identify an endpoint on any host
 * Return: the number.
 */
uint64_t msg_random(void);

#endif /* NHCA_MSG_PORT_H */
