// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The receive FIFO of a channel.  Several CPUs of the kernel fill frames at the same time, so
 * frames become valid in any order.  Threads of the program release frames in any order.  The slots
 * return to the kernel in their order in the ring.
 */
#include <errno.h>
#include <stdlib.h>

#include "nhca.h"

#define SAME(member)								\
	static_assert(offsetof(struct nhcadv_frame, member) ==			\
		      offsetof(struct nhca_frame, member), "frame: " #member)

static_assert(sizeof(struct nhcadv_frame) == sizeof(struct nhca_frame), "frame");
SAME(seq);
SAME(kind);
SAME(status);
SAME(length);
SAME(src_channel);
SAME(src_key);
SAME(src_rcxt);
SAME(rcxt);
SAME(tid);
SAME(total);
SAME(offset);
SAME(segment);
SAME(cookie);
SAME(received);
SAME(data);
static_assert((int)NHCADV_FRAME_PACKET == NHCA_FRAME_PACKET &&
	      (int)NHCADV_FRAME_STATUS == NHCA_FRAME_STATUS &&
	      (int)NHCADV_FRAME_WRITE == NHCA_FRAME_WRITE &&
	      (int)NHCADV_FRAME_REQUEST == NHCA_FRAME_REQUEST &&
	      (int)NHCADV_FRAME_READ == NHCA_FRAME_READ, "kinds of frames");
static_assert(sizeof(struct nhcadv_request) == sizeof(struct nhca_frame_request) &&
	      offsetof(struct nhcadv_request, reply_pvo) ==
	      offsetof(struct nhca_frame_request, reply_pvo), "requests");
static_assert((int)NHCADV_TRANSFER_COMPLETE == NHCA_TRANSFER_COMPLETE &&
	      (int)NHCADV_TRANSFER_PARTIAL == NHCA_TRANSFER_PARTIAL &&
	      (int)NHCADV_TRANSFER_NONE == NHCA_TRANSFER_NONE &&
	      (int)NHCADV_TRANSFER_PROT_ERR == NHCA_TRANSFER_PROT_ERR &&
	      (int)NHCADV_TRANSFER_FENCED == NHCA_TRANSFER_FENCED &&
	      (int)NHCADV_TRANSFER_FORBIDDEN == NHCA_TRANSFER_FORBIDDEN &&
	      (int)NHCADV_TRANSFER_TOO_LONG == NHCA_TRANSFER_TOO_LONG, "statuses");

#define BITS 32	/* bits of a word of nhca_fifo.released */

int nhca_fifo_init(struct nhca_fifo *fifo, struct ibv_context *context,
		   const struct nhca_ring_info *info)
{
	int ret;

	pthread_spin_init(&fifo->lock, PTHREAD_PROCESS_PRIVATE);
	ret = nhca_ring_map(&fifo->ring, context, info, sizeof(struct nhca_frame));
	if (ret || !fifo->ring.hdr)
		return ret;

	fifo->cons = nhca_load(&fifo->ring.hdr->cons);
	fifo->released = calloc(fifo->ring.entries / BITS + 1, sizeof(*fifo->released));
	return fifo->released ? 0 : ENOMEM;
}

void nhca_fifo_fini(struct nhca_fifo *fifo)
{
	free(fifo->released);
	nhca_ring_unmap(&fifo->ring);
	pthread_spin_destroy(&fifo->lock);
}

const struct nhcadv_frame *nhcadv_frame(struct ibv_qp *ibqp, uint32_t index)
{
	const struct nhca_ring *ring = &to_nch(ibqp)->fifo.ring;
	const struct nhcadv_frame *frame;

	if (!ring->hdr)
		return NULL;
	frame = nhca_slot(ring, index);
	return nhca_load(&frame->seq) == index + 1 ? frame : NULL;
}

/* Return: the word of nhca_fifo.released with the bit of a slot; @bit: output: mask of this bit */
static uint32_t *slot_bit(const struct nhca_fifo *fifo, uint32_t index,
			  uint32_t *bit)
{
	uint32_t slot = index & (fifo->ring.entries - 1);

	*bit = UINT32_C(1) << slot % BITS;
	return &fifo->released[slot / BITS];
}

int nhcadv_release_frame(struct ibv_qp *ibqp, uint32_t index)
{
	struct nhca_fifo *fifo = &to_nch(ibqp)->fifo;
	uint32_t *word, bit, cons;

	if (!nhcadv_frame(ibqp, index))
		return EINVAL;

	pthread_spin_lock(&fifo->lock);
	cons = fifo->cons;
	word = slot_bit(fifo, index, &bit);
	/* nhcadv_frame() also finds a frame whose slot was returned to the kernel: refuse it. */
	if (index - cons >= fifo->ring.entries || (*word & bit)) {
		pthread_spin_unlock(&fifo->lock);
		return EINVAL;
	}
	*word |= bit;

	for (;;) {
		word = slot_bit(fifo, cons, &bit);
		if (!(*word & bit))
			break;
		*word &= ~bit;
		cons++;
	}
	if (cons != fifo->cons) {
		fifo->cons = cons;
		nhca_store(&fifo->ring.hdr->cons, cons);
	}
	pthread_spin_unlock(&fifo->lock);
	return 0;
}
