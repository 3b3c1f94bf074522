// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A part of verbs_api.c: queues and states. */
#include "verbs_api_shared.h"

bool timestamps(struct pair *p)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC_RAW), last = before, wall, off;
	struct completion c;

	if (!dev.stamps)
		return missing("ibv_create_cq_ex with timestamps");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int i = 0; i < 20; i++) {
		WR(p, i, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 0)); SGE(p, 0, 8));
		if (!wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c))
			return false;
		REQUIRE(c.stamp >= last && c.stamp <= clock_ns(CLOCK_MONOTONIC_RAW),
			"completion %d has a timestamp from another time", i);
		last = c.stamp;
		wall = clock_ns(CLOCK_REALTIME);
		off = wall - c.wall;
		REQUIRE(off < 1000000000, "wall clock is %ld ns off", (long)off);
	}
	return true;
}

/* ---- posting ---- */

bool bad_in_list(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr[3] = {}, *bad = NULL;
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	sge = sge_of(&p->a, 0, 8);
	for (int i = 0; i < 3; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };
	}
	wr[1].num_sge = p->a.cap.max_send_sge + 1;
	REQUIRE(ibv_post_send(p->a.qp, wr, &bad) && bad == &wr[1], "bad request not found");
	if (!wait_for(p->a.cq, 0, IBV_WC_RDMA_WRITE, &c))
		return false;
	usleep(100000);
	REQUIRE(!poll_one(p->a.cq, &c), "more than the first was sent");
	return true;
}

bool full_sq(struct pair *p)
{
	struct ibv_send_wr *wr, *bad = NULL;
	struct completion c;
	unsigned int n;

	if (!make_pair(p, (struct pair_opts){ .wr = 16 }))
		return false;
	n = p->a.cap.max_send_wr;
	wr = calloc(n + 1, sizeof(*wr));
	for (unsigned int i = 0; i <= n; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = i, .next = i < n ? &wr[i + 1] : NULL,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };
	}
	REQUIRE(ibv_post_send(p->a.qp, wr, &bad) == ENOMEM && bad == &wr[n],
		"request %ld was refused", bad ? (long)(bad - wr) : -1);
	free(wr);
	for (unsigned int i = 0; i < n; i++)
		if (!wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c))
			return false;
	return true;
}

bool ring_wrap(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .wr = 5, .cqe = 6 }))
		return false;
	for (uint32_t i = 0; i < 3000; i++) {
		fill(p->a.buf, 64, i);
		if (!post_recv(p, i, 128, 64) ||
		    !post_send(p, i, 0, 64, IBV_SEND_SIGNALED) ||
		    !wait_for(p->b.cq, i, IBV_WC_RECV, &c) ||
		    !filled(p->b.buf + 128, 64, i) ||
		    !wait_for(p->a.cq, i, IBV_WC_SEND, &c))
			return false;
	}
	return true;
}

bool unsignalled(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct completion c;
	uint64_t end;
	int ret;

	if (!make_pair(p, (struct pair_opts){ .wr = 16, .cqe = 4 }))
		return false;
	sge = sge_of(&p->a, 0, 8);
	wr = (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };
	end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;
	for (int i = 0; i < 1000; i++) {
		if (!dev.nhca && i % 8 == 7)
			wr.send_flags = IBV_SEND_SIGNALED;
		else
			wr.send_flags = i == 999 ? IBV_SEND_SIGNALED : 0;
		wr.wr_id = i;
		while ((ret = ibv_post_send(p->a.qp, &wr, &bad)) == ENOMEM) {
			REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "no room after %d requests", i);
			usleep(50);
		}
		VERB(ret);
		if (wr.send_flags && !wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c))
			return false;
	}
	return true;
}

#define PER_THREAD 500

static void *poster(void *arg)
{
	struct pair *p = arg;
	struct ibv_sge sge = sge_of(&p->a, 0, 32);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } }, *bad;
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;

	for (int i = 0; i < PER_THREAD;) {
		int ret = ibv_post_send(p->a.qp, &wr, &bad);

		if (!ret)
			i++;
		else if (ret != ENOMEM || clock_ns(CLOCK_MONOTONIC) > end)
			return "posting failed";
		else
			usleep(100);
	}
	return NULL;
}

