/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about channels: two devices without working netdevs, each with job memory and a
 * channel of the same job. Packets that a channel sends wait on a list until the test delivers,
 * repeats, changes or drops them. Tests post work requests in the send FIFO as user space does.
 *
 * The replacements of functions of net/ have an effect only in the thread of the test. The bottom
 * half of the send engine runs in this thread when BHs are enabled again, but it would continue in
 * ksoftirqd after a while. So a test leaves at most one pass (NHCA_CH_PASS) to the bottom half, and
 * disables BHs around calls that queue the bottom half.
 */
#ifndef NHCA_TEST_CHANNEL_PAIR_H
#define NHCA_TEST_CHANNEL_PAIR_H

#include <kunit/test.h>
#include <linux/prandom.h>

#include "../memory/mr.h"
#include "../rcxt/engine.h"

#define PAIR_JOB	0x10b
#define PAIR_ADDR	0x0a000001u	/* end 0: 10.0.0.1; end 1: 10.0.0.2; end 2: 10.0.0.3 */
#define PAIR_BROADCAST	0x0a0000ffu	/* broadcast address of the subnet of all ends */
#define PAIR_IFINDEX	77
#define PAIR_AH		5		/* address handle of the other end; on end 2: of end 0 */
#define PAIR_AH_TARGET	6		/* on end 2: address handle of end 1 */
#define PAIR_QPN	0x1110u		/* QPN of the channel of end 0; end 1 has the next QPN */
#define PAIR_SEG	1024u		/* bytes in a packet of a transfer, by default */
#define PAIR_RCXTS	1024u		/* rCxts in the pool of a device */
#define PAIR_ORDER	6
#define PAIR_GUARD	512u		/* bytes before and after the memory of an end */
#define PAIR_BYTES	((PAGE_SIZE << PAIR_ORDER) - 2 * PAIR_GUARD)
#define PAIR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
#define CHAN_IDS	4

struct pair;
struct pair_end;

/**
 * struct chan - a channel, and the state of the program that uses it
 * @list:   link in pair.chans
 * @end:    host of the channel
 * @peer:   channel that its work requests name
 * @ibqp:   argument of nhca_channel_create()
 * @who:    argument of nhca_channel_create()
 * @cap:    argument and result of nhca_channel_create()
 * @resp:   result of nhca_channel_create()
 * @ch:     the channel
 * @cq:     send CQ [0] and receive CQ [1]
 * @comp:   number of completion events of both CQs
 * @ids:    rCxts that the channel has acquired
 * @posted: work requests posted, modulo 2^32
 * @fatal:  number of events IB_EVENT_QP_FATAL
 * @access: number of events IB_EVENT_QP_ACCESS_ERR
 */
struct chan {
	struct list_head list;
	struct pair_end *end;
	struct chan *peer;
	struct ib_qp ibqp;
	struct nhca_who who;
	struct ib_qp_cap cap;
	struct nhca_create_channel_resp resp;
	struct nhca_channel *ch;
	struct nhca_cq cq[2];
	u32 comp;
	u64 ids[CHAN_IDS];
	u32 posted;
	u32 fatal;
	u32 access;
};

/**
 * struct pair_end - one host
 * @pair:   the pair to which the host belongs
 * @addr:   IPv4 address of the host, host order
 * @dev:    device of the host
 * @netdev: netdev of @dev
 * @pd:     protection domain of @dev
 * @page:   first page of @mem
 * @bytes:  first byte of @mem
 * @job:    the job of @mem
 * @mem:    job memory of PAIR_BYTES
 * @chan:   first channel of the host
 */
struct pair_end {
	struct pair *pair;
	u32 addr;
	struct nhca_dev *dev;
	struct net_device *netdev;
	struct ib_pd *pd;
	struct page *page;
	u8 *bytes;
	struct nhca_job *job;
	struct nhca_job_mem *mem;
	struct chan *chan;
};

/**
 * struct pair_packet - a packet, or a batch of packets of a transfer, that a channel has sent
 * @list:    link in pair.wire
 * @hdr:     headers of the first packet
 * @payload: bytes of payload in each packet
 * @count:   number of packets
 * @saddr:   IPv4 source address, host order
 * @daddr:   IPv4 destination address, host order
 * @copy:    the packet must have a copy of the payload (nhca_tx.copy)
 * @zcopy:   zero-copy reference of the payload, or NULL
 * @charge:  skb that is charged to the flow, or NULL
 * @bytes:   payload of all packets
 */
