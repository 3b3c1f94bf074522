// SPDX-License-Identifier: GPL-2.0
/*
 * Creation and destruction of channels, the table of channels, acquisition and release of their
 * rCxts, completions and errors of channels (reference US 8,023,417: adapter windows and the LMT).
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/udp.h>

#include "../memory/memcg.h"
#include "../observe/stub.h"
#include "notice.h"

#define CHANNEL_MAX_FRAMES	NHCA_MAX_FRAMES
/* minimum number of bytes in a slot of the send FIFO after struct nhca_send_wqe */
#define CHANNEL_MIN_SPACE	64u
/* maximum number of rCxts to acquire at a time, with the pool's lock held and BHs disabled */
#define CHANNEL_CHUNK		256u

static_assert(sizeof(struct nhca_frame) == NHCA_FRAME_SIZE);
static_assert(sizeof(struct nhca_rcxt_wr) + sizeof(struct nhca_rcxt_target) <= CHANNEL_MIN_SPACE);

/* channels of all devices by QPN, which the table of QPs reserves; lookups run under RCU */
static DEFINE_XARRAY_FLAGS(nhca_channels, XA_FLAGS_ACCOUNT);

struct nhca_channel *nhca_channel_find(u32 qpn)
{
	return xa_load(&nhca_channels, qpn);
}

u32 nhca_channel_segment(const struct nhca_dev *dev)
{
	const u32 around = sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN +
			   NHCA_RXETH_LEN + NHCA_ICRC_LEN;
	u32 mtu = READ_ONCE(dev->netdev->mtu);
	u32 room;

	/*
	 * main.c accepts only netdevs with room for a RoCE path MTU of 256.  So the minimum segment
	 * is used only if the netdev's MTU is lowered later.
	 */
	room = mtu > around + NHCA_RCXT_MIN_SEGMENT ? mtu - around : NHCA_RCXT_MIN_SEGMENT;
	room = min(room, NHCA_RCXT_MAX_SEGMENT);
	return room >= PAGE_SIZE ? round_down(room, PAGE_SIZE) : round_down(room, 4);
}

/* ---- events, completions, errors ---- */

static void channel_event(struct nhca_channel *ch, enum ib_event_type event)
{
	struct ib_event ev = {
		.device = ch->ibqp->device,
		.element.qp = ch->ibqp,
		.event = event,
	};

	if (ch->ibqp->event_handler)
		ch->ibqp->event_handler(&ev, ch->ibqp->qp_context);
}

bool nhca_channel_complete(struct nhca_channel *ch, bool recv, struct nhca_cqe *cqe,
			   bool solicited)
{
	struct ib_cq *cq = recv ? ch->ibqp->recv_cq : ch->ibqp->send_cq;
	u32 threshold = READ_ONCE(ch->threshold[recv]);

	cqe->qp_num = ch->qpn;
	if (threshold && !((u32)atomic_inc_return(&ch->completed[recv]) % threshold))
		solicited = true;
	if (!nhca_cq_post(to_nhca_cq(cq), cqe, solicited))
		return true;
	nhca_channel_count(ch, NHCA_CH_DROP_CQ, 1);
	return false;
}

void nhca_channel_set_error(struct nhca_channel *ch, enum nhca_channel_error why)
{
	if (cmpxchg(&ch->reason, NHCA_CH_ERR_NONE, why) != NHCA_CH_ERR_NONE)
		return;
	/* the channel's next turn flushes its work requests */
	nhca_drr_ready(ch, true);
	if (why != NHCA_CH_ERR_MODIFIED)
		channel_event(ch, IB_EVENT_QP_FATAL);
}

void nhca_channel_violated(struct nhca_channel *ch, const struct nhca_rxeth *x,
			   const struct nhca_rcxt_id *local, u64 pvo,
			   enum nhca_channel_counter why)
{
	bool raise;

	spin_lock_bh(&ch->lock);
	ch->violation.why = why;
	ch->violation.channel = x->src_channel;
	ch->violation.rcxt = nhca_rcxt_id64(local);
	ch->violation.tid = x->tid;
	ch->violation.pvo = pvo;
	raise = !ch->event_raised;
	ch->event_raised = true;
	spin_unlock_bh(&ch->lock);
	if (raise)
		channel_event(ch, IB_EVENT_QP_ACCESS_ERR);
}

