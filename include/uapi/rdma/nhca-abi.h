/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The ABI between the nhca kernel driver and its rdma-core provider.
 *
 * Work queues and completion queues are rings in memory that both sides map.
 * Each ring has one producer and one consumer; each index has one owner.
 * The kernel believes nothing that it reads here: it bounds every index and
 * copies every entry once before it looks at it.
 */
#ifndef RDMA_NHCA_ABI_H
#define RDMA_NHCA_ABI_H

#include <linux/stddef.h>
#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define NHCA_ABI_VERSION	1

/* Outside of enum rdma_driver_id: 'n' 'h' */
#define NHCA_RDMA_DRIVER_ID	0x6e68

#define NHCA_MAX_SGE		32
#define NHCA_MAX_INLINE		512

/**
 * struct nhca_ring_hdr - the first NHCA_RING_HDR_SIZE bytes of a mapped ring
 * @prod:  entries ever produced, modulo 2^32; written with release semantics
 *         by the producer after the entries themselves
 * @cons:  entries ever consumed, modulo 2^32; written with release semantics
 *         by the consumer when it no longer needs the entries
 * @flags: NHCA_RING_F_*; written by the kernel only
 *
 * SQ, RQ and SRQ: user space owns @prod, the kernel owns @cons.
 * CQ: the kernel owns @prod, user space owns @cons.
 * Entry i of the ring is slot (i & (entries - 1)); prod - cons is the number
 * of entries in use and never exceeds the number of slots.
 *
 * The kernel moves @cons of an SQ when it has completed the work request (not
 * when it has read it), whether or not the request asked for a completion.
 */
struct nhca_ring_hdr {
	__u32 prod;
	__u32 pad0[15];
	__u32 cons;
	__u32 pad1[15];
	__u32 flags;
	__u32 pad2[31];
};

/* The slots begin here */
#define NHCA_RING_HDR_SIZE	256

/*
 * The consumer of this RQ wants a doorbell (IB_USER_VERBS_CMD_POST_RECV or
 * IB_USER_VERBS_CMD_POST_SRQ_RECV with no work requests) after entries were
 * produced: the QP is in the error state and flushes them.  The producer
 * looks at it after a full barrier behind its store to @prod.
 */
#define NHCA_RING_F_DOORBELL	(1u << 0)

struct nhca_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* nhca_send_wqe.opcode: the values of enum ib_wr_opcode / ibv_wr_opcode */
enum nhca_wr_opcode {
	NHCA_WR_RDMA_WRITE		= 0,
	NHCA_WR_RDMA_WRITE_WITH_IMM	= 1,
	NHCA_WR_SEND			= 2,
	NHCA_WR_SEND_WITH_IMM		= 3,
	NHCA_WR_RDMA_READ		= 4,
	NHCA_WR_ATOMIC_CMP_AND_SWP	= 5,
	NHCA_WR_ATOMIC_FETCH_AND_ADD	= 6,
	NHCA_WR_LOCAL_INV		= 7,
	NHCA_WR_BIND_MW			= 8,
	NHCA_WR_SEND_WITH_INV		= 9,
	/* kernel consumers only */
	NHCA_WR_REG_MR			= 32,
};

/* nhca_send_wqe.flags: the values of enum ib_send_flags / ibv_send_flags */
#define NHCA_SEND_FENCE		(1u << 0)
#define NHCA_SEND_SIGNALED	(1u << 1)
#define NHCA_SEND_SOLICITED	(1u << 2)
#define NHCA_SEND_INLINE	(1u << 3)

/**
 * struct nhca_send_wqe - one send work request, as posted
 * @wr_id:     given back in the completion
 * @opcode:    enum nhca_wr_opcode
 * @num_sge:   elements of @sge in use; 0 if NHCA_SEND_INLINE
 * @flags:     NHCA_SEND_*
 * @inline_len: bytes at @data if NHCA_SEND_INLINE, else 0
 * @ex:        immediate data (big endian) or the R_Key to invalidate
 * @rdma:      RDMA WRITE, READ
 * @atomic:    atomics
 * @ud:        UD and GSI: address handle by number, never by address
 * @mw:        BIND_MW
 */
struct nhca_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	__u32 inline_len;
	union {
		__u32 imm_data;
		__u32 invalidate_rkey;
	} ex;
	__u32 reserved;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__u32 ah_id;
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 pkey_index;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;
			__u32 new_rkey;
			__u32 access;
		} mw;
		__u8 op_space[40];
	};
	union {
		__DECLARE_FLEX_ARRAY(struct nhca_sge, sge);
		__DECLARE_FLEX_ARRAY(__u8, data);
	};
};

