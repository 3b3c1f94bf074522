// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the examples share; see example.h. */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "example.h"

void check(int error, const char *what)
{
	if (error) {
		errno = error;
		err(1, "%s", what);
	}
}

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name) && nhcadv_is_supported(list[i]))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "%s: no such nhca device", name);
	ibv_free_device_list(list);
	return context;
}

void open_device(struct device *device, int argc, char **argv, uint64_t caps)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct nhcadv_device_attr attr;

	if (argc < 2)
		errx(2, "usage: %s DEVICE [GID-INDEX]", argv[0]);
	device->context = open_by_name(argv[1]);
	device->job = getpid();
	check(nhcadv_query_device(device->context, &attr), "nhcadv_query_device");
	if ((attr.caps & caps) != caps)
		errx(1, "%s: the driver is too old for this example", argv[1]);
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		err(1, "ibv_alloc_pd");
	ah_attr.grh.sgid_index = argc > 2 ? atoi(argv[2]) : 0;
	check(ibv_query_gid(device->context, 1, ah_attr.grh.sgid_index, &ah_attr.grh.dgid),
	      "ibv_query_gid");
	device->ah = ibv_create_ah(device->pd, &ah_attr);
	if (!device->ah)
		err(1, "ibv_create_ah");
}

void close_device(struct device *device)
{
	check(ibv_destroy_ah(device->ah), "ibv_destroy_ah");
	check(ibv_dealloc_pd(device->pd), "ibv_dealloc_pd");
	check(ibv_close_device(device->context), "ibv_close_device");
}

void create_end(struct end *end, const struct device *device, const struct end_attr *attr)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = attr->work_requests + 4 * attr->frames };
	struct nhcadv_channel_init_attr channel_attr = {
		.job = device->job, .frames = attr->frames,
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER,
		.cap = { .max_send_wr = attr->work_requests,
			 .max_inline_data = attr->inline_data },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = device->pd,
	};

	end->cq = ibv_create_cq_ex(device->context, &cq_attr);
	if (!end->cq)
		err(1, "ibv_create_cq_ex");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(end->cq);
	end->qp = nhcadv_create_channel(device->context, &init, &channel_attr);
	if (!end->qp)
		err(1, "nhcadv_create_channel");
	end->qpx = ibv_qp_to_qp_ex(end->qp);
	end->dv = nhcadv_qp_ex_from_ibv_qp_ex(end->qpx);
	check(nhcadv_query_channel(end->qp, &end->info), "nhcadv_query_channel");
	check(nhcadv_acquire_rcxts(end->qp, end->rcxts, attr->rcxts), "nhcadv_acquire_rcxts");

	end->bytes = calloc(1, attr->length);
	if (!end->bytes)
		err(1, "calloc");
	end->mem = nhcadv_reg_job_mem(device->context, device->job, end->bytes, attr->length,
				      attr->access);
	if (!end->mem)
		err(1, "nhcadv_reg_job_mem");
}

void destroy_end(struct end *end)
{
	check(ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)), "ibv_destroy_cq");
	check(nhcadv_dereg_job_mem(end->mem), "nhcadv_dereg_job_mem");
	free(end->bytes);
}

struct nhcadv_peer peer_of(const struct end *end, const struct device *device)
{
	return (struct nhcadv_peer){
		.ah = device->ah, .qpn = end->qp->qp_num, .key = end->info.key,
	};
}

int poll_kind(struct end *end, uint32_t *frame)
{
	struct nhcadv_cq *dv = nhcadv_cq_from_ibv_cq_ex(end->cq);
	struct ibv_poll_cq_attr attr = {};
	int kind, ret;

	ret = ibv_start_poll(end->cq, &attr);
	if (ret == ENOENT)
		return -1;
	check(ret, "ibv_start_poll");
	if (end->cq->status)
		errx(1, "completion: %s", ibv_wc_status_str(end->cq->status));
	kind = nhcadv_wc_read_kind(dv);
	*frame = nhcadv_wc_read_frame(dv);
	ibv_end_poll(end->cq);
	return kind;
}

int wait_kind(struct end *end, int ms, uint32_t *frame)
{
	int kind;

	for (; (kind = poll_kind(end, frame)) < 0 && ms > 0; ms--)
		poll(NULL, 0, 1);
	return kind;
}

void probe(struct end *end, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t)
{
	ibv_wr_start(end->qpx);
	end->qpx->wr_flags = 0;
	nhcadv_wr_probe(end->dv, peer, t, 0);
	check(ibv_wr_complete(end->qpx), "probe");
}
