// SPDX-License-Identifier: GPL-2.0
/*
 * A device's directory in the module's debugfs directory, by the name that it was added with:
 *
 *   recover   read: the recovery count; write 1: NHCA_METHOD_DEVICE_RECOVER
 */
#include <linux/debugfs.h>

#include "objects.h"
#include "verbs.h"
#include "../observe/debugfs.h"
#include "../rcxt/rcxt.h"

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

/*
 * The core has taken the name, and gives it back after nhca_dealloc_driver(), which removes the
 * directory.  Also called when the device has moved to another namespace.
 */
int nhca_enable_driver(struct ib_device *ibdev)
{
	struct nhca_dev *dev = to_nhca_dev(ibdev);

	if (dev->debugfs)
		return 0;
	dev->debugfs = nhca_debugfs_dev(dev_name(&ibdev->dev));
	debugfs_create_file_unsafe("recover", 0600, dev->debugfs, dev, &recover_fops);
	return 0;
}
