// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells of user QPs: methods of UVERBS_OBJECT_QP.
 *
 * The doorbell is not write() with IB_USER_VERBS_CMD_POST_SEND, because ib_safe_file_access()
 * refuses write() if the process does not have the credentials with which the file was opened.  The
 * credentials differ if the process has changed its user id, or has imported the context.
 */
#include "objects.h"
#include "verbs.h"
#include "../rcxt/rcxt.h"
#include "../transport/qp.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

/* Return: the driver's QP.  After ibv_open_qp(), the handle names a struct ib_qp of the core. */
static struct nhca_qp *doorbell_qp(const struct uverbs_attr_bundle *attrs, u16 handle)
{
	struct ib_qp *ibqp = uverbs_attr_get_obj(attrs, handle);

	return to_nhca_qp(ibqp->real_qp);
}

static int UVERBS_HANDLER(NHCA_METHOD_QP_SEND_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = doorbell_qp(attrs, NHCA_ATTR_QP_SEND_DOORBELL_HANDLE);

	if (qp->ops == &nhca_transport_qp_ops)
		nhca_send_doorbell(qp);
	else if (qp->ops == &nhca_channel_qp_ops)
		nhca_channel_doorbell(qp->channel);
	else
		return -EINVAL;
	return 0;
}

static int UVERBS_HANDLER(NHCA_METHOD_QP_RECV_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = doorbell_qp(attrs, NHCA_ATTR_QP_RECV_DOORBELL_HANDLE);

	/* Channels, and QPs with an indirection table, have no receive queue. */
	if (qp->ops != &nhca_transport_qp_ops)
		return -EINVAL;
	nhca_recv_doorbell(qp);
	return 0;
}

/* UVERBS_ACCESS_READ: several threads may ring the doorbell at the same time. */
DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_QP_SEND_DOORBELL,
			    UVERBS_ATTR_IDR(NHCA_ATTR_QP_SEND_DOORBELL_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_QP_RECV_DOORBELL,
			    UVERBS_ATTR_IDR(NHCA_ATTR_QP_RECV_DOORBELL_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_doorbell_methods, UVERBS_OBJECT_QP,
		   &UVERBS_METHOD(NHCA_METHOD_QP_SEND_DOORBELL),
		   &UVERBS_METHOD(NHCA_METHOD_QP_RECV_DOORBELL));

const struct uapi_definition nhca_doorbell_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &nhca_doorbell_methods),
	{}
};
