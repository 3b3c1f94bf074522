// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: an export as a block device of this host, by the kernel's ublk driver.
 *
 * The kernel gives each request of the block device a tag, and copies its bytes from or to the
 * tag's part of a buffer.  A READ or WRITE becomes one RDMA READ or WRITE between that part and the
 * export.  Flushes, DISCARDs and WRITE ZEROES become requests to the server, one at a time.  One
 * io_uring carries the requests of the kernel, and waits for all other events by an epoll.
 *
 * If the connection is lost and the timeout is not 0, requests of the kernel wait, and a thread
 * connects again (reconnect.c).  Then all requests that the kernel waits for are repeated, also
 * those that the server may have executed.  This is safe:
 *
 * - A repeated READ gets the bytes again.  A repeated WRITE, DISCARD or WRITE ZEROES leaves the
 *   same bytes as one.  The kernel gives no order between requests that are in progress at the same
 *   time, and users of the block device do not overwrite a range before an earlier write of it has
 *   ended.  So no request that has ended can lie between the two executions of a repeated one.
 * - The server ends the lost connection before it answers STORE_OPEN of the same session, so the
 *   first execution is over before the second begins.
 * - A repeated flush must also make durable what the server acknowledged before the loss.  The
 *   server makes these bytes durable when it ends the connection.  If the server was killed or its
 *   host has failed, the server cannot know that the bytes are durable, so its instance changes:
 *   the bytes may be gone, as those in the cache of a disk that loses power.  A file system that
 *   goes on without them would become inconsistent, or report a later fsync() as successful.  So
 *   all I/O fails if the instance has changed and acknowledged writes were not flushed.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "attach.h"

/* Events of the epoll */
enum event {
	COMPLETIONS,	/* the CQ has raised its event */
	DISCONNECTED,	/* there is an event of the connection */
	RECONNECTED,	/* the thread that connects has ended */
	TIMEOUT,	/* the connection has been lost for too long */
	SIGNALED,	/* SIGTERM or SIGINT */
};

static void watch(struct attached *a, enum event event, int fd)
{
	struct epoll_event watched = { .events = EPOLLIN, .data.u32 = event };

	if (fd < 0 || epoll_ctl(a->events, EPOLL_CTL_ADD, fd, &watched))
		stop(STORE_FAILED, "cannot wait for events: %s", strerror(errno));
}

/* Makes the io_uring wait for events of the epoll. */
static void wait_for_events(struct attached *a)
{
	struct io_uring_sqe *sqe = ublk_entry(a, EVENTS, 0);

	sqe->opcode = IORING_OP_POLL_ADD;
	sqe->fd = a->events;
	sqe->poll32_events = POLLIN;
}

static void set_timer(struct attached *a, uint32_t seconds)
{
	struct itimerspec after = { .it_value.tv_sec = seconds };

	if (a->timing != !!seconds)
		timerfd_settime(a->timer, 0, &after, NULL);
	a->timing = seconds;
}

/*
 * The server has answered a request, so a later loss of the connection is a new one: reset the
 * delay between attempts to connect, and stop the timer of the last loss.
 */
static void settle(struct attached *a)
{
	a->reconnect.delay = 0;
	set_timer(a, 0);
}

static bool is_write(const struct attached *a, uint32_t tag)
{
	switch (ublksrv_get_op(&a->requests[tag])) {
	case UBLK_IO_OP_WRITE:
	case UBLK_IO_OP_DISCARD:
	case UBLK_IO_OP_WRITE_ZEROES:
		return true;
	}
	return false;
}

static void end_request(struct attached *a, uint32_t tag, int result)
{
	a->wait[tag] = NOTHING;
	ublk_fetch(a, UBLK_IO_COMMIT_AND_FETCH_REQ, tag, result);
}

static void end_good(struct attached *a, uint32_t tag)
{
	uint8_t op = ublksrv_get_op(&a->requests[tag]);

	settle(a);
	end_request(a, tag, op == UBLK_IO_OP_READ || op == UBLK_IO_OP_WRITE ?
		    a->requests[tag].nr_sectors << 9 : 0);
}

