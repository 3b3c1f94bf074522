/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For verbs/ and its KUnit tests: the functions of nhca_dev_ops, file by file.  A function without
 * a comment implements the member of struct ib_device_ops to which ops.c assigns the function.  Its
 * parameters, context and return values are those that <rdma/ib_verbs.h> and the RDMA core specify
 * for this member.  The arrays of struct uapi_definition are parts of nhca_uapi_defs.
 */
#ifndef NHCA_VERBS_OBJECTS_H
#define NHCA_VERBS_OBJECTS_H

#include <linux/atomic.h>
#include <linux/uaccess.h>
#include <rdma/uverbs_ioctl.h>

#include "../nhca.h"
#include "../observe/counters.h"
#include "../queue/ring.h"

/* Return: the user context of the process that calls a verb; NULL for a kernel consumer. */
static inline struct nhca_ucontext *nhca_udata_uc(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct nhca_ucontext, ibuc);
}

/*
 * Return: the record of the user who creates an object by a verb; NULL: the creator is the kernel,
 * or had CAP_SYS_RESOURCE when it opened the device.
 */
static inline struct nhca_user *nhca_udata_user(struct ib_udata *udata)
{
	struct nhca_ucontext *uc = nhca_udata_uc(udata);

	return uc ? uc->user : NULL;
}

/**
 * nhca_obj_get - count a new object of a device
 * @dev:  the device
 * @user: record that the object counts in, or NULL
 * @pool: kind of the object
 * Context: any.
 * Return: 0; -ENOMEM: the limit of @user or of the device is reached (nhca_verb_error()).
 */
static inline int nhca_obj_get(struct nhca_dev *dev, struct nhca_user *user, enum nhca_pool pool)
{
	return nhca_verb_error(nhca_pool_charge(&dev->users, user, pool, 1));
}

/* Undo nhca_obj_get().  Context: any. */
static inline void nhca_obj_put(struct nhca_dev *dev, struct nhca_user *user, enum nhca_pool pool)
{
	nhca_pool_uncharge(&dev->users, user, pool, 1);
}

/**
 * nhca_respond - copy the driver's response of a verb to user space
 * @udata: buffers of the verb in user space
 * @resp: the response
 * @len: bytes of @resp
 *
 * An older provider has a shorter buffer, and gets only the fields that fit.  A newer provider has
 * a longer buffer, whose rest the function clears.
 * Context: process, sleeps.
 * Return: 0; -EFAULT: the buffer is not writable memory of the process.
 */
static inline int nhca_respond(struct ib_udata *udata, void *resp, size_t len)
{
	if (udata->outlen > len && clear_user(udata->outbuf + len, udata->outlen - len))
		return -EFAULT;
	return ib_copy_to_udata(udata, resp, min(len, udata->outlen));
}

/**
 * nhca_request - copy the driver's command of a verb from user space
 * @udata: buffers of the verb in user space; NULL for a kernel consumer
 * @cmd: filled in
 * @len: bytes of @cmd
 * @least: bytes that every provider sends
 *
 * An older provider sends fewer bytes, and the function sets the rest of @cmd to 0.  A newer
 * provider may send more bytes, which must be 0.
 * Context: process, sleeps.
 * Return: 0; -EFAULT: the command is not in readable memory of the process; -EINVAL: the command
 * has fewer than @least bytes; -EOPNOTSUPP: a field that this driver does not know is not 0.
 */
static inline int nhca_request(struct ib_udata *udata, void *cmd, size_t len, size_t least)
{
	memset(cmd, 0, len);
	if (!udata)
		return 0;
	if (udata->inlen < least)
		return -EINVAL;
	if (udata->inlen > len && !ib_is_udata_cleared(udata, len, udata->inlen - len))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(cmd, udata, min(len, udata->inlen));
}

/* debug.c */
int nhca_enable_driver(struct ib_device *ibdev);

/* device.c */
extern const struct uapi_definition nhca_device_defs[];
/**
 * nhca_may_recover - check if the calling process may recover a device and inject faults
 * @dev: the device
 * Context: process.
 * Return: true if the process has CAP_NET_ADMIN in the user namespace of the device's network
 * namespace.
 */
bool nhca_may_recover(const struct nhca_dev *dev);
int nhca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		      struct ib_udata *udata);
int nhca_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify);
void nhca_get_dev_fw_str(struct ib_device *ibdev, char *str);
int nhca_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
int nhca_query_ucontext(struct ib_ucontext *ibuc, struct uverbs_attr_bundle *attrs);
void nhca_dealloc_ucontext(struct ib_ucontext *ibuc);
void nhca_disassociate_ucontext(struct ib_ucontext *ibuc);

