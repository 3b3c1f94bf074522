// SPDX-License-Identifier: GPL-2.0
/*
 * history: registers and invalidates regions and windows in random order, from several processes,
 * some of which are killed.
 *
 *   peers: history -S [options]          owners: history [options] HOST
 *
 * Each owner has a model of its objects: which key gives access to which bytes, and with which
 * rights. A step registers, deregisters, binds or invalidates, or lets the peer execute a SEND with
 * Invalidate, or a WRITE, READ or FETCH_ADD with a valid, old or unknown key. The model predicts
 * the result. After every WRITE, READ and FETCH_ADD the owner compares its whole memory with the
 * model's. The peer is a process that a listener forks for each owner, and that executes commands
 * from a socket. Options: see main().
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "history.h"

static struct {
	bool serve;
	uint32_t workers, kill_ms;
	uint64_t steps;
} opt = { .workers = 8, .steps = 20000, .kill_ms = 1000 };

/* Shared by all processes of the owners */
static struct {
	uint64_t steps, kinds[KINDS], refused[KINDS], kills, moved;
	bool failed;
} *shared;

/* ---- the model ---- */

#define REGIONS		6
#define WINDOWS		6
#define OLD_KEYS	64

struct region {
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	int access;
	uint64_t at, len;	/* offset in @memory */
	uint32_t windows;
};

struct window {
	struct ibv_mw *mw;
	bool type2;
	struct region *region;	/* the region to which it is bound, or NULL */
	int access;
	uint64_t at, len;
};

static uint8_t memory[SIZE] __attribute__((aligned(4096)));
static uint8_t model[SIZE];
static struct region regions[REGIONS];
static struct window windows[WINDOWS];
static uint32_t old_keys[OLD_KEYS], nold;
static struct ibv_pd *other_pd;
static struct ibv_qp *qp;
static struct ibv_cq *cq, *recv_cq;
static uint32_t peer_qpn;
static bool nhca;
static uint64_t step;

static const char * const kind_names[KINDS] = {
	"register", "deregister", "re-register", "allocate a window", "free a window", "bind",
	"invalidate", "SEND with invalidate", "WRITE", "READ", "FETCH_ADD"
};

static void outcome(enum kind kind, bool worked)
{
	__atomic_add_fetch(&shared->kinds[kind], 1, __ATOMIC_RELAXED);
	if (!worked)
		__atomic_add_fetch(&shared->refused[kind], 1, __ATOMIC_RELAXED);
}

static bool chance(unsigned int percent)
{
	return rnd() % 100 < percent;
}

static void key_dies(uint32_t key)
{
	old_keys[nold++ % OLD_KEYS] = key;
}

/*
 * Forget an old key, because a new object has the same number, so the key is valid again. The
 * number is the same by chance, or because the owner chose it.
 */
static void key_lives(uint32_t key)
{
	for (uint32_t i = 0; i < OLD_KEYS; i++)
		if (old_keys[i] == key)
			old_keys[i] = 0;
}

static struct region *any_region(bool made)
{
	uint32_t first = rnd();

	for (uint32_t i = 0; i < REGIONS; i++) {
		struct region *r = &regions[(first + i) % REGIONS];

		if (!!r->mr == made)
			return r;
	}
	return NULL;
}

static struct window *any_window(bool made)
{
	uint32_t first = rnd();

	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct window *w = &windows[(first + i) % WINDOWS];

		if (!!w->mw == made)
			return w;
	}
	return NULL;
}

static int some_access(void)
{
	static const int rights[] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
				      IBV_ACCESS_REMOTE_ATOMIC };
	int access = 0;

	for (int i = 0; i < 3; i++)
		access |= chance(70) ? rights[i] : 0;
	return access;
}