static void drop_connection(struct attached *a)
{
	ibv_dereg_mr(a->mr);
	client_drop(&a->c);
	a->calling = false;
}

/* Fails all requests, those in progress and all later ones. */
static void fail(struct attached *a, const char *why)
{
	uint64_t one = 1;
	uint32_t tag;

	if (a->state == FAILED)
		return;
	if (a->state == CONNECTED)
		drop_connection(a);
	a->state = FAILED;
	set_timer(a, 0);
	if (a->connecting && write(a->reconnect.cancel, &one, sizeof(one)) != sizeof(one))
		stop(STORE_FAILED, "cannot end attempts to connect: %s", strerror(errno));
	warn("/dev/ublkb%u: %s; all I/O fails from now on", a->id, why);
	for (tag = 0; tag < TAGS; tag++)
		if (a->wait[tag] != NOTHING)
			end_request(a, tag, -EIO);
}

/*
 * The connection is lost: begins to connect again, or fails all I/O if the timeout is 0.
 * Afterwards a->c must not be used, so callers check a->state.
 */
static void lose(struct attached *a)
{
	struct reconnect *r = &a->reconnect;

	if (a->state != CONNECTED)
		return;
	if (!a->timeout) {
		fail(a, a->c.why);
		return;
	}
	warn("/dev/ublkb%u: the connection is lost: %s", a->id, a->c.why);
	drop_connection(a);
	a->state = CONNECTING;
	if (!a->timing && a->timeout != STORE_FOREVER)
		set_timer(a, a->timeout);
	r->before = a->c.open;
	r->unflushed = a->acknowledged != a->durable;
	a->connecting = true;
	reconnect_start(r);
}

/* Begins a STORE_SYNC for all requests that wait for one.  Return: false if no request does. */
static bool begin_sync(struct attached *a)
{
	bool any = false;
	uint32_t tag;

	for (tag = 0; tag < TAGS; tag++) {
		if (a->wait[tag] == SYNC) {
			a->wait[tag] = IN_SYNC;
			any = true;
		}
	}
	if (!any)
		return false;
	a->ranges_next = true;
	a->syncing = a->acknowledged;
	a->calling = true;
	if (client_send(&a->c, STORE_SYNC))
		lose(a);
	return true;
}

/* Begins the next STORE_DISCARD or STORE_ZERO.  Return: false if no request waits for one. */
static bool begin_range(struct attached *a)
{
	const struct ublksrv_io_desc *request;
	bool discard, unmap;
	uint32_t i, tag;

	for (i = 0; i < TAGS; i++)
		if (a->wait[(a->range_tag + i) % TAGS] == RANGE)
			break;
	if (i == TAGS)
		return false;
	tag = (a->range_tag + i) % TAGS;
	request = &a->requests[tag];
	discard = ublksrv_get_op(request) == UBLK_IO_OP_DISCARD;
	unmap = !discard && !(request->op_flags & UBLK_IO_F_NOUNMAP);
	a->wait[tag] = IN_RANGE;
	a->range_tag = tag + 1;
	a->ranges_next = false;
	a->calling = true;
	a->c.send->flags = htole16(unmap ? STORE_F_UNMAP : 0);
	a->c.send->offset = htole64(request->start_sector << 9);
	a->c.send->bytes = htole64((uint64_t)request->nr_sectors << 9);
	if (client_send(&a->c, discard ? STORE_DISCARD : STORE_ZERO))
		lose(a);
	return true;
}

/*
 * Begins the next request to the server, if none is in progress.  A STORE_SYNC makes durable only
 * bytes that were written before it.  So a flush that comes during a STORE_SYNC waits for the next
 * STORE_SYNC.
 */
static void call_next(struct attached *a)
{
	if (a->calling || a->state != CONNECTED)
		return;
	if (a->ranges_next) {
		if (!begin_range(a))
			begin_sync(a);
	} else if (!begin_sync(a)) {
		begin_range(a);
	}
}

