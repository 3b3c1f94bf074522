// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the export that the client of a connection has opened: its file, region and tail.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "export.h"
#include "instance.h"

/* Reads the size of the open file @fd.  Return: 0 or an errno. */
static int size_of(int fd, uint64_t *size, bool *block)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	*block = S_ISBLK(st.st_mode);
	*size = st.st_size;
	if (*block && ioctl(fd, BLKGETSIZE64, size))
		return errno;
	return *block || S_ISREG(st.st_mode) ? 0 : EINVAL;
}

/* Reads the number of bytes that an export has now.  Return: 0 or an errno. */
static int export_size(const struct store_export *export, int fd, uint64_t *bytes, bool *block)
{
	uint64_t size;
	int error = size_of(fd, &size, block);

	if (error)
		return error;
	if (export->offset > size || export->size > size - export->offset)
		return ENXIO;
	*bytes = export->size ? export->size : size - export->offset;
	return 0;
}

/* Reads the unit of direct I/O.  Return: 0 or an errno. */
static int unit_of(int fd, bool block, uint32_t *unit)
{
	struct statx stx;
	int sector;

	if (block) {
		if (ioctl(fd, BLKSSZGET, &sector))
			return errno;
		*unit = sector;
		return 0;
	}
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx))
		return errno;
	if (!(stx.stx_mask & STATX_DIOALIGN) || !stx.stx_dio_offset_align)
		return EOPNOTSUPP;
	*unit = stx.stx_dio_offset_align;
	return 0;
}

/* Return: true if the block device frees blocks. */
static bool disk_discards(int fd)
{
	char most[32];
	struct stat st;

	return !fstat(fd, &st) &&
		disk_attribute(st.st_rdev, "queue/discard_max_bytes", most, sizeof(most)) &&
		strtoull(most, NULL, 10);
}

