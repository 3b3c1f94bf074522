// SPDX-License-Identifier: GPL-2.0
/* fail_nth.h describes these functions. */
#define _GNU_SOURCE
#include "fail_nth.h"

const char *nth_path = "/proc/thread-self/fail-nth";
static int nth_fd = -1;
bool injected;

/* Number of allocations that were failed, in all steps */
static unsigned int nth_total;

unsigned int stride = 1;

bool nth_arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	return pwrite(nth_fd, text, len, 0) == len;
}

/*
 * Stop failing allocations, and set injected. The kernel decrements the number in the file; 0 means
 * that the allocation has failed.
 */
bool nth_disarm(void)
{
	char text[16] = {};

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	injected = atoi(text) == 0;
	return nth_arm(0);
}

int nth_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), len = strlen(value);
	int ret = fd < 0 || write(fd, value, len) != len ? errno : 0;

	if (fd >= 0)
		close(fd);
	return ret;
}

/* Also fail allocations that may sleep, and allocations of single pages. */
bool nth_open(void)
{
	static const char *const settings[][2] = {
		{ "/sys/kernel/debug/failslab/ignore-gfp-wait", "N" },
		{ "/sys/kernel/debug/failslab/verbose", "0" },
		{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N" },
		{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "/sys/kernel/debug/fail_page_alloc/min-order", "0" },
		{ "/sys/kernel/debug/fail_page_alloc/verbose", "0" },
	};

	nth_fd = open(nth_path, O_RDWR);
	if (nth_fd < 0) {
		skipped = true;
		return fail("this kernel cannot inject failures of allocations");
	}
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		int ret = nth_write(settings[i][0], settings[i][1]);

		REQUIRE(!ret, "%s: %s", settings[i][0], strerror(ret));
	}
	return true;
}

/* Errors that mean that the kernel had no memory */
static bool nth_plausible(int error)
{
	return error == ENOMEM || error == EAGAIN || error == ENOBUFS || error == ENOSPC;
}

static bool nth_aside(int (*f)(void), const char *what, unsigned int n)
{
	char why[sizeof(reason)];
	int ret;

	reason[0] = 0;
	ret = f ? f() : 0;
	memcpy(why, reason, sizeof(why));
	REQUIRE(!ret, "%s, allocation %u failed: %s", what, n, ret > 0 ? strerror(ret) : why);
	return true;
}

static bool nth_step(const struct step *s)
{
	unsigned int n, failures = 0, survived = 0, others = 0, last = 0;
	char text[64] = "";
	int ret;

	for (n = 1;; n += stride) {
		if (!nth_aside(s->prepare, "preparation of the call", last))
			return false;
		REQUIRE(nth_arm(n), "fail-nth: %m");
		ret = s->call();
		REQUIRE(nth_disarm(), "fail-nth: %m");
		if (!injected)
			break;
		last = n;
		if (!ret) {
			survived++;
		} else {
			failures++;
			if (!nth_plausible(ret)) {
				snprintf(text, sizeof(text), "; allocation %u: %s", n, strerror(ret));
				others++;
			}
		}
		if (!nth_aside(ret ? s->failed : s->succeeded,
			       ret ? "after the call failed" : "after the call", n))
			return false;
	}
	REQUIRE(!ret, "without a failed allocation, after %u: %s", last, strerror(ret));
	injected = false;
	if (!nth_aside(s->succeeded, "after the last call", 0))
		return false;
	/* The sum may be 0, because some destroy verbs allocate nothing. */
	nth_total += failures + survived;
	printf("#   %s: %u allocations, of which %u failed the call%s\n", s->name, failures + survived,
	       failures, text);
	REQUIRE(!others, "%u calls failed with another error%s", others, text);
	return true;
}

void nth_run(const struct step *steps, size_t count, const char *only)
{
	for (size_t i = 0; i < count; i++) {
		if (only && !strstr(steps[i].name, only))
			continue;
		if (nth_step(&steps[i])) {
			ktap_ok("%s", steps[i].name);
			continue;
		}
		nth_arm(0);
		ktap_notok(reason, "%s", steps[i].name);
	}
	if (!nth_total)
		ktap_notok("no allocation was failed", "allocations fail");
}
