// SPDX-License-Identifier: GPL-2.0
/* KUnit: the receive FIFO of a channel, used by a program that releases the frames that it gets. */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "../rcxt/fifo.h"

#define FRAMES	16u
#define STEPS	100000u

/**
 * struct program - state of the program
 * @told:     slots of frames that the program has got and not released
 * @released: slots of frames that it has released before an earlier frame
 * @cons:     consumer index of the program
 */
struct program {
	bool told[FRAMES];
	bool released[FRAMES];
	u32 cons;
};

/* Release a frame as libnhca does: slots are given back to the kernel in order. */
static void program_release(struct nhca_fifo *fifo, struct program *p, u32 slot)
{
	p->told[slot] = false;
	p->released[slot] = true;
	while (p->released[p->cons % FRAMES]) {
		p->released[p->cons % FRAMES] = false;
		p->cons++;
	}
	/* pairs with smp_load_acquire() in nhca_fifo_take() */
	smp_store_release(&fifo->ring.hdr->cons, p->cons);
}

/*
 * Frames whose completions were lost use up no slots of the FIFO. Otherwise a peer that sends
 * faster than a program polls would use up all slots.
 */
static void fifo_lost_completions(struct kunit *test)
{
	struct nhca_fifo fifo;
	struct program p = {};
	u32 round, i, index;

	KUNIT_ASSERT_EQ(test, nhca_fifo_init(&fifo, FRAMES, NULL), 0);
	for (round = 0; round < 5; round++) {
		/* the CQ is full while many more frames arrive than the FIFO has slots */
		for (i = 0; i < 10 * FRAMES; i++) {
			KUNIT_ASSERT_TRUE(test, nhca_fifo_take(&fifo, &index));
			nhca_fifo_untake(&fifo, index);
		}
		/* the CQ has room again: each slot takes one frame, and then the FIFO is full */
		for (i = 0; i < FRAMES; i++) {
			KUNIT_ASSERT_TRUE(test, nhca_fifo_take(&fifo, &index));
			KUNIT_EXPECT_FALSE(test, p.told[index % FRAMES]);
			p.told[index % FRAMES] = true;
		}
		KUNIT_EXPECT_FALSE(test, nhca_fifo_take(&fifo, &index));
		for (i = 0; i < FRAMES; i++)
			program_release(&fifo, &p, (i * 5 + round) % FRAMES);
	}
	nhca_fifo_destroy(&fifo);
}

/*
 * In any order of frames, lost completions and releases, no slot is allocated before the program
 * has released its frame, and each index is less than FRAMES above the consumer index. The FIFO is
 * full only if the program has not released the oldest frame.
 */
static void fifo_any_order(struct kunit *test)
{
	struct nhca_fifo fifo;
	struct program p = {};
	u32 step, index, slot, full = 0, lost = 0, held = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 13);
	KUNIT_ASSERT_EQ(test, nhca_fifo_init(&fifo, FRAMES, NULL), 0);
	/* start so that the indices wrap around soon */
	fifo.prod = -5 * FRAMES;
	p.cons = fifo.prod;
	fifo.ring.hdr->cons = p.cons;
	for (step = 0; step < STEPS; step++) {
		slot = prandom_u32_state(&rnd) % FRAMES;
		if (prandom_u32_state(&rnd) % 2) {
			if (p.told[slot]) {
				program_release(&fifo, &p, slot);
				held--;
			}
			continue;
		}
		if (!nhca_fifo_take(&fifo, &index)) {
			KUNIT_ASSERT_TRUE(test, p.told[p.cons % FRAMES]);
			full++;
			continue;
		}
		slot = index % FRAMES;
		KUNIT_ASSERT_LT(test, index - p.cons, FRAMES);
		KUNIT_ASSERT_FALSE(test, p.told[slot]);
		KUNIT_ASSERT_FALSE(test, p.released[slot]);
		if (prandom_u32_state(&rnd) % 3) {
			p.told[slot] = true;
			held++;
		} else {
			nhca_fifo_untake(&fifo, index);
			lost++;
		}
	}
	KUNIT_EXPECT_GT(test, full, 100);
	KUNIT_EXPECT_GT(test, lost, 1000);
	KUNIT_EXPECT_LE(test, held, FRAMES);
	nhca_fifo_destroy(&fifo);
}

static struct kunit_case rcxt_fifo_cases[] = {
	KUNIT_CASE(fifo_lost_completions),
	KUNIT_CASE(fifo_any_order),
	{}
};

static struct kunit_suite rcxt_fifo_suite = {
	.name = "nhca_rcxt_fifo",
	.test_cases = rcxt_fifo_cases,
};

kunit_test_suite(rcxt_fifo_suite);
