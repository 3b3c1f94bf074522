/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A function that a KUnit test may replace begins with NHCA_STUB(), before any effect. In a build
 * without the tests, the macro does nothing.
 */
#ifndef NHCA_STUB_H
#define NHCA_STUB_H

#if IS_ENABLED(CONFIG_INFINIBAND_NHCA_KUNIT_TEST)
#include <kunit/static_stub.h>
#define NHCA_STUB(fn, args...)	KUNIT_STATIC_STUB_REDIRECT(fn, ##args)
#else
#define NHCA_STUB(...)	do { } while (0)
#endif

#endif /* NHCA_STUB_H */
