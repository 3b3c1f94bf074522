// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth: repeats verbs, changes of a device and a connection of rdma_cm, so that each allocation
 * that the kernel makes in a call fails once.
 *
 *   fail_nth [-D | -K KVERBS.ko | -M NHCA.ko] [-s STRIDE] [PART-OF-A-NAME]
 *
 * -D: only creation and removal of devices.  -K: only fast regions of a kernel consumer, the module
 * kverbs.  -M: only the driver's init function; the driver must not be loaded.  -K and -M need the
 * module fail_init.  -s: fail only every STRIDE-th allocation (1).
 *
 * A call must succeed, or return an error that means a lack of memory.  The test undoes what a call
 * has done.  In the end the call must succeed without an injected failure.  Data is moved between
 * queue pairs of this process; RC must deliver all of it.  Allocations in softirqs fail only in
 * fail_slab.sh.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/udmabuf.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <linux/netlink.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_netlink.h>
#include <infiniband/nhcadv.h>

#include "fail_nth.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define SIZE		(256u << 10)
#define JOB		4713
#define JOB_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define RCXTS		2

/* For calls that return a pointer */
#define MADE(var, call)	(errno = 0, (var) = (call), (var) ? 0 : errno ?: EIO)
/* For calls that return an errno, or -1 with errno */
#define DONE(call) ({ int done_ret = (call); done_ret < 0 ? errno ?: EIO : done_ret; })

static uint8_t *memory;		/* SIZE bytes for regions of the tests */
static int dmabuf_fd = -1;
static struct pair rc, ud;

/* ---- objects: one function makes each, another destroys it ---- */

static struct ibv_context *a_ctx;
static struct ibv_pd *a_pd;
static struct ibv_mr *a_mr;
static struct ibv_dm *a_dm, *dm_of_mr;
static struct ibv_mw *a_mw;
static struct ibv_comp_channel *a_channel;
static struct ibv_cq *a_cq;
static struct ibv_srq *a_srq;
static struct ibv_qp *a_qp;
static struct ibv_ah *an_ah;
static struct ibv_xrcd *an_xrcd;
static struct ibv_wq *a_wq;
static struct ibv_rwq_ind_table *a_table;
static struct ibv_flow *a_flow;
static struct nhcadv_job_mem *a_mem;
static struct ibv_cq *cq;	/* for objects that need one; struct pair and chan have their own */
static struct ibv_qp *raw_qp, *ud_qp;
static struct ibv_xrcd *xrcd;
static struct ibv_wq *wq;

static int ctx_make(void) { return MADE(a_ctx, ibv_open_device(dev.ctx->device)); }
static int ctx_drop(void) { return DONE(ibv_close_device(a_ctx)); }
static int pd_make(void) { return MADE(a_pd, ibv_alloc_pd(dev.ctx)); }
static int pd_drop(void) { return ibv_dealloc_pd(a_pd); }

static int mr_make(void) { return MADE(a_mr, ibv_reg_mr(dev.pd, memory, SIZE, ACCESS)); }
static int mr_drop(void) { return ibv_dereg_mr(a_mr); }

static int odp_make(void)
{
	return MADE(a_mr, ibv_reg_mr(dev.pd, memory, SIZE, ACCESS | IBV_ACCESS_ON_DEMAND));
}

static int implicit_make(void)
{
	return MADE(a_mr, ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND));
}

static int dmabuf_make(void)
{
	return MADE(a_mr, ibv_reg_dmabuf_mr(dev.pd, 0, SIZE, 0, dmabuf_fd, ACCESS));
}

static int dm_make(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 8192 };

	return MADE(a_dm, ibv_alloc_dm(dev.ctx, &attr));
}

static int dm_drop(void) { return ibv_free_dm(a_dm); }

static int dm_mr_make(void)
{
	return MADE(a_mr, ibv_reg_dm_mr(dev.pd, dm_of_mr, 0, 8192, ACCESS | IBV_ACCESS_ZERO_BASED));
}

/* Change an on-demand region to a pinned one.  If that fails, the old region must remain. */
static int rereg(void)
{
	return DONE(ibv_rereg_mr(a_mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
				 memory, SIZE / 2, ACCESS));
}

static int advise(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, SIZE, a_mr->lkey };

	return ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int odp_empty(void)
{
	return odp_make() ?: DONE(madvise(memory, SIZE, MADV_DONTNEED));
}

static int mw1_make(void) { return MADE(a_mw, ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1)); }
static int mw2_make(void) { return MADE(a_mw, ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2)); }
static int mw_drop(void) { return ibv_dealloc_mw(a_mw); }

static int channel_make(void) { return MADE(a_channel, ibv_create_comp_channel(dev.ctx)); }
static int channel_drop(void) { return DONE(ibv_destroy_comp_channel(a_channel)); }

static int cq_make(void) { return MADE(a_cq, ibv_create_cq(dev.ctx, 256, NULL, NULL, 0)); }
static int cq_drop(void) { return ibv_destroy_cq(a_cq); }
static int cq_resize(void) { return DONE(ibv_resize_cq(a_cq, 4000)); }