/*
 * The kick of a channel: net/ and memory/ call it when a blocked flow has room, when zero-copy
 * references were released, or when a page fault has ended.  Context: any.
 */
static void channel_kick(void *arg)
{
	nhca_drr_ready(arg, true);
}

/* ---- a device ---- */

static void engine_kicked(struct nhca_bh *bh)
{
	struct nhca_rcxt_dev *rd = container_of(bh, struct nhca_rcxt_dev, engine);

	rcu_read_lock();
	nhca_drr_run(rd);
	rcu_read_unlock();
}

int nhca_rcxt_dev_init(struct nhca_dev *dev, u32 rcxts)
{
	struct nhca_rcxt_dev *rd = kzalloc(sizeof(*rd), GFP_KERNEL);
	int err, i;

	if (!rd)
		return -ENOMEM;
	err = nhca_rcxt_pool_init(&rd->pool, rcxts);
	if (err) {
		kfree(rd);
		return err;
	}
	rd->pool.users = &dev->users;
	rd->dev = dev;
	spin_lock_init(&rd->lock);
	for (i = 0; i < NHCA_RCXT_LOCKS; i++)
		spin_lock_init(&rd->rcxt_locks[i]);
	nhca_tokens_init(&rd->tokens);
	mutex_init(&rd->mutex);
	INIT_LIST_HEAD(&rd->channels);
	spin_lock_init(&rd->ready_lock);
	INIT_LIST_HEAD(&rd->ready);
	nhca_bh_init(&rd->engine, engine_kicked);
	dev->rcxt = rd;
	return 0;
}

void nhca_rcxt_dev_exit(struct nhca_dev *dev)
{
	struct nhca_rcxt_dev *rd = dev->rcxt;

	if (!rd)
		return;
	nhca_bh_kill(&rd->engine);
	WARN_ON(!list_empty(&rd->channels));
	nhca_rcxt_pool_destroy(&rd->pool);
	mutex_destroy(&rd->mutex);
	kfree(rd);
	dev->rcxt = NULL;
}

/* ---- rCxts ---- */

void nhca_channel_grace(struct nhca_channel *ch)
{
	NHCA_STUB(nhca_channel_grace, ch);
	synchronize_rcu_expedited();
}

/**
 * struct channel_left - what the release of rCxts has to consider after channel_end()
 * @copies:  a CPU copies payload of a transfer
 * @packets: the send engine may make packets of a transfer
 * @pages:   packets may refer to pages of a write (nhca_rcxt.wrote)
 * @ordered: an ordered accumulate (NHCA_RCXT_WR_ORDERED) may have been in progress
 *
 * After nhca_channel_grace(), no CPU copies payload or makes packets of these transfers any more.
 */
struct channel_left {
	bool copies;
	bool packets;
	bool pages;
	bool ordered;
};

/*
 * Cancel the transfer of an rCxt that is being released, and refuse all tids, so that no other
 * transfer can begin.  Set the members of @left that apply, and leave the others unchanged.
 */
static void channel_end(struct nhca_channel *ch, const struct nhca_rcxt_id *id,
			struct channel_left *left)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	spinlock_t *lock = nhca_rcxt_lock(rd, id);
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	if (!nhca_rcxt_find(&rd->pool, ch->qpn, id, &rc)) {
		nhca_notice_forget(ch, rc);
		nhca_rcxt_end(&rd->pool, rc, NHCA_RCXT_IDLE);
		/* no tid is higher, so no packet can begin another transfer */
		rc->tid = U32_MAX;
		left->copies |= !nhca_rcxt_no_copies(rc);
		left->packets |= rc->wrote || rc->answers;
		left->pages |= rc->wrote;
		left->ordered |= rc->ordered;
	}
	spin_unlock_bh(lock);
}

/*
 * Return an rCxt to the pool, unless a recovery has returned it already.  The caller has waited for
 * the end of copies.
 */
static void channel_give_back(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	spinlock_t *lock = nhca_rcxt_lock(rd, id);
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	if (!nhca_rcxt_find(&rd->pool, ch->qpn, id, &rc)) {
		spin_lock(&rd->lock);
		nhca_rcxt_release(&rd->pool, &ch->rcxts, rc);
		spin_unlock(&rd->lock);
	}
	spin_unlock_bh(lock);
}

