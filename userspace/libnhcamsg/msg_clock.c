// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the clock and the random numbers.  tools/testing/msgsim replaces this file, so
 * that a run can be repeated.
 */
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "msg_port.h"

uint64_t msg_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

uint64_t msg_random(void)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = msg_clock() << 20 ^ getpid();
	return r;
}
