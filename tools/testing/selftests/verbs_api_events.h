/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Part of verbs_api.c: completion events.
 */

/* A pair whose end b has events.  Return: its CQ, or NULL. */
static struct ibv_cq *event_pair(struct pair *p)
{
	return make_pair(p, (struct pair_opts){ .channel = true }) ? ibv_cq_ex_to_cq(p->b.cq) : NULL;
}

/* A message that b has by now, but has not polled. */
static bool message(struct pair *p, int wr_id)
{
	struct completion c;

	return post_recv(p, wr_id, 0, 64) && post_send(p, wr_id, 0, 8, IBV_SEND_SIGNALED) &&
	       wait_for(p->a.cq, wr_id, IBV_WC_SEND, &c);
}

/* b polls the two there are, and is still armed for the next one. */
static bool polled_and_armed(struct pair *p)
{
	struct completion c;

	for (int i = 0; i < 2; i++)
		if (!wait_for(p->b.cq, i, IBV_WC_RECV, &c))
			return false;
	if (!post_recv(p, 2, 0, 64) || !post_send(p, 2, 0, 8, IBV_SEND_SIGNALED))
		return false;
	REQUIRE(cq_event(p->channel, 5000), "armed, but no event");
	return wait_for(p->b.cq, 2, IBV_WC_RECV, &c);
}

static bool cq_events(struct pair *p)
{
	struct ibv_cq *cq;
	struct completion c;

	cq = event_pair(p);
	if (!cq)
		return false;
	for (int i = 0; i < 20; i++) {
		if (!post_recv(p, i, 0, 64))
			return false;
		VERB(ibv_req_notify_cq(cq, 0));
		if (!post_send(p, i, 0, 8, IBV_SEND_SIGNALED))
			return false;
		REQUIRE(cq_event(p->channel, 5000), "no event %d", i);
		if (!wait_for(p->b.cq, i, IBV_WC_RECV, &c))
			return false;
	}
	if (!post_recv(p, 99, 0, 64) || !post_send(p, 99, 0, 8, 0) ||
	    !wait_for(p->b.cq, 99, IBV_WC_RECV, &c))
		return false;
	REQUIRE(!cq_event(p->channel, 200), "an event without arming");
	return true;
}

/*
 * Programs poll until there is nothing, then arm, then sleep. What comes between the two must wake
 * them: adapters raise the event at once. Those that arm first and then poll get it once.
 */
static bool event_between(struct pair *p)
{
	struct ibv_cq *cq;

	cq = event_pair(p);
	if (!cq)
		return false;
	for (int i = 0; i < 2; i++) {
		if (!message(p, i))
			return false;
		if (!i) {
			VERB(ibv_req_notify_cq(cq, 1));
			REQUIRE(!cq_event(p->channel, 200), "an event for an unsolicited message");
		}
	}
	VERB(ibv_req_notify_cq(cq, 0));
	REQUIRE(cq_event(p->channel, 5000), "no event for completions before arming");
	VERB(ibv_req_notify_cq(cq, 0));
	REQUIRE(!cq_event(p->channel, 200), "a second event for the same completions");
	return polled_and_armed(p);
}

/*
 * Others arm first and poll then. What came with the completion that an event told of they find
 * with it: another event for that would wake them for nothing.
 */
static bool event_behind(struct pair *p)
{
	struct ibv_cq *cq;

	cq = event_pair(p);
	if (!cq)
		return false;
	VERB(ibv_req_notify_cq(cq, 0));
	for (int i = 0; i < 2; i++)
		if (!message(p, i))
			return false;
	REQUIRE(cq_event(p->channel, 5000), "no event");
	VERB(ibv_req_notify_cq(cq, 0));
	REQUIRE(!cq_event(p->channel, 200), "an event more, for what is there with the first");
	return polled_and_armed(p);
}

