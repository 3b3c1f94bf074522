// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbells after a change of credentials, and in a process that has imported the context.
 *
 *   credentials [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#include <sys/wait.h>

#include "verbs_test.h"

#define NOBODY	65534

/*
 * Use the doorbells of a QP and of a CQ: send, arm a CQ that has an unpolled entry, and post a
 * receive to a QP in the error state, which flushes it.
 */
static bool all_doorbells(struct pair *p)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(p->b.cq);
	struct completion c;

	fill(p->a.buf, 1000, 5);
	if (!post_recv(p, 1, 0, 1000) || !post_send(p, 2, 0, 1000, IBV_SEND_SIGNALED) ||
	    !wait_for(p->a.cq, 2, IBV_WC_SEND, &c) || !wait_for(p->b.cq, 1, IBV_WC_RECV, &c) ||
	    !filled(p->b.buf, 1000, 5))
		return false;

	/* arm a CQ that has an unpolled entry: the doorbell must raise the event */
	if (!post_recv(p, 3, 0, 1000) || !post_send(p, 4, 0, 8, IBV_SEND_SIGNALED) ||
	    !wait_for(p->a.cq, 4, IBV_WC_SEND, &c))
		return false;
	VERB(ibv_req_notify_cq(cq, 0));
	REQUIRE(cq_event(p->channel, 1000), "no event for an entry that was there");
	if (!wait_for(p->b.cq, 3, IBV_WC_RECV, &c))
		return false;

	if (!modify(p->b.qp, IBV_QPS_ERR, 0) || !post_recv(p, 5, 0, 1000) || !wait_any(p->b.cq, &c))
		return false;
	REQUIRE(c.wr_id == 5 && c.status == IBV_WC_WR_FLUSH_ERR, "wr_id %llu, status %d",
		(unsigned long long)c.wr_id, c.status);
	return true;
}

static bool other_user(struct pair *p)
{
	bool good;

	if (!make_pair(p, (struct pair_opts){ .type = IBV_QPT_RC, .channel = true }))
		return false;
	REQUIRE(!seteuid(NOBODY), "seteuid: %m");
	good = all_doorbells(p);
	REQUIRE(!seteuid(0), "seteuid: %m");
	return good;
}

static bool import(struct pair *p)
{
	dev.ctx = ibv_import_device(dup(dev.ctx->cmd_fd));
	REQUIRE(dev.ctx, "ibv_import_device: %m");
	dev.pd = ibv_alloc_pd(dev.ctx);
	REQUIRE(dev.pd, "ibv_alloc_pd: %m");
	return make_pair(p, (struct pair_opts){ .type = IBV_QPT_RC, .channel = true }) &&
	       all_doorbells(p);
}

static bool other_process(struct pair *p)
{
	pid_t child = fork();
	int status;

	REQUIRE(child >= 0, "fork: %m");
	if (!child) {
		if (!import(p)) {
			fprintf(stderr, "# %s\n", reason);
			_exit(1);
		}
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child, "waitpid: %m");
	REQUIRE(!status, "the importing process ended with %#x", status);
	return true;
}

static const struct test tests[] = {
	{ "doorbells after seteuid()", other_user, false },
	{ "doorbells in a process that imported the context", other_process, false },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