static int srq_make(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 4 } };

	return MADE(a_srq, ibv_create_srq(dev.pd, &attr));
}

static int srq_drop(void) { return ibv_destroy_srq(a_srq); }

static int srq_arm(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };

	return DONE(ibv_modify_srq(a_srq, &attr, IBV_SRQ_LIMIT));
}

static int xrcd_make(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1, .oflags = O_CREAT };

	return MADE(an_xrcd, ibv_open_xrcd(dev.ctx, &attr));
}

static int xrcd_drop(void) { return DONE(ibv_close_xrcd(an_xrcd)); }

static int xsrq_make(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .xrcd = xrcd, .cq = cq,
		.pd = dev.pd, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
		IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	return MADE(a_srq, ibv_create_srq_ex(dev.ctx, &attr));
}

static int qp_of(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4,
			 .max_inline_data = 200 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = dev.pd,
	};

	if (type == IBV_QPT_XRC_SEND) {
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
		attr.recv_cq = NULL;
	}
	if (type == IBV_QPT_XRC_RECV) {
		attr = (struct ibv_qp_init_attr_ex){ .qp_type = type, .xrcd = xrcd,
						     .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	}
	return MADE(a_qp, ibv_create_qp_ex(dev.ctx, &attr));
}

static int rc_make(void) { return qp_of(IBV_QPT_RC); }
static int uc_make(void) { return qp_of(IBV_QPT_UC); }
static int ud_make(void) { return qp_of(IBV_QPT_UD); }
static int raw_make(void) { return qp_of(IBV_QPT_RAW_PACKET); }
static int xsend_make(void) { return qp_of(IBV_QPT_XRC_SEND); }
static int xrecv_make(void) { return qp_of(IBV_QPT_XRC_RECV); }
static int qp_drop(void) { return ibv_destroy_qp(a_qp); }

static int wq_make(void)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 64, .max_sge = 2, .pd = dev.pd,
					 .cq = cq };

	return MADE(a_wq, ibv_create_wq(dev.ctx, &attr));
}

static int wq_drop(void) { return ibv_destroy_wq(a_wq); }

static int wq_ready(void)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };

	return ibv_modify_wq(a_wq, &attr);
}

/*
 * The table has two queues, because two handles fill 8 bytes and the command then has no padding.
 * With padding, the core (6.1 to 7.3) returns EOPNOTSUPP if it has no memory to check that the
 * padding is zero.
 */
static int table_make(void)
{
	struct ibv_wq *queues[] = { wq, wq };
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 1, .ind_tbl = queues };

	return MADE(a_table, ibv_create_rwq_ind_table(dev.ctx, &attr));
}

static int table_drop(void) { return ibv_destroy_rwq_ind_table(a_table); }

static int rss_make(void)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd, .rwq_ind_tbl = a_table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key,
				  IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 },
	};

	return MADE(a_qp, ibv_create_qp_ex(dev.ctx, &attr));
}

static int rss_drop(void) { return qp_drop() ?: table_drop(); }

static int flow_make(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val = { .ether_type = htons(0x88b5) }, .mask = { .ether_type = 0xffff } },
	};

	return MADE(a_flow, ibv_create_flow(raw_qp, &rule.attr));
}

static int flow_drop(void) { return ibv_destroy_flow(a_flow); }

static int ah_make(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 } };

	return MADE(an_ah, ibv_create_ah(dev.pd, &attr));
}

static int ah_drop(void) { return ibv_destroy_ah(an_ah); }

static union ibv_gid group(void)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3 } };

	return gid;
}

static int mcast_make(void)
{
	union ibv_gid gid = group();

	return DONE(ibv_attach_mcast(ud_qp, &gid, 0));
}

static int mcast_drop(void)
{
	union ibv_gid gid = group();

	return DONE(ibv_detach_mcast(ud_qp, &gid, 0));
}

static int mem_make(void) { return MADE(a_mem, nhcadv_reg_job_mem(dev.ctx, JOB, memory, SIZE, JOB_ACCESS)); }
static int mem_drop(void) { return nhcadv_dereg_job_mem(a_mem); }

/* ---- states of a queue pair ---- */

