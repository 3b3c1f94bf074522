// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the owner of a job, and the PVOs that give access to its memory. A random history
 * registers regions of several jobs, and a loop over all registered regions checks the driver's
 * verdict on each PVO.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <net/net_namespace.h>

#include "../memory/mr.h"

#define JOBS		3
#define REGIONS		12
#define PAGES		4
#define STEPS		60000

/**
 * struct region - a region of the model
 * @mem:  the registered memory; NULL: the region is not registered
 * @job:  job of the registration
 * @offset: offset of the first byte in its page
 * @length: bytes that are registered
 * @access: rights of the registration
 * @hole: index of a page without a TCE; -1: all pages have a TCE
 * @pvo:  PVO of the first byte; kept after deregistration as a stale PVO
 */
struct region {
	struct nhca_job_mem *mem;
	u32 job;
	u32 offset;
	u64 length;
	int access;
	int hole;
	u64 pvo;
};

struct job_fixture {
	struct nhca_job *jobs[JOBS];
	struct page *pages[PAGES];
	struct region regions[REGIONS];
	struct rnd_state rnd;
	u32 verdicts[NHCA_PVO_PAGE + 1];
	u32 crossed;
};

static const int accesses[] = {
	0, IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ, IB_ACCESS_LOCAL_WRITE |
	IB_ACCESS_REMOTE_WRITE, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
	IB_ACCESS_REMOTE_READ,
};

/* access for which a PVO is checked */
static const int asks[] = {
	0, IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE,
};

static u32 draw(struct job_fixture *f, u32 below)
{
	return prandom_u32_state(&f->rnd) % below;
}

static void enter(void)
{
	local_bh_disable();
	nhca_live_enter();
}

static void leave(void)
{
	nhca_live_exit();
	local_bh_enable();
}

static struct job_fixture *job_setup(struct kunit *test)
{
	struct job_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	prandom_seed_state(&f->rnd, 22);
	for (i = 0; i < JOBS; i++) {
		f->jobs[i] = nhca_job_get(&init_net, 100 + i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(f->jobs[i]));
	}
	for (i = 0; i < PAGES; i++) {
		f->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, f->pages[i]);
	}
	return f;
}

static void region_close(struct region *r)
{
	if (r->mem)
		nhca_job_mem_put(r->mem);
	r->mem = NULL;
}

static void job_teardown(struct job_fixture *f)
{
	u32 i;

	for (i = 0; i < REGIONS; i++)
		region_close(&f->regions[i]);
	for (i = 0; i < JOBS; i++)
		nhca_job_put(f->jobs[i]);
	for (i = 0; i < PAGES; i++)
		__free_page(f->pages[i]);
}

static void region_open(struct kunit *test, struct job_fixture *f, struct region *r)
{
	u32 npages = 1 + draw(f, PAGES);

	*r = (struct region) {
		.job = draw(f, JOBS),
		.offset = draw(f, 2) ? draw(f, PAGE_SIZE) : 0,
		.access = accesses[draw(f, ARRAY_SIZE(accesses))],
		.hole = -1,
	};
	r->length = draw(f, 2) ? npages * PAGE_SIZE - r->offset :
				 1 + draw(f, npages * PAGE_SIZE - r->offset);
	r->mem = nhca_job_mem_pages(f->jobs[r->job], f->pages, npages, r->offset, r->length,
				    r->access);
	KUNIT_ASSERT_FALSE(test, IS_ERR(r->mem));
	r->pvo = r->mem->pvo;
	KUNIT_ASSERT_EQ(test, r->pvo & ~PAGE_MASK, r->offset);
	if (!draw(f, 6)) {
		r->hole = draw(f, r->mem->tces.count);
		nhca_range_clear(&r->mem->tces, r->hole, 1);
	}
}