bool threads(struct pair *p)
{
	struct completion c;
	pthread_t thread[4];
	bool good = true;
	void *result;

	/*
	 * A slot of the send queue is free before the completion of its request is polled. So the
	 * threads may post all requests before one is polled, and the CQ needs room for all.
	 */
	if (!make_pair(p, (struct pair_opts){ .cqe = 4 * PER_THREAD }))
		return false;
	for (int i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, poster, p), "no thread");
	for (int i = 0; i < 4 * PER_THREAD && good; i++)
		good = wait_for(p->a.cq, 0, IBV_WC_RDMA_WRITE, &c);
	/* the threads use the pair, so they must end before it is freed */
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &result);
		if (result && good)
			good = fail("%s", (char *)result);
	}
	if (good && poll_one(p->a.cq, &c))
		good = fail("more completions than requests");
	return good;
}

/* A fenced SEND of the buffer of an earlier READ must carry the bytes that the READ returned. */
bool fence(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (uint32_t i = 0; i < 50; i++) {
		fill(p->b.buf, 16384, i);
		memset(p->a.buf, 0xee, 16384);
		if (!post_recv(p, i, 32768, 16384))
			return false;
		ibv_wr_start(p->a.qpx);
		p->a.qpx->wr_flags = 0;
		ibv_wr_rdma_read(p->a.qpx, REMOTE(p, 0));
		ibv_wr_set_sge(p->a.qpx, p->a.mr->lkey, (uintptr_t)p->a.buf, 16384);
		p->a.qpx->wr_id = i;
		p->a.qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
		ibv_wr_send(p->a.qpx);
		ibv_wr_set_sge(p->a.qpx, p->a.mr->lkey, (uintptr_t)p->a.buf, 16384);
		VERB(ibv_wr_complete(p->a.qpx));
		if (!wait_for(p->b.cq, i, IBV_WC_RECV, &c) ||
		    !filled(p->b.buf + 32768, 16384, i) ||
		    !wait_for(p->a.cq, i, IBV_WC_SEND, &c))
			return false;
	}
	return true;
}

/* ---- completion queues ---- */

static bool write_some(struct pair *p, int from, int count)
{
	for (int i = from; i < from + count; i++)
		WR(p, i, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 0)); SGE(p, 0, 8));
	return true;
}

static bool expect_some(struct pair *p, int from, int count)
{
	struct completion c;

	for (int i = from; i < from + count; i++)
		if (!wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c))
			return false;
	return true;
}

/* Give posted requests 200 ms to complete; the QP must still be in RTS. */
static bool settle(struct pair *p)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	usleep(200000);
	VERB(ibv_query_qp(p->a.qp, &attr, IBV_QP_STATE, &init));
	REQUIRE(attr.qp_state == IBV_QPS_RTS, "QP state %d", attr.qp_state);
	return true;
}

bool cq_resize(struct pair *p)
{
	struct ibv_cq *cq;
	int small;

	if (!make_pair(p, (struct pair_opts){ .cqe = 30 }))
		return false;
	cq = ibv_cq_ex_to_cq(p->a.cq);
	small = cq->cqe;
	if (!write_some(p, 0, 20) || !expect_some(p, 0, 7) || !settle(p))
		return false;
	if (ibv_resize_cq(cq, 1000))
		return missing("ibv_resize_cq");
	REQUIRE(cq->cqe >= 1000, "cqe %d", cq->cqe);
	if (!write_some(p, 20, 50) || !expect_some(p, 7, 43) || !settle(p))
		return false;
	/* the CQ has 20 entries now, so a resize to fewer must fail, but one to 30 must succeed */
	REQUIRE(ibv_resize_cq(cq, 1) == EINVAL, "a resize below the queued entries succeeds");
	VERB(ibv_resize_cq(cq, 30));
	REQUIRE(cq->cqe < 1000 && cq->cqe >= 30 && small >= 30, "cqe %d", cq->cqe);
	if (!expect_some(p, 50, 20))
		return false;
	for (int i = 0; i < 20; i++)
		if (!write_some(p, 1000 + 10 * i, 10) || !expect_some(p, 1000 + 10 * i, 10))
			return false;
	return true;
}

