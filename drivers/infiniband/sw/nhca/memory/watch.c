// SPDX-License-Identifier: GPL-2.0
/*
 * Watches: words that tell a process whether its pages may have changed.
 *
 * Each watch is an interval notifier on the process's address space.  The kernel calls the notifier
 * before it changes page table entries of the range, and so before the system call that makes the
 * change (munmap(), mremap(), madvise(), fallocate(), ftruncate() ...) returns.  So after such a
 * call the process finds the word changed, without a hook in its allocator.
 *
 * These events of enum mmu_notifier_event set the word:
 *
 * - MMU_NOTIFY_UNMAP: munmap(), the old range of mremap(), mmap() over the range.
 * - MMU_NOTIFY_CLEAR: MADV_DONTNEED, MADV_FREE, MADV_REMOVE, hole punch, truncation, a page that is
 *   replaced; and an attempt to migrate or reclaim a page.  For a pinned page the attempt fails, so
 *   its only effect is a needless new registration.
 * - MMU_NOTIFY_PROTECTION_VMA: mprotect(), because a new registration might be refused.  Automatic
 *   NUMA balancing causes the same event, and so a needless new registration.
 * - MMU_NOTIFY_MIGRATE, MMU_NOTIFY_EXCLUSIVE: the page moves to or from the memory of a device, or
 *   a device gets exclusive access to the page.
 * - MMU_NOTIFY_RELEASE: end of the process; the word has no reader any more.
 *
 * These events do not set the word:
 *
 * - MMU_NOTIFY_PROTECTION_PAGE: entries lose their right to write, but keep their page: fork(), and
 *   write-back of a file.  If the process then writes to a page that is not pinned, it may get
 *   another page, which causes MMU_NOTIFY_CLEAR.  A pinned page of private memory stays with the
 *   parent, because fork() gives the child a copy.  A page of a file stays with the file.
 * - MMU_NOTIFY_SOFT_DIRTY: the same for /proc/PID/clear_refs.
 *
 * An event that a later kernel adds sets the word.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/nhca_user_ioctl_verbs.h>

#include "../user.h"
#include "watch.h"

/**
 * struct nhca_watch_set - watches of one process
 * @lock:    serializes the calls for the set.  The notifiers do not take @lock, because its holder
 *           may wait for the end of a notifier.
 * @mm:      address space of the process; mmgrab() reference
 * @users:   pools that each watch is charged to
 * @user:    record that each watch is charged to; counted; NULL: nobody
 * @words:   the words, which the process can read
 * @slots:   number of words
 * @watches: struct watch, by slot; written under @lock
 */
struct nhca_watch_set {
	/* serializes the calls for the set */
	struct mutex lock;
	struct mm_struct *mm;
	struct nhca_users *users;
	struct nhca_user *user;
	u32 *words;
	u32 slots;
	struct xarray watches;
};

/**
 * struct watch - a watch
 * @notifier: called before pages of the range change
 * @word:     the word of its slot
 * @lock:     orders updates of the notifier's sequence number
 */
struct watch {
	struct mmu_interval_notifier notifier;
	u32 *word;
	/* orders updates of the sequence number */
	spinlock_t lock;
};

/* Memory reclaim may wait for this function: it allocates nothing and takes only a spinlock. */
static bool watch_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct watch *w = container_of(notifier, struct watch, notifier);

	spin_lock(&w->lock);
	mmu_interval_set_seq(notifier, cur_seq);
	spin_unlock(&w->lock);
	if (range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return true;
	/*
	 * The kernel makes the change after this function.  The locks of the page tables, and the
	 * return from the system call, order this store before all that depends on the change.
	 */
	WRITE_ONCE(*w->word, NHCA_WATCH_CHANGED);
	return true;
}

static const struct mmu_interval_notifier_ops watch_ops = {
	.invalidate = watch_invalidate,
};

