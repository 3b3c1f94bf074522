/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fail_nth: repeats a call.  The kernel fails the first allocation that this thread makes in it,
 * then the second, and so on (Documentation/fault-injection/fault-injection.rst,
 * /proc/thread-self/fail-nth).
 */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include "verbs_test.h"

/*
 * One call.  The functions return 0, an errno, or -1 after fail().  All except @call run without
 * injected failures and must return 0; they may be NULL.
 */
struct step {
	const char *name;
	int (*prepare)(void);	/* before each call */
	int (*call)(void);
	int (*succeeded)(void);	/* checks the result of @call, and undoes it */
	int (*failed)(void);	/* after a failed call: checks and undoes what it has left behind */
};

/*
 * The file that counts allocations; fail_init/ has another such file, for init functions of
 * modules.
 */
extern const char *nth_path;

/* True if the kernel has failed an allocation in the last call. */
extern bool injected;

/* Only every stride-th allocation is failed; 1: each of them. */
extern unsigned int stride;

bool nth_arm(unsigned int n);
bool nth_disarm(void);
int nth_write(const char *path, const char *value);
bool nth_open(void);
void nth_run(const struct step *steps, size_t count, const char *only);

#endif /* FAIL_NTH_H */
