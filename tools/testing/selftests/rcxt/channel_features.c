// SPDX-License-Identifier: GPL-2.0
/*
 * The provider on a kernel that lacks a feature of channels: nhcadv_query_device() does not report
 * the feature, and work requests that need the feature fail with EOPNOTSUPP when they are posted.
 *
 *   channel_features -d DEVICE -g GID-INDEX
 *
 * The kernel of this test has all features.  But libibverbs calls ioctl() of this program, which
 * removes the bit of a feature from the kernel's response.
 */
#include <getopt.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/nhca-abi.h>

#include "channels.h"

#define TOTAL	200

static uint32_t hidden;		/* NHCA_FEATURE_* to remove from responses */
static uint32_t hid;		/* number of responses that were changed */
static struct channel ch;
static uint8_t bytes[TOTAL];

/* Remove the hidden features from the response of the kernel. */
static void hide(const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct nhca_alloc_ucontext_resp *resp;
	int i;

	if (hdr->object_id != UVERBS_OBJECT_DEVICE || hdr->method_id != UVERBS_METHOD_GET_CONTEXT)
		return;
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == UVERBS_ATTR_UHW_OUT) {
			resp = (void *)(uintptr_t)hdr->attrs[i].data;
			resp->features &= ~hidden;
			hid++;
		}
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;
	int ret;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	ret = syscall(SYS_ioctl, fd, request, argument);
	if (!ret && request == RDMA_VERBS_IOCTL)
		hide(argument);
	return ret;
}

/* ---- work requests ---- */

static const struct nhcadv_transfer plain = {
	.tid = 1, .total = TOTAL, .segment = 1024, .notify = NHCADV_NOTIFY_INITIATOR,
};

static void write_wr(void)
{
	nhcadv_wr_write(ch.dv, &ch.peer, &plain);
}

static void read_wr(void)
{
	nhcadv_wr_read(ch.dv, &ch.peer, &plain);
}

static void fence(void)
{
	nhcadv_wr_fence(ch.dv, &ch.peer, 1, 1, 1);
}

static void move(void)
{
	struct nhcadv_target target = { .peer = ch.peer };

	nhcadv_wr_move(ch.dv, &ch.peer, &target, &plain);
}

static void move_again(void)
{
	struct nhcadv_target target = { .peer = ch.peer };

	nhcadv_wr_move_again(ch.dv, &ch.peer, &target, &plain, 0, TOTAL);
}

static void part(void)
{
	struct ibv_data_buf buf = { bytes, TOTAL };

	nhcadv_wr_part(ch.dv, &ch.peer, &plain, 0, 1, &buf);
}

static void answer(void)
{
	struct ibv_data_buf buf = { bytes, TOTAL };
	struct nhcadv_transfer t = plain;

	t.notify = 0;
	nhcadv_wr_answer(ch.dv, &ch.peer, &t, 0, 1, &buf);
}

static void ask(void)
{
	nhcadv_wr_ask(ch.dv, &ch.peer, &plain);
}

static void ask_again(void)
{
	nhcadv_wr_ask_again(ch.dv, &ch.peer, &plain);
}

static void write_frames(void)
{
	nhcadv_wr_write_frames(ch.dv, &ch.peer, &plain);
}

static void frames_again(void)
{
	nhcadv_wr_frames_again(ch.dv, &ch.peer, &plain, 0, TOTAL);
}

static void read_frames(void)
{
	nhcadv_wr_read_frames(ch.dv, &ch.peer, &plain, TOTAL);
}

static void read_frames_again(void)
{
	nhcadv_wr_read_frames_again(ch.dv, &ch.peer, &plain, 0, TOTAL);
}

/* A work request, and the feature that it needs; 0: only NHCA_FEATURE_CHANNELS */
static const struct {
	const char *name;
	void (*post)(void);
	uint32_t feature;
} requests[] = {
	{ "nhcadv_wr_write", write_wr, 0 },
	{ "nhcadv_wr_read", read_wr, 0 },
	{ "nhcadv_wr_fence", fence, NHCA_FEATURE_FENCE },
	{ "nhcadv_wr_move", move, NHCA_FEATURE_MOVE },
	{ "nhcadv_wr_move_again", move_again, NHCA_FEATURE_MOVE },
	{ "nhcadv_wr_part", part, NHCA_FEATURE_PART },
	{ "nhcadv_wr_write_frames", write_frames, NHCA_FEATURE_FRAMES },
	{ "nhcadv_wr_frames_again", frames_again, NHCA_FEATURE_FRAMES },
	{ "nhcadv_wr_ask", ask, NHCA_FEATURE_ASK },
	{ "nhcadv_wr_ask_again", ask_again, NHCA_FEATURE_ASK },
	{ "nhcadv_wr_answer", answer, NHCA_FEATURE_ASK },
	{ "nhcadv_wr_read_frames", read_frames, NHCA_FEATURE_READ_FRAMES },
	{ "nhcadv_wr_read_frames_again", read_frames_again, NHCA_FEATURE_READ_FRAMES },
};

