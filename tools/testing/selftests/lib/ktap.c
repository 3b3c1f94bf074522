// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Results of a test program as a KTAP report.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ktap.h"

static struct {
	unsigned int count, failed;
} ktap;

static void ktap_begin(void)
{
	if (!ktap.count)
		puts("KTAP version 1");
}

/* A result is one line, whatever the texts contain. */
static void ktap_text(char *text)
{
	for (; *text; text++)
		putchar(*text == '\n' || *text == '\r' ? ' ' : *text);
}

static void ktap_result(const char *verdict, const char *name, va_list args, const char *mark,
			const char *why)
{
	char text[1024];

	ktap_begin();
	vsnprintf(text, sizeof(text), name, args);
	printf("%s %u - ", verdict, ++ktap.count);
	ktap_text(text);
	if (why) {
		snprintf(text, sizeof(text), "%s", why);
		printf(" #%s ", mark);
		ktap_text(text);
	}
	putchar('\n');
	/* a child must not print the line again, and a crash must not lose it */
	fflush(stdout);
}

void ktap_ok(const char *name, ...)
{
	va_list args;

	va_start(args, name);
	ktap_result("ok", name, args, "", NULL);
	va_end(args);
}

void ktap_notok(const char *why, const char *name, ...)
{
	va_list args;

	ktap.failed++;
	va_start(args, name);
	ktap_result("not ok", name, args, "", why);
	va_end(args);
}

void ktap_skip(const char *why, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	ktap_result("ok", name, args, " SKIP", why);
	va_end(args);
}

int ktap_end(void)
{
	ktap_begin();
	printf("1..%u\n", ktap.count);
	fflush(stdout);
	return ktap.failed ? 1 : 0;
}
