// SPDX-License-Identifier: GPL-2.0
/* Scenarios: each tests a fault that was once found in the library of reliable messages. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"
#include "../../../userspace/libnhcamsg/msg.h"

static const struct world_attr two = {
	.nodes = 2, .paths = 1, .lanes = 4, .packets = 8, .frames = 1024, .queue = 64,
	.dead_ms = 100, .mtu = 1500, .rcxts = 4096, .slots = 32, .slot_size = 16384,
};

/* Open a world in which all nodes poll and are connected to node 0. */
static void open_star(uint64_t seed, const struct world_attr *attr)
{
	uint32_t i;

	world_open(seed, attr);
	for (i = 0; i < attr->nodes; i++)
		node_start(&world.nodes[i]);
	for (i = 1; i < attr->nodes; i++) {
		node_connect(0, i);
		node_connect(i, 0);
	}
	run_ms(50);
}

static void close_done(uint64_t ms)
{
	if (!run_until_done(ms))
		fail("%lu messages are not done after %lu ms", (unsigned long)world.open_ops,
		     (unsigned long)ms);
	world_close();
}

static void post_many(enum op_kind kind, uint32_t from, uint32_t to, uint32_t count,
		      uint32_t length)
{
	while (count--)
		if (!post(kind, from, to, length, false))
			fail("%u messages are not posted", count + 1);
}

static void sleep_ms(uint32_t node, uint64_t ms)
{
	world.nodes[node].asleep_until = sim.now + ms * SIM_MS;
}

/* ---- sessions ---- */

static struct sim_packet *recorded[4096];
static uint32_t num_recorded;

/* A hook for sim.tap: it records copies of the packets of the libraries (SIM_PACKET). */
static bool record(struct sim_packet *p)
{
	struct sim_packet *copy;

	if (p->kind != SIM_PACKET || num_recorded == 4096)
		return false;
	copy = sim_packet_new(p->kind, p->length);
	memcpy(copy, p, sizeof(*p) + p->length);
	recorded[num_recorded++] = copy;
	return false;
}

/* Deliver all recorded packets; @last: then remove the records. */
static void replay(bool last)
{
	struct sim_packet *copy;
	uint32_t i;

	for (i = 0; i < num_recorded; i++) {
		copy = sim_packet_new(recorded[i]->kind, recorded[i]->length);
		memcpy(copy, recorded[i], sizeof(*copy) + copy->length);
		sim_deliver(copy);
		if (last)
			free(recorded[i]);
	}
	if (last)
		num_recorded = 0;
}

static void old_packets(uint64_t seed)
{
	uint32_t i;

	open_star(seed, &two);
	sim.tap = record;
	post_many(OP_SEND, 0, 1, 30, 100);
	post_many(OP_SEND, 1, 0, 30, 100);
	post_many(OP_WRITE, 0, 1, 4, 5000);
	run_until_done(1000);
	node_disconnect(0, 1);
	node_disconnect(1, 0);
	node_connect(0, 1);
	node_connect(1, 0);
	/* On this connection the nodes only exchange grants. */
	run_ms(20);
	node_disconnect(0, 1);
	node_disconnect(1, 0);
	sim.tap = NULL;
	node_connect(0, 1);
	replay(false);
	node_connect(1, 0);
	sleep_ms(1, 100);
	post_many(OP_SEND, 0, 1, 10, 50);
	replay(false);
	run_ms(50);
	for (i = 0; i < world.num_ops; i++)
		if (world.ops[i].epoch == 3 && world.ops[i].done)
			fail("a send completes by an acknowledgment of an earlier connection");
	run_ms(100);
	replay(true);
	post_many(OP_WRITE, 0, 1, 8, 5000);
	post_many(OP_WRITE, 1, 0, 8, 5000);
	close_done(2000);
}

/* Only one side reconnects.  The old connection of the other side must not complete messages. */
static void one_sided(uint64_t seed)
{
	uint32_t i;

	open_star(seed, &two);
	post_many(OP_SEND, 0, 1, 5, 50);
	run_until_done(1000);
	node_disconnect(1, 0);
	node_connect(1, 0);
	post_many(OP_SEND, 0, 1, 5, 50);
	post_many(OP_SEND, 1, 0, 5, 50);
	run_ms(500);
	for (i = 5; i < world.num_ops; i++)
		if (world.ops[i].done)
			fail("a send completes although the peer has disconnected");
	node_disconnect(0, 1);
	node_connect(0, 1);
	close_done(2000);
}