/*
 * A request that writes was acknowledged.  After a write with FUA, a STORE_SYNC makes its bytes
 * durable, unless each acknowledged write is durable (STORE_F_SYNC).
 */
static void end_write(struct attached *a, uint32_t tag)
{
	if (!(a->c.open.flags & STORE_F_SYNC)) {
		if (a->requests[tag].op_flags & UBLK_IO_F_FUA) {
			a->wait[tag] = SYNC;
			call_next(a);
			return;
		}
		a->acknowledged++;
	}
	end_good(a, tag);
}

/* The server has replied to the request of @tag. */
static void end_call_of(struct attached *a, uint32_t tag, int error)
{
	if (!error) {
		if (a->wait[tag] == IN_RANGE)
			end_write(a, tag);
		else
			end_good(a, tag);
		return;
	}
	settle(a);
	/* If a WRITE ZEROES ends with EOPNOTSUPP, the kernel writes the zeros by WRITEs. */
	end_request(a, tag, error == EOPNOTSUPP && a->wait[tag] == IN_RANGE ? -error : -EIO);
}

static void end_call(struct attached *a)
{
	int error = client_reply(&a->c);
	bool sync = a->c.send->op == STORE_SYNC;
	uint32_t tag;

	if (error == EPROTO) {
		lose(a);
		return;
	}
	if (sync && !error)
		a->durable = a->syncing;
	if (error && error != EOPNOTSUPP)
		warn("/dev/ublkb%u: the server cannot %s: %s", a->id, sync ?
		     "make written bytes durable" : "discard or write zeros", strerror(error));
	for (tag = 0; tag < TAGS; tag++)
		if (a->wait[tag] == IN_SYNC || a->wait[tag] == IN_RANGE)
			end_call_of(a, tag, error);
	/* not before the loop, in which call_next() would begin a request and change a->wait[] */
	a->calling = false;
	call_next(a);
}

/* Begins a request of the kernel, or repeats it on another connection. */
static void begin_request(struct attached *a, uint32_t tag)
{
	const struct ublksrv_io_desc *request = &a->requests[tag];
	uint8_t op = ublksrv_get_op(request);

	switch (op) {
	case UBLK_IO_OP_READ:
	case UBLK_IO_OP_WRITE:
		a->wait[tag] = RDMA;
		if (a->state == CONNECTED &&
		    client_rdma(&a->c, op == UBLK_IO_OP_READ ? IBV_WR_RDMA_READ :
				IBV_WR_RDMA_WRITE, request->start_sector << 9,
				(uintptr_t)a->buffer + (uint64_t)tag * REQUEST_BYTES,
				request->nr_sectors << 9, a->mr->lkey, tag))
			lose(a);
		break;
	case UBLK_IO_OP_FLUSH:
		a->wait[tag] = SYNC;
		call_next(a);
		break;
	case UBLK_IO_OP_DISCARD:
	case UBLK_IO_OP_WRITE_ZEROES:
		a->wait[tag] = RANGE;
		call_next(a);
		break;
	default:
		end_request(a, tag, -EOPNOTSUPP);
	}
}

/*
 * An operation has failed, and with it the connection.  If the server has refused a READ or WRITE
 * twice, only this request fails, for example because the disk cannot read a block.  The first
 * refusal may be due to the end of the server, which closes regions before connections.
 */
static void handle_error(struct attached *a)
{
	uint64_t tag = a->c.failed;

	if (!a->c.lost && tag < TAGS && a->wait[tag] == RDMA) {
		a->reconnect.delay = 0;
		if (a->refused[tag]) {
			warn("/dev/ublkb%u: %s of sector %llu failed: %s", a->id,
			     is_write(a, tag) ? "write" : "read",
			     (unsigned long long)a->requests[tag].start_sector, a->c.why);
			settle(a);
			end_request(a, tag, -EIO);
		}
		a->refused[tag] = true;
	}
	lose(a);
}

