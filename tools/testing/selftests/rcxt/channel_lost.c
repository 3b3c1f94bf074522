// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two devices of a host share job memory that was registered once, through the first of them.  The
 * netdev of the first device goes away under traffic over both.  Users of the first device must get
 * events.  Channels of the second device, and the memory, must still work.
 *
 *   channel_lost -d DEVICE -g GID-INDEX -d OTHER-DEVICE -g GID-INDEX COMMAND
 *
 * COMMAND takes the first device's netdev away.
 */
#include <getopt.h>
#include <pthread.h>

#include "channels.h"

#define FRAMES	16
#define LENGTH	(1u << 20)
#define AGAIN_NS 300000000ULL

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct channel from, to;
	uint64_t written;
};

static struct side lost, kept;
static struct nhcadv_job_mem *shared;		/* handle of the memory on the device that stays */
static const char *take_away;
static uint32_t fatal_channels, reasons;
static bool device_fatal, gone;

/* Open a device with a channel that writes and one that is written to. */
static void side_open(struct side *s, const char *name, int gid)
{
	device_name = name;
	gid_index = gid;
	open_device();
	s->context = context;
	s->pd = pd;
	channel_open(&s->from, FRAMES);
	channel_open(&s->to, FRAMES);
	s->from.there = s->to.here;
	s->from.peer = (struct nhcadv_peer){ .qpn = s->to.here.qpn, .key = s->to.here.key };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = mine.gid, .sgid_index = gid, .hop_limit = 64 } };

	must(s->from.peer.ah = ibv_create_ah(pd, &attr));
}

static void side_close(struct side *s)
{
	channel_close(&s->from);
	channel_close(&s->to);
	verb(ibv_dealloc_pd(s->pd));
	verb(ibv_close_device(s->context));
}

/*
 * Write into the memory that was registered through the first device; retransmit until the write
 * completes.
 * Return: false if a request fails because the device is lost, or if @given_up becomes true.
 */
static bool side_write(struct side *s, uint32_t at, bool *given_up)
{
	struct nhcadv_transfer t = transfer(&s->from, 0, 0, LENGTH, NHCADV_NOTIFY_INITIATOR);
	uint64_t end = now_ns() + patience_s() * 1000000000ULL, again = now_ns() + AGAIN_NS;
	struct done d;

	t.remote_pvo = lost.to.here.pvo + at;
	start(&s->from, 0, 0);
	nhcadv_wr_write(s->from.dv, &s->from.peer, &t);
	if (ibv_wr_complete(s->from.qpx))
		return false;
	while (!poll_done(s->from.scq, &d)) {
		if (__atomic_load_n(given_up, __ATOMIC_ACQUIRE))
			return false;
		if (now_ns() > end)
			die("a write does not complete");
		if (now_ns() > again) {
			start(&s->from, 0, 0);
			nhcadv_wr_retransmit(s->from.dv, &s->from.peer, &t, 0, t.total);
			if (ibv_wr_complete(s->from.qpx))
				return false;
			again = now_ns() + AGAIN_NS;
		}
	}
	if (d.status)
		return false;
	if (d.kind != NHCADV_WC_WRITE || d.tid != t.tid)
		die("completion %#x of tid %u", d.kind, d.tid);
	s->written++;
	return true;
}

static void side_goes(struct side *s, uint32_t at, uint32_t seed, const char *what)
{
	bool never = false;

	memset(lost.to.buf + at, 0, LENGTH);
	paint(s->from.buf, LENGTH, seed);
	if (!side_write(s, at, &never))
		die("%s: the write fails", what);
	for (uint32_t i = 0; i < LENGTH; i++)
		if (lost.to.buf[at + i] != pattern(seed, i))
			die("%s: byte %u is wrong", what, i);
	ktap_ok("%s", what);
}