/* ---- memory without remote access ---- */

static void closed_read(uint64_t seed)
{
	struct op *op;

	open_star(seed, &two);
	op = post_closed(OP_READ, 0, 1, 5000);
	post_closed(OP_WRITE, 0, 1, 5000);
	close_done(1000);
	(void)op;
}

/* ---- MTU ---- */

static void mtu_changes(uint64_t seed, uint32_t who, enum op_kind kind)
{
	struct world_attr attr = two;
	uint32_t i;

	attr.mtu = 9000;
	attr.no_exchange = true;
	attr.slot_size = 200000;
	open_star(seed, &attr);
	for (i = 0; i < 4; i++) {
		post_many(kind, 0, 1, 8, 200000);
		sim_run(sim.now + 100000);
		world.nodes[who].devices[0]->mtu = i % 2 ? 4200 : 1500;
		if (!run_until_done(5000))
			fail("%lu messages are not done 5 s after the MTU has changed",
			     (unsigned long)world.open_ops);
	}
	world_close();
}

static void mtu_writer(uint64_t seed)
{
	mtu_changes(seed, 0, OP_WRITE);
}

static void mtu_target(uint64_t seed)
{
	mtu_changes(seed, 1, OP_WRITE);
}

static void mtu_reader(uint64_t seed)
{
	mtu_changes(seed, 0, OP_READ);
}

static void mtu_read_from(uint64_t seed)
{
	mtu_changes(seed, 1, OP_READ);
}

/* ---- FIFO and CQ ---- */

/*
 * Open a star in which node 0 then polls only in poll_counted().  Its writes to a peer all have the
 * same source and destination, because the scenario only counts them.
 */
static void open_many(uint64_t seed, uint32_t peers)
{
	struct world_attr attr = two;

	attr.nodes = peers + 1;
	attr.lanes = 64;
	attr.packets = 64;
	attr.rcxts = 2 * 64 * peers + 100;
	attr.slots = 1;
	attr.slot_size = 90000;
	open_star(seed, &attr);
	sleep_ms(0, 1000000);
}

static void write_uncounted(uint32_t peer, uint32_t length)
{
	if (nhcadv_msg_write(world.nodes[0].peers[peer].msg, world.nodes[0].mem, 0,
			     world.nodes[peer].mem->pvo, length, 0, 0))
		fail("a write is not posted");
}

static uint32_t poll_counted(uint32_t want, uint64_t ms)
{
	struct nhcadv_msg_completion wc[64];
	uint64_t end = sim.now + ms * SIM_MS;
	uint32_t done = 0;
	int i, n;

	while (done < want && sim.now < end) {
		n = nhcadv_msg_poll(world.nodes[0].ep, wc, 64);
		for (i = 0; i < n; i++)
			done += wc[i].kind == NHCADV_MSG_WRITE && !wc[i].status;
		sim_run(sim.now + 20000);
	}
	return done;
}

/*
 * Slots of the send FIFO are freed in order, so a long write keeps the slots of complete short
 * writes after it occupied. All writes must complete nevertheless.
 */
static void send_fifo(uint64_t seed)
{
	uint32_t done, i, round;

	open_many(seed, 12);
	for (round = 0; round < 400; round++)
		for (i = 1; i <= 12; i++)
			write_uncounted(i, round % 4 ? 16 : 90000);
	done = poll_counted(12 * 400, 5000);
	if (done != 12 * 400)
		fail("%u of %u writes are done", done, 12 * 400);
	world_close();
}

/* A delay keeps all lanes busy. The CQs must hold all completions until the program polls. */
static void completion_queue(uint64_t seed)
{
	uint32_t done = 0, i, round;

	open_many(seed, 60);
	for (i = 1; i <= 60; i++)
		sim_link(world.nodes[0].devices[0], world.nodes[i].devices[0])->delay = 20 * SIM_MS;
	for (round = 0; round < 200; round++)
		for (i = 1; i <= 60; i++)
			write_uncounted(i, 16);
	for (round = 0; round < 40; round++) {
		done += poll_counted(12000 - done, 15);
		run_ms(50);
	}
	done += poll_counted(12000 - done, 2000);
	if (done != 12000)
		fail("%u of 12000 writes are done", done);
	world_close();
}