/* Release an rCxt.  The caller ensures that no send engine makes packets of its transfer. */
static void channel_take_back(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct channel_left left = {};

	channel_end(ch, id, &left);
	if (left.copies)
		nhca_channel_grace(ch);
	channel_give_back(ch, id);
}

static void channel_take_back_all(struct nhca_channel *ch)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	struct nhca_rcxt_id id;

	for (;;) {
		spin_lock_bh(&rd->lock);
		id.index = ch->rcxts.first;
		if (id.index != NHCA_RCXT_NONE)
			id.key = rd->pool.rcxts[id.index].key;
		spin_unlock_bh(&rd->lock);
		if (id.index == NHCA_RCXT_NONE)
			return;
		channel_take_back(ch, &id);
		cond_resched();
	}
}

/*
 * Acquire @count rCxts, but at most CHANNEL_CHUNK.
 * Return: number of rCxts; -ENOMEM: no memory; or an error of nhca_rcxt_acquire().
 */
static int channel_acquire_some(struct nhca_channel *ch, u64 *ids, u32 count)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	struct nhca_rcxt_id *got;
	u32 i;
	int err;

	count = min(count, CHANNEL_CHUNK);
	got = kmalloc_array(count, sizeof(*got), GFP_KERNEL);
	if (!got)
		return -ENOMEM;
	spin_lock_bh(&rd->lock);
	err = nhca_rcxt_acquire(&rd->pool, ch->qpn, &ch->rcxts, count, got);
	spin_unlock_bh(&rd->lock);
	for (i = 0; !err && i < count; i++)
		ids[i] = nhca_rcxt_id64(&got[i]);
	kfree(got);
	return err ?: count;
}

int nhca_channel_acquire(struct nhca_channel *ch, u64 *ids, u32 count)
{
	struct nhca_rcxt_id id;
	int n = 0;
	u32 have;

	/* while nhca_rcxt_recover() releases all rCxts, no rCxt may be acquired */
	mutex_lock(&ch->rd->mutex);
	if (nhca_channel_failed(ch))
		n = -EIO;
	for (have = 0; n >= 0 && have < count; have += n) {
		n = channel_acquire_some(ch, ids + have, count - have);
		if (n < 0)
			break;
		cond_resched();
	}
	while (n < 0 && have--) {
		id = nhca_rcxt_id_of(ids[have]);
		channel_take_back(ch, &id);
	}
	mutex_unlock(&ch->rd->mutex);
	return min(n, 0);
}

static bool channel_has(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, id);
	struct nhca_rcxt *rc;
	bool has;

	spin_lock_bh(lock);
	has = !nhca_rcxt_find(&ch->rd->pool, ch->qpn, id, &rc);
	spin_unlock_bh(lock);
	return has;
}

/* End the transfers of rCxts that are being released.  Return: as nhca_channel_release(). */
static int channel_end_some(struct nhca_channel *ch, const u64 *ids, u32 count,
			    struct channel_left *left)
{
	struct nhca_rcxt_id id;
	u32 i;

	/* the mutex keeps nhca_rcxt_recover() from releasing rCxts between the two loops */
	lockdep_assert_held(&ch->rd->mutex);
	for (i = 0; i < count; i++) {
		id = nhca_rcxt_id_of(ids[i]);
		if (!channel_has(ch, &id))
			return -ENOENT;
	}
	for (i = 0; i < count; i++) {
		id = nhca_rcxt_id_of(ids[i]);
		channel_end(ch, &id, left);
		cond_resched();
	}
	return 0;
}

