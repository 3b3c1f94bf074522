/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared declarations of the parts of channel.c. */
#ifndef CHANNEL_SHARED_H
#define CHANNEL_SHARED_H

#include <fcntl.h>
#include <getopt.h>
#include <sys/wait.h>

#include "channels.h"

#define OFF	4099		/* offset of transfers in the memory; not aligned to anything */
#define LENGTH	100003
#define QUIET_MS 200

extern struct channel ch;
extern bool client;		/* this end is the initiator */
extern uint32_t step;

void clear(void);
struct nhcadv_transfer agree(uint32_t i, uint32_t total, uint32_t notify);
uint32_t packets_of(const struct nhcadv_transfer *t);
void write_goes(uint32_t i, uint32_t total, const char *what);
void expect_status(struct channel *c, const struct nhcadv_transfer *t, uint32_t offset,
		   enum nhcadv_transfer_status status, uint32_t from, uint32_t to);
bool have_within(const struct nhcadv_transfer *t, uint32_t have, uint64_t ns);
void dozen(struct nhcadv_transfer *t);
void resend_part(const struct nhcadv_transfer *t, uint64_t wr_id, uint32_t offset, uint32_t length,
		 unsigned int flags);
void fences(void);
void full_cq(void);
void refused(struct nhcadv_transfer *t, enum nhcadv_channel_counter why,
	     enum nhcadv_channel_counter or_why, const char *what);
struct nhcadv_transfer small(void);
void violations(void);
void other_jobs(void);
void bad_requests(void);
void other_users(void);

#endif /* CHANNEL_SHARED_H */
