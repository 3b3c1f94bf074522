// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Acts as providers of other versions, which have shorter or longer structs: sends commands whose
 * driver part and response have many lengths. The kernel must accept these, unless a required field
 * is missing. The kernel must not write past the buffer of a response, and must refuse a command
 * with a field that it does not support. The same holds for structs in attributes of the driver's
 * own methods.
 *
 *   abi_sizes [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#include <stddef.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/nhca-abi.h>

#include "verbs_test.h"

#define LONGER	64	/* bytes beyond a struct that are tried */
#define FILLER	0xa5

/* A command: the core's part and its response, the driver's part and its response */
struct command {
	uint32_t number;
	void *core;
	uint16_t core_len;
	void *core_resp;
	uint16_t core_resp_len;
	const void *drv;
	uint16_t drv_len;
	uint16_t resp_len;	/* length of the driver's response */
};

static uint8_t drv_buf[512], resp_buf[512];

/* Return: 0 or an errno. */
static int invoke(const struct command *c, uint16_t drv_len, uint16_t resp_len)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[5];
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_INVOKE_WRITE,
			 .driver_id = NHCA_RDMA_DRIVER_ID },
	};
	struct ib_uverbs_attr *a = cmd.attr;

	*a++ = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_WRITE_CMD,
		.len = 8, .flags = UVERBS_ATTR_F_MANDATORY, .data = c->number };
	*a++ = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_CORE_IN, .len = c->core_len,
		.flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)c->core };
	if (c->core_resp_len)
		*a++ = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_CORE_OUT,
			.len = c->core_resp_len, .flags = UVERBS_ATTR_F_MANDATORY,
			.data = (uintptr_t)c->core_resp };
	if (c->core_len <= 8)
		memcpy(&cmd.attr[1].data, c->core, c->core_len);
	if (drv_len) {
		*a = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_UHW_IN, .len = drv_len,
			.flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)drv_buf };
		if (drv_len <= 8)
			memcpy(&a->data, drv_buf, drv_len);
		a++;
	}
	if (resp_len)
		*a++ = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_UHW_OUT, .len = resp_len,
			.flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)resp_buf };
	cmd.hdr.num_attrs = a - cmd.attr;
	cmd.hdr.length = sizeof(cmd.hdr) + cmd.hdr.num_attrs * sizeof(*a);
	memset(resp_buf, FILLER, sizeof(resp_buf));
	return ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

static bool destroy(uint32_t number, uint32_t handle)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_cq cq = { .cq_handle = handle };
	struct ib_uverbs_destroy_ah ah = { .ah_handle = handle };
	uint8_t resp[8] = {};
	struct command c = { number, &cmd, sizeof(cmd), resp, 4, NULL, 0, 0 };

	_Static_assert(offsetof(struct ib_uverbs_destroy_srq, srq_handle) ==
		       offsetof(struct ib_uverbs_destroy_qp, qp_handle), "SRQ as QP");
	if (number == IB_USER_VERBS_CMD_DESTROY_CQ) {
		c.core = &cq;
		c.core_len = sizeof(cq);
		c.core_resp_len = 8;
	} else if (number == IB_USER_VERBS_CMD_DESTROY_AH) {
		c.core = &ah;
		c.core_len = sizeof(ah);
		c.core_resp_len = 0;
	}
	VERB(invoke(&c, 0, 0));
	return true;
}

/*
 * Run command @c with driver parts and responses of each length, in steps of 4 bytes, up to LONGER
 * bytes beyond the struct.
 * @undo: the command that destroys the object that @c creates; @least: the kernel must refuse
 * shorter driver parts.
 */
