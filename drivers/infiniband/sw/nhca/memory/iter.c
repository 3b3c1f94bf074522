// SPDX-License-Identifier: GPL-2.0
/* Iterators: the translation of keys and addresses into bytes. */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <net/checksum.h>

#include "backing.h"
#include "mr.h"

/*
 * Initialize the members that every iterator needs.  Other members, for SGEs and for pages, are set
 * before they are read.  This function does not clear these members, because the stores would take
 * a large part of the time that a small message needs.
 */
static void iter_begin(struct nhca_iter *it, u64 at, u32 left, int access)
{
	it->pages = 0;
	it->ref = NULL;
	it->bytes = NULL;
	it->job = NULL;
	it->mem = NULL;
	it->mr = NULL;
	it->fault = NULL;
	it->op = 0;
	it->at = at;
	it->left_sges = 0;
	it->left = left;
	it->skip = 0;
	it->access = access;
	it->backed = false;
}

void nhca_iter_sges(struct nhca_iter *it, const struct nhca_key_user *key_user,
		    const struct nhca_sge *sge, u32 num_sge, u32 skip, u32 len, int access)
{
	/* the loop also skips empty elements, whose keys are not checked */
	while (num_sge && skip >= sge->length) {
		skip -= sge->length;
		sge++;
		num_sge--;
	}
	iter_begin(it, 0, 0, access);
	it->key_user = key_user;
	it->sge = sge;
	it->left_sges = num_sge;
	it->skip = skip;
	it->rest = len;
}

int nhca_iter_key(struct nhca_iter *it, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access)
{
	iter_begin(it, 0, len, access);
	if (!len)
		return 0;
	it->mr = nhca_mkey_check(key_user, rkey, va, len, access, &it->at);
	return it->mr ? 0 : -EACCES;
}

void nhca_iter_rkey(struct nhca_iter *it, const struct nhca_rkey_ref *h, u64 off, u32 len,
		    bool write)
{
	iter_begin(it, off, len, write ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ);
	it->ref = h;
}

void nhca_iter_pvo(struct nhca_iter *it, const struct nhca_job *job, u64 pvo, u32 len, int access)
{
	iter_begin(it, pvo, len, access);
	it->job = job;
}

void nhca_iter_bytes(struct nhca_iter *it, const void *bytes)
{
	iter_begin(it, 0, 0, 0);
	it->bytes = bytes;
}

static void iter_next_bytes(struct nhca_iter *it, u32 max, struct nhca_seg *seg)
{
	const void *p = it->bytes + it->at;

	seg->addr = (void *)p;
	seg->len = min_t(u32, max, PAGE_SIZE - offset_in_page(p));
	it->at += seg->len;
}

/* Proceed to the next SGE that is not empty.  Check its key for the bytes that will be accessed. */
static __always_inline int iter_next_sge(struct nhca_iter *it)
{
	const struct nhca_sge *sge;
	u32 len;

	for (;;) {
		if (!it->left_sges || !it->rest)
			return -ENODATA;
		it->left_sges--;
		sge = it->sge++;
		if (sge->length)
			break;
	}
	len = min(sge->length - it->skip, it->rest);
	it->mr = nhca_mkey_check(it->key_user, sge->lkey, sge->addr + it->skip, len, it->access,
				 &it->at);
	if (!it->mr)
		return -EACCES;
	it->left = len;
	it->rest -= len;
	it->skip = 0;
	return 0;
}

/*
 * The first call for an iterator checks all its bytes.  The result is valid until the end of the
 * live section, and all calls are in this section.  Each call returns bytes of one page.
 */
static int iter_next_pvo(struct nhca_iter *it, u32 max, struct nhca_seg *seg)
{
	int err;

	if (!it->left)
		return -ENODATA;
	if (!it->mem && nhca_pvo_check(it->job, it->at, it->left, it->access, &it->mem))
		return -EACCES;
	err = nhca_pvo_seg(it->at, min(max, it->left), nhca_iter_writes(it), seg);
	if (err)
		return err;
	it->at += seg->len;
	it->left -= seg->len;
	return 0;
}

static int iter_seg(struct nhca_iter *it, u32 max, struct nhca_seg *seg)
{
	bool write = nhca_iter_writes(it);
	struct nhca_mr *mr = it->mr;

	if (likely(mr->kind != NHCA_MR_BACKED))
		return nhca_mr_seg(mr, it->at, max, write, seg);
	it->backed = true;
	return mr->backing->ops->seg(mr->backing, it->fault, nhca_backing_op(it), it->at, max,
				     write, seg);
}

