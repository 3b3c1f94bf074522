// SPDX-License-Identifier: GPL-2.0
/*
 * pagecopy: measures the kernel's own copies of pages, for the benchmark.
 *
 * The module copies when it is loaded, as a stream of WRITEs of 1 MiB does: from one memory of 16
 * MiB to another, page by page through the kernel's mapping. The module prints nanoseconds per MiB
 * for memcpy() and for copy_page().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>

#define PAGES	(SZ_16M / PAGE_SIZE)
#define ROUNDS	4

static struct page *from[PAGES], *to[PAGES];

static u64 measure(bool by_page)
{
	u64 begun = ktime_get_ns();
	int round, i;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < PAGES; i++)
			if (by_page)
				copy_page(page_address(to[i]), page_address(from[i]));
			else
				memcpy(page_address(to[i]), page_address(from[i]), PAGE_SIZE);
	return div_u64(ktime_get_ns() - begun, ROUNDS * (SZ_16M / SZ_1M));
}

static void drop(struct page **pages)
{
	int i;

	for (i = 0; i < PAGES && pages[i]; i++)
		__free_page(pages[i]);
}

static int __init pagecopy_init(void)
{
	int i, ret = -ENOMEM;

	for (i = 0; i < PAGES; i++) {
		from[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		to[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!from[i] || !to[i])
			goto out;
	}
	measure(true);
	pr_info("memcpy %llu copy_page %llu\n", measure(false), measure(true));
	ret = 0;
out:
	drop(from);
	drop(to);
	return ret;
}

static void __exit pagecopy_exit(void)
{
}

module_init(pagecopy_init);
module_exit(pagecopy_exit);
MODULE_DESCRIPTION("What copies of pages cost");
MODULE_LICENSE("GPL");
