/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of regions of files (direct/).  Documentation/observe.rst describes them and their
 * fields.  The text of each event begins with "dev" and "qpn", as in trace.h.  "qpn" is always 0,
 * because direct/ does not record the queue pairs of its operations.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nhca

#if !defined(NHCA_TRACE_DIRECT_H) || defined(TRACE_HEADER_MULTI_READ)
#define NHCA_TRACE_DIRECT_H

#include <linux/tracepoint.h>

/* enum nhca_io_kind of direct/store.h; direct/debug.c asserts these numbers */
#define nhca_show_io(kind)		\
	__print_symbolic(kind,		\
		{ 0, "read" },		\
		{ 1, "write" },		\
		{ 2, "edge" },		\
		{ 3, "merged" })

/* enum nhca_arr_state of direct/pool.h; direct/debug.c asserts these numbers */
#define nhca_show_block(state)		\
	__print_symbolic(state,		\
		{ 0, "free" },		\
		{ 1, "queued" },	\
		{ 2, "filling" },	\
		{ 3, "ready" },		\
		{ 4, "sent" },		\
		{ 5, "failed" },	\
		{ 6, "collecting" },	\
		{ 7, "dirty" },		\
		{ 8, "draining" })

/* enum nhca_direct_wait of direct/pool.h */
#define nhca_show_wait(what)		\
	__print_symbolic(what,		\
		{ 0, "block" },		\
		{ 1, "range" },		\
		{ 2, "flush" })

/**
 * nhca_direct_begun - an I/O request begins
 * @dev:    number of the device
 * @key:    L_Key of the region
 * @kind:   enum nhca_io_kind
 * @offset: offset in the region
 * @bytes:  bytes to read or write
 * @blocks: number of blocks
 */
TRACE_EVENT(nhca_direct_begun,
	    TP_PROTO(u32 dev, u32 key, u8 kind, u64 offset, u32 bytes, u32 blocks),
	    TP_ARGS(dev, key, kind, offset, bytes, blocks),
	    TP_STRUCT__entry(__field(u64, offset)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u32, bytes)
			     __field(u32, blocks)
			     __field(u8, kind)
	    ),
	    TP_fast_assign(__entry->offset = offset;
			   __entry->dev = dev;
			   __entry->qpn = 0;
			   __entry->key = key;
			   __entry->bytes = bytes;
			   __entry->blocks = blocks;
			   __entry->kind = kind;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x offset %llu bytes %u blocks %u",
		      __entry->dev, __entry->qpn, nhca_show_io(__entry->kind), __entry->key,
		      __entry->offset, __entry->bytes, __entry->blocks)
);

/**
 * nhca_direct_ended - an I/O request has ended
 * @dev:    number of the device
 * @key:    L_Key of the region
 * @kind:   enum nhca_io_kind
 * @offset: offset in the region
 * @result: bytes that were read or written, or a negative errno; after -EAGAIN for a write, the
 *          driver begins to write its blocks again
 */
TRACE_EVENT(nhca_direct_ended,
	    TP_PROTO(u32 dev, u32 key, u8 kind, u64 offset, long result),
	    TP_ARGS(dev, key, kind, offset, result),
	    TP_STRUCT__entry(__field(u64, offset)
			     __field(s64, result)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u8, kind)
	    ),
	    TP_fast_assign(__entry->offset = offset;
			   __entry->result = result;
			   __entry->dev = dev;
			   __entry->qpn = 0;
			   __entry->key = key;
			   __entry->kind = kind;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x offset %llu result %lld", __entry->dev,
		      __entry->qpn, nhca_show_io(__entry->kind), __entry->key, __entry->offset,
		      __entry->result)
);

/**
 * nhca_direct_block - the state of a block of an operation changes
 * @dev:   number of the device
 * @key:   L_Key of the region
 * @op:    number of the operation
 * @index: number of the block in the region
 * @state: enum nhca_arr_state
 */
TRACE_EVENT(nhca_direct_block,
	    TP_PROTO(u32 dev, u32 key, u64 op, u64 index, u8 state),
	    TP_ARGS(dev, key, op, index, state),
	    TP_STRUCT__entry(__field(u64, op)
			     __field(u64, index)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u8, state)
	    ),
	    TP_fast_assign(__entry->op = op;
			   __entry->index = index;
			   __entry->dev = dev;
			   __entry->qpn = 0;
			   __entry->key = key;
			   __entry->state = state;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x op %llu index %llu", __entry->dev,
		      __entry->qpn, nhca_show_block(__entry->state), __entry->key, __entry->op,
		      __entry->index)
);

/**
 * nhca_direct_wait - a requester or responder has to wait
 * @dev:  number of the device
 * @key:  L_Key of the region
 * @what: enum nhca_direct_wait
 */
TRACE_EVENT(nhca_direct_wait,
	    TP_PROTO(u32 dev, u32 key, u8 what),
	    TP_ARGS(dev, key, what),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u8, what)
	    ),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = 0;
			   __entry->key = key;
			   __entry->what = what;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x", __entry->dev, __entry->qpn,
		      nhca_show_wait(__entry->what), __entry->key)
);

/**
 * nhca_direct_flushed - a flush of a region has ended
 * @dev: number of the device
 * @key: L_Key of the region
 * @persistent: true: the flush was to make the file durable; false: a flush of type global
 * @err: 0, or the positive errno with which the flush has failed
 */
TRACE_EVENT(nhca_direct_flushed,
	    TP_PROTO(u32 dev, u32 key, bool persistent, int err),
	    TP_ARGS(dev, key, persistent, err),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(s32, err)
			     __field(bool, persistent)
	    ),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = 0;
			   __entry->key = key;
			   __entry->err = err;
			   __entry->persistent = persistent;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x error %d", __entry->dev, __entry->qpn,
		      __entry->persistent ? "persistent" : "global", __entry->key, __entry->err)
);

#endif /* NHCA_TRACE_DIRECT_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_direct
#include <trace/define_trace.h>
