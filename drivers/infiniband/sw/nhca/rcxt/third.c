// SPDX-License-Identifier: GPL-2.0
/*
 * Third-party transfers: the targets that a source allows, and what manager, source and target
 * check in addition to the tid rules.  reply.c executes requests, and send.c sends the payload.
 */
#include <linux/siphash.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "third.h"

static_assert(NHCA_MOVE_HEADER == NHCA_RX_GID_LEN);

/* ---- the manager ---- */

u64 nhca_third_digest(const struct nhca_channel *ch, const struct nhca_rxeth *x, bool mirrored)
{
	struct {
		u64 pvo, reply_pvo;
		u8 gid[NHCA_RX_GID_LEN];
		u32 channel, key;
		struct nhca_rcxt_id rcxt, source;
		/* the following differ between the requests of a transfer, except @cookie */
		u64 cookie;
		u32 offset, part, notify, zero;
	} __aligned(SIPHASH_ALIGNMENT) all = {
		.pvo = x->pvo,
		.reply_pvo = x->reply_pvo,
		.channel = x->target_channel,
		.key = x->target_key,
		.rcxt = x->target_rcxt,
		.source = mirrored ? x->src_rcxt : x->rcxt,
		.cookie = x->cookie,
		.offset = x->offset,
		.part = x->part,
		.notify = x->notify,
	};
	const siphash_key_t *secret = &ch->rd->tokens.secret;
	u64 same;

	static_assert(sizeof(all) == 3 * sizeof(u64) + NHCA_RX_GID_LEN + 10 * sizeof(u32));
	memcpy(all.gid, x->gid, sizeof(all.gid));
	same = siphash(&all, offsetof(typeof(all), cookie), secret);
	return same << 32 | lower_32_bits(siphash(&all, sizeof(all), secret));
}

int nhca_third_target(const struct nhca_channel *ch, const struct nhca_av *source,
		      struct nhca_rxeth *x)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	const struct nhca_rcxt_target *target = (const void *)(wr + 1);
	struct nhca_av *av = xa_load(&ch->dev->ah_ids, target->ah_id);

	if (!av || av->pd != ch->key_user.pd || av->mcast || target->reserved ||
	    target->qpn & ~NHCA_QPN_MASK)
		return -EINVAL;
	if (av->v4 != source->v4)
		return -EAFNOSUPPORT;
	memcpy(x->gid, &av->daddr, sizeof(x->gid));
	x->target_channel = target->qpn;
	x->target_key = target->key;
	x->target_rcxt = nhca_rcxt_id_of(target->rcxt);
	x->pvo = wr->remote_pvo;
	x->reply_pvo = wr->local_pvo;
	x->offset = wr->offset;
	x->part = wr->length;
	x->notify = NHCA_RX_NOTIFY_THIRD | (wr->notify & NHCA_NOTIFY_TARGET);
	return 0;
}

/* ---- the source ---- */

static u32 target_find(const struct nhca_channel *ch, const struct in6_addr *daddr)
	__must_hold(&ch->lock)
{
	u32 i;

	lockdep_assert_held(&ch->lock);
	for (i = 0; i < ch->targets; i++)
		if (ipv6_addr_equal(&ch->target[i]->daddr, daddr))
			break;
	return i;
}

struct nhca_av *nhca_third_allowed(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	struct nhca_av *av = NULL;
	struct in6_addr daddr;
	u32 i;

	memcpy(&daddr, rx->hdr.rx.gid, sizeof(daddr));
	if (ipv6_addr_v4mapped(&daddr) != rx->ip.v4)
		return NULL;
	spin_lock_bh(&ch->lock);
	i = target_find(ch, &daddr);
	if (i < ch->targets) {
		av = ch->target[i];
		refcount_inc(&av->ref);
	}
	spin_unlock_bh(&ch->lock);
	return av;
}

/* Return: true if the program still allows the target of a transfer whose request was accepted. */
static bool third_still_allowed(struct nhca_channel *ch, const struct nhca_sending *s)
{
	bool allowed;

	spin_lock_bh(&ch->lock);
	allowed = target_find(ch, &s->av->daddr) < ch->targets;
	spin_unlock_bh(&ch->lock);
	return allowed;
}

void nhca_third_tell(struct nhca_channel *ch, const struct nhca_sending *s,
		     enum nhca_rx_status status)
{
	struct nhca_hdr h;
	struct nhca_tx tx;

