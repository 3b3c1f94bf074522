// SPDX-License-Identifier: GPL-2.0
/*
 * The invariant CRC, computed with the fastest CRC-32 of the running kernel.
 *
 * From Linux 6.14 on, crc32_le() is the fastest.  In earlier kernels for x86, crc32_le() is
 * portable code with tables, and only the crypto API ("crc32") has code that uses the carry-less
 * multiplication of the CPU.
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
 * CRC-32, with a seed of ones, of the eight bytes of 0xff with which each ICRC begins: they stand
 * for the local route header of InfiniBand.
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
 * Minimum number of bytes for which the crypto API is used.  For fewer bytes, the accelerated
 * drivers of the crypto API call crc32_le() themselves, or are slower than crc32_le() because they
 * save the vector registers.
 */
#define SHASH_MIN_LEN	128

/* set before the first packet and cleared after the last packet; NULL: use crc32_le() */
static struct crypto_shash *icrc_shash;

static int icrc_shash_more(struct crypto_shash *shash, u32 *crc, const void *p,
			   unsigned int len)
{
	SHASH_DESC_ON_STACK(desc, shash);
	int ret;

	desc->tfm = shash;
	/* the exported state of "crc32" is the running CRC, in CPU byte order */
	ret = crypto_shash_import(desc, crc);
	if (!ret)
		ret = crypto_shash_update(desc, p, len);
	if (!ret)
		ret = crypto_shash_export(desc, crc);
	return ret;
}

/*
 * The state of "crc32" is a u32 in all drivers of the kernel, but the crypto API does not guarantee
 * this format.  So check the driver with a sample.  Return: true if the driver can be used.
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
	 * Load all drivers of this name.  The allocation alone loads no accelerated driver if the
	 * portable driver is already loaded.
	 */
	request_module("crypto-crc32");
	shash = crypto_alloc_shash("crc32", 0, 0);
	if (IS_ERR(shash)) {
		pr_info("the crypto API has no crc32 (%pe), so ICRCs are computed with crc32_le(); on x86 a kernel with CONFIG_CRYPTO_CRC32_PCLMUL computes them faster\n",
			shash);
		return 0;
	}
	if (!icrc_shash_fits(shash)) {
		pr_info("the driver of crc32 in the crypto API does not export its state as a 32-bit CRC, so ICRCs are computed with crc32_le(), which on x86 is slower\n");
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
