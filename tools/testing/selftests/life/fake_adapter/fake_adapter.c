// SPDX-License-Identifier: GPL-2.0
/*
 * fake_adapter: an RDMA device without any verb, for device.sh. The device reports its netdev to
 * the RDMA core or, if @sibling is set, only has the same parent device as the netdev.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "the netdev, in the initial network namespace");

static bool sibling;
module_param(sibling, bool, 0444);
MODULE_PARM_DESC(sibling, "only share the parent device with the netdev, as mlx4 does");

static bool iwarp;
module_param(iwarp, bool, 0444);
MODULE_PARM_DESC(iwarp, "the device is an iWARP device, not a RoCE device");

struct fake {
	struct ib_device ibdev;
};

static struct fake *fake;

static int fake_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

static int fake_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	return 0;
}

static int fake_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = iwarp ? RDMA_CORE_CAP_PROT_IWARP :
					    RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
	return 0;
}

static const struct ib_device_ops fake_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.get_port_immutable = fake_get_port_immutable,
};

static int __init fake_init(void)
{
	struct net_device *ndev = dev_get_by_name(&init_net, netdev);
	int err = -ENODEV;

	if (!ndev)
		return err;
	err = -ENOMEM;
	fake = ib_alloc_device(fake, ibdev);
	if (!fake)
		goto put;
	fake->ibdev.node_type = iwarp ? RDMA_NODE_RNIC : RDMA_NODE_IB_CA;
	fake->ibdev.phys_port_cnt = 1;
	ib_set_device_ops(&fake->ibdev, &fake_ops);
	err = 0;
	if (sibling)
		fake->ibdev.dev.parent = ndev->dev.parent;
	else
		err = ib_device_set_netdev(&fake->ibdev, ndev, 1);
	if (!err)
		err = ib_register_device(&fake->ibdev, "fake0", NULL);
	if (err)
		ib_dealloc_device(&fake->ibdev);
put:
	dev_put(ndev);
	return err;
}

static void __exit fake_exit(void)
{
	ib_unregister_device(&fake->ibdev);
	ib_dealloc_device(&fake->ibdev);
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_DESCRIPTION("An RDMA device without any verb");
MODULE_LICENSE("GPL");