struct pair_packet {
	struct list_head list;
	struct nhca_hdr hdr;
	u32 payload;
	u32 count;
	u32 saddr;
	u32 daddr;
	bool copy;
	struct nhca_zcopy *zcopy;
	struct sk_buff *charge;
	u8 bytes[];
};

/**
 * struct pair - two or three hosts, and the network between them
 * @nn:     the namespace of all hosts
 * @end:    the hosts; end[2] exists only after pair_add()
 * @chans:  all channels
 * @wire:   packets that were sent, in the order of sending
 * @sent:   number of packets that were sent; each packet of a batch counts
 * @batch:  maximum number of packets in a batch; 0: no batches
 * @zcopy:  true: a packet has a zero-copy reference until it is freed, unless its payload must be
 *          copied or has at most NHCA_COPY_BREAK bytes
 * @charge: true: packets are charged to the flow of the channel until they are freed
 * @xmit_err: error that nhca_xmit() returns without sending; 0: it sends. Batches ignore @xmit_err
 * @fail_at: number of the call of nhca_xmit() that fails with -ENOMEM; 1: the next call; 0: no call
 * @fail_ring: number of the ring that cannot be allocated; 1: the next ring; 0: no ring fails
 * @flip:   pair_rx() flips a bit of the byte at this offset, counted from the end of the UDP
 *          header; -1: no bit is flipped
 */
struct pair {
	struct nhca_net *nn;
	struct pair_end end[3];
	struct list_head chans;
	struct list_head wire;
	u32 sent;
	u32 batch;
	bool zcopy;
	bool charge;
	int xmit_err;
	u32 fail_at;
	u32 fail_ring;
	int flip;
};

/**
 * pair_init - kunit_suite.init: create two devices with a channel each
 * pair_exit - kunit_suite.exit: destroy all channels, drop all packets and free the devices
 * @test: test->priv is the struct pair
 * Return: 0. If there is no memory, an assertion fails.
 */
int pair_init(struct kunit *test);
void pair_exit(struct kunit *test);

/**
 * pair_add - create a third device with a channel, whose peer is the channel of end 0
 * @test: the test
 */
void pair_add(struct kunit *test);

/**
 * chan_new - allocate a struct chan and its CQs; chan_create() creates the channel itself
 * @test: the test
 * @end:  host of the channel
 * @qpn:  QPN of the channel
 * @cqes: entries of each CQ
 * Return: the channel, for chan_create(); pair_exit() frees it.
 */
struct chan *chan_new(struct kunit *test, struct pair_end *end, u32 qpn, u32 cqes);

/**
 * chan_create - nhca_channel_create() for a channel of chan_new()
 * @c:   the channel; its @cap has the requested sizes
 * @cmd: the command
 * Return: 0, or the error of nhca_channel_create().
 */
int chan_create(struct chan *c, const struct nhca_create_channel_cmd *cmd);

/**
 * chan_make - create a channel with 64 work requests and 16 frames, and acquire CHAN_IDS rCxts
 * @test: the test
 * @end:  host of the channel
 * @qpn:  QPN of the channel
 * @job:  job of the channel
 * Return: the channel.
 */
struct chan *chan_make(struct kunit *test, struct pair_end *end, u32 qpn, u32 job);

/**
 * chan_destroy - destroy a channel, as a program does
 * @c: the channel; nothing happens if it does not exist
 */
void chan_destroy(struct chan *c);

/**
 * chan_wqe - fill in the next slot of the send FIFO; chan_push() posts it
 * @c:      the channel
 * @opcode: NHCA_WR_CH_*
 *
 * The work request is signaled, names the peer and the peer's first rCxt, and has the wr_id of
 * chan_wr_id() and the cookie of chan_cookie(). All work requests but NHCA_WR_CH_PACKET also name
 * the first rCxt of this channel, and have tid 1. The segment of a transfer is PAIR_SEG, and the
 * transfer begins at the first byte of the memory of source and destination. The target of
 * NHCA_WR_CH_MOVE is the first rCxt of end 1.
 * Return: the slot.
 */
struct nhca_send_wqe *chan_wqe(struct chan *c, u8 opcode);

/* wr_id and cookie of work request @i, counted from 0, of chan_wqe() */
static inline u64 chan_wr_id(u32 i)
{
	return 0x1d00000000ull + i;
}

static inline u64 chan_cookie(u32 i)
{
	return 0xc00c1e0000000000ull + i;
}

/**
 * chan_push - post the work request in the next slot, without a doorbell
 * chan_bell - post the work request in the next slot, and ring the doorbell
 * @c: the channel
 */
void chan_push(struct chan *c);
void chan_bell(struct chan *c);

