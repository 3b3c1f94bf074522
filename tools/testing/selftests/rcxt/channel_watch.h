/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of tests that send forged or replayed packets to a channel: memory with a pattern and
 * guards on both sides of the registered region, counters of channel and device, and calls of
 * rcxt_forge and rcxt_replay.
 */
#ifndef CHANNEL_WATCH_H
#define CHANNEL_WATCH_H

#include <fcntl.h>
#include <sys/mman.h>

#include "channels.h"

#define GUARD		(64u << 10)
#define REGION		(3u << 20)
#define WATCHED		(REGION + 2 * GUARD)
#define DROPS		(NHCADV_CHALLENGED + 1)
#define QUIET_US	50000

/* Counters of packets that the device drops before they reach a channel */
enum device_drop { NO_QP, BAD_LENGTH, TOO_SHORT, BAD_OPCODE, BAD_VERSION, BAD_ICRC, BAD_ADDR,
		   DEVICE_DROPS };

/*
 * Counters of the channel (index: enum nhcadv_channel_counter) and of the device.  Those before
 * NHCADV_DROP_FIFO count sent and received packets and bytes.
 */
struct drops {
	uint64_t channel[DROPS], device[DEVICE_DROPS];
};

extern const char * const drop_names[DROPS];
extern uint8_t *memory;			/* WATCHED bytes, shared by all forked processes */

void memory_make(void);
void memory_paint(uint32_t seed);
void memory_same(uint32_t seed, uint32_t from, uint32_t size, const char *what);
bool memory_changed(uint32_t seed, uint32_t size);
struct nhcadv_job_mem *memory_register(uint32_t of_job);
struct drops drops_now(struct channel *c, const struct drops *before);
uint64_t drops_sum(const struct drops *d);
void drops_print(const struct drops *d, const char *what);
struct drops drops_wait(struct channel *c, const struct drops *before, uint64_t count,
			const char *what);
void drops_are(struct channel *c, const struct drops *before, const struct drops *right,
	       const char *what);
void netdev_mac(const char *netdev, char *mac, size_t size);
uint64_t thrown(const char *command, const char *format);

#endif /* CHANNEL_WATCH_H */