static bool writing(int access)
{
	return access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

static void some_range(uint64_t whole, uint64_t *at, uint64_t *len)
{
	*len = 1 + rnd() % (chance(50) ? whole : whole < 64 ? whole : 64);
	*at = rnd() % (whole - *len + 1);
}

/* ---- the connection ---- */

static void call(struct command *c, struct reply *r)
{
	tell(c, sizeof(*c));
	hear(r, sizeof(*r));
}

static void again(void)
{
	struct command c = { .kind = CONNECT, .qpn = qp->qp_num, .psn = rnd() & 0xffffff,
			     .peer_psn = rnd() & 0xffffff };
	struct reply r;
	struct ibv_wc wc;

	qp_again(qp);
	while (ibv_poll_cq(cq, 1, &wc) || ibv_poll_cq(recv_cq, 1, &wc))
		;
	qp_connect(qp, peer_qpn, c.peer_psn, c.psn);
	call(&c, &r);
}

static enum ibv_wc_status finish(const char *what)
{
	struct ibv_wc wc = wait_wc(cq, what);

	return wc.status;
}

/* Check the result of a request, and reconnect after an error. */
static void judge(enum kind kind, enum ibv_wc_status got, bool may, enum ibv_wc_status refusal,
		  const char *why)
{
	outcome(kind, may);
	if (may ? got : nhca ? got != refusal : !got)
		die("step %" PRIu64 ": %s (%s): %s", step, kind_names[kind], why,
		    ibv_wc_status_str(got));
	if (got)
		again();
}

static void compare(const char *what)
{
	long i;

	if (!memcmp(memory, model, SIZE))
		return;
	for (i = 0; memory[i] == model[i]; i++)
		;
	die("step %" PRIu64 ": after %s byte %ld is %02x, not %02x", step, what, i, memory[i],
	    model[i]);
}

/* ---- steps of the owner ---- */

static void do_reg(void)
{
	struct region *r = any_region(false);
	int access = some_access() | (chance(90) ? IBV_ACCESS_LOCAL_WRITE : 0) |
		     (chance(60) ? IBV_ACCESS_MW_BIND : 0);
	bool may = !writing(access) || access & IBV_ACCESS_LOCAL_WRITE;

	if (!r)
		return;
	some_range(SIZE, &r->at, &r->len);
	r->pd = chance(90) ? pd : other_pd;
	r->access = access;
	r->windows = 0;
	errno = 0;
	r->mr = ibv_reg_mr(r->pd, memory + r->at, r->len, access);
	outcome(REG, may);
	if (may ? !r->mr : r->mr || errno != EINVAL)
		die("step %" PRIu64 ": ibv_reg_mr with rights %x: %s", step, access,
		    strerror(errno));
	if (r->mr)
		key_lives(r->mr->rkey);
}

static void do_dereg(void)
{
	struct region *r = any_region(true);
	uint32_t key;
	int err;

	if (!r)
		return;
	key = r->mr->rkey;
	err = ibv_dereg_mr(r->mr);
	outcome(DEREG, !r->windows);
	if (r->windows ? err != EBUSY && nhca : err)
		die("step %" PRIu64 ": ibv_dereg_mr with %u windows: %s", step, r->windows,
		    strerror(err));
	if (err)
		return;
	key_dies(key);
	r->mr = NULL;
}

static void do_rereg(void)
{
	struct region *r = any_region(true);
	int access = some_access() | (chance(90) ? IBV_ACCESS_LOCAL_WRITE : 0) |
		     (chance(60) ? IBV_ACCESS_MW_BIND : 0);
	bool move = chance(40), rights = !move || chance(50), may;
	uint64_t at = 0, len = 0;
	uint32_t key;
	int err;

	if (!r || !nhca)
		return;
	key = r->mr->rkey;
	if (move)
		some_range(SIZE, &at, &len);
	may = !r->windows && (!rights || !writing(access) || access & IBV_ACCESS_LOCAL_WRITE);
	errno = 0;
	err = ibv_rereg_mr(r->mr, (move ? IBV_REREG_MR_CHANGE_TRANSLATION : 0) |
			   (rights ? IBV_REREG_MR_CHANGE_ACCESS : 0), pd,
			   move ? memory + at : NULL, len, rights ? access : 0);
	outcome(REREG, may);
	if (may ? err : !err || (errno != EBUSY && errno != EINVAL))
		die("step %" PRIu64 ": ibv_rereg_mr with %u windows, rights %x: %d, %s", step,
		    r->windows, access, err, strerror(errno));
	if (err)
		return;
	if (move) {
		r->at = at;
		r->len = len;
	}
	if (rights)
		r->access = access;
	if (r->mr->rkey != key)
		key_dies(key);
	key_lives(r->mr->rkey);
}

static void do_alloc(void)
{
	struct window *w = any_window(false);

	if (!w)
		return;
	w->type2 = chance(60);
	w->region = NULL;
	w->mw = ibv_alloc_mw(pd, w->type2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	if (!w->mw)
		die("step %" PRIu64 ": ibv_alloc_mw: %s", step, strerror(errno));
	outcome(ALLOC, true);
	key_dies(w->mw->rkey);
}

static void closed(struct window *w)
{
	if (w->region)
		w->region->windows--;
	w->region = NULL;
	key_dies(w->mw->rkey);
}

static void do_free(void)
{
	struct window *w = any_window(true);
	int err;

	if (!w)
		return;
	closed(w);
	err = ibv_dealloc_mw(w->mw);
	if (err)
		die("step %" PRIu64 ": ibv_dealloc_mw: %s", step, strerror(err));
	outcome(FREE, true);
	w->mw = NULL;
}

static enum ibv_wc_status bind_it(struct window *w, struct ibv_mw_bind_info info, uint32_t *key)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { w->mw, ibv_inc_rkey(w->mw->rkey), info } }, *bad;
	enum ibv_wc_status status;
	uint32_t old = w->mw->rkey;

	if (w->type2) {
		*key = wr.bind_mw.rkey;
		verb(ibv_post_send(qp, &wr, &bad));
		return finish("bind, type 2");
	}
	verb(ibv_bind_mw(qp, w->mw, &bind));
	status = finish("bind, type 1");
	*key = w->mw->rkey;
	/* ibv_bind_mw() has set the new key; do_bind() sets it again if the bind succeeded */
	w->mw->rkey = old;
	return status;
}