static bool every_size(const struct command *c, uint32_t undo, uint16_t least)
{
	uint32_t *handle = c->core_resp;
	uint16_t n;

	memset(drv_buf, 0, sizeof(drv_buf));
	if (c->drv)
		memcpy(drv_buf, c->drv, c->drv_len);
	for (n = 0; n <= c->drv_len + LONGER; n += 4) {
		int err = invoke(c, n, c->resp_len);

		REQUIRE(err == (n < least ? EINVAL : 0), "command of %u bytes: %s", n,
			strerror(err));
		if (!err && !destroy(undo, *handle))
			return false;
	}
	for (n = c->drv_len + 4; c->drv_len && n <= c->drv_len + LONGER; n += 4) {
		int err;

		drv_buf[n - 1] = 1;
		err = invoke(c, n, c->resp_len);
		REQUIRE(err == EOPNOTSUPP, "unknown field at %u: %s", n - 1, strerror(err));
		drv_buf[n - 1] = 0;
	}
	for (n = 0; n <= c->resp_len + LONGER; n += 4) {
		VERB(invoke(c, c->drv_len, n));
		for (uint16_t i = c->resp_len; i < n; i++)
			REQUIRE(!resp_buf[i], "byte %u of %u is not cleared", i, n);
		for (uint16_t i = n; i < sizeof(resp_buf); i++)
			REQUIRE(resp_buf[i] == FILLER, "byte %u is past %u", i, n);
		if (!destroy(undo, *handle))
			return false;
	}
	return true;
}

static bool cqs(struct pair *p)
{
	struct ib_uverbs_create_cq cmd = { .cqe = 16, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp resp = {};
	const struct command c = { IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp),
		NULL, sizeof(struct nhca_create_cq_cmd), sizeof(struct nhca_create_cq_resp) };

	(void)p;
	return every_size(&c, IB_USER_VERBS_CMD_DESTROY_CQ, 0);
}

static bool srqs(struct pair *p)
{
	struct ib_uverbs_create_srq cmd = { .pd_handle = dev.pd->handle, .max_wr = 16, .max_sge = 1 };
	struct ib_uverbs_create_srq_resp resp = {};
	const struct command c = { IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp),
		NULL, sizeof(struct nhca_create_srq_cmd), sizeof(struct nhca_create_srq_resp) };

	(void)p;
	return every_size(&c, IB_USER_VERBS_CMD_DESTROY_SRQ, 0);
}

static bool qps(struct pair *p)
{
	struct ib_uverbs_create_qp cmd = { .pd_handle = dev.pd->handle, .max_send_wr = 16,
		.max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_RC };
	struct ib_uverbs_create_qp_resp resp = {};
	const struct command c = { IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp),
		NULL, sizeof(struct nhca_create_qp_cmd), sizeof(struct nhca_create_qp_resp) };

	p->a.cq = make_cq(16, NULL, 0);
	REQUIRE(p->a.cq, "ibv_create_cq_ex: %m");
	cmd.send_cq_handle = ibv_cq_ex_to_cq(p->a.cq)->handle;
	cmd.recv_cq_handle = cmd.send_cq_handle;
	return every_size(&c, IB_USER_VERBS_CMD_DESTROY_QP, 0);
}

/* Fill in the core's part of the command that creates a channel, and make a CQ for it. */
static bool channel_cmd(struct pair *p, struct ib_uverbs_create_qp *cmd)
{
	*cmd = (struct ib_uverbs_create_qp){ .pd_handle = dev.pd->handle, .max_send_wr = 16,
		.qp_type = IBV_QPT_DRIVER };
	p->a.cq = make_cq(16, NULL, 0);
	REQUIRE(p->a.cq, "ibv_create_cq_ex: %m");
	cmd->send_cq_handle = ibv_cq_ex_to_cq(p->a.cq)->handle;
	cmd->recv_cq_handle = cmd->send_cq_handle;
	return true;
}

static const struct nhca_create_channel_cmd channel_drv = { .job = 77, .frames = 16 };

static bool channels(struct pair *p)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_create_qp_resp resp = {};
	const struct command c = { IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp),
		&channel_drv, sizeof(channel_drv), sizeof(struct nhca_create_channel_resp) };

	return channel_cmd(p, &cmd) &&
	       every_size(&c, IB_USER_VERBS_CMD_DESTROY_QP,
			  offsetof(struct nhca_create_channel_cmd, frames));
}