/* port.c */
int nhca_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int nhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable);
enum rdma_link_layer nhca_get_link_layer(struct ib_device *ibdev, u32 port);
struct net_device *nhca_get_netdev(struct ib_device *ibdev, u32 port);
int nhca_get_numa_node(struct ib_device *ibdev);
int nhca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
int nhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int nhca_add_gid(const struct ib_gid_attr *attr, void **context);
int nhca_del_gid(const struct ib_gid_attr *attr, void **context);

/* pma.c */
int nhca_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *pkey_index);

/* pd.c */
extern const struct uapi_definition nhca_pd_defs[];
int nhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int nhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* xrcd.c */

/**
 * struct nhca_xrcd - an XRC domain
 * @ibxrcd: the RDMA core's part
 * @owner:  record that the domain counts in, or NULL; a counted reference, because a process of
 *          another user may keep the domain open
 */
struct nhca_xrcd {
	struct ib_xrcd ibxrcd;
	struct nhca_user *owner;
};

int nhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int nhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* ah.c */
int nhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata);
int nhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int nhca_destroy_ah(struct ib_ah *ibah, u32 flags);

/* cq.c */
#ifdef NHCA_OLD_CREATE_CQ
int nhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct ib_udata *udata);
#else
int nhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs);
#endif
int nhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period_us);
#ifdef NHCA_OLD_RESIZE_CQ
int nhca_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
#else
int nhca_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
#endif
int nhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int nhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int nhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* srq.c */
int nhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata);
int nhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int nhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int nhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int nhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

/* qp.c */
struct nhca_qp;

/**
 * nhca_qp_who - set device and counters in nhca_qp.who of a new QP
 * @qp: the caller has set @qp->dev; @qp->who.qpn is set later, when the number is known
 * Context: any.
 */
void nhca_qp_who(struct nhca_qp *qp);

/**
 * nhca_qp_count - count a new queue pair, channel or work queue
 * @qp:    the caller has set @qp->dev; the function sets @qp->owner
 * @udata: argument of the verb
 * Context: process.
 * Return: as nhca_obj_get().
 */
int nhca_qp_count(struct nhca_qp *qp, struct ib_udata *udata);

/* Undo nhca_qp_count(), after the QP was destroyed.  Context: process, sleeps. */
void nhca_qp_uncount(struct nhca_qp *qp);

/**
 * struct nhca_qp_ops - what differs between kinds of QPs
 * @create: called by nhca_create_qp(), which has set dev, who and user of the QP.  The function
 *          counts the QP by nhca_qp_count(), and undoes the count if the creation fails.  The
 *          function returns 0; -EOPNOTSUPP: the driver does not support an attribute; -EINVAL: an
 *          attribute exceeds its limit or contradicts another one; -ENOMEM: no memory, or a limit
 *          of nhca_qp_count(); errors of nhca_request(), nhca_respond(), nhca_qpn_reserve(),
 *          nhca_qp_init() and nhca_channel_create().
 * @modify: called by nhca_modify_qp()
 * @query:  called by nhca_query_qp(): fill in all attributes except capabilities and current state
 * @destroy: called by nhca_destroy_qp(): undo @create except the count; no steering rule refers to
 *          the QP any more.  @query and @dump may still be running: the function waits for an RCU
 *          grace period before it frees memory that they use
 * @dump:   add the state of the QP to a netlink message, as a struct if @raw is true.  The function
 *          returns 0; -EMSGSIZE: the message has no room; -EOPNOTSUPP: this kind of QP has no
 *          struct.
 *
 * All these functions run in process context.  @query and @dump run in RCU read-side sections; the
 * others may sleep.  Posts, doorbells and packets do not call functions of the table, because an
 * indirect call costs more than a branch.
 */
struct nhca_qp_ops {
	int (*create)(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
	int (*modify)(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask);
	void (*query)(struct nhca_qp *qp, struct ib_qp_attr *attr);
	void (*destroy)(struct nhca_qp *qp);
	int (*dump)(struct nhca_qp *qp, struct sk_buff *msg, bool raw);
};

/* QPs with requester and responder (transport/); verbs/qp.c */
extern const struct nhca_qp_ops nhca_transport_qp_ops;
/* channels, which are of type IB_QPT_DRIVER (rcxt/); verbs/channel.c */
extern const struct nhca_qp_ops nhca_channel_qp_ops;
/* raw packet QPs with an indirection table; verbs/wq.c */
extern const struct nhca_qp_ops nhca_rss_qp_ops;

int nhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata);
int nhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int nhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int nhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int nhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int nhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);

