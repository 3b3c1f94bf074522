// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-fault: adds and removes rules of fault injection through the driver's files in debugfs.  The
 * driver also checks each rule, but returns only an errno.  The checks here print what is wrong.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#define DEBUGFS		"/sys/kernel/debug"
#define NHCA		DEBUGFS "/nhca"
#define COMMAND_MAX	256

#define QPN_MAX		0xffffffUL
#define NUMBER_MAX	0xffffffffUL
#define SEED_MAX	0x7fffffffffffffffUL

enum {
	FAILED = 1,		/* the command failed */
	MISUSED = 2,		/* the arguments are invalid */
};

__attribute__((format(printf, 2, 3), noreturn))
static void stop(int status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	fputs("nhca-fault: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

static const char usage[] =
	"usage: nhca-fault add DEVICE KIND [ARGUMENT] [WORDS]\n"
	"       nhca-fault list [DEVICE]\n"
	"       nhca-fault remove DEVICE NUMBER\n"
	"       nhca-fault clear [DEVICE]\n"
	"       nhca-fault opcodes\n"
	"\n"
	"KIND:   drop, delay MS, duplicate, reorder PACKETS, corrupt, link MS,\n"
	"        nak sequence|invalid|access|operational, rnr, cq, mr ERRNO\n"
	"WORDS:  send|receive, qp N, opcode NAME, probability P%, every N, times N, seed N,\n"
	"        framework; link: now\n"
	"\n"
	"See nhca-fault(8).\n";

/* ---- the syntax of rules ---- */

enum {
	WAY = 1 << 0,
	QP = 1 << 1,
	OPCODE = 1 << 2,
	PROBABILITY = 1 << 3,
	EVERY = 1 << 4,
	TIMES = 1 << 5,
	SEED = 1 << 6,
	FRAMEWORK = 1 << 7,
	NOW = 1 << 8,
	WHEN = PROBABILITY | EVERY | TIMES | SEED | FRAMEWORK,
};

static const struct kind {
	const char *name;
	unsigned int may;
	unsigned long max;		/* maximum of an argument that is a number; otherwise 0 */
	const char *what;		/* what the argument means */
	const char *words[16];		/* the argument is one of these names */
} kinds[] = {
	{ "drop", WAY | QP | OPCODE | WHEN, 0, NULL, {} },
	{ "delay", WAY | QP | OPCODE | WHEN, 10000, "milliseconds", {} },
	{ "duplicate", WAY | QP | OPCODE | WHEN, 0, NULL, {} },
	{ "reorder", WAY | QP | OPCODE | WHEN, 64, "a number of overtaking packets", {} },
	{ "corrupt", WAY | QP | OPCODE | WHEN, 0, NULL, {} },
	{ "link", QP | OPCODE | WHEN | NOW, 60000, "milliseconds", {} },
	{ "nak", QP | OPCODE | WHEN, 0, "a NAK",
	  { "sequence", "invalid", "access", "operational" } },
	{ "rnr", QP | OPCODE | WHEN, 0, NULL, {} },
	{ "cq", QP | WHEN, 0, NULL, {} },
	{ "mr", WHEN, 0, "an errno",
	  { "EPERM", "EINTR", "EIO", "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "EBUSY", "ENODEV",
	    "EINVAL", "ENOSPC", "EOPNOTSUPP" } },
	{}
};

static const struct word {
	const char *name;
	unsigned int bit;
	bool value;			/* a value follows the word */
	unsigned long min, max;		/* range of the value; max 0: the value is no number */
} words[] = {
	{ "send", WAY, false, 0, 0 },
	{ "receive", WAY, false, 0, 0 },
	{ "qp", QP, true, 1, QPN_MAX },
	{ "opcode", OPCODE, true, 0, 0 },
	{ "probability", PROBABILITY, true, 0, 0 },
	{ "every", EVERY, true, 1, NUMBER_MAX },
	{ "times", TIMES, true, 1, NUMBER_MAX },
	{ "seed", SEED, true, 0, SEED_MAX },
	{ "framework", FRAMEWORK, false, 0, 0 },
	{ "now", NOW, false, 0, 0 },
	{}
};

/* Append @word to the list "a, b, c" in @text. */
static void join(char *text, const char *word)
{
	sprintf(text + strlen(text), "%s%s", *text ? ", " : "", word);
}

/* Return: the names of the words in @may. */
static const char *list_words(unsigned int may)
{
	static char text[256];

	text[0] = '\0';
	for (const struct word *w = words; w->name; w++)
		if (w->bit & may)
			join(text, w->name);
	return text;
}

static const char *list_choice(const char *const *choice)
{
	static char text[256];

	text[0] = '\0';
	for (; *choice; choice++)
		join(text, *choice);
	return text;
}

static const char *list_kinds(void)
{
	static char text[256];

	text[0] = '\0';
	for (const struct kind *k = kinds; k->name; k++)
		join(text, k->name);
	return text;
}

static void check_number(const char *name, const char *text, unsigned long min, unsigned long max,
			 const char *what)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = text ? strtoul(text, &end, 0) : 0;
	if (!text || *text < '0' || *text > '9' || *end || errno || value < min || value > max)
		stop(MISUSED, "%s%s%s: needs %s from %lu to %lu", name, text ? " " : "",
		     text ? text : "", what, min, max);
}

static void check_probability(const char *text)
{
	unsigned long ppm = 0, unit = 10000;
	const char *p = text ? text : "";
	bool good = *p >= '0' && *p <= '9', point = false;

	for (; good && *p && *p != '%'; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		good = *p >= '0' && *p <= '9' && !(point && unit == 1);
		if (!good)
			break;
		if (point)
			unit /= 10;
		ppm = (point ? ppm : ppm * 10) + unit * (*p - '0');
		good = ppm <= 1000000;
	}
	if (!good || strcmp(p, "%") || !ppm)
		stop(MISUSED, "probability%s%s: needs a percentage above 0%% and up to 100%%, with at most four decimals, such as 25%% or 0.1%%",
		     text ? " " : "", text ? text : "");
}

static void check_argument(const struct kind *k, const char *text)
{
	const char *const *choice = k->words;

	if (k->max) {
		check_number(k->name, text, 1, k->max, k->what);
		return;
	}
	while (*choice && (!text || strcmp(*choice, text)))
		choice++;
	if (!*choice)
		stop(MISUSED, "%s%s%s: needs %s, one of: %s", k->name, text ? " " : "", text ? text : "",
		     k->what, list_choice(k->words));
}

/* ---- the driver's files ---- */

static FILE *open_file(const char *device, const char *name, const char *mode)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), NHCA "/%s/%s", device, name);
	f = fopen(path, mode);
	if (f)
		return f;
	if (errno == EPERM || errno == EACCES)
		stop(FAILED, "%s: needs root with CAP_NET_ADMIN, and a kernel that is not locked down",
		     path);
	stop(FAILED, "%s: %s", path, strerror(errno));
}

