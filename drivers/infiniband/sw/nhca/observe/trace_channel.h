/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of channels.  Documentation/observe.rst describes them and their fields.  The text
 * begins with "channel", and has no "dev".
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nhca

#if !defined(NHCA_TRACE_CHANNEL_H) || defined(TRACE_HEADER_MULTI_READ)
#define NHCA_TRACE_CHANNEL_H

#include <linux/tracepoint.h>
#include <rdma/nhca_user_ioctl_verbs.h>

#include "../wire/rcxt.h"

#define nhca_show_drop(why)					\
	__print_symbolic(why,					\
		{ NHCA_CH_DROP_FIFO,		"fifo" },	\
		{ NHCA_CH_DROP_CQ,		"cq" },		\
		{ NHCA_CH_DROP_KEY,		"key" },	\
		{ NHCA_CH_DROP_JOB,		"job" },	\
		{ NHCA_CH_DROP_NO_RCXT,		"no_rcxt" },	\
		{ NHCA_CH_DROP_RCXT_KEY,	"rcxt_key" },	\
		{ NHCA_CH_DROP_STALE,		"stale" },	\
		{ NHCA_CH_DROP_DUPLICATE,	"duplicate" },	\
		{ NHCA_CH_DROP_ABORTED,		"aborted" },	\
		{ NHCA_CH_DROP_BUSY,		"busy" },	\
		{ NHCA_CH_DROP_UNSOLICITED,	"unsolicited" },	\
		{ NHCA_CH_DROP_MISMATCH,	"mismatch" },	\
		{ NHCA_CH_DROP_NO_MEMORY,	"no_memory" },	\
		{ NHCA_CH_DROP_PVO_KEY,		"pvo_key" },	\
		{ NHCA_CH_DROP_PVO_JOB,		"pvo_job" },	\
		{ NHCA_CH_DROP_PVO_RANGE,	"pvo_range" },	\
		{ NHCA_CH_DROP_PVO_ACCESS,	"pvo_access" },	\
		{ NHCA_CH_DROP_PVO_PAGE,	"pvo_page" },	\
		{ NHCA_CH_DROP_ERROR,		"error" },	\
		{ NHCA_CH_DROP_SEGMENT,		"segment" },	\
		{ NHCA_CH_CHALLENGED,		"challenged" },	\
		{ NHCA_CH_DROP_TARGET,		"target" },	\
		{ NHCA_CH_DROP_MANAGER,		"manager" })

/**
 * nhca_channel_drop - a channel dropped a packet, challenged a request, or ended a peer's transfer
 * @qpn: the channel
 * @x:   RXETH of the packet; for the end of a transfer, only the fields that are still known
 * @why: NHCA_CH_DROP_*, or NHCA_CH_CHALLENGED
 */
TRACE_EVENT(nhca_channel_drop,
	    TP_PROTO(u32 qpn, const struct nhca_rxeth *x, enum nhca_channel_counter why),
	    TP_ARGS(qpn, x, why),
	    TP_STRUCT__entry(__field(u64, pvo)
			     __field(u32, qpn)
			     __field(u32, why)
			     __field(u32, src)
			     __field(u32, job)
			     __field(u32, rcxt)
			     __field(u32, key)
			     __field(u32, tid)
			     __field(u32, total)
			     __field(u32, offset)
			     __field(u32, length)
	    ),
	    TP_fast_assign(__entry->pvo = x->pvo;
			   __entry->qpn = qpn;
			   __entry->why = why;
			   __entry->src = x->src_channel;
			   __entry->job = x->job;
			   __entry->rcxt = x->rcxt.index;
			   __entry->key = x->rcxt.key;
			   __entry->tid = x->tid;
			   __entry->total = x->total;
			   __entry->offset = x->offset;
			   __entry->length = x->length;
	    ),
	    TP_printk("channel %#x: %s; from %#x job %u rcxt %u key %#x tid %u total %u offset %u length %u pvo %#llx",
		      __entry->qpn, nhca_show_drop(__entry->why), __entry->src, __entry->job,
		      __entry->rcxt, __entry->key, __entry->tid, __entry->total, __entry->offset,
		      __entry->length, __entry->pvo)
);

#endif /* NHCA_TRACE_CHANNEL_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_channel
#include <trace/define_trace.h>
