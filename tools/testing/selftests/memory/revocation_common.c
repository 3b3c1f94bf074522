// SPDX-License-Identifier: GPL-2.0
/* revocation.h describes these functions. */
#define _GNU_SOURCE
#include "revocation.h"

static const char * const mode_names[MODES] = {
	"type1", "type2", "send_inv", "dereg", "rereg"
};

struct options opt = { .modes = 1, .writes = true, .rounds = 1000, .size = 65536, .lanes = 8, .all_cpus = true };

/* ---- options ---- */

__attribute__((noreturn))
static void usage(int status)
{
	fputs("usage: revocation [options] [HOST]\n"
	      "  -d DEVICE  -g GID-INDEX  -p TCP-PORT\n"
	      "  -m type1|type2|send_inv|dereg|rereg|all   how keys are invalidated (type1)\n"
	      "  -R          the peer reads, instead of writing\n"
	      "  -B          the peer writes, and in a second test reads\n"
	      "  -n N        invalidations in total (1000)\n"
	      "  -s BYTES    of each message (65536)\n"
	      "  -q N        queue pairs, each with its key (8)\n"
	      "  -r SEED     of the random numbers\n"
	      "  -c          let the scheduler choose the CPU of the owner\n"
	      "  -x          take the memory too early, which the test must detect\n",
	      status ? stderr : stdout);
	exit(status);
}

void parse(int argc, char **argv)
{
	int letter, i;

	while ((letter = getopt(argc, argv, "d:g:p:m:RBn:s:q:r:cxh")) != -1)
		switch (letter) {
		case 'm':
			for (i = 0; i < MODES && strcmp(optarg, mode_names[i]); i++)
				;
			opt.modes = 1 << i;
			if (!strcmp(optarg, "all"))
				opt.modes--;
			else if (i == MODES)
				usage(2);
			break;
		case 'B':
			opt.reads = true;
			break;
		case 'R':
			opt.reads = true;
			opt.writes = false;
			break;
		case 'n':
			opt.rounds = strtoul(optarg, NULL, 0);
			break;
		case 's':
			opt.size = strtoul(optarg, NULL, 0);
			break;
		case 'q':
			opt.lanes = atoi(optarg);
			break;
		case 'r':
			mine.seed = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			opt.all_cpus = false;
			break;
		case 'x':
			opt.early = true;
			break;
		default:
			if (peer_option(letter))
				break;
			usage(letter == 'h' ? 0 : 2);
		}
	if (optind < argc)
		peer_host = argv[optind++];
	if (optind < argc || !opt.lanes || opt.rounds < opt.lanes || !opt.size ||
	    opt.size > 1u << 28)
		usage(2);
}

/* ---- data ---- */

struct lane *lanes;
uint64_t span = 4000000;
struct ibv_qp *control, *spare;
struct ibv_cq *control_cq, *work_cq, *inv_cq;
uint8_t *inbox;
struct ibv_mr *inbox_mr;
struct totals ours, other;
size_t half_size;
uint32_t done_lanes, shown;
bool stopped;
bool rxe;

uint32_t psn(bool of_owner, uint32_t lane, uint32_t round)
{
	return mix(mine.seed + ((uint64_t)lane << 33 | round * 2ULL | of_owner)) & 0xffffff;
}

void violation(const char *what, uint32_t l, long at, uint8_t byte)
{
	ours.seen++;
	if (shown++ < SHOWN)
		printf("# lane %u round %u: %s: byte %ld of %u is %02x\n", l, lanes[l].round, what,
		       at, opt.size, byte);
}

/* ---- control messages ---- */

void post_inbox(uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)inbox + i * 64, 64, inbox_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	verb(ibv_post_recv(control, &wr, &bad));
}

void say(const struct message *m)
{
	struct ibv_sge sge = { (uintptr_t)m, sizeof(*m), 0 };
	struct ibv_send_wr wr = { .wr_id = CONTROL, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;

	verb(ibv_post_send(control, &wr, &bad));
}

bool next_message(struct message *m)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(control_cq, 1, &wc) == 1) {
		if (wc.status)
			die("control: %s", ibv_wc_status_str(wc.status));
		if (wc.opcode != IBV_WC_RECV)
			continue;
		memcpy(m, inbox + wc.wr_id * 64, sizeof(*m));
		post_inbox(wc.wr_id);
		return true;
	}
	return false;
}

/* ---- the end ---- */

int verdict(double seconds)
{
	const struct totals *owner = peer_host ? &other : &ours;
	const struct totals *peer = peer_host ? &ours : &other;
	uint64_t middle = opt.reads ? peer->middle : owner->middle;
	uint64_t seen = owner->seen + peer->seen;
	const char *bad = NULL;
	char name[128];

	snprintf(name, sizeof(name), "%s, %s of %u bytes%s", mode_names[opt.mode],
		 opt.reads ? "reads" : "writes", opt.size,
		 opt.early ? ", memory taken too early" : "");
	printf("# %" PRIu64 " invalidations, %" PRIu64 " caught a message in the middle, %" PRIu64
	       " with bytes after the completion; %" PRIu64 " refused, %" PRIu64
	       " wrong statuses, %" PRIu64 " too early; %" PRIu64 " whole messages, %" PRIu64
	       " torn, %" PRIu64 " bytes compared, %.0f us a round\n", owner->rounds, middle, seen,
	       peer->refused, peer->wrong_status, owner->spurious, peer->messages, peer->torn,
	       owner->bytes + peer->bytes,
	       seconds * 1e6 / (owner->rounds ?: 1));
	if (opt.early && !seen)
		bad = "memory was taken too early, but the test did not detect it";
	else if (!opt.early && seen)
		bad = "bytes moved through a key after its invalidation had completed";
	else if (peer->refused + peer->wrong_status < owner->rounds)
		bad = "invalidations without an error of the peer";
	else if (owner->spurious)
		bad = "errors of the peer while the key was open";
	else if (owner->flushed)
		bad = "invalidations that did not succeed";
	else if (peer->wrong_status)
		bad = "errors of the peer that are no remote access errors";
	else if (!opt.early && peer->torn)
		bad = "READs returned bytes that were never in the memory";
	/* not with SEND_INV: the peer's SEND follows its messages, and rarely interrupts one */
	else if (!opt.early && !middle && opt.size >= 4096 && opt.mode != SEND_INV &&
		 (!opt.reads || owner->rounds >= 200))
		bad = "no invalidation caught a message in the middle";
	if (bad)
		ktap_notok(bad, "%s", name);
	else
		ktap_ok("%s", name);
	return ktap_end();
}