/* Handles all completions of the queue pair. */
static void poll_all(struct attached *a)
{
	uint64_t wr_id;
	int got;

	while ((got = client_poll(&a->c, &wr_id, false)) > 0) {
		if (wr_id < TAGS) {
			if (is_write(a, wr_id))
				end_write(a, wr_id);
			else
				end_good(a, wr_id);
		} else if (a->calling && client_replied(&a->c)) {
			end_call(a);
		}
		if (a->state != CONNECTED)
			return;
	}
	if (got < 0)
		handle_error(a);
}

static void handle_completions(struct attached *a)
{
	struct ibv_cq *cq;
	void *context;

	/* client_call() may have taken the event */
	if (!ibv_get_cq_event(a->c.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	else if (errno != EAGAIN)
		stop(STORE_FAILED, "cannot get an event: %s", strerror(errno));
	if (ibv_req_notify_cq(a->c.cq, 0))
		stop(STORE_FAILED, "cannot arm the completion queue");
	poll_all(a);
}

/* Uses the connection of a->reconnect, and repeats all requests of the kernel. */
static void use_connection(struct attached *a)
{
	bool any = false;
	uint32_t tag;

	a->c = a->reconnect.c;
	a->mr = a->reconnect.mr;
	a->state = CONNECTED;
	if (fcntl(a->c.channel->fd, F_SETFL, O_NONBLOCK) || ibv_req_notify_cq(a->c.cq, 0))
		stop(STORE_FAILED, "cannot arm the completion queue");
	watch(a, COMPLETIONS, a->c.channel->fd);
	watch(a, DISCONNECTED, a->c.id->channel->fd);
	for (tag = 0; tag < TAGS && a->state == CONNECTED; tag++) {
		if (a->wait[tag] == NOTHING)
			continue;
		any = true;
		begin_request(a, tag);
	}
	if (!any)
		settle(a);
}

/* The thread that connects has ended. */
static void handle_reconnected(struct attached *a)
{
	struct reconnect *r = &a->reconnect;
	uint64_t count;

	if (read(r->done, &count, sizeof(count)) != sizeof(count))
		return;
	pthread_join(r->thread, NULL);
	a->connecting = false;
	if (a->state == CONNECTING && !r->failed) {
		warn("/dev/ublkb%u: connected again", a->id);
		use_connection(a);
	} else if (a->state == CONNECTING) {
		fail(a, r->c.why);
	} else if (!r->failed) {
		ibv_dereg_mr(r->mr);
		client_drop(&r->c);
	}
}

static void begin_stop(struct attached *a)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/ublkb%u", a->id);
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0 && errno == EBUSY) {
		warn("%s is in use, for example as a file system; detach it first", path);
		return;
	}
	if (fd >= 0)
		close(fd);
	a->stopping = true;
	ublk_begin_control(a, UBLK_CMD_STOP_DEV, NULL, 0, 0);
}

/* While the connection is lost, a signal also ends the wait of all I/O. */
static void handle_signal(struct attached *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (a->state == CONNECTING)
		fail(a, "detached while the connection is lost");
	if (a->controlling)
		a->stop_wanted = true;
	else if (!a->stopping)
		begin_stop(a);
}

static void handle_event(struct attached *a, enum event event)
{
	switch (event) {
	case COMPLETIONS:
		handle_completions(a);
		break;
	case DISCONNECTED:
		snprintf(a->c.why, sizeof(a->c.why), "the server has disconnected");
		lose(a);
		break;
	case RECONNECTED:
		handle_reconnected(a);
		break;
	case TIMEOUT:
		fail(a, "the server could not be reached for too long");
		break;
	case SIGNALED:
		handle_signal(a);
		break;
	}
}

/* Gets one event at a time, because its handler may close file descriptors of other events. */
static void handle_events(struct attached *a)
{
	struct epoll_event event;

	while (epoll_wait(a->events, &event, 1, 0) == 1)
		handle_event(a, event.data.u32);
	wait_for_events(a);
}