static int to(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
{
	errno = 0;
	return modify(qp, state, peer) ? 0 : errno ?: EIO;
}

static int to_sqd(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int from_sqd(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int states(void)
{
	return to(a_qp, IBV_QPS_INIT, 0) ?: to(a_qp, IBV_QPS_RTR, a_qp->qp_num) ?:
	       to(a_qp, IBV_QPS_RTS, 0) ?: to_sqd(a_qp) ?: from_sqd(a_qp) ?: to(a_qp, IBV_QPS_ERR, 0) ?:
	       to(a_qp, IBV_QPS_RESET, 0);
}

/* The driver allocates the rate limiter of a QP when the first limit is set. */
static int rate_prepare(void)
{
	return rc_make() ?: to(a_qp, IBV_QPS_INIT, 0) ?: to(a_qp, IBV_QPS_RTR, a_qp->qp_num) ?:
	       to(a_qp, IBV_QPS_RTS, 0);
}

static int rate_limit(void)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000000 };

	return ibv_modify_qp_rate_limit(a_qp, &attr);
}

/* Prepare a broadcast frame of an EtherType that no protocol of this node receives. */
static int frame_prepare(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int ret = raw_make() ?: ibv_modify_qp(a_qp, &attr, IBV_QP_STATE | IBV_QP_PORT);

	attr.qp_state = IBV_QPS_RTR;
	ret = ret ?: ibv_modify_qp(a_qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	ret = ret ?: ibv_modify_qp(a_qp, &attr, IBV_QP_STATE);
	memset(memory, 0xff, 12);
	memory[12] = 0x88;
	memory[13] = 0xb5;
	return ret ?: mr_make();
}

static int frame_send(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, 1000, a_mr->lkey };
	struct ibv_send_wr frame = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
				     .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_send(a_qp, &frame, &bad);
}

static int frame_drop(void) { return qp_drop() ?: mr_drop(); }

/* If an allocation fails, the requester retries, so the frame must be sent within 3 s. */
static int frame_ended(void)
{
	struct ibv_wc wc;
	int tries, n = 0;

	for (tries = 0; !n && tries < 3000; tries++) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (!n)
			usleep(1000);
	}
	if (n == 1 && !wc.status)
		return frame_drop();
	fail("a frame: %s", n == 1 ? ibv_wc_status_str(wc.status) : "no completion");
	return -1;
}

/* ---- rules of fault injection ---- */

static char rules[128];

static int rule_make(void) { return nth_write(rules, "add drop opcode response every 1000000"); }
static int rule_drop(void) { return nth_write(rules, "clear"); }
/* The rule counts the packets of each QP.  No test sends the million packets that a hit needs. */
static int rule_any(void) { return nth_write(rules, "add delay 1 every 1000000"); }

/* ---- modules ---- */

static const char *module_file;
static char kverbs_params[128];

static int module_load(const char *params)
{
	int fd = open(module_file, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return errno;
	ret = syscall(SYS_finit_module, fd, params, 0) ? errno : 0;
	close(fd);
	return ret;
}

static int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

static int kverbs_load(void) { return module_load(kverbs_params); }
static int kverbs_unload(void) { return module_unload("kverbs"); }
static int driver_load(void) { return module_load(""); }
static int driver_unload(void) { return module_unload("nhca"); }

/* ---- data ---- */

static struct ibv_send_wr wr;
static struct ibv_sge wr_sge;
static uint32_t round_no;
/* A pair whose on-demand regions are empty when a request begins */
static struct pair odp;
static struct pair *way;

static int data_prepare(void)
{
	round_no++;
	if (way == &odp)
		if (madvise(way->a.buf, way->size, MADV_DONTNEED) || madvise(way->b.buf, way->size, MADV_DONTNEED))
			return errno;
	fill(way->a.buf, way->size / 2, round_no);
	fill(way->b.buf, way->size / 2, ~round_no);
	memset(way->a.buf + way->size / 2, 0, 64);
	memset(way->b.buf + way->size / 2, 0, 64);
	if (wr.opcode == IBV_WR_SEND && !post_recv(way, 7, way->size / 2, wr_sge.length))
		return -1;
	return 0;
}

static int data_call(void)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(way->a.qp, &wr, &bad);
}

static int data_ended(void)
{
	struct completion c;

	if (!wait_any(way->a.cq, &c))
		return -1;
	if (c.status) {
		fail("%s", ibv_wc_status_str(c.status));
		return -1;
	}
	if (wr.opcode == IBV_WR_SEND && !wait_for(way->b.cq, 7, IBV_WC_RECV, &c))
		return -1;
	if (wr.opcode == IBV_WR_RDMA_READ)
		return filled(way->a.buf + way->size / 2, wr_sge.length, ~round_no) ? 0 : -1;
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return memcmp(way->b.buf + way->size / 2, &(uint64_t){ 5 }, 8) ? EBADMSG : 0;
	return filled(way->b.buf + way->size / 2, wr_sge.length, round_no) ? 0 : -1;
}

static int data_of(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, int flags)
{
	bool read = opcode == IBV_WR_RDMA_READ;

	way = p;
	wr_sge = sge_of(&p->a, read ? p->size / 2 : 0, len);
	wr = (struct ibv_send_wr){ .wr_id = 3, .sg_list = &wr_sge, .num_sge = 1, .opcode = opcode,
				   .send_flags = IBV_SEND_SIGNALED | flags };
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)p->b.buf + p->size / 2;
		wr.wr.atomic.rkey = p->b.mr->rkey;
		wr.wr.atomic.compare_add = 5;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf + (read ? 0 : p->size / 2);
		wr.wr.rdma.rkey = p->b.mr->rkey;
	}
	return data_prepare();
}

