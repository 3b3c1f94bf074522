/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nhca-store: the messages between client and server, and what the files of the command share.
 *
 * A client connects by rdma_cm and sends one request at a time; the server sends one reply to each.
 * STORE_OPEN gives the client the address and the R_Key of a region.  The client then reads and
 * writes the region by RDMA READ and WRITE, without the server's program.  The region belongs to
 * the protection domain of this connection, so its R_Key is of no use to other connections.
 */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define STORE_PORT	"4792"
#define STORE_MAGIC	0x7473686e	/* "nhst" */
#define STORE_VERSION	1
#define STORE_NAME	64		/* bytes of a name, with its final 0 */
#define STORE_TAIL	4096		/* a file's tail is shorter than this */

enum store_op {
	STORE_LIST = 1,		/* describe the export number @index */
	STORE_OPEN = 2,		/* register the export @name for this connection */
	STORE_SYNC = 3,		/* make durable all bytes that were written before the request */
	STORE_READ_TAIL = 4,	/* read the tail of the open export */
	STORE_WRITE_TAIL = 5,	/* write the tail of the open export */
	STORE_DISCARD = 6,	/* the bytes of a range of the region are not needed any more */
	STORE_ZERO = 7,		/* write zeros to a range of the region */
};

enum {
	STORE_F_WRITE = 1 << 0,	/* request: open for writing; reply: the export may be written */
	STORE_F_BLOCK = 1 << 1,	/* reply: the export is a block device */
	STORE_F_GONE = 1 << 2,	/* reply to STORE_LIST: the server cannot open the file */
	STORE_F_SYNC = 1 << 3,	/* reply: bytes are durable when their WRITE is acknowledged */
	STORE_F_DISCARD = 1 << 4,	/* reply: STORE_DISCARD works */
	STORE_F_ZERO = 1 << 5,	/* reply: STORE_ZERO works */
	STORE_F_UNMAP = 1 << 6,	/* request STORE_ZERO: the disk may free the blocks */
};

/**
 * struct store_request - request of a client; all numbers are little endian
 * @magic:   STORE_MAGIC
 * @version: STORE_VERSION
 * @op:      enum store_op
 * @flags:   STORE_OPEN: STORE_F_WRITE or 0; STORE_ZERO: STORE_F_UNMAP or 0
 * @index:   STORE_LIST: number of the export, from 0
 * @length:  STORE_WRITE_TAIL: bytes in @data; the tail's length
 * @session: STORE_OPEN: random number of the client's session, or 0.  Before the server answers, it
 *           ends all other connections that have opened the export with the same number, and all
 *           their bytes are on the disk: no packet of a lost connection can change the export.
 * @offset:  STORE_DISCARD, STORE_ZERO: first byte of a range of the region; a multiple of 512 and
 *           of the unit of I/O
 * @bytes:   STORE_DISCARD, STORE_ZERO: bytes of the range; a multiple of the same units
 * @name:    STORE_OPEN: name of the export, ends with 0
 * @data:    STORE_WRITE_TAIL: the tail; shorter requests end before this member
 */
struct store_request {
	uint32_t magic;
	uint8_t version;
	uint8_t op;
	uint16_t flags;
	uint32_t index;
	uint32_t length;
	uint64_t session[2];
	uint64_t offset;
	uint64_t bytes;
	char name[STORE_NAME];
	uint8_t data[STORE_TAIL];
};

/**
 * struct store_reply - reply to a request; all numbers are little endian
 * @magic:   STORE_MAGIC
 * @version: STORE_VERSION
 * @op:      as in the request
 * @flags:   STORE_LIST, STORE_OPEN: STORE_F_WRITE, STORE_F_BLOCK; STORE_OPEN for writing: also
 *           STORE_F_SYNC, STORE_F_DISCARD, STORE_F_ZERO
 * @error:   0; or an errno of Linux, in which case the members below are 0
 * @rkey:    STORE_OPEN: R_Key of the region
 * @addr:    STORE_OPEN: address of the region's first byte
 * @region:  STORE_OPEN: bytes of the region, a multiple of @unit; 0: there is no region
 * @size:    STORE_LIST, STORE_OPEN: bytes of the export.  The tail follows the region.
 * @identity: STORE_OPEN: a number that differs if the export is another file or disk than before
 * @instance: STORE_OPEN: a number that changes when bytes may be lost that were acknowledged and
 *           not made durable by STORE_SYNC
 * @unit:    STORE_OPEN: unit of I/O, in bytes; RDMA that begins and ends at a multiple of it is
 *           fastest
 * @length:  STORE_READ_TAIL: bytes in @data
 * @name:    STORE_LIST: name of the export, ends with 0
 * @data:    STORE_READ_TAIL: the tail; shorter replies end before this member
 */
