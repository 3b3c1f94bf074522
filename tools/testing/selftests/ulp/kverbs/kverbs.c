// SPDX-License-Identifier: GPL-2.0
/*
 * kverbs: the verbs interface of a kernel consumer, for kverbs.sh.
 *
 * When the module is loaded, it connects two RC queue pairs of one device, once for each way of
 * polling a CQ, with the QP's own CQ or one of the core's pool.  It tests messages of several SGEs,
 * fast registration and drains.  Each result is a line of the kernel log, in the form of lib.sh.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define DEPTH		64
#define PAGES		8
#define BUF_SIZE	(PAGES * PAGE_SIZE)
#define PATIENCE	(20 * HZ)
#define ACCESS		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static char *dev = "nhca0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the RDMA device");

static int gid;
module_param(gid, int, 0444);
MODULE_PARM_DESC(gid, "index of the GID of both ends");

static bool fast;
module_param(fast, bool, 0444);
MODULE_PARM_DESC(fast, "only allocate and map fast regions; loading fails if that fails");

static const struct way {
	const char *name;
	enum ib_poll_context context;
	bool pool;
} ways[] = {
	{ "polled by its user", IB_POLL_DIRECT },
	{ "softirq", IB_POLL_SOFTIRQ },
	{ "workqueue", IB_POLL_WORKQUEUE },
	{ "unbound workqueue", IB_POLL_UNBOUND_WORKQUEUE },
	{ "pool, softirq", IB_POLL_SOFTIRQ, true },
	{ "pool, workqueue", IB_POLL_WORKQUEUE, true },
};

struct end {
	struct ib_cq *cq;
	struct ib_qp *qp;
	void *buf;
	u64 dma;
};

/* A request whose completion the caller awaits */
struct request {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
	u32 byte_len;
	u32 invalidated;
};

/* Requests whose completions are only counted, because a drain waits for them */
struct counted {
	struct ib_cqe cqe;
	atomic_t done;
	atomic_t flushed;
};

static struct ib_device *ibdev;
static struct ib_pd *pd;

static void result(const struct way *way, const char *what, int err)
{
	if (err)
		pr_info("not ok - %s, %s: %d\n", what, way->name, err);
	else
		pr_info("ok - %s, %s\n", what, way->name);
}

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *req = container_of(wc->wr_cqe, struct request, cqe);

	req->status = wc->status;
	req->byte_len = wc->byte_len;
	req->invalidated = wc->wc_flags & IB_WC_WITH_INVALIDATE ? wc->ex.invalidate_rkey : 0;
	complete(&req->done);
}

static void request_init(struct request *req)
{
	req->cqe.done = request_done;
	init_completion(&req->done);
}

static int request_wait(const struct way *way, struct end *end, struct request *req)
{
	unsigned long deadline = jiffies + PATIENCE;

	if (way->context == IB_POLL_DIRECT) {
		while (!completion_done(&req->done) && time_before(jiffies, deadline)) {
			ib_process_cq_direct(end->cq, -1);
			cond_resched();
		}
	}
	if (!wait_for_completion_timeout(&req->done, PATIENCE))
		return -ETIMEDOUT;
	return req->status == IB_WC_SUCCESS ? 0 : -EIO;
}

static void counted_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct counted *count = container_of(wc->wr_cqe, struct counted, cqe);

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&count->flushed);
	atomic_inc(&count->done);
}

static void end_fini(const struct way *way, struct end *end)
{
	if (end->qp)
		ib_destroy_qp(end->qp);
	if (end->cq && way->pool)
		ib_cq_pool_put(end->cq, 2 * DEPTH + 2);
	else if (end->cq)
		ib_free_cq(end->cq);
	if (end->buf) {
		ib_dma_unmap_single(ibdev, end->dma, BUF_SIZE, DMA_BIDIRECTIONAL);
		kfree(end->buf);
	}
	memset(end, 0, sizeof(*end));
}