	nhca_send_hdr(ch, &h, NHCA_RX_STATUS, s->rx.src_channel);
	h.rx = (struct nhca_rxeth) {
		.notify = s->rx.notify & NHCA_RX_NOTIFY_MASK,
		.status = status,
		.src_channel = ch->qpn,
		.key = s->rx.src_key,
		.job = s->rx.job,
		.rcxt = s->rx.src_rcxt,
		.tid = s->rx.tid,
		.total = s->rx.total,
		.segment = s->rx.segment,
		.src_key = lower_32_bits(ch->key),
		.src_rcxt = s->local,
		.cookie = s->rx.cookie,
	};
	nhca_channel_tx(ch, &tx, s->manager, &h, NULL);
	if (!nhca_xmit(&tx))
		nhca_channel_count(ch, NHCA_CH_SENT_PACKETS, 1);
}

bool nhca_third_begin(struct nhca_channel *ch, const struct nhca_sending *s)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &s->local);
	bool allowed = third_still_allowed(ch, s);
	bool sends, revoked = false;
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	sends = !nhca_rcxt_find(&ch->rd->pool, ch->qpn, &s->local, &rc) &&
		nhca_rcxt_sends(rc, s->rx.tid);
	if (sends && !allowed) {
		nhca_rcxt_end(&ch->rd->pool, rc, NHCA_RCXT_IDLE);
		revoked = true;
	} else if (sends) {
		rc->making = true;
	}
	spin_unlock_bh(lock);
	if (revoked) {
		nhca_recv_drop(ch, &s->rx, NHCA_CH_DROP_TARGET);
		nhca_third_tell(ch, s, NHCA_RX_ST_FORBIDDEN);
	}
	return sends && allowed;
}

void nhca_third_end(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, id);
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	/* the release of an rCxt waits for the engine, so the channel still owns it */
	if (!nhca_rcxt_find(&ch->rd->pool, ch->qpn, id, &rc))
		rc->making = false;
	spin_unlock_bh(lock);
}

/* Look up an address handle that a program names.  Return: its AV with a reference, or NULL. */
static struct nhca_av *target_av(struct nhca_channel *ch, u32 ah_id)
{
	struct nhca_av *av;

	rcu_read_lock();
	av = xa_load(&ch->dev->ah_ids, ah_id);
	if (av && (av->pd != ch->key_user.pd || av->mcast || !refcount_inc_not_zero(&av->ref)))
		av = NULL;
	rcu_read_unlock();
	return av;
}

/*
 * Allow the target @av, in place of an entry with the same address.  The function takes over the
 * reference of @av, also after an error.  Return: 0; -ENOSPC: the list is full.
 */
static int target_allow(struct nhca_channel *ch, struct nhca_av *av)
{
	struct nhca_av *old = NULL;
	int err = 0;
	u32 i;

	spin_lock_bh(&ch->lock);
	i = target_find(ch, &av->daddr);
	if (i < ch->targets)
		swap(ch->target[i], old);
	else if (i == NHCA_MAX_TARGETS)
		err = -ENOSPC;
	else
		ch->targets++;
	if (!err)
		ch->target[i] = av;
	spin_unlock_bh(&ch->lock);
	nhca_av_put(err ? av : old);
	return err;
}

static int target_revoke(struct nhca_channel *ch, struct nhca_av *av)
{
	struct nhca_av *old = NULL;
	u32 i;

	spin_lock_bh(&ch->lock);
	i = target_find(ch, &av->daddr);
	if (i < ch->targets) {
		old = ch->target[i];
		ch->target[i] = ch->target[--ch->targets];
		ch->target[ch->targets] = NULL;
	}
	spin_unlock_bh(&ch->lock);
	nhca_av_put(av);
	if (!old)
		return -ENOENT;
	nhca_av_put(old);
	/*
	 * a turn of the channel may have found the target allowed: wait until this turn has sent
	 * its batch
	 */
	nhca_channel_grace(ch);
	return 0;
}

int nhca_channel_target(struct nhca_channel *ch, const struct nhca_channel_target *cmd)
{
	struct nhca_av *av;

	if (cmd->op != NHCA_CHANNEL_TARGET_ALLOW && cmd->op != NHCA_CHANNEL_TARGET_REVOKE)
		return -EINVAL;
	av = target_av(ch, cmd->ah_id);
	if (!av)
		return -EINVAL;
	return cmd->op == NHCA_CHANNEL_TARGET_ALLOW ? target_allow(ch, av) : target_revoke(ch, av);
}

/* ---- the target ---- */

bool nhca_third_manager_ok(const struct nhca_channel *ch, const struct nhca_rx *rx)
{
	bool loopback;
	struct in6_addr a;

	memcpy(&a, rx->hdr.rx.gid, sizeof(a));
	loopback = rx->ip.v4 ? ipv4_is_loopback(a.s6_addr32[3]) : ipv6_addr_loopback(&a);
	return ipv6_addr_v4mapped(&a) == rx->ip.v4 && !loopback &&
	       nhca_addr_unicast(ch->dev, ch->dev->netdev->ifindex, &a);
}
