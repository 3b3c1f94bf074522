// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: an export as a block device of this host, by the kernel's ublk driver.
 *
 * The kernel gives each request of the block device a tag, and copies its bytes from or to the
 * tag's part of a buffer.  A request becomes one READ or WRITE between that part and the export.  A
 * flush becomes a STORE_SYNC.  One io_uring carries the requests, and waits for all other events.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <liburing.h>
#include <linux/ublk_cmd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

#include "store.h"

#define CONTROL		"/dev/ublk-control"
#define TAGS		64
/* Maximum bytes of a request of the block device */
#define REQUEST_BYTES	(256u << 10)

/* ublksrv_ctrl_dev_info.ublksrv_flags of devices of this command */
#define OURS		0x6e68636173746f72

/* The command numbers that kernels since 6.4 expect; older ones expect the plain numbers */
#define CONTROL_READ(number)	_IOR('u', (number), struct ublksrv_ctrl_cmd)
#define CONTROL_WRITE(number)	_IOWR('u', (number), struct ublksrv_ctrl_cmd)
#define IO_WRITE(number)	_IOWR('u', (number), struct ublksrv_io_cmd)

/* Kinds of completions of the io_uring, in the upper half of user_data */
enum kind {
	REQUEST = 1,	/* the kernel has a request for the tag in the lower half */
	CONTROLLED,	/* a control command has ended */
	COMPLETIONS,	/* the CQ has raised its event */
	DISCONNECTED,	/* there is an event of the connection */
	SIGNALED,	/* SIGTERM or SIGINT */
};

enum sync {
	NO_SYNC,
	WAITS,		/* the request waits for a STORE_SYNC that has not begun yet */
	IN_SYNC,	/* the STORE_SYNC in progress is for this request */
};

/**
 * struct attached - the block device
 * @c:      connection to the server
 * @ring:   io_uring
 * @control, @device: /dev/ublk-control and /dev/ublkcN
 * @signals: signalfd
 * @id:     number of the block device
 * @plain:  the kernel expects plain command numbers
 * @requests: requests of the kernel, by tag; the kernel writes them
 * @buffer, @mr: REQUEST_BYTES for each tag
 * @sync:   by tag
 * @pending: by tag: the kernel waits for the end of the request
 * @syncing: a STORE_SYNC is in progress
 * @broken: the connection has failed, so all further requests fail
 * @active: tags whose request or command the kernel has
 * @control_result: of the last control command
 * @controlling: a control command is in progress
 * @stopping: the device is being removed
 */
struct attached {
	struct store_client c;
	struct io_uring ring;
	int control;
	int device;
	int signals;
	uint32_t id;
	bool plain;
	const struct ublksrv_io_desc *requests;
	uint8_t *buffer;
	struct ibv_mr *mr;
	enum sync sync[TAGS];
	bool pending[TAGS];
	bool syncing;
	bool broken;
	unsigned int active;
	int control_result;
	bool controlling;
	bool stopping;
};

static struct io_uring_sqe *entry(struct attached *a, enum kind kind, uint32_t tag)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&a->ring);

	if (!sqe) {
		io_uring_submit(&a->ring);
		sqe = io_uring_get_sqe(&a->ring);
	}
	if (!sqe)
		stop(STORE_FAILED, "io_uring has no free entry");
	/* liburing clears only the first half of an entry of 128 bytes */
	memset(sqe, 0, 2 * sizeof(*sqe));
	io_uring_sqe_set_data64(sqe, (uint64_t)kind << 32 | tag);
	return sqe;
}

static void watch(struct attached *a, enum kind kind, int fd)
{
	struct io_uring_sqe *sqe = entry(a, kind, 0);

	sqe->opcode = IORING_OP_POLL_ADD;
	sqe->fd = fd;
	sqe->poll32_events = POLLIN;
}

static void begin_control(struct attached *a, uint32_t number, void *data, uint16_t length,
			  uint64_t value)
{
	struct io_uring_sqe *sqe = entry(a, CONTROLLED, 0);
	struct ublksrv_ctrl_cmd *cmd = (void *)sqe->cmd;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = a->control;
	sqe->cmd_op = a->plain ? number : number == UBLK_CMD_GET_DEV_INFO ?
		CONTROL_READ(number) : CONTROL_WRITE(number);
	cmd->dev_id = a->id;
	cmd->queue_id = -1;
	cmd->addr = (uintptr_t)data;
	cmd->len = length;
	cmd->data[0] = value;
	a->controlling = true;
}