static void handle(struct attached *a, const struct io_uring_cqe *cqe)
{
	uint32_t tag = cqe->user_data;

	switch (cqe->user_data >> 32) {
	case REQUEST:
		if (cqe->res != UBLK_IO_RES_OK) {
			a->active--;
		} else if (a->state == FAILED) {
			end_request(a, tag, -EIO);
		} else {
			a->refused[tag] = false;
			begin_request(a, tag);
		}
		break;
	case CONTROLLED:
		a->controlling = false;
		a->control_result = cqe->res;
		break;
	case EVENTS:
		handle_events(a);
		break;
	}
}

void attach_step(struct attached *a)
{
	struct io_uring_cqe *cqe, copy;
	int error = io_uring_submit_and_wait(&a->ring, 1);

	if (error < 0 && error != -EINTR)
		stop(STORE_FAILED, "io_uring: %s", strerror(-error));
	while (!io_uring_peek_cqe(&a->ring, &cqe)) {
		copy = *cqe;
		io_uring_cqe_seen(&a->ring, cqe);
		handle(a, &copy);
	}
}

static void prepare(struct attached *a)
{
	sigset_t signals;
	int error;

	/*
	 * The kernel may need the block device to free memory.  So this command must not wait for
	 * its own memory from swap space, nor for the block device when it allocates memory.
	 */
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	error = io_uring_queue_init(2 * TAGS, &a->ring, IORING_SETUP_SQE128);
	if (error)
		stop(STORE_FAILED, "io_uring: %s", strerror(-error));
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	a->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	a->reconnect.done = eventfd(0, EFD_CLOEXEC);
	a->reconnect.cancel = eventfd(0, EFD_CLOEXEC);
	a->events = epoll_create1(EPOLL_CLOEXEC);
	watch(a, SIGNALED, a->signals);
	watch(a, TIMEOUT, a->timer);
	watch(a, RECONNECTED, a->reconnect.done);
	if (posix_memalign((void **)&a->buffer, 4096, TAGS * REQUEST_BYTES))
		stop(STORE_FAILED, "not enough memory");
	a->reconnect.buffer = a->buffer;
}

/* Return: exit status, after the block device was stopped. */
static int finish(struct attached *a)
{
	int status = a->state == FAILED ? STORE_FAILED : 0;

	if (a->state == CONNECTED) {
		if (a->reconnect.write && client_call(&a->c, STORE_SYNC))
			status = STORE_FAILED;
		ibv_dereg_mr(a->mr);
		client_close(&a->c);
		a->state = FAILED;
	} else if (a->state == CONNECTING && a->acknowledged != a->durable) {
		warn("/dev/ublkb%u: the connection was lost before all bytes were durable", a->id);
		status = STORE_FAILED;
	}
	ublk_delete(a);
	/* exit() would free what the thread uses */
	if (a->connecting)
		_exit(status);
	io_uring_queue_exit(&a->ring);
	free(a->buffer);
	free(a);
	return status;
}

int attach(const char *server, const char *name, bool read_only, uint32_t timeout)
{
	struct attached *a = calloc(1, sizeof(*a));
	struct reconnect *r;

	if (!a)
		stop(STORE_FAILED, "not enough memory");
	if (strlen(name) >= STORE_NAME)
		stop(STORE_MISUSED, "a name has at most %u characters: %s", STORE_NAME - 1, name);
	a->timeout = timeout;
	r = &a->reconnect;
	r->server = server;
	r->name = name;
	r->write = !read_only;
	r->c.quiet = true;
	client_session(r->session);
	prepare(a);
	if (reconnect_try(r))
		stop(STORE_FAILED, "%s", r->c.why);
	if (!r->c.open.region)
		stop(STORE_FAILED, "%s is shorter than 4096 bytes", name);
	if (r->c.open.region != r->c.open.size)
		warn("the last %u bytes of %s are not part of the block device",
		     (unsigned int)(r->c.open.size - r->c.open.region), name);
	use_connection(a);
	wait_for_events(a);
	ublk_start(a, read_only);
	printf("/dev/ublkb%u\n", a->id);
	fflush(stdout);
	if (a->stop_wanted)
		begin_stop(a);

	while (!a->stopping || a->controlling || a->active)
		attach_step(a);
	return finish(a);
}
