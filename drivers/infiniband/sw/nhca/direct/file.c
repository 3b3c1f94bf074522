// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of the block layer and of file systems that begin an I/O request or make a file durable.
 *
 * A write must not make a file longer.  The file system does not check this, and another process
 * may truncate the file between a check and the write.  The lock that excludes a truncation is
 * inode->i_rwsem.  The file system takes this lock itself in write_iter(), so a caller that holds
 * the lock may deadlock.  With IOCB_NOWAIT, however, the file system only tries to get the lock, in
 * shared mode for an overwrite.  This attempt cannot deadlock, and the caller may hold the lock in
 * shared mode.  So file_try() holds the lock while it checks the size and begins the write.  A
 * truncation that comes later waits for this direct I/O (inode_dio_wait()), as for any direct I/O.
 *
 * With IOCB_NOWAIT a file system writes only blocks that are allocated and not in the page cache.
 * For other blocks file_prepare() first allocates the blocks and empties the page cache, without a
 * change of the size.  In two cases a write to a regular file is begun without the lock: if the
 * file system still refuses the write (nhca_direct_io.blocking), for example because it writes each
 * block to a new place, and if it does not support IOCB_NOWAIT (FMODE_NOWAIT).  Then a truncation
 * may come between the check and the write, and the write makes the file longer again.
 */
#include <linux/cred.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/pagemap.h>
#include <linux/uio.h>

#include "../compat.h"
#include "store.h"

static void file_complete(struct kiocb *iocb, long ret)
{
	struct nhca_direct_io *io = container_of(iocb, struct nhca_direct_io, iocb);

	/*
	 * the submission has called kiocb_start_write(), but does not call kiocb_end_write() if
	 * write_iter() returns -EIOCBQUEUED, as for this I/O
	 */
	if (nhca_io_writes(io))
		kiocb_end_write(iocb);
	nhca_io_done(io, ret);
}

/* Prepare the kernel's part of an I/O request.  @flags: additional flags of the kiocb */
static void file_iocb(struct nhca_direct_io *io, struct iov_iter *iter, int flags)
{
	struct nhca_store *store = io->store;
	bool write = nhca_io_writes(io);

	io->iocb = (struct kiocb) {
		.ki_filp = store->file,
		.ki_pos = store->base + nhca_io_offset(io),
		.ki_complete = file_complete,
		.ki_flags = IOCB_DIRECT | flags,
	};
	if (write)
		io->iocb.ki_flags |= IOCB_WRITE | (store->sync ? IOCB_DSYNC : 0);
	iov_iter_bvec(iter, write ? ITER_SOURCE : ITER_DEST, io->bvec, io->n, io->bytes);
}

/* Return: true if the file is long enough for an I/O request. */
static bool file_reaches(const struct nhca_direct_io *io)
{
	const struct nhca_store *store = io->store;

	return store->base + nhca_io_offset(io) + io->bytes <=
	       i_size_read(store->file->f_mapping->host);
}

/*
 * Begin a write with IOCB_NOWAIT.
 * @contended: set to true if the file system did not get the lock because another task waits for it
 * Return: as write_iter(); -EIO: the file is too short; -EAGAIN: the file system did not begin the
 * write, because it would have to wait.
 */
static ssize_t file_try(struct nhca_direct_io *io, bool *contended)
{
	struct file *file = io->store->file;
	struct inode *inode = file->f_mapping->host;
	struct iov_iter iter;
	ssize_t ret = -EIO;

	file_iocb(io, &iter, IOCB_NOWAIT);
	*contended = false;
	kiocb_start_write(&io->iocb);
	inode_lock_shared(inode);
	if (file_reaches(io)) {
		/* with IOCB_NOWAIT some file systems refuse a write that has to update the times */
		file_update_time(file);
		ret = file->f_op->write_iter(&io->iocb, &iter);
	}
	if (ret == -EAGAIN) {
		/* a task that waits until the unlock below also makes this trylock fail */
		if (inode_trylock_shared(inode))
			inode_unlock_shared(inode);
		else
			*contended = true;
	}
	inode_unlock_shared(inode);
	if (ret != -EIOCBQUEUED)
		kiocb_end_write(&io->iocb);
	return ret;
}

static ssize_t file_overwrite(struct nhca_direct_io *io)
{
	bool contended;
	ssize_t ret;

	do {
		ret = file_try(io, &contended);
	} while (contended);
	return ret == -EOPNOTSUPP ? -EAGAIN : ret;
}

/*
 * Do for a write what IOCB_NOWAIT forbids: empty the page cache, and allocate blocks and remove
 * set-user-ID bits (both in vfs_fallocate()).  The file does not get longer.
 * Return: 0; -EIO: the file is too short; or an error of filemap_write_and_wait_range() or
 * vfs_fallocate().
 */
static int file_prepare(struct nhca_direct_io *io)
{
	struct file *file = io->store->file;
	loff_t pos = io->store->base + nhca_io_offset(io);
	loff_t last = pos + io->bytes - 1;
	int err;

	if (!file_reaches(io))
		return -EIO;
	err = filemap_write_and_wait_range(file->f_mapping, pos, last);
	if (err)
		return err;
	/* ignore errors: if a page is dirty again, the write fails with -EAGAIN */
	invalidate_inode_pages2_range(file->f_mapping, pos >> PAGE_SHIFT, last >> PAGE_SHIFT);
	err = vfs_fallocate(file, FALLOC_FL_KEEP_SIZE, pos, io->bytes);
	return err == -EOPNOTSUPP ? 0 : err;
}

/* Begin a write.  Return: as write_iter(); -EAGAIN: drain_again() lets the request begin again. */
static ssize_t file_write(struct nhca_direct_io *io)
{
	struct file *file = io->store->file;
	struct iov_iter iter;
	ssize_t ret;

	if (!S_ISBLK(file->f_mapping->host->i_mode) && (file->f_mode & FMODE_NOWAIT) &&
	    !io->blocking) {
		ret = file_overwrite(io);
		if (ret == -EAGAIN)
			ret = file_prepare(io) ?: file_overwrite(io);
		return ret;
	}
	if (!file_reaches(io))
		return -EIO;
	file_iocb(io, &iter, 0);
	return vfs_iocb_iter_write(file, &io->iocb, &iter);
}

static ssize_t file_read(struct nhca_direct_io *io)
{
	struct iov_iter iter;

	file_iocb(io, &iter, 0);
	return vfs_iocb_iter_read(io->store->file, &io->iocb, &iter);
}

void nhca_file_submit(struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;
	const struct cred *old;
	ssize_t ret;

	/* the I/O has the rights of the process that has opened the file */
	old = override_creds(store->file->f_cred);
#ifdef CONFIG_BLK_CGROUP
	kthread_associate_blkcg(store->blkcg);
#endif
	ret = nhca_io_writes(io) ? file_write(io) : file_read(io);
#ifdef CONFIG_BLK_CGROUP
	kthread_associate_blkcg(NULL);
#endif
	revert_creds(old);
	if (ret != -EIOCBQUEUED)
		nhca_io_done(io, ret);
}

int nhca_file_sync(struct nhca_store *store)
{
	const struct cred *old = override_creds(store->file->f_cred);
	int err;

	err = vfs_fsync_range(store->file, store->base, store->base + store->length - 1, 1);
	revert_creds(old);
	return err;
}