bool nhca_iter_ahead(const struct nhca_iter *it, u32 rkey)
{
	const struct nhca_rkey_ref *ref = it->ref;
	struct nhca_mr *mr = it->mr;
	u64 at = it->at;

	if (ref) {
		if (!nhca_rkey_ref_valid(ref))
			return false;
		mr = ref->mr;
		at += ref->off;
	}
	if (!mr || mr->kind != NHCA_MR_BACKED || !it->fault || !it->left)
		return false;
	mr->backing->ops->ahead(mr->backing, it->fault, it->op, at, it->left);
	return mr->mkey.key == rkey;
}

/* Find the region of the next byte and check its key or ref, unless this was done before. */
static __always_inline int iter_enter(struct nhca_iter *it)
{
	if (!it->left)
		return iter_next_sge(it);
	if (it->ref) {
		if (unlikely(!nhca_rkey_ref_valid(it->ref)))
			return -EACCES;
		it->mr = it->ref->mr;
		it->at += it->ref->off;
		it->ref = NULL;
	}
	return 0;
}

int nhca_iter_next(struct nhca_iter *it, u32 max, struct nhca_seg *seg)
{
	int err;

	if (it->bytes) {
		iter_next_bytes(it, max, seg);
		return 0;
	}
	it->pages = 0;
	if (it->job)
		return iter_next_pvo(it, max, seg);
	err = iter_enter(it);
	if (err)
		return err;
	err = iter_seg(it, min(max, it->left), seg);
	if (err)
		return err;
	it->at += seg->len;
	it->left -= seg->len;
	return 0;
}

/* Hand over @len bytes of one region of a backing, page by page.  @last: as nhca_iter_placed(). */
static int iter_placed(struct nhca_iter *it, u32 len, bool last)
{
	struct nhca_backing *b = it->mr->backing;
	bool end;
	u32 n;
	int err;

	for (; len; len -= n) {
		n = min_t(u32, len, PAGE_SIZE - offset_in_page(it->at));
		end = it->left == n || (last && len == n);
		err = b->ops->placed(b, it->fault, nhca_backing_op(it), it->at, n, end);
		if (err)
			return err;
		it->at += n;
		it->left -= n;
	}
	return 0;
}

int nhca_iter_placed(struct nhca_iter *it, u32 len, bool last)
{
	u32 n;
	int err;

	for (; len; len -= n) {
		err = iter_enter(it);
		if (err)
			return err;
		n = min(len, it->left);
		if (it->mr->kind == NHCA_MR_BACKED) {
			err = iter_placed(it, n, last && len == n);
			if (err)
				return err;
		} else {
			it->at += n;
			it->left -= n;
		}
	}
	return 0;
}

bool nhca_iter_pages(struct nhca_iter *it)
{
	unsigned int shift;
	u64 pvo, pages;

	/* nhca_iter_next() must check the ref before nhca_iter_page() returns a page */
	if (it->left < PAGE_SIZE || it->ref)
		return false;
	if (it->mem)
		pvo = it->at;
	else if (it->mr && it->mr->kind == NHCA_MR_TCE)
		pvo = it->mr->pvo + it->at;
	else
		return false;
	if (!PAGE_ALIGNED(pvo))
		return false;
	it->tce = nhca_tce_entry(pvo, &shift);
	if (unlikely(!it->tce))
		return false;
	it->want = (pvo & ~NHCA_PVO_OFFSET_MASK) |
		   (nhca_iter_writes(it) ? NHCA_TCE_WRITE : NHCA_TCE_READ);
	it->order = shift - PAGE_SHIFT;
	pages = (pvo & NHCA_PVO_OFFSET_MASK) >> PAGE_SHIFT;
	if (it->order) {
		it->in = pages & (BIT(it->order) - 1);
		pages = BIT(it->order) - it->in;
	} else {
		pages = NHCA_TCE_LEAF_SIZE - pages % NHCA_TCE_LEAF_SIZE;
	}
	it->pages = min_t(u64, pages, it->left >> PAGE_SHIFT);
	return true;
}

/*
 * Get the next bytes, at most @max, from nhca_iter_page() or else from nhca_iter_next().
 * Return: 0 or as nhca_iter_next().
 */
static __always_inline int iter_bytes(struct nhca_iter *it, u32 max, void **bytes, u32 *len)
{
	struct page *page = max >= PAGE_SIZE ? nhca_iter_page(it) : NULL;
	struct nhca_seg seg __uninitialized;
	int err;

	if (page) {
		*bytes = page_address(page);
		*len = PAGE_SIZE;
		return 0;
	}
	err = nhca_iter_next(it, max, &seg);
	if (err)
		return err;
	*bytes = seg.addr;
	*len = seg.len;
	return 0;
}

/* Use copy_page() for a whole page, because it is faster than memcpy(). */
static __always_inline void iter_copy(void *dst, const void *src, u32 len)
{
	if (len == PAGE_SIZE && PAGE_ALIGNED(dst) && PAGE_ALIGNED(src))
		copy_page(dst, (void *)src);
	else
		memcpy(dst, src, len);
}

