// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A cache of registrations (reference: lazy deregistration).
 *
 * A registration stays when nobody uses it any more.  The next call for memory inside a
 * registration finds the registration by the address of the memory.  One load of the word that the
 * kernel maintains says if the address still maps the same pages.  Registrations without users are
 * dropped in the order of their last use: when the cache is full, when the limit of pinned memory
 * is reached, and when they were idle for nhcadv_reg_cache_attr.idle_ms.
 *
 * The lock of a cache is not held during system calls that register and deregister.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "reg_cache.h"

/* A registration is idle for idle_ms after this number of ticks of the reaper. */
#define IDLE_TICKS	5

/* Maximum of nhca_fragment.wait */
#define MAX_WAIT	1024

#define DEFAULT_IDLE_MS	5000
#define MIN_FRAGMENT	65536

/**
 * struct nhca_reg_cache - the registrations of a protection domain
 * @lock:    protects the members below it, except @pd and @watches
 * @wake:    wakes the reaper, and the thread that waits for the end of the reaper
 * @pd:      the protection domain
 * @watches: the kernel's watches; the kernel serializes calls for the same set
 * @attr:    settings
 * @info:    counters
 * @index:   registrations by address
 * @idle:    struct nhca_reg without users; the first is the least recently used
 * @reaper:  the thread that drops idle registrations is running
 * @stop:    the reaper must end
 * @orphan:  the protection domain is gone, and the end of the last registration frees the cache
 * @nfree:   number of slots in @free
 * @free:    slots without a watch
 */
struct nhca_reg_cache {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct ibv_pd *pd;
	struct nhca_watch_set watches;
	struct nhcadv_reg_cache_attr attr;
	struct nhcadv_reg_cache_info info;
	struct nhca_reg_index index;
	struct list_head idle;
	bool reaper;
	bool stop;
	bool orphan;
	uint32_t nfree;
	uint32_t free[NHCA_WATCH_SLOTS];
};

static struct nhca_reg *to_reg(struct nhcadv_cached_mr *cached)
{
	return container_of(cached, struct nhca_reg, pub);
}

/* ---- registrations that leave the cache ---- */

static void cache_free(struct nhca_reg_cache *cache)
{
	nhca_watch_fini(&cache->watches);
	nhca_index_fini(&cache->index);
	pthread_cond_destroy(&cache->wake);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/*
 * Free the slot and the memory of a registration, without the lock.  The watch ends first, because
 * another thread may use the slot as soon as it is free.
 */
static void reg_free(struct nhca_reg *reg)
{
	struct nhca_reg_cache *cache = reg->cache;
	bool last;

	if (cache) {
		nhca_watch_del(&cache->watches, reg->slot);
		pthread_mutex_lock(&cache->lock);
		cache->free[cache->nfree++] = reg->slot;
		cache->info.bytes -= reg->length;
		last = !--cache->info.entries && cache->orphan;
		pthread_mutex_unlock(&cache->lock);
		if (last)
			cache_free(cache);
	}
	free(reg);
}

/* Deregister, without the lock.  Return: 0 or an errno; @reg is freed also after an error. */
static int destroy(struct nhca_reg *reg)
{
	int ret = ibv_dereg_mr(reg->pub.mr);

	reg_free(reg);
	return ret;
}

/* Destroy the registrations of a list, without the lock.  Return: 0 or an errno. */
static int destroy_all(struct list_head *gone)
{
	struct nhca_reg *reg;
	int ret = 0, err;

	while ((reg = list_pop(gone, struct nhca_reg, lru))) {
		err = destroy(reg);
		ret = ret ?: err;
	}
	return ret;
}

/* Remove a registration from the index.  Without users it moves to @gone. */
static void drop(struct nhca_reg *reg, struct list_head *gone)
{
	nhca_index_del(reg);
	reg->dead = true;
	if (reg->uses)
		return;
	reg->cache->info.idle_bytes -= reg->length;
	list_del(&reg->lru);
	list_add_tail(gone, &reg->lru);
}

/* Enlarge no registration of a fragment for some more misses. */
static void enlarge_later(struct nhca_fragment *f)
{
	f->size = 0;
	f->misses = 0;
	if (f->wait < MAX_WAIT)
		f->wait *= 2;
}

/* Drop a registration whose pages may have changed. */
static void drop_changed(struct nhca_reg *reg, struct list_head *gone)
{
	struct nhca_fragment *f = nhca_index_fragment(&reg->cache->index, reg->start);

	if (reg->whole && f)
		enlarge_later(f);
	reg->cache->info.changed++;
	drop(reg, gone);
}

/* Return: false if there is no registration without users. */
static bool evict(struct nhca_reg_cache *cache, struct list_head *gone)
{
	struct nhca_reg *reg = list_top(&cache->idle, struct nhca_reg, lru);

	if (!reg)
		return false;
	cache->info.evicted++;
	drop(reg, gone);
	return true;
}

/* Make room for @more bytes.  Registrations in @gone still count in info.bytes. */
static void make_room(struct nhca_reg_cache *cache, size_t more, struct list_head *gone)
{
	uint64_t used = cache->info.bytes - cache->info.idle_bytes;
	uint64_t limit = cache->attr.max_bytes;

	/* idle_bytes falls with each eviction */
	while (used + more + cache->info.idle_bytes > limit && evict(cache, gone))
		;
}

/* ---- the reaper ---- */

static void reap(struct nhca_reg_cache *cache, struct list_head *gone)
{
	struct nhca_reg *reg, *next;

	list_for_each_safe(&cache->idle, reg, next, lru) {
		if (!nhca_watch_same(&cache->watches, reg->slot)) {
			drop_changed(reg, gone);
		} else if (++reg->idle > IDLE_TICKS) {
			cache->info.expired++;
			drop(reg, gone);
		}
	}
}

static void wait_tick(struct nhca_reg_cache *cache)
{
	uint64_t ms = cache->attr.idle_ms / IDLE_TICKS ?: 1;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&cache->wake, &cache->lock, &until);
}