static void do_bind(void)
{
	struct window *w = any_window(true);
	struct region *r = any_region(true);
	struct ibv_mw_bind_info info = {};
	enum ibv_wc_status status;
	uint64_t at, len;
	uint32_t key;
	bool may;

	/*
	 * Across protection domains, test only type 2 binds, and only on nhca: libibverbs refuses
	 * type 1 binds, and rdma_rxe accepts type 2 binds.
	 */
	if (!w || !r || (r->pd != pd && !(w->type2 && nhca)))
		return;
	some_range(r->len, &at, &len);
	at += r->at;
	if (chance(3))
		len = r->at + r->len - at + 1;
	info = (struct ibv_mw_bind_info){ r->mr, (uintptr_t)memory + at, len, some_access() };
	may = r->pd == pd && r->access & IBV_ACCESS_MW_BIND && at + len <= r->at + r->len &&
	      (!writing(info.mw_access_flags) || r->access & IBV_ACCESS_LOCAL_WRITE) &&
	      (!w->type2 || !w->region);
	/* close the window: bind it to no bytes */
	if (!w->type2 && w->region && chance(20)) {
		info.addr = 0;
		info.length = 0;
		info.mr = nhca ? NULL : r->mr;
		info.mw_access_flags = 0;
		may = true;
	}
	status = bind_it(w, info, &key);
	if (!status) {
		closed(w);
		w->mw->rkey = key;
		if (info.length) {
			w->region = r;
			w->at = at;
			w->len = len;
			w->access = info.mw_access_flags;
			r->windows++;
			key_lives(key);
		} else {
			key_dies(key);
		}
	}
	judge(BIND, status, may, IBV_WC_MW_BIND_ERR, w->type2 ? "type 2" : "type 1");
}

static void do_inv(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct window *w = any_window(true);
	struct ibv_send_wr *bad;
	enum ibv_wc_status status;
	bool may;

	/*
	 * LOCAL_INV of a window that is of type 1, or not bound, must fail: test it seldom, and
	 * never on rdma_rxe, which crashes
	 */
	if (!w || (!(w->type2 && w->region) && (!nhca || chance(80))))
		return;
	may = w->type2 && w->region;
	wr.invalidate_rkey = w->mw->rkey;
	if (nhca && chance(5)) {
		/* an unused or old key */
		wr.invalidate_rkey = old_keys[rnd() % OLD_KEYS];
		may = false;
	}
	verb(ibv_post_send(qp, &wr, &bad));
	status = finish("LOCAL_INV");
	if (may && !status)
		closed(w);
	judge(INV, status, may, IBV_WC_MW_BIND_ERR, "LOCAL_INV");
}

