// SPDX-License-Identifier: GPL-2.0
/*
 * Raw packet QPs: a message is an Ethernet frame.  The requester sends the frame unchanged.
 * ingress/frame.c applies the rules (net/steering.c) that direct received frames to the QP.  A QP
 * with an indirection table gives the frame to one of the table's work queues.
 */
#include "../net/rss.h"
#include "../net/steering.h"
#include "../observe/trace.h"
#include "engine.h"
#include "rx.h"

int nhca_raw_send(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_iter it;
	int err;

	lockdep_assert_held(&qp->sq.lock);
	nhca_swr_source(qp, swr, 0, &it);
	err = nhca_frame_send(qp->dev, &qp->who, qp->flow, &it, swr->length, qp->sq.fault);
	if (!err)
		nhca_pace_sent(qp, swr->length);
	return err;
}

void nhca_raw_rx(struct nhca_qp *qp, struct sk_buff *skb)
{
	struct nhca_rx rx = {
		.skb = skb,
		.payload = skb->len,
	};

	if (qp->rss)
		qp = nhca_rss_pick(qp->rss, skb);
	nhca_cursor_init(&rx.at, skb);
	nhca_count(&qp->who, NHCA_CNT_RCVD_PKTS);
	nhca_count_add(&qp->who, NHCA_CNT_RCVD_BYTES, skb->len);
	spin_lock(&qp->rq.lock);
	nhca_request_rx(qp, &rx);
	spin_unlock(&qp->rq.lock);
}