/* The thread ends when no registration is idle. */
static void *reaper(void *arg)
{
	struct nhca_reg_cache *cache = arg;
	LIST_HEAD(gone);

	pthread_mutex_lock(&cache->lock);
	while (!cache->stop && !list_empty(&cache->idle)) {
		wait_tick(cache);
		if (cache->stop)
			break;
		reap(cache, &gone);
		pthread_mutex_unlock(&cache->lock);
		destroy_all(&gone);
		pthread_mutex_lock(&cache->lock);
	}
	cache->reaper = false;
	pthread_cond_broadcast(&cache->wake);
	pthread_mutex_unlock(&cache->lock);
	return NULL;
}

/* Return: true if the reaper is running.  The reaper blocks signals, which are for the program. */
static bool start_reaper(struct nhca_reg_cache *cache)
{
	sigset_t all, old;
	pthread_t thread;

	if (cache->reaper)
		return true;
	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &old))
		return false;
	if (!pthread_create(&thread, NULL, reaper, cache)) {
		pthread_detach(thread);
		cache->reaper = true;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return cache->reaper;
}

/* ---- the cache of a protection domain ---- */

static struct nhca_reg_cache *cache_new(struct nhca_pd *pd)
{
	struct nhca_reg_cache *cache = calloc(1, sizeof(*cache));
	pthread_condattr_t monotonic;
	uint32_t i;
	int ret;

	if (!cache)
		return NULL;
	ret = nhca_watch_init(&cache->watches, pd->pd.context);
	if (ret) {
		free(cache);
		errno = ret;
		return NULL;
	}
	pthread_mutex_init(&cache->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&cache->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	cache->pd = &pd->pd;
	cache->attr.max_bytes = nhca_reg_default_bytes();
	cache->attr.idle_ms = DEFAULT_IDLE_MS;
	cache->attr.fragment = NHCA_FRAGMENT_SIZE;
	list_head_init(&cache->idle);
	for (i = 0; i < NHCA_WATCH_SLOTS; i++)
		cache->free[i] = NHCA_WATCH_SLOTS - 1 - i;
	cache->nfree = NHCA_WATCH_SLOTS;
	return cache;
}

/*
 * Find or make the cache of a protection domain.  A parent domain uses the cache of its protection
 * domain.
 * Return: the cache; NULL with errno: there is none, for example because the kernel has no watches.
 */
static struct nhca_reg_cache *cache_of(struct ibv_pd *ibpd)
{
	struct nhca_reg_cache *cache, *other = NULL;
	struct nhca_pd *pd;