static void *watch(void *arg)
{
	struct ibv_async_event event;
	struct nhcadv_channel_info info;
	struct ibv_qp *qp;

	(void)arg;
	while (!device_fatal) {
		verb(ibv_get_async_event(lost.context, &event));
		if (event.event_type == IBV_EVENT_QP_FATAL) {
			fatal_channels++;
			qp = event.element.qp;
			/* the query fails if the device was removed in the meantime */
			if (!nhcadv_query_channel(qp, &info)) {
				if (info.reason != NHCADV_ERR_DEVICE)
					die("a channel of a lost device: reason %u",
					    info.reason);
				reasons++;
			}
		}
		device_fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	__atomic_store_n(&gone, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *taker(void *arg)
{
	(void)arg;
	usleep(200000);
	if (system(take_away))
		die("%s: it returns an error", take_away);
	return NULL;
}

/* Write over the lost device until it has gone. */
static void *use_lost(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&gone, __ATOMIC_ACQUIRE) && side_write(&lost, 0, &gone))
		;
	return NULL;
}

static void lose(void)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	pthread_t watcher, killer, user;
	bool never = false;
	uint64_t before;

	must(!pthread_create(&watcher, NULL, watch, NULL));
	must(!pthread_create(&killer, NULL, taker, NULL));
	must(!pthread_create(&user, NULL, use_lost, NULL));
	before = kept.written;
	do {
		if (!side_write(&kept, LENGTH, &never))
			die("a write over the other device fails");
		if (now_ns() > end)
			die("no IBV_EVENT_DEVICE_FATAL, and %u times IBV_EVENT_QP_FATAL",
			    fatal_channels);
	} while (!__atomic_load_n(&gone, __ATOMIC_ACQUIRE));
	pthread_join(killer, NULL);
	pthread_join(watcher, NULL);
	pthread_join(user, NULL);
	printf("# events of %u channels, %u of them with the reason; %" PRIu64 " writes over the "
	       "lost device, %" PRIu64 " over the other meanwhile\n", fatal_channels, reasons,
	       lost.written, kept.written - before);
	/* the core drops unread events with the device; IBV_EVENT_DEVICE_FATAL replaces them */
	if (fatal_channels > 2)
		die("%u events IBV_EVENT_QP_FATAL for 2 channels", fatal_channels);
	ktap_ok("users of a lost device get events, channels of another device work");
}

int main(int argc, char **argv)
{
	const char *names[2] = {};
	int gids[2] = {}, letter, i = 0;
	bool never = false;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_lost";
	job = 4714;
	while ((letter = getopt(argc, argv, "d:g:")) != -1)
		switch (letter) {
		case 'd':
			names[i % 2] = optarg;
			break;
		case 'g':
			gids[i++ % 2] = atoi(optarg);
			break;
		default:
			goto usage;
		}
	if (i != 2 || optind + 1 != argc)
		goto usage;
	take_away = argv[optind];

	side_open(&lost, names[0], gids[0]);
	side_open(&kept, names[1], gids[1]);
	must(shared = nhcadv_open_job_mem(kept.context, job, lost.to.here.pvo));
	side_goes(&lost, 0, 1, "memory is written through the device that it was registered with");
	side_goes(&kept, LENGTH, 2, "memory is written through another device");
	lose();
	side_goes(&kept, 0, 3, "memory stays, with a handle of the device that stays");
	/* this is the last handle, because the other handle was destroyed with its device */
	verb(nhcadv_dereg_job_mem(shared));
	context = kept.context;
	pd = kept.pd;
	memset(lost.to.buf, 0, LENGTH);
	never = true;
	side_write(&kept, 0, &never);
	wait_event(IBV_EVENT_QP_ACCESS_ERR, "memory that is closed");
	if (differs(lost.to.buf, LENGTH, 0) >= 0)
		die("memory that is closed was written");
	ktap_ok("the last handle closes the memory");
	side_close(&kept);
	side_close(&lost);
	return ktap_end();

usage:
	fputs("usage: channel_lost -d DEVICE -g GID-INDEX -d OTHER-DEVICE -g GID-INDEX COMMAND\n"
	      "COMMAND takes the first device's netdev away\n", stderr);
	return 2;
}
