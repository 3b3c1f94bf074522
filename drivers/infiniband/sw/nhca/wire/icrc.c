// SPDX-License-Identifier: GPL-2.0
/*
 * The invariant CRC, on the fastest CRC-32 that the running kernel has.
 *
 * From 6.14 on that is crc32_le() itself.  Before, crc32_le() is the portable
 * table code, and what uses the processor's carry-less multiply is found
 * behind the crypto API only, as "crc32".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/udp.h>
#include "bth.h"
#include "compat.h"
#include "icrc.h"

/*
 * What CRC-32 makes of the eight bytes of ones that stand for the local route
 * header, from a seed of ones: the same for every packet.
 */
#define ICRC_SEED	0xdebb20e3
#define BTH_MASKED_BYTE	4

#ifndef NHCA_OLD_CRC32

int nhca_icrc_init(void)
{
	return 0;
}

void nhca_icrc_exit(void)
{
}

u32 nhca_icrc_more(u32 crc, const void *p, unsigned int len)
{
	return crc32_le(crc, p, len);
}

#else

#include <crypto/hash.h>
#include <linux/err.h>
#include <linux/kmod.h>

/*
 * Below this many bytes the accelerated drivers fall back to crc32_le()
 * themselves, or lose to it by what saving the vector registers costs.
 */
#define SHASH_MIN_LEN	128

/* Set before the first packet, cleared after the last; NULL: use crc32_le() */
static struct crypto_shash *icrc_shash;

static int icrc_shash_more(struct crypto_shash *shash, u32 *crc, const void *p,
			   unsigned int len)
{
	SHASH_DESC_ON_STACK(desc, shash);
	int ret;

	desc->tfm = shash;
	/* The exported state of "crc32" is the running CRC, in CPU order */
	ret = crypto_shash_import(desc, crc);
	if (!ret)
		ret = crypto_shash_update(desc, p, len);
	if (!ret)
		ret = crypto_shash_export(desc, crc);
	return ret;
}

/*
 * That the state of "crc32" is a plain u32 is so in every driver that there
 * is, but promised nowhere: believe it only after it was seen to hold.
 */
static bool icrc_shash_fits(struct crypto_shash *shash)
{
	static const u8 sample[2 * SHASH_MIN_LEN] = { 'n', 'h', 'c', 'a' };
	u32 crc = ICRC_SEED;

	if (crypto_shash_statesize(shash) != sizeof(crc))
		return false;
	if (icrc_shash_more(shash, &crc, sample, sizeof(sample)))
		return false;
	return crc == crc32_le(ICRC_SEED, sample, sizeof(sample));
}

int nhca_icrc_init(void)
{
	struct crypto_shash *shash;

	/*
	 * All drivers of this name.  Allocation alone would be content with
	 * the portable one if that happens to be loaded already.
	 */
	request_module("crypto-crc32");
	shash = crypto_alloc_shash("crc32", 0, 0);
	if (IS_ERR(shash)) {
		pr_info("no crc32 in the crypto API (%pe), using the library's\n", shash);
		return 0;
	}
	if (!icrc_shash_fits(shash)) {
		pr_info("crc32 in the crypto API does not fit, using the library's\n");
		crypto_free_shash(shash);
		return 0;
	}
	icrc_shash = shash;
	return 0;
}

void nhca_icrc_exit(void)
{
	crypto_free_shash(icrc_shash);
	icrc_shash = NULL;
}

u32 nhca_icrc_more(u32 crc, const void *p, unsigned int len)
{
	u32 running = crc;

	if (len >= SHASH_MIN_LEN && icrc_shash &&
	    !icrc_shash_more(icrc_shash, &running, p, len))
		return running;
	return crc32_le(crc, p, len);
}

#endif

u32 nhca_icrc_start4(const void *iph)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		u8 bth[NHCA_BTH_LEN];
	} masked;

	static_assert(sizeof(masked) == 40);
	memcpy(&masked, iph, sizeof(masked));
	masked.ip.tos = 0xff;
	masked.ip.ttl = 0xff;
	memset(&masked.ip.check, 0xff, sizeof(masked.ip.check));
	memset(&masked.udp.check, 0xff, sizeof(masked.udp.check));
	masked.bth[BTH_MASKED_BYTE] = 0xff;
	return crc32_le(ICRC_SEED, (const u8 *)&masked, sizeof(masked));
}

u32 nhca_icrc_start6(const void *iph)
{
	struct {
		struct ipv6hdr ip;
		struct udphdr udp;
		u8 bth[NHCA_BTH_LEN];
	} masked;

	static_assert(sizeof(masked) == 60);
	memcpy(&masked, iph, sizeof(masked));
	masked.ip.priority = 0xf;
	memset(masked.ip.flow_lbl, 0xff, sizeof(masked.ip.flow_lbl));
	masked.ip.hop_limit = 0xff;
	memset(&masked.udp.check, 0xff, sizeof(masked.udp.check));
	masked.bth[BTH_MASKED_BYTE] = 0xff;
	return crc32_le(ICRC_SEED, (const u8 *)&masked, sizeof(masked));
}

__le32 nhca_icrc_finish(u32 crc)
{
	return cpu_to_le32(~crc);
}
