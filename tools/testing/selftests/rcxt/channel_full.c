// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A part of channel.c: the receive CQ is full. */
#include "channel_shared.h"

#define FULL_FRAMES	64
#define FULL_CQ		16
#define FULL_PACKETS	200

/*
 * Purpose: frames whose completions are lost, because a peer sends faster than the program polls,
 * do not make the receive FIFO smaller permanently.
 */
void full_cq(void)
{
	uint32_t i, index, most = cq_entries;
	struct nhcadv_channel_info before;
	struct channel c;
	struct done d;

	cq_entries = FULL_CQ;
	channel_open(&c, FULL_FRAMES);
	cq_entries = most;
	channel_meet(&c);
	before = channel_info(&c);
	meet(++step);
	if (client) {
		for (i = 0; i < FULL_PACKETS; i++) {
			post_packet(&c, &i, sizeof(i), 1, IBV_SEND_SIGNALED);
			expect(c.scq, NHCADV_WC_LOCAL, 0, "packet to a full CQ");
		}
		meet(++step);
	} else {
		meet(++step);
		wait_count(&c, &before, NHCADV_DROP_CQ, NHCADV_DROP_CQ, FULL_PACKETS - FULL_CQ,
			   "full CQ");
		wait_event(IBV_EVENT_CQ_ERR, "full CQ");
		usleep(QUIET_MS * 1000);
		while (poll_done(c.rcq, &d))
			verb(nhcadv_release_frame(c.qp, d.frame));
	}
	/* use each slot of the FIFO three times */
	for (i = 0; i < 3 * FULL_FRAMES; i++) {
		meet(++step);
		if (client) {
			post_packet(&c, &i, sizeof(i), 2 + i, 0);
			continue;
		}
		expect_frame(&c, 2 + i, &index, "packet after the CQ was full");
		verb(nhcadv_release_frame(c.qp, index));
	}
	meet(++step);
	channel_close(&c);
}