static void do_send_inv(void)
{
	struct command c = { .kind = SEND_INV };
	struct ibv_recv_wr wr = {}, *bad;
	struct window *w = any_window(true);
	struct reply r;
	struct ibv_wc wc;
	bool may;

	if (!w || (!(w->type2 && w->region) && (!nhca || chance(80))))
		return;
	may = w->type2 && w->region;
	c.key = w->mw->rkey;
	verb(ibv_post_recv(qp, &wr, &bad));
	call(&c, &r);
	if (may && !r.status) {
		wc = wait_wc(recv_cq, "SEND with invalidate");
		if (wc.status || wc.invalidated_rkey != c.key ||
		    (nhca && !(wc.wc_flags & IBV_WC_WITH_INV)))
			die("step %" PRIu64 ": SEND with invalidate: %s, key %x, not %x", step,
			    ibv_wc_status_str(wc.status), wc.invalidated_rkey, c.key);
		closed(w);
	}
	judge(SEND_INV, r.status, may, IBV_WC_REM_ACCESS_ERR, "SEND with invalidate");
}

/* ---- steps of the peer ---- */

struct target {
	uint32_t key;
	uint64_t at, len;
	int access;
	const char *what;
};

/*
 * Return: a key, and the bytes and rights to which it gives access.  A key that is old or unknown,
 * or belongs to another protection domain, gives no rights.
 */
static struct target some_key(void)
{
	uint32_t dice = rnd() % 100;
	struct window *w;
	struct region *r;

	if (dice < 50) {
		w = any_window(true);
		if (w && w->region)
			return (struct target){ w->mw->rkey, w->at, w->len, w->access, "a window" };
	}
	if (dice < 92) {
		r = any_region(true);
		if (r && r->pd == pd)
			return (struct target){ r->mr->rkey, r->at, r->len, r->access, "a region" };
		if (r)
			return (struct target){ r->mr->rkey, r->at, r->len, 0,
						"a region of another domain" };
	}
	return (struct target){ old_keys[rnd() % OLD_KEYS], 0, SIZE, 0, "an old key" };
}

