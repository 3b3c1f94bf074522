/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watches: a process reads in one word of memory whether the pages of a range of its address space
 * may have changed (reference: lazy deregistration).  The registration cache of libnhca uses
 * watches.
 */
#ifndef NHCA_WATCH_H
#define NHCA_WATCH_H

#include <linux/kconfig.h>
#include <linux/types.h>

struct nhca_user;
struct nhca_users;
struct nhca_watch_set;

/* whether this kernel has watches */
#define NHCA_HAS_WATCHES	IS_ENABLED(CONFIG_MMU_NOTIFIER)

/**
 * nhca_watch_set_create - make a set of watches of the calling process
 * @users: pools of the device, for NHCA_POOL_WATCHES; they outlive the set
 * @user:  record to charge, or NULL; the set takes a reference
 * @words: one word for each slot, at first NHCA_WATCH_CHANGED; they must exist as long as the set
 * @slots: number of words
 * Context: process, sleeps.
 * Return: the set; ERR_PTR(-ENOMEM): no memory.
 */
struct nhca_watch_set *nhca_watch_set_create(struct nhca_users *users, struct nhca_user *user,
					     u32 *words, u32 slots);

/**
 * nhca_watch_set_destroy - end all watches of a set, and free it
 * @set: the set; all its words become NHCA_WATCH_CHANGED
 * Context: process, sleeps; not under mmap_lock.
 */
void nhca_watch_set_destroy(struct nhca_watch_set *set);

/**
 * nhca_watch_add - watch a range of the calling process
 * @set:    the set
 * @slot:   slot of the watch.  An earlier watch in this slot ends.
 * @start:  first byte
 * @length: bytes, at least 1; memory need not be mapped there
 *
 * The function sets the word of the slot to NHCA_WATCH_SAME.  Before the kernel later changes page
 * table entries of the range, the word becomes NHCA_WATCH_CHANGED, and stays so; watch.c lists the
 * events, and the two exceptions.  When the function returns, no change that began before the watch
 * is still in progress.  So a process that pins the range after this call, and then finds
 * NHCA_WATCH_SAME, has pinned the pages that the range maps.
 * Context: process, sleeps; not under mmap_lock.
 * Return: 0; -EINVAL: no such slot, or the range is empty, wraps or is not in the part of the
 * address space that processes can use; -EPERM: another process made the set;
 * -EDQUOT: the user has its share of watches; -ENOMEM: the pool of watches is used up, or no
 * memory; -EINTR: a signal is pending.  -EINVAL and -EPERM change nothing; after any other error
 * the slot has no watch.
 */
int nhca_watch_add(struct nhca_watch_set *set, u32 slot, u64 start, u64 length);

/**
 * nhca_watch_del - end a watch
 * @set:  the set
 * @slot: slot of the watch; its word becomes NHCA_WATCH_CHANGED
 * Context: process, sleeps; not under mmap_lock.
 * Return: 0; -EINVAL: no such slot; -ENOENT: the slot has no watch.
 */
int nhca_watch_del(struct nhca_watch_set *set, u32 slot);

#endif /* NHCA_WATCH_H */
