// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the API of memory and messages.  Each function of the API takes the lock of
 * the endpoint.
 */
#include <errno.h>
#include <stdlib.h>

#include "msg.h"

/* ---- memory ---- */

/* Close all handles.  Return: 0, or the first errno; @mem has the handles that are still open */
static int mem_close(struct msg_mem *mem)
{
	int err, first = 0;
	uint32_t i;

	for (i = 0; i < mem->ep->num_ports; i++) {
		if (!mem->handles[i])
			continue;
		err = port_dereg(mem->handles[i]);
		if (err)
			first = first ? first : err;
		else
			mem->handles[i] = NULL;
	}
	return first;
}

/*
 * Close and free memory that could not be registered on all devices.  If a handle cannot be closed,
 * msg_mems_close() tries again when the endpoint is destroyed, because the program has no pointer
 * to the memory.
 */
static void mem_abandon(struct msg_mem *mem)
{
	if (!mem_close(mem)) {
		free(mem);
		return;
	}
	msg_ep_lock(mem->ep);
	list_add_tail(&mem->ep->unclosed, &mem->node);
	msg_ep_unlock(mem->ep);
}

int msg_mems_close(struct nhcadv_msg_ep *ep)
{
	struct msg_mem *mem;
	int err;

	while ((mem = list_top(&ep->unclosed, struct msg_mem, node))) {
		err = mem_close(mem);
		if (err)
			return err;
		list_del(&mem->node);
		free(mem);
	}
	return 0;
}

/* Return: true if an earlier path has the same device, which then needs no other handle. */
static bool again(const struct nhcadv_msg_ep *ep, uint32_t path)
{
	uint32_t i;

	for (i = 0; i < path && ep->contexts[i] != ep->contexts[path]; i++)
		;
	return i < path;
}

struct nhcadv_msg_mem *nhcadv_msg_reg_mem(struct nhcadv_msg_ep *ep, void *addr, size_t length,
					  unsigned int access)
{
	struct msg_mem *mem = calloc(1, sizeof(*mem));
	uint32_t i;
	int err;

	if (!mem)
		return NULL;
	mem->ep = ep;
	for (i = 0; i < ep->num_ports; i++) {
		if (again(ep, i))
			continue;
		mem->handles[i] = i ? port_reg_again(ep->ports[i], mem->handles[0]) :
				  port_reg(ep->ports[0], ep->job, addr, length, access);
		if (!mem->handles[i]) {
			err = errno;
			mem_abandon(mem);
			errno = err;
			return NULL;
		}
	}
	mem->pub.pvo = mem->handles[0]->pvo;
	mem->pub.length = length;
	msg_ep_lock(ep);
	list_add_tail(&ep->mems, &mem->node);
	msg_ep_unlock(ep);
	return &mem->pub;
}

int nhcadv_msg_dereg_mem(struct nhcadv_msg_mem *pub)
{
	struct msg_mem *mem = container_of(pub, struct msg_mem, pub);
	struct nhcadv_msg_ep *ep = mem->ep;
	int err;

	msg_ep_lock(ep);
	if (mem->users) {
		msg_ep_unlock(ep);
		return EBUSY;
	}
	list_del(&mem->node);
	msg_ep_unlock(ep);
	/* without the lock, because the kernel may wait for packets */
	err = mem_close(mem);
	if (err) {
		msg_ep_lock(ep);
		list_add_tail(&ep->mems, &mem->node);
		msg_ep_unlock(ep);
		return err;
	}
	free(mem);
	return 0;
}

/* ---- messages ---- */

/* Post a write or read.  @what: its mem, iov and notice belong to the operation if 0 is returned */
static int post(struct nhcadv_msg_peer *pub, const struct msg_op *what)
{
	struct msg_peer *peer = &pub->peer;
	struct nhcadv_msg_ep *ep = peer->ep;
	struct msg_op *op = malloc(sizeof(*op));

	if (!op)
		return ENOMEM;
	*op = *what;
	op->peer = peer;
	list_head_init(&op->pieces);

	msg_ep_lock(ep);
	if (msg_reserve(ep)) {
		msg_ep_unlock(ep);
		free(op);
		return ENOMEM;
	}
	if (op->mem)
		op->mem->users++;
	list_add_tail(&peer->todo, &op->node);
	ep->now = msg_clock();
	/*
	 * The next pass sets the timers of the new transfers.  Peers that wait for a free slot come
	 * first: if there are any, the next pass also starts the transfers.
	 */
	msg_peer_ready(peer);
	if (list_empty(&ep->starved))
		msg_pump(peer);
	msg_ep_unlock(ep);
	return 0;
}