/* Return: the next device, or NULL after the last one. */
static const char *next_device(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			return entry->d_name;
	return NULL;
}

static DIR *open_devices(void)
{
	DIR *dir = opendir(NHCA);
	struct statfs fs;

	if (dir)
		return dir;
	if (errno == EACCES || errno == EPERM)
		stop(FAILED, "needs root: only root may read " DEBUGFS);
	if (statfs(DEBUGFS, &fs) || fs.f_type != DEBUGFS_MAGIC)
		stop(FAILED, DEBUGFS ": debugfs is not mounted; run mount -t debugfs none " DEBUGFS);
	stop(FAILED, "the driver is not loaded; run modprobe nhca");
}

static void check_device(const char *device)
{
	DIR *dir = open_devices();
	char there[512] = "";
	const char *name;

	while ((name = next_device(dir))) {
		if (!strcmp(name, device)) {
			closedir(dir);
			return;
		}
		snprintf(there + strlen(there), sizeof(there) - strlen(there), " %s", name);
	}
	if (*there)
		stop(FAILED, "%s: no such nhca device; there is:%s", device, there);
	stop(FAILED, "%s: no nhca device; rdma link add %s type nhca netdev eth0 creates one on eth0",
	     device, device);
}

/* Accept a name with or without its service ("rc_send_only", "send_only"). */
static void check_opcode(const char *device, const char *text)
{
	FILE *f = open_file(device, "opcodes", "r");
	bool found = false;
	char line[128];
	char *behind;

	while (!found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		behind = strchr(line, '_');
		found = !strcmp(line, text) || (behind && !strcmp(behind + 1, text));
	}
	fclose(f);
	if (!found)
		stop(MISUSED, "opcode %s: no such opcode; 'nhca-fault opcodes' lists them", text);
}

static void command(const char *device, const char *text)
{
	FILE *f = open_file(device, "faults", "w");

	/* the driver handles each write as one command */
	if (write(fileno(f), text, strlen(text)) == (ssize_t)strlen(text)) {
		fclose(f);
		return;
	}
	switch (errno) {
	case EPERM:
		stop(FAILED, "needs CAP_NET_ADMIN in the user namespace of the device's network namespace");
	case ENOENT:
		stop(FAILED, "%s: no such rule; 'nhca-fault list %s' shows the rules",
		     text, device);
	case ENOSPC:
		stop(FAILED, "%s already has the maximum of 64 rules: remove a rule first", device);
	case EOPNOTSUPP:
		stop(FAILED, "framework: this kernel has no fault injection framework (CONFIG_FAULT_INJECTION_DEBUG_FS); use probability or every instead");
	default:
		stop(FAILED, "%s: the driver refuses '%s': %s", device, text, strerror(errno));
	}
}

static void show_rules(const char *device, bool last)
{
	FILE *f = open_file(device, "faults", "r");
	char line[512], kept[512] = "";

	while (fgets(line, sizeof(line), f)) {
		if (last)
			strcpy(kept, line);
		else
			printf("%s %s", device, line);
	}
	if (*kept)
		printf("%s %s", device, kept);
	fclose(f);
}

/* ---- commands ---- */