/* resource.c; the first two are functions for nhca_qp_ops.dump */
int nhca_transport_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw);
int nhca_channel_res_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw);
int nhca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int nhca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int nhca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int nhca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int nhca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int nhca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int nhca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int nhca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

/* counter.c */
struct rdma_counter;
struct rdma_hw_stats *nhca_counter_alloc_stats(struct rdma_counter *counter);
void nhca_counter_init(struct rdma_counter *counter);
#ifdef NHCA_OLD_COUNTER
int nhca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp);
int nhca_counter_unbind_qp(struct ib_qp *ibqp);
#else
int nhca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port);
int nhca_counter_unbind_qp(struct ib_qp *ibqp, u32 port);
#endif
int nhca_counter_dealloc(struct rdma_counter *counter);
int nhca_counter_update_stats(struct rdma_counter *counter);

/* channel.c: QPs of type IB_QPT_DRIVER */
extern const struct uapi_definition nhca_channel_defs[];

/* doorbell.c */
extern const struct uapi_definition nhca_doorbell_defs[];

/* job.c */
extern const struct uapi_definition nhca_job_defs[];

/* watch.c */
extern const struct uapi_definition nhca_watch_defs[];

/* direct.c */
extern const struct uapi_definition nhca_direct_defs[];

/**
 * nhca_reg_direct - register a part of a file or block device (NHCA_REG_MR_DIRECT)
 * @ibpd:   protection domain
 * @cmd:    the driver's part of the command; @length, @iova and @access are from the core's part
 * @length: bytes
 * @iova:   address of the first byte
 * @access: rights
 * @udata:  argument of the verb
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EINVAL: the context has no pool @cmd->pool, or @cmd has an unknown
 * flag or a reserved field that is not 0; -EOPNOTSUPP: the driver is built without direct/; or as
 * nhca_mr_direct().
 */
struct ib_mr *nhca_reg_direct(struct ib_pd *ibpd, const struct nhca_reg_mr_cmd *cmd, u64 length,
			      u64 iova, int access, struct ib_udata *udata);

/* mr.c */
#ifdef NHCA_OLD_REG_MR
struct ib_mr *nhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			       int access, struct ib_udata *udata);
#else
struct ib_mr *nhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			       int access, struct ib_dmah *dmah, struct ib_udata *udata);
#endif
#if defined(NHCA_OLD_REG_DMABUF)
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct ib_udata *udata);
#elif defined(NHCA_OLD_REG_MR)
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct uverbs_attr_bundle *attrs);
#else
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct ib_dmah *dmah,
				      struct uverbs_attr_bundle *attrs);
#endif
struct ib_mr *nhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				 u64 iova, int access, struct ib_pd *ibpd,
				 struct ib_udata *udata);
struct ib_mr *nhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *nhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int nhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset);
int nhca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		   struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);
int nhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/**
 * nhca_check_access - check the rights of a region that is not an on-demand region
 * @access: a mask of enum ib_access_flags
 * Context: any.
 * Return: 0; -EOPNOTSUPP: a right that these regions cannot have; -EINVAL: remote write or atomic
 * without local write.
 */
int nhca_check_access(int access);

/* dm.c */
extern const struct uapi_definition nhca_dm_defs[];
struct ib_dm *nhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			    struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int nhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *nhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs);

/* mw.c */
int nhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int nhca_dealloc_mw(struct ib_mw *ibmw);

/* flow.c */
struct ib_flow *nhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata);
int nhca_destroy_flow(struct ib_flow *ibflow);

struct nhca_steer_rule;

/**
 * nhca_spec_rule - convert the specifications of a flow to a steering rule
 * @attr: the flow, followed by its specifications
 * @rule: zeroed by the caller; the function sets key, mask, priority and copy
 * Context: any.
 * Return: 0; -EINVAL: the specifications contradict each other; -EOPNOTSUPP: a type of flow or of
 * specification, or a flag, that the driver does not support.
 */
int nhca_spec_rule(const struct ib_flow_attr *attr, struct nhca_steer_rule *rule);

/* wq.c */
struct ib_wq *nhca_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *init,
			     struct ib_udata *udata);
int nhca_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int nhca_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata);

/**
 * struct nhca_ind_table - an RSS indirection table
 * @ibtable: the RDMA core's part
 * @owner:   record that the table counts in, or NULL
 */
struct nhca_ind_table {
	struct ib_rwq_ind_table ibtable;
	struct nhca_user *owner;
};

int nhca_create_rwq_ind_table(struct ib_rwq_ind_table *table,
			      struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata);
int nhca_destroy_rwq_ind_table(struct ib_rwq_ind_table *table);

/* mcast.c */
int nhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int nhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif /* NHCA_VERBS_OBJECTS_H */
