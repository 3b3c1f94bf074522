// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Channels are closed under full traffic. Each side has channels on which two threads post writes,
 * reads, packets and probes to those of the other side, and cancels. A third thread closes and
 * opens them, releases rCxts, and unmaps memory; the peer learns of it only afterwards. After each
 * of these calls has returned, no byte may be written, so the test then checks the memory. At the
 * same time another pair of channels makes transfers, and the test checks all their bytes. Options:
 * see main().
 */
#include <getopt.h>
#include <pthread.h>
#include <sys/mman.h>

#include "channels.h"

#define SLOTS		6
#define THREADS		2
#define FRAMES		16
#define HALF		4		/* rCxts for transfers of each end */
#define SLOT_MEMORY	(128u << 10)
#define LONGEST		(64u << 10)
#define CANARY		0xc5
#define STEADY		100003
#define STEADY_BACK	(2u << 20)	/* offset of the memory for the bytes that are read back */
#define AGAIN_NS	300000000ULL
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/*
 * Data that the other side needs about a slot.  Slot number SLOTS says that the sender has done its
 * rounds.
 */
struct word {
	uint32_t slot, qpn, segment, reserved;
	uint64_t key, pvo, rcxts[HALF];
};

struct slot {
	pthread_mutex_t lock;
	struct channel c;
	struct nhcadv_job_mem *mem;
	uint8_t *buf;
	uint64_t rcxts[2 * HALF];
	struct word there;
	bool own_fault;			/* memory or an AH that a request may need was removed */
};

static struct slot slots[SLOTS];
static pthread_mutex_t word_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_tid, rounds = 300, recover_every;
static bool stop, we_are_done, they_are_done;
static struct channel steady;
static uint64_t closed, released, unmapped, recovered, posted, failed;

static void count(uint64_t *what)
{
	__atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static bool ended(bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* Return: a random number; each thread has its own @state. */
static uint64_t draw(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15ULL);
}

/* ---- a slot; its lock is held, except at the beginning and the end of the test ---- */

static void slot_tell(struct slot *s)
{
	struct word word = { .slot = s - slots, .qpn = s->c.here.qpn, .key = s->c.here.key,
			     .segment = s->c.here.segment, .pvo = s->mem->pvo };

	memcpy(word.rcxts, s->rcxts + HALF, sizeof(word.rcxts));
	pthread_mutex_lock(&word_lock);
	tell(&word, sizeof(word));
	pthread_mutex_unlock(&word_lock);
}

static void slot_map(struct slot *s)
{
	uint8_t *p = mmap(s->buf, SLOT_MEMORY, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (s->buf ? MAP_FIXED : 0), -1, 0);

	must(p != MAP_FAILED);
	s->buf = p;
}

static void slot_ah(struct slot *s)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };

	/* because the link is full, address resolution may time out in the kernel, after 1 s */
	for (unsigned int tries = 0; tries < patience_s(); tries++) {
		s->c.peer.ah = ibv_create_ah(pd, &attr);
		if (s->c.peer.ah || errno != ETIMEDOUT)
			break;
	}
	must(s->c.peer.ah);
}

/*
 * A recovery, or a request that fails because of own_fault, may put the channel into the error
 * state at any time.
 */
static void slot_acquire(struct slot *s)
{
	int ret = nhcadv_acquire_rcxts(s->c.qp, s->rcxts, 2 * HALF);

	if (ret && !(ret == EIO && (recover_every || s->own_fault)))
		verb(ret);
}

static void slot_release(struct slot *s)
{
	int ret = nhcadv_release_rcxts(s->c.qp, s->rcxts, 2 * HALF);

	if (ret && !(ret == ENOENT && recover_every))
		verb(ret);
	count(&released);
}

static void slot_reg(struct slot *s)
{
	must(s->mem = nhcadv_reg_job_mem(context, job, s->buf, SLOT_MEMORY, ACCESS));
}

static void slot_open(struct slot *s)
{
	channel_make(&s->c, job, FRAMES);
	slot_ah(s);
	slot_acquire(s);
	s->own_fault = false;
}

static void slot_close(struct slot *s)
{
	struct nhcadv_channel_info info = channel_info(&s->c);

	if (info.reason && info.reason != NHCADV_ERR_RECOVERED &&
	    !(s->own_fault && (info.reason == NHCADV_ERR_LOCAL_PVO ||
			       info.reason == NHCADV_ERR_WQE)))
		die("a channel is in the error state for reason %u", info.reason);
	channel_close(&s->c);
	count(&closed);
}

