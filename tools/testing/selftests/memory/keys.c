// SPDX-License-Identifier: GPL-2.0
/*
 * keys: a guessed or old key gives access to no memory.
 *
 *   owner: keys [options]          peer: keys [options] HOST
 *
 * The owner has writable regions and windows. The peer writes 64 bytes to addresses in them through
 * guessed keys: a random number, a valid key with another variant, or a number near a valid key. On
 * an unreliable connection the responder drops such a packet. After each batch the owner checks its
 * memory, and a WRITE with a valid key proves that the queue pair still works. Then the peer tries
 * the keys of deregistered regions on memory to which other keys give access now. With -f it first
 * tries the keys in a file, which are from before the module was reloaded. The memory has the same
 * address in each run. Options: see main().
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <sys/mman.h>

#include "peers.h"

#define LIVE		64		/* regions; there are as many windows */
#define EACH		4096
#define ARENA		(2UL * LIVE * EACH)
#define BASE		((void *)0x200000000000)
#define PIECE		64
#define OLD		1000
#define BATCH		10000
#define GUARD_BYTE	0xa5
#define DEPTH		256

enum kind { GUESS, TRY, REPLAY, BYE };

struct order {
	uint32_t kind, count;
	uint64_t value;
};

static uint64_t guesses = 200000;
static const char *old_file, *new_file;
static uint8_t *arena;
static uint32_t live[2 * LIVE], nlive;
static uint32_t *replayed;
static struct ibv_mr *regions[LIVE], *below, *control_mr;
static struct ibv_qp *qp, *spare;
static struct ibv_cq *cq;
static volatile uint64_t *control;
static struct { uint64_t addr; uint32_t key, unused; } door;
static uint64_t tried, wrong;

/* ---- the owner ---- */

static void order(enum kind kind, uint32_t count, uint64_t value)
{
	struct order o = { kind, count, value };
	uint32_t done;

	tell(&o, sizeof(o));
	if (kind == REPLAY)
		tell(replayed, count * sizeof(*replayed));
	hear(&done, sizeof(done));
}

static void look(const char *what)
{
	long at = differs(arena, ARENA, GUARD_BYTE);

	if (at < 0)
		return;
	wrong++;
	printf("# %s: byte %ld was written\n", what, at);
	memset(arena, GUARD_BYTE, ARENA);
}

/* Prove that a write with a valid key still arrives. */
static void right_key(void)
{
	static uint64_t value;
	int tries, i;

	value++;
	for (tries = 0; tries < 20; tries++) {
		order(TRY, 1, value);
		for (i = 0; i < 1000; i++) {
			if (*control == value)
				return;
			usleep(100);
		}
	}
	die("the right key does not work after %" PRIu64 " wrong ones", tried);
}

static void bind_window(uint32_t i)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = {
		.mr = below, .addr = (uintptr_t)arena + (LIVE + i) * EACH, .length = EACH,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };

	if (!mw) {
		if (i == 0 && strncmp(ibv_get_device_name(context->device), "nhca", 4))
			printf("# the device has no windows\n");
		else
			die("ibv_alloc_mw: %s", strerror(errno));
		return;
	}
	verb(ibv_bind_mw(spare, mw, &bind));
	wait_success(cq, "ibv_bind_mw");
	live[nlive++] = mw->rkey;
}