	if (!nhca_is_device(ibpd->context->device) ||
	    !(to_nctx(ibpd->context)->features & NHCA_FEATURE_WATCH)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = to_npd(ibpd)->of ?: to_npd(ibpd);
	cache = atomic_load(&pd->cache);
	if (cache)
		return cache;
	cache = cache_new(pd);
	if (!cache || atomic_compare_exchange_strong(&pd->cache, &other, cache))
		return cache;
	/* Another thread has made the cache at the same time. */
	cache_free(cache);
	return other;
}

/* Return: the cache of @pd; NULL: none, or this process is a child of the one that made it */
static struct nhca_reg_cache *cache_to_free(struct nhca_pd *pd)
{
	struct nhca_reg_cache *cache = atomic_load(&pd->cache);

	/* In a child of fork() a thread of the parent may hold the lock. */
	return cache && nhca_watch_mine(&cache->watches) ? cache : NULL;
}

/* Stop the reaper, and drop the registrations without users.  The caller holds the lock. */
static void drop_idle(struct nhca_reg_cache *cache, struct list_head *gone)
{
	cache->stop = true;
	pthread_cond_broadcast(&cache->wake);
	while (cache->reaper)
		pthread_cond_wait(&cache->wake, &cache->lock);
	cache->stop = false;
	while (evict(cache, gone))
		;
}

int nhca_reg_cache_free(struct nhca_pd *pd)
{
	struct nhca_reg_cache *cache = cache_to_free(pd);
	LIST_HEAD(gone);

	if (!cache)
		return 0;
	pthread_mutex_lock(&cache->lock);
	drop_idle(cache, &gone);
	pthread_mutex_unlock(&cache->lock);
	destroy_all(&gone);
	if (cache->info.entries)
		return EBUSY;
	atomic_store(&pd->cache, NULL);
	cache_free(cache);
	return 0;
}

void nhca_reg_cache_orphan(struct nhca_pd *pd)
{
	struct nhca_reg_cache *cache = cache_to_free(pd);
	LIST_HEAD(gone);
	bool none;

	if (!cache)
		return;
	pthread_mutex_lock(&cache->lock);
	drop_idle(cache, &gone);
	cache->orphan = true;
	/* this includes the registrations in @gone */
	none = !cache->info.entries;
	pthread_mutex_unlock(&cache->lock);
	atomic_store(&pd->cache, NULL);
	if (none)
		cache_free(cache);
	destroy_all(&gone);
}

/* ---- registrations that enter the cache ---- */

/* Return: a registration that its release deregisters; NULL with errno. */
static struct nhcadv_cached_mr *reg_plain(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct nhca_reg *reg = nhca_reg_alloc((uintptr_t)addr, length, access);
	int err;

	if (!reg)
		return NULL;
	reg->pub.mr = ibv_reg_mr(pd, addr, length, access);
	if (!reg->pub.mr) {
		err = errno;
		free(reg);
		errno = err;
		return NULL;
	}
	reg->pub.lkey = reg->pub.mr->lkey;
	return &reg->pub;
}

static void use(struct nhca_reg *reg)
{
	if (!reg->uses++) {
		list_del(&reg->lru);
		reg->cache->info.idle_bytes -= reg->length;
	}
	reg->idle = 0;
}

/* Find a registration whose pages have not changed, and drop those that have. */
static struct nhca_reg *find(struct nhca_reg_cache *cache, uintptr_t addr, size_t length,
			     int access, struct list_head *gone)
{
	struct nhca_reg *reg;

	while ((reg = nhca_index_find(&cache->index, addr, length, access))) {
		if (nhca_watch_same(&cache->watches, reg->slot))
			break;
		drop_changed(reg, gone);
	}
	return reg;
}

/*
 * Register the range of @reg.  If there is no memory, or the process may not pin more memory, drop
 * idle registrations and try again, unless the range was enlarged (@reg->whole).
 */
static struct ibv_mr *reg_range(struct nhca_reg_cache *cache, struct nhca_reg *reg)
{
	LIST_HEAD(gone);
	struct ibv_mr *mr;
	bool more;
	int err;