/* Check for a random time below 200 us that no byte of the slot's memory changes. */
static void slot_still(struct slot *s, uint64_t *seed, const char *after)
{
	uint64_t end;
	long at;

	memset(s->buf, CANARY, SLOT_MEMORY);
	end = now_ns() + draw(seed) % 200000;
	do {
		at = differs(s->buf, SLOT_MEMORY, CANARY);
		if (at >= 0)
			die("byte %ld has changed after %s", at, after);
	} while (now_ns() < end);
}

/* Deregister and unmap the memory, and map new memory at the same address immediately. */
static void slot_unmap(struct slot *s, uint64_t *seed)
{
	verb(nhcadv_dereg_job_mem(s->mem));
	must(!munmap(s->buf, SLOT_MEMORY));
	slot_map(s);
	slot_still(s, seed, "memory was deregistered and unmapped");
	slot_reg(s);
	count(&unmapped);
}

/* ---- actions of the closing thread ---- */

static void do_close(struct slot *s, uint64_t *seed)
{
	slot_close(s);
	slot_still(s, seed, "its channel was closed");
	slot_open(s);
}

static void do_release(struct slot *s, uint64_t *seed)
{
	slot_release(s);
	slot_still(s, seed, "all rCxts were released");
	slot_acquire(s);
}

/* No transfer is active after the release, so the channel must not enter the error state. */
static void do_unmap(struct slot *s, uint64_t *seed)
{
	slot_release(s);
	slot_unmap(s, seed);
	slot_acquire(s);
}

static void do_unmap_in_use(struct slot *s, uint64_t *seed)
{
	s->own_fault = true;
	slot_unmap(s, seed);
}

static void do_destroy_ah(struct slot *s, uint64_t *seed)
{
	(void)seed;
	s->own_fault = true;
	verb(ibv_destroy_ah(s->c.peer.ah));
	slot_ah(s);
}

static void slot_do(void (*what)(struct slot *s, uint64_t *seed), uint64_t *seed)
{
	struct slot *s = &slots[draw(seed) % SLOTS];

	pthread_mutex_lock(&s->lock);
	what(s, seed);
	/* a channel in the error state cannot be used any longer */
	if (channel_info(&s->c).reason) {
		slot_close(s);
		slot_open(s);
	}
	slot_tell(s);
	pthread_mutex_unlock(&s->lock);
}

