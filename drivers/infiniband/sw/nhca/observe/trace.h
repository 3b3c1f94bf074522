/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: decisions that nobody is told of.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nhca

#if !defined(NHCA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NHCA_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>

#include "../wire/rcxt.h"
#include "rule.h"

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
		{ NHCA_CH_DROP_DEAD,		"dead" },	\
		{ NHCA_CH_DROP_BUSY,		"busy" },	\
		{ NHCA_CH_DROP_UNASKED,		"unasked" },	\
		{ NHCA_CH_DROP_MISMATCH,	"mismatch" },	\
		{ NHCA_CH_DROP_NO_MEMORY,	"no_memory" },	\
		{ NHCA_CH_DROP_PVO_KEY,		"pvo_key" },	\
		{ NHCA_CH_DROP_PVO_JOB,		"pvo_job" },	\
		{ NHCA_CH_DROP_PVO_RANGE,	"pvo_range" },	\
		{ NHCA_CH_DROP_PVO_ACCESS,	"pvo_access" },	\
		{ NHCA_CH_DROP_PVO_PAGE,	"pvo_page" },	\
		{ NHCA_CH_DROP_ERROR,		"error" },	\
		{ NHCA_CH_DROP_SEGMENT,		"segment" })

/**
 * trace_nhca_channel_drop - a channel dropped a packet
 * @qpn: the channel
 * @x:   the packet's RXETH
 * @why: NHCA_CH_DROP_*
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

#define nhca_show_point(at)					\
	__print_symbolic(at,					\
		{ NHCA_AT_SEND,		"send" },		\
		{ NHCA_AT_RECEIVE,	"receive" },		\
		{ NHCA_AT_REQUEST,	"request" },		\
		{ NHCA_AT_BUFFER,	"buffer" },		\
		{ NHCA_AT_CQE,		"cqe" },		\
		{ NHCA_AT_MR,		"mr" })

/**
 * trace_nhca_fault - a rule of fault injection struck
 * @dev:    the device
 * @rule:   number of the rule
 * @at:     enum nhca_fault_point
 * @qpn:    the device's QP, or 0
 * @opcode: BTH, or 0
 * @n:      how many the rule had seen of the same QP before
 */
TRACE_EVENT(nhca_fault,
	    TP_PROTO(const char *dev, u32 rule, u32 at, u32 qpn, u8 opcode, unsigned long n),
	    TP_ARGS(dev, rule, at, qpn, opcode, n),
	    TP_STRUCT__entry(__array(char, dev, IB_DEVICE_NAME_MAX)
			     __field(unsigned long, n)
			     __field(u32, rule)
			     __field(u32, at)
			     __field(u32, qpn)
			     __field(u8, opcode)
	    ),
	    TP_fast_assign(strscpy(__entry->dev, dev, IB_DEVICE_NAME_MAX);
			   __entry->n = n;
			   __entry->rule = rule;
			   __entry->at = at;
			   __entry->qpn = qpn;
			   __entry->opcode = opcode;
	    ),
	    TP_printk("%s rule %u: %s qp %u opcode %#x, number %lu", __entry->dev, __entry->rule,
		      nhca_show_point(__entry->at), __entry->qpn, __entry->opcode, __entry->n)
);

#endif /* NHCA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
