// SPDX-License-Identifier: GPL-2.0
/* KUnit: two hosts with channels, and the network between them. */
#include <kunit/static_stub.h>
#include <kunit/test-bug.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "../ingress/ingress.h"
#include "../net/flow.h"
#include "../net/xmit.h"
#include "../wire/psn.h"
#include "channel_pair.h"

#define PAIR_WRS	64
#define PAIR_FRAMES	16
#define PAIR_CQES	256
#define PAIR_MTU	1500

/* ---- what the driver calls ---- */

/* Replaces nhca_ring_alloc(), because no process maps the rings. */
static int pair_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride,
			   struct nhca_ring_user *user)
{
	struct pair *p = kunit_get_current_test()->priv;
	size_t size;

	if (p->fail_ring && !--p->fail_ring)
		return -ENOMEM;
	entries = roundup_pow_of_two(entries);
	size = nhca_ring_bytes(entries, stride);
	*r = (struct nhca_ring) { .stride = stride, .mask = entries - 1 };
	r->hdr = kvzalloc(size, GFP_KERNEL);
	if (user)
		user->info = (struct nhca_ring_info) {
			.size = size,
			.entries = entries,
			.stride = stride,
		};
	return r->hdr ? 0 : -ENOMEM;
}

static u32 v4_of(const struct in6_addr *addr)
{
	return ntohl(addr->s6_addr32[3]);
}

/* Read the payload of @count packets, as nhca_xmit() does. */
static int pair_payload(struct pair *p, struct nhca_tx *tx, u32 count, struct pair_packet *pk)
{
	int err;

	nhca_live_enter();
	err = nhca_iter_read(tx->it, pk->bytes, count * tx->payload);
	if (!err && p->zcopy && !tx->copy && tx->payload > NHCA_COPY_BREAK)
		pk->zcopy = nhca_zcopy_new(tx->flow);
	nhca_live_exit();
	return err;
}

/* Put @count packets on the wire. Return: as nhca_xmit(). */
static int pair_send(struct pair *p, struct nhca_tx *tx, u32 count)
{
	struct pair_packet *pk;
	int err = 0;

	tx->hdr->info = nhca_opinfo(tx->hdr->opcode);
	tx->hdr->pad = -tx->payload & 3;
	pk = kzalloc(struct_size(pk, bytes, count * tx->payload), GFP_ATOMIC);
	if (!pk)
		return -ENOMEM;
	pk->hdr = *tx->hdr;
	pk->payload = tx->payload;
	pk->count = count;
	pk->saddr = v4_of(&tx->av->saddr);
	pk->daddr = v4_of(&tx->av->daddr);
	pk->copy = tx->copy;
	if (tx->payload)
		err = pair_payload(p, tx, count, pk);
	if (err) {
		kfree(pk);
		return err;
	}
	if (p->charge) {
		pk->charge = alloc_skb(0, GFP_ATOMIC);
		if (pk->charge)
			nhca_flow_charge(tx->flow, pk->charge, count);
	}
	list_add_tail(&pk->list, &p->wire);
	p->sent += count;
	return 0;
}

/* Replaces nhca_xmit(). */
static int pair_xmit(struct nhca_tx *tx)
{
	struct pair *p = kunit_get_current_test()->priv;

	if (p->xmit_err)
		return p->xmit_err;
	if (p->fail_at && !--p->fail_at)
		return -ENOMEM;
	return pair_send(p, tx, 1);
}

/* Replaces nhca_burst_run(): a batch is on the wire immediately. */
static u32 pair_burst_run(struct nhca_tx *tx, u32 count)
{
	struct pair *p = kunit_get_current_test()->priv;

	count = min(count, p->batch);
	return count && !pair_send(p, tx, count) ? count : 0;
}

/* Replaces nhca_addr_unicast(), which would look up @addr in the routing table. */
static bool pair_addr_unicast(const struct nhca_dev *dev, int ifindex, const struct in6_addr *addr)
{
	return ipv6_addr_v4mapped(addr) && v4_of(addr) && v4_of(addr) < 0xe0000000 &&
	       v4_of(addr) != PAIR_BROADCAST;
}

/* ---- channels ---- */

static void chan_event(struct ib_event *event, void *context)
{
	struct chan *c = container_of(event->element.qp, struct chan, ibqp);

	c->fatal += event->event == IB_EVENT_QP_FATAL;
	c->access += event->event == IB_EVENT_QP_ACCESS_ERR;
}

static void chan_completed(struct ib_cq *ibcq, void *context)
{
	struct chan *c = context;

	c->comp++;
}