/* ---- number of rCxts ---- */

static uint32_t rcxts_of(uint32_t node, uint32_t peer)
{
	struct nhcadv_msg_stats stats;

	if (nhcadv_msg_query(world.nodes[node].peers[peer].msg, 0, &stats))
		fail("no path");
	return stats.rcxts;
}

static void borrow(uint64_t seed)
{
	uint32_t i, soon, later;

	open_many(seed, 1);
	sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0])->delay = 5 * SIM_MS;
	sim_link(world.nodes[1].devices[0], world.nodes[0].devices[0])->delay = 5 * SIM_MS;
	if (rcxts_of(0, 1) != 8 || rcxts_of(1, 0) != 8)
		fail("an idle peer has %u and %u rCxts", rcxts_of(0, 1), rcxts_of(1, 0));
	for (i = 0; i < 10000; i++)
		write_uncounted(1, 89600);
	/* After 20 round trips (200 ms) the throughput must be at least 98 % of the later one. */
	poll_counted(10000, 200);
	soon = poll_counted(10000, 200);
	poll_counted(10000, 400);
	later = poll_counted(10000, 200);
	if (soon < later * 98 / 100 || !later)
		fail("%u writes after 20 round trips, and %u in the end", soon, later);
	if (rcxts_of(0, 1) != 68 || rcxts_of(1, 0) != 68)
		fail("a busy peer has %u and %u rCxts", rcxts_of(0, 1), rcxts_of(1, 0));
	poll_counted(10000, 4000);
	poll_counted(10000, 4000);
	if (rcxts_of(0, 1) != 8 || rcxts_of(1, 0) != 8)
		fail("after the work %u local and %u remote rCxts are left", rcxts_of(0, 1),
		     rcxts_of(1, 0));
	world_close();
}

/* Node 0 writes to 2,000 peers with 100,000 rCxts, the default of a device. */
static void many_peers(uint64_t seed)
{
	struct world_attr attr = two;
	uint32_t i;

	attr.nodes = 2001;
	attr.lanes = 64;
	attr.frames = 16;
	attr.queue = 4;
	attr.rcxts = 128;
	attr.first_rcxts = 100000;
	attr.slots = 1;
	attr.slot_size = 4096;
	attr.dead_ms = 500;
	open_star(seed, &attr);
	world.nodes[0].polling = false;
	sim_forget(&world.nodes[0]);
	for (i = 1; i <= 2000 && !world.failed; i++)
		write_uncounted(i, 4000);
	i = poll_counted(2000, 20000);
	if (i != 2000)
		fail("%u of 2000 writes are done", i);
	world_close();
}

static void post_both_ways(uint32_t peers)
{
	uint32_t i;

	for (i = 1; i <= peers; i++) {
		post_many(OP_WRITE, 0, i, 14, 16000);
		post_many(OP_WRITE, i, 0, 14, 16000);
	}
}

/* A third peer connects while two busy peers hold almost all rCxts, and must get some of them. */
static void call_back(uint64_t seed)
{
	struct world_attr attr = two;
	uint32_t i, had = 0, round;

	attr.nodes = 4;
	attr.lanes = 64;
	attr.first_rcxts = 100;
	attr.slots = SLOTS_MAX;
	attr.dead_ms = 1000;
	world_open(seed, &attr);
	for (i = 0; i < 4; i++)
		node_start(&world.nodes[i]);
	for (i = 1; i < 3; i++) {
		sim_link(world.nodes[0].devices[0], world.nodes[i].devices[0])->delay = 20 * SIM_MS;
		sim_link(world.nodes[i].devices[0], world.nodes[0].devices[0])->delay = 20 * SIM_MS;
		node_connect(0, i);
		node_connect(i, 0);
	}
	run_ms(100);
	for (round = 0; round < 20 && had <= 92; round++) {
		post_both_ways(2);
		if (!run_until_done(2000))
			fail("writes are not done while peers acquire rCxts");
		had = rcxts_of(0, 1) + rcxts_of(0, 2);
	}
	if (had <= 92)
		fail("two busy peers have acquired only %u rCxts", had);
	post_both_ways(2);
	run_ms(10);
	node_connect(0, 3);
	node_connect(3, 0);
	post_many(OP_WRITE, 3, 0, 4, 16000);
	post_many(OP_WRITE, 0, 3, 4, 16000);
	close_done(600);
}

