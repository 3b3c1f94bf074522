/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Channels and rCxt datagrams: the interface of this room for ingress/, verbs/ and main.c.
 * wire/rcxt.h has the format of the packets, tid.h the rules by which an rCxt accepts packets, and
 * Documentation/rcxt.rst the design.  In comments, terms after "reference:" are those of the patent
 * US 8,023,417.
 *
 * Locks, from the outermost to the innermost.  The spinlocks are taken with BHs disabled.
 *
 *   nhca_rcxt_dev.mutex        list of channels, acquisition of rCxts, end of the transfers of
 *                              rCxts that are released, recovery
 *   nhca_rcxt_dev.rcxt_locks   state of an rCxt; the index of the rCxt selects one of
 *                              NHCA_RCXT_LOCKS locks.  A CPU holds at most one of these locks,
 *                              and none while it copies payload
 *   nhca_rcxt_dev.lock         the pool, and the list of rCxts of each channel
 *   nhca_channel.lock          state that the receive engines share with the send engine; no CPU
 *                              holds it together with nhca_rcxt_dev.lock
 *
 * nhca_rcxt_dev.ready_lock (irqsave) protects the list of channels that have something to send.
 * This lock is innermost.  A CPU that takes a channel off this list has the turn of the channel:
 * until the end of the turn only this CPU runs the channel's send engine, so the state of the send
 * engine needs no lock.
 *
 * A CPU that posts a completion holds none of these spinlocks, and takes ready_lock only after it
 * has released the lock of the CQ.  No code of this room takes one of these locks in a live
 * section, or enters a live section with one of these spinlocks held.
 */
#ifndef NHCA_RCXT_H
#define NHCA_RCXT_H

#include "../nhca.h"
#include "../net/net.h"
#include "../observe/counters.h"
#include "../queue/ring.h"

struct nhca_channel;

/* ---- a device: main.c ---- */

/**
 * nhca_rcxt_dev_init - create the pool of rCxts of a new device
 * @dev:   the device; the function sets dev->rcxt
 * @rcxts: number of rCxts, 1 to NHCA_RCXT_MAX
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory; -EINVAL: @rcxts is out of bounds.
 */
int nhca_rcxt_dev_init(struct nhca_dev *dev, u32 rcxts);

/**
 * nhca_rcxt_dev_exit - free the pool of a device
 * @dev: the device, without channels; the function does nothing if nhca_rcxt_dev_init() has failed
 *       or was not called
 * Context: process, sleeps.
 */
void nhca_rcxt_dev_exit(struct nhca_dev *dev);

/**
 * nhca_rcxt_recover - invalidate all channels and rCxts of a device (reference: failover)
 * @dev: the device
 * @why: error reason of the channels: NHCA_CH_ERR_RECOVERED for the ioctl and the debugfs file
 *       `recover', NHCA_CH_ERR_DEVICE when the netdev is removed or leaves its network namespace
 *
 * When the function returns, every channel that the device had before is in the error state, and
 * the rCxts of these channels are in the pool.  The engines only drop packets, end transfers and
 * flush work requests of these channels.  Other channels may acquire the rCxts.  Packets of earlier
 * transfers are still dropped, because they name old keys.  The function increments the recovery
 * count.  Channels of other devices and job memory do not change.  The network stack may still hold
 * packets that refer to pages of writes: nhca_channel_release() and nhca_channel_destroy() wait for
 * these packets.
 * Context: process, sleeps.
 * Return: the new recovery count.
 */
u32 nhca_rcxt_recover(struct nhca_dev *dev, enum nhca_channel_error why);

/**
 * nhca_rcxt_recoveries - read the recovery count of a device
 * @dev: the device
 * Context: any.
 * Return: the count, modulo 2^16; it starts at a random value.
 */
u32 nhca_rcxt_recoveries(const struct nhca_dev *dev);

/* ---- a channel: for verbs/qp.c and verbs/channel.c ---- */

/**
 * nhca_channel_create - create a channel that can send and receive when the function returns
 * @ibqp: QP of type IB_QPT_DRIVER; the caller has set its device, PD and CQs
 * @who:  identity of the channel for counters and traces; must outlive the channel.  The QPN in
 *        @who is reserved in the table of QPs, and a lookup in this table finds no QP
 * @cap:  requested capacities; on return the granted capacities, which are not smaller
 * @cmd:  command of user space; the function checks the command
 * @uc:   user context of the process that maps the rings
 * @resp: response to user space, filled in
 * Context: process, sleeps.
 * Return: the channel; ERR_PTR: -EINVAL: @cmd has flags, too many frames or job 0, or a ring would
 * be larger than INT_MAX bytes; -EPERM: another user owns the job; -ENOMEM: no memory, or
 * RLIMIT_MEMLOCK would be exceeded.
 */
struct nhca_channel *nhca_channel_create(struct ib_qp *ibqp, const struct nhca_who *who,
					 struct ib_qp_cap *cap,
					 const struct nhca_create_channel_cmd *cmd,
					 struct nhca_ucontext *uc,
					 struct nhca_create_channel_resp *resp);

/**
 * nhca_channel_destroy - destroy a channel (reference: snapshot interface, "Close Window")
 * @ch: the channel
 *
 * The function removes the channel from the table, so that packets no longer find it.  Then the
 * function waits for engines that have found the channel (synchronize_rcu_expedited()), for the
 * zero-copy references of the channel's packets (nhca_zcopy_wait_flow()), and for copies of payload
 * (nhca_rcxt_no_copies()).  After that, no engine uses the channel, its rings or its rCxts.  Other
 * channels send and receive during these waits.
 * Context: process, sleeps.
 */
