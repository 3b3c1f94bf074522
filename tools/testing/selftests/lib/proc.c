// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Numbers of this process and of the kernel, from files in /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

long proc_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	char line[256];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = atol(line + strlen(name));
	if (f)
		fclose(f);
	return n;
}

long status_kb(const char *name)
{
	return proc_number("/proc/self/status", name);
}

long pinned_kb(void)
{
	long kb = status_kb("VmPin:"), last;

	do {
		last = kb;
		usleep(200000);
		kb = status_kb("VmPin:");
	} while (kb != last);
	return kb;
}