struct chan *chan_new(struct kunit *test, struct pair_end *end, u32 qpn, u32 cqes)
{
	struct chan *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct pair *p = end->pair;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->end = end;
	c->who = (struct nhca_who) { .qpn = qpn, .counters = end->dev->counters };
	c->cap = (struct ib_qp_cap) { .max_send_wr = PAIR_WRS, .max_send_sge = 2 };
	c->ibqp.device = &end->dev->ibdev;
	c->ibqp.pd = end->pd;
	c->ibqp.event_handler = chan_event;
	c->ibqp.send_cq = &c->cq[false].ibcq;
	c->ibqp.recv_cq = &c->cq[true].ibcq;
	for (i = 0; i < 2; i++) {
		nhca_cq_init(&c->cq[i], true);
		c->cq[i].ibcq.device = &end->dev->ibdev;
		c->cq[i].ibcq.comp_handler = chan_completed;
		c->cq[i].ibcq.cq_context = c;
	}
	list_add_tail(&c->list, &p->chans);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&c->cq[i].ring, cqes,
						      sizeof(struct nhca_cqe), NULL), 0);
	return c;
}

int chan_create(struct chan *c, const struct nhca_create_channel_cmd *cmd)
{
	struct nhca_channel *ch;

	ch = nhca_channel_create(&c->ibqp, &c->who, &c->cap, cmd, NULL, &c->resp);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	c->ch = ch;
	c->posted = 0;
	return 0;
}

struct chan *chan_make(struct kunit *test, struct pair_end *end, u32 qpn, u32 job)
{
	const struct nhca_create_channel_cmd cmd = { .job = job, .frames = PAIR_FRAMES };
	struct chan *c = chan_new(test, end, qpn, PAIR_CQES);

	KUNIT_ASSERT_EQ(test, chan_create(c, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(c->ch, c->ids, CHAN_IDS), 0);
	return c;
}

void chan_destroy(struct chan *c)
{
	if (c->ch)
		nhca_channel_destroy(c->ch);
	c->ch = NULL;
}

static void chan_free(struct chan *c)
{
	int i;

	chan_destroy(c);
	for (i = 0; i < 2; i++) {
		nhca_cq_stop(&c->cq[i]);
		nhca_ring_free(&c->cq[i].ring);
	}
}

/* Name the target of a third-party transfer: the channel of end 1. */
static void chan_target(struct chan *c, struct nhca_rcxt_wr *wr)
{
	const struct chan *target = c->end->pair->end[1].chan;

	wr->local_pvo = target->end->mem->pvo;
	*(struct nhca_rcxt_target *)(wr + 1) = (struct nhca_rcxt_target) {
		.rcxt = target->ids[0],
		.key = lower_32_bits(target->resp.key),
		.ah_id = PAIR_AH_TARGET,
		.qpn = target->who.qpn,
	};
}

struct nhca_send_wqe *chan_wqe(struct chan *c, u8 opcode)
{
	struct nhca_send_wqe *wqe = nhca_ring_slot(&c->ch->sq, c->posted);

	memset(wqe, 0, c->ch->sq.stride);
	wqe->wr_id = chan_wr_id(c->posted);
	wqe->opcode = opcode;
	wqe->flags = NHCA_SEND_SIGNALED;
	wqe->chan.ah_id = PAIR_AH;
	wqe->chan.cookie = chan_cookie(c->posted);
	if (c->peer) {
		wqe->chan.remote_qpn = c->peer->who.qpn;
		wqe->chan.remote_key = c->peer->resp.key;
		wqe->chan.remote_rcxt = c->peer->ids[0];
	}
	if (opcode == NHCA_WR_CH_PACKET)
		return wqe;
	wqe->chan.local_rcxt = c->ids[0];
	wqe->rcxt[0].tid = 1;
	if (opcode == NHCA_WR_CH_CANCEL || opcode == NHCA_WR_CH_FENCE)
		return wqe;
	wqe->rcxt[0].segment = PAIR_SEG;
	wqe->rcxt[0].local_pvo = c->end->mem->pvo;
	wqe->rcxt[0].remote_pvo = c->peer->end->mem->pvo;
	if (opcode == NHCA_WR_CH_MOVE)
		chan_target(c, wqe->rcxt);
	return wqe;
}

void chan_push(struct chan *c)
{
	c->posted++;
	/* pairs with nhca_ring_produced() */
	smp_store_release(&c->ch->sq.hdr->prod, c->posted);
}

void chan_bell(struct chan *c)
{
	chan_push(c);
	nhca_channel_doorbell(c->ch);
}

void chan_transfer(struct chan *c, u8 opcode, u32 tid, u32 total, u8 notify)
{
	struct nhca_rcxt_wr *wr = chan_wqe(c, opcode)->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->length = total;
	wr->notify = notify;
	chan_bell(c);
}

bool chan_poll(struct chan *c, bool recv, struct nhca_cqe *cqe)
{
	struct nhca_ring *r = &c->cq[recv].ring;
	u32 cons = r->hdr->cons;

	if (cons == r->hdr->prod)
		return false;
	*cqe = *(struct nhca_cqe *)nhca_ring_slot(r, cons);
	nhca_ring_release(r, cons + 1);
	return true;
}

struct nhca_cqe chan_expect(struct kunit *test, struct chan *c, u8 opcode, u8 status)
{
	struct nhca_cqe cqe = {};