static int send_small(void) { return data_of(&rc, IBV_WR_SEND, 64, IBV_SEND_INLINE); }
static int send_large(void) { return data_of(&rc, IBV_WR_SEND, SIZE / 2, 0); }
static int ruled_send(void) { return rule_any() ?: send_large(); }
static int ruled_ended(void) { return data_ended() ?: rule_drop(); }
static int write_large(void) { return data_of(&rc, IBV_WR_RDMA_WRITE, SIZE / 2, 0); }
static int read_large(void) { return data_of(&rc, IBV_WR_RDMA_READ, SIZE / 2, 0); }
static int atomic(void) { return data_of(&rc, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0); }
static int odp_write(void) { return data_of(&odp, IBV_WR_RDMA_WRITE, SIZE / 2, 0); }
static int odp_read(void) { return data_of(&odp, IBV_WR_RDMA_READ, SIZE / 2, 0); }
static int odp_send(void) { return data_of(&odp, IBV_WR_SEND, SIZE / 2, 0); }

/* 1 while a receive is posted; the receive stays posted if a datagram is lost */
static int ud_waiting;

static int ud_prepare(void)
{
	if (!ud_waiting && !post_recv(&ud, 7, 0, 2048))
		return -1;
	ud_waiting = 1;
	return 0;
}

static int ud_call(void)
{
	struct ibv_sge sge = sge_of(&ud.a, 0, 1000);
	struct ibv_send_wr send = { .wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED,
				    .wr.ud = { ud.ah, ud.b.qp->qp_num, QKEY } };
	struct ibv_send_wr *bad;

	return ibv_post_send(ud.a.qp, &send, &bad);
}

static int ud_ended(void)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (injected ? 100000000ULL : 5000000000ULL);
	struct completion c;

	if (!wait_for(ud.a.cq, 3, IBV_WC_SEND, &c))
		return -1;
	while (!poll_one(ud.b.cq, &c))
		if (clock_ns(CLOCK_MONOTONIC) > end)
			return injected ? 0 : ETIMEDOUT;
	ud_waiting = 0;
	return c.status || c.byte_len != 1040 ? EBADMSG : 0;
}

/* ---- channels ---- */

struct chan {
	struct ibv_cq_ex *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct nhcadv_job_mem *mem;
	uint8_t *buf;
	uint64_t rcxts[RCXTS];
	struct nhcadv_peer peer;
};

static struct chan from, at;
static uint32_t tid;

static struct ibv_qp *chan_qp(struct ibv_cq *scq, struct ibv_cq *rcq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = scq, .recv_cq = rcq,
		.cap = { .max_send_wr = 16, .max_send_sge = 2, .max_inline_data = 256 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = dev.pd,
	};
	struct nhcadv_channel_init_attr attr = { .job = JOB, .frames = 16 };

	return nhcadv_create_channel(dev.ctx, &init, &attr);
}

static int chan_make(void) { return MADE(a_qp, chan_qp(cq, cq)); }

static int rcxts_make(void) { return DONE(nhcadv_acquire_rcxts(from.qp, from.rcxts, RCXTS)); }
static int rcxts_drop(void) { return DONE(nhcadv_release_rcxts(from.qp, from.rcxts, RCXTS)); }
static int at_make(void) { return DONE(nhcadv_acquire_rcxts(at.qp, at.rcxts, RCXTS)); }
static int at_drop(void) { return DONE(nhcadv_release_rcxts(at.qp, at.rcxts, RCXTS)); }

static bool chan_open(struct chan *c)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 256, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };

	c->scq = ibv_create_cq_ex(dev.ctx, &attr);
	c->rcq = ibv_create_cq_ex(dev.ctx, &attr);
	REQUIRE(c->scq && c->rcq, "ibv_create_cq_ex: %m");
	c->qp = chan_qp(ibv_cq_ex_to_cq(c->scq), ibv_cq_ex_to_cq(c->rcq));
	REQUIRE(c->qp, "nhcadv_create_channel: %m");
	c->qpx = ibv_qp_to_qp_ex(c->qp);
	c->dv = nhcadv_qp_ex_from_ibv_qp_ex(c->qpx);
	REQUIRE(!posix_memalign((void **)&c->buf, 4096, SIZE), "no memory");
	c->mem = nhcadv_reg_job_mem(dev.ctx, JOB, c->buf, SIZE, JOB_ACCESS);
	REQUIRE(c->mem, "nhcadv_reg_job_mem: %m");
	return true;
}

static bool chan_meet(struct chan *c, struct chan *other)
{
	struct nhcadv_channel_info info;

	VERB(nhcadv_query_channel(other->qp, &info));
	c->peer = (struct nhcadv_peer){ .qpn = other->qp->qp_num, .key = info.key, .ah = an_ah };
	return true;
}

static bool chan_close(struct chan *c)
{
	VERB(ibv_destroy_qp(c->qp));
	VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(c->scq)));
	VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(c->rcq)));
	VERB(nhcadv_dereg_job_mem(c->mem));
	free(c->buf);
	return true;
}

/* Numbers of completions: of the work request (local), and of the transfer (done) */
struct chan_seen {
	int local, done;
};

