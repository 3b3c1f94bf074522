/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated network, clock and adapter for libnhcamsg, the library of reliable messages.  The
 * files msg_*.c of the library run unchanged, except msg_clock.c: the simulator has its own clock
 * and random numbers.
 *
 *	sim_net.c	clock, events, random numbers, links between devices
 *	sim_adapter.c	channels with rCxts, tid rules and FIFOs, a model of
 *			drivers/infiniband/sw/nhca/rcxt
 *	sim_rcxt.c	the pool of rCxts
 *	sim_third.c	third-party transfers, a model of rcxt/third.c of the driver
 *	sim_zcopy.c	zero-copy references of packets, and notices that wait until the references
 *			are released
 *	sim_verbs.c	the verbs that msg_port.c calls
 *	world.c		endpoints, messages and checks for scenarios and histories
 *	cases.c		one scenario for each fault that has been found
 *	errors.c	scenarios of verbs that fail
 *	buffers.c	scenarios of writes from buffers
 *	history.c	random histories
 *	moves.c		scenarios and random histories of moves; families.c: another scenario
 *
 * All times are in nanoseconds of the simulated clock.  The simulation has one thread, except in
 * the scenario two_threads().
 */
#ifndef MSGSIM_SIM_H
#define MSGSIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/nhcadv.h>
#include <infiniband/nhcadv_msg.h>

#include "../../../userspace/libnhcamsg/list.h"

#define SIM_MS		UINT64_C(1000000)
#define SIM_DEVICES	2100
#define SIM_PAYLOAD	9216

/* ---- sim_net.c ---- */

enum sim_kind {
	SIM_PACKET = 0xc0, SIM_WRITE, SIM_READ_REQUEST, SIM_READ_DATA, SIM_NOTICE, SIM_PROBE,
	SIM_STATUS, SIM_FENCE, SIM_THIRD_REQUEST, SIM_THIRD_WRITE, SIM_HALF_WRITE = 0xcc,
};

/*
 * The zero-copy reference of one packet of a write to its payload. The packet holds the reference
 * until it arrives or is lost, as a real packet does on a veth pair.
 */
struct sim_zcopy {
	struct list_node node;		/* in sim_channel.zcopies, oldest first */
	struct sim_channel *ch;		/* NULL: no channel waits for the release */
	uint32_t refs, length;		/* references; bytes of the payload */
	uint64_t seq;			/* number of the reference in its channel */
	const uint8_t *bytes;
};

/* One datagram; the fields from @job on are those of RXETH. */
struct sim_packet {
	struct sim_zcopy *zcopy;
	enum sim_kind kind;
	union ibv_gid from, to;
	uint32_t qpn, job;
	uint64_t key, src_key, rcxt, src_rcxt, pvo, reply_pvo, cookie;
	uint32_t src_qpn, tid, total, offset, segment, length, have;
	uint8_t notify, status;
	/* third-party transfers; @gid: the target (in a request) or the manager (in payload) */
	union ibv_gid gid;
	uint32_t target_qpn, part, number;
	uint64_t target_key, target_rcxt;
	uint8_t data[];
};

/* Faults on the path from one device to another; *_ppm: packets per million */
struct sim_link {
	uint64_t delay, jitter;		/* minimum delay, and maximum random addition */
	uint32_t loss_ppm, dup_ppm, late_ppm;
	uint64_t late;			/* maximum additional delay of a late packet */
	bool black;			/* all packets are lost */
	bool no_route;			/* no address handle can be created */
};

struct sim_device {
	struct ibv_context context;	/* must be the first member */
	uint32_t host, index;
	union ibv_gid gid;
	uint32_t mtu;
	bool up;
	uint64_t busy_until;		/* time until which its transmitter is busy */
	uint64_t ns_per_byte_256;	/* transmission time of a byte, in 1/256 ns */
	struct sim_rcxt *rcxts;
	uint32_t num_rcxts, free_first, free_count;
	uint32_t *free_ring;
	uint32_t recoveries;
	struct list_head channels;
	uint32_t cq_overflows, ring_overflows, channel_errors;
	bool fences;			/* it supports fences (SIM_FENCE) */
	bool moves;			/* it supports third-party transfers */
	bool parts;			/* it supports half-send writes */
	bool gone;			/* it was removed: no channel can be created */
};