	KUNIT_ASSERT_TRUE_MSG(test, chan_poll(c, opcode >= NHCA_WC_CH_FRAME &&
					      opcode != NHCA_WC_CH_MOVE, &cqe),
			      "no completion %x", opcode);
	KUNIT_ASSERT_EQ(test, cqe.opcode, opcode);
	KUNIT_ASSERT_EQ(test, cqe.status, status);
	KUNIT_ASSERT_EQ(test, cqe.qp_num, c->who.qpn);
	return cqe;
}

bool chan_idle(struct chan *c)
{
	return c->cq[0].ring.hdr->cons == c->cq[0].ring.hdr->prod &&
	       c->cq[1].ring.hdr->cons == c->cq[1].ring.hdr->prod;
}

u64 chan_count(struct chan *c, enum nhca_channel_counter which)
{
	struct nhca_channel_info info;

	nhca_channel_dump(c->ch, &info);
	return info.counters[which];
}

u64 pair_dev_count(struct pair_end *end, enum nhca_counter which)
{
	u64 values[NHCA_CNT_MAX];

	nhca_counters_sum(end->dev->counters, values);
	return values[which];
}

struct nhca_rcxt *chan_rcxt(struct chan *c, u32 i)
{
	return &c->ch->rd->pool.rcxts[NHCA_RCXT_INDEX(c->ids[i])];
}

/* ---- the wire ---- */

/* Append packet @index of @pk to @skb. */
static void pair_put(struct sk_buff *skb, const struct pair_packet *pk, u32 index)
{
	struct nhca_hdr h = pk->hdr;
	const u8 *data = pk->bytes + index * pk->payload;
	u32 len = nhca_opinfo(h.opcode)->hdr_len, crc = 0;
	u8 *p;

	/* the test may have changed the opcode, so get its description again */
	h.info = nhca_opinfo(h.opcode);
	h.psn = nhca_psn_add(h.psn, index);
	h.rx.offset += index * h.rx.segment;
	h.rx.pvo += index * h.rx.segment;
	h.pad = -pk->payload & 3;
	p = skb_put(skb, len + pk->payload + h.pad + NHCA_ICRC_LEN);
	nhca_hdr_encode(&h, p);
	memcpy(p + len, data, pk->payload);
	if (!(h.caps & NHCA_CAP_NO_ICRC)) {
		crc = nhca_icrc_head(skb, p, len, len + pk->payload + h.pad + NHCA_ICRC_LEN,
				     index);
		crc = nhca_icrc_more(crc, data, pk->payload);
	}
	nhca_tail_encode(&h, crc, p + len + pk->payload);
}

/* Return: @pk as an skb that GRO has made. The data of the skb begins after the UDP header. */
static struct sk_buff *pair_skb(struct kunit *test, const struct pair_packet *pk)
{
	const u32 hdr_len = nhca_opinfo(pk->hdr.opcode)->hdr_len;
	const u32 outer = sizeof(struct iphdr) + sizeof(struct udphdr);
	u32 len = hdr_len + ALIGN(pk->payload, 4) + NHCA_ICRC_LEN, i;
	struct sk_buff *skb = alloc_skb(outer + pk->count * len, GFP_ATOMIC);
	struct iphdr *iph;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->skb_iif = PAIR_IFINDEX;
	iph = skb_put_zero(skb, outer);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*iph));
	*iph = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*iph) / 4,
		.frag_off = htons(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = htonl(pk->saddr),
		.daddr = htonl(pk->daddr),
		.tot_len = htons(outer + len),
	};
	udp_hdr(skb)->len = htons(sizeof(struct udphdr) + len);
	/*
	 * not 0: the packet has a UDP checksum, which the stack has verified before nhca gets the
	 * packet
	 */
	udp_hdr(skb)->check = 1;
	skb_pull(skb, outer);
	for (i = 0; i < pk->count; i++)
		pair_put(skb, pk, i);
	if (pk->count > 1) {
		skb_shinfo(skb)->gso_size = len;
		skb_shinfo(skb)->gso_segs = pk->count;
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	}
	return skb;
}

