// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to packets: notices, statuses, challenges, and the payload of read and third-party
 * requests.  Third-party payload goes to the target that the request names, and its notice to the
 * manager that the packet names (recv_third()).  Every other answer goes to the packet's source
 * address, because a channel is not connected and has many peers.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "../memory/memcg.h"
#include "third.h"

/*
 * Look up the address vector for answers to the sender of a packet in the path cache.
 * Return: the address vector, with a reference for the caller, or NULL.
 */
static struct nhca_av *reply_known_path(struct nhca_channel *ch, const struct nhca_rx *rx)
	__must_hold(&ch->lock)
{
	struct nhca_av *av;
	u32 i;

	lockdep_assert_held(&ch->lock);
	for (i = 0; i < NHCA_CH_PATHS; i++) {
		av = ch->paths[i];
		if (av && nhca_av_is_back(av, ch->dev, rx)) {
			refcount_inc(&av->ref);
			return av;
		}
	}
	return NULL;
}

/*
 * Create an address vector for answers to the sender of a packet, and store it in the path cache in
 * place of the oldest entry.
 * Return: the address vector, with a reference for the caller; NULL: no memory.
 */
static struct nhca_av *reply_new_path(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	struct nhca_av *av, *old;

	av = nhca_av_back(ch->dev, rx);
	if (!av)
		return NULL;
	refcount_inc(&av->ref);
	spin_lock(&ch->lock);
	old = ch->paths[ch->next_path];
	ch->paths[ch->next_path] = av;
	ch->next_path = (ch->next_path + 1) % NHCA_CH_PATHS;
	spin_unlock(&ch->lock);
	nhca_av_put(old);
	return av;
}

/*
 * Find or create the address vector for packets that later turns of the channel send: payload of a
 * read, or a status for a manager.
 * Return: the address vector, with a reference for the caller; NULL: no memory.
 */
static struct nhca_av *reply_path(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	struct nhca_av *av;

	spin_lock(&ch->lock);
	av = reply_known_path(ch, rx);
	spin_unlock(&ch->lock);
	return av ?: reply_new_path(ch, rx);
}

/*
 * Find or create the address vector for one packet.  In a full path cache, only each
 * NHCA_CH_PATH_MISSES-th miss replaces an entry.  For the other misses, and without memory for an
 * entry, the function fills in @once.  The route for @once is looked up when the packet is sent.
 * Return: an address vector with a reference for the caller, or @once.
 */
static struct nhca_av *reply_path_once(struct nhca_channel *ch, const struct nhca_rx *rx,
				       struct nhca_av *once)
{
	struct nhca_av *av;
	bool keep;

	spin_lock(&ch->lock);
	av = reply_known_path(ch, rx);
	keep = !av && (!ch->paths[ch->next_path] || !(++ch->path_misses % NHCA_CH_PATH_MISSES));
	spin_unlock(&ch->lock);
	if (keep)
		av = reply_new_path(ch, rx);
	if (av)
		return av;
	nhca_av_back_once(once, ch->dev, rx);
	return once;
}

/* Fill in the RXETH @to of an answer to @x: source and destination are exchanged. */
static void reply_rxeth(const struct nhca_channel *ch, const struct nhca_rxeth *x,
			struct nhca_rxeth *to)
{
	*to = (struct nhca_rxeth) {
		.notify = x->notify,
		.src_channel = ch->qpn,
		.key = x->src_key,
		.job = x->job,
		.rcxt = x->src_rcxt,
		.tid = x->tid,
		.total = x->total,
		.segment = x->segment,
		.src_key = lower_32_bits(ch->key),
		.src_rcxt = x->rcxt,
		.cookie = x->cookie,
	};
}

/* Send one packet to the sender of @rx.  A packet that cannot be sent is treated as lost. */
static void reply_send(struct nhca_channel *ch, const struct nhca_rx *rx, struct nhca_hdr *h,
		       struct nhca_iter *it)
{
	struct nhca_tx tx;
	struct nhca_av once;

	nhca_channel_tx(ch, &tx, reply_path_once(ch, rx, &once), h, it);
	if (!nhca_xmit(&tx)) {
		nhca_channel_count(ch, NHCA_CH_SENT_PACKETS, 1);
		nhca_channel_count(ch, NHCA_CH_SENT_BYTES, h->rx.length);
	}
	if (tx.av != &once)
		nhca_av_put(tx.av);
}

