// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what a channel may send at a time: the segment that fits the MTU, and what a packet takes
 * of a quantum.
 */
#include <kunit/test.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "../rcxt/engine.h"

/*
 * Purpose: with every MTU that a netdev can have, the segment that a channel asks the packet
 * builder for is one that the wire format allows, and the largest packet with it fits the MTU.
 */
static void rcxt_segment_fits_mtu(struct kunit *test)
{
	const u32 around = sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN +
			   NHCA_RXETH_LEN + NHCA_ICRC_LEN;
	struct net_device *netdev = kunit_kzalloc(test, sizeof(*netdev), GFP_KERNEL);
	struct nhca_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	u32 mtu, segment, before = 0;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->netdev = netdev;
	for (mtu = 1280; mtu <= 65535; mtu++) {
		netdev->mtu = mtu;
		segment = nhca_channel_segment(dev);
		KUNIT_ASSERT_TRUE_MSG(test, nhca_rcxt_sizes_ok(segment, segment), "MTU %u: %u", mtu,
				      segment);
		KUNIT_ASSERT_LE_MSG(test, around + segment, mtu, "MTU %u: %u", mtu, segment);
		/* the largest transfer can be cut this way */
		KUNIT_ASSERT_TRUE_MSG(test, nhca_rcxt_sizes_ok(NHCA_RCXT_MAX_LEN, segment),
				      "MTU %u: %u", mtu, segment);
		KUNIT_ASSERT_GE(test, segment, before);
		if (segment > PAGE_SIZE)
			KUNIT_ASSERT_EQ(test, segment % PAGE_SIZE, 0);
		before = segment;
	}
}

/*
 * Purpose: a quantum counts bytes. 1,024 packets of 60 KiB are not what 1,024 of 64 bytes are, and
 * a packet is never free.
 */
static void rcxt_shares_count_bytes(struct kunit *test)
{
	u32 len;

	KUNIT_EXPECT_EQ(test, nhca_send_shares(0), 1);
	for (len = 1; len <= NHCA_RCXT_MAX_SEGMENT; len++) {
		KUNIT_ASSERT_GE(test, nhca_send_shares(len) * NHCA_CH_SHARE, len);
		KUNIT_ASSERT_LT(test, (nhca_send_shares(len) - 1) * NHCA_CH_SHARE, len);
	}
}

static struct kunit_case rcxt_channel_cases[] = {
	KUNIT_CASE(rcxt_segment_fits_mtu),
	KUNIT_CASE(rcxt_shares_count_bytes),
	{}
};

static struct kunit_suite rcxt_channel_suite = {
	.name = "nhca_rcxt_channel",
	.test_cases = rcxt_channel_cases,
};

kunit_test_suite(rcxt_channel_suite);
