/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Channels and rCxt datagrams: what net/, verbs/ and main.c see of this room.  How packets look
 * is in wire/rcxt.h, what an rCxt does with them in tid.h, how it all works in
 * Documentation/rcxt.rst.
 *
 * Locks, from the outermost to the innermost; all disable BHs:
 *
 *   a device's mutex       channels come and go, acquire rCxts, and the device recovers
 *   rCxt locks             a device has some, an rCxt's is chosen by its index: one rCxt's state.
 *                          Let go of while bytes are copied.  No two at a time
 *   a device's pool lock   the pool, and the channels' lists of the rCxts that they have
 *
 *   a channel's lock       what the receive engines leave in it
 *
 * and alone, or innermost: a device's line of channels that have something to send.  Whoever has a
 * channel's turn in that line has its send engine, without a lock.
 * CQ locks nest inside all of them.  None is taken in a live section, and none is held in one.
 */
#ifndef NHCA_RCXT_H
#define NHCA_RCXT_H

#include "../nhca.h"
#include "../net/net.h"
#include "../queue/ring.h"

struct nhca_channel;

/* ---- a device: main.c ---- */

/**
 * nhca_rcxt_dev_init - the pool of a new device
 * @rcxts: its size, 1 to NHCA_RCXT_MAX
 * Context: process, sleeps.  Return: 0, -ENOMEM, -EINVAL.
 */
int nhca_rcxt_dev_init(struct nhca_dev *dev, u32 rcxts);

/* every channel has gone; fine without nhca_rcxt_dev_init(); process, sleeps */
void nhca_rcxt_dev_exit(struct nhca_dev *dev);

/**
 * nhca_rcxt_recover - packets from before this are of another time (reference: failover)
 * @why: for the log, and for the channels
 *
 * Every channel of the device goes to the error state with @why as its reason, no engine serves
 * it any more, its rCxts are back in the pool, and the recovery count has moved on, when this
 * returns.  Channels of other devices, and job memory, are not touched.
 * Called for the ioctl and the debugfs file `recover' (NHCA_CH_ERR_RECOVERED), and by main.c when
 * the netdev goes (NHCA_CH_ERR_DEVICE).
 * Context: process, sleeps.  Return: the recovery count.
 */
u32 nhca_rcxt_recover(struct nhca_dev *dev, enum nhca_channel_error why);

/* The recovery count of now.  Context: any. */
u32 nhca_rcxt_recoveries(const struct nhca_dev *dev);

/* ---- a channel: verbs/qp.c and verbs/channel.c; process context, may sleep ---- */

/**
 * nhca_channel_create - make a channel that serves at once
 * @ibqp: of type IB_QPT_DRIVER; its device, PD and CQs are set
 * @who:  as counters and traces know it, for as long as it lives; its number has been reserved in
 *        the table of QPs, where no QP is found by it
 * @cap:  as asked for; rounded up to what was granted
 * @cmd:  checked here
 * @uc:   who maps the rings
 * @resp: filled in
 * Return: the channel; ERR_PTR: -EINVAL, -EPERM (another user's job), -ENOMEM.
 */
struct nhca_channel *nhca_channel_create(struct ib_qp *ibqp, const struct nhca_who *who,
					 struct ib_qp_cap *cap,
					 const struct nhca_create_channel_cmd *cmd,
					 struct nhca_ucontext *uc,
					 struct nhca_create_channel_resp *resp);

/**
 * nhca_channel_destroy - the disruptive close (reference: snapshot interface, "Close Window")
 * Packets find it no more; then what engines have begun is waited for: softirqs with
 * synchronize_rcu(), copies with nhca_live_wait(), packets in the stack by the flow.  When it
 * returns no engine uses the channel, its rings or its rCxts; other channels went on.
 */
void nhca_channel_destroy(struct nhca_channel *ch);

/**
 * nhca_channel_set_error - the channel serves no more, but for being looked at and destroyed
 * @why: the first counts
 * Work requests that are posted complete with IB_WC_WR_FLUSH_ERR, packets are dropped.  Raises
 * IB_EVENT_QP_FATAL, but for NHCA_CH_ERR_MODIFIED.
 * Context: any, with any lock of this room but a CQ's.
 */
void nhca_channel_set_error(struct nhca_channel *ch, enum nhca_channel_error why);

/**
 * nhca_channel_acquire - rCxts for the channel, all of them or none
 * @ids: as NHCA_RCXT_ID() has them
 * Return: 0, -EDQUOT, -ENOSPC, -EIO (the channel is in the error state).
 */
int nhca_channel_acquire(struct nhca_channel *ch, u64 *ids, u32 count);

/**
 * nhca_channel_release - give rCxts back, all of them or none
 * Waits until no engine copies for them, and no packet refers to pages of their transfers.
 * Return: 0; -ENOENT: one of them is not the channel's.
 */
int nhca_channel_release(struct nhca_channel *ch, const u64 *ids, u32 count);

/* Return: 0; -EINVAL: a bit of the mask that is none. */
int nhca_channel_modify(struct nhca_channel *ch, const struct nhca_channel_modify *cmd);

/* For ibv_query_qp(), and the resource tracker: arms nothing.  Return: IB_QPS_RTS, IB_QPS_ERR. */
enum ib_qp_state nhca_channel_state(const struct nhca_channel *ch);

/* @info is filled in, all of it.  Return: packets that the network stack has of the channel. */
unsigned int nhca_channel_dump(struct nhca_channel *ch, struct nhca_channel_info *info);

/* The same, and arms IB_EVENT_QP_ACCESS_ERR anew. */
void nhca_channel_query(struct nhca_channel *ch, struct nhca_channel_info *info);

/* ---- the engines ---- */

/**
 * nhca_channel_doorbell - work was posted: run the send engine here, or leave a note for whoever
 * runs it
 * Channels of a device with packets to send take turns of a quantum each, and within a channel
 * work requests and reads that are being answered do.
 * Context: process, or the engine's bottom half.
 */
void nhca_channel_doorbell(struct nhca_channel *ch);

/**
 * nhca_channel_rx - a decoded packet arrived, whose opcode has NHCA_OPF_RXETH
 * From net/recv.c, instead of nhca_transport_rx(), which holds nothing at the time
 * (nhca_transport_rx_end() comes first).  Looks up the channel, checks ICRC, channel key and job,
 * and does what the packet is for.  Several CPUs may be here for one channel, and one rCxt.
 * Context: softirq, RCU read side; @rx is the one of the batch.
 */
void nhca_channel_rx(struct nhca_rx *rx);

/* module unload: no channel is left; process */
void nhca_channel_exit(void);

#endif /* NHCA_RCXT_H */