static const struct word *find_word(const struct kind *k, const char *text)
{
	const struct word *w = words;

	while (w->name && strcmp(w->name, text))
		w++;
	if (!w->name)
		stop(MISUSED, "%s: %s has no such word; its words are: %s", text, k->name,
		     list_words(k->may));
	if (!(w->bit & k->may))
		stop(MISUSED, "%s: not possible with %s; its words are: %s", text, k->name,
		     list_words(k->may));
	return w;
}

/* Check the words after the kind and its argument. */
static void check_words(const char *device, const struct kind *k, char **argv)
{
	const unsigned int when = PROBABILITY | EVERY | FRAMEWORK;
	unsigned int given = 0;
	const struct word *w;

	for (; *argv; argv++) {
		w = find_word(k, *argv);
		if (given & w->bit)
			stop(MISUSED, "%s: at most one of these words, and only once",
			     list_words(w->bit));
		if ((w->bit & when) && (given & when))
			stop(MISUSED, "%s: only one of probability, every and framework is allowed",
			     w->name);
		given |= w->bit;
		if ((given & NOW) && given != NOW)
			stop(MISUSED, "now: stands alone, without other words, as in link 500 now");
		if (!w->value)
			continue;
		argv++;
		if (w->bit == PROBABILITY)
			check_probability(*argv);
		else if (w->bit == OPCODE && *argv)
			check_opcode(device, *argv);
		else if (w->bit == OPCODE)
			stop(MISUSED, "opcode: needs a name; 'nhca-fault opcodes' lists them");
		else
			check_number(w->name, *argv, w->min, w->max, "a number");
		if (!*argv)
			break;
	}
}

static void add(const char *device, char **argv)
{
	char text[COMMAND_MAX + 1] = "add";
	const struct kind *k = kinds;
	bool argument;

	while (k->name && (!argv[0] || strcmp(k->name, argv[0])))
		k++;
	if (!k->name)
		stop(MISUSED, "%s: %s kind of fault; the kinds are: %s", argv[0] ? argv[0] : "add",
		     argv[0] ? "no such" : "needs a", list_kinds());
	argument = k->max || k->words[0];
	if (argument)
		check_argument(k, argv[1]);
	check_words(device, k, argv + 1 + argument);
	for (char **word = argv; *word; word++) {
		if (strlen(text) + strlen(*word) + 2 > sizeof(text))
			stop(MISUSED, "a rule has at most %d characters", COMMAND_MAX);
		strcat(strcat(text, " "), *word);
	}
	command(device, text);
	/* with "now" the driver adds no rule, so there is no rule to print */
	if (!argument || !argv[2] || strcmp(argv[2], "now"))
		show_rules(device, true);
}

/* Call @what for @device, or for all devices if @device is NULL. */
static void each(const char *device, void (*what)(const char *device))
{
	const char *name;
	DIR *dir;

	if (device) {
		check_device(device);
		what(device);
		return;
	}
	dir = open_devices();
	while ((name = next_device(dir)))
		what(name);
	closedir(dir);
}

static void list(const char *device)
{
	show_rules(device, false);
}

static void clear(const char *device)
{
	command(device, "clear");
}

static void opcodes(void)
{
	DIR *dir = open_devices();
	const char *device = next_device(dir);
	char line[128];
	FILE *f;

	if (!device)
		stop(FAILED, "opcodes: needs an nhca device; create one with rdma link add");
	f = open_file(device, "opcodes", "r");
	while (fgets(line, sizeof(line), f))
		fputs(line, stdout);
	fclose(f);
	closedir(dir);
}

static void no_more(int argc, char **argv, int most)
{
	if (argc > most)
		stop(MISUSED, "%s: too many arguments after %s %s; 'nhca-fault help' prints the syntax",
		     argv[most], argv[0], argv[1]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *device = argc > 2 ? argv[2] : NULL;
	char text[64];

	argv[0] = "nhca-fault";
	if (!strcmp(what, "help") || !strcmp(what, "--help") || !strcmp(what, "-h")) {
		fputs(usage, stdout);
	} else if (!strcmp(what, "list")) {
		no_more(argc, argv, 3);
		each(device, list);
	} else if (!strcmp(what, "clear")) {
		no_more(argc, argv, 3);
		each(device, clear);
	} else if (!strcmp(what, "opcodes")) {
		no_more(argc, argv, 2);
		opcodes();
	} else if (!strcmp(what, "add") || !strcmp(what, "remove")) {
		if (!device)
			stop(MISUSED, "%s: needs a device, such as %s nhca0", what, what);
		check_device(device);
		if (*what == 'a') {
			add(device, argv + 3);
		} else {
			check_number("remove", argv[3], 1, NUMBER_MAX, "the number of a rule");
			no_more(argc, argv, 4);
			snprintf(text, sizeof(text), "remove %s", argv[3]);
			command(device, text);
		}
	} else {
		stop(MISUSED, "%s%s; the commands are add, list, remove, clear, opcodes, help",
		     what, *what ? ": no such command" : "no command");
	}
	if (fflush(stdout))
		stop(FAILED, "standard output: %s", strerror(errno));
	return 0;
}
