/* SPDX-License-Identifier: GPL-2.0 */
/* debugfs: one directory for the module, and in it one for each device. */
#ifndef NHCA_OBSERVE_DEBUGFS_H
#define NHCA_OBSERVE_DEBUGFS_H

struct dentry;

/**
 * nhca_debugfs_init - create the directory of the module
 * nhca_debugfs_exit - remove this directory and everything in it
 * Context: process.
 * Return: the directory, in which the caller may create files; without debugfs an ERR_PTR, which
 * the functions of debugfs accept.
 */
struct dentry *nhca_debugfs_init(void);
void nhca_debugfs_exit(void);

/**
 * nhca_debugfs_dev - create the directory of a device
 * @name: name of the device
 * Context: process.
 * Return: the directory, which the caller removes with debugfs_remove(). If debugfs is missing, or
 * a device in another namespace has the same name, the function returns an ERR_PTR, which the
 * functions of debugfs accept.
 */
struct dentry *nhca_debugfs_dev(const char *name);

#endif /* NHCA_OBSERVE_DEBUGFS_H */