void nhca_channel_destroy(struct nhca_channel *ch);

/**
 * nhca_channel_set_error - put a channel into the error state, which the channel never leaves
 * @ch:  the channel
 * @why: reason; if the channel is in the error state already, the function changes nothing
 *
 * Posted work requests complete with IB_WC_WR_FLUSH_ERR, and received packets are dropped.  The
 * program can still query and destroy the channel.  The function raises IB_EVENT_QP_FATAL, unless
 * @why is NHCA_CH_ERR_MODIFIED.
 * Context: any; the caller holds neither ready_lock nor the lock of a CQ.
 */
void nhca_channel_set_error(struct nhca_channel *ch, enum nhca_channel_error why);

/**
 * nhca_channel_acquire - acquire @count rCxts for a channel, or none if the function fails
 * @ch:    the channel
 * @ids:   room for @count ids; filled in as NHCA_RCXT_ID() makes them
 * @count: number of rCxts
 * Context: process, sleeps.
 * Return: 0; -EDQUOT: nhca_share_ok() does not permit the user that many rCxts (by default at most
 * half of the pool); -ENOSPC: fewer than @count rCxts are free; -EIO: the channel is in the error
 * state; -ENOMEM: no memory.
 */
int nhca_channel_acquire(struct nhca_channel *ch, u64 *ids, u32 count);

/**
 * nhca_channel_release - release @count rCxts of a channel, or none if the function fails
 * @ch:    the channel
 * @ids:   as nhca_channel_acquire() returned them
 * @count: number of ids
 *
 * The function waits for the engines (nhca_channel_grace()) if a CPU copies payload for one of the
 * rCxts, if a write on one of them was not completed by a notice (nhca_rcxt.wrote), or if one of
 * them had a request of a peer or a half-send write (nhca_rcxt.answers).  If nhca_rcxt.wrote is
 * set, or the channel is in the error state, the function also waits until no packet of the channel
 * refers to pages of the program.  This wait also takes place if the result is -ENOENT because
 * nhca_rcxt_recover() has released the rCxts.
 * Context: process, sleeps.
 * Return: 0; -ENOENT: the channel does not own one of the rCxts.
 */
int nhca_channel_release(struct nhca_channel *ch, const u64 *ids, u32 count);

/**
 * nhca_channel_modify - change thresholds and quantum of a channel
 * @ch:  the channel
 * @cmd: command of user space; the function checks the command
 * Context: any.
 * Return: 0; -EINVAL: the mask has an unknown bit.
 */
int nhca_channel_modify(struct nhca_channel *ch, const struct nhca_channel_modify *cmd);

/**
 * nhca_channel_target - allow or revoke a target of third-party transfers
 * @ch:  the channel, as the source of these transfers
 * @cmd: command of user space; the function checks the command
 *
 * After a revocation, the function waits until the channel sends nothing to the address as the
 * source of a third-party transfer.  Managers of transfers in progress get a status.
 * Context: process, sleeps.
 * Return: 0; -EINVAL: invalid operation, or no unicast address handle of the channel's PD; -ENOSPC:
 * the channel allows NHCA_MAX_TARGETS addresses; -ENOENT: the channel does not allow the address.
 */
int nhca_channel_target(struct nhca_channel *ch, const struct nhca_channel_target *cmd);

/**
 * nhca_channel_state - get the state of a channel for ibv_query_qp()
 * @ch: the channel
 * Context: any.
 * Return: IB_QPS_RTS or IB_QPS_ERR.
 */
enum ib_qp_state nhca_channel_state(const struct nhca_channel *ch);

/**
 * nhca_channel_dump - read state and counters of a channel, for the resource tracker
 * @ch:   the channel
 * @info: filled in completely
 * Context: process or softirq.
 * Return: number of packets of the channel that are in the network stack.
 */
unsigned int nhca_channel_dump(struct nhca_channel *ch, struct nhca_channel_info *info);

/**
 * nhca_channel_query - execute NHCA_METHOD_CHANNEL_QUERY with nhca_channel_dump()
 * @ch:   the channel; the next protection violation raises IB_EVENT_QP_ACCESS_ERR again
 * @info: filled in completely
 * Context: process or softirq.
 */
void nhca_channel_query(struct nhca_channel *ch, struct nhca_channel_info *info);

/* ---- the engines ---- */

/**
 * nhca_channel_doorbell - run the send engine, because the program has posted work requests
 * @ch: the channel
 *
 * The function puts @ch on the list of channels that have something to send, and then serves this
 * list (nhca_drr_run()).  If another CPU has the turn of @ch, the other CPU puts @ch at the end of
 * the list after the turn.
 * Context: process; disables BHs.
 */
void nhca_channel_doorbell(struct nhca_channel *ch);

/**
 * nhca_channel_rx - process a received packet whose opcode has NHCA_OPF_RXETH
 * @rx: the packet, decoded
 *
 * ingress/udp.c calls nhca_channel_rx() instead of nhca_transport_rx().  Before this call, it calls
 * nhca_transport_rx_end(), which releases the lock of the previous packet's QP.
 * nhca_channel_rx() looks up the channel, checks destination address, ICRC, channel key and job,
 * and processes the packet.  Several CPUs may process packets of one channel, and of one rCxt,
 * concurrently.
 * Context: softirq, RCU read side.
 */
void nhca_channel_rx(struct nhca_rx *rx);

/**
 * nhca_channel_exit - free the empty table of channels when the module is unloaded
 * Context: process.
 */
void nhca_channel_exit(void);

#endif /* NHCA_RCXT_H */