/* Gives the result of a request to the kernel, and asks for the next request with the tag. */
static void fetch(struct attached *a, uint32_t number, uint32_t tag, int result)
{
	struct io_uring_sqe *sqe = entry(a, REQUEST, tag);
	struct ublksrv_io_cmd *cmd = (void *)sqe->cmd;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = a->device;
	sqe->cmd_op = a->plain ? number : IO_WRITE(number);
	cmd->tag = tag;
	cmd->result = result;
	cmd->addr = (uintptr_t)a->buffer + (uint64_t)tag * REQUEST_BYTES;
}

static void end_request(struct attached *a, uint32_t tag, bool good)
{
	uint32_t bytes = a->requests[tag].nr_sectors << 9;

	a->sync[tag] = NO_SYNC;
	a->pending[tag] = false;
	fetch(a, UBLK_IO_COMMIT_AND_FETCH_REQ, tag, good ? (int)bytes : -EIO);
}

/* The connection has failed: fails all requests, those in progress and all later ones. */
static void break_off(struct attached *a)
{
	uint32_t tag;

	if (a->broken)
		return;
	a->broken = true;
	a->syncing = false;
	/* The queue pair enters the error state, so no READ in progress can change the buffer. */
	rdma_disconnect(a->c.id);
	warn("/dev/ublkb%u: the connection to the server is lost; all I/O fails from now on", a->id);
	for (tag = 0; tag < TAGS; tag++)
		if (a->pending[tag])
			end_request(a, tag, false);
}

/*
 * Begins a STORE_SYNC for all requests that wait for one.  A STORE_SYNC makes durable only bytes
 * that were written before it.  So a request that comes during a STORE_SYNC waits for the next one.
 */
static void sync_next(struct attached *a)
{
	bool any = false;
	uint32_t tag;

	if (a->syncing || a->broken)
		return;
	for (tag = 0; tag < TAGS; tag++) {
		if (a->sync[tag] == WAITS) {
			a->sync[tag] = IN_SYNC;
			any = true;
		}
	}
	if (!any)
		return;
	if (client_send(&a->c, STORE_SYNC))
		break_off(a);
	else
		a->syncing = true;
}

static void end_sync(struct attached *a)
{
	int error = client_reply(&a->c);
	uint32_t tag;

	a->syncing = false;
	if (error == EPROTO) {
		break_off(a);
		return;
	}
	if (error)
		warn("/dev/ublkb%u: the server cannot make written bytes durable: %s", a->id,
		     strerror(error));
	for (tag = 0; tag < TAGS; tag++)
		if (a->sync[tag] == IN_SYNC)
			end_request(a, tag, !error);
	sync_next(a);
}

static void begin_request(struct attached *a, uint32_t tag)
{
	const struct ublksrv_io_desc *request = &a->requests[tag];
	uint8_t op = ublksrv_get_op(request);
	int error = 0;

	a->pending[tag] = true;
	if (a->broken) {
		end_request(a, tag, false);
		return;
	}
	switch (op) {
	case UBLK_IO_OP_READ:
	case UBLK_IO_OP_WRITE:
		error = client_rdma(&a->c, op == UBLK_IO_OP_READ ? IBV_WR_RDMA_READ :
				    IBV_WR_RDMA_WRITE, request->start_sector << 9,
				    (uintptr_t)a->buffer + (uint64_t)tag * REQUEST_BYTES,
				    request->nr_sectors << 9, a->mr->lkey, tag);
		break;
	case UBLK_IO_OP_FLUSH:
		a->sync[tag] = WAITS;
		sync_next(a);
		break;
	default:
		end_request(a, tag, false);
	}
	if (error)
		break_off(a);
}

/* A READ or WRITE has completed.  After a write with FUA a STORE_SYNC makes its bytes durable. */
static void end_rdma(struct attached *a, uint32_t tag)
{
	const struct ublksrv_io_desc *request = &a->requests[tag];

	if (ublksrv_get_op(request) == UBLK_IO_OP_WRITE && request->op_flags & UBLK_IO_F_FUA) {
		a->sync[tag] = WAITS;
		sync_next(a);
	} else {
		end_request(a, tag, true);
	}
}

/* Handles all completions of the queue pair.  Return: false if the connection has failed. */
static bool poll_all(struct attached *a)
{
	uint64_t wr_id;
	int got;

	while ((got = client_poll(&a->c, &wr_id, false)) > 0) {
		if (wr_id < TAGS)
			end_rdma(a, wr_id);
		if (a->syncing && client_replied(&a->c))
			end_sync(a);
		if (a->broken)
			return false;
	}
	return !got;
}

