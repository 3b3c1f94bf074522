/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A part of late_reads.c: options, the two devices, the capture, and counts for both kinds of
 * traffic.
 */
#ifndef LATE_READS_H
#define LATE_READS_H

#include <fcntl.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>

#include "peers.h"

#define LONGEST		65536
#define SHORTEST	257
#define COPIED		4096	/* the driver copies RC messages of up to this length */
#define SLOT		(LONGEST + 8192)	/* a message may begin anywhere in its first page */
/* An overwritten byte is POISON + enum ending.  Bytes of posted messages are less than POISON. */
#define POISON		0x80
#define POISON_RUN	32			/* equal bytes; no header has such a run */
#define TOP_BITS	0x8080808080808080ULL
#define FRAME_ROOM	(72 * 1024)

/* One of the two devices; the sender has index 0 */
struct side {
	const char *name;
	int gid_index;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct hello hello;
};

struct options {
	uint64_t overwrites;	/* buffers to overwrite in total */
	uint32_t settle_ms;	/* from the last overwrite of a batch to its check */
	uint32_t timeout;	/* local ACK timeout (exponent), except for the ending RETRY */
	const char *capture;	/* NETNS:NETDEV, or NULL */
	bool early;		/* overwrite before the completion */
	bool channels;
};

struct seen {
	uint64_t overwrites, bytes;
	uint64_t completed;	/* messages whose receive completed at the peer */
	uint64_t late_peer;	/* bytes in the peer's memory that were never posted */
	uint64_t torn;		/* messages that completed at the peer with wrong bytes */
	uint64_t by_ending[32], late_by_ending[32], frames_by_ending[32];
};

struct capture {
	pthread_t thread;
	int fd;
	uint64_t frames, bytes, late, lost;
	bool ready, stop;
};

extern struct options opt;
extern struct side sides[2];
extern struct seen seen;
extern struct capture capture;

struct side *side_select(int which);
void side_open(struct side *s);
uint64_t count_poison(const uint8_t *p, size_t size);
void overwrite(uint8_t *p, uint32_t length, int ending);
void late_at_peer(uint64_t bytes, int ending);
void capture_begin(void);
void capture_end(void);
void parse(int argc, char **argv);

#endif /* LATE_READS_H */