	for (;;) {
		mr = ibv_reg_mr(cache->pd, (void *)reg->start, reg->length, reg->access);
		err = errno;
		if (mr || reg->whole || (err != ENOMEM && err != EAGAIN))
			break;
		pthread_mutex_lock(&cache->lock);
		more = evict(cache, &gone);
		pthread_mutex_unlock(&cache->lock);
		if (!more)
			break;
		destroy_all(&gone);
	}
	errno = err;
	return mr;
}

/*
 * Watch a range, and then register it.  The registration itself may replace a page, for example the
 * zero page.  So if the word has changed, try once more.  On return, @reg->dead is set if there is
 * no watch or the word has changed again: then no other call may use the registration.
 * Return: 0 or an errno.
 */
static int reg_watched(struct nhca_reg_cache *cache, struct nhca_reg *reg)
{
	int tries;

	for (tries = 0; tries < 2; tries++) {
		if (reg->pub.mr)
			ibv_dereg_mr(reg->pub.mr);
		/* without a watch, for example because of a limit, the registration is used once */
		reg->dead = nhca_watch_add(&cache->watches, reg->slot, reg->start, reg->length);
		reg->pub.mr = reg_range(cache, reg);
		if (!reg->pub.mr)
			return errno;
		if (reg->dead || nhca_watch_same(&cache->watches, reg->slot))
			break;
	}
	reg->dead |= tries == 2;
	reg->pub.lkey = reg->pub.mr->lkey;
	return 0;
}

/* Drop idle registrations that a new one contains. */
static void drop_covered(struct nhca_reg_cache *cache, const struct nhca_reg *by,
			 struct list_head *gone)
{
	struct nhca_reg *reg, *next;

	list_for_each_safe(&cache->idle, reg, next, lru)
		if (reg->start >= by->start && reg->length <= by->length &&
		    reg->start - by->start <= by->length - reg->length &&
		    !(reg->access & ~by->access))
			drop(reg, gone);
}

/* Return: a new registration with one user; NULL with errno. */
static struct nhca_reg *make(struct nhca_reg_cache *cache, uintptr_t start, size_t length,
			     int access, bool whole)
{
	struct nhca_reg *reg = nhca_reg_alloc(start, length, access);
	LIST_HEAD(gone);
	bool room;
	int ret;

	if (!reg)
		return NULL;
	reg->cache = cache;
	reg->whole = whole;
	reg->uses = 1;
	pthread_mutex_lock(&cache->lock);
	make_room(cache, length, &gone);
	if (!cache->nfree && list_empty(&gone))
		evict(cache, &gone);
	pthread_mutex_unlock(&cache->lock);
	destroy_all(&gone);

	pthread_mutex_lock(&cache->lock);
	room = cache->nfree;
	if (room) {
		reg->slot = cache->free[--cache->nfree];
		cache->info.bytes += length;
		cache->info.entries++;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!room) {
		free(reg);
		errno = ENOSPC;
		return NULL;
	}

	ret = reg_watched(cache, reg);
	if (!ret && whole && reg->dead) {
		/* The cache cannot keep the registration, so do not enlarge it. */
		ibv_dereg_mr(reg->pub.mr);
		ret = EAGAIN;
	}
	if (ret) {
		reg_free(reg);
		errno = ret;
		return NULL;
	}
	pthread_mutex_lock(&cache->lock);
	cache->info.registrations++;
	if (!reg->dead && nhca_index_add(&cache->index, reg))
		reg->dead = true;
	if (whole && !reg->dead)
		drop_covered(cache, reg, &gone);
	pthread_mutex_unlock(&cache->lock);
	destroy_all(&gone);
	return reg;
}

/*
 * Decide whether to register the neighbors of a range as well: from the second miss in the fragment
 * on, or later (nhca_fragment.wait).  Do not evict other registrations to register neighbors.
 * Return: size of the aligned block to register; 0: register only the range.
 */
static size_t enlarge(struct nhca_reg_cache *cache, uintptr_t start, size_t length)
{
	size_t size = cache->attr.fragment;
	struct nhca_fragment *f;

	if (!size || !nhca_reg_may_enlarge())
		return 0;
	f = nhca_index_fragment(&cache->index, start);
	if (!f || ++f->misses <= f->wait)
		return 0;
	if (f->size && f->size < size)
		size = f->size;
	if (!nhca_reg_in_block(start, length, size) || cache->info.bytes + size > cache->attr.max_bytes)
		return 0;
	return size;
}

/* A block of @size bytes cannot be registered.  Return: the size to try next; 0: none. */
static size_t shrink(struct nhca_reg_cache *cache, uintptr_t start, size_t length, size_t size)
{
	struct nhca_fragment *f;

	size /= 4;
	if (size < MIN_FRAGMENT || !nhca_reg_in_block(start, length, size))
		size = 0;
	pthread_mutex_lock(&cache->lock);
	f = nhca_index_fragment(&cache->index, start);
	if (f && size)
		f->size = size;
	else if (f)
		enlarge_later(f);
	pthread_mutex_unlock(&cache->lock);
	return size;
}

static struct nhcadv_cached_mr *miss(struct nhca_reg_cache *cache, size_t block, void *addr,
				     size_t length, int access)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
	struct nhca_reg *reg;

