/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Numbers of this process and of the kernel, from files in /proc. */
#ifndef PROC_H
#define PROC_H

/* Return: the number after @name at the start of a line of the file, or -1 without such a line. */
long proc_number(const char *path, const char *name);

/* Return: a number of /proc/self/status, such as "VmPin:", in KiB. */
long status_kb(const char *name);

/*
 * Return: KiB that this process has pinned.  The kernel still counts the memory of a destroyed ring
 * for up to 50 ms after it was unmapped, so the number is read until it stays the same.
 */
long pinned_kb(void);

#endif /* PROC_H */