/**
 * chan_transfer - post a write, read or third-party transfer of @total bytes, and ring the doorbell
 * @c:      the channel
 * @opcode: NHCA_WR_CH_WRITE, NHCA_WR_CH_READ or NHCA_WR_CH_MOVE
 * @tid:    tid of the transfer
 * @total:  bytes
 * @notify: NHCA_NOTIFY_*
 */
void chan_transfer(struct chan *c, u8 opcode, u32 tid, u32 total, u8 notify);

/**
 * chan_poll - poll a completion
 * @c:    the channel
 * @recv: true: from the receive CQ; false: from the send CQ
 * @cqe:  filled in
 * Return: false if the CQ has no completion.
 */
bool chan_poll(struct chan *c, bool recv, struct nhca_cqe *cqe);

/**
 * chan_expect - poll a completion, and check opcode and status
 * @test:   fails if there is no completion, or if its opcode, status or QPN differs
 * @c:      the channel
 * @opcode: enum nhca_channel_wc, which selects the CQ
 * @status: enum ib_wc_status
 * Return: the completion.
 */
struct nhca_cqe chan_expect(struct kunit *test, struct chan *c, u8 opcode, u8 status);

/**
 * chan_idle - check that a channel has no completions
 * @c: the channel
 * Return: true if both CQs are empty.
 */
bool chan_idle(struct chan *c);

/**
 * chan_count - read a counter of a channel
 * pair_dev_count - read a counter of a device
 * @c:     the channel, for chan_count()
 * @end:   the host, for pair_dev_count()
 * @which: the counter
 * Return: the value of the counter.
 */
u64 chan_count(struct chan *c, enum nhca_channel_counter which);
u64 pair_dev_count(struct pair_end *end, enum nhca_counter which);

/**
 * chan_rcxt - get the state of an rCxt
 * @c: the channel
 * @i: index in chan.ids
 * Return: the rCxt, which the channel owns.
 */
struct nhca_rcxt *chan_rcxt(struct chan *c, u32 i);

/**
 * pair_rx - let the destination receive a packet, which stays on the wire
 * @test: the test
 * @pk:   the packet; the test may have changed it
 *
 * A test may call this function also while the driver receives a packet, to act as another CPU.
 */
void pair_rx(struct kunit *test, struct pair_packet *pk);

/**
 * pair_drop - remove a packet from the wire, and free it
 * @pk: the packet
 */
void pair_drop(struct pair_packet *pk);

/**
 * pair_first - get the oldest packet on the wire
 * @test: fails if the wire is empty, or if the opcode of the packet differs
 * @opcode: enum nhca_rx_opcode
 * Return: the packet.
 */
struct pair_packet *pair_first(struct kunit *test, u8 opcode);

/**
 * pair_count - count the packets on the wire
 * @test:   the test
 * @opcode: enum nhca_rx_opcode; 0: packets of any opcode count
 * Return: the number of packets; each packet of a batch counts.
 */
u32 pair_count(struct kunit *test, u8 opcode);

/**
 * pair_deliver - deliver the oldest packet on the wire
 * pair_settle - deliver packets until the wire is empty
 * @test: the test
 */
void pair_deliver(struct kunit *test);
void pair_settle(struct kunit *test);

/**
 * pair_lossy - deliver one packet as a network does that reorders, loses and duplicates packets
 * @test: the test
 * @rnd:  random numbers
 *
 * A quarter of the packets move to the end of the wire. Of the other packets, one of eight is not
 * delivered, and one of eight stays on the wire, so a later call may deliver it again.
 * Return: false if the wire is empty.
 */
bool pair_lossy(struct kunit *test, struct rnd_state *rnd);

/**
 * pair_fill - write a pattern to memory
 * @p:    first byte
 * @len:  bytes
 * @seed: selects the pattern
 */
void pair_fill(u8 *p, u32 len, u32 seed);

/**
 * pair_is - compare memory with a pattern of pair_fill()
 * @p:    first byte
 * @len:  bytes
 * @seed: selects the pattern
 * Return: true if the memory has the pattern.
 */
bool pair_is(const u8 *p, u32 len, u32 seed);

/**
 * pair_clear - check that bytes outside a range of the memory of an end are 0
 * @end:  the host
 * @from: begin of the range, as an offset in @end->bytes
 * @to:   end of the range, as an offset in @end->bytes
 * Return: true if all bytes before @from and from @to on are 0, also PAIR_GUARD bytes before and
 * after the memory.
 */
bool pair_clear(const struct pair_end *end, u32 from, u32 to);

#endif /* NHCA_TEST_CHANNEL_PAIR_H */