bool cq_overflow(struct pair *p)
{
	struct completion c;
	int i, cqe, got;

	if (!make_pair(p, (struct pair_opts){ .cqe = 4, .wr = 256 }))
		return false;
	cqe = ibv_cq_ex_to_cq(p->a.cq)->cqe;
	for (i = 0; i < 2 * cqe + 8; i++)
		if (!write_some(p, i, 1))
			return false;
	REQUIRE(async_event(IBV_EVENT_CQ_ERR, 5000), "no IBV_EVENT_CQ_ERR");
	/* the entries from before the overflow are still there, in order */
	for (got = 0; poll_one(p->a.cq, &c); got++)
		if (dev.nhca && got < cqe)
			REQUIRE(c.wr_id == (uint64_t)got && c.status == IBV_WC_SUCCESS,
				"entry %d is %lu: %s", got, (unsigned long)c.wr_id,
				ibv_wc_status_str(c.status));
	REQUIRE(got >= cqe, "%d of %d entries", got, cqe);
	return true;
}

/* ---- shared receive queues ---- */

bool srq_limit(struct pair *p)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .srq_wr = 16 }))
		return false;
	for (int i = 0; i < 8; i++)
		if (!post_recv(p, i, 64 * i, 64))
			return false;
	VERB(ibv_modify_srq(p->srq, &attr, IBV_SRQ_LIMIT));
	for (int i = 0; i < 4; i++)
		if (!post_send(p, i, 0, 32, IBV_SEND_SIGNALED) ||
		    !wait_for(p->b.cq, i, IBV_WC_RECV, &c))
			return false;
	REQUIRE(!async_event(IBV_EVENT_SRQ_LIMIT_REACHED, 200), "event above the limit");
	if (!post_send(p, 4, 0, 32, IBV_SEND_SIGNALED) || !wait_for(p->b.cq, 4, IBV_WC_RECV, &c))
		return false;
	REQUIRE(async_event(IBV_EVENT_SRQ_LIMIT_REACHED, 5000), "no event below the limit");
	VERB(ibv_query_srq(p->srq, &attr));
	REQUIRE(!attr.srq_limit, "still armed at %u", attr.srq_limit);
	return true;
}

bool srq_resize(struct pair *p)
{
	struct ibv_srq_attr attr;
	struct completion c;
	int i = 0;

	if (!make_pair(p, (struct pair_opts){ .srq_wr = 8 }))
		return false;
	if (!(dev.attr.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		return missing("IBV_DEVICE_SRQ_RESIZE");
	VERB(ibv_query_srq(p->srq, &attr));
	for (; i < 8; i++)
		if (!post_recv(p, i, 64 * i, 64))
			return false;
	if (!post_send(p, 0, 0, 32, IBV_SEND_SIGNALED) || !wait_for(p->b.cq, 0, IBV_WC_RECV, &c))
		return false;
	attr.max_wr = 100;
	if (ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR))
		return missing("SRQ resize");
	VERB(ibv_query_srq(p->srq, &attr));
	REQUIRE(attr.max_wr >= 100, "max_wr %u", attr.max_wr);
	for (; i < 100; i++)
		if (!post_recv(p, i, 64 * i, 64))
			return false;
	for (i = 1; i < 100; i++) {
		fill(p->a.buf, 32, i);
		if (!post_send(p, i, 0, 32, IBV_SEND_SIGNALED) ||
		    !wait_for(p->b.cq, i, IBV_WC_RECV, &c) ||
		    !filled(p->b.buf + 64 * i, 32, i) ||
		    !wait_for(p->a.cq, i - 1, IBV_WC_SEND, &c))
			return false;
	}
	return true;
}

/* ---- states ---- */

bool sq_drain(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}) || !write_some(p, 0, 20))
		return false;
	if (ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
		return missing("the SQD state");
	REQUIRE(async_event(IBV_EVENT_SQ_DRAINED, 5000), "no IBV_EVENT_SQ_DRAINED");
	if (!write_some(p, 100, 3))
		return false;
	/* requests that had begun have completed; no other request may begin in SQD */
	usleep(200000);
	while (poll_one(p->a.cq, &c))
		REQUIRE(c.wr_id < 100 && c.status == IBV_WC_SUCCESS, "request %lu in SQD: %s",
			(unsigned long)c.wr_id, ibv_wc_status_str(c.status));
	attr.qp_state = IBV_QPS_RTS;
	VERB(ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE));
	do {
		if (!wait_any(p->a.cq, &c))
			return false;
		REQUIRE(c.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(c.status));
	} while (c.wr_id != 102);
	return true;
}

bool late_receive(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	fill(p->a.buf, 9000, 10);
	if (!post_send(p, 1, 0, 9000, IBV_SEND_SIGNALED))
		return false;
	usleep(100000);
	REQUIRE(!poll_one(p->a.cq, &c), "complete without a receive");
	return post_recv(p, 2, 0, 9000) && wait_for(p->b.cq, 2, IBV_WC_RECV, &c) &&
	       filled(p->b.buf, 9000, 10) && wait_for(p->a.cq, 1, IBV_WC_SEND, &c);
}