/* Return: true if the request has a valid token for its source address. */
static bool reply_validated(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	return nhca_token_good(&ch->rd->tokens, &rx->ip.saddr, &rx->ip.daddr,
			       ktime_get_boottime_seconds(), rx->hdr.rx.token);
}

/*
 * Fill in the headers of a packet that repeats the fields of @x: a challenge repeats a request, and
 * the next request repeats the challenge.
 */
static void reply_mirror(struct nhca_channel *ch, const struct nhca_rxeth *x, u8 opcode,
			 struct nhca_hdr *h)
{
	nhca_send_hdr(ch, h, opcode, x->src_channel);
	reply_rxeth(ch, x, &h->rx);
	h->rx.offset = x->offset;
	h->rx.pvo = x->pvo;
	h->rx.reply_pvo = x->reply_pvo;
	memcpy(h->rx.gid, x->gid, sizeof(h->rx.gid));
	h->rx.target_channel = x->target_channel;
	h->rx.target_key = x->target_key;
	h->rx.target_rcxt = x->target_rcxt;
	h->rx.part = x->part;
	h->rx.number = x->number;
}

/*
 * Count a request without a valid token.  If the request does not answer a challenge, send a
 * challenge, which is as long as the request.
 */
static void reply_unvalidated(struct nhca_channel *ch, const struct nhca_rx *rx, u8 opcode)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_hdr h;

	nhca_recv_drop(ch, x, NHCA_CH_CHALLENGED);
	/*
	 * With NAT, for example, the token of a challenge may never be valid for the next request.
	 * Without this check, the two hosts would exchange requests and challenges forever.
	 */
	if (x->again)
		return;
	reply_mirror(ch, x, opcode, &h);
	h.rx.token = nhca_token_make(&ch->rd->tokens, &rx->ip.saddr, &rx->ip.daddr,
				     ktime_get_boottime_seconds());
	reply_send(ch, rx, &h, NULL);
}

/* @opcode: opcode of a challenge.  Return: opcode of the request that the challenge answers. */
static u8 reply_challenged(u8 opcode)
{
	switch (opcode) {
	case NHCA_RX_READ_CHALLENGE:
		return NHCA_RX_READ_REQUEST;
	case NHCA_RX_THIRD_CHALLENGE:
		return NHCA_RX_THIRD_REQUEST;
	case NHCA_RX_FRAMES_CHALLENGE:
		return NHCA_RX_FRAMES_REQUEST;
	default:
		return NHCA_RX_PROBE;
	}
}

void nhca_reply_challenge(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	u8 opcode = reply_challenged(rx->hdr.opcode);
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;
	struct nhca_hdr h;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup && opcode == NHCA_RX_READ_REQUEST)
		verdict = nhca_rcxt_challenge(rc, x);
	else if (!lookup && opcode == NHCA_RX_FRAMES_REQUEST)
		verdict = nhca_rcxt_frames_challenge(rc, x);
	else if (!lookup && opcode == NHCA_RX_THIRD_REQUEST)
		verdict = nhca_rcxt_third_challenge(rc, x, nhca_third_digest(ch, x, true));
	spin_unlock(lock);
	if (nhca_recv_refused(ch, x, lookup, verdict))
		return;
	nhca_token_learn(&ch->rd->tokens, &rx->ip.saddr, &rx->ip.daddr, x->token);
	reply_mirror(ch, x, opcode, &h);
	h.rx.token = x->token;
	h.rx.again = true;
	reply_send(ch, rx, &h, NULL);
}

void nhca_reply_notice(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_hdr h;

	nhca_send_hdr(ch, &h, NHCA_RX_NOTICE, x->src_channel);
	reply_rxeth(ch, x, &h.rx);
	reply_send(ch, rx, &h, NULL);
}