extern struct sim {
	uint64_t now;
	bool real_clock;		/* msg_clock() returns the clock of the host */
	uint64_t rng;			/* state of the random numbers */
	uint64_t packets, lost;		/* statistics */
	uint64_t verbs;			/* number of ibv_poll_cq() calls */
	uint64_t ah_calls;		/* number of ibv_create_ah() calls */
	struct sim_device *devices[SIM_DEVICES];
	uint32_t num_devices;
	/*
	 * Hook of a test for each packet that the link does not lose. The hook may change the
	 * packet. If it returns true, the packet is lost.
	 */
	bool (*tap)(struct sim_packet *packet);
	/*
	 * Errno of the next ibv_destroy_qp() and nhcadv_dereg_job_mem(), or 0.  EIO: the device was
	 * removed, and the kernel has destroyed the object
	 */
	int destroy_err, dereg_err;
	int open_err;		/* errno of the next nhcadv_open_job_mem(), or 0 */
	/* Hook of a test for bytes that a source reads for a third-party transfer */
	void (*reads)(const uint8_t *bytes, uint32_t length);
} sim;

/** sim_reset - free the simulated world, and start another one with a seed */
void sim_reset(uint64_t seed);
uint64_t sim_random(void);
/** sim_below - Return: a random number below @n, or 0 if @n is 0 */
uint64_t sim_below(uint64_t n);
/** sim_chance - Return: true with a probability of @ppm / 1000000 */
bool sim_chance(uint32_t ppm);

typedef void sim_function(void *arg, uint64_t number);
/** sim_at - call @function at a time; events of the same time run in the order of their creation */
void sim_at(uint64_t when, sim_function *function, void *arg, uint64_t number);
/** sim_forget - cancel all events with this @arg */
void sim_forget(void *arg);
/** sim_run - run the events up to @until, and set the clock to @until */
void sim_run(uint64_t until);
/** sim_next_event - Return: time of the next event, or UINT64_MAX */
uint64_t sim_next_event(void);

struct sim_device *sim_device_new(uint32_t host, uint32_t mtu, uint32_t rcxts);
/** sim_device_set_v4 - give a new device an IPv4 address instead of its IPv6 address */
void sim_device_set_v4(struct sim_device *dev);
struct sim_link *sim_link(const struct sim_device *from, const struct sim_device *to);
struct sim_device *sim_device_find(const union ibv_gid *gid);
struct sim_packet *sim_packet_new(enum sim_kind kind, uint32_t length);
void sim_packet_free(struct sim_packet *packet);
/**
 * sim_send - send a packet over the link to its destination; the function owns the packet
 * Return: time at which the transmitter is free again.
 */
uint64_t sim_send(struct sim_device *dev, struct sim_packet *packet);
/** sim_deliver - deliver a packet now, without the network, and free it */
void sim_deliver(struct sim_packet *packet);

/* ---- sim_adapter.c ---- */

enum sim_rcxt_state {
	RC_IDLE, RC_SENDING, RC_WAITING, RC_RELEASING, RC_READING, RC_SINKING, RC_ANSWERING,
	RC_ANSWERED, RC_DONE, RC_VIOLATED, RC_MOVING, RC_FORWARDING, RC_FORWARDED,
};

struct sim_rcxt {
	struct sim_channel *owner;
	uint32_t index, key, tid, total, segment, missing;
	enum sim_rcxt_state state;
	uint64_t pvo, cookie, zcopy, target;
	uint32_t number, parts;		/* for third-party requests only */
	uint64_t map[4];
	uint8_t notify;
	bool noticed;
};