static __always_inline int iter_write(struct nhca_iter *it, const void *src, u32 len)
{
	void *dst;
	u32 n;
	int err;

	for (; len; src += n, len -= n) {
		err = iter_bytes(it, len, &dst, &n);
		if (err)
			return err;
		iter_copy(dst, src, n);
	}
	return 0;
}

int nhca_iter_write(struct nhca_iter *it, const void *src, u32 len)
{
	return iter_write(it, src, len);
}

int nhca_iter_read(struct nhca_iter *it, void *dst, u32 len)
{
	void *src;
	u32 n;
	int err;

	for (; len; dst += n, len -= n) {
		err = iter_bytes(it, len, &src, &n);
		if (err)
			return err;
		iter_copy(dst, src, n);
	}
	return 0;
}

int nhca_iter_read_sum(struct nhca_iter *it, void *dst, u32 len, __wsum *sum)
{
	u32 off = 0;
	void *src;
	u32 n;
	int err;

	*sum = 0;
	for (; off < len; off += n) {
		err = iter_bytes(it, len - off, &src, &n);
		if (err)
			return err;
		*sum = csum_block_add(*sum, csum_partial_copy_nocheck(src, dst + off, n), off);
	}
	return 0;
}

int nhca_iter_copy(struct nhca_iter *to, struct nhca_iter *from, u32 len, int *from_err)
{
	void *src;
	u32 n;
	int err;

	for (; len; len -= n) {
		err = iter_bytes(from, len, &src, &n);
		if (err) {
			if (from_err)
				*from_err = err;
			return err == -EAGAIN ? -EIO : err;
		}
		err = iter_write(to, src, n);
		if (err)
			return err;
	}
	return 0;
}

struct nhca_pageref_region **nhca_iter_zcopy(const struct nhca_iter *it)
{
	struct nhca_mr *mr = it->mr;

	if (it->mem)
		return &it->mem->pagerefs;
	return mr && mr->ops->zcopy ? &mr->pagerefs : NULL;
}

/* Find the 8 bytes that an atomic operation accesses.  Return: as nhca_atomic(). */
static int iter_word(const struct nhca_key_user *key_user, u32 rkey, u64 va, int access,
		     struct nhca_fault *f, void **where)
{
	struct nhca_iter it __uninitialized;
	struct nhca_seg seg __uninitialized;
	int err;

	err = nhca_iter_key(&it, key_user, rkey, va, sizeof(u64), access);
	if (err)
		return err;
	err = nhca_iter_next(&it, sizeof(u64), &seg);
	if (err == -EAGAIN)
		return nhca_iter_fault(&it, 0, f);
	if (err)
		return err;
	/* @va is aligned, but memory may have another alignment than the region's addresses */
	if (!IS_ALIGNED((unsigned long)seg.addr, sizeof(u64)) || seg.len != sizeof(u64))
		return -EACCES;
	*where = seg.addr;
	return 0;
}

int nhca_atomic(const struct nhca_key_user *key_user, u32 rkey, u64 va, bool cas,
		u64 compare_add, u64 swap, u64 *orig, struct nhca_fault *f)
{
	void *where;
	int err;

	err = iter_word(key_user, rkey, va, IB_ACCESS_REMOTE_ATOMIC, f, &where);
	if (err)
		return err;
	if (cas)
		*orig = atomic64_cmpxchg(where, compare_add, swap);
	else
		*orig = atomic64_fetch_add(compare_add, where);
	return 0;
}

int nhca_atomic_write(const struct nhca_key_user *key_user, u32 rkey, u64 va, u64 value,
		      struct nhca_fault *f)
{
	void *where;
	int err;

	err = iter_word(key_user, rkey, va, IB_ACCESS_REMOTE_WRITE, f, &where);
	if (err)
		return err;
	/*
	 * Pairs with the load-acquire of a consumer that polls this word: the consumer then also
	 * sees all bytes that this CPU wrote before.
	 */
	smp_store_release((u64 *)where, value);
	return 0;
}

int nhca_flush(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, bool all,
	       int access, struct nhca_fault *f, u64 op)
{
	struct nhca_mr *mr;
	u64 off;

	mr = all ? nhca_mkey_check_all(key_user, rkey, access) :
		   nhca_mkey_check(key_user, rkey, va, len, access, &off);
	if (!mr)
		return -EACCES;
	if (mr->kind == NHCA_MR_BACKED && mr->backing->ops->flush)
		return mr->backing->ops->flush(mr->backing, f, op,
					       access & IB_ACCESS_FLUSH_PERSISTENT);
	/* the CPU writes bytes to coherent memory, so FLUSH only has to order the writes */
	wmb();
	return 0;
}
