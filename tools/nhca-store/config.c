// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the configuration file of the server.
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "store.h"

/**
 * struct place - the line that is being read, for messages
 * @path: path of the file
 * @line: number of the line, from 1
 */
struct place {
	const char *path;
	unsigned int line;
};

#define wrong(place, format, ...) \
	stop(STORE_MISUSED, "%s:%u: " format, (place)->path, (place)->line, ##__VA_ARGS__)

static void *need(void *memory)
{
	if (!memory)
		stop(STORE_FAILED, "not enough memory");
	return memory;
}

/* Removes white space at both ends of @text. */
static char *strip(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	return text;
}

static bool yes_or_no(const struct place *at, const char *value)
{
	if (!strcmp(value, "yes"))
		return true;
	if (strcmp(value, "no"))
		wrong(at, "neither yes nor no: %s", value);
	return false;
}

static uint64_t size_of(const struct place *at, const char *value)
{
	uint64_t size;

	if (parse_size(value, &size))
		wrong(at, "not a number of bytes: %s", value);
	return size;
}

static unsigned int number_of(const struct place *at, const char *value, unsigned int max)
{
	uint64_t number;

	if (parse_size(value, &number) || !number || number > max)
		wrong(at, "not a number from 1 to %u: %s", max, value);
	return number;
}

/* Writes an IPv4 address as an IPv6 address, so that one comparison serves both. */
static void mapped(uint8_t *to, const void *ipv4)
{
	memset(to, 0, 10);
	memset(to + 10, 0xff, 2);
	memcpy(to + 12, ipv4, 4);
}

/* Adds the addresses that @word names: "all", an address, or an address with a prefix length. */
static void allow(const struct place *at, struct store_export *export, char *word)
{
	char *slash = strchr(word, '/'), *end;
	struct store_range range = { };
	unsigned long bits = 128, most = 128;
	uint8_t ipv4[4];

	if (!strcmp(word, "all")) {
		bits = 0;
	} else {
		if (slash)
			*slash = 0;
		if (inet_pton(AF_INET, word, ipv4) == 1) {
			mapped(range.addr, ipv4);
			most = 32;
		} else if (inet_pton(AF_INET6, word, range.addr) != 1) {
			wrong(at, "neither an IP address nor \"all\": %s", word);
		}
		if (slash) {
			errno = 0;
			bits = strtoul(slash + 1, &end, 10);
			if (errno || !isdigit((unsigned char)slash[1]) || *end || bits > most)
				wrong(at, "not a prefix length from 0 to %lu: %s", most, slash + 1);
			bits += 128 - most;
		}
	}
	range.bits = bits;
	export->allow = need(realloc(export->allow, (export->allows + 1) * sizeof(range)));
	export->allow[export->allows++] = range;
}

static void allow_all_in(const struct place *at, struct store_export *export, char *value)
{
	char *rest = value, *word;

	while ((word = strsep(&rest, ", \t")))
		if (*word)
			allow(at, export, word);
}

static void set_global(const struct place *at, struct store_config *config, const char *key,
		       const char *value)
{
	if (!strcmp(key, "address"))
		config->address = need(strdup(value));
	else if (!strcmp(key, "port"))
		config->port = need(strdup(value));
	else if (!strcmp(key, "pool"))
		config->pool = size_of(at, value);
	else if (!strcmp(key, "connections"))
		config->connections = number_of(at, value, 65535);
	else if (!strcmp(key, "keepalive"))
		config->keepalive = number_of(at, value, 86400);
	else
		wrong(at, "unknown setting before the first export: %s", key);
}

static void set_export(const struct place *at, struct store_export *export, const char *key,
		       char *value)
{
	if (!strcmp(key, "path"))
		export->path = need(strdup(value));
	else if (!strcmp(key, "write"))
		export->write = yes_or_no(at, value);
	else if (!strcmp(key, "sync"))
		export->sync = yes_or_no(at, value);
	else if (!strcmp(key, "offset"))
		export->offset = size_of(at, value);
	else if (!strcmp(key, "size"))
		export->size = size_of(at, value);
	else if (!strcmp(key, "allow"))
		allow_all_in(at, export, value);
	else
		wrong(at, "unknown setting of an export: %s", key);
}

static void export_done(const struct place *at, const struct store_export *export)
{
	if (!export->path)
		wrong(at, "export %s has no path", export->name);
	if (!export->allows)
		wrong(at, "export %s has no line \"allow\", so nobody could open it", export->name);
	if (export->sync && !export->write)
		wrong(at, "export %s: \"sync\" needs \"write = yes\"", export->name);
}

static void begin_export(const struct place *at, struct store_config *config, char *line)
{
	struct store_export *export;
	size_t length = strlen(line);
	unsigned int i;

	if (line[length - 1] != ']')
		wrong(at, "no ] at the end of: %s", line);
	line[length - 1] = 0;
	line = strip(line + 1);
	if (!*line || strlen(line) >= STORE_NAME)
		wrong(at, "a name has 1 to %u characters: %s", STORE_NAME - 1, line);
	for (i = 0; line[i]; i++)
		if (!isgraph((unsigned char)line[i]))
			wrong(at, "a name has no spaces: %s", line);
	for (i = 0; i < config->count; i++)
		if (!strcmp(config->exports[i].name, line))
			wrong(at, "there are two exports with the name %s", line);
	config->exports = need(realloc(config->exports,
				       (config->count + 1) * sizeof(*config->exports)));
	export = &config->exports[config->count++];
	*export = (struct store_export) { };
	memcpy(export->name, line, strlen(line));
}

void config_read(const char *path, struct store_config *config)
{
	struct place at = { .path = path };
	struct store_export *export = NULL;
	char *line = NULL, *text, *value;
	size_t room = 0;
	FILE *file;

	*config = (struct store_config) {
		.port = STORE_PORT,
		.pool = 4 << 20,
		.connections = 64,
		.keepalive = 10,
	};
	file = fopen(path, "re");
	if (!file)
		stop(STORE_MISUSED, "%s: %s", path, strerror(errno));
	while (getline(&line, &room, file) > 0) {
		at.line++;
		text = strip(line);
		if (!*text || *text == '#')
			continue;
		if (*text == '[') {
			if (export)
				export_done(&at, export);
			begin_export(&at, config, text);
			export = &config->exports[config->count - 1];
			continue;
		}
		value = strchr(text, '=');
		if (!value)
			wrong(&at, "neither [NAME] nor SETTING = VALUE: %s", text);
		*value = 0;
		value = strip(value + 1);
		text = strip(text);
		if (!*value)
			wrong(&at, "setting %s has no value", text);
		if (export)
			set_export(&at, export, text, value);
		else
			set_global(&at, config, text, value);
	}
	if (!export)
		wrong(&at, "there is no export");
	export_done(&at, export);
	free(line);
	fclose(file);
}

bool config_allows(const struct store_export *export, const struct sockaddr *peer)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;
	const struct sockaddr_in *in = (const void *)peer;
	unsigned int i, bytes, bits;
	uint8_t addr[16];

	if (peer->sa_family == AF_INET)
		mapped(addr, &in->sin_addr);
	else if (peer->sa_family == AF_INET6)
		memcpy(addr, &in6->sin6_addr, sizeof(addr));
	else
		return false;
	for (i = 0; i < export->allows; i++) {
		bytes = export->allow[i].bits / 8;
		bits = export->allow[i].bits % 8;
		if (!memcmp(addr, export->allow[i].addr, bytes) &&
		    (!bits || !((addr[bytes] ^ export->allow[i].addr[bytes]) >> (8 - bits))))
			return true;
	}
	return false;
}
