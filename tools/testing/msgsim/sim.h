/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated network, clock and adapter for the reliable messages of libnhca.  The files msg_*.c of
 * the library run unchanged; only msg_clock.c, which has the clock and the randomness, is replaced.
 *
 *	sim_net.c	clock, events, random numbers, links between devices
 *	sim_adapter.c	channels as drivers/infiniband/sw/nhca/rcxt has them: rCxts, tid rules, FIFOs
 *	sim_rcxt.c	the pool of rCxts
 *	sim_zcopy.c	references of packets to the bytes of writes, and notices
 *	sim_verbs.c	the verbs that msg_port.c calls
 *	world.c		what scenarios and histories share: endpoints, messages, checks
 *	cases.c		one scenario for each fault that has been found
 *	history.c	random histories
 *
 * All times are in nanoseconds of the simulated clock.
 */
#ifndef MSGSIM_SIM_H
#define MSGSIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <ccan/list.h>

#include <infiniband/nhcadv.h>
#include <infiniband/nhcadv_msg.h>

#define SIM_MS		UINT64_C(1000000)
#define SIM_DEVICES	2100
#define SIM_PAYLOAD	9216

/* ---- sim_net.c ---- */

enum sim_kind {
	SIM_PACKET = 0xc0, SIM_WRITE, SIM_READ_REQUEST, SIM_READ_DATA, SIM_NOTICE, SIM_PROBE,
	SIM_STATUS, SIM_FENCE,
};

/*
 * The bytes of one packet of a write.  The stack refers to them until the packet has arrived or is
 * lost, as with a pair of veths, or a qdisc that delays.
 */
struct sim_zcopy {
	struct list_node node;		/* in the channel's, oldest first */
	struct sim_channel *ch;		/* NULL: nobody waits for it any more */
	uint32_t refs, length;
	uint64_t seq;
	const uint8_t *bytes;
};

/* One datagram; the fields are RXETH's. */
struct sim_packet {
	struct sim_zcopy *zcopy;
	enum sim_kind kind;
	union ibv_gid from, to;
	uint32_t qpn, job;
	uint64_t key, src_key, rcxt, src_rcxt, pvo, reply_pvo, cookie;
	uint32_t src_qpn, tid, total, offset, segment, length, have;
	uint8_t notify, status;
	uint8_t data[];
};

/* What the network does to packets from one device to another; ppm: of a million packets */
struct sim_link {
	uint64_t delay, jitter;
	uint32_t loss_ppm, dup_ppm, late_ppm;
	uint64_t late;			/* how much later a packet of late_ppm comes, at most */
	bool black;
};

struct sim_device {
	struct ibv_context context;	/* first */
	uint32_t host, index;
	union ibv_gid gid;
	uint32_t mtu;
	bool up;
	uint64_t busy_until;		/* its transmitter */
	uint64_t ns_per_byte_256;	/* 1/256 ns */
	struct sim_rcxt *rcxts;
	uint32_t num_rcxts, free_first, free_count;
	uint32_t *free_ring;
	uint32_t recoveries;
	struct list_head channels;
	uint32_t cq_overflows, ring_overflows, channel_errors;
	bool fences;			/* the adapter knows opcode 0xc7 */
	bool gone;			/* it was removed: no channel any more */
};

extern struct sim {
	uint64_t now;
	bool real_clock;		/* msg_clock() is the machine's */
	uint64_t rng;
	uint64_t packets, lost;
	uint64_t verbs;			/* calls of ibv_poll_cq() and the like */
	struct sim_device *devices[SIM_DEVICES];
	uint32_t num_devices;
	/* A test may look at a packet, change it, or say that it is lost: true. */
	bool (*tap)(struct sim_packet *packet);
} sim;

void sim_reset(uint64_t seed);
uint64_t sim_random(void);
/* Return: a number below @n. */
uint64_t sim_below(uint64_t n);
bool sim_chance(uint32_t ppm);

typedef void sim_function(void *arg, uint64_t number);
void sim_at(uint64_t when, sim_function *function, void *arg, uint64_t number);
/* Events that @arg has are no more. */
void sim_forget(void *arg);
/* Runs events up to @until. Return: false if there was none. */
void sim_run(uint64_t until);
uint64_t sim_next_event(void);

struct sim_device *sim_device_new(uint32_t host, uint32_t mtu, uint32_t rcxts);
struct sim_link *sim_link(const struct sim_device *from, const struct sim_device *to);
struct sim_device *sim_device_find(const union ibv_gid *gid);
struct sim_packet *sim_packet_new(enum sim_kind kind, uint32_t length);
void sim_packet_free(struct sim_packet *packet);
/* Takes the packet.  Return: when the transmitter is free again. */
uint64_t sim_send(struct sim_device *dev, struct sim_packet *packet);
/* The same, but at once and without the network's help */
void sim_deliver(struct sim_packet *packet);

/* ---- sim_adapter.c ---- */