/* Fill in the core's part of the command that creates an address handle for this host. */
static void ah_cmd(struct ib_uverbs_create_ah *cmd)
{
	*cmd = (struct ib_uverbs_create_ah){ .pd_handle = dev.pd->handle,
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .sgid_index = dev.gid_index, .hop_limit = 64 } } };
	memcpy(cmd->attr.grh.dgid, &dev.gid, sizeof(dev.gid));
}

static bool ahs(struct pair *p)
{
	struct ib_uverbs_create_ah cmd;
	struct ib_uverbs_create_ah_resp resp = {};
	const struct command c = { IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &resp, sizeof(resp),
		NULL, 0, sizeof(struct nhca_create_ah_resp) };

	(void)p;
	ah_cmd(&cmd);
	return every_size(&c, IB_USER_VERBS_CMD_DESTROY_AH, 0);
}

/* Invoke a method with a struct of @len bytes in an attribute. Return: 0 or an errno. */
static int invoke_attr(uint16_t object, uint16_t method, uint16_t handle_attr, uint32_t handle,
		       uint16_t attr, const void *data, uint16_t len)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[2];
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = object, .method_id = method,
			 .num_attrs = 2, .driver_id = NHCA_RDMA_DRIVER_ID },
		.attr = {
			{ .attr_id = handle_attr, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
			{ .attr_id = attr, .len = len, .flags = UVERBS_ATTR_F_MANDATORY,
			  .data = (uintptr_t)data },
		},
	};

	return ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

/* Like invoke_attr(), for a command; up to 8 bytes are in the attribute itself. */
static int invoke_cmd(uint16_t method, uint16_t handle_attr, uint32_t handle, uint16_t attr,
		      const void *data, uint16_t len)
{
	uint64_t few = 0;

	if (len > sizeof(few))
		return invoke_attr(UVERBS_OBJECT_QP, method, handle_attr, handle, attr, data, len);
	memcpy(&few, data, len);
	return invoke_attr(UVERBS_OBJECT_QP, method, handle_attr, handle, attr,
			   (void *)(uintptr_t)few, len);
}

/* A command of @size bytes in an attribute of a method of channels: try many lengths. */
static bool every_command(uint16_t method, uint16_t handle_attr, uint32_t handle, uint16_t attr,
			  const void *cmd, uint16_t size)
{
	uint16_t n;
	int err;

	memset(drv_buf, 0, sizeof(drv_buf));
	memcpy(drv_buf, cmd, size);
	for (n = 4; n <= size + LONGER; n += 4) {
		err = invoke_cmd(method, handle_attr, handle, attr, drv_buf, n);
		REQUIRE(err == (n < size ? EINVAL : 0), "command of %u bytes: %s", n, strerror(err));
	}
	for (n = size + 4; n <= size + LONGER; n += 4) {
		drv_buf[n - 1] = 1;
		err = invoke_cmd(method, handle_attr, handle, attr, drv_buf, n);
		REQUIRE(err == EOPNOTSUPP, "unknown field at %u: %s", n - 1, strerror(err));
		drv_buf[n - 1] = 0;
	}
	return true;
}

/* A response in an attribute: try many lengths from @least on. */
static bool every_response(uint16_t object, uint16_t method, uint16_t handle_attr, uint32_t handle,
			   uint16_t attr, uint16_t least, uint16_t size)
{
	int err;

	for (uint16_t n = 4; n <= size + LONGER; n += 4) {
		memset(resp_buf, FILLER, sizeof(resp_buf));
		err = invoke_attr(object, method, handle_attr, handle, attr, resp_buf, n);
		REQUIRE(err == (n < least ? EINVAL : 0), "response of %u bytes: %s", n, strerror(err));
		for (uint16_t i = size; i < n; i++)
			REQUIRE(!resp_buf[i], "byte %u of %u is not cleared", i, n);
		for (uint16_t i = n; i < sizeof(resp_buf); i++)
			REQUIRE(resp_buf[i] == FILLER, "byte %u is past %u", i, n);
	}
	return true;
}