static void do_access(enum kind kind)
{
	static const int rights[] = { [WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[READ] = IBV_ACCESS_REMOTE_READ, [ADD] = IBV_ACCESS_REMOTE_ATOMIC };
	struct target t = some_key();
	struct command c = { .kind = kind, .key = t.key, .seed = rnd() };
	bool may = t.access & rights[kind];
	uint64_t at, len, value;
	struct reply r;

	/* an access that is refused costs a new connection, so skip most of them */
	if (!may && chance(70))
		return;
	some_range(t.len, &at, &len);
	at += t.at;
	if (kind == ADD) {
		len = 8;
		at = (at + 7) & ~7ULL;
	} else if (chance(2)) {
		len = t.at + t.len - at + 1;
	}
	/*
	 * test accesses beyond the end only on nhca: a key of a window of rdma_rxe opens the whole
	 * region
	 */
	if (!nhca && at + len > t.at + t.len)
		return;
	may = may && at + len <= t.at + t.len;
	c.addr = (uintptr_t)memory + at;
	c.len = len;
	call(&c, &r);
	if (may && !r.status) {
		__atomic_add_fetch(&shared->moved, len, __ATOMIC_RELAXED);
		if (kind == WRITE)
			pattern(model + at, len, c.seed);
		if (kind == READ && r.hash != hash(model + at, len))
			die("step %" PRIu64 ": READ of %" PRIu64 " bytes returned others", step,
			    len);
		if (kind == ADD) {
			memcpy(&value, model + at, 8);
			if (r.hash != value)
				die("step %" PRIu64 ": FETCH_ADD returned another one", step);
			value += c.seed;
			memcpy(model + at, &value, 8);
		}
	}
	judge(kind, r.status, may, IBV_WC_REM_ACCESS_ERR, t.what);
	compare(kind_names[kind]);
}

static void one_step(void)
{
	uint32_t dice = rnd() % 100;

	if (dice < 9)
		do_reg();
	else if (dice < 15)
		do_dereg();
	else if (dice < 20)
		do_rereg();
	else if (dice < 26)
		do_alloc();
	else if (dice < 29)
		do_free();
	else if (dice < 47)
		do_bind();
	else if (dice < 53)
		do_inv();
	else if (dice < 57)
		do_send_inv();
	else
		do_access(dice < 75 ? WRITE : dice < 92 ? READ : ADD);
}

static void work(uint64_t seed)
{
	struct command c = { .kind = BYE };
	long pinned;

	rnd_state = mix(seed);
	sock_open();
	open_device();
	nhca = !strncmp(ibv_get_device_name(context->device), "nhca", 4);
	say_hello();
	other_pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	recv_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	must(other_pd && cq && recv_cq);
	qp = qp_make(IBV_QPT_RC, cq, recv_cq, 8, 8);
	hear(&peer_qpn, sizeof(peer_qpn));
	again();
	pinned = pinned_kb();
	while (__atomic_add_fetch(&shared->steps, 1, __ATOMIC_RELAXED) <= opt.steps) {
		one_step();
		step++;
	}
	for (uint32_t i = 0; i < WINDOWS; i++)
		if (windows[i].mw)
			verb(ibv_dealloc_mw(windows[i].mw));
	for (uint32_t i = 0; i < REGIONS; i++)
		if (regions[i].mr)
			verb(ibv_dereg_mr(regions[i].mr));
	if (pinned_kb() != pinned)
		die("%ld kB are still pinned", pinned_kb() - pinned);
	verb(ibv_destroy_qp(qp));
	verb(ibv_dealloc_pd(other_pd));
	tell(&c, sizeof(c));
}

/* ---- processes ---- */

static pid_t start_worker(uint64_t seed)
{
	pid_t parent = getpid(), pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	work(seed);
	exit(0);
}

static int manage(void)
{
	uint64_t seed = rnd_state * 1000, due = now_ns() + 1000000ULL * opt.kill_ms;
	uint32_t alive = 0;
	pid_t pids[64] = {}, pid;
	bool good = true;
	int status;

	for (uint32_t i = 0; i < opt.workers; i++, alive++)
		pids[i] = start_worker(++seed);
	while (alive) {
		pid = waitpid(-1, &status, WNOHANG);
		for (uint32_t i = 0; pid > 0 && i < opt.workers; i++) {
			if (pids[i] != pid)
				continue;
			alive--;
			pids[i] = 0;
			if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
				shared->kills++;
				pids[i] = start_worker(++seed);
				alive++;
			} else if (status) {
				good = false;
				shared->steps = opt.steps;
			}
		}
		if (opt.kill_ms && now_ns() > due && shared->steps < opt.steps) {
			due = now_ns() + 1000000ULL * opt.kill_ms;
			pid = pids[rnd() % opt.workers];
			if (pid)
				kill(pid, SIGKILL);
		}
		usleep(2000);
	}
	for (int i = 0; i < KINDS; i++)
		printf("# %s: %" PRIu64 ", of which refused, as they must be: %" PRIu64 "\n",
		       kind_names[i], shared->kinds[i], shared->refused[i]);
	printf("# %u processes, %" PRIu64 " steps, %" PRIu64 " bytes moved, %" PRIu64 " killed\n",
	       opt.workers, opt.steps, shared->moved, shared->kills);
	if (!good)
		ktap_notok("see above", "%u processes, %" PRIu64 " steps", opt.workers, opt.steps);
	else if (opt.kill_ms && !shared->kills && opt.steps >= 20000)
		ktap_notok("no process was killed", "%u processes, %" PRIu64 " steps", opt.workers,
			   opt.steps);
	else
		ktap_ok("%u processes, %" PRIu64 " steps", opt.workers, opt.steps);
	return ktap_end();
}

int main(int argc, char **argv)
{
	int letter;

	program = "history";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "d:g:p:SP:n:k:r:")) != -1)
		switch (letter) {
		case 'S':
			opt.serve = true;
			break;
		case 'P':
			opt.workers = atoi(optarg);
			break;
		case 'n':
			opt.steps = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			opt.kill_ms = atoi(optarg);
			break;
		case 'r':
			rnd_state = strtoull(optarg, NULL, 0);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: history [-S] [-d DEVICE] [-g GID-INDEX] [-p PORT]\n"
			      "               [-P PROCESSES] [-n STEPS] [-k MS-BETWEEN-KILLS]\n"
			      "               [-r SEED] [HOST]\n",
			      stderr);
			return 2;
		}
	if (opt.serve)
		return serve();
	if (optind >= argc || !opt.workers || opt.workers > 64)
		return 2;
	peer_host = argv[optind];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED);
	return manage();
}