void export_describe(const struct store_export *export, struct store_reply *reply)
{
	bool block = false;
	uint64_t size = 0;
	int fd, error;

	memcpy(reply->name, export->name, STORE_NAME);
	fd = open(export->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	error = fd < 0 ? errno : export_size(export, fd, &size, &block);
	if (fd >= 0)
		close(fd);
	if (error)
		warn("%s: %s: %s", export->name, export->path, strerror(error));
	reply->flags = (export->write ? STORE_F_WRITE : 0) | (block ? STORE_F_BLOCK : 0) |
		(error ? STORE_F_GONE : 0);
	reply->size = size;
}

/*
 * Registers the part of the file that consists of whole pages.  The rest, the tail, is read and
 * written by requests.  Its page has no byte of the region, so that the page cache of the tail and
 * direct I/O of the region never write the same page.
 */
static int register_region(struct opened *o, struct ibv_pd *pd, struct nhcadv_direct_pool *pool,
			   uint64_t size)
{
	struct nhcadv_direct_file_attr attr = {
		.pool = pool,
		.fd = o->fd,
		.flags = o->export->sync && o->write ? NHCADV_DIRECT_SYNC : 0,
		.offset = o->export->offset,
		.length = size - size % STORE_TAIL,
		.access = IBV_ACCESS_REMOTE_READ |
			(o->write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0),
	};

	if (o->unit > STORE_TAIL)
		return EOPNOTSUPP;
	if (o->export->offset % STORE_TAIL)
		return EINVAL;
	o->bytes = attr.length;
	o->tail = size % STORE_TAIL;
	if (!attr.length)
		return 0;
	o->region = direct_reg_file(pd, &attr);
	return o->region ? 0 : errno;
}

/*
 * A server holds a shared lock on each file that a client has open for writing.  The lock belongs
 * to the open file, and so does the region.  So after a server was killed, its lock ends when the
 * kernel has written the last bytes that the server's regions have acknowledged.
 * Return: 0 or an errno.
 */
static int lock_file(int fd, int operation)
{
	/* Some file systems have no locks. */
	if (!flock(fd, operation | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	return EBUSY;
}

/* Waits until no earlier server writes the file of the export.  Return: 0 or an errno. */
static int await_earlier(const struct store_export *export)
{
	int fd = open(export->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
	unsigned int tries;

	if (fd < 0)
		return errno;
	/* udev also locks block devices, for a moment */
	for (tries = 0; (error = lock_file(fd, LOCK_EX)) && tries < 300; tries++)
		usleep(100000);
	close(fd);
	return error;
}

/* Return: true if an earlier export than number @count has claimed the device of @st. */
static bool already_claimed(const struct store_config *config, unsigned int count,
			    const struct stat *st)
{
	struct stat other;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (config->exports[i].write && !stat(config->exports[i].path, &other) &&
		    S_ISBLK(other.st_mode) && other.st_rdev == st->st_rdev)
			return true;
	return false;
}

void export_claim(const struct store_config *config)
{
	const struct store_export *export;
	unsigned int i;
	int error;
	struct stat st;

	for (i = 0; i < config->count; i++) {
		export = &config->exports[i];
		if (stat(export->path, &st))
			stop(STORE_FAILED, "%s: %s: %s", export->name, export->path,
			     strerror(errno));
		if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
			stop(STORE_FAILED, "%s: %s is neither a file nor a block device",
			     export->name, export->path);
		error = export->write ? await_earlier(export) : 0;
		if (error)
			stop(STORE_FAILED, "%s: %s: %s", export->name, export->path,
			     error == EBUSY ? "another process has locked the file, perhaps an earlier server" :
			     strerror(error));
		if (S_ISBLK(st.st_mode) && export->write && !already_claimed(config, i, &st) &&
		    open(export->path, O_RDWR | O_EXCL | O_CLOEXEC) < 0)
			stop(STORE_FAILED, "%s: %s: %s", export->name, export->path,
			     errno == EBUSY ? "this host uses the device, for example as a file system" :
			     strerror(errno));
	}
}

/* Return: STORE_F_DISCARD and STORE_F_ZERO, if they work. */
static uint16_t range_flags(const struct opened *o)
{
	struct stat st;

	if (!o->write || !o->region)
		return 0;
	if (o->block)
		return STORE_F_ZERO | (disk_discards(o->fd) ? STORE_F_DISCARD : 0);
	/* After the end of the file there is nothing to free, so this call is only a test. */
	if (fstat(o->fd, &st) ||
	    fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      st.st_size - st.st_size % STORE_TAIL + STORE_TAIL, STORE_TAIL))
		return 0;
	return STORE_F_ZERO | STORE_F_DISCARD;
}

int export_open(struct opened *o, struct ibv_pd *pd, struct nhcadv_direct_pool *pool,
		struct store_reply *reply)
{
	uint64_t size;
	int error;

	o->unit = 0;
	o->error = 0;
	o->fd = open(o->export->path, (o->write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	if (o->fd < 0) {
		warn_errno("%s: %s", o->export->name, o->export->path);
		error = EIO;
		goto failed;
	}
	error = o->write ? lock_file(o->fd, LOCK_SH) : 0;
	if (!error)
		error = export_size(o->export, o->fd, &size, &o->block);
	if (!error)
		error = unit_of(o->fd, o->block, &o->unit);
	if (!error)
		error = register_region(o, pd, pool, size);
	if (error) {
		warn("%s: %s: cannot register: %s", o->peer, o->export->name, strerror(error));
		goto failed;
	}
	reply->flags = (o->write ? STORE_F_WRITE : 0) | (o->block ? STORE_F_BLOCK : 0) |
		(o->write && o->export->sync ? STORE_F_SYNC : 0) | range_flags(o);
	instance_describe(o->export, o->fd, reply);
	reply->rkey = o->region ? o->region->rkey : 0;
	reply->region = o->bytes;
	reply->size = size;
	reply->unit = o->unit;
	warn("%s: %s is open for %s", o->peer, o->export->name, o->write ? "writing" : "reading");
	return 0;

failed:
	export_close(o);
	return error;
}

void export_close(struct opened *o)
{
	if (o->export && o->fd >= 0 && o->write && export_sync(o))
		instance_lost(o->export);
	if (o->region && ibv_dereg_mr(o->region))
		warn_errno("%s: %s: cannot deregister", o->peer, o->export->name);
	o->region = NULL;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	o->export = NULL;
}

int export_sync(struct opened *o)
{
	int error = 0, earlier = o->error;

	if (!o->export || !o->write)
		return EBADF;
	o->error = 0;
	if (o->region)
		error = direct_sync(o->region);
	if (!error)
		error = earlier;
	if (fdatasync(o->fd) && !error)
		error = errno;
	if (error)
		warn("%s: %s: cannot make durable: %s", o->peer, o->export->name, strerror(error));
	return error;
}

int export_read_tail(struct opened *o, struct store_reply *reply)
{
	ssize_t got;

	if (!o->export)
		return EBADF;
	got = pread(o->fd, reply->data, o->tail, o->export->offset + o->bytes);
	if (got < 0)
		return errno;
	if (got != o->tail)
		return EIO;
	reply->length = got;
	return 0;
}

int export_write_tail(struct opened *o, const uint8_t *data, uint32_t length)
{
	ssize_t done;

	if (!o->export || !o->write)
		return EBADF;
	if (length != o->tail)
		return EINVAL;
	done = pwrite(o->fd, data, length, o->export->offset + o->bytes);
	if (done < 0)
		return errno;
	return done == length ? 0 : EIO;
}

static int discard_or_zero(struct opened *o, enum store_op op, bool unmap, uint64_t at,
			   uint64_t bytes)
{
	uint64_t range[2] = { at, bytes };

	if (o->block)
		return ioctl(o->fd, op == STORE_DISCARD ? BLKDISCARD : BLKZEROOUT, range);
	/* A hole also reads as zeros.  Some file systems have no other way to write zeros. */
	if (op == STORE_ZERO && !unmap) {
		if (!fallocate(o->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, at, bytes))
			return 0;
		if (errno != EOPNOTSUPP)
			return -1;
	}
	return fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes);
}

int export_range(struct opened *o, enum store_op op, bool unmap, uint64_t offset, uint64_t bytes)
{
	int error;

	if (!o->export || !o->write)
		return EBADF;
	if (!bytes || offset > o->bytes || bytes > o->bytes - offset)
		return EINVAL;
	if ((offset | bytes) % 512 || offset % o->unit || bytes % o->unit)
		return EINVAL;
	/* First write the earlier bytes of the range that are still in blocks of the pool. */
	error = direct_sync(o->region);
	o->error = error ? error : o->error;
	if (!error && discard_or_zero(o, op, unmap, o->export->offset + offset, bytes))
		error = errno;
	/* With "sync" the client treats the range as durable when the request ends. */
	if (!error && o->export->sync && fdatasync(o->fd))
		error = errno;
	if (error && error != EOPNOTSUPP)
		warn("%s: %s: cannot discard or write zeros: %s", o->peer, o->export->name,
		     strerror(error));
	return error;
}