/* ---- short queues ---- */

static uint32_t lose_left;

static bool lose_sends(struct sim_packet *p)
{
	/* Lose only sends of node 0: other packets of this scenario are shorter than 300 bytes. */
	if (p->kind != SIM_PACKET || p->length < 300 || !lose_left)
		return false;
	lose_left--;
	return true;
}

static void short_queue(uint64_t seed)
{
	struct world_attr attr = two;

	attr.odd_queue = 4;
	open_star(seed, &attr);
	lose_left = 1;
	sim.tap = lose_sends;
	post_many(OP_SEND, 0, 1, 64, 400);
	close_done(2000);
}

static void late_release(uint64_t seed)
{
	struct world_attr attr = two;

	attr.queue = 2;
	open_star(seed, &attr);
	world.nodes[1].hold = 2;
	post_many(OP_SEND, 0, 1, 2, 400);
	run_until_done(100);
	node_disconnect(0, 1);
	node_disconnect(1, 0);
	node_connect(0, 1);
	node_connect(1, 0);
	/* Node 1 releases the two sends of the first connection during the second one. */
	world.nodes[1].hold = 0;
	run_ms(100);
	post_many(OP_SEND, 0, 1, 2, 400);
	close_done(2000);
}

/* ---- disconnect ---- */

static void busy_disconnect(uint64_t seed)
{
	struct world_attr attr = two;
	uint32_t i;

	attr.nodes = 3;
	open_star(seed, &attr);
	for (i = 0; i < 5; i++) {
		post_many(OP_WRITE, 0, 1, 10, 16000);
		post_many(OP_SEND, 0, 1, 10, 1000);
		post_many(OP_WRITE, 0, 2, 6, 16000);
		sim_run(sim.now + i * 3000);
		node_disconnect(0, 1);
		node_disconnect(1, 0);
		if (!run_until_done(1000))
			fail("writes to a peer are not done after the disconnect of another peer");
		node_connect(0, 1);
		node_connect(1, 0);
		run_ms(30);
	}
	world_close();
}

/* ---- failover ---- */

static void set_black(uint32_t a, uint32_t b, uint32_t path, bool black)
{
	struct sim_device *da = world.nodes[a].devices[path], *db = world.nodes[b].devices[path];

	sim_link(da, db)->black = black;
	sim_link(db, da)->black = black;
}

static void failover_asleep(uint64_t seed)
{
	struct world_attr attr = two;

	attr.paths = 2;
	attr.slots = SLOTS_MAX;
	open_star(seed, &attr);
	post_many(OP_WRITE, 0, 1, 16, 16000);
	run_until_done(1000);
	sleep_ms(1, 1000000);
	post_many(OP_WRITE, 0, 1, 32, 16000);
	sim_run(sim.now + 30000);
	set_black(0, 1, 1, true);
	post_many(OP_WRITE, 0, 1, 32, 16000);
	close_done(1200);
}

/*
 * One of two paths delays its packets by 700 ms, so the library sends the writes again over the
 * other path.  A write must not complete while its delayed packets refer to its memory.
 */
static void failover_kept(uint64_t seed)
{
	struct world_attr attr = two;
	struct sim_link *link;

	attr.paths = 2;
	attr.slots = SLOTS_MAX;
	open_star(seed, &attr);
	post_many(OP_WRITE, 0, 1, 16, 16000);
	run_until_done(1000);
	link = sim_link(world.nodes[0].devices[1], world.nodes[1].devices[1]);
	link->delay = 700 * SIM_MS;
	post_many(OP_WRITE, 0, 1, 32, 16000);
	run_ms(200);
	if (!world.open_ops)
		fail("no write was sent over the path that delays packets");
	close_done(1500);
}

/*
 * A device of the writer is removed.  The writer then has no channel on which it could cancel the
 * writes of this device.
 */
static void failover_removed(uint64_t seed)
{
	struct world_attr attr = two;

	attr.paths = 2;
	attr.slots = SLOTS_MAX;
	open_star(seed, &attr);
	post_many(OP_WRITE, 0, 1, 16, 16000);
	run_until_done(1000);
	post_many(OP_WRITE, 0, 1, 32, 16000);
	sim_run(sim.now + 30000);
	world.nodes[0].devices[1]->gone = true;
	sim_recover(world.nodes[0].devices[1]);
	close_done(1200);
}