void pair_rx(struct kunit *test, struct pair_packet *pk)
{
	struct sk_buff *skb = pair_skb(test, pk);
	struct pair *p = test->priv;

	if (p->flip >= 0)
		skb->data[p->flip] ^= 1;
	/* work that the packet has queued for the bottom half runs when BHs are enabled again */
	local_bh_disable();
	nhca_rx_late(p->nn, skb);
	local_bh_enable();
	kfree_skb(skb);
}

void pair_drop(struct pair_packet *pk)
{
	local_bh_disable();
	list_del(&pk->list);
	nhca_zcopy_put(pk->zcopy);
	kfree_skb(pk->charge);
	kfree(pk);
	local_bh_enable();
}

struct pair_packet *pair_first(struct kunit *test, u8 opcode)
{
	struct pair *p = test->priv;
	struct pair_packet *pk;

	pk = list_first_entry_or_null(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_NOT_NULL(test, pk);
	KUNIT_ASSERT_EQ(test, pk->hdr.opcode, opcode);
	return pk;
}

u32 pair_count(struct kunit *test, u8 opcode)
{
	struct pair *p = test->priv;
	struct pair_packet *pk;
	u32 n = 0;

	list_for_each_entry(pk, &p->wire, list)
		if (!opcode || pk->hdr.opcode == opcode)
			n += pk->count;
	return n;
}

void pair_deliver(struct kunit *test)
{
	struct pair *p = test->priv;
	struct pair_packet *pk;

	pk = list_first_entry_or_null(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_NOT_NULL(test, pk);
	pair_rx(test, pk);
	pair_drop(pk);
}

void pair_settle(struct kunit *test)
{
	struct pair *p = test->priv;

	while (!list_empty(&p->wire))
		pair_deliver(test);
}

bool pair_lossy(struct kunit *test, struct rnd_state *rnd)
{
	struct pair *p = test->priv;
	struct pair_packet *pk;

	while (!list_empty(&p->wire)) {
		pk = list_first_entry(&p->wire, struct pair_packet, list);
		if (prandom_u32_state(rnd) % 4 == 0) {
			list_move_tail(&pk->list, &p->wire);
			continue;
		}
		if (prandom_u32_state(rnd) % 8)
			pair_rx(test, pk);
		if (prandom_u32_state(rnd) % 8)
			pair_drop(pk);
		return true;
	}
	return false;
}

/* ---- memory ---- */

static u8 pattern(u32 i, u32 seed)
{
	return i * 7 + (i >> 8) * 13 + seed * 31 + 1;
}

void pair_fill(u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

bool pair_is(const u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (p[i] != pattern(i, seed))
			return false;
	return true;
}

bool pair_clear(const struct pair_end *end, u32 from, u32 to)
{
	const u8 *pages = end->bytes - PAIR_GUARD;

	return !memchr_inv(pages, 0, PAIR_GUARD + from) &&
	       !memchr_inv(end->bytes + to, 0, PAIR_BYTES - to + PAIR_GUARD);
}

/* ---- hosts ---- */

static union ib_gid gid_of(u32 addr)
{
	union ib_gid gid;

	ipv6_addr_set_v4mapped(htonl(addr), (struct in6_addr *)&gid);
	return gid;
}

static void end_memory(struct kunit *test, struct pair_end *end)
{
	const u64 n = BIT(PAIR_ORDER);
	struct page **pages = kunit_kcalloc(test, n, sizeof(*pages), GFP_KERNEL);
	u32 i;

	end->page = alloc_pages(GFP_KERNEL | __GFP_ZERO, PAIR_ORDER);
	KUNIT_ASSERT_TRUE(test, pages && end->page);
	for (i = 0; i < n; i++)
		pages[i] = end->page + i;
	end->bytes = (u8 *)page_address(end->page) + PAIR_GUARD;
	end->job = nhca_job_get(&init_net, PAIR_JOB);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->job));
	end->mem = nhca_job_mem_pages(end->job, pages, n, PAIR_GUARD, PAIR_BYTES, PAIR_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->mem));
}

/* Create address handle @id, with which programs of @end name the host @to. */
static void end_path(struct kunit *test, struct pair_end *end, u32 id, u32 to)
{
	struct nhca_av *av = kzalloc(sizeof(*av), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, av);
	refcount_set(&av->ref, 1);
	av->pd = end->pd;
	av->id = id;
	av->v4 = true;
	ipv6_addr_set_v4mapped(htonl(end->addr), &av->saddr);
	ipv6_addr_set_v4mapped(htonl(to), &av->daddr);
	KUNIT_ASSERT_EQ(test, xa_err(xa_store_irq(&end->dev->ah_ids, id, av, GFP_KERNEL)), 0);
}

