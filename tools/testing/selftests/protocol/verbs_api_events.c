// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A part of verbs_api.c: completion events. */
#include "verbs_api_shared.h"

/* Make a pair whose end b has a completion channel.  Return: b's CQ, or NULL. */
static struct ibv_cq *event_pair(struct pair *p)
{
	return make_pair(p, (struct pair_opts){ .channel = true }) ? ibv_cq_ex_to_cq(p->b.cq) : NULL;
}

/* Send a message that has arrived at b when this returns; b does not poll it. */
static bool message(struct pair *p, int wr_id)
{
	struct completion c;

	return post_recv(p, wr_id, 0, 64) && post_send(p, wr_id, 0, 8, IBV_SEND_SIGNALED) &&
	       wait_for(p->a.cq, wr_id, IBV_WC_SEND, &c);
}

/* Poll b's two messages.  b's CQ must still be armed for the next one. */
static bool polled_and_armed(struct pair *p)
{
	struct completion c;

	for (int i = 0; i < 2; i++)
		if (!wait_for(p->b.cq, i, IBV_WC_RECV, &c))
			return false;
	if (!post_recv(p, 2, 0, 64) || !post_send(p, 2, 0, 8, IBV_SEND_SIGNALED))
		return false;
	REQUIRE(cq_event(p->channel, 5000), "the CQ is armed, but there was no event");
	return wait_for(p->b.cq, 2, IBV_WC_RECV, &c);
}

bool cq_events(struct pair *p)
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
 * A program polls until the CQ is empty, arms it and sleeps.  A completion between the last poll
 * and the arming must raise an event immediately, as hardware adapters do.  Such a completion
 * raises one event only, if the program arms again before it polls.
 */
bool event_between(struct pair *p)
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
 * Other programs arm the CQ after an event, and poll afterwards.  This poll finds all completions
 * from before the arming, so a second event for these would wake the program for nothing.
 */
bool event_behind(struct pair *p)
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
	REQUIRE(!cq_event(p->channel, 200), "a second event for what the first covers");
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
 * Other programs arm the CQ after each event, poll a limited number of entries once, and sleep
 * again.  For the entries that such a poll leaves there must be another event, as on hardware
 * adapters.
 */
bool event_left(struct pair *p)
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
			REQUIRE(cq_event(p->channel, 5000),
				"no event after %d of 10, polled in groups of %d", seen, room);
			VERB(ibv_req_notify_cq(cq, 0));
			n = poll_some(p, room % 2, room);
			REQUIRE(n > 0, "an event without a completion");
		}
		/*
		 * With an odd @room, poll_some() polls the entries one by one.  So libnhca may
		 * request an event for entries that poll_some() polls afterwards.
		 */
		if (room % 2)
			cq_event(p->channel, 0);
		REQUIRE(!cq_event(p->channel, 100), "an event too many, polled in groups of %d",
			room);
	}
	return true;
}

/* After a resize a CQ is still armed, and an event is not raised a second time. */
bool event_resized(struct pair *p)
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

/* number of messages that the consumer has polled; the sender waits for it */
static atomic_int race_seen;

static atomic_bool race_over;

/* Spin for a pseudo-random time, up to a little more than a message takes. */
static void dawdle(uint32_t *dice)
{
	*dice = *dice * 1103515245 + 12345;
	for (uint32_t spin = (*dice >> 16) % 16384; spin; spin--)
		atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Send at any time relative to the consumer, but not before the consumer has polled the previous
 * message, because another message would also wake the consumer.
 */
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

/*
 * Devices other than nhca may raise no event for a completion before the arming, so there the
 * program must poll after it has armed the CQ.
 */
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
			REQUIRE(!race_poll(p), "message %d arrived without an event", race_seen);
			return fail("no message %d", race_seen);
		}
	}
	return true;
}

/* A completion during the arming of the CQ must raise an event. */
bool event_race(struct pair *p)
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

/* Send one message and poll its completion.  @event: an event came within @ms. */
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
 * With moderation the CQ must raise no more events than count and period allow, and every event
 * that is due.
 */
bool cq_moderation(struct pair *p)
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
	begun = clock_ns(CLOCK_MONOTONIC);
	VERB(ibv_req_notify_cq(cq, 0));
	for (int i = 0; i < messages; i++) {
		if (!one_event(p, i, 0, &event))
			return false;
		events += event;
		if (event)
			VERB(ibv_req_notify_cq(cq, 0));
	}
	most = messages / count + (clock_ns(CLOCK_MONOTONIC) - begun) / period_ns + 1;
	REQUIRE(events && (uint64_t)events <= most, "%d events for %d completions, at most %lu",
		events, messages, (unsigned long)most);

	/* discard the last event */
	cq_event(p->channel, 200);
	REQUIRE(!moderate(p, 1000, 1000), "ibv_modify_cq");
	VERB(ibv_req_notify_cq(cq, 0));
	if (!one_event(p, 100, 5000, &event))
		return false;
	REQUIRE(event, "no event at the end of the period");
	REQUIRE(!moderate(p, 0, 0), "ibv_modify_cq");
	for (int i = 0; i < 10; i++) {
		VERB(ibv_req_notify_cq(cq, 0));
		if (!one_event(p, i, 5000, &event))
			return false;
		REQUIRE(event, "no event without moderation");
	}
	return true;
}

bool solicited(struct pair *p)
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
