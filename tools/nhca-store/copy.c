// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the client's commands that list and copy.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "direct.h"
#include "store.h"

/* Bytes of a READ or WRITE, and the maximum number in progress */
#define CHUNK		(256u << 10)
#define DEPTH		16
/* Blocks of the pool for --direct */
#define BLOCKS		(DEPTH * CHUNK / 4096)

/**
 * struct copy - a copy in progress
 * @c:      the connection
 * @server: SERVER[:PORT]
 * @name:   name of the export
 * @options: options of the command
 * @session: session of all connections of this copy; see struct store_request
 * @read:   true: from the server (get); false: to the server (put)
 * @fd:     local file
 * @stream: @fd has no offsets (standard input or output, pipe)
 * @offset: byte of the export at which the copy begins
 * @start:  byte of the local file at which the copy begins
 * @length: bytes to copy by RDMA, without the export's tail
 * @buffer: DEPTH * CHUNK bytes; NULL: --direct
 * @mr:     region of @buffer.  With --direct: region of the local file, whose addresses are
 *          offsets from @start
 * @pool:   --direct: pool of @mr
 * @lengths: bytes of the operation in each slot
 * @oldest: slot of the oldest operation in progress
 * @begun:  bytes whose operation was posted
 * @done:   bytes that have been copied
 * @outstanding: operations in progress; they complete in order
 * @lost:   when the connection was lost, ms; 0: the server has answered since then
 * @show:   show the progress
 * @since:  when the copy began, ms
 * @progress: when the progress was shown last, ms
 */