struct store_reply {
	uint32_t magic;
	uint8_t version;
	uint8_t op;
	uint16_t flags;
	uint32_t error;
	uint32_t rkey;
	uint64_t addr;
	uint64_t region;
	uint64_t size;
	uint64_t identity;
	uint64_t instance;
	uint32_t unit;
	uint32_t length;
	char name[STORE_NAME];
	uint8_t data[STORE_TAIL];
};

/* ---- all files ---- */

enum {
	STORE_FAILED = 1,	/* exit status: the command failed */
	STORE_MISUSED = 2,	/* exit status: the arguments or the configuration are invalid */
};

/* Print "nhca-store: ..." on stderr.  warn_errno() adds the text of errno. */
__attribute__((format(printf, 1, 2))) void warn(const char *format, ...);
__attribute__((format(printf, 1, 2))) void warn_errno(const char *format, ...);
__attribute__((format(printf, 2, 3), noreturn)) void stop(int status, const char *format, ...);

/**
 * parse_size - read a number of bytes, with an optional suffix K, M, G or T (powers of 1024)
 * @text: the number as text
 * @size: output: the number
 * Return: 0, or -1 if @text is no such number.
 */
int parse_size(const char *text, uint64_t *size);

/* ---- config.c ---- */

/**
 * struct store_range - an entry of an access list
 * @addr: an IPv6 address; an IPv4 address is IPv4-mapped
 * @bits: the entry contains all addresses whose first @bits bits are those of @addr
 */
struct store_range {
	uint8_t addr[16];
	unsigned int bits;
};

/**
 * struct store_export - a section of the configuration file
 * @name:   name that clients use
 * @path:   file or block device
 * @write:  clients may write
 * @sync:   each WRITE is durable before it is acknowledged
 * @offset: byte of the file at which the export begins
 * @size:   bytes; 0: up to the end of the file
 * @allow:  access list: addresses that may open the export
 * @allows: number of entries of @allow
 */
struct store_export {
	char name[STORE_NAME];
	char *path;
	bool write;
	bool sync;
	uint64_t offset;
	uint64_t size;
	struct store_range *allow;
	unsigned int allows;
};

/**
 * struct store_config - configuration of a server
 * @address: address to listen on; NULL: all addresses
 * @port:    port
 * @pool:    bytes of the pool of each device
 * @connections: maximum number of connections
 * @keepalive: seconds without a request after which the server checks whether the client's host
 *           still answers
 * @exports: the exports
 * @count:   number of exports
 */
struct store_config {
	char *address;
	char *port;
	uint64_t pool;
	unsigned int connections;
	unsigned int keepalive;
	struct store_export *exports;
	unsigned int count;
};

/**
 * config_read - read a configuration file
 * @path: the file
 * @config: filled in
 *
 * If the file is wrong, the function prints where, and ends the command with STORE_MISUSED.
 */
void config_read(const char *path, struct store_config *config);

/* Return: true if @peer may open @export. */
bool config_allows(const struct store_export *export, const struct sockaddr *peer);

/* ---- serve.c ---- */

/**
 * serve - serve the exports of a configuration until SIGTERM or SIGINT
 * @config: the configuration
 * Return: exit status
 */
int serve(const struct store_config *config);

/* ---- client.c ---- */

/**
 * struct store_client - connection to a server
 * @id:    the connection
 * @pd:    its protection domain
 * @channel: completion channel of @cq
 * @cq:    completions of the send queue and of the receive queue
 * @send:  buffer of the request
 * @recv:  buffer of the reply
 * @mr:    the region of both buffers
 * @sent:  the request was sent, so @send can be filled in again
 * @received: bytes of the reply in @recv; 0: the reply has not arrived
 * @reads:  number of READs that may be outstanding
 * @open:   the last reply to STORE_OPEN, in host byte order
 * @quiet:  print no errors; the caller uses @why
 * @why:    text of the last error
 * @lost:   the last error was the loss of the connection; another connection may work
 * @failed: wr_id of the operation that has failed, if the last error of client_poll() was no loss
 */
struct store_client {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct store_request *send;
	struct store_reply *recv;
	struct ibv_mr *mr;
	bool sent;
	uint32_t received;
	unsigned int reads;
	struct store_reply open;
	bool quiet;
	char why[256];
	bool lost;
	uint64_t failed;
};

/**
 * client_try_connect - connect to a server
 * @c: filled in; the function keeps @quiet, and sets all other members
 * @server: SERVER[:PORT]
 * @depth: maximum number of READs and WRITEs that the caller posts at a time
 *
 * Return: 0, or -1 with a message in c->why, which is also printed unless c->quiet.
 */
int client_try_connect(struct store_client *c, const char *server, unsigned int depth);

/**
 * client_delay - get the delay before the next attempt to connect
 * @delay: seconds before the previous attempt; 0: there was no delay
 *
 * Return: seconds: 1, 2, 4, 8, then 10 for all further attempts.
 */
static inline unsigned int client_delay(unsigned int delay)
{
	return !delay ? 1 : delay < 5 ? 2 * delay : 10;
}