static void handle_completions(struct attached *a)
{
	struct ibv_cq *cq;
	void *context;

	if (a->broken)
		return;
	/* client_call() may have taken the event that the io_uring has seen */
	if (!ibv_get_cq_event(a->c.channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
	} else if (errno != EAGAIN) {
		break_off(a);
		return;
	}
	if (ibv_req_notify_cq(a->c.cq, 0) || !poll_all(a))
		break_off(a);
	else
		watch(a, COMPLETIONS, a->c.channel->fd);
}

static void begin_stop(struct attached *a)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/ublkb%u", a->id);
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0 && errno == EBUSY) {
		warn("%s is in use, for example as a file system; detach it first", path);
		watch(a, SIGNALED, a->signals);
		return;
	}
	if (fd >= 0)
		close(fd);
	a->stopping = true;
	begin_control(a, UBLK_CMD_STOP_DEV, NULL, 0, 0);
}

static void handle_signal(struct attached *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) == sizeof(info) && !a->stopping)
		begin_stop(a);
}

static void handle(struct attached *a, const struct io_uring_cqe *cqe)
{
	uint32_t tag = cqe->user_data;

	switch (cqe->user_data >> 32) {
	case REQUEST:
		if (cqe->res == UBLK_IO_RES_OK)
			begin_request(a, tag);
		else
			a->active--;
		break;
	case CONTROLLED:
		a->controlling = false;
		a->control_result = cqe->res;
		break;
	case COMPLETIONS:
		handle_completions(a);
		break;
	case DISCONNECTED:
		break_off(a);
		break;
	case SIGNALED:
		handle_signal(a);
		break;
	}
}

/* Submits the prepared entries of the io_uring, waits for a completion, and handles all of them. */
static void step(struct attached *a)
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

/* Runs a control command; until it ends, handles requests of the kernel.  Return: 0 or -errno. */
static int control(struct attached *a, uint32_t number, void *data, uint16_t length, uint64_t value)
{
	begin_control(a, number, data, length, value);
	while (a->controlling)
		step(a);
	return a->control_result;
}

static void add_device(struct attached *a)
{
	struct ublksrv_ctrl_dev_info info = {
		.nr_hw_queues = 1,
		.queue_depth = TAGS,
		.max_io_buf_bytes = REQUEST_BYTES,
		.dev_id = -1,
		.ublksrv_pid = getpid(),
		.ublksrv_flags = OURS,
	};
	int error;

	a->id = -1;
	error = control(a, UBLK_CMD_ADD_DEV, &info, sizeof(info), 0);
	if (error == -EOPNOTSUPP || error == -ENODEV) {
		a->plain = true;
		error = control(a, UBLK_CMD_ADD_DEV, &info, sizeof(info), 0);
	}
	if (error < 0)
		stop(STORE_FAILED, "cannot add a ublk device: %s", strerror(-error));
	a->id = info.dev_id;
}

/*
 * If this command is killed, the kernel removes the block device, but keeps its number.  Deletes
 * such numbers of earlier commands.
 */
static void delete_killed(struct attached *a)
{
	struct ublksrv_ctrl_dev_info info;
	uint32_t id = a->id, other;
	glob_t found;
	size_t i;

	if (glob("/dev/ublkc[0-9]*", 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++) {
		other = strtoul(found.gl_pathv[i] + strlen("/dev/ublkc"), NULL, 10);
		if (other == id)
			continue;
		a->id = other;
		if (control(a, UBLK_CMD_GET_DEV_INFO, &info, sizeof(info), 0) >= 0 &&
		    info.state == UBLK_S_DEV_DEAD && info.ublksrv_flags == OURS &&
		    (info.ublksrv_pid <= 0 || (kill(info.ublksrv_pid, 0) && errno == ESRCH)))
			control(a, UBLK_CMD_DEL_DEV, NULL, 0, 0);
	}
	a->id = id;
	globfree(&found);
}

static void set_parameters(struct attached *a, bool read_only)
{
	const struct store_reply *open = &a->c.open;
	unsigned int shift = open->unit ? __builtin_ctz(open->unit) : 0;
	struct ublk_params params = {
		.len = sizeof(params),
		.types = UBLK_PARAM_TYPE_BASIC,
		.basic = {
			.attrs = read_only ? UBLK_ATTR_READ_ONLY :
				UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA,
			.logical_bs_shift = shift < 9 ? 9 : shift > 12 ? 12 : shift,
			.physical_bs_shift = 12,
			.io_min_shift = 12,
			.io_opt_shift = __builtin_ctz(REQUEST_BYTES),
			.max_sectors = REQUEST_BYTES >> 9,
			.dev_sectors = open->region >> 9,
		},
	};
	int error = control(a, UBLK_CMD_SET_PARAMS, &params, sizeof(params), 0);

	if (error < 0)
		stop(STORE_FAILED, "cannot set the size of the ublk device: %s", strerror(-error));
}

/* The device node appears when udev or devtmpfs has handled the new device. */
static void open_device(struct attached *a)
{
	size_t bytes = TAGS * sizeof(struct ublksrv_io_desc);
	char path[32];
	unsigned int tries;
	void *requests;

	snprintf(path, sizeof(path), "/dev/ublkc%u", a->id);
	for (tries = 0; tries < 100; tries++) {
		a->device = open(path, O_RDWR | O_CLOEXEC);
		if (a->device >= 0)
			break;
		usleep(100000);
	}
	if (a->device < 0)
		stop(STORE_FAILED, "%s: %s", path, strerror(errno));
	requests = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, a->device,
			UBLKSRV_CMD_BUF_OFFSET);
	if (requests == MAP_FAILED)
		stop(STORE_FAILED, "%s: cannot map requests: %s", path, strerror(errno));
	a->requests = requests;
}

