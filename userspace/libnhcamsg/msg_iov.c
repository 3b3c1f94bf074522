// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: writes from buffers that are neither registered nor contiguous.  Each packet
 * is a half-send write of its own, whose work request has a copy of the packet's bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"

/* Buffers of a packet that are given to the adapter as they are; if there are more, copy them. */
#define MOST_BUFS	16

/**
 * struct msg_iov - a list of buffers, none of which is empty
 * @count:      number of buffers
 * @buf:        the buffers
 * @buf.base:   first byte
 * @buf.end:    number of bytes of this buffer and of all before it
 */
struct msg_iov {
	uint32_t count;
	struct {
		uint8_t *base;
		uint64_t end;
	} buf[];
};

struct msg_iov *msg_iov_new(const struct iovec *iov, uint32_t count, uint64_t *length)
{
	struct msg_iov *list;
	uint64_t end = 0;
	uint32_t i;

	if (count > NHCADV_MSG_MAX_IOV) {
		errno = EINVAL;
		return NULL;
	}
	list = malloc(sizeof(*list) + count * sizeof(list->buf[0]));
	if (!list)
		return NULL;
	list->count = 0;
	for (i = 0; i < count; i++) {
		if (iov[i].iov_len > INT64_MAX - end) {
			free(list);
			errno = EINVAL;
			return NULL;
		}
		if (!iov[i].iov_len)
			continue;
		end += iov[i].iov_len;
		list->buf[list->count].base = iov[i].iov_base;
		list->buf[list->count++].end = end;
	}
	*length = end;
	return list;
}

/* Return: index of the buffer that has the byte at @offset, which is less than all bytes. */
static uint32_t find(const struct msg_iov *list, uint64_t offset)
{
	uint32_t low = 0, high = list->count - 1, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (list->buf[middle].end > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Find the next contiguous bytes.
 * @offset: first byte in the list
 * @most:   maximum number of bytes
 */
static struct ibv_data_buf run(const struct msg_iov *list, uint32_t i, uint64_t offset,
			       uint32_t most)
{
	uint64_t start = i ? list->buf[i - 1].end : 0;

	return (struct ibv_data_buf){
		.addr = list->buf[i].base + (offset - start),
		.length = min_t(uint64_t, most, list->buf[i].end - offset),
	};
}

void msg_iov_post(struct msg_route *route, const struct msg_lane *lane, uint64_t name,
		  const struct nhcadv_transfer *t, uint32_t packet)
{
	const struct msg_iov *list = lane->op->iov;
	uint32_t first = packet * lane->segment, left, i, n, copied = 0;
	struct ibv_data_buf bufs[MOST_BUFS], next;
	uint64_t offset = lane->offset + first;
	uint8_t copy[PORT_PART];

	left = min(lane->length - first, lane->segment);
	if (left)
		i = find(list, offset);
	for (n = 0; left; i++, offset += next.length, left -= next.length) {
		next = run(list, i, offset, left);
		if (n < MOST_BUFS - 1) {
			bufs[n++] = next;
			continue;
		}
		/* the last entry of @bufs stands for all buffers that have no entry of their own */
		memcpy(copy + copied, next.addr, next.length);
		copied += next.length;
	}
	if (copied)
		bufs[n++] = (struct ibv_data_buf){ .addr = copy, .length = copied };
	port_part(route->port, name, &route->dest, t, first, n, bufs);
}