/* Check a PVO: search all regions for its key and table, then look for the hole at each byte. */
static enum nhca_pvo_verdict reference_check(struct job_fixture *f, u32 job, u64 pvo, u32 len,
					     int access, struct nhca_job_mem **mem)
{
	struct region *r;
	u32 i, byte;

	*mem = NULL;
	if (!len)
		return NHCA_PVO_OK;
	for (i = 0; i < REGIONS; i++) {
		r = &f->regions[i];
		/* bits 47 to 63 are the key, bits 42 to 46 the table */
		if (!r->mem || r->pvo >> 47 != pvo >> 47 || (r->pvo >> 42 & 31) != (pvo >> 42 & 31))
			continue;
		if (r->job != job)
			return NHCA_PVO_JOB;
		if (pvo < r->pvo || pvo + len > r->pvo + r->length)
			return NHCA_PVO_RANGE;
		if (access && !(r->access & access))
			return NHCA_PVO_ACCESS;
		for (byte = 0; byte < len; byte++)
			if ((r->offset + (pvo - r->pvo) + byte) / PAGE_SIZE == r->hole)
				return NHCA_PVO_PAGE;
		*mem = r->mem;
		return NHCA_PVO_OK;
	}
	return NHCA_PVO_KEY;
}

/*
 * Check a PVO of a region that is registered or was registered before, with the changes that a
 * faulty peer or an attacker may make to it.
 */
static void step_check(struct kunit *test, struct job_fixture *f)
{
	struct region *r = &f->regions[draw(f, REGIONS)];
	u32 len = draw(f, 3) ? 1 + draw(f, 2 * PAGE_SIZE) : draw(f, 65), job = r->job;
	int access = asks[draw(f, ARRAY_SIZE(asks))];
	struct nhca_job_mem *mem, *want_mem;
	enum nhca_pvo_verdict have, want;
	u64 pvo = r->pvo, at = 0;

	if (!pvo)
		return;
	if (r->length > 1)
		at = draw(f, r->length);
	/* near the end of the region, so that the bytes just fit or exceed it by a few bytes */
	if (!draw(f, 3))
		at = r->length - min_t(u64, r->length, len) + draw(f, 3);
	pvo = nhca_pvo_add(pvo, at);
	KUNIT_ASSERT_EQ(test, pvo, r->pvo + at);
	switch (draw(f, 12)) {
	case 0:		/* another key */
		pvo ^= BIT_ULL(47 + draw(f, 17));
		break;
	case 1:		/* another table */
		pvo ^= BIT_ULL(42 + draw(f, 5));
		break;
	case 2:		/* another offset */
		pvo ^= BIT_ULL(draw(f, 42));
		break;
	case 3:		/* another job */
		job = draw(f, JOBS);
		break;
	case 4:		/* before the region */
		pvo = r->pvo - 1;
		break;
	}
	want = reference_check(f, job, pvo, len, access, &want_mem);
	enter();
	have = nhca_pvo_check(f->jobs[job], pvo, len, access, &mem);
	leave();
	KUNIT_ASSERT_EQ_MSG(test, have, want, "pvo %llx (region at %llx of %llu bytes) len %u", pvo,
			    r->pvo, r->length, len);
	KUNIT_ASSERT_PTR_EQ(test, mem, want_mem);
	f->verdicts[want]++;
	f->crossed += !want && len && (pvo ^ (pvo + len - 1)) >> PAGE_SHIFT;
}

/* In a random history of registrations, the driver's verdict on each PVO agrees with the model. */
static void job_pvo_history(struct kunit *test)
{
	struct job_fixture *f = job_setup(test);
	struct region *r;
	u32 step, i;

	for (step = 0; step < STEPS; step++) {
		if (draw(f, 40)) {
			step_check(test, f);
			continue;
		}
		r = &f->regions[draw(f, REGIONS)];
		if (r->mem)
			region_close(r);
		else
			region_open(test, f, r);
	}
	for (i = 0; i < ARRAY_SIZE(f->verdicts); i++)
		KUNIT_EXPECT_GT_MSG(test, f->verdicts[i], 100, "too few of verdict %u", i);
	KUNIT_EXPECT_GT(test, f->crossed, 500);
	job_teardown(f);
}