static void end_init(struct kunit *test, struct pair *p, u32 i)
{
	struct pair_end *end = &p->end[i];
	union ib_gid gid = gid_of(PAIR_ADDR + i);

	end->pair = p;
	end->addr = PAIR_ADDR + i;
	end->netdev = kunit_kzalloc(test, sizeof(*end->netdev), GFP_KERNEL);
	end->pd = kunit_kzalloc(test, sizeof(*end->pd), GFP_KERNEL);
	end->dev = kunit_kzalloc(test, sizeof(*end->dev), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, end->netdev && end->pd && end->dev);
	end->netdev->mtu = PAIR_MTU;
	end->netdev->ifindex = PAIR_IFINDEX;
	end->pd->device = &end->dev->ibdev;
	end->dev->netdev = end->netdev;
	end->dev->nn = p->nn;
	xa_init_flags(&end->dev->ah_ids, XA_FLAGS_LOCK_IRQ);
	nhca_users_init(&end->dev->users);
	end->dev->txq = nhca_txq_create();
	end->dev->counters = alloc_percpu(struct nhca_counters);
	KUNIT_ASSERT_TRUE(test, end->dev->txq && end->dev->counters);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_dev_init(end->dev, PAIR_RCXTS), 0);
	KUNIT_ASSERT_EQ(test, nhca_addr_add(end->dev, &gid, PAIR_IFINDEX), 0);
	end_memory(test, end);
	end_path(test, end, PAIR_AH, PAIR_ADDR + !i);
	end->chan = chan_make(test, end, PAIR_QPN + i, PAIR_JOB);
}

static void end_exit(struct pair_end *end)
{
	union ib_gid gid = gid_of(end->addr);

	if (!end->dev)
		return;
	if (!IS_ERR_OR_NULL(end->mem))
		nhca_job_mem_put(end->mem);
	if (!IS_ERR(end->job))
		nhca_job_put(end->job);
	if (end->page)
		__free_pages(end->page, PAIR_ORDER);
	nhca_av_put(xa_erase_irq(&end->dev->ah_ids, PAIR_AH));
	nhca_av_put(xa_erase_irq(&end->dev->ah_ids, PAIR_AH_TARGET));
	nhca_addr_del(end->dev, &gid, PAIR_IFINDEX);
	nhca_rcxt_dev_exit(end->dev);
	nhca_txq_put(end->dev->txq);
	free_percpu(end->dev->counters);
}

int pair_init(struct kunit *test)
{
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	INIT_LIST_HEAD(&p->chans);
	INIT_LIST_HEAD(&p->wire);
	p->flip = -1;
	p->nn = nhca_net_get(&init_net);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->nn));
	test->priv = p;
	kunit_activate_static_stub(test, nhca_ring_alloc, pair_ring_alloc);
	kunit_activate_static_stub(test, nhca_xmit, pair_xmit);
	kunit_activate_static_stub(test, nhca_burst_run, pair_burst_run);
	kunit_activate_static_stub(test, nhca_addr_unicast, pair_addr_unicast);
	for (i = 0; i < 2; i++)
		end_init(test, p, i);
	p->end[0].chan->peer = p->end[1].chan;
	p->end[1].chan->peer = p->end[0].chan;
	return 0;
}

void pair_add(struct kunit *test)
{
	struct pair *p = test->priv;

	end_init(test, p, 2);
	end_path(test, &p->end[2], PAIR_AH_TARGET, PAIR_ADDR + 1);
	p->end[2].chan->peer = p->end[0].chan;
}

void pair_exit(struct kunit *test)
{
	struct pair_packet *pk, *next;
	struct pair *p = test->priv;
	struct chan *c;
	u32 i;

	if (!p)
		return;
	/*
	 * freeing a packet lets a channel send more packets; p->xmit_err and p->batch keep these
	 * packets off the wire
	 */
	p->xmit_err = -ENETDOWN;
	p->batch = 0;
	list_for_each_entry_safe(pk, next, &p->wire, list)
		pair_drop(pk);
	list_for_each_entry(c, &p->chans, list)
		chan_free(c);
	for (i = 0; i < ARRAY_SIZE(p->end); i++)
		end_exit(&p->end[i]);
	/* wait until call_rcu() of nhca_av_put() has freed the address vectors */
	rcu_barrier();
	nhca_net_put(p->nn);
}
