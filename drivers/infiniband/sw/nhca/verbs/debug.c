// SPDX-License-Identifier: GPL-2.0
/*
 * The directory of a device in debugfs.  Its name is the name with which the device was added.  The
 * directory has these files:
 *
 *   recover   read: the recovery count; writing 1 does the same as NHCA_METHOD_DEVICE_RECOVER
 *   faults    read: the fault injection rules; write: a command (observe/inject.h)
 *   opcodes   read: names of opcodes for fault injection rules
 *   fault_attr/  settings of the kernel's fault-injection framework, if the kernel has it
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "objects.h"
#include "verbs.h"
#include "../observe/debugfs.h"
#include "../observe/inject.h"
#include "../rcxt/rcxt.h"
#include "../transport/qp.h"

/* Maximum length of a command, in bytes */
#define NHCA_MAX_COMMAND	256

static int recover_get(void *data, u64 *val)
{
	*val = nhca_rcxt_recoveries(data);
	return 0;
}

static int recover_set(void *data, u64 val)
{
	struct nhca_dev *dev = data;

	if (val != 1)
		return -EINVAL;
	if (!nhca_may_recover(dev))
		return -EPERM;
	nhca_recover(dev, NHCA_CH_ERR_RECOVERED);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(recover_fops, recover_get, recover_set, "%llu\n");

static int faults_show(struct seq_file *m, void *unused)
{
	struct nhca_dev *dev = m->private;

	nhca_inject_show(dev->inject, m);
	return 0;
}

static ssize_t faults_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct nhca_dev *dev = ((struct seq_file *)file->private_data)->private;
	char *text;
	int err;

	if (!nhca_may_recover(dev))
		return -EPERM;
	if (len > NHCA_MAX_COMMAND)
		return -E2BIG;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	err = nhca_inject_write(dev->inject, text, nhca_qpn_upcoming(), nhca_qpn_place);
	kfree(text);
	return err ?: len;
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, inode->i_private);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = faults_open,
	.read = seq_read,
	.write = faults_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int opcodes_show(struct seq_file *m, void *unused)
{
	nhca_rule_show_opcodes(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(opcodes);

/*
 * ib_device_ops.enable_driver: make the directory of the device.  nhca_dealloc_driver() removes the
 * directory.  If an older device, which was renamed, already has a directory of this name, the new
 * device gets no directory.  The core calls this function again after it has moved the device to
 * another network namespace; then the directory exists already.
 */
int nhca_enable_driver(struct ib_device *ibdev)
{
	struct nhca_dev *dev = to_nhca_dev(ibdev);

	if (dev->debugfs)
		return 0;
	dev->debugfs = nhca_debugfs_dev(dev_name(&ibdev->dev));
	debugfs_create_file_unsafe("recover", 0600, dev->debugfs, dev, &recover_fops);
	debugfs_create_file("faults", 0600, dev->debugfs, dev, &faults_fops);
	debugfs_create_file("opcodes", 0400, dev->debugfs, dev, &opcodes_fops);
	nhca_inject_debugfs(dev->inject, dev->debugfs);
	return 0;
}
