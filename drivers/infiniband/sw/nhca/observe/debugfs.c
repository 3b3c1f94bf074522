// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/debug/nhca: one directory for the module, and in it one for each device. */
#include <linux/debugfs.h>

#include "debugfs.h"

static struct dentry *nhca_debugfs;

struct dentry *nhca_debugfs_init(void)
{
	nhca_debugfs = debugfs_create_dir("nhca", NULL);
	return nhca_debugfs;
}

struct dentry *nhca_debugfs_dev(const char *name)
{
	return debugfs_create_dir(name, nhca_debugfs);
}

void nhca_debugfs_exit(void)
{
	debugfs_remove_recursive(nhca_debugfs);
}