static void watch_end(struct nhca_watch_set *set, u32 slot)
{
	struct watch *w = xa_erase(&set->watches, slot);

	lockdep_assert_held(&set->lock);
	if (!w)
		return;
	mmu_interval_notifier_remove(&w->notifier);
	/* after the removal, which waits for the notifier: nobody else writes to the word */
	WRITE_ONCE(*w->word, NHCA_WATCH_CHANGED);
	kfree(w);
	nhca_pool_uncharge(set->users, set->user, NHCA_POOL_WATCHES, 1);
}

static int watch_begin(struct nhca_watch_set *set, u32 slot, unsigned long start,
		       unsigned long length)
{
	struct watch *w;
	int err;

	lockdep_assert_held(&set->lock);
	err = nhca_pool_charge(set->users, set->user, NHCA_POOL_WATCHES, 1);
	if (err)
		return err;
	err = -ENOMEM;
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		goto err_charge;
	spin_lock_init(&w->lock);
	w->word = &set->words[slot];
	/* before the insertion, so that this store cannot overwrite a store of the notifier */
	WRITE_ONCE(*w->word, NHCA_WATCH_SAME);
	err = mmu_interval_notifier_insert(&w->notifier, set->mm, start, length, &watch_ops);
	if (err)
		goto err_word;
	err = xa_err(xa_store(&set->watches, slot, w, GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_notifier;
	/*
	 * A change that had begun before the insertion does not call the notifier, but a pin could
	 * still find the old pages: wait for the end of such changes.  A later change calls the
	 * notifier.
	 */
	mmu_interval_read_begin(&w->notifier);
	return 0;

err_notifier:
	mmu_interval_notifier_remove(&w->notifier);
err_word:
	WRITE_ONCE(*w->word, NHCA_WATCH_CHANGED);
	kfree(w);
err_charge:
	nhca_pool_uncharge(set->users, set->user, NHCA_POOL_WATCHES, 1);
	return err;
}

int nhca_watch_add(struct nhca_watch_set *set, u32 slot, u64 start, u64 length)
{
	u64 end = start + length;
	int err;

	if (slot >= set->slots || !length || end < start || end > TASK_SIZE)
		return -EINVAL;
	/* a child of fork() has the file descriptor, but another address space than that of @set */
	if (current->mm != set->mm)
		return -EPERM;
	start = round_down(start, PAGE_SIZE);
	end = round_up(end, PAGE_SIZE);
	mutex_lock(&set->lock);
	watch_end(set, slot);
	err = watch_begin(set, slot, start, end - start);
	mutex_unlock(&set->lock);
	return err;
}

int nhca_watch_del(struct nhca_watch_set *set, u32 slot)
{
	int err = 0;

	if (slot >= set->slots)
		return -EINVAL;
	mutex_lock(&set->lock);
	if (xa_load(&set->watches, slot))
		watch_end(set, slot);
	else
		err = -ENOENT;
	mutex_unlock(&set->lock);
	return err;
}

struct nhca_watch_set *nhca_watch_set_create(struct nhca_users *users, struct nhca_user *user,
					     u32 *words, u32 slots)
{
	struct nhca_watch_set *set = kzalloc(sizeof(*set), GFP_KERNEL_ACCOUNT);

	if (!set)
		return ERR_PTR(-ENOMEM);
	mutex_init(&set->lock);
	set->mm = current->mm;
	mmgrab(set->mm);
	set->users = users;
	set->user = nhca_user_hold(user);
	set->words = words;
	set->slots = slots;
	xa_init_flags(&set->watches, XA_FLAGS_ACCOUNT);
	return set;
}

void nhca_watch_set_destroy(struct nhca_watch_set *set)
{
	unsigned long slot;
	struct watch *w;

	mutex_lock(&set->lock);
	xa_for_each(&set->watches, slot, w) {
		watch_end(set, slot);
		cond_resched();
	}
	mutex_unlock(&set->lock);
	xa_destroy(&set->watches);
	nhca_user_put(set->user);
	mmdrop(set->mm);
	kfree(set);
}