void nhca_reply_probe(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	/* the segment is for packets without an extended header */
	u32 room = min(NHCA_RX_MAX_PACKET, nhca_channel_segment(ch->dev) - NHCA_RX_STATUS_LEN);
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;
	struct nhca_iter it;
	struct nhca_hdr h;
	u32 len = 0;
	u8 *map;

	map = kmalloc(room, GFP_ATOMIC | __GFP_NOWARN);
	if (!map) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_NO_MEMORY);
		return;
	}
	nhca_send_hdr(ch, &h, NHCA_RX_STATUS, x->src_channel);
	reply_rxeth(ch, x, &h.rx);
	h.rx.offset = x->offset;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup)
		h.rx.status = nhca_rcxt_status(rc, x, map, room, &len, &h.rx.have);
	spin_unlock(lock);

	if (nhca_recv_refused(ch, x, lookup, NHCA_RCXT_ACCEPT)) {
		/* dropped */
	} else if (len && !reply_validated(ch, rx)) {
		reply_unvalidated(ch, rx, NHCA_RX_PROBE_CHALLENGE);
	} else {
		h.rx.length = len;
		nhca_iter_bytes(&it, map);
		reply_send(ch, rx, &h, len ? &it : NULL);
	}
	kfree(map);
}

void nhca_reply_fence(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rx_status status = NHCA_RX_ST_NONE;
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;
	struct nhca_hdr h;
	u32 have = 0;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup)
		verdict = nhca_rcxt_fence(&ch->rd->pool, rc, x, &status, &have);
	spin_unlock(lock);
	if (nhca_recv_refused(ch, x, lookup, verdict))
		return;

	if (status == NHCA_RX_ST_FENCED)
		nhca_channel_count(ch, NHCA_CH_FENCED, 1);
	nhca_send_hdr(ch, &h, NHCA_RX_STATUS, x->src_channel);
	reply_rxeth(ch, x, &h.rx);
	h.rx.status = status;
	h.rx.have = have;
	reply_send(ch, rx, &h, NULL);
}

/*
 * Allocate the transfer that answers a read request.
 * @half: the payload goes into frames of the reader, which requests a part of the transfer
 * Return: the transfer, not on a list yet; NULL: no memory.
 */
static struct nhca_sending *reply_new(struct nhca_channel *ch, const struct nhca_rx *rx, bool half)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_sending *s;

	s = nhca_memcg_kmalloc(ch->memcg, sizeof(*s), GFP_ATOMIC | __GFP_NOWARN);
	if (!s)
		return NULL;
	*s = (struct nhca_sending) {
		.answer = true,
		.half = half,
		.av = reply_path(ch, rx),
		.local = x->rcxt,
		.from = x->pvo,
		.to = x->reply_pvo,
		.next = x->offset / x->segment,
		.left = nhca_rcxt_packets(half ? x->part : x->total, x->segment),
		.qpn = x->src_channel,
	};
	if (!s->av) {
		kfree(s);
		return NULL;
	}
	s->sport = nhca_udp_sport(s->av->flow_label, ch->qpn, x->src_channel);
	reply_rxeth(ch, x, &s->rx);
	return s;
}

/*
 * Apply the tid rules to a read request, or to a half-receive read request (@half).
 * @begin: true: begin the transfer; false: only check whether the rules accept the request
 * Return: false if the request was dropped.
 */
static bool reply_admit(struct nhca_channel *ch, const struct nhca_rxeth *x, bool half, bool begin)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup && half)
		verdict = begin ? nhca_rcxt_frames_request(rc, x) : nhca_rcxt_frames_may(rc, x);
	else if (!lookup)
		verdict = begin ? nhca_rcxt_request(rc, x) : nhca_rcxt_may_request(rc, x);
	spin_unlock(lock);
	return !nhca_recv_refused(ch, x, lookup, verdict);
}

void nhca_reply_read(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	bool half = rx->hdr.opcode == NHCA_RX_FRAMES_REQUEST;
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_sending *s;

	if (x->segment > nhca_channel_segment(ch->dev)) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_SEGMENT);
		return;
	}
	if (!reply_validated(ch, rx)) {
		/* only a request that the rCxt would accept gets a challenge */
		if (reply_admit(ch, x, half, false))
			reply_unvalidated(ch, rx, half ? NHCA_RX_FRAMES_CHALLENGE :
							 NHCA_RX_READ_CHALLENGE);
		return;
	}
	s = reply_new(ch, rx, half);
	if (!s) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_NO_MEMORY);
		return;
	}
	if (!reply_admit(ch, x, half, true)) {
		nhca_av_put(s->av);
		kfree(s);
		return;
	}
	spin_lock(&ch->lock);
	list_add_tail(&s->list, &ch->requested);
	spin_unlock(&ch->lock);
	/* the bottom half runs the send engine when the receive engine has returned */
	nhca_drr_ready(ch, true);
}