static int poll_some(struct pair *p, bool extended, int num)
{
	struct ibv_wc wc[16];
	struct completion c;
	int n = 0;

	if (!extended)
		return ibv_poll_cq(ibv_cq_ex_to_cq(p->b.cq), num, wc);
	while (n < num && poll_one(p->b.cq, &c))
		n++;
	return n;
}

/*
 * And some poll as much as they have room for, once, and sleep again. Of what they leave there will
 * be no other event, so that they have one now, as adapters do it.
 */
static bool event_left(struct pair *p)
{
	struct ibv_cq *cq;
	int seen, n;

	if (!dev.nhca)
		return missing("an event for what is left");
	cq = event_pair(p);
	if (!cq)
		return false;
	for (int room = 1; room <= 6; room++) {
		VERB(ibv_req_notify_cq(cq, 0));
		for (int i = 0; i < 10; i++)
			if (!message(p, i))
				return false;
		for (seen = 0; seen < 10; seen += n) {
			REQUIRE(cq_event(p->channel, 5000), "%d of 10, by %d, and no event", seen, room);
			VERB(ibv_req_notify_cq(cq, 0));
			n = poll_some(p, room % 2, room);
			REQUIRE(n > 0, "an event for nothing");
		}
		/* who takes several one by one has left some before the last: there may be one event more */
		if (room % 2)
			cq_event(p->channel, 0);
		REQUIRE(!cq_event(p->channel, 100), "an event more, by %d", room);
	}
	return true;
}

/* A CQ stays armed, and what an event has told of stays told, when its ring changes. */
static bool event_resized(struct pair *p)
{
	struct ibv_cq *cq;
	struct completion c;

	cq = event_pair(p);
	if (!cq)
		return false;
	for (int i = 0; i < 8; i++) {
		VERB(ibv_req_notify_cq(cq, 0));
		if (ibv_resize_cq(cq, i % 2 ? 100 : 1000))
			return missing("ibv_resize_cq");
		if (!post_recv(p, i, 0, 64) || !post_send(p, i, 0, 8, IBV_SEND_SIGNALED))
			return false;
		REQUIRE(cq_event(p->channel, 5000), "no event %d", i);
		VERB(ibv_resize_cq(cq, i % 2 ? 1000 : 100));
		VERB(ibv_req_notify_cq(cq, 0));
		REQUIRE(!cq_event(p->channel, 50), "another event %d", i);
		if (!wait_for(p->b.cq, i, IBV_WC_RECV, &c))
			return false;
	}
	return true;
}

#define RACE_MESSAGES	4000

/* How many of the messages the consumer has seen; it wants no more */
static atomic_int race_seen;
static atomic_bool race_over;

/* Some time, other at each call, up to what a message takes and more. */
static void dawdle(uint32_t *dice)
{
	*dice = *dice * 1103515245 + 12345;
	for (uint32_t spin = (*dice >> 16) % 16384; spin; spin--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* Sends at any moment of the consumer's, but never ahead: another message would wake it, too. */
static void *race_sender(void *arg)
{
	struct pair *p = arg;
	uint32_t dice = 1;

	for (int i = 0; i < RACE_MESSAGES; i++) {
		while (race_seen < i && !race_over)
			sched_yield();
		dawdle(&dice);
		if (race_over || !message(p, i))
			return NULL;
	}
	return p;
}

static int race_poll(struct pair *p)
{
	struct completion c;
	int n = 0;

	while (poll_one(p->b.cq, &c))
		n++;
	race_seen += n;
	return n;
}

/* Other adapters want a look at the CQ behind the arming. */
static bool race_consume(struct pair *p)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(p->b.cq);
	uint32_t dice = 2;

	while (race_seen < RACE_MESSAGES) {
		race_poll(p);
		dawdle(&dice);
		VERB(ibv_req_notify_cq(cq, 0));
		if (race_seen == RACE_MESSAGES || (!dev.nhca && race_poll(p)))
			continue;
		if (!cq_event(p->channel, 5000)) {
			REQUIRE(!race_poll(p), "message %d came, but no event", race_seen);
			return fail("no message %d", race_seen);
		}
	}
	return true;
}

/* No completion that comes while the CQ is being armed is slept through. */
static bool event_race(struct pair *p)
{
	pthread_t sender;
	void *sent;
	bool good;

	race_seen = 0;
	race_over = false;
	if (!make_pair(p, (struct pair_opts){ .channel = true }))
		return false;
	REQUIRE(!pthread_create(&sender, NULL, race_sender, p), "no thread");
	good = race_consume(p);
	race_over = true;
	pthread_join(sender, &sent);
	return good && sent;
}

/* One message, its completion polled; was there an event? */
static bool one_event(struct pair *p, int wr_id, int ms, bool *event)
{
	struct completion c;

	if (!post_recv(p, wr_id, 0, 64) || !post_send(p, wr_id, 0, 8, IBV_SEND_SIGNALED) ||
	    !wait_for(p->b.cq, wr_id, IBV_WC_RECV, &c))
		return false;
	*event = cq_event(p->channel, ms);
	return true;
}

static int moderate(struct pair *p, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period_us },
	};

	return ibv_modify_cq(ibv_cq_ex_to_cq(p->b.cq), &attr);
}