static int end_init(const struct way *way, struct end *end)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* one more slot for the drain */
		.cap = { .max_send_wr = DEPTH + 1, .max_recv_wr = DEPTH + 1,
			 .max_send_sge = PAGES, .max_recv_sge = PAGES },
	};
	struct ib_cq *cq;

	end->buf = kzalloc(BUF_SIZE, GFP_KERNEL);
	if (!end->buf)
		return -ENOMEM;
	end->dma = ib_dma_map_single(ibdev, end->buf, BUF_SIZE, DMA_BIDIRECTIONAL);

	cq = way->pool ? ib_cq_pool_get(ibdev, 2 * DEPTH + 2, 0, way->context) :
			 ib_alloc_cq(ibdev, NULL, 2 * DEPTH + 2, 0, way->context);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	end->cq = cq;

	attr.send_cq = cq;
	attr.recv_cq = cq;
	end->qp = ib_create_qp(pd, &attr);
	if (IS_ERR(end->qp)) {
		int err = PTR_ERR(end->qp);

		end->qp = NULL;
		return err;
	}
	return 0;
}

static int end_connect(struct end *end, const struct end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};
	union ib_gid dgid;
	int err;

	err = ib_modify_qp(end->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (!err)
		err = rdma_query_gid(ibdev, 1, gid, &dgid);
	if (err)
		return err;

	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	rdma_ah_set_grh(&attr.ah_attr, &dgid, 0, gid, 64, 0);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	err = ib_modify_qp(end->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;

	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	return ib_modify_qp(end->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int post_recv(struct end *end, struct ib_cqe *cqe, struct ib_sge *sge, int num)
{
	struct ib_recv_wr wr = { .wr_cqe = cqe, .sg_list = sge, .num_sge = num };

	return ib_post_recv(end->qp, &wr, NULL);
}

static struct ib_sge element(const struct end *end, u32 offset, u32 length)
{
	return (struct ib_sge) {
		.addr = end->dma + offset,
		.length = length,
		.lkey = pd->local_dma_lkey,
	};
}

/* Post a SEND and a receive whose SGEs have gaps between them and different lengths. */
static int elements(const struct way *way, struct end *a, struct end *b)
{
	static const u32 from[] = { 1, 3000, 0, 511, 4096 }, to[] = { 4097, 17, 3494 };
	struct ib_sge sge[ARRAY_SIZE(from)];
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = sge,
		.num_sge = ARRAY_SIZE(from),
	};
	struct request send, recv;
	u32 total = 0, at = 0, done = 0;
	u8 *sent, *came;
	int i, err;

	request_init(&send);
	request_init(&recv);
	get_random_bytes(a->buf, BUF_SIZE);
	memset(b->buf, 0, BUF_SIZE);

	for (i = 0; i < ARRAY_SIZE(to); i++) {
		sge[i] = element(b, at, to[i]);
		at += to[i] + 13;
	}
	err = post_recv(b, &recv.cqe, sge, ARRAY_SIZE(to));
	if (err)
		return err;

	for (i = 0, at = 0; i < ARRAY_SIZE(from); i++) {
		sge[i] = element(a, at, from[i]);
		at += from[i] + 7;
		total += from[i];
	}
	wr.wr_cqe = &send.cqe;
	err = ib_post_send(a->qp, &wr, NULL) ?: request_wait(way, a, &send) ?:
		request_wait(way, b, &recv);
	if (err)
		return err;
	if (recv.byte_len != total)
		return -EMSGSIZE;

	sent = kmalloc(2 * total, GFP_KERNEL);
	if (!sent)
		return -ENOMEM;
	came = sent + total;
	for (i = 0, at = 0, done = 0; i < ARRAY_SIZE(from); i++) {
		memcpy(sent + done, a->buf + at, from[i]);
		done += from[i];
		at += from[i] + 7;
	}
	for (i = 0, at = 0, done = 0; i < ARRAY_SIZE(to); i++) {
		u32 len = min(to[i], total - done);

		memcpy(came + done, b->buf + at, len);
		done += len;
		at += to[i] + 13;
	}
	err = memcmp(sent, came, total) ? -EILSEQ : 0;
	kfree(sent);
	return err;
}

static int one_sided(const struct way *way, struct end *a, enum ib_wr_opcode opcode, u64 iova,
		     u32 length, u32 rkey)
{
	struct ib_sge sge = element(a, 0, length);
	struct request req;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &req.cqe,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = iova,
		.rkey = rkey,
	};

	request_init(&req);
	return ib_post_send(a->qp, &wr.wr, NULL) ?: request_wait(way, a, &req);
}

/*
 * Map the pages in order or in reverse, the first one not from its beginning, the last one not to
 * its end.
 */
static int region_map(struct ib_mr *mr, const struct end *end, struct scatterlist *sgl, bool reverse)
{
	int i, n;

	sg_init_table(sgl, PAGES);
	for (i = 0; i < PAGES; i++) {
		u32 skip = i ? 0 : 100, len = i == PAGES - 1 ? 300 : PAGE_SIZE - skip;

		sg_set_buf(&sgl[i], end->buf + (reverse ? PAGES - 1 - i : i) * PAGE_SIZE + skip,
			   len);
	}
	if (ib_dma_map_sg(ibdev, sgl, PAGES, DMA_BIDIRECTIONAL) != PAGES)
		return -EIO;
	n = ib_map_mr_sg(mr, sgl, PAGES, NULL, PAGE_SIZE);
	ib_dma_unmap_sg(ibdev, sgl, PAGES, DMA_BIDIRECTIONAL);
	return n == PAGES ? 0 : -EINVAL;
}

/*
 * Do IB_WR_REG_MR, a READ of the region, a WRITE to it, and a SEND that invalidates it.  Before the
 * WRITE the region is mapped for its next use, which must have no effect yet.
 */
static int region(const struct way *way, struct end *a, struct end *b)
{
	struct scatterlist sgl[PAGES], next[PAGES];
	struct request reg, send, recv;
	struct ib_reg_wr reg_wr = {
		.wr = { .wr_cqe = &reg.cqe, .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.access = ACCESS,
	};
	struct ib_send_wr inv = {
		.wr_cqe = &send.cqe,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_mr *mr;
	void *seen;
	u64 iova;
	int err;

	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	seen = kmalloc(BUF_SIZE, GFP_KERNEL);
	if (!seen) {
		err = -ENOMEM;
		goto out;
	}
	err = region_map(mr, b, sgl, true);
	if (err)
		goto out;

	request_init(&reg);
	request_init(&send);
	request_init(&recv);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	reg_wr.mr = mr;
	reg_wr.key = mr->rkey;
	iova = mr->iova;
	get_random_bytes(b->buf, BUF_SIZE);
	sg_copy_to_buffer(sgl, PAGES, seen, mr->length);
	err = ib_post_send(b->qp, &reg_wr.wr, NULL) ?: request_wait(way, b, &reg) ?:
		one_sided(way, a, IB_WR_RDMA_READ, iova, mr->length, mr->rkey);
	if (!err && memcmp(seen, a->buf, mr->length))
		err = -EILSEQ;
	if (err)
		goto out;

	get_random_bytes(a->buf, BUF_SIZE);
	err = region_map(mr, b, next, false) ?:
		one_sided(way, a, IB_WR_RDMA_WRITE, iova, mr->length, mr->rkey);
	sg_copy_to_buffer(sgl, PAGES, seen, mr->length);
	if (!err && memcmp(seen, a->buf, mr->length))
		err = -EILSEQ;
	if (err)
		goto out;

	inv.ex.invalidate_rkey = mr->rkey;
	err = post_recv(b, &recv.cqe, NULL, 0) ?: ib_post_send(a->qp, &inv, NULL) ?:
		request_wait(way, a, &send) ?: request_wait(way, b, &recv);
	if (!err && recv.invalidated != mr->rkey)
		err = -EKEYREJECTED;
out:
	kfree(seen);
	ib_dereg_mr(mr);
	return err;
}

/*
 * Both queues are full of requests when they are drained.  After ib_drain_qp() each request must
 * have had its completion, and all receives must have been flushed.
 */
static int drain(struct end *a, struct end *b)
{
	struct counted sends = { .cqe.done = counted_done }, recvs = { .cqe.done = counted_done };
	struct ib_sge sge = element(a, 0, BUF_SIZE);
	struct ib_send_wr wr = {
		.wr_cqe = &sends.cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int i, err;

	for (i = 0; i < DEPTH; i++) {
		struct ib_sge mine = element(a, 0, PAGE_SIZE);

		err = post_recv(a, &recvs.cqe, &mine, 1);
		if (err)
			return err;
	}
	/* these SENDs stay in the queue, because the peer has no receives */
	for (i = 0; i < DEPTH; i++) {
		err = ib_post_send(a->qp, &wr, NULL);
		if (err)
			return err;
	}
	ib_drain_qp(a->qp);
	ib_drain_qp(b->qp);
	if (atomic_read(&sends.done) != DEPTH || atomic_read(&recvs.done) != DEPTH)
		return -EBUSY;
	return atomic_read(&recvs.flushed) == DEPTH ? 0 : -EIO;
}

static void try(const struct way *way)
{
	struct end a = {}, b = {};
	int err;

	err = end_init(way, &a) ?: end_init(way, &b) ?: end_connect(&a, &b) ?: end_connect(&b, &a);
	result(way, "queue pairs are connected", err);
	if (err)
		goto out;
	if (way->pool)
		result(way, "the pool's CQ is shared", a.cq == b.cq ? 0 : -ENOENT);
	result(way, "a SEND of five elements into three", elements(way, &a, &b));
	result(way, "a region is registered, written, read and invalidated", region(way, &a, &b));
	result(way, "no completion follows a drain", drain(&a, &b));
out:
	end_fini(way, &a);
	end_fini(way, &b);
}

/* The result of kverbs_init() with the parameter fast: insmod reports it. */
static int fast_err = -ENODEV;

/* Map @buf with this page size. */
static int fast_map(struct ib_mr *mr, void *buf, u32 page_size)
{
	struct scatterlist sg;
	int n;

	sg_init_one(&sg, buf, PAGE_SIZE);
	if (ib_dma_map_sg(ibdev, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	n = ib_map_mr_sg(mr, &sg, 1, NULL, page_size);
	ib_dma_unmap_sg(ibdev, &sg, 1, DMA_BIDIRECTIONAL);
	if (n < 0)
		return n;
	return n == 1 && mr->length == PAGE_SIZE ? 0 : -EINVAL;
}

/*
 * Allocate a region of the largest size, map it with two page sizes, and free it.  For a region of
 * type IB_MR_TYPE_MEM_REG nhca allocates a list when the page size first differs from PAGE_SIZE.
 */
static int fast_region(enum ib_mr_type type)
{
	struct ib_mr *mr;
	void *buf;
	int err;

	mr = ib_alloc_mr(pd, type, ibdev->attrs.max_fast_reg_page_list_len);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	buf = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!buf) {
		ib_dereg_mr(mr);
		return -ENOMEM;
	}
	err = fast_map(mr, buf, PAGE_SIZE);
	if (!err)
		err = fast_map(mr, buf, 2 * PAGE_SIZE);
	kfree(buf);
	ib_dereg_mr(mr);
	return err;
}

/* Test the named device; the core calls this function for every device. */
static int kverbs_add(struct ib_device *device)
{
	int i;

	if (strcmp(dev_name(&device->dev), dev))
		return -EOPNOTSUPP;
	ibdev = device;
	pd = ib_alloc_pd(ibdev, 0);
	if (fast) {
		fast_err = PTR_ERR_OR_ZERO(pd);
		if (!fast_err)
			fast_err = fast_region(IB_MR_TYPE_MEM_REG) ?:
				   fast_region(IB_MR_TYPE_SG_GAPS);
		if (!IS_ERR(pd))
			ib_dealloc_pd(pd);
		return 0;
	}
	if (IS_ERR(pd)) {
		result(&ways[0], "a protection domain", PTR_ERR(pd));
		return PTR_ERR(pd);
	}
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		try(&ways[i]);
	ib_dealloc_pd(pd);
	return 0;
}

static void kverbs_remove(struct ib_device *device, void *data)
{
}

static struct ib_client kverbs_client = {
	.name = "kverbs",
	.add = kverbs_add,
	.remove = kverbs_remove,
};

static int __init kverbs_init(void)
{
	int err;

	err = ib_register_client(&kverbs_client);
	if (err)
		return err;
	ib_unregister_client(&kverbs_client);
	if (fast)
		return fast_err;
	return ibdev ? 0 : -ENODEV;
}
module_init(kverbs_init);

static void __exit kverbs_exit(void)
{
}
module_exit(kverbs_exit);

MODULE_DESCRIPTION("Verbs as a kernel user calls them");
MODULE_LICENSE("GPL");