/*
 * Two regions never have the same name (the key and table of their PVOs), even if the key that the
 * table would use next still belongs to another region.
 */
static void job_mem_names_differ(struct kunit *test)
{
	struct job_fixture *f = job_setup(test);
	struct nhca_job_mem *a, *b;
	struct nhca_range r;
	u32 name, first, i;

	a = nhca_job_mem_pages(f->jobs[0], f->pages, 1, 0, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	name = nhca_pvo_name(a->pvo);
	/* use up all keys but the key of @a, so that the key of @a is the next one */
	KUNIT_ASSERT_EQ(test, nhca_range_alloc(&r, PAGE_SHIFT, 1, &a->tces.owner), 0);
	KUNIT_ASSERT_EQ(test, r.table, a->tces.table);
	first = r.key;
	for (i = 0; i < NHCA_TCE_KEYS - 3; i++) {
		nhca_range_rekey(&r);
		KUNIT_ASSERT_NE(test, r.key, a->tces.key);
	}
	b = nhca_job_mem_pages(f->jobs[0], f->pages, 1, 0, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	KUNIT_EXPECT_EQ(test, nhca_pvo_name(a->pvo), name);
	KUNIT_EXPECT_NE(test, nhca_pvo_name(b->pvo), name);
	/* the table has skipped the key of @a, because @a still uses it */
	KUNIT_EXPECT_EQ(test, b->tces.key, first);
	nhca_job_mem_put(a);
	nhca_job_mem_put(b);
	nhca_range_free(&r);
	job_teardown(f);
}

/*
 * Registration refuses impossible sizes, offsets and rights. nhca_pvo_add() returns 0 if the offset
 * would exceed 42 bits.
 */
static void job_mem_bad_arguments(struct kunit *test)
{
	struct job_fixture *f = job_setup(test);
	struct nhca_job *job = f->jobs[0];

	/* no bytes; too many bytes; a start after the first page; rights without local write */
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, f->pages, 1, 0, 0, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, f->pages, 2, 1, 2 * PAGE_SIZE, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, f->pages, 2, PAGE_SIZE, 1, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, f->pages, 1, 0, 1,
						     IB_ACCESS_REMOTE_WRITE), ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, f->pages, 1, 0, 1,
						     IB_ACCESS_REMOTE_ATOMIC), ERR_PTR(-EINVAL));
	KUNIT_EXPECT_EQ(test, nhca_pvo_add(NHCA_PVO_OFFSET_MASK, 1), 0);
	KUNIT_EXPECT_EQ(test, nhca_pvo_add(5ULL << 47, NHCA_PVO_OFFSET_MASK),
			5ULL << 47 | NHCA_PVO_OFFSET_MASK);
	KUNIT_EXPECT_EQ(test, nhca_pvo_add(5ULL << 47 | 1, NHCA_PVO_OFFSET_MASK), 0);
	job_teardown(f);
}

/*
 * An iterator writes and reads the bytes of the registered pages, and no bytes outside the region.
 */