static void prepare(struct attached *a)
{
	sigset_t signals;
	int error;

	a->control = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (a->control < 0)
		stop(STORE_FAILED, "%s: %s%s", CONTROL, strerror(errno),
		     errno == ENOENT ? " (try: modprobe ublk_drv)" : "");
	error = io_uring_queue_init(2 * TAGS, &a->ring, IORING_SETUP_SQE128);
	if (error)
		stop(STORE_FAILED, "io_uring: %s", strerror(-error));
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	a->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (posix_memalign((void **)&a->buffer, 4096, TAGS * REQUEST_BYTES))
		stop(STORE_FAILED, "not enough memory");
	a->mr = ibv_reg_mr(a->c.pd, a->buffer, TAGS * REQUEST_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!a->mr)
		stop(STORE_FAILED, "cannot register %u bytes of memory: %s", TAGS * REQUEST_BYTES,
		     strerror(errno));
}

int attach(const char *server, const char *name, bool read_only)
{
	struct attached *a = calloc(1, sizeof(*a));
	uint32_t tag;
	int error;

	if (!a)
		stop(STORE_FAILED, "not enough memory");
	client_connect(&a->c, server, TAGS);
	client_open(&a->c, name, !read_only);
	if (!a->c.open.region)
		stop(STORE_FAILED, "%s is shorter than 4096 bytes", name);
	if (a->c.open.region != a->c.open.size)
		warn("the last %u bytes of %s are not part of the block device",
		     (unsigned int)(a->c.open.size - a->c.open.region), name);
	prepare(a);
	add_device(a);
	delete_killed(a);
	set_parameters(a, read_only);
	open_device(a);
	if (fcntl(a->c.channel->fd, F_SETFL, O_NONBLOCK) || ibv_req_notify_cq(a->c.cq, 0))
		stop(STORE_FAILED, "cannot arm the completion queue");
	watch(a, COMPLETIONS, a->c.channel->fd);
	watch(a, DISCONNECTED, a->c.id->channel->fd);
	watch(a, SIGNALED, a->signals);
	for (tag = 0; tag < TAGS; tag++)
		fetch(a, UBLK_IO_FETCH_REQ, tag, 0);
	a->active = TAGS;
	/* This command reads the partition table of the new device. */
	error = control(a, UBLK_CMD_START_DEV, NULL, 0, getpid());
	if (error < 0)
		stop(STORE_FAILED, "cannot start the ublk device: %s", strerror(-error));
	printf("/dev/ublkb%u\n", a->id);
	fflush(stdout);

	while (!a->stopping || a->controlling || a->active)
		step(a);
	error = 0;
	if (!a->broken && !read_only && client_call(&a->c, STORE_SYNC))
		error = STORE_FAILED;
	munmap((void *)a->requests, TAGS * sizeof(struct ublksrv_io_desc));
	close(a->device);
	if (control(a, UBLK_CMD_DEL_DEV, NULL, 0, 0) < 0)
		warn("cannot delete /dev/ublkb%u", a->id);
	io_uring_queue_exit(&a->ring);
	ibv_dereg_mr(a->mr);
	client_close(&a->c);
	free(a->buffer);
	error = a->broken ? STORE_FAILED : error;
	free(a);
	return error;
}