	for (; block; block = shrink(cache, start, end - start, block)) {
		reg = make(cache, start & ~(block - 1), block, access, true);
		if (reg)
			return &reg->pub;
	}
	reg = make(cache, start, end - start, access, false);
	if (!reg && errno == ENOSPC)
		return reg_plain(cache->pd, addr, length, access);
	return reg ? &reg->pub : NULL;
}

struct nhcadv_cached_mr *nhcadv_reg_cached(struct ibv_pd *pd, void *addr, size_t length,
					   int access)
{
	struct nhca_reg_cache *cache;
	struct nhca_reg *reg;
	LIST_HEAD(gone);
	size_t block = 0;

	if (!length || (uintptr_t)addr + length < length || (access & ~IBV_ACCESS_LOCAL_WRITE)) {
		errno = EINVAL;
		return NULL;
	}
	cache = cache_of(pd);
	if (!cache || !nhca_watch_mine(&cache->watches))
		return reg_plain(pd, addr, length, access);

	pthread_mutex_lock(&cache->lock);
	reg = find(cache, (uintptr_t)addr, length, access, &gone);
	if (reg) {
		use(reg);
		cache->info.hits++;
	} else {
		cache->info.misses++;
		block = enlarge(cache, (uintptr_t)addr, length);
	}
	pthread_mutex_unlock(&cache->lock);
	destroy_all(&gone);
	return reg ? &reg->pub : miss(cache, block, addr, length, access);
}

int nhcadv_release_cached(struct nhcadv_cached_mr *cached)
{
	struct nhca_reg *reg = to_reg(cached);
	struct nhca_reg_cache *cache = reg->cache;
	LIST_HEAD(gone);

	if (!cache)
		return destroy(reg);
	/* Only the parent may deregister its registration. */
	if (!nhca_watch_mine(&cache->watches))
		return 0;
	pthread_mutex_lock(&cache->lock);
	if (!reg->dead && !nhca_watch_same(&cache->watches, reg->slot))
		drop_changed(reg, &gone);
	if (--reg->uses) {
		reg = NULL;
	} else if (!reg->dead) {
		list_add_tail(&cache->idle, &reg->lru);
		reg->idle = 0;
		cache->info.idle_bytes += reg->length;
		make_room(cache, 0, &gone);
		if (cache->orphan || !start_reaper(cache))
			while (evict(cache, &gone))
				;
		reg = NULL;
	}
	pthread_mutex_unlock(&cache->lock);
	if (reg)
		return destroy(reg);
	return destroy_all(&gone);
}

/* ---- settings and state ---- */

int nhcadv_set_reg_cache(struct ibv_pd *pd, const struct nhcadv_reg_cache_attr *attr)
{
	struct nhca_reg_cache *cache = cache_of(pd);
	LIST_HEAD(gone);

	if (!cache)
		return errno;
	if (!nhca_watch_mine(&cache->watches))
		return EOPNOTSUPP;
	if (attr->comp_mask || !attr->idle_ms || attr->fragment & (attr->fragment - 1) ||
	    attr->fragment > NHCA_FRAGMENT_SIZE ||
	    (attr->fragment && attr->fragment < MIN_FRAGMENT))
		return EINVAL;
	pthread_mutex_lock(&cache->lock);
	cache->attr = *attr;
	make_room(cache, 0, &gone);
	/* The delay of the reaper may have changed: wake it. */
	pthread_cond_broadcast(&cache->wake);
	pthread_mutex_unlock(&cache->lock);
	destroy_all(&gone);
	return 0;
}

int nhcadv_query_reg_cache(struct ibv_pd *pd, struct nhcadv_reg_cache_info *info)
{
	struct nhca_reg_cache *cache = cache_of(pd);

	if (!cache)
		return errno;
	if (!nhca_watch_mine(&cache->watches))
		return EOPNOTSUPP;
	pthread_mutex_lock(&cache->lock);
	*info = cache->info;
	pthread_mutex_unlock(&cache->lock);
	return 0;
}
