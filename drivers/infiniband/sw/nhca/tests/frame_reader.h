/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about half-receive writes and reads: the program that reads their frames.  It checks
 * that each packet of a transfer has exactly one frame, and that the transfer completes after its
 * frames.
 */
#ifndef NHCA_TEST_FRAME_READER_H
#define NHCA_TEST_FRAME_READER_H

#include <linux/bitmap.h>

#include "channel_pair.h"

#define READER_PACKETS	256u	/* of a transfer, at most */

/**
 * struct reader - the program that reads the frames of a channel
 * @c:      the channel; the bytes of all frames are those of the memory of its peer
 * @kind:   NHCA_FRAME_WRITE, or NHCA_FRAME_READ
 * @tid:    tid of the transfer
 * @total:  bytes of the transfer
 * @got:    bit i: packet i has had a frame
 * @frames: number of frames of the transfer
 * @done:   number of completions of the transfer
 * @read:   bit i: the frame with index i was read, but not yet given back
 * @cons:   consumer index of the FIFO
 */
struct reader {
	struct chan *c;
	u8 kind;
	u32 tid;
	u32 total;
	DECLARE_BITMAP(got, READER_PACKETS);
	u32 frames;
	u32 done;
	unsigned long *read;
	u32 cons;
};

/**
 * reader_new - create a reader
 * @test: the test
 * @c:    its channel
 * @kind: NHCA_FRAME_WRITE: it is the target of writes; NHCA_FRAME_READ: it reads
 * Return: the reader; the test fails without memory.
 */
struct reader *reader_new(struct kunit *test, struct chan *c, u8 kind);

/**
 * reader_begin - expect the frames of another transfer
 * @r:     the reader
 * @tid:   tid of the transfer
 * @total: its bytes, in segments of PAIR_SEG; the memory of the peer gets the pattern @tid
 */
void reader_begin(struct reader *r, u32 tid, u32 total);

/**
 * reader_run - read frames and give them back, and read the completion of the transfer
 * @test: fails if a frame or completion is wrong
 * @r:    the reader
 * @max:  frames to read, at most
 */
void reader_run(struct kunit *test, struct reader *r, u32 max);

#endif /* NHCA_TEST_FRAME_READER_H */
