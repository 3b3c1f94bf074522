/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NHCA_STUB() is the first statement of each function that a KUnit test may replace. In a build
 * without the tests, the macro expands to nothing.
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
