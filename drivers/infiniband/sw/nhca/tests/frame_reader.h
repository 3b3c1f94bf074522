/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about half-receive writes and reads: a reader, which acts as the program that reads
 * the frames.  The reader checks that each packet of a transfer has exactly one frame, and that the
 * transfer completes after its frames.
 */
#ifndef NHCA_TEST_FRAME_READER_H
#define NHCA_TEST_FRAME_READER_H

#include <linux/bitmap.h>

#include "channel_pair.h"

#define READER_PACKETS	256u	/* maximum number of packets of a transfer */

/**
 * struct reader - the program that reads the frames of a channel
 * @c:      the channel; the frames have the bytes of the memory of its peer
 * @kind:   NHCA_FRAME_WRITE or NHCA_FRAME_READ
 * @tid:    tid of the transfer
 * @total:  bytes of the transfer
 * @got:    bit i: packet i has a frame
 * @frames: number of frames of the transfer
 * @done:   number of completions of the transfer
 * @read:   bit i: the frame with index i was read; frames before @cons are given back
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
 * @c:    the channel whose frames the reader reads
 * @kind: NHCA_FRAME_WRITE: the channel is the target of half-receive writes; NHCA_FRAME_READ: the
 *        channel posts half-receive reads
 * Return: the reader; if there is no memory, the test ends as failed.
 */
struct reader *reader_new(struct kunit *test, struct chan *c, u8 kind);

/**
 * reader_begin - expect the frames of another transfer, and fill the memory of the peer
 * @r:     the reader
 * @tid:   tid of the transfer, and number of the pattern for the memory (pair_fill())
 * @total: bytes of the transfer, in segments of PAIR_SEG
 */
void reader_begin(struct reader *r, u32 tid, u32 total);

/**
 * reader_run - read frames and give them back, and read the completion of the transfer
 * @test: the test, which fails if a frame or a completion is wrong
 * @r:    the reader
 * @max:  maximum number of frames to read; if a read is complete, all frames are read
 */
void reader_run(struct kunit *test, struct reader *r, u32 max);

#endif /* NHCA_TEST_FRAME_READER_H */