int nhca_channel_release(struct nhca_channel *ch, const u64 *ids, u32 count)
{
	struct channel_left left = {};
	struct nhca_rcxt_id id;
	u32 i;
	int err;

	mutex_lock(&ch->rd->mutex);
	err = channel_end_some(ch, ids, count, &left);
	mutex_unlock(&ch->rd->mutex);
	/*
	 * The program may reuse its buffers when this function returns: wait for engines that copy
	 * payload or make packets of the transfers, and finally for the zero-copy references of all
	 * packets (nhca_zcopy_wait_flow()).
	 */
	if (left.copies || left.packets)
		nhca_channel_grace(ch);
	for (i = 0; !err && i < count; i++) {
		id = nhca_rcxt_id_of(ids[i]);
		channel_give_back(ch, &id);
		cond_resched();
	}
	/* a work request may wait for the end of an ordered accumulate (ordered.h) */
	if (left.ordered)
		nhca_drr_ready(ch, true);
	/* a recovery may have released rCxts of writes, and has not waited for their packets */
	if (left.pages || nhca_channel_failed(ch))
		nhca_zcopy_wait_flow(ch->flow, ch->dev, nhca_uobject_owner(ch->ibqp->pd->uobject));
	return err;
}

u32 nhca_rcxt_recover(struct nhca_dev *dev, enum nhca_channel_error why)
{
	struct nhca_rcxt_dev *rd = dev->rcxt;
	struct nhca_channel *ch;
	u32 count;

	mutex_lock(&rd->mutex);
	list_for_each_entry(ch, &rd->channels, list)
		nhca_channel_set_error(ch, why);
	/* wait for engines that have begun before the error state was set */
	synchronize_rcu_expedited();
	list_for_each_entry(ch, &rd->channels, list)
		channel_take_back_all(ch);
	spin_lock_bh(&rd->lock);
	count = nhca_rcxt_pool_recover(&rd->pool);
	spin_unlock_bh(&rd->lock);
	mutex_unlock(&rd->mutex);
	return count;
}

u32 nhca_rcxt_recoveries(const struct nhca_dev *dev)
{
	return READ_ONCE(dev->rcxt->pool.recoveries);
}

enum ib_qp_state nhca_channel_state(const struct nhca_channel *ch)
{
	return nhca_channel_failed(ch) ? IB_QPS_ERR : IB_QPS_RTS;
}

/* ---- create, modify, query, destroy ---- */

static u32 channel_quantum(u32 quantum)
{
	return quantum ? min(quantum, NHCA_CH_PASS) : NHCA_CH_QUANTUM;
}

static int channel_rings(struct nhca_channel *ch, struct ib_qp_cap *cap, u32 frames,
			 struct nhca_ucontext *uc, struct nhca_create_channel_resp *resp)
{
	struct nhca_ring_user user = { .uc = uc };
	u32 space, stride;
	int err;

	stride = nhca_send_stride(cap->max_send_sge, max(cap->max_inline_data, CHANNEL_MIN_SPACE));
	err = nhca_ring_alloc(&ch->sq, max(cap->max_send_wr, 1U), stride, &user);
	if (err)
		return err;
	resp->sq = user.info;
	if (frames) {
		err = nhca_fifo_init(&ch->fifo, frames, &user);
		if (err)
			return err;
		resp->fifo = user.info;
	}
	ch->wqe = kzalloc(stride, GFP_KERNEL_ACCOUNT);
	if (!ch->wqe)
		return -ENOMEM;

	space = stride - sizeof(struct nhca_send_wqe);
	ch->max_wr = nhca_ring_entries(&ch->sq);
	ch->max_sge = min_t(u32, space / sizeof(struct nhca_sge), NHCA_MAX_SGE);
	ch->max_inline = min_t(u32, space, NHCA_FRAME_DATA);
	cap->max_send_wr = ch->max_wr;
	cap->max_send_sge = ch->max_sge;
	cap->max_inline_data = ch->max_inline;
	cap->max_recv_wr = 0;
	cap->max_recv_sge = 0;
	return 0;
}

static int channel_transfers(struct nhca_channel *ch)
{
	u32 i;

	ch->writes = kcalloc(NHCA_CH_WRITES, sizeof(*ch->writes), GFP_KERNEL_ACCOUNT);
	if (!ch->writes)
		return -ENOMEM;
	for (i = 0; i < NHCA_CH_WRITES; i++)
		list_add_tail(&ch->writes[i].list, &ch->free);
	ch->flow = nhca_flow_create(ch->dev->txq, channel_kick, ch);
	if (!ch->flow || nhca_flow_share(ch->flow, ch->rcxts.user))
		return -ENOMEM;
	ch->fault = nhca_fault_alloc(channel_kick, ch);
	return ch->fault ? 0 : -ENOMEM;
}