static void job_mem_bytes(struct kunit *test)
{
	struct job_fixture *f = job_setup(test);
	u8 *in = kunit_kmalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	u8 *out = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	const int rw = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	struct nhca_job_mem *mem;
	struct nhca_iter it;
	u32 i, off;

	KUNIT_ASSERT_TRUE(test, in && out);
	prandom_bytes_state(&f->rnd, in, 2 * PAGE_SIZE);
	mem = nhca_job_mem_pages(f->jobs[1], f->pages, 3, 100, 2 * PAGE_SIZE, rw);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mem));

	enter();
	nhca_iter_pvo(&it, f->jobs[1], mem->pvo, 2 * PAGE_SIZE, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, in, 2 * PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, in, 1), -ENODATA);
	nhca_iter_pvo(&it, f->jobs[1], mem->pvo, 2 * PAGE_SIZE, IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, 2 * PAGE_SIZE), 0);
	/* these bytes end one byte after the region, so not even the first byte is written */
	nhca_iter_pvo(&it, f->jobs[1], mem->pvo + 1, 2 * PAGE_SIZE, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, out, 1), -EACCES);
	nhca_iter_pvo(&it, f->jobs[0], mem->pvo, 1, 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, 1), -EACCES);
	KUNIT_EXPECT_NULL(test, nhca_iter_zcopy(&it));
	leave();
	KUNIT_EXPECT_EQ(test, memcmp(in, out, 2 * PAGE_SIZE), 0);
	for (i = 0; i < 3 * PAGE_SIZE; i++) {
		off = i - 100;
		KUNIT_ASSERT_EQ(test, ((u8 *)page_address(f->pages[i / PAGE_SIZE]))[i % PAGE_SIZE],
				off < 2 * PAGE_SIZE ? in[off] : 0);
	}
	nhca_job_mem_put(mem);
	job_teardown(f);
}

/*
 * A second handle keeps a region registered. Only the region's job can open a handle, and only by
 * the PVO of the first byte.
 */
static void job_mem_handles(struct kunit *test)
{
	struct job_fixture *f = job_setup(test);
	struct nhca_job_mem *mem, *again, *found;
	u64 pvo;

	mem = nhca_job_mem_pages(f->jobs[0], f->pages, 1, 8, 16, IB_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mem));
	pvo = mem->pvo;
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_open(f->jobs[1], pvo), ERR_PTR(-ENOENT));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_open(f->jobs[0], pvo + 1), ERR_PTR(-ENOENT));
	again = nhca_job_mem_open(f->jobs[0], pvo);
	KUNIT_ASSERT_PTR_EQ(test, again, mem);
	nhca_job_mem_put(mem);
	enter();
	KUNIT_EXPECT_EQ(test, nhca_pvo_check(f->jobs[0], pvo, 16, 0, &found), NHCA_PVO_OK);
	leave();
	nhca_job_mem_put(again);
	enter();
	KUNIT_EXPECT_EQ(test, nhca_pvo_check(f->jobs[0], pvo, 16, 0, &found), NHCA_PVO_KEY);
	leave();
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_open(f->jobs[0], pvo), ERR_PTR(-ENOENT));
	job_teardown(f);
}

/*
 * A job belongs to the user that used it first, until nobody uses the job. Until then, not even
 * another user with all capabilities can use the job.
 */
static void job_belongs_to_user(struct kunit *test)
{
	struct nhca_job *job, *same, *theirs;
	const struct cred *mine;
	struct cred *other;

	KUNIT_EXPECT_PTR_EQ(test, nhca_job_get(&init_net, 0), ERR_PTR(-EINVAL));
	job = nhca_job_get(&init_net, 7);
	KUNIT_ASSERT_FALSE(test, IS_ERR(job));
	same = nhca_job_get(&init_net, 7);
	KUNIT_EXPECT_PTR_EQ(test, same, job);

	/* another user, with all capabilities */
	other = prepare_creds();
	KUNIT_ASSERT_NOT_NULL(test, other);
	other->euid = KUIDT_INIT(4711);
	mine = override_creds(other);
	KUNIT_EXPECT_TRUE(test, capable(CAP_NET_ADMIN));
	theirs = nhca_job_get(&init_net, 7);
	KUNIT_EXPECT_PTR_EQ(test, theirs, ERR_PTR(-EPERM));
	nhca_job_put(same);
	theirs = nhca_job_get(&init_net, 7);
	KUNIT_EXPECT_PTR_EQ(test, theirs, ERR_PTR(-EPERM));
	/* after the last put nobody uses the job, so the other user gets it */
	nhca_job_put(job);
	theirs = nhca_job_get(&init_net, 7);
	revert_creds(mine);
	KUNIT_EXPECT_FALSE(test, IS_ERR(theirs));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_get(&init_net, 7), ERR_PTR(-EPERM));
	nhca_job_put(theirs);
	put_cred(other);
	nhca_job_put(NULL);
}