/* ---- fairness and sleep ---- */

static void fairness(uint64_t seed)
{
	uint32_t counts[16] = {}, done = 0, i, least = UINT32_MAX;
	struct nhcadv_msg_completion wc[64];
	uint32_t round;
	uint64_t end;
	int n;

	open_many(seed, 16);
	for (round = 0; round < 400; round++)
		for (i = 1; i <= 16; i++)
			write_uncounted(i, 11000);
	for (end = sim.now + 5000 * SIM_MS; done < 16 * 100 && sim.now < end;) {
		n = nhcadv_msg_poll(world.nodes[0].ep, wc, 64);
		for (done += n; n; n--)
			counts[(struct node *)wc[n - 1].context - world.nodes - 1]++;
		sim_run(sim.now + 20000);
	}
	for (i = 0; i < 16; i++)
		if (counts[i] < least)
			least = counts[i];
	if (least < 50)
		fail("a peer has completed only %u writes, and the mean is 100", least);
	world_close();
}

static volatile bool woken;

static void *waiter(void *arg)
{
	if (!nhcadv_msg_wait(arg, 2000))
		woken = true;
	return NULL;
}

/* A thread sleeps and must wake up when another thread handles its event but polls 0 entries. */
static void two_threads(uint64_t seed)
{
	struct nhcadv_msg_completion wc;
	struct world_attr attr = two;
	struct sim_channel *ch;
	struct nhcadv_msg_ep *ep;
	pthread_t thread;
	int i;

	attr.real_clock = true;
	open_star(seed, &attr);
	ep = world.nodes[1].ep;
	sim_forget(&world.nodes[0]);
	sim_forget(&world.nodes[1]);
	woken = false;
	pthread_create(&thread, NULL, waiter, ep);
	usleep(100000);
	pthread_mutex_lock(&ep->lock);
	list_for_each(&world.nodes[1].devices[0]->channels, ch, node)
		ch->rcq->armed = false;
	post(OP_SEND, 0, 1, 100, false);
	node_poll_once(&world.nodes[0]);
	sim_run(sim.now + 5 * SIM_MS);
	pthread_mutex_unlock(&ep->lock);
	nhcadv_msg_poll(ep, &wc, 0);
	/* The check is shorter than the timer of the endpoint, which wakes the thread after 1 s. */
	for (i = 0; i < 10 && !woken; i++)
		usleep(30000);
	if (!woken)
		fail("the thread is not woken");
	pthread_join(thread, NULL);
	sim.now = msg_clock();
	sim.real_clock = false;
	for (i = 0; i < 2; i++) {
		world.nodes[i].polling = false;
		node_start(&world.nodes[i]);
	}
	close_done(2000);
}

const struct scenario cases[] = {
	{ "packets of an earlier connection are ignored", old_packets },
	{ "sends to a peer that reconnected wait until this side reconnects", one_sided },
	{ "a read of memory without remote access completes with EACCES", closed_read },
	{ "writes complete after the MTU of the writer changes", mtu_writer },
	{ "writes complete after the MTU of the target changes", mtu_target },
	{ "reads complete after the MTU of the reader changes", mtu_reader },
	{ "reads complete after the MTU of the target changes", mtu_read_from },
	{ "the send FIFO does not overflow with 12 peers", send_fifo },
	{ "no completion is lost with 60 peers", completion_queue },
	{ "a busy peer acquires more rCxts and releases them when idle", borrow },
	{ "a device with the default number of rCxts serves 2,000 peers", many_peers },
	{ "busy peers release rCxts for a new peer", call_back },
	{ "a short queue keeps room for the next expected send", short_queue },
	{ "received sends of an earlier connection can be released", late_release },
	{ "the disconnect of a busy peer does not stop other peers", busy_disconnect },
	{ "writes complete over another path while the target program sleeps", failover_asleep },
	{ "a write does not complete while a delayed packet refers to its memory", failover_kept },
	{ "writes complete after one of two devices is removed", failover_removed },
	{ "each peer gets at least half of its share of the send FIFO", fairness },
	{ "a sleeping thread wakes after another thread handled its event", two_threads },
	{}
};