/*
 * As few events as the count and the period allow, all that is due, and completions at once.
 */
static bool cq_moderation(struct pair *p)
{
	const int count = 4, messages = 80;
	const uint64_t period_ns = 60000000;
	uint64_t begun, most;
	struct ibv_cq *cq;
	int events = 0;
	bool event;

	if (!make_pair(p, (struct pair_opts){ .channel = true }))
		return false;
	if (moderate(p, count, period_ns / 1000))
		return missing("ibv_modify_cq");
	REQUIRE(!dev.nhca || dev.attr.cq_mod_caps.max_cq_count == UINT16_MAX,
		"max_cq_count %u", dev.attr.cq_mod_caps.max_cq_count);
	cq = ibv_cq_ex_to_cq(p->b.cq);
	begun = now_ns(CLOCK_MONOTONIC);
	VERB(ibv_req_notify_cq(cq, 0));
	for (int i = 0; i < messages; i++) {
		if (!one_event(p, i, 0, &event))
			return false;
		events += event;
		if (event)
			VERB(ibv_req_notify_cq(cq, 0));
	}
	most = messages / count + (now_ns(CLOCK_MONOTONIC) - begun) / period_ns + 1;
	REQUIRE(events && (uint64_t)events <= most, "%d events for %d completions, at most %lu",
		events, messages, (unsigned long)most);

	/* the last of them */
	cq_event(p->channel, 200);
	REQUIRE(!moderate(p, 1000, 1000), "ibv_modify_cq");
	VERB(ibv_req_notify_cq(cq, 0));
	if (!one_event(p, 100, 5000, &event))
		return false;
	REQUIRE(event, "no event when the period was over");
	REQUIRE(!moderate(p, 0, 0), "ibv_modify_cq");
	for (int i = 0; i < 10; i++) {
		VERB(ibv_req_notify_cq(cq, 0));
		if (!one_event(p, i, 5000, &event))
			return false;
		REQUIRE(event, "no event without moderation");
	}
	return true;
}

static bool solicited(struct pair *p)
{
	struct completion c;

	if (!make_pair(p, (struct pair_opts){ .channel = true }))
		return false;
	for (int i = 0; i < 2; i++)
		if (!post_recv(p, i, 0, 64))
			return false;
	VERB(ibv_req_notify_cq(ibv_cq_ex_to_cq(p->b.cq), 1));
	if (!post_send(p, 0, 0, 8, IBV_SEND_SIGNALED) ||
	    !wait_for(p->b.cq, 0, IBV_WC_RECV, &c))
		return false;
	REQUIRE(!cq_event(p->channel, 200), "an event for an unsolicited message");
	if (!post_send(p, 1, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED) ||
	    !wait_for(p->b.cq, 1, IBV_WC_RECV, &c))
		return false;
	REQUIRE(cq_event(p->channel, 5000), "no event for a solicited message");
	return true;
}