/**
 * struct nhca_recv_wqe - one receive work request, as posted
 * @wr_id:   given back in the completion
 * @num_sge: elements of @sge in use
 */
struct nhca_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
	struct nhca_sge sge[];
};

/* nhca_cqe.flags: the values of enum ibv_wc_flags */
#define NHCA_WC_GRH		(1u << 0)
#define NHCA_WC_WITH_IMM	(1u << 1)
#define NHCA_WC_WITH_INV	(1u << 3)

/**
 * struct nhca_cqe - one work completion
 * @wr_id:       of the work request
 * @timestamp:   completion time, CLOCK_MONOTONIC_RAW nanoseconds
 * @status:      enum ib_wc_status / ibv_wc_status (same values)
 * @opcode:      enum ibv_wc_opcode, the same values as enum ib_wc_opcode but
 *               for IB_WC_REG_MR, which only kernel consumers see
 * @flags:       NHCA_WC_*
 * @vendor_err:  0, or what the driver's documentation lists
 * @byte_len:    bytes received or read
 * @ex:          immediate data (big endian) or invalidated R_Key
 * @qp_num:      local QP
 * @src_qp:      UD: source QP
 * @pkey_index:  GSI: P_Key index
 * @sl:          UD: service level
 * @network_hdr_type: UD: enum rdma_network_type
 * @smac:        UD: source MAC, zero if not known
 * @vlan_id:     UD: VLAN, 0xffff for none
 * @kernel:      zero; private to the kernel in rings that are not mapped
 */
struct nhca_cqe {
	__aligned_u64 wr_id;
	__aligned_u64 timestamp;
	__u8 status;
	__u8 opcode;
	__u16 flags;
	__u32 vendor_err;
	__u32 byte_len;
	union {
		__u32 imm_data;
		__u32 invalidated_rkey;
	} ex;
	__u32 qp_num;
	__u32 src_qp;
	__u16 pkey_index;
	__u8 sl;
	__u8 network_hdr_type;
	__u8 smac[6];
	__u16 vlan_id;
	__u32 reserved;
	__aligned_u64 kernel;
};

/**
 * struct nhca_ring_info - how to map a ring; all zero for a ring that is not there
 * @offset:  for mmap() on the uverbs file
 * @size:    bytes to map
 * @entries: number of slots, a power of two
 * @stride:  bytes from slot to slot, a multiple of 16
 */
struct nhca_ring_info {
	__aligned_u64 offset;
	__u32 size;
	__u32 entries;
	__u32 stride;
	__u32 reserved;
};

/* The kernel takes NHCA_WR_LOCAL_INV and NHCA_WR_BIND_MW from user space */
#define NHCA_FEATURE_LOCAL_OPS	(1u << 0)

/**
 * struct nhca_alloc_ucontext_resp - answer to IB_USER_VERBS_CMD_GET_CONTEXT
 * @features: NHCA_FEATURE_*
 */
struct nhca_alloc_ucontext_resp {
	__u32 features;
	__u32 reserved;
};

struct nhca_create_cq_resp {
	struct nhca_ring_info cq;
};

struct nhca_resize_cq_resp {
	struct nhca_ring_info cq;
};

struct nhca_create_srq_resp {
	struct nhca_ring_info rq;
	__u32 srqn;
	__u32 reserved;
};

/* cmd of IB_USER_VERBS_CMD_MODIFY_SRQ: where the kernel writes a nhca_ring_info */
struct nhca_modify_srq_cmd {
	__aligned_u64 ring_info_addr;
};

struct nhca_create_qp_resp {
	struct nhca_ring_info sq;
	struct nhca_ring_info rq;
};

struct nhca_create_ah_resp {
	__u32 ah_id;
	__u32 reserved;
};

/* Driver attribute of UVERBS_METHOD_DM_ALLOC */
enum nhca_dm_alloc_attrs {
	NHCA_ATTR_ALLOC_DM_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/**
 * struct nhca_alloc_dm_resp - NHCA_ATTR_ALLOC_DM_RESP
 * @offset: for mmap() on the uverbs file
 * @size:   bytes to map
 */
struct nhca_alloc_dm_resp {
	__aligned_u64 offset;
	__aligned_u64 size;
};

#endif /* RDMA_NHCA_ABI_H */
