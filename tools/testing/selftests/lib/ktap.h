/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Results of a test program as a KTAP report (Documentation/dev-tools/ktap.rst of the kernel):
 *
 *	KTAP version 1
 *	ok 1 - NAME
 *	not ok 2 - NAME # WHY
 *	ok 3 - NAME # SKIP WHY
 *	1..3
 *
 * The plan is the last line, so a report without a plan is from a program that ended too early.
 * A line that begins with "# " is a note.  lib/ktap.sh takes over the results of a program, and
 * lib/ktap.py reads them.  One process at a time may print results.
 */
#ifndef KTAP_H
#define KTAP_H

/**
 * ktap_ok - print that a test has passed
 * @name: format of the test's name
 */
__attribute__((format(printf, 1, 2))) void ktap_ok(const char *name, ...);

/**
 * ktap_notok - print that a test has failed
 * @why: what was wrong
 * @name: format of the test's name
 */
__attribute__((format(printf, 2, 3)))
void ktap_notok(const char *why, const char *name, ...);

/**
 * ktap_skip - print that a test could not run
 * @why: what is missing
 * @name: format of the test's name
 */
__attribute__((format(printf, 2, 3))) void ktap_skip(const char *why, const char *name, ...);

/**
 * ktap_end - print the plan, after all tests
 *
 * Return: the exit status of the program: 0, or 1 if a test has failed.
 */
int ktap_end(void);

#endif /* KTAP_H */