enum sim_rcxt_state {
	RC_IDLE, RC_SENDING, RC_WAITING, RC_RELEASING, RC_READING, RC_SINKING, RC_ANSWERING,
	RC_ANSWERED, RC_DONE, RC_VIOLATED,
};

struct sim_rcxt {
	struct sim_channel *owner;
	uint32_t index, key, tid, total, segment, missing;
	enum sim_rcxt_state state;
	uint64_t pvo, cookie, zcopy;
	uint64_t map[4];
	uint8_t notify;
	bool noticed;
};

struct sim_wqe {
	uint64_t wr_id;
	enum nhcadv_wc_kind done;	/* NHCADV_WC_LOCAL */
	enum { WQE_PACKET, WQE_WRITE, WQE_AGAIN, WQE_READ, WQE_CANCEL, WQE_PROBE, WQE_FENCE } op;
	struct sim_ah *ah;
	uint32_t ah_id, qpn;
	uint64_t key;
	struct nhcadv_transfer t;
	uint32_t offset, length;
	uint8_t data[1984];
};

struct sim_sending {
	struct list_node node;
	bool answer;
	uint64_t wr_id;
	uint32_t index;			/* in the send FIFO */
	uint64_t local, from, to, zcopy;
	uint32_t next, left;
	struct sim_packet head;
};

struct sim_cq {
	struct ibv_cq cq;		/* first */
	struct ibv_wc *entries;
	uint32_t room, first, count;
	bool armed;
};

struct sim_channel {
	struct ibv_qp_ex qpx;		/* first */
	struct nhcadv_qp_ex dv;
	struct list_node node;
	struct sim_device *dev;
	struct sim_cq *scq, *rcq;
	struct ibv_pd *pd;
	uint32_t job, reason;
	uint64_t key;
	uint64_t drops[NHCADV_CHANNEL_COUNTERS];
	struct sim_wqe *wqes;
	uint32_t entries, prod, posted, taken, cons;	/* prod: with the batch that is being made */
	int batch_error;
	struct list_head sending, zcopies;
	uint64_t zcopy_seq;
	uint32_t releasing;		/* rCxts that are RC_RELEASING, at most */
	bool zcopy_waits;		/* a release kicks it */
	bool cancelling;		/* the work request that is next has cancelled */
	uint64_t cancel_zcopy;
	bool turn_pending;
	struct nhcadv_frame *frames;
	bool *frame_released;
	uint32_t num_frames, frame_prod, frame_cons;
};

struct sim_zcopy *sim_zcopy_new(struct sim_channel *ch, const uint8_t *bytes, uint32_t length);
/* Are all references up to @seq released?  If not, a release kicks the channel. */
bool sim_zcopy_released(struct sim_channel *ch, uint64_t seq);
/* The kernel waits for the references that the channel has: here nobody sees that time pass. */
void sim_zcopy_wait(struct sim_channel *ch);
/* Does a packet refer to bytes of these? */
bool sim_zcopy_of(const uint8_t *bytes, uint32_t length);
void sim_zcopy_put(struct sim_zcopy *z);
/* The notice to a write has come, and its packets are made: it completes when they are gone. */
void sim_notice_wait(struct sim_channel *ch, struct sim_rcxt *rc);
/* Completes writes that wait. */
void sim_notice_complete(struct sim_channel *ch);
/* Does a status say so too early? */
bool sim_notice_early(struct sim_channel *ch, const struct sim_rcxt *rc,
		      const struct sim_packet *x);
void sim_complete(struct sim_channel *ch, bool recv, struct ibv_wc wc);
/* Return: the channel's rCxt of that id, or NULL. */
struct sim_rcxt *sim_rcxt_find(struct sim_channel *ch, uint64_t id);
void sim_rcxt_begin(struct sim_rcxt *rc, enum sim_rcxt_state state, uint32_t tid, uint32_t total,
		    uint32_t segment, uint8_t notify, uint64_t pvo);
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
/* All channels of the device fail, and have no rCxts any more. */
void sim_recover(struct sim_device *dev);

/* ---- sim_verbs.c ---- */

struct sim_ah {
	struct ibv_ah ah;		/* first */
	uint32_t id;
	union ibv_gid gid;
};

/* Memory of a job on a host, by key of its PVO */
struct sim_memory {
	struct nhcadv_job_mem mem;	/* first; of the first handle */
	uint8_t *bytes;
	uint32_t host, key, handles;
	unsigned int access;
};

/* Return: the bytes, or NULL: not open. */
uint8_t *sim_memory_at(uint32_t host, uint32_t job, uint64_t pvo, uint32_t length,
		       unsigned int access);
struct sim_ah *sim_ah_find(uint32_t id);
void sim_verbs_reset(void);
void sim_cq_add(struct sim_channel *ch, struct sim_cq *cq, const struct ibv_wc *wc);

#endif /* MSGSIM_SIM_H */
