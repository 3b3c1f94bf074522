// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation of slots of the receive FIFO for frames.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "fifo.h"

int nhca_fifo_init(struct nhca_fifo *fifo, u32 frames, struct nhca_ring_user *user)
{
	int err;

	*fifo = (struct nhca_fifo) {};
	err = nhca_ring_alloc(&fifo->ring, frames, NHCA_FRAME_SIZE, user);
	if (err)
		return err;
	fifo->unread = bitmap_zalloc(nhca_ring_entries(&fifo->ring), GFP_KERNEL_ACCOUNT);
	return fifo->unread ? 0 : -ENOMEM;
}

void nhca_fifo_destroy(struct nhca_fifo *fifo)
{
	bitmap_free(fifo->unread);
	nhca_ring_free(&fifo->ring);
	*fifo = (struct nhca_fifo) {};
}

/*
 * Return: the index with which slot @slot was last allocated: the largest index of the slot below
 * @fifo->prod.
 */
static u32 fifo_index(const struct nhca_fifo *fifo, u32 slot)
{
	u32 last = fifo->prod - 1;

	return last - ((last - slot) & fifo->ring.mask);
}

static u32 fifo_take_unread(struct nhca_fifo *fifo)
{
	/* use the oldest slot first: the program gives slots back in the order of their indices */
	u32 entries = nhca_ring_entries(&fifo->ring);
	u32 slot = find_next_bit_wrap(fifo->unread, entries, fifo->prod & fifo->ring.mask);

	__clear_bit(slot, fifo->unread);
	fifo->count--;
	return fifo_index(fifo, slot);
}

bool nhca_fifo_take(struct nhca_fifo *fifo, u32 *index)
{
	struct nhca_ring *ring = &fifo->ring;
	u32 used;

	if (fifo->count) {
		*index = fifo_take_unread(fifo);
		return true;
	}
	/*
	 * Pairs with the program's store-release of cons, which follows its reads of the frames.
	 * With an impossible consumer index the FIFO counts as full.
	 */
	used = fifo->prod - smp_load_acquire(&ring->hdr->cons);
	if (used >= nhca_ring_entries(ring))
		return false;
	*index = fifo->prod++;
	WRITE_ONCE(ring->hdr->prod, fifo->prod);
	return true;
}

void nhca_fifo_untake(struct nhca_fifo *fifo, u32 index)
{
	/*
	 * The bit may be set already.  If a program advances its consumer index over a frame that
	 * has no completion yet, the FIFO allocates the slot of this frame a second time.
	 */
	if (!__test_and_set_bit(index & fifo->ring.mask, fifo->unread))
		fifo->count++;
}