/* Set the source of a write, or the destination of a read.  Return: 0 or EINVAL */
static int use_mem(const struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *pub, uint64_t offset,
		   struct msg_op *what)
{
	struct msg_mem *mem = container_of(pub, struct msg_mem, pub);

	if (mem->ep != peer->peer.ep || offset > pub->length || what->length > pub->length - offset)
		return EINVAL;
	what->mem = mem;
	what->local_pvo = pub->pvo + offset;
	return 0;
}

/* Post a write with the notice that @flags requests.  Return: 0, EINVAL or ENOMEM */
static int post_write(struct nhcadv_msg_peer *peer, struct msg_op *what, uint32_t flags)
{
	int err;

	if (flags & ~NHCADV_MSG_NOTIFY)
		return EINVAL;
	if (flags & NHCADV_MSG_NOTIFY) {
		what->notice = calloc(1, sizeof(*what->notice));
		if (!what->notice)
			return ENOMEM;
	}
	err = post(peer, what);
	if (err)
		free(what->notice);
	return err;
}

int nhcadv_msg_write(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		     uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags)
{
	struct msg_op what = { .remote_pvo = remote_pvo, .length = length, .id = id };
	int err = use_mem(peer, mem, offset, &what);

	return err ? err : post_write(peer, &what, flags);
}

int nhcadv_msg_write_iov(struct nhcadv_msg_peer *peer, const struct iovec *iov, uint32_t count,
			 uint64_t remote_pvo, uint64_t id, uint32_t flags)
{
	struct msg_op what = { .remote_pvo = remote_pvo, .id = id };
	const struct nhcadv_msg_ep *ep = peer->peer.ep;
	uint32_t i;
	int err;

	for (i = 0; i < ep->num_ports; i++)
		if (!ep->ports[i]->parts)
			return EOPNOTSUPP;
	what.iov = msg_iov_new(iov, count, &what.length);
	if (!what.iov)
		return errno;
	err = post_write(peer, &what, flags);
	if (err)
		free(what.iov);
	return err;
}

int nhcadv_msg_read(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		    uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags)
{
	struct msg_op what = {
		.remote_pvo = remote_pvo, .length = length, .id = id, .read = true,
	};
	int err = flags ? EINVAL : use_mem(peer, mem, offset, &what);

	return err ? err : post(peer, &what);
}

int nhcadv_msg_send(struct nhcadv_msg_peer *pub, const void *data, size_t length, uint64_t id,
		    uint32_t flags)
{
	struct msg_peer *peer = &pub->peer;
	int err;

	if (flags || length > NHCADV_MSG_MAX_SEND)
		return EINVAL;
	msg_ep_lock(peer->ep);
	err = msg_stream_send(peer, data, length, id);
	if (!err) {
		peer->ep->now = msg_clock();
		msg_stream_timers(peer);
		msg_peer_ready(peer);
	}
	msg_ep_unlock(peer->ep);
	return err;
}

static int cancel_ops(struct list_head *list, uint64_t id)
{
	struct msg_op *op, *next;
	int err = ENOENT, one;

	list_for_each_safe(list, op, next, node) {
		/*
		 * msg_op_cancel() may move an operation to the list that is walked next: skip the
		 * operations that have a status already.
		 */
		if (op->id != id || op->status)
			continue;
		one = msg_op_cancel(op);
		if (err == ENOENT || !one)
			err = one;
	}
	return err;
}

int nhcadv_msg_cancel(struct nhcadv_msg_peer *pub, uint64_t id)
{
	struct msg_peer *peer = &pub->peer;
	struct nhcadv_msg_ep *ep = peer->ep;
	int err[4], i, found = ENOENT;

	msg_ep_lock(ep);
	ep->now = msg_clock();
	msg_moves_collect(peer);
	err[0] = cancel_ops(&peer->todo, id);
	err[1] = cancel_ops(&peer->moves, id);
	err[2] = cancel_ops(&peer->going, id);
	err[3] = msg_stream_cancel(peer, id);
	msg_peer_ready(peer);
	for (i = 0; i < 4; i++)
		if (found == ENOENT || !err[i])
			found = err[i] == ENOENT ? found : err[i];
	msg_ep_unlock(ep);
	return found;
}
