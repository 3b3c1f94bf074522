// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the kernel's ublk driver: adds, starts and removes the block device.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>

#include "attach.h"

#define CONTROL		"/dev/ublk-control"

/* ublksrv_ctrl_dev_info.ublksrv_flags of devices of this command */
#define OURS		0x6e68636173746f72

/*
 * Maximum bytes of a DISCARD, and of a WRITE ZEROES.  A disk may have to write the zeros, and
 * flushes wait meanwhile.
 */
#define DISCARD_BYTES	(1u << 30)
#define ZERO_BYTES	(64u << 20)

/* The command numbers that kernels since 6.4 expect; older ones expect the plain numbers */
#define CONTROL_READ(number)	_IOR('u', (number), struct ublksrv_ctrl_cmd)
#define CONTROL_WRITE(number)	_IOWR('u', (number), struct ublksrv_ctrl_cmd)
#define IO_WRITE(number)	_IOWR('u', (number), struct ublksrv_io_cmd)

struct io_uring_sqe *ublk_entry(struct attached *a, enum kind kind, uint32_t tag)
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

void ublk_begin_control(struct attached *a, uint32_t number, void *data, uint16_t length,
			uint64_t value)
{
	struct io_uring_sqe *sqe = ublk_entry(a, CONTROLLED, 0);
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

void ublk_fetch(struct attached *a, uint32_t number, uint32_t tag, int result)
{
	struct io_uring_sqe *sqe = ublk_entry(a, REQUEST, tag);
	struct ublksrv_io_cmd *cmd = (void *)sqe->cmd;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = a->device;
	sqe->cmd_op = a->plain ? number : IO_WRITE(number);
	cmd->tag = tag;
	cmd->result = result;
	cmd->addr = (uintptr_t)a->buffer + (uint64_t)tag * REQUEST_BYTES;
}

/* Runs a control command; until it ends, handles requests of the kernel.  Return: 0 or -errno. */
static int control(struct attached *a, uint32_t number, void *data, uint16_t length, uint64_t value)
{
	ublk_begin_control(a, number, data, length, value);
	while (a->controlling)
		attach_step(a);
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

/* Return: the bytes of the unit of I/O as a power of 2, within what a block device may have. */
static unsigned int unit_shift(uint32_t unit)
{
	unsigned int shift = unit ? __builtin_ctz(unit) : 0;

	return shift < 9 ? 9 : shift > 12 ? 12 : shift;
}

static void set_parameters(struct attached *a, bool read_only)
{
	const struct store_reply *open = &a->c.open;
	bool discard = !read_only && open->flags & STORE_F_DISCARD;
	bool zero = !read_only && open->flags & STORE_F_ZERO;
	struct ublk_params params = {
		.len = sizeof(params),
		.types = UBLK_PARAM_TYPE_BASIC |
			(discard || zero ? UBLK_PARAM_TYPE_DISCARD : 0),
		.basic = {
			.attrs = read_only ? UBLK_ATTR_READ_ONLY :
				UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA,
			.logical_bs_shift = unit_shift(open->unit),
			.physical_bs_shift = 12,
			.io_min_shift = 12,
			.io_opt_shift = __builtin_ctz(REQUEST_BYTES),
			.max_sectors = REQUEST_BYTES >> 9,
			.dev_sectors = open->region >> 9,
		},
		.discard = {
			.discard_granularity = 4096,
			.max_discard_sectors = discard ? DISCARD_BYTES >> 9 : 0,
			.max_write_zeroes_sectors = zero ? ZERO_BYTES >> 9 : 0,
			.max_discard_segments = 1,
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

void ublk_start(struct attached *a, bool read_only)
{
	uint32_t tag;
	int error;

	a->control = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (a->control < 0)
		stop(STORE_FAILED, "%s: %s%s", CONTROL, strerror(errno),
		     errno == ENOENT ? " (try: modprobe ublk_drv)" : "");
	add_device(a);
	delete_killed(a);
	set_parameters(a, read_only);
	open_device(a);
	for (tag = 0; tag < TAGS; tag++)
		ublk_fetch(a, UBLK_IO_FETCH_REQ, tag, 0);
	a->active = TAGS;
	/* During this command the kernel reads the partition table of the new device. */
	error = control(a, UBLK_CMD_START_DEV, NULL, 0, getpid());
	if (error < 0)
		stop(STORE_FAILED, "cannot start the ublk device: %s", strerror(-error));
}

void ublk_delete(struct attached *a)
{
	munmap((void *)a->requests, TAGS * sizeof(struct ublksrv_io_desc));
	close(a->device);
	if (control(a, UBLK_CMD_DEL_DEV, NULL, 0, 0) < 0)
		warn("cannot delete /dev/ublkb%u", a->id);
	close(a->control);
}