/*
 * Regions count for the job's user, who gets at most half of the host's regions (NHCA_MAX_JOB_MEM /
 * 2, which is NHCA_TCE_KEYS / 4). A job of a user with CAP_SYS_RESOURCE has no such limit.
 */
static void job_mem_of_user(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);
	const struct cred *mine;
	struct nhca_job_mem *mem;
	struct nhca_user *user;
	struct nhca_job *job;
	struct cred *other;

	KUNIT_ASSERT_NOT_NULL(test, page);
	job = nhca_job_get(&init_net, 7);
	KUNIT_ASSERT_FALSE(test, IS_ERR(job));
	KUNIT_EXPECT_NULL(test, job->user);
	nhca_job_put(job);

	other = prepare_creds();
	KUNIT_ASSERT_NOT_NULL(test, other);
	other->euid = KUIDT_INIT(4711);
	cap_clear(other->cap_effective);
	mine = override_creds(other);
	job = nhca_job_get(&init_net, 7);
	revert_creds(mine);
	put_cred(other);
	KUNIT_ASSERT_FALSE(test, IS_ERR(job));
	user = job->user;
	KUNIT_ASSERT_NOT_NULL(test, user);
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(user->users, user, NHCA_POOL_JOB_MEM,
					       NHCA_TCE_KEYS / 4 - 1), 0);
	mem = nhca_job_mem_pages(job, &page, 1, 0, 8, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mem));
	KUNIT_EXPECT_PTR_EQ(test, nhca_job_mem_pages(job, &page, 1, 0, 8, 0), ERR_PTR(-EDQUOT));
	nhca_job_mem_put(mem);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&user->used[NHCA_POOL_JOB_MEM]),
			NHCA_TCE_KEYS / 4 - 1);
	nhca_pool_uncharge(user->users, user, NHCA_POOL_JOB_MEM, NHCA_TCE_KEYS / 4 - 1);
	nhca_job_put(job);
	__free_page(page);
}

#define MANY_JOBS	20000

/*
 * Each job of a user is found quickly, however many jobs the user has. If a search walked over all
 * jobs, this test would take more than 10^8 steps.
 */
static void job_many(struct kunit *test)
{
	struct nhca_job **jobs = kvcalloc(MANY_JOBS, sizeof(*jobs), GFP_KERNEL);
	u32 i, k, wrong = 0;

	KUNIT_ASSERT_NOT_NULL(test, jobs);
	for (i = 0; i < MANY_JOBS; i++) {
		jobs[i] = nhca_job_get(&init_net, 1000 + i);
		if (IS_ERR(jobs[i])) {
			KUNIT_FAIL(test, "job %u: error %ld", i, PTR_ERR(jobs[i]));
			break;
		}
		cond_resched();
	}
	for (k = 0; k < i; k++) {
		wrong += nhca_job_get(&init_net, 1000 + k) != jobs[k] || jobs[k]->users != 2;
		nhca_job_put(jobs[k]);
	}
	while (i--)
		nhca_job_put(jobs[i]);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	kvfree(jobs);
}

static struct kunit_case job_cases[] = {
	KUNIT_CASE(job_pvo_history),
	KUNIT_CASE(job_mem_names_differ),
	KUNIT_CASE(job_mem_bad_arguments),
	KUNIT_CASE(job_mem_bytes),
	KUNIT_CASE(job_mem_handles),
	KUNIT_CASE(job_belongs_to_user),
	KUNIT_CASE(job_mem_of_user),
	KUNIT_CASE(job_many),
	{}
};

static struct kunit_suite job_suite = {
	.name = "nhca_job",
	.test_cases = job_cases,
};

kunit_test_suite(job_suite);