/* Free a channel that no lookup finds and no engine uses any more. */
static void channel_free(struct nhca_channel *ch)
{
	u32 i;

	for (i = 0; i < NHCA_CH_PATHS; i++)
		nhca_av_put(ch->paths[i]);
	for (i = 0; i < ch->targets; i++)
		nhca_av_put(ch->target[i]);
	kfree(ch->writes);
	kfree(ch->wqe);
	nhca_fifo_destroy(&ch->fifo);
	nhca_ring_free(&ch->sq);
	free_percpu(ch->counts);
	nhca_job_put(ch->job);
	nhca_user_put(ch->rcxts.user);
	nhca_memcg_put(ch->memcg);
	kfree(ch);
}

static void channel_init(struct nhca_channel *ch, struct ib_qp *ibqp, const struct nhca_who *who,
			 u32 quantum)
{
	ch->ibqp = ibqp;
	ch->dev = to_nhca_dev(ibqp->device);
	ch->rd = ch->dev->rcxt;
	ch->who = who;
	ch->qpn = who->qpn;
	ch->key = get_random_u64();
	ch->key_user = (struct nhca_key_user) { .pd = ibqp->pd, .qpn = who->qpn };
	ch->rcxts.first = NHCA_RCXT_NONE;
	ch->quantum = channel_quantum(quantum);
	ch->threshold[false] = 1;
	ch->threshold[true] = 1;
	INIT_LIST_HEAD(&ch->list);
	INIT_LIST_HEAD(&ch->ready);
	INIT_LIST_HEAD(&ch->sending);
	INIT_LIST_HEAD(&ch->ended);
	INIT_LIST_HEAD(&ch->waiting);
	ch->noticed.first = NHCA_RCXT_NONE;
	ch->noticed.last = NHCA_RCXT_NONE;
	INIT_LIST_HEAD(&ch->free);
	INIT_LIST_HEAD(&ch->order);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->requested);
}

/* Let packets find the channel. */
static int channel_show(struct nhca_channel *ch)
{
	int err;

	/* without the mutex, because an allocation may take long if a memory cgroup is full */
	err = xa_reserve(&nhca_channels, ch->qpn, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	mutex_lock(&ch->rd->mutex);
	/* the entry is reserved, so this allocates no memory and succeeds */
	xa_store(&nhca_channels, ch->qpn, ch, 0);
	list_add_tail(&ch->list, &ch->rd->channels);
	mutex_unlock(&ch->rd->mutex);
	return 0;
}

struct nhca_channel *nhca_channel_create(struct ib_qp *ibqp, const struct nhca_who *who,
					 struct ib_qp_cap *cap,
					 const struct nhca_create_channel_cmd *cmd,
					 struct nhca_ucontext *uc,
					 struct nhca_create_channel_resp *resp)
{
	struct nhca_channel *ch;
	int err;

	if (cmd->flags || cmd->frames > CHANNEL_MAX_FRAMES)
		return ERR_PTR(-EINVAL);
	ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);
	if (!ch)
		return ERR_PTR(-ENOMEM);
	channel_init(ch, ibqp, who, cmd->quantum);
	ch->memcg = nhca_memcg_get(true);
	ch->job = nhca_job_get(nhca_net_ns(ch->dev->nn), cmd->job);
	err = PTR_ERR_OR_ZERO(ch->job);
	if (err)
		goto err_job;
	/* the user who creates the channel is charged for its rCxts and packets */
	ch->rcxts.user = nhca_user_get_current(&ch->dev->users);
	err = PTR_ERR_OR_ZERO(ch->rcxts.user);
	if (err)
		goto err_user;
	err = -ENOMEM;
	ch->counts = alloc_percpu_gfp(struct nhca_channel_counts, GFP_KERNEL_ACCOUNT);
	if (!ch->counts)
		goto err_free;
	err = channel_rings(ch, cap, cmd->frames, uc, resp);
	if (!err)
		err = channel_transfers(ch);
	if (!err)
		err = channel_show(ch);
	if (err)
		goto err_flow;
	resp->key = ch->key;
	resp->segment = nhca_channel_segment(ch->dev);
	return ch;

err_flow:
	nhca_fault_free(ch->fault);
	if (ch->flow)
		nhca_flow_close(ch->flow);
err_free:
	channel_free(ch);
	return ERR_PTR(err);

err_user:
	nhca_job_put(ch->job);
err_job:
	nhca_memcg_put(ch->memcg);
	kfree(ch);
	return ERR_PTR(err);
}

