/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: the buffers of nhcadv_msg_write_iov(); msg.h includes this header. */
#ifndef NHCA_MSG_IOV_H
#define NHCA_MSG_IOV_H

#include <sys/uio.h>

#include <infiniband/nhcadv.h>

/* Packets of a transfer, each of which needs a slot of the send FIFO */
#define MSG_IOV_PACKETS	32

struct msg_iov;
struct msg_lane;
struct msg_route;

/**
 * msg_iov_new - copy a list of buffers; the bytes stay where they are
 * @iov:    the buffers
 * @count:  number of buffers, at most NHCADV_MSG_MAX_IOV
 * @length: output: bytes of all buffers
 * Return: the copy, for free(); NULL with errno: EINVAL (@count, or the buffers together have more
 * than 2^63 - 1 bytes) or ENOMEM.
 */
struct msg_iov *msg_iov_new(const struct iovec *iov, uint32_t count, uint64_t *length);

/**
 * msg_iov_post - post one packet of a lane's transfer; the work request has a copy of its bytes
 * @route:  the route
 * @lane:   the lane, whose operation has buffers
 * @name:   msg_name() of the work request
 * @t:      msg_lane_transfer()
 * @packet: number of the packet
 */
void msg_iov_post(struct msg_route *route, const struct msg_lane *lane, uint64_t name,
		  const struct nhcadv_transfer *t, uint32_t packet);

#endif /* NHCA_MSG_IOV_H */