static void *closer(void *arg)
{
	static void (*const more[])(struct slot *s, uint64_t *seed) = {
		do_release, do_unmap, do_unmap, do_unmap_in_use, do_destroy_ah
	};
	struct word done = { .slot = SLOTS };
	uint64_t seed = mix((uintptr_t)&done + !!peer_host), begun = now_ns();
	uint32_t i;

	(void)arg;
	for (i = 1; i <= rounds; i++) {
		slot_do(do_close, &seed);
		if (i % 2)
			slot_do(more[draw(&seed) % (sizeof(more) / sizeof(more[0]))], &seed);
		if (recover_every && !(i % recover_every)) {
			verb(nhcadv_recover(context, NULL));
			count(&recovered);
		}
		/* show the progress, in case a time limit ends the test */
		if (!(i % (rounds / 4 + 1)))
			printf("# %u of %u rounds in %.0f s\n", i, rounds, (now_ns() - begun) / 1e9);
	}
	pthread_mutex_lock(&word_lock);
	tell(&done, sizeof(done));
	pthread_mutex_unlock(&word_lock);
	__atomic_store_n(&we_are_done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- traffic ---- */

static void slot_drain(struct slot *s)
{
	struct done d;

	while (poll_done(s->c.scq, &d))
		if (d.status)
			count(&failed);
	while (poll_done(s->c.rcq, &d))
		if (d.kind == NHCADV_WC_FRAME)
			verb(nhcadv_release_frame(s->c.qp, d.frame));
}

static void slot_post(struct slot *s, uint64_t *seed)
{
	uint32_t i = draw(seed) % HALF, segment = s->c.here.segment, room = SLOT_MEMORY - LONGEST;
	struct nhcadv_transfer t = {
		.local_rcxt = s->rcxts[i], .remote_rcxt = s->there.rcxts[i],
		.local_pvo = s->mem->pvo + draw(seed) % room,
		.remote_pvo = s->there.pvo + draw(seed) % room,
		.tid = __atomic_add_fetch(&last_tid, 1, __ATOMIC_RELAXED),
		.total = draw(seed) % LONGEST,
		.segment = segment < s->there.segment ? segment : s->there.segment,
		.notify = draw(seed) % 4,
	};
	int ret;

	s->c.peer.qpn = s->there.qpn;
	s->c.peer.key = s->there.key;
	start(&s->c, 0, draw(seed) % 2 ? IBV_SEND_SIGNALED : 0);
	switch (draw(seed) % 8) {
	case 0 ... 2:
		nhcadv_wr_write(s->c.dv, &s->c.peer, &t);
		break;
	case 3 ... 4:
		nhcadv_wr_read(s->c.dv, &s->c.peer, &t);
		break;
	case 5:
		nhcadv_wr_packet(s->c.dv, &s->c.peer, 0);
		ibv_wr_set_inline_data(s->c.qpx, &t, sizeof(t));
		break;
	case 6:
		nhcadv_wr_probe(s->c.dv, &s->c.peer, &t, 0);
		break;
	default:
		nhcadv_wr_cancel(s->c.dv, t.local_rcxt, t.tid);
	}
	ret = ibv_wr_complete(s->c.qpx);
	if (ret && ret != ENOMEM)
		verb(ret);
	if (!ret)
		count(&posted);
}

static void *traffic(void *arg)
{
	uint64_t seed = mix((uintptr_t)arg);
	struct slot *s;

	while (!ended(&stop)) {
		s = &slots[draw(&seed) % SLOTS];
		pthread_mutex_lock(&s->lock);
		if (s->there.qpn)
			slot_post(s, &seed);
		slot_drain(s);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* Receive the data about the slots of the other side, until it has done its rounds. */
static void *listener(void *arg)
{
	struct word word;

	(void)arg;
	for (;;) {
		hear(&word, sizeof(word));
		if (word.slot >= SLOTS)
			break;
		pthread_mutex_lock(&slots[word.slot].lock);
		slots[word.slot].there = word;
		pthread_mutex_unlock(&slots[word.slot].lock);
	}
	__atomic_store_n(&they_are_done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- the pair of channels that is never closed; the client writes data and reads it back ---- */

struct steady_figures {
	uint64_t transfers, again, slowest_ns;
};

/*
 * Post the transfer, for the first time or again. A read that has lost a packet is repeated with a
 * new tid. A write is first retransmitted. If the write still does not complete, its only notice
 * may be lost. So the write is also repeated with a new tid.
 * @again: how often the transfer was posted before
 */
static void steady_post(struct nhcadv_transfer *t, bool read, uint32_t again)
{
	bool resend = !read && again % 2;

	if (again && !resend)
		t->tid = ++steady.tid;
	start(&steady, 1, 0);
	if (read)
		nhcadv_wr_read(steady.dv, &steady.peer, t);
	else if (resend)
		nhcadv_wr_retransmit(steady.dv, &steady.peer, t, 0, t->total);
	else
		nhcadv_wr_write(steady.dv, &steady.peer, t);
	verb(ibv_wr_complete(steady.qpx));
}

static void steady_transfer(struct nhcadv_transfer *t, bool read, struct steady_figures *f)
{
	uint64_t begun = now_ns(), again = begun + AGAIN_NS;
	uint32_t posted = 0;
	struct done d;

	steady_post(t, read, posted++);
	for (;;) {
		if (poll_done(steady.scq, &d)) {
			/* ignore a completion of the work request itself */
			if (d.kind == NHCADV_WC_LOCAL && !d.status)
				continue;
			if (d.status || d.kind != (read ? NHCADV_WC_READ : NHCADV_WC_WRITE))
				die("untouched channel: completion %#x, %s", d.kind,
				    ibv_wc_status_str(d.status));
			if (d.tid == t->tid)
				break;
			continue;
		}
		if (now_ns() > begun + patience_s() * 1000000000ULL)
			die("untouched channel: a %s does not complete", read ? "read" : "write");
		if (now_ns() > again) {
			steady_post(t, read, posted++);
			f->again++;
			/*
			 * wait longer each time: an attempt with a new tid makes a late answer
			 * useless
			 */
			again = now_ns() + (AGAIN_NS << (posted < 6 ? posted : 6));
		}
		usleep(50);
	}
	f->transfers++;
	if (now_ns() - begun > f->slowest_ns)
		f->slowest_ns = now_ns() - begun;
}

static void steady_round(struct steady_figures *f)
{
	uint32_t seed = f->transfers + 1;
	struct nhcadv_transfer t;

	paint(steady.buf + 64, STEADY, seed);
	t = transfer(&steady, 0, 64, STEADY, NHCADV_NOTIFY_INITIATOR);
	steady_transfer(&t, false, f);

	memset(steady.buf + STEADY_BACK, 0, STEADY + 128);
	t = transfer(&steady, 1, 64, STEADY, NHCADV_NOTIFY_INITIATOR);
	t.local_pvo = steady.here.pvo + STEADY_BACK + 64;
	steady_transfer(&t, true, f);
	check_painted(steady.buf + STEADY_BACK + 64, STEADY, seed, "untouched channel");
}

/* Check that the channel has dropped packets only for reasons that a retransmission can cause. */
static void steady_check(void)
{
	struct nhcadv_channel_info info = channel_info(&steady);
	uint32_t i;

	if (info.state != IBV_QPS_RTS || info.reason || info.violation || info.rcxts != RCXTS)
		die("untouched channel: state %u, reason %u, violation %u, %u rCxts", info.state,
		    info.reason, info.violation, info.rcxts);
	for (i = NHCADV_DROP_FIFO; i <= NHCADV_DROP_SEGMENT; i++)
		if (info.counters[i] && i != NHCADV_DROP_STALE && i != NHCADV_DROP_DUPLICATE &&
		    i != NHCADV_DROP_BUSY && i != NHCADV_DROP_UNSOLICITED)
			die("untouched channel: %" PRIu64 " packets dropped, counter %u",
			    info.counters[i], i);
}

/* ---- the whole test ---- */

/*
 * Open the untouched channel.  With -R it needs its own device (-D), because a recovery moves all
 * channels of the recovered device to the error state.
 */
static void steady_open(const char *name, int gid)
{
	struct ibv_context *other = context;
	struct ibv_pd *other_pd = pd;
	struct hello my = mine, your = theirs;
	int other_gid = gid_index;

	if (name) {
		device_name = name;
		gid_index = gid;
		open_device();
		say_hello();
	}
	channel_open(&steady, FRAMES);
	channel_meet(&steady);
	context = other;
	pd = other_pd;
	gid_index = other_gid;
	mine = my;
	theirs = your;
}

static void busy(void)
{
	struct steady_figures figures = {};
	pthread_t threads[THREADS], close_thread, listen_thread;
	uint64_t begun = now_ns();
	uint32_t i;

	for (i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&slots[i].lock, NULL);
		slot_map(&slots[i]);
		slot_reg(&slots[i]);
		slot_open(&slots[i]);
	}
	for (i = 0; i < SLOTS; i++)
		slot_tell(&slots[i]);
	must(!pthread_create(&listen_thread, NULL, listener, NULL));
	for (i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, traffic, &slots[i]));
	must(!pthread_create(&close_thread, NULL, closer, NULL));

	while (peer_host && !(ended(&we_are_done) && ended(&they_are_done)))
		steady_round(&figures);
	pthread_join(close_thread, NULL);
	pthread_join(listen_thread, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet(1);
	steady_check();
	printf("# %" PRIu64 " channels closed, rCxts released %" PRIu64 " times, memory unmapped %"
	       PRIu64 " times, %" PRIu64 " recoveries, in %.1f s; %" PRIu64 " requests posted, %"
	       PRIu64 " failed\n", closed, released, unmapped, recovered,
	       (now_ns() - begun) / 1e9, posted, failed);
	if (peer_host)
		printf("# meanwhile %" PRIu64 " transfers, %" PRIu64 " posted again, the slowest "
		       "took %.0f ms\n", figures.transfers, figures.again,
		       figures.slowest_ns / 1e6);
	if (peer_host && figures.transfers < 10)
		die("untouched channel: %" PRIu64 " transfers are too few", figures.transfers);
	for (i = 0; i < SLOTS; i++) {
		slot_close(&slots[i]);
		verb(nhcadv_dereg_job_mem(slots[i].mem));
		munmap(slots[i].buf, SLOT_MEMORY);
	}
}

int main(int argc, char **argv)
{
	const char *steady_device = NULL;
	int letter, steady_gid = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_close";
	job = 4712;
	while ((letter = getopt(argc, argv, "d:g:p:n:R:D:G:")) != -1)
		switch (letter) {
		case 'n':
			rounds = atoi(optarg);
			break;
		case 'R':
			recover_every = atoi(optarg);
			recoveries = recover_every;
			break;
		case 'D':
			steady_device = optarg;
			break;
		case 'G':
			steady_gid = atoi(optarg);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel_close [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT]\n"
			      "	[-n ROUNDS] [-R ROUNDS-TO-RECOVERY] [-D DEVICE] [-G GID-INDEX]\n"
			      "	[HOST]\n"
			      "-D, -G: of the channels that are never closed\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	open_device();
	sock_open();
	say_hello();
	steady_open(steady_device, steady_gid);
	busy();
	channel_close(&steady);
	return 0;
}