void nhca_channel_destroy(struct nhca_channel *ch)
{
	struct nhca_sending *s, *next;

	xa_erase(&nhca_channels, ch->qpn);
	nhca_drr_close(ch);
	/* wait for receive engines that have found the channel, and for the send engine */
	synchronize_rcu_expedited();
	/* the program may reuse its buffers when this function returns */
	nhca_zcopy_wait_flow(ch->flow, ch->dev, nhca_uobject_owner(ch->ibqp->pd->uobject));
	nhca_fault_free(ch->fault);
	nhca_flow_close(ch->flow);
	/* wait for kicks of the flow, which use the channel */
	synchronize_rcu_expedited();

	/*
	 * nhca_rcxt_recover() must find each channel that has rCxts: release the rCxts before
	 * list_del()
	 */
	mutex_lock(&ch->rd->mutex);
	channel_take_back_all(ch);
	list_del(&ch->list);
	mutex_unlock(&ch->rd->mutex);
	list_splice_tail_init(&ch->requested, &ch->sending);
	list_splice_tail_init(&ch->ended, &ch->sending);
	list_for_each_entry_safe(s, next, &ch->sending, list) {
		nhca_av_put(s->av);
		nhca_av_put(s->manager);
		if (s->answer)
			kfree(s);
	}
	channel_free(ch);
}

int nhca_channel_modify(struct nhca_channel *ch, const struct nhca_channel_modify *cmd)
{
	const u32 known = NHCA_CHANNEL_RECV_THRESHOLD | NHCA_CHANNEL_SEND_THRESHOLD |
			  NHCA_CHANNEL_QUANTUM;

	if (cmd->mask & ~known)
		return -EINVAL;
	if (cmd->mask & NHCA_CHANNEL_RECV_THRESHOLD)
		WRITE_ONCE(ch->threshold[true], cmd->recv_threshold);
	if (cmd->mask & NHCA_CHANNEL_SEND_THRESHOLD)
		WRITE_ONCE(ch->threshold[false], cmd->send_threshold);
	if (cmd->mask & NHCA_CHANNEL_QUANTUM)
		WRITE_ONCE(ch->quantum, channel_quantum(cmd->quantum));
	return 0;
}

unsigned int nhca_channel_dump(struct nhca_channel *ch, struct nhca_channel_info *info)
{
	int cpu, i;

	static_assert(ARRAY_SIZE(info->counters) >= NHCA_CH_COUNTERS);
	*info = (struct nhca_channel_info) {
		.reason = READ_ONCE(ch->reason),
		.job = ch->job->key.id,
		.rcxts = READ_ONCE(ch->rcxts.count),
		.segment = nhca_channel_segment(ch->dev),
		.recv_threshold = READ_ONCE(ch->threshold[true]),
		.send_threshold = READ_ONCE(ch->threshold[false]),
		.quantum = READ_ONCE(ch->quantum),
		.recoveries = nhca_rcxt_recoveries(ch->dev),
	};
	info->state = info->reason ? IB_QPS_ERR : IB_QPS_RTS;
	spin_lock_bh(&ch->lock);
	info->violation = ch->violation.why;
	info->violation_channel = ch->violation.channel;
	info->violation_rcxt = ch->violation.rcxt;
	info->violation_tid = ch->violation.tid;
	info->violation_pvo = ch->violation.pvo;
	spin_unlock_bh(&ch->lock);
	for_each_possible_cpu(cpu)
		for (i = 0; i < NHCA_CH_COUNTERS; i++)
			info->counters[i] += per_cpu_ptr(ch->counts, cpu)->v[i];
	return nhca_flow_inflight(ch->flow);
}

void nhca_channel_query(struct nhca_channel *ch, struct nhca_channel_info *info)
{
	spin_lock_bh(&ch->lock);
	ch->event_raised = false;
	spin_unlock_bh(&ch->lock);
	nhca_channel_dump(ch, info);
}

void nhca_channel_exit(void)
{
	WARN_ON(!xa_empty(&nhca_channels));
	xa_destroy(&nhca_channels);
}