struct sim_wqe {
	uint64_t wr_id;
	enum nhcadv_wc_kind done;	/* kind of its completion */
	enum { WQE_PACKET, WQE_WRITE, WQE_AGAIN, WQE_READ, WQE_CANCEL, WQE_PROBE, WQE_FENCE,
	       WQE_MOVE, WQE_MOVE_AGAIN, WQE_PART } op;
	struct sim_ah *ah;
	uint32_t ah_id, qpn;
	uint64_t key;
	struct nhcadv_transfer t;
	uint32_t target_ah, target_qpn;
	uint64_t target_key, target_rcxt, target_pvo;
	uint32_t offset, length;
	uint8_t data[1984];
};

struct sim_sending {
	struct list_node node;
	bool answer;
	uint64_t wr_id;
	uint32_t index;			/* index of its work request in the send FIFO */
	uint64_t local, from, to, zcopy;
	uint32_t next, left;
	struct sim_packet head;
};

struct sim_cq {
	struct ibv_cq cq;		/* must be the first member */
	struct ibv_wc *entries;
	uint32_t room, first, count;
	bool armed;
};

struct sim_channel {
	struct ibv_qp_ex qpx;		/* must be the first member */
	struct nhcadv_qp_ex dv;
	struct list_node node;
	struct sim_device *dev;
	struct sim_cq *scq, *rcq;
	struct ibv_pd *pd;
	uint32_t job, reason;
	uint64_t key;
	uint64_t drops[NHCADV_CHANNEL_COUNTERS];
	struct sim_wqe *wqes;
	/*
	 * Send FIFO: number of slots, producer index with and without the open batch, next work
	 * request to start, oldest slot in use
	 */
	uint32_t entries, prod, posted, taken, cons;
	int batch_error;		/* errno for ibv_wr_complete() */
	struct list_head sending, zcopies;
	uint64_t zcopy_seq;		/* number of the last zero-copy reference */
	uint32_t releasing;		/* at most this many rCxts are in RC_RELEASING */
	bool zcopy_waits;		/* the next release of a reference kicks the channel */
	bool cancelling;		/* the next work request is a cancel that waits */
	uint64_t cancel_zcopy;		/* number of the last reference that the cancel waits for */
	bool turn_pending;
	union ibv_gid targets[NHCADV_MAX_TARGETS];
	uint32_t num_targets;
	struct nhcadv_frame *frames;
	bool *frame_released;
	uint32_t num_frames, frame_prod, frame_cons;
};

struct sim_zcopy *sim_zcopy_new(struct sim_channel *ch, const uint8_t *bytes, uint32_t length);
/**
 * sim_zcopy_released - Return: true if all references up to @seq are released; otherwise the next
 * release kicks the channel
 */
bool sim_zcopy_released(struct sim_channel *ch, uint64_t seq);
/** sim_zcopy_wait - model the wait of the kernel for all references; it takes no simulated time */
void sim_zcopy_wait(struct sim_channel *ch);
/** sim_zcopy_of - Return: true if a packet refers to one of these bytes */
bool sim_zcopy_of(const uint8_t *bytes, uint32_t length);
void sim_zcopy_put(struct sim_zcopy *z);
/**
 * sim_notice_wait - complete a write whose notice has arrived. The write stays in RC_RELEASING
 * until the references of its packets are released.
 */
void sim_notice_wait(struct sim_channel *ch, struct sim_rcxt *rc);
/** sim_notice_complete - complete the writes in RC_RELEASING whose references are released */
void sim_notice_complete(struct sim_channel *ch);
/**
 * sim_notice_early - Return: true if a status says that a write is complete while packets of it
 * are being sent or still refer to its memory
 */
bool sim_notice_early(struct sim_channel *ch, const struct sim_rcxt *rc,
		      const struct sim_packet *x);
/* ---- sim_third.c ---- */