struct copy {
	struct store_client c;
	const char *server;
	const char *name;
	const struct copy_options *options;
	uint64_t session[2];
	bool read;
	int fd;
	bool stream;
	uint64_t offset;
	uint64_t start;
	uint64_t length;
	uint8_t *buffer;
	struct ibv_mr *mr;
	struct nhcadv_direct_pool *pool;
	uint32_t lengths[DEPTH];
	unsigned int oldest;
	uint64_t begun;
	uint64_t done;
	unsigned int outstanding;
	uint64_t lost;
	bool show;
	uint64_t since;
	uint64_t progress;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static void show_progress(struct copy *copy, bool last)
{
	uint64_t now = now_ms(), left;
	double rate;

	if (!copy->show || (!last && now - copy->progress < 200))
		return;
	copy->progress = now;
	rate = copy->done / 1048.576 / (now - copy->since + 1);
	left = rate > 0 ? (copy->length - copy->done) / 1048576 / rate : 0;
	fprintf(stderr, "\r%3u %%  %" PRIu64 " of %" PRIu64 " MiB  %.1f MiB/s",
		copy->length ? (unsigned int)(100 * (double)copy->done / copy->length) : 100,
		copy->done >> 20, copy->length >> 20, rate);
	if (last)
		fputs("                 \n", stderr);
	else
		fprintf(stderr, "  %" PRIu64 ":%02" PRIu64 " left   ", left / 60, left % 60);
}

/* Return: 0, or -1 with errno; EIO: the file ends before the last byte. */
static int move_all(const struct copy *copy, uint8_t *at, size_t length, uint64_t offset)
{
	ssize_t moved;

	while (length) {
		if (copy->read)
			moved = copy->stream ? write(copy->fd, at, length) :
				pwrite(copy->fd, at, length, offset);
		else
			moved = copy->stream ? read(copy->fd, at, length) :
				pread(copy->fd, at, length, offset);
		if (moved < 0 && errno == EINTR)
			continue;
		if (!moved)
			errno = EIO;
		if (moved <= 0)
			return -1;
		at += moved;
		offset += moved;
		length -= moved;
	}
	return 0;
}

/* Posts the operation of a slot, @at bytes after the begin of the copy.  Return: 0 or an errno. */
static int post(struct copy *copy, unsigned int slot, uint64_t at)
{
	uint64_t address = copy->buffer ? (uintptr_t)copy->buffer + (uint64_t)slot * CHUNK : at;

	return client_rdma(&copy->c, copy->read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			   copy->offset + at, address, copy->lengths[slot], copy->mr->lkey, slot);
}

static void use_buffer(struct copy *copy)
{
	if (!copy->buffer && posix_memalign((void **)&copy->buffer, 4096, DEPTH * CHUNK))
		stop(STORE_FAILED, "not enough memory");
	copy->mr = ibv_reg_mr(copy->c.pd, copy->buffer, DEPTH * CHUNK,
			      IBV_ACCESS_LOCAL_WRITE);
	if (!copy->mr)
		stop(STORE_FAILED, "cannot register %u bytes of memory: %s", DEPTH * CHUNK,
		     strerror(errno));
}

/* Registers the local file, so that the device moves bytes between disk and network. */
static void use_file(struct copy *copy)
{
	struct nhcadv_direct_file_attr attr = {
		.fd = copy->fd,
		.offset = copy->start,
		.length = copy->length,
		.access = copy->read ? IBV_ACCESS_LOCAL_WRITE : 0,
	};

	errno = EOPNOTSUPP;
	if (direct_load())
		copy->pool = direct_alloc_pool(copy->c.id->verbs, BLOCKS);
	attr.pool = copy->pool;
	if (attr.pool)
		copy->mr = direct_reg_file(copy->c.pd, &attr);
	if (!copy->mr)
		stop(STORE_FAILED, "--direct: %s",
		     errno == EOPNOTSUPP ? "the local device is not an nhca device, or the file has no direct I/O" :
		     errno == EINVAL ? "offset and length must be multiples of the disk's unit" :
		     strerror(errno));
}

static void register_local(struct copy *copy)
{
	if (copy->length && copy->options->direct)
		use_file(copy);
	else if (copy->length)
		use_buffer(copy);
}

/* Deregisters the local memory or file.  Return: 0 or -1. */
static int deregister_local(struct copy *copy)
{
	int error = 0;

	if (copy->mr && copy->pool && copy->read)
		error = direct_sync(copy->mr);
	if (copy->mr)
		ibv_dereg_mr(copy->mr);
	if (copy->pool)
		direct_free_pool(copy->pool);
	copy->mr = NULL;
	copy->pool = NULL;
	if (error)
		warn("the local disk has failed: %s", strerror(error));
	return error ? -1 : 0;
}

/*
 * Tries to connect again until the time is over.  If the server's instance has changed, bytes that
 * were written may be lost.  Then a put fails, because its input may be a pipe, which cannot be
 * read again.
 * Return: 0, or -1 after a message
 */
static int connect_again(struct copy *copy)
{
	const struct store_reply before = copy->c.open;
	unsigned int delay = 1;

	if (!copy->lost)
		copy->lost = now_ms();
	copy->c.quiet = true;
	for (;;) {
		if (!client_try_connect(&copy->c, copy->server, DEPTH)) {
			if (!client_try_open(&copy->c, copy->name, !copy->read, copy->session))
				break;
			client_drop(&copy->c);
		}
		if (copy->options->timeout != STORE_FOREVER &&
		    now_ms() - copy->lost > copy->options->timeout * 1000ull) {
			warn("%s", copy->c.why);
			return -1;
		}
		sleep(delay);
		delay = client_delay(delay);
	}
	if (client_check_again(&copy->c, &before, !copy->read && copy->done)) {
		warn("%s", copy->c.why);
		return -1;
	}
	copy->c.quiet = false;
	return 0;
}

/*
 * An operation or request has failed.  If the connection is lost and the command has a timeout,
 * connects again and repeats the operations in progress, which is safe: nobody else may write the
 * range, and the server ends the lost connection before it opens the export for the new one.
 * Return: 0, or -1 if the copy has failed.
 */
static int recover(struct copy *copy)
{
	uint64_t at = copy->done;
	unsigned int i, slot;

	if (!copy->c.lost || !copy->options->timeout || deregister_local(copy))
		return -1;
	client_drop(&copy->c);
	if (connect_again(copy))
		return -1;
	register_local(copy);
	for (i = 0; i < copy->outstanding; i++) {
		slot = (copy->oldest + i) % DEPTH;
		if (post(copy, slot, at))
			return -1;
		at += copy->lengths[slot];
	}
	warn("connected again");
	return 0;
}

/* Begins the next operation.  Return: 0 or -1. */
static int begin_next(struct copy *copy)
{
	unsigned int slot = (copy->oldest + copy->outstanding) % DEPTH;
	uint64_t left = copy->length - copy->begun;

	copy->lengths[slot] = left < CHUNK ? left : CHUNK;
	if (copy->buffer && !copy->read &&
	    move_all(copy, copy->buffer + (uint64_t)slot * CHUNK, copy->lengths[slot],
		     copy->start + copy->begun)) {
		warn_errno("cannot read the file");
		return -1;
	}
	copy->outstanding++;
	copy->begun += copy->lengths[slot];
	return post(copy, slot, copy->begun - copy->lengths[slot]) ? recover(copy) : 0;
}

/* Waits for the oldest operation.  Return: 0 or -1. */
static int end_oldest(struct copy *copy)
{
	unsigned int slot = copy->oldest;
	uint64_t wr_id;

	if (client_poll(&copy->c, &wr_id, true) < 0)
		return recover(copy);
	copy->lost = 0;
	copy->oldest = (slot + 1) % DEPTH;
	copy->outstanding--;
	if (copy->read && copy->buffer &&
	    move_all(copy, copy->buffer + (uint64_t)slot * CHUNK, copy->lengths[slot],
		     copy->start + copy->done)) {
		warn_errno("cannot write the file");
		return -1;
	}
	copy->done += copy->lengths[slot];
	show_progress(copy, false);
	return 0;
}

static int copy_region(struct copy *copy)
{
	unsigned int depth = DEPTH;

	if (copy->read && copy->c.reads < DEPTH)
		depth = copy->c.reads;
	copy->since = now_ms();
	while (copy->done < copy->length) {
		if (copy->begun < copy->length && copy->outstanding < depth) {
			if (begin_next(copy))
				return -1;
		} else if (end_oldest(copy)) {
			return -1;
		}
	}
	show_progress(copy, true);
	return 0;
}

/*
 * Sends a request, with @length bytes for STORE_WRITE_TAIL, and repeats it if the connection is
 * lost.
 * Return: as client_call()
 */
static int call(struct copy *copy, enum store_op op, const uint8_t *data, uint32_t length)
{
	int error;

	do {
		copy->c.send->length = htole32(length);
		memcpy(copy->c.send->data, data, length);
		error = client_call(&copy->c, op);
	} while (error == EPROTO && !recover(copy));
	return error;
}

/* Checks the range of the options, and sets the part of it that is in the region. */
static uint64_t set_range(struct copy *copy, uint64_t length)
{
	const struct copy_options *options = copy->options;
	const struct store_reply *open = &copy->c.open;

	if (options->offset > open->size || length > open->size - options->offset)
		stop(STORE_FAILED, "the export has only %" PRIu64 " bytes", open->size);
	copy->offset = options->offset;
	copy->length = 0;
	if (options->offset < open->region)
		copy->length = length < open->region - options->offset ? length :
			open->region - options->offset;
	copy->show = !options->quiet && isatty(STDERR_FILENO);
	return length;
}

/*
 * Copies the part of the range that is in the tail of the export.  The caller has copied the part
 * in the region.  Return: 0 or -1.
 */
static int copy_tail(struct copy *copy, uint64_t length)
{
	const struct store_reply *open = &copy->c.open;
	uint64_t from = copy->offset + copy->length, skip = from - open->region;
	uint64_t rest = length - copy->length;
	uint8_t tail[STORE_TAIL];
	int error;

	if (!rest)
		return 0;
	error = call(copy, STORE_READ_TAIL, NULL, 0);
	if (error || copy->c.recv->length != open->size - open->region) {
		if (error != EPROTO)
			warn("the server cannot read the end of the export: %s", strerror(error));
		return -1;
	}
	memcpy(tail, copy->c.recv->data, open->size - open->region);
	if (move_all(copy, tail + skip, rest, copy->start + copy->length)) {
		warn_errno("cannot %s the file", copy->read ? "write" : "read");
		return -1;
	}
	if (copy->read)
		return 0;
	error = call(copy, STORE_WRITE_TAIL, tail, open->size - open->region);
	if (error && error != EPROTO)
		warn("the server cannot write the end of the export: %s", strerror(error));
	return error ? -1 : 0;
}

/* Return: true if @fd has no offsets. */
static bool is_stream(int fd)
{
	return lseek(fd, 0, SEEK_CUR) < 0;
}

int get(const char *server, const char *name, const char *path, const struct copy_options *options)
{
	bool out = !strcmp(path, "-");
	struct copy copy = {
		.server = server, .name = name, .options = options, .read = true,
	};
	uint64_t length;
	struct stat st;

	client_connect(&copy.c, server, DEPTH);
	client_session(copy.session);
	client_open(&copy.c, name, false, copy.session);
	length = options->length;
	if (length == UINT64_MAX && options->offset <= copy.c.open.size)
		length = copy.c.open.size - options->offset;
	length = set_range(&copy, length);

	copy.fd = out ? STDOUT_FILENO : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (copy.fd < 0 || fstat(copy.fd, &st))
		stop(STORE_FAILED, "%s: %s", path, strerror(errno));
	copy.stream = is_stream(copy.fd);
	if (!out && S_ISREG(st.st_mode) && ftruncate(copy.fd, length))
		stop(STORE_FAILED, "%s: %s", path, strerror(errno));
	if (out && !copy.stream)
		copy.start = lseek(copy.fd, 0, SEEK_CUR);
	register_local(&copy);
	if ((copy.length && copy_region(&copy)) || copy_tail(&copy, length))
		return STORE_FAILED;
	if (deregister_local(&copy))
		return STORE_FAILED;
	client_close(&copy.c);
	free(copy.buffer);
	if (!out && close(copy.fd)) {
		warn_errno("%s", path);
		return STORE_FAILED;
	}
	return 0;
}

/* Return: the number of bytes of the open file, or UINT64_MAX if it is a stream. */
static uint64_t bytes_of(int fd)
{
	struct stat st;
	uint64_t size;

	if (is_stream(fd))
		return UINT64_MAX;
	if (fstat(fd, &st))
		stop(STORE_FAILED, "cannot read the size of the file: %s", strerror(errno));
	if (!S_ISBLK(st.st_mode))
		return st.st_size;
	if (ioctl(fd, BLKGETSIZE64, &size))
		stop(STORE_FAILED, "cannot read the size of the device: %s", strerror(errno));
	return size;
}

int put(const char *path, const char *server, const char *name, const struct copy_options *options)
{
	bool in = !strcmp(path, "-");
	struct copy copy = { .server = server, .name = name, .options = options };
	uint64_t length;
	int error;

	copy.fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (copy.fd < 0)
		stop(STORE_FAILED, "%s: %s", path, strerror(errno));
	length = options->length;
	copy.stream = is_stream(copy.fd);
	if (!copy.stream && in)
		copy.start = lseek(copy.fd, 0, SEEK_CUR);
	if (length == UINT64_MAX)
		length = bytes_of(copy.fd) - (copy.stream ? 0 : copy.start);
	if (length == UINT64_MAX)
		stop(STORE_MISUSED, "input from a pipe needs --length");

	client_connect(&copy.c, server, DEPTH);
	client_session(copy.session);
	client_open(&copy.c, name, true, copy.session);
	set_range(&copy, length);
	register_local(&copy);
	if ((copy.length && copy_region(&copy)) || copy_tail(&copy, length))
		return STORE_FAILED;
	error = call(&copy, STORE_SYNC, NULL, 0);
	if (error) {
		if (error != EPROTO)
			warn("%s: the server cannot write all bytes to its disk: %s", name,
			     strerror(error));
		return STORE_FAILED;
	}
	deregister_local(&copy);
	client_close(&copy.c);
	free(copy.buffer);
	return 0;
}

/* The server may have sent anything as a name. */
static void print_name(const char *name)
{
	char text[STORE_NAME];
	unsigned int i;

	for (i = 0; name[i]; i++)
		text[i] = isgraph((unsigned char)name[i]) ? name[i] : '?';
	text[i] = 0;
	printf("%-24s", text);
}

int list(const char *server)
{
	struct store_client c;
	const struct store_reply *reply;
	uint32_t index;
	int error;

	client_connect(&c, server, 0);
	reply = c.recv;
	for (index = 0;; index++) {
		c.send->index = htole32(index);
		error = client_call(&c, STORE_LIST);
		if (error == ENOENT)
			break;
		if (error)
			return STORE_FAILED;
		print_name(reply->name);
		printf(" %s %s", reply->flags & STORE_F_WRITE ? "rw" : "ro",
		       reply->flags & STORE_F_BLOCK ? "device" : "file  ");
		if (reply->flags & STORE_F_GONE)
			puts(" not available");
		else
			printf(" %20" PRIu64 "\n", reply->size);
	}
	client_close(&c);
	return 0;
}