static const struct {
	const char *name;
	uint32_t feature, cap;
} features[] = {
	{ "nothing", 0, 0 },
	{ "fences", NHCA_FEATURE_FENCE, NHCADV_DEVICE_FENCE },
	{ "third-party transfers", NHCA_FEATURE_MOVE, NHCADV_DEVICE_MOVE },
	{ "half-send writes", NHCA_FEATURE_PART, NHCADV_DEVICE_PART },
	{ "half-receive writes", NHCA_FEATURE_FRAMES, NHCADV_DEVICE_FRAMES },
	{ "half-send reads", NHCA_FEATURE_ASK, NHCADV_DEVICE_ASK },
	{ "half-receive reads", NHCA_FEATURE_READ_FRAMES, NHCADV_DEVICE_READ_FRAMES },
};

#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

/* Post each work request on a device that lacks one feature.  No work request is executed. */
static void without(uint32_t feature, uint32_t cap, const char *name)
{
	const uint32_t caps = NHCADV_DEVICE_FENCE | NHCADV_DEVICE_MOVE | NHCADV_DEVICE_PART |
			      NHCADV_DEVICE_FRAMES | NHCADV_DEVICE_ASK |
			      NHCADV_DEVICE_READ_FRAMES;
	struct nhcadv_device_attr attr = {};
	int i, wanted, got;

	hidden = feature;
	hid = 0;
	open_device();
	if (hid != 1)
		die("%u responses of the kernel were changed", hid);
	verb(nhcadv_query_device(context, &attr));
	if ((attr.caps & caps) != (caps & ~cap))
		die("without %s: caps %#x", name, attr.caps);
	channel_make(&ch, job, 16);
	ch.there = ch.here;
	ch.peer.qpn = ch.here.qpn;
	ch.peer.key = ch.here.key;
	must(ch.peer.ah = ibv_create_ah(pd, &(struct ibv_ah_attr){ .is_global = 1, .port_num = 1,
		.grh = { .dgid = mine.gid, .sgid_index = gid_index, .hop_limit = 64 } }));
	for (i = 0; i < COUNT(requests); i++) {
		start(&ch, i, IBV_SEND_SIGNALED);
		requests[i].post();
		wanted = requests[i].feature & feature ? EOPNOTSUPP : 0;
		/*
		 * The device has the feature, but the work request shall not be executed.  So add a
		 * work request with an invalid flag, because of which ibv_wr_complete() posts none.
		 */
		if (!wanted) {
			ch.qpx->wr_flags = IBV_SEND_FENCE;
			nhcadv_wr_packet(ch.dv, &ch.peer, 0);
			wanted = EINVAL;
		}
		got = ibv_wr_complete(ch.qpx);
		if (got != wanted)
			die("without %s: %s: %s", name, requests[i].name, strerror(got));
	}
	expect_nothing(ch.scq, 0, name);
	channel_close(&ch);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	ktap_ok("work requests on a device that lacks %s", name);
}

/* A queue pair of another type has no work requests of channels. */
static void other_type(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	hidden = 0;
	open_device();
	must(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	init.send_cq = cq;
	init.recv_cq = cq;
	init.pd = pd;
	must(qp = ibv_create_qp_ex(context, &init));
	errno = 0;
	if (nhcadv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)) || errno != EOPNOTSUPP)
		die("a queue pair of type RC has work requests of channels: %m");
	verb(ibv_destroy_qp(qp));
	verb(ibv_destroy_cq(cq));
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	ktap_ok("a queue pair of another type");
}

int main(int argc, char **argv)
{
	int letter, i;

	program = "channel_features";
	job = 4712;
	while ((letter = getopt(argc, argv, "d:g:")) != -1)
		if (!peer_option(letter)) {
			fputs("usage: channel_features [-d DEVICE] [-g GID-INDEX]\n", stderr);
			return 2;
		}
	for (i = 0; i < COUNT(features); i++)
		without(features[i].feature, features[i].cap, features[i].name);
	other_type();
	return ktap_end();
}
