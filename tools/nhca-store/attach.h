/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nhca-store: an attached export: what attach.c (requests of the block device), reconnect.c
 * (another connection after a loss) and ublk.c (the kernel's ublk driver) share.
 */
#ifndef STORE_ATTACH_H
#define STORE_ATTACH_H

#include <pthread.h>

#include <liburing.h>
#include <linux/ublk_cmd.h>

#include "store.h"

#define TAGS		64
/* Maximum bytes of a READ or WRITE of the block device */
#define REQUEST_BYTES	(256u << 10)

/* Kinds of completions of the io_uring, in the upper half of user_data */
enum kind {
	REQUEST = 1,	/* the kernel has a request for the tag in the lower half */
	CONTROLLED,	/* a control command has ended */
	EVENTS,		/* the epoll has events */
};

/**
 * struct reconnect - attempts to connect again, by a thread
 * @server: SERVER[:PORT]
 * @name:   name of the export
 * @write:  open the export for writing
 * @session: session of all connections of the device; see struct store_request
 * @buffer: the buffer of the requests, to register with each connection
 * @delay:  seconds before the next attempt
 * @c:      the connection; valid when the thread has ended and @failed is false
 * @mr:     region of @buffer in the protection domain of @c
 * @failed: the thread has ended without a connection: after @cancel, or because the export has
 *          changed (c.why says how)
 * @before: c.open of the lost connection
 * @unflushed: as in client_check_again()
 * @done:   eventfd: the thread has ended
 * @cancel: eventfd: make no further attempt
 * @thread: the thread
 */
struct reconnect {
	const char *server;
	const char *name;
	bool write;
	uint64_t session[2];
	void *buffer;
	unsigned int delay;
	struct store_client c;
	struct ibv_mr *mr;
	bool failed;
	struct store_reply before;
	bool unflushed;
	int done;
	int cancel;
	pthread_t thread;
};

/* Connects, opens the export and registers the buffer.  Return: 0, or -1 with r->c.why. */
int reconnect_try(struct reconnect *r);

/* Starts the thread, which ends when a connection is there, or after @cancel or @failed. */
void reconnect_start(struct reconnect *r);

/* States of the connection */
enum state {
	CONNECTED,
	CONNECTING,	/* it is lost, and the thread tries to connect again; requests wait */
	FAILED,		/* it is lost, and the device does not connect again: all I/O fails */
};

/* What a request of the block device waits for */
enum wait {
	NOTHING,	/* the kernel has no request with the tag */
	RDMA,		/* completion of its READ or WRITE */
	SYNC,		/* a STORE_SYNC that has not begun yet */
	IN_SYNC,	/* the STORE_SYNC in progress */
	RANGE,		/* its STORE_DISCARD or STORE_ZERO has not begun yet */
	IN_RANGE,	/* its STORE_DISCARD or STORE_ZERO is in progress */
};

/**
 * struct attached - the block device
 * @c:      connection to the server
 * @state:  state of the connection
 * @mr:     region of @buffer
 * @reconnect: the next connection
 * @connecting: the thread of @reconnect runs
 * @timeout: seconds after a loss of the connection until I/O fails; 0: without delay; or
 *          STORE_FOREVER
 * @timer:  timerfd: runs from a loss until the server answers a request
 * @timing: @timer runs
 * @ring:   io_uring
 * @control: file descriptor of /dev/ublk-control
 * @device: file descriptor of /dev/ublkcN
 * @signals: signalfd
 * @events: epoll of all file descriptors but those of the io_uring
 * @id:     number of the block device
 * @plain:  the kernel expects plain command numbers
 * @requests: requests of the kernel, by tag; the kernel writes them
 * @buffer: REQUEST_BYTES for each tag
 * @wait:   by tag: what the request of the kernel waits for
 * @refused: by tag: the server has refused the request once
 * @calling: a request to the server is in progress
 * @ranges_next: the next request to the server is for a range, if one waits
 * @range_tag: the tag from which the search for the next request for a range begins
 * @acknowledged: number of requests of the kernel that write, have succeeded, and are durable only
 *          after a later STORE_SYNC
 * @durable: number of these requests whose bytes were made durable
 * @syncing: value of @acknowledged when the STORE_SYNC in progress began
 * @active: number of tags for which the kernel has not ended the io_uring command
 * @control_result: result of the last control command
 * @controlling: a control command is in progress
 * @stopping: the device is being removed
 * @stop_wanted: a signal came while a control command was in progress
 */
struct attached {
	struct store_client c;
	enum state state;
	struct ibv_mr *mr;
	struct reconnect reconnect;
	bool connecting;
	uint32_t timeout;
	int timer;
	bool timing;
	struct io_uring ring;
	int control;
	int device;
	int signals;
	int events;
	uint32_t id;
	bool plain;
	const struct ublksrv_io_desc *requests;
	uint8_t *buffer;
	enum wait wait[TAGS];
	bool refused[TAGS];
	bool calling;
	bool ranges_next;
	uint32_t range_tag;
	uint64_t acknowledged;
	uint64_t durable;
	uint64_t syncing;
	unsigned int active;
	int control_result;
	bool controlling;
	bool stopping;
	bool stop_wanted;
};

/* attach.c: submits the prepared entries of the io_uring, waits, and handles all completions. */
void attach_step(struct attached *a);

/* ---- ublk.c ---- */

/* Return: a free entry of the io_uring, which the next attach_step() submits. */
struct io_uring_sqe *ublk_entry(struct attached *a, enum kind kind, uint32_t tag);

/* Begins a control command, whose completion is CONTROLLED. */
void ublk_begin_control(struct attached *a, uint32_t number, void *data, uint16_t length,
			uint64_t value);

/* Gives the result of a request to the kernel, and requests the next one with the same tag. */
void ublk_fetch(struct attached *a, uint32_t number, uint32_t tag, int result);

/* Adds the block device, and requests a first request of the kernel for each tag. */
void ublk_start(struct attached *a, bool read_only);

/* Deletes the stopped block device. */
void ublk_delete(struct attached *a);

#endif /* STORE_ATTACH_H */
