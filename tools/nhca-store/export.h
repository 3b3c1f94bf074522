/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nhca-store: an export that a client has opened.
 */
#ifndef STORE_EXPORT_H
#define STORE_EXPORT_H

#include "direct.h"
#include "store.h"

/**
 * struct opened - the export that the client of a connection has opened
 * @export: from the configuration; NULL: none is open
 * @peer:   the client's address, for messages
 * @fd:     the file; -1: none
 * @write:  the client may write
 * @region: the whole pages of the export; NULL: it has none
 * @bytes:  bytes of the region
 * @unit:   unit of direct I/O
 * @block:  the file is a block device
 * @error:  errno of a sync that no STORE_SYNC has reported yet
 * @tail:   bytes after the region, less than STORE_TAIL
 */
struct opened {
	const struct store_export *export;
	const char *peer;
	int fd;
	bool write;
	struct ibv_mr *region;
	uint64_t bytes;
	uint32_t unit;
	bool block;
	int error;
	uint32_t tail;
};

/*
 * Claims the block devices that clients may write, so that this host cannot mount them meanwhile.
 * The claims end with the process.  Also waits until no earlier server writes the files and
 * devices.  If a file is not there or is in use, the function ends the command.
 */
void export_claim(const struct store_config *config);

/* Fills in a reply to STORE_LIST. */
void export_describe(const struct store_export *export, struct store_reply *reply);

/**
 * export_open - open an export, and register it
 * @o: export, peer and write are set
 * @pd: protection domain of the connection
 * @pool: pool of the device
 * @reply: output: the members of a reply to STORE_OPEN, in host byte order
 * Return: 0; an errno: the export is not open.
 */
int export_open(struct opened *o, struct ibv_pd *pd, struct nhcadv_direct_pool *pool,
		struct store_reply *reply);

/*
 * Deregisters and closes the export, if one is open.  All bytes that were acknowledged are durable
 * then, or instance_lost() was called.
 */
void export_close(struct opened *o);

/* The requests STORE_SYNC, STORE_READ_TAIL and STORE_WRITE_TAIL.  Return: 0 or an errno. */
int export_sync(struct opened *o);
int export_read_tail(struct opened *o, struct store_reply *reply);
int export_write_tail(struct opened *o, const uint8_t *data, uint32_t length);

/**
 * export_range - execute STORE_DISCARD or STORE_ZERO
 * @o: the export
 * @op: STORE_DISCARD or STORE_ZERO
 * @unmap: STORE_ZERO: the disk may free the blocks
 * @offset: offset of the range in the region; the function checks the range
 * @bytes: bytes of the range
 *
 * When the function returns 0, a READ of the range does not get earlier bytes any more
 * (STORE_ZERO), and no earlier WRITE changes the range any more.
 * Return: 0 or an errno; EOPNOTSUPP: the file system or disk has no such function.
 */
int export_range(struct opened *o, enum store_op op, bool unmap, uint64_t offset, uint64_t bytes);

#endif /* STORE_EXPORT_H */
