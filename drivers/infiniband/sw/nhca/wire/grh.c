// SPDX-License-Identifier: GPL-2.0
/* The GRH at the beginning of a UD receive buffer. */
#include <linux/string.h>
#include "bth.h"
#include "grh.h"

void nhca_grh_fill4(u8 *grh, const struct iphdr *iph)
{
	memset(grh, 0, NHCA_GRH_LEN - sizeof(*iph));
	memcpy(grh + NHCA_GRH_LEN - sizeof(*iph), iph, sizeof(*iph));
}

void nhca_grh_fill6(u8 *grh, const struct ipv6hdr *ip6h)
{
	memcpy(grh, ip6h, NHCA_GRH_LEN);
}