static void chan_poll(struct ibv_cq_ex *q, enum nhcadv_wc_kind kind, struct chan_seen *seen)
{
	struct nhcadv_cq *dv = nhcadv_cq_from_ibv_cq_ex(q);
	struct ibv_poll_cq_attr attr = {};

	if (ibv_start_poll(q, &attr))
		return;
	/* a READ completes with an error if the allocation of its bitmap fails */
	if (!q->status || (injected && q->status == IBV_WC_GENERAL_ERR))
		seen->local += nhcadv_wc_read_kind(dv) == NHCADV_WC_LOCAL;
	if (!q->status)
		seen->done += nhcadv_wc_read_kind(dv) == kind;
	if (nhcadv_wc_read_kind(dv) == NHCADV_WC_FRAME)
		nhcadv_release_frame(at.qp, nhcadv_wc_read_frame(dv));
	ibv_end_poll(q);
}

static struct chan_seen chan_wait(struct chan *c, struct ibv_cq_ex *q, enum nhcadv_wc_kind kind)
{
	uint64_t begun = clock_ns(CLOCK_MONOTONIC), now = begun;
	struct chan_seen seen = {};

	/*
	 * Wait up to 5 s for both completions.  If an allocation was failed, the transfer may be
	 * lost: then return as soon as the request is complete and 200 ms have passed.
	 */
	while ((!seen.local || !seen.done) &&
	       now - begun < (injected && seen.local ? 200000000ULL : 5000000000ULL)) {
		chan_poll(c->scq, kind, &seen);
		if (q != c->scq)
			chan_poll(q, kind, &seen);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	return seen;
}

static int chan_prepare(void)
{
	round_no++;
	fill(from.buf, SIZE, round_no);
	memset(at.buf, 0, SIZE);
	return rcxts_make() ?: at_make();
}

static struct nhcadv_transfer chan_transfer(bool read)
{
	return (struct nhcadv_transfer){
		.local_rcxt = read ? at.rcxts[0] : from.rcxts[0], .remote_rcxt = read ? from.rcxts[0] : at.rcxts[0],
		.local_pvo = read ? at.mem->pvo : from.mem->pvo, .remote_pvo = read ? from.mem->pvo : at.mem->pvo,
		.tid = ++tid, .total = SIZE, .notify = read ? NHCADV_NOTIFY_INITIATOR : NHCADV_NOTIFY_TARGET,
	};
}

static void chan_start(struct chan *c)
{
	ibv_wr_start(c->qpx);
	c->qpx->wr_id = 3;
	c->qpx->wr_flags = IBV_SEND_SIGNALED;
}

static int chan_write(void)
{
	struct nhcadv_transfer t = chan_transfer(false);

	chan_start(&from);
	nhcadv_wr_write(from.dv, &from.peer, &t);
	return ibv_wr_complete(from.qpx);
}

static int chan_read(void)
{
	struct nhcadv_transfer t = chan_transfer(true);

	chan_start(&at);
	nhcadv_wr_read(at.dv, &at.peer, &t);
	return ibv_wr_complete(at.qpx);
}

static int chan_packet(void)
{
	chan_start(&from);
	nhcadv_wr_packet(from.dv, &from.peer, 4711);
	ibv_wr_set_inline_data(from.qpx, memory, 200);
	return ibv_wr_complete(from.qpx);
}

/* If an allocation fails, packets may be lost, but the work request must complete. */
static int chan_ended(struct chan *c, struct ibv_cq_ex *q, enum nhcadv_wc_kind kind, bool bytes)
{
	struct chan_seen seen = chan_wait(c, q, kind);

	if (seen.local != 1) {
		fail("the work request completed %d times", seen.local);
		return -1;
	}
	if (!seen.done && !injected) {
		fail("the transfer did not complete");
		return -1;
	}
	if (seen.done && bytes && !filled(at.buf, SIZE, round_no))
		return -1;
	return rcxts_drop() ?: at_drop();
}

static int chan_written(void) { return chan_ended(&from, at.rcq, NHCADV_WC_REMOTE_WRITE, true); }
static int chan_was_read(void) { return chan_ended(&at, at.scq, NHCADV_WC_READ, true); }
static int chan_sent(void) { return chan_ended(&from, at.rcq, NHCADV_WC_FRAME, false); }

/* ---- devices ---- */

#define LINK	"nhca_nth"
#define CARRIER	"nth0"

static int nl_fd = -1;

static void nl_text(struct nlmsghdr *h, int type, const char *text)
{
	struct nlattr *a = (void *)h + NLMSG_ALIGN(h->nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + strlen(text) + 1;
	strcpy((char *)a + NLA_HDRLEN, text);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static bool link_there(void)
{
	return !access("/sys/class/infiniband/" LINK, F_OK);
}

/* Discard the kernel's replies. */
static void nl_drain(void)
{
	char buf[8192];

	while (recv(nl_fd, buf, sizeof(buf), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		;
}

/*
 * The reply may be ENOBUFS although the kernel has made the device, so check whether the device
 * exists.
 */
static int link_add(void)
{
	char buf[256] = {};
	struct nlmsghdr *h = (void *)buf;

	*h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
				.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK) };
	nl_text(h, RDMA_NLDEV_ATTR_DEV_NAME, LINK);
	nl_text(h, RDMA_NLDEV_ATTR_LINK_TYPE, "nhca");
	nl_text(h, RDMA_NLDEV_ATTR_NDEV_NAME, CARRIER);
	return send(nl_fd, h, h->nlmsg_len, 0) < 0 ? errno : link_there() ? 0 : ENOMEM;
}

/* Return: the index of the device for DELLINK, from a dump of all devices. */
static uint32_t link_index(void)
{
	char buf[8192];
	struct nlmsghdr *h = (void *)buf;
	uint32_t found = UINT32_MAX;
	bool more = true;
	ssize_t len;

	nl_drain();
	*h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
				.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET) };
	if (send(nl_fd, h, h->nlmsg_len, 0) < 0)
		return found;
	while (more && (len = recv(nl_fd, buf, sizeof(buf), 0)) > 0) {
		for (h = (void *)buf; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			struct nlattr *a = NLMSG_DATA(h);
			uint32_t index = UINT32_MAX;

			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				more = false;
			for (; more && (char *)a < (char *)h + h->nlmsg_len;
			     a = (void *)a + NLA_ALIGN(a->nla_len)) {
				char *value = (char *)a + NLA_HDRLEN;

				if (a->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
					memcpy(&index, value, sizeof(index));
				if (a->nla_type == RDMA_NLDEV_ATTR_DEV_NAME && !strcmp(value, LINK))
					found = index;
			}
		}
	}
	return found;
}

static uint32_t del_index;

static int link_prepare(void)
{
	int ret = link_add();

	del_index = link_index();
	return ret ?: del_index == UINT32_MAX ? ENODEV : 0;
}

static int link_del(void)
{
	char buf[256] = {};
	struct nlmsghdr *h = (void *)buf;
	struct nlattr *a = NLMSG_DATA(h);

	*h = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN + NLA_HDRLEN + 4, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
				.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_DELLINK) };
	*a = (struct nlattr){ .nla_len = NLA_HDRLEN + 4, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX };
	memcpy((char *)a + NLA_HDRLEN, &del_index, 4);
	return send(nl_fd, h, h->nlmsg_len, 0) < 0 ? errno : link_there() ? ENOMEM : 0;
}