static void register_all(void)
{
	uint32_t i;

	for (i = 0; i < LIVE; i++) {
		regions[i] = ibv_reg_mr(pd, arena + i * EACH, EACH,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		must(regions[i]);
		live[nlive++] = regions[i]->rkey;
	}
	below = ibv_reg_mr(pd, arena + LIVE * EACH, LIVE * EACH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	must(below);
	for (i = 0; i < LIVE; i++)
		bind_window(i);
}

static bool is_live(uint32_t key)
{
	for (uint32_t i = 0; i < nlive; i++)
		if (live[i] == key)
			return true;
	return key == door.key;
}

static void replay(const char *what, uint32_t count)
{
	uint32_t i, n = 0;

	/* skip numbers that are in use again, because they are valid keys */
	for (i = 0; i < count; i++)
		if (!is_live(replayed[i]))
			replayed[n++] = replayed[i];
	order(REPLAY, n, 0);
	tried += n;
	right_key();
	look(what);
	printf("# %s: %u keys tried, %u numbers are in use again\n", what, n, count - n);
	if (n < count / 2)
		die("%s: %u of %u keys are in use again", what, count - n, count);
}

/*
 * Try the keys of OLD deregistered regions.  Half of the regions existed together, the others one
 * after the other.
 */
static void old_keys(void)
{
	struct ibv_mr *mrs[OLD];
	uint32_t i;

	for (i = 0; i < OLD; i++) {
		mrs[i] = ibv_reg_mr(pd, arena + i % LIVE * EACH, EACH,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		must(mrs[i]);
		replayed[i] = mrs[i]->rkey;
		if (i % 2)
			verb(ibv_dereg_mr(mrs[i]));
	}
	for (i = 0; i < OLD; i += 2)
		verb(ibv_dereg_mr(mrs[i]));
	replay("keys of deregistered regions", OLD);
}

static void write_file(void)
{
	FILE *f = fopen(new_file, "w");
	uint32_t i;

	must(f);
	for (i = 0; i < OLD; i++)
		fprintf(f, "%x\n", replayed[i]);
	for (i = 0; i < nlive; i++)
		fprintf(f, "%x\n", live[i]);
	fprintf(f, "%x\n", door.key);
	must(!fclose(f));
}

static void own(void)
{
	uint64_t left;
	uint32_t n;
	FILE *f;

	if (old_file) {
		f = fopen(old_file, "r");
		must(f);
		for (n = 0; n < OLD + 4 * LIVE && fscanf(f, "%x", &replayed[n]) == 1; n++)
			;
		fclose(f);
		replay("keys from before the reload", n);
	}
	for (left = guesses; left; left -= n) {
		n = left < BATCH ? left : BATCH;
		order(GUESS, n, 0);
		tried += n;
		right_key();
		look("guessed keys");
	}
	old_keys();
	if (new_file)
		write_file();
	order(BYE, 0, 0);
	printf("# %" PRIu64 " wrong keys tried against %u good ones, %" PRIu64
	       " batches opened memory\n", tried, nlive, wrong);
	if (wrong)
		ktap_notok("some opened memory", "wrong keys");
	else
		ktap_ok("wrong keys");
	exit(ktap_end());
}

/* ---- the peer ---- */

static void post(uint32_t key, uint64_t addr, const void *what, uint32_t length)
{
	static uint32_t posted;
	struct ibv_sge sge = { (uintptr_t)what, length, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE, .wr.rdma = { addr, key } }, *bad;
	bool last = ++posted % (DEPTH / 2) == 0;

	if (last)
		wr.send_flags |= IBV_SEND_SIGNALED;
	verb(ibv_post_send(qp, &wr, &bad));
	if (last)
		wait_success(cq, "WRITE");
}

static void attack(uint32_t key, uint32_t at)
{
	static const uint8_t bytes[PIECE] = { 1, 2, 3 };

	post(key, (uintptr_t)BASE + (uint64_t)at * PIECE, bytes, PIECE);
}

static void guess(void)
{
	uint32_t which = rnd() % nlive, dice = rnd() % 4, key;
	uint32_t at = rnd() % (ARENA / PIECE);

	if (dice < 2) {
		key = rnd();
	} else {
		/* an address to which the valid key live[which] gives access */
		at = which * (EACH / PIECE) + at % (EACH / PIECE);
		if (dice == 2)
			key = live[which] ^ (1 + rnd() % 255);
		else
			key = live[which] + ((rnd() % 64) - 32) * 256 + rnd() % 4;
	}
	if (!is_live(key))
		attack(key, at);
}

static void visit(void)
{
	struct order o;
	uint32_t i;

	do {
		hear(&o, sizeof(o));
		if (o.kind == REPLAY)
			hear(replayed, o.count * sizeof(*replayed));
		for (i = 0; i < o.count; i++) {
			if (o.kind == GUESS)
				guess();
			else if (o.kind == REPLAY)
				attack(replayed[i], i % LIVE * (EACH / PIECE));
			else
				post(door.key, door.addr, &o.value, sizeof(o.value));
		}
		tell(&i, sizeof(i));
	} while (o.kind != BYE);
	ktap_ok("wrong keys");
	exit(ktap_end());
}

int main(int argc, char **argv)
{
	uint32_t qpn;
	int letter;

	program = "keys";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "d:g:p:n:r:f:w:")) != -1)
		switch (letter) {
		case 'n':
			guesses = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			rnd_state = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			old_file = optarg;
			break;
		case 'w':
			new_file = optarg;
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: keys [-d DEVICE] [-g GID-INDEX] [-p PORT] [-n GUESSES]\n"
			      "            [-r SEED] [-f OLD-KEYS] [-w KEYS] [HOST]\n", stderr);
			return 2;
		}
	peer_host = optind < argc ? argv[optind] : NULL;
	sock_open();
	open_device();
	cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	must(cq);
	replayed = calloc(OLD + 4 * LIVE, sizeof(*replayed));
	must(replayed);
	/* connected to itself, for binds */
	spare = qp_make(IBV_QPT_RC, cq, cq, 4, 1);
	qp_init(spare);
	qp_connect(spare, spare->qp_num, 1, 1);
	if (!peer_host) {
		arena = mmap(BASE, ARENA, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		must(arena == BASE);
		memset(arena, GUARD_BYTE, ARENA);
		register_all();
		control = pages(EACH);
		control_mr = ibv_reg_mr(pd, (void *)control, EACH,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		must(control_mr);
		door.addr = (uintptr_t)control;
		door.key = control_mr->rkey;
	}
	say_hello();
	qp = qp_make(IBV_QPT_UC, cq, cq, DEPTH, 1);
	qp_init(qp);
	exchange(&qp->qp_num, &qpn, sizeof(qpn));
	qp_connect(qp, qpn, 1, 1);
	if (!peer_host) {
		meet(1);
		tell(&nlive, sizeof(nlive));
		tell(live, sizeof(live));
		tell(&door, sizeof(door));
		own();
	}
	meet(1);
	hear(&nlive, sizeof(nlive));
	hear(live, sizeof(live));
	hear(&door, sizeof(door));
	visit();
}