/* Like client_try_connect(), but an error ends the command. */
void client_connect(struct store_client *c, const char *server, unsigned int depth);

/* Disconnect, and free all. */
void client_close(struct store_client *c);

/*
 * Free all without a wait for the server.  When the function returns, no READ in progress changes
 * memory of this process any more.
 */
void client_drop(struct store_client *c);

/**
 * client_call - send a request and wait for its reply
 * @c: the connection; c->send is set, except for the magic, the version and @op
 * @op: enum store_op
 *
 * The reply is in c->recv, in host byte order.
 * Return: 0; an errno that the server has sent; or EPROTO: the connection is broken, with a message
 * in c->why, which is also printed unless c->quiet.
 */
int client_call(struct store_client *c, enum store_op op);

/**
 * client_send - send a request, without a wait for the reply
 * @c: the connection; c->send is set, as for client_call()
 * @op: enum store_op
 *
 * The caller may post READs and WRITEs while it waits for the reply: it calls client_poll() until
 * client_replied() returns true, and then client_reply().
 * Return: 0, or EPROTO: the connection is broken, as for client_call().
 */
int client_send(struct store_client *c, enum store_op op);

/**
 * client_replied - test whether the reply to the request of client_send() has arrived
 * @c: the connection
 * Return: true if the reply has arrived.
 */
bool client_replied(const struct store_client *c);

/**
 * client_reply - check the reply to the request of client_send()
 * @c: the connection, after client_replied() has returned true
 * Return: as client_call().
 */
int client_reply(struct store_client *c);

/**
 * client_try_open - open an export
 * @c: the connection
 * @name: the export
 * @write: open it for writing
 * @session: two random numbers, or NULL; see struct store_request
 *
 * The reply is in c->open.
 * Return: as client_call(), but with a message also for errors that the server has sent.
 */
int client_try_open(struct store_client *c, const char *name, bool write, const uint64_t *session);

/* Like client_try_open(), but an error ends the command. */
void client_open(struct store_client *c, const char *name, bool write, const uint64_t *session);

/* Fill in a random session for client_open(). */
void client_session(uint64_t *session);

/**
 * client_check_again - check that a new connection has opened what an earlier one had open
 * @c: the new connection, with its export open
 * @open: c->open of the earlier connection
 * @unflushed: the server has acknowledged bytes that no STORE_SYNC has made durable
 *
 * Return: 0, or -1 with a message in c->why: the client must not use the export.
 */
int client_check_again(struct store_client *c, const struct store_reply *open, bool unflushed);

/**
 * client_rdma - post a READ or WRITE of the open region
 * @c: the connection
 * @opcode: IBV_WR_RDMA_READ or IBV_WR_RDMA_WRITE
 * @offset: offset in the region
 * @buffer: address of the local bytes
 * @length: number of bytes
 * @lkey: L_Key of the local bytes
 * @wr_id: for the completion; below 2^32
 * Return: 0, or an errno after a message as in client_poll().
 */
int client_rdma(struct store_client *c, enum ibv_wr_opcode opcode, uint64_t offset, uint64_t buffer,
		uint32_t length, uint32_t lkey, uint64_t wr_id);

/**
 * client_poll - poll one completion
 * @c: the connection
 * @wr_id: output: the @wr_id of client_rdma(); 2^32 or more: the completion belongs to a request
 * @wait: wait until there is a completion
 * Return: 1: @wr_id is set; 0: there is no completion; -1: an operation or the connection has
 * failed: c->lost is set, c->failed is set if c->lost is false, and a message is in c->why, which
 * is also printed unless c->quiet.
 */
int client_poll(struct store_client *c, uint64_t *wr_id, bool wait);

/* ---- copy.c ---- */

#define STORE_FOREVER	UINT32_MAX

/**
 * struct copy_options - options of get and put
 * @offset: byte of the export at which the copy begins
 * @length: bytes; UINT64_MAX: up to the end of the export (get) or of the file (put)
 * @direct: move the bytes between the local disk and the network without a buffer
 * @quiet:  no progress
 * @timeout: seconds after the loss of the connection until the copy fails; or STORE_FOREVER
 */
struct copy_options {
	uint64_t offset;
	uint64_t length;
	bool direct;
	bool quiet;
	uint32_t timeout;
};

/* The commands ls, get and put.  Return: exit status. */
int list(const char *server);
int get(const char *server, const char *name, const char *path, const struct copy_options *options);
int put(const char *path, const char *server, const char *name, const struct copy_options *options);

/* ---- attach.c ---- */

/**
 * attach - make an export a block device of this host until SIGTERM or SIGINT
 * @server: SERVER[:PORT]
 * @name: name of the export
 * @read_only: do not write the export
 * @timeout: seconds after the loss of the connection until I/O fails; 0: without delay; or
 *          STORE_FOREVER
 * Return: exit status
 */
int attach(const char *server, const char *name, bool read_only, uint32_t timeout);

#endif /* STORE_H */
