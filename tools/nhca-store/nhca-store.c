// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: exports files and block devices by RDMA, and copies from and to such exports.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static void vwarn(const char *format, va_list args, int error)
{
	fflush(stdout);
	flockfile(stderr);
	fputs("nhca-store: ", stderr);
	vfprintf(stderr, format, args);
	if (error)
		fprintf(stderr, ": %s", strerror(error));
	fputc('\n', stderr);
	funlockfile(stderr);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vwarn(format, args, 0);
	va_end(args);
}

void warn_errno(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vwarn(format, args, error);
	va_end(args);
}

void stop(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vwarn(format, args, 0);
	va_end(args);
	exit(status);
}

int parse_size(const char *text, uint64_t *size)
{
	static const char suffixes[] = "KMGT";
	unsigned long long number;
	const char *suffix;
	char *end;
	int shift = 0;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -1;
	if (*end) {
		suffix = strchr(suffixes, *end);
		if (!suffix || end[1])
			return -1;
		shift = 10 * (suffix - suffixes + 1);
	}
	if (number > UINT64_MAX >> shift)
		return -1;
	*size = (uint64_t)number << shift;
	return 0;
}

static const char usage[] =
	"usage: nhca-store serve [-c FILE]\n"
	"       nhca-store ls SERVER[:PORT]\n"
	"       nhca-store get [OPTIONS] SERVER[:PORT] NAME FILE\n"
	"       nhca-store put [OPTIONS] FILE SERVER[:PORT] NAME\n"
	"       nhca-store attach [-r] [-t SECONDS] SERVER[:PORT] NAME\n"
	"\n"
	"  -c, --config FILE    configuration of the server (/etc/nhca-store.conf)\n"
	"  -o, --offset BYTES   first byte of the export (0)\n"
	"  -l, --length BYTES   number of bytes (get: to the end of the export; put: of FILE)\n"
	"  -d, --direct         no buffer between the local disk and the network\n"
	"  -q, --quiet          no progress\n"
	"  -r, --read-only      the block device cannot be written\n"
	"  -t, --timeout SECONDS\n"
	"                       if the connection is lost, try to connect again for this time,\n"
	"                       or \"forever\" (attach: 600; get, put: 0)\n"
	"\n"
	"FILE may be - for standard output (get) or input (put).  See nhca-store(1).\n";

__attribute__((noreturn)) static void misused(void)
{
	fputs(usage, stderr);
	exit(STORE_MISUSED);
}

static int main_serve(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ }
	};
	const char *path = "/etc/nhca-store.conf";
	struct store_config config;
	int option;

	while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		if (option != 'c')
			misused();
		path = optarg;
	}
	if (optind != argc)
		misused();
	config_read(path, &config);
	return serve(&config);
}

static uint32_t timeout_of(const char *text)
{
	uint64_t seconds;

	if (!strcmp(text, "forever"))
		return STORE_FOREVER;
	if (parse_size(text, &seconds) || seconds >= STORE_FOREVER)
		stop(STORE_MISUSED, "neither a number of seconds nor \"forever\": %s", text);
	return seconds;
}

/* Reads the options of get and put.  Afterwards optind is the index of the first argument. */
static struct copy_options copy_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "offset", required_argument, NULL, 'o' },
		{ "length", required_argument, NULL, 'l' },
		{ "direct", no_argument, NULL, 'd' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "timeout", required_argument, NULL, 't' },
		{ }
	};
	struct copy_options copy = { .length = UINT64_MAX };
	int option;

	while ((option = getopt_long(argc, argv, "o:l:dqt:", options, NULL)) != -1) {
		switch (option) {
		case 'o':
			if (parse_size(optarg, &copy.offset))
				stop(STORE_MISUSED, "not a number of bytes: %s", optarg);
			break;
		case 'l':
			if (parse_size(optarg, &copy.length))
				stop(STORE_MISUSED, "not a number of bytes: %s", optarg);
			break;
		case 'd':
			copy.direct = true;
			break;
		case 'q':
			copy.quiet = true;
			break;
		case 't':
			copy.timeout = timeout_of(optarg);
			break;
		default:
			misused();
		}
	}
	if (argc - optind != 3)
		misused();
	return copy;
}

static int main_attach(int argc, char **argv)
{
	static const struct option options[] = {
		{ "read-only", no_argument, NULL, 'r' },
		{ "timeout", required_argument, NULL, 't' },
		{ }
	};
	uint32_t timeout = 600;
	bool read_only = false;
	int option;

	while ((option = getopt_long(argc, argv, "rt:", options, NULL)) != -1) {
		switch (option) {
		case 'r':
			read_only = true;
			break;
		case 't':
			timeout = timeout_of(optarg);
			break;
		default:
			misused();
		}
	}
	if (argc - optind != 2)
		misused();
	return attach(argv[optind], argv[optind + 1], read_only, timeout);
}

int main(int argc, char **argv)
{
	struct copy_options options;
	const char *command;

	if (argc < 2)
		misused();
	command = argv[1];
	if (!strcmp(command, "-h") || !strcmp(command, "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	argc--;
	argv++;
	if (!strcmp(command, "serve"))
		return main_serve(argc, argv);
	if (!strcmp(command, "ls")) {
		if (argc != 2 || argv[1][0] == '-')
			misused();
		return list(argv[1]);
	}
	if (!strcmp(command, "get")) {
		options = copy_options(argc, argv);
		return get(argv[optind], argv[optind + 1], argv[optind + 2], &options);
	}
	if (!strcmp(command, "put")) {
		options = copy_options(argc, argv);
		return put(argv[optind], argv[optind + 1], argv[optind + 2], &options);
	}
	if (!strcmp(command, "attach"))
		return main_attach(argc, argv);
	misused();
}
