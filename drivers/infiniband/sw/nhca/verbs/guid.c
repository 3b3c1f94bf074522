// SPDX-License-Identifier: GPL-2.0
/*
 * GUIDs of devices.
 */
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <net/addrconf.h>

#include "verbs.h"

/* Devices with a GUID, linked by nhca_dev.all */
static LIST_HEAD(guid_devs);
static DEFINE_SPINLOCK(guid_lock);

/*
 * Return: a GUID for a netdev with the MAC address @mac.  For @number 0 the GUID is the modified
 * EUI-64 of @mac.  For other numbers the GUID has @number in place of FF-FE, and its universal bit
 * is 0.  Linux makes IPv6 addresses of netdevs that share a MAC address in the same way, with
 * net_device.dev_id as the number.
 */
static __be64 guid_of(const u8 *mac, u16 number)
{
	__be64 guid;
	u8 *eui = (u8 *)&guid;

	addrconf_addr_eui48(eui, mac);
	if (number) {
		eui[0] = mac[0] & ~2;
		eui[3] = number >> 8;
		eui[4] = number;
	}
	return guid;
}

static bool guid_used(__be64 guid)
{
	struct nhca_dev *dev;

	lockdep_assert_held(&guid_lock);
	list_for_each_entry(dev, &guid_devs, all)
		if (dev->ibdev.node_guid == guid)
			return true;
	return false;
}

void nhca_guid_take(struct nhca_dev *dev)
{
	const struct net_device *ndev = dev->netdev;
	u8 mac[ETH_ALEN] = {};
	u16 number = ndev->dev_id;

	if (ndev->addr_len == ETH_ALEN)
		ether_addr_copy(mac, ndev->dev_addr);
	spin_lock(&guid_lock);
	if (is_zero_ether_addr(mac) && !number)
		number = 1;
	while (guid_used(guid_of(mac, number)) && number != U16_MAX)
		number++;
	dev->ibdev.node_guid = guid_of(mac, number);
	list_add(&dev->all, &guid_devs);
	spin_unlock(&guid_lock);
}

void nhca_guid_release(struct nhca_dev *dev)
{
	spin_lock(&guid_lock);
	list_del(&dev->all);
	spin_unlock(&guid_lock);
}
