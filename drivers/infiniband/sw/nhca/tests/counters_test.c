// SPDX-License-Identifier: GPL-2.0
/* KUnit: each counter has a name, and no two counters have the same name. */
#include <kunit/test.h>

#include "../nhca.h"
#include "../observe/counters.h"

static void names_test(struct kunit *test)
{
	struct rdma_hw_stats *stats = nhca_alloc_hw_stats(NULL, NHCA_PORT);
	int i, k;

	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_EQ(test, stats->num_counters, NHCA_CNT_MAX);
	for (i = 0; i < stats->num_counters; i++) {
		KUNIT_EXPECT_NOT_NULL_MSG(test, stats->descs[i].name, "counter %d", i);
		for (k = 0; stats->descs[i].name && k < i; k++)
			KUNIT_EXPECT_STRNEQ(test, stats->descs[k].name ?: "",
					    stats->descs[i].name);
	}
	rdma_free_hw_stats_struct(stats);
}

static struct kunit_case counters_cases[] = {
	KUNIT_CASE(names_test),
	{}
};

static struct kunit_suite counters_suite = {
	.name = "nhca_counters",
	.test_cases = counters_cases,
};

kunit_test_suite(counters_suite);
