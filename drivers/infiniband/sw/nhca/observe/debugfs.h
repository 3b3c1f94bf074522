/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs: one directory for the module.
 */
#ifndef NHCA_OBSERVE_DEBUGFS_H
#define NHCA_OBSERVE_DEBUGFS_H

struct dentry;

/*
 * module load and unload; process
 * Return: the directory to make files in.  That debugfs is missing is no error.
 */
struct dentry *nhca_debugfs_init(void);
void nhca_debugfs_exit(void);

#endif /* NHCA_OBSERVE_DEBUGFS_H */