/* A message must take longer with a rate limit than before it is set, or after RESET clears it. */
bool rate_limit(struct pair *p)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 16000 };
	const size_t size = 512 << 10;
	uint64_t took[3], least = size * 8 / 16 * 1000;
	struct completion c;

	if (!(dev.attr.packet_pacing_caps.supported_qpts & 1 << IBV_QPT_RC))
		return missing("a rate limit of RC");
	if (!make_pair(p, (struct pair_opts){ .size = size }))
		return false;
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			VERB(ibv_modify_qp_rate_limit(p->a.qp, &limit));
		if (i == 2 && !reconnect(p))
			return false;
		fill(p->a.buf, size, i);
		took[i] = clock_ns(CLOCK_MONOTONIC);
		WR(p, i, IBV_SEND_SIGNALED, ibv_wr_rdma_write(x, REMOTE(p, 0)); SGE(p, 0, size));
		if (!wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c) || !filled(p->b.buf, size, i))
			return false;
		took[i] = clock_ns(CLOCK_MONOTONIC) - took[i];
	}
	/* the burst that a limit permits is less than a tenth of this message */
	REQUIRE(took[1] >= least / 10 * 9, "%zu bytes at 2 MB/s took %lu ns", size,
		(unsigned long)took[1]);
	REQUIRE(took[1] > took[0] && took[1] > took[2],
		"%lu ns without, %lu with, %lu after the rate limit",
		(unsigned long)took[0], (unsigned long)took[1], (unsigned long)took[2]);
	return true;
}

static bool expect_flushed(struct ibv_cq_ex *cq, uint64_t wr_id)
{
	struct completion c;

	if (!wait_any(cq, &c))
		return false;
	REQUIRE(c.wr_id == wr_id && c.status == IBV_WC_WR_FLUSH_ERR, "request %lu: %s",
		(unsigned long)c.wr_id, ibv_wc_status_str(c.status));
	return true;
}

bool flush(struct pair *p)
{
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int i = 0; i < 4; i++)
		if (!post_recv(p, i, 0, 64))
			return false;
	if (!modify(p->b.qp, IBV_QPS_ERR, 0) || !modify(p->a.qp, IBV_QPS_ERR, 0))
		return false;
	for (int i = 0; i < 4; i++)
		if (!expect_flushed(p->b.cq, i))
			return false;
	for (int i = 10; i < 13; i++)
		if (!post_recv(p, i, 0, 64) || !expect_flushed(p->b.cq, i) ||
		    !post_send(p, i, 0, 64, 0) || !expect_flushed(p->a.cq, i))
			return false;
	return true;
}

bool reset_again(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .wr = 8 }))
		return false;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 5; i++)
			if (!post_recv(p, i, 64 * i, 64))
				return false;
		for (int i = 0; i < 3; i++)
			if (!post_send(p, i, 0, 32, IBV_SEND_SIGNALED) ||
			    !wait_for(p->b.cq, i, IBV_WC_RECV, &c) ||
			    !wait_for(p->a.cq, i, IBV_WC_SEND, &c))
				return false;
		/* two receives are left, which the reset must discard */
		if (!modify(p->a.qp, IBV_QPS_RESET, 0) || !modify(p->b.qp, IBV_QPS_RESET, 0) ||
		    !connect_pair(p))
			return false;
	}
	REQUIRE(!poll_one(p->a.cq, &c) && !poll_one(p->b.cq, &c), "completions of a QP in RESET");
	return true;
}

bool wrong_rkey(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	memset(p->b.buf, 0x55, 4096);
	fill(p->a.buf, 4096, 11);
	WR(p, 1, IBV_SEND_SIGNALED,
	   ibv_wr_rdma_write(x, p->b.mr->rkey ^ 0x5a, (uintptr_t)p->b.buf); SGE(p, 0, 4096));
	if (!wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.wr_id == 1 && c.status == IBV_WC_REM_ACCESS_ERR, "request %lu: %s",
		(unsigned long)c.wr_id, ibv_wc_status_str(c.status));
	for (int i = 0; i < 4096; i++)
		REQUIRE(p->b.buf[i] == 0x55, "byte %d was written", i);
	/* the requester is in the error state now */
	return post_send(p, 2, 0, 8, 0) && expect_flushed(p->a.cq, 2);
}