/** sim_third_take - request a move or again a part of it; Return: 0 or errno of the completion */
int sim_third_take(struct sim_channel *ch, const struct sim_wqe *w);
/** sim_third_request - model of nhca_reply_third(), without tokens */
void sim_third_request(struct sim_channel *ch, const struct sim_packet *x);
/**
 * sim_third_notice - complete a move whose notice has arrived
 * Return: false if the notice belongs to no move of the rCxt
 */
bool sim_third_notice(struct sim_channel *ch, struct sim_rcxt *rc, const struct sim_packet *x);
/** sim_third_tell - send the manager a status: the source sends nothing more of a transfer */
void sim_third_tell(struct sim_channel *ch, const struct sim_packet *head, uint64_t rcxt,
		    uint8_t status);
/** sim_third_allowed - Return: true if the channel may send to the target */
bool sim_third_allowed(const struct sim_channel *ch, const union ibv_gid *gid);

void sim_drop(struct sim_channel *ch, enum nhcadv_channel_counter why);
void sim_complete(struct sim_channel *ch, bool recv, struct ibv_wc wc);
/** sim_rcxt_find - Return: the rCxt of the channel that has this id, or NULL */
struct sim_rcxt *sim_rcxt_find(struct sim_channel *ch, uint64_t id);
void sim_rcxt_begin(struct sim_rcxt *rc, enum sim_rcxt_state state, uint32_t tid, uint32_t total,
		    uint32_t segment, uint8_t notify, uint64_t pvo);
/**
 * sim_rcxt_begin_part - model of nhca_rcxt_begin_part()
 * Return: 0, EBUSY (the rCxt is in use: try again later), or the errno of the completion.
 */
int sim_rcxt_begin_part(struct sim_channel *ch, const struct sim_wqe *w);
bool sim_rcxt_busy(const struct sim_rcxt *rc);
bool sim_rcxt_sends(const struct sim_rcxt *rc, uint32_t tid);
uint32_t sim_packets(uint32_t total, uint32_t segment);
uint32_t sim_segment(const struct sim_device *dev);
struct sim_channel *sim_channel_find(uint32_t qpn);
void sim_channel_show(struct sim_channel *ch);
void sim_channel_hide(struct sim_channel *ch);
void sim_channel_fail(struct sim_channel *ch, uint32_t why);
void sim_channel_kick(struct sim_channel *ch);
void sim_channel_rx(struct sim_channel *ch, const struct sim_packet *p);
int sim_rcxts_acquire(struct sim_channel *ch, uint64_t *ids, uint32_t count);
int sim_rcxts_release(struct sim_channel *ch, const uint64_t *ids, uint32_t count);
void sim_rcxts_release_all(struct sim_channel *ch);
/** sim_recover - nhcadv_recover(): all channels of the device fail and lose their rCxts */
void sim_recover(struct sim_device *dev);

/* ---- sim_verbs.c ---- */

struct sim_ah {
	struct ibv_ah ah;		/* must be the first member */
	uint32_t id;
	union ibv_gid gid;
};

/* Job memory on a host; its index is the upper bits of its PVO */
struct sim_memory {
	struct nhcadv_job_mem mem;	/* must be the first member; all handles point to it */
	uint8_t *bytes;
	uint32_t host, key, handles;
	unsigned int access;
};

/** sim_memories - Return: number of registered regions of all hosts */
uint32_t sim_memories(void);
/** sim_memory_at - Return: the bytes at a PVO, or NULL if memory protection refuses the access */
uint8_t *sim_memory_at(uint32_t host, uint32_t job, uint64_t pvo, uint32_t length,
		       unsigned int access);
struct sim_ah *sim_ah_find(uint32_t id);
void sim_verbs_reset(void);
void sim_cq_add(struct sim_channel *ch, struct sim_cq *cq, const struct ibv_wc *wc);

#endif /* MSGSIM_SIM_H */