static int link_drop(void)
{
	del_index = link_index();
	return del_index == UINT32_MAX ? ENODEV : link_del();
}

/* A device whose creation failed must not exist. */
static int link_refused(void) { return link_there() ? EEXIST : 0; }

/* ---- rdma_cm ---- */

static struct rdma_event_channel *cm_events;
static struct sockaddr_in cm_addr = { .sin_family = AF_INET };

/*
 * The next event must be of @type, within 3 s.  A CM message that was lost for lack of memory is
 * resent only after more than 4 s, or never, so this function then returns ENOMEM.
 */
static int cm_wait(enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct pollfd fd = { .fd = cm_events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int ret;

	if (poll(&fd, 1, 3000) != 1)
		return ENOMEM;
	if (rdma_get_cm_event(cm_events, &event))
		return errno;
	ret = event->event == type ? 0 : ENOMEM;
	if (!ret && id)
		*id = event->id;
	/* destroy the ID of a connection request that the test does not accept */
	if (ret && event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_destroy_id(event->id);
	if (rdma_ack_cm_event(event))
		return errno;
	return ret;
}

static int connect_once(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
					 .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_qp_init_attr attr2 = attr;
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener = NULL, *client = NULL, *server = NULL;
	bool client_qp = false, server_qp = false;
	int ret = MADE(cm_events, rdma_create_event_channel());

	if (ret)
		return ret;
#define CM(call) do { if (!ret) ret = DONE(call); } while (0)
	CM(rdma_create_id(cm_events, &listener, NULL, RDMA_PS_TCP));
	cm_addr.sin_port = htons(18990);
	CM(rdma_bind_addr(listener, (struct sockaddr *)&cm_addr));
	CM(rdma_listen(listener, 1));
	CM(rdma_create_id(cm_events, &client, NULL, RDMA_PS_TCP));
	CM(rdma_resolve_addr(client, NULL, (struct sockaddr *)&cm_addr, 1000));
	CM(cm_wait(RDMA_CM_EVENT_ADDR_RESOLVED, NULL));
	CM(rdma_resolve_route(client, 1000));
	CM(cm_wait(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL));
	if (!ret && client->verbs != dev.ctx) {
		/*
		 * librdmacm uses its own context of the same device, for which the CQs of dev.ctx
		 * are not valid
		 */
		attr.send_cq = attr.recv_cq = NULL;
		attr2.send_cq = attr2.recv_cq = NULL;
	}
	CM(rdma_create_qp(client, NULL, &attr));
	client_qp = !ret;
	CM(rdma_connect(client, &param));
	CM(cm_wait(RDMA_CM_EVENT_CONNECT_REQUEST, &server));
	CM(rdma_create_qp(server, NULL, &attr2));
	server_qp = !ret;
	CM(rdma_accept(server, &param));
	CM(cm_wait(RDMA_CM_EVENT_ESTABLISHED, NULL));
	CM(cm_wait(RDMA_CM_EVENT_ESTABLISHED, NULL));
	CM(rdma_disconnect(client));
#undef CM
	/* the cleanup is not part of the call, so no allocation fails from here */
	if (!nth_disarm())
		return EIO;
	if (server_qp)
		rdma_destroy_qp(server);
	if (client_qp)
		rdma_destroy_qp(client);
	if (server)
		rdma_destroy_id(server);
	if (client)
		rdma_destroy_id(client);
	if (listener)
		rdma_destroy_id(listener);
	rdma_destroy_event_channel(cm_events);
	/* nth_step() calls nth_disarm() again, which must set injected to the same value */
	if (!nth_arm(injected ? 0 : 1000000))
		return EIO;
	return ret;
}

/* ---- all of them ---- */

#define OBJECT(text, make, drop) \
	{ text " is made", NULL, make, drop, NULL }, { text " is freed", make, drop, NULL, drop }

static const struct step steps[] = {
	OBJECT("a context", ctx_make, ctx_drop),
	OBJECT("a PD", pd_make, pd_drop),
	OBJECT("a region", mr_make, mr_drop),
	OBJECT("an on-demand region", odp_make, mr_drop),
	OBJECT("an implicit on-demand region", implicit_make, mr_drop),
	OBJECT("a region of a dma-buf", dmabuf_make, mr_drop),
	OBJECT("device memory", dm_make, dm_drop),
	OBJECT("a region of device memory", dm_mr_make, mr_drop),
	{ "a region changes", odp_make, rereg, mr_drop, mr_drop },
	{ "pages of a region are fetched", odp_empty, advise, mr_drop, mr_drop },
	OBJECT("a window of type 1", mw1_make, mw_drop),
	OBJECT("a window of type 2", mw2_make, mw_drop),
	OBJECT("a completion channel", channel_make, channel_drop),
	OBJECT("a CQ", cq_make, cq_drop),
	{ "a CQ is resized", cq_make, cq_resize, cq_drop, cq_drop },
	OBJECT("an SRQ", srq_make, srq_drop),
	{ "an SRQ is armed", srq_make, srq_arm, srq_drop, srq_drop },
	OBJECT("an XRC domain", xrcd_make, xrcd_drop),
	OBJECT("an XRC SRQ", xsrq_make, srq_drop),
	OBJECT("an RC QP", rc_make, qp_drop),
	OBJECT("a UC QP", uc_make, qp_drop),
	OBJECT("a UD QP", ud_make, qp_drop),
	OBJECT("an XRC send QP", xsend_make, qp_drop),
	/* if creation fails, create_xrc_qp_user() of the core (6.1 to 7.3) leaks the XRC domain */
	{ "an XRC receive QP is destroyed", xrecv_make, qp_drop, NULL, qp_drop },
	OBJECT("a raw packet QP", raw_make, qp_drop),
	OBJECT("a receive work queue", wq_make, wq_drop),
	{ "a receive work queue gets ready", wq_make, wq_ready, wq_drop, wq_drop },
	OBJECT("a table of work queues", table_make, table_drop),
	{ "a QP over a table is made", table_make, rss_make, rss_drop, table_drop },
	OBJECT("a rule", flow_make, flow_drop),
	OBJECT("an address handle", ah_make, ah_drop),
	OBJECT("membership of a multicast group", mcast_make, mcast_drop),
	{ "an RC QP passes through its states", rc_make, states, qp_drop, qp_drop },
	{ "a UC QP passes through its states", uc_make, states, qp_drop, qp_drop },
	{ "a UD QP passes through its states", ud_make, states, qp_drop, qp_drop },
	{ "an RC QP gets a rate limit", rate_prepare, rate_limit, qp_drop, qp_drop },
	{ "a frame of a raw packet QP", frame_prepare, frame_send, frame_ended, frame_drop },
	OBJECT("a rule of fault injection", rule_make, rule_drop),
	OBJECT("memory of a job", mem_make, mem_drop),
	OBJECT("a channel", chan_make, qp_drop),
	OBJECT("rCxts", rcxts_make, rcxts_drop),
	{ "an inline SEND", send_small, data_call, data_ended, NULL },
	{ "a large SEND", send_large, data_call, data_ended, NULL },
	{ "a SEND that a rule matches", ruled_send, data_call, ruled_ended, NULL },
	{ "a large WRITE", write_large, data_call, data_ended, NULL },
	{ "a large READ", read_large, data_call, data_ended, NULL },
	{ "an atomic", atomic, data_call, data_ended, NULL },
	{ "a WRITE between on-demand regions", odp_write, data_call, data_ended, NULL },
	{ "a READ between on-demand regions", odp_read, data_call, data_ended, NULL },
	{ "a SEND between on-demand regions", odp_send, data_call, data_ended, NULL },
	{ "a datagram", ud_prepare, ud_call, ud_ended, NULL },
	{ "a WRITE of a channel", chan_prepare, chan_write, chan_written, NULL },
	{ "a READ of a channel", chan_prepare, chan_read, chan_was_read, NULL },
	{ "a packet of a channel", chan_prepare, chan_packet, chan_sent, NULL },
	{ "a connection of rdma_cm", NULL, connect_once, NULL, NULL },
};

static const struct step device_steps[] = {
	{ "a device is made", NULL, link_add, link_drop, link_refused },
	{ "a device is removed", link_prepare, link_del, NULL, link_drop },
};

static const struct step kverbs_steps[] = {
	{ "a kernel consumer makes fast regions", NULL, kverbs_load, kverbs_unload, NULL },
};

static const struct step driver_steps[] = {
	{ "the driver is loaded", NULL, driver_load, driver_unload, NULL },
};

static int dmabuf_open(void)
{
	struct udmabuf_create create = { .memfd = memfd_create("fail_nth", MFD_ALLOW_SEALING), .size = SIZE,
					 .flags = UDMABUF_FLAGS_CLOEXEC };
	int udmabuf = open("/dev/udmabuf", O_RDWR), fd = -1;

	if (!ftruncate(create.memfd, SIZE) && !fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(udmabuf, UDMABUF_CREATE, &create);
	close(udmabuf);
	close(create.memfd);
	return fd;
}

/* Make the objects that the steps need. */
static bool begin(void)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	if (!device_open())
		return false;
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(memory != MAP_FAILED, "mmap: %m");
	memset(memory, 1, SIZE);
	dmabuf_fd = dmabuf_open();
	REQUIRE(dmabuf_fd >= 0, "udmabuf: %m");
	cq = ibv_create_cq(dev.ctx, 1024, NULL, NULL, 0);
	REQUIRE(cq, "ibv_create_cq: %m");
	VERB(raw_make());
	raw_qp = a_qp;
	VERB(ibv_modify_qp(raw_qp, &init, IBV_QP_STATE | IBV_QP_PORT));
	VERB(ud_make());
	ud_qp = a_qp;
	VERB(xrcd_make());
	xrcd = an_xrcd;
	VERB(wq_make());
	wq = a_wq;
	VERB(dm_make());
	dm_of_mr = a_dm;
	if (!make_pair(&rc, (struct pair_opts){ .size = SIZE, .inline_data = 200 }) ||
	    !make_pair(&odp, (struct pair_opts){ .size = SIZE, .more_access = IBV_ACCESS_ON_DEMAND }) ||
	    !make_pair(&ud, (struct pair_opts){ .type = IBV_QPT_UD }))
		return false;
	VERB(ah_make());
	ud.ah = an_ah;
	if (!chan_open(&from) || !chan_open(&at) || !chan_meet(&from, &at) || !chan_meet(&at, &from))
		return false;
	REQUIRE(dev.ipv4, "no GID of an IPv4 address");
	memcpy(&cm_addr.sin_addr, dev.gid.raw + 12, 4);
	nl_fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	REQUIRE(nl_fd >= 0, "NETLINK_RDMA: %m");
	snprintf(rules, sizeof(rules), "/sys/kernel/debug/nhca/%s/faults",
		 ibv_get_device_name(dev.ctx->device));
	return nth_open();
}

static bool end(void)
{
	if (!chan_close(&from) || !chan_close(&at) || !pair_free(&rc) || !pair_free(&odp) || !pair_free(&ud))
		return false;
	VERB(ibv_destroy_qp(raw_qp));
	VERB(ibv_destroy_qp(ud_qp));
	VERB(ibv_destroy_wq(wq));
	VERB(ibv_close_xrcd(xrcd));
	VERB(ibv_free_dm(dm_of_mr));
	VERB(ibv_destroy_cq(cq));
	VERB(ibv_dealloc_pd(dev.pd));
	VERB(ibv_close_device(dev.ctx));
	return true;
}

int main(int argc, char **argv)
{
	const struct step *run = steps;
	size_t count = ARRAY_SIZE(steps);
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "DK:M:s:")) != -1) {
		if (letter == 'D') {
			run = device_steps;
			count = ARRAY_SIZE(device_steps);
		} else if (letter == 'K') {
			run = kverbs_steps;
			count = ARRAY_SIZE(kverbs_steps);
			module_file = optarg;
			snprintf(kverbs_params, sizeof(kverbs_params), "dev=%s fast=1",
				 getenv("RDMA_DEV"));
		} else if (letter == 'M') {
			run = driver_steps;
			count = ARRAY_SIZE(driver_steps);
			module_file = optarg;
		} else if (letter == 's' && atoi(optarg) > 0) {
			stride = atoi(optarg);
		} else {
			fputs("usage: fail_nth [-D | -K KVERBS.ko | -M NHCA.ko] [-s STRIDE] [PART-OF-A-NAME]\n",
			      stderr);
			return 2;
		}
	}
	if (module_file)
		nth_path = "/sys/module/fail_init/parameters/nth";
	if (module_file ? !nth_open() : !begin()) {
		if (skipped)
			ktap_skip(reason, "fail_nth");
		else
			ktap_notok(reason, "fail_nth");
		return ktap_end();
	}
	nth_run(run, count, argv[optind]);
	if (!module_file && !end())
		ktap_notok(reason, "all objects are destroyed at the end");
	return ktap_end();
}