/* ---- third-party requests ---- */

/*
 * Allocate the transfer of a third-party request.
 * @av: address vector of the target; the transfer takes over the reference, also after an error
 * Return: the transfer, not on a list yet; NULL: no memory.
 */
static struct nhca_sending *third_new(struct nhca_channel *ch, const struct nhca_rx *rx,
				      struct nhca_av *av)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_av *manager = reply_path(ch, rx);
	struct nhca_sending *s = NULL;

	if (manager)
		s = nhca_memcg_kmalloc(ch->memcg, sizeof(*s), GFP_ATOMIC | __GFP_NOWARN);
	if (!s) {
		nhca_av_put(manager);
		nhca_av_put(av);
		return NULL;
	}
	*s = (struct nhca_sending) {
		.answer = true,
		.av = av,
		.manager = manager,
		.sport = nhca_udp_sport(av->flow_label, ch->qpn, x->target_channel),
		.local = x->rcxt,
		.from = x->pvo,
		.to = x->reply_pvo,
		.next = x->offset / x->segment,
		.left = nhca_rcxt_packets(x->part, x->segment),
		.qpn = x->target_channel,
		.rx = {
			.notify = x->notify,
			.src_channel = x->src_channel,
			.key = x->target_key,
			.job = x->job,
			.rcxt = x->target_rcxt,
			.tid = x->tid,
			.total = x->total,
			.segment = x->segment,
			.src_key = x->src_key,
			.src_rcxt = x->src_rcxt,
			.cookie = x->cookie,
		},
	};
	memcpy(s->rx.gid, &rx->ip.saddr, sizeof(s->rx.gid));
	return s;
}

/* Refuse a third-party request of a manager whose address is verified, and send it a status. */
static void third_refuse(struct nhca_channel *ch, const struct nhca_rx *rx,
			 enum nhca_channel_counter why, enum nhca_rx_status status)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_hdr h;

	nhca_recv_drop(ch, x, why);
	nhca_send_hdr(ch, &h, NHCA_RX_STATUS, x->src_channel);
	reply_rxeth(ch, x, &h.rx);
	h.rx.status = status;
	reply_send(ch, rx, &h, NULL);
}

/*
 * Apply the tid rules to a third-party request.
 * @begin: true: begin the transfer; false: only check whether the rules accept the request
 * Return: false if the request was dropped.
 */
static bool third_admit(struct nhca_channel *ch, const struct nhca_rxeth *x, bool begin)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup)
		verdict = begin ? nhca_rcxt_third_request(rc, x) : nhca_rcxt_third_may(rc, x);
	spin_unlock(lock);
	return !nhca_recv_refused(ch, x, lookup, verdict);
}

void nhca_reply_third(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	struct nhca_sending *s;
	struct nhca_av *av;

	/* a request that the rCxt would not accept is dropped without an answer */
	if (!third_admit(ch, x, false))
		return;
	if (!reply_validated(ch, rx)) {
		reply_unvalidated(ch, rx, NHCA_RX_THIRD_CHALLENGE);
		return;
	}
	if (x->segment + NHCA_RX_GID_LEN > nhca_channel_segment(ch->dev)) {
		third_refuse(ch, rx, NHCA_CH_DROP_SEGMENT, NHCA_RX_ST_TOO_LONG);
		return;
	}
	av = nhca_third_allowed(ch, rx);
	if (!av) {
		third_refuse(ch, rx, NHCA_CH_DROP_TARGET, NHCA_RX_ST_FORBIDDEN);
		return;
	}
	s = third_new(ch, rx, av);
	if (!s) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_NO_MEMORY);
		return;
	}
	/* another CPU may have accepted a request since the first check */
	if (!third_admit(ch, x, true)) {
		nhca_av_put(s->av);
		nhca_av_put(s->manager);
		kfree(s);
		return;
	}
	spin_lock(&ch->lock);
	list_add_tail(&s->list, &ch->requested);
	spin_unlock(&ch->lock);
	nhca_drr_ready(ch, true);
}