static bool methods(struct pair *p)
{
	const struct nhca_channel_modify modify = { .mask = NHCA_CHANNEL_RECV_THRESHOLD };
	struct nhca_channel_target target = { .op = NHCA_CHANNEL_TARGET_ALLOW };
	struct ib_uverbs_create_qp_resp qp = {};
	struct ib_uverbs_create_ah_resp ah = {};
	struct ib_uverbs_create_qp qp_cmd;
	struct ib_uverbs_create_ah create_ah;
	const struct command cq = { IB_USER_VERBS_CMD_CREATE_QP, &qp_cmd, sizeof(qp_cmd), &qp,
		sizeof(qp), NULL, 0, 0 };
	const struct command ca = { IB_USER_VERBS_CMD_CREATE_AH, &create_ah, sizeof(create_ah), &ah,
		sizeof(ah), NULL, 0, 0 };

	if (!channel_cmd(p, &qp_cmd))
		return false;
	memset(drv_buf, 0, sizeof(drv_buf));
	memcpy(drv_buf, &channel_drv, sizeof(channel_drv));
	VERB(invoke(&cq, sizeof(channel_drv), sizeof(struct nhca_create_channel_resp)));
	ah_cmd(&create_ah);
	VERB(invoke(&ca, 0, sizeof(struct nhca_create_ah_resp)));
	target.ah_id = ((struct nhca_create_ah_resp *)resp_buf)->ah_id;

	return every_command(NHCA_METHOD_CHANNEL_MODIFY, NHCA_ATTR_CHANNEL_MODIFY_HANDLE,
			     qp.qp_handle, NHCA_ATTR_CHANNEL_MODIFY_CMD, &modify, sizeof(modify)) &&
	       every_command(NHCA_METHOD_CHANNEL_TARGET, NHCA_ATTR_CHANNEL_TARGET_HANDLE,
			     qp.qp_handle, NHCA_ATTR_CHANNEL_TARGET_CMD, &target, sizeof(target)) &&
	       every_response(UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_QUERY,
			      NHCA_ATTR_CHANNEL_QUERY_HANDLE, qp.qp_handle,
			      NHCA_ATTR_CHANNEL_QUERY_RESP, sizeof(struct nhca_channel_info),
			      sizeof(struct nhca_channel_info)) &&
	       destroy(IB_USER_VERBS_CMD_DESTROY_AH, ah.ah_handle) &&
	       destroy(IB_USER_VERBS_CMD_DESTROY_QP, qp.qp_handle);
}

/* UVERBS_METHOD_QUERY_CONTEXT returns the driver's response in an attribute: try many lengths. */
static bool contexts(struct pair *p)
{
	(void)p;
	for (uint16_t n = 0; n <= sizeof(struct nhca_alloc_ucontext_resp) + LONGER; n += 4) {
		struct {
			struct ib_uverbs_ioctl_hdr hdr;
			struct ib_uverbs_attr attr;
		} cmd = {
			.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_DEVICE,
				 .method_id = UVERBS_METHOD_QUERY_CONTEXT, .num_attrs = 1,
				 .driver_id = NHCA_RDMA_DRIVER_ID },
			.attr = { .attr_id = NHCA_ATTR_QUERY_CONTEXT_RESP, .len = n,
				  .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)resp_buf },
		};
		int err;

		memset(resp_buf, FILLER, sizeof(resp_buf));
		err = ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
		REQUIRE(err == (n < 4 ? EINVAL : 0), "response of %u bytes: %s", n, strerror(err));
		for (uint16_t i = sizeof(struct nhca_alloc_ucontext_resp); i < n; i++)
			REQUIRE(!resp_buf[i], "byte %u of %u is not cleared", i, n);
		for (uint16_t i = n; i < sizeof(resp_buf); i++)
			REQUIRE(resp_buf[i] == FILLER, "byte %u is past %u", i, n);
	}
	return true;
}

static const struct test tests[] = {
	{ "create CQ: commands and responses of every length", cqs, false },
	{ "create SRQ: commands and responses of every length", srqs, false },
	{ "create QP: commands and responses of every length", qps, false },
	{ "create channel: commands and responses of every length", channels, false },
	{ "create address handle: responses of every length", ahs, false },
	{ "methods of channels: commands and responses of every length", methods, false },
	{ "query context: responses of every length", contexts, false },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
