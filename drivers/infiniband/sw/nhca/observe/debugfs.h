/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs: one directory for the module, and one in it for each device.
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

/*
 * a device's directory; end with debugfs_remove(); process
 * Return: as above; an ERR_PTR, too, if a device in another namespace has the same name.
 */
struct dentry *nhca_debugfs_dev(const char *name);

#endif /* NHCA_OBSERVE_DEBUGFS_H */
