// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: identity and instance of exports.
 *
 * The server keeps its number in a file below /run, with the state "open" while it runs and "clean"
 * after it has ended and all bytes of its clients were durable.  If the server is killed, the next
 * server finds "open", and takes another number.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "instance.h"

#define FOLDER	"/run/nhca-store"

static struct {
	char path[256];
	char boot[40];		/* number of the boot of this host */
	uint64_t number;
	pthread_mutex_t lock;	/* protects @lost */
	const struct store_export *exports;
	unsigned int *lost;	/* by export: how often bytes were lost */
	bool any_lost;
} instance = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* FNV-1a */
static uint64_t hash(uint64_t seed, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length--)
		seed = (seed ^ *bytes++) * 0x100000001b3;
	return seed;
}

/* Reads the first line of a small file.  Return: false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool good;

	if (!file)
		return false;
	good = fgets(line, size, file) && line[0] != '\n';
	fclose(file);
	if (good)
		line[strcspn(line, "\n")] = 0;
	return good;
}

static void store_state(const char *state)
{
	char path[sizeof(instance.path) + 4];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "%s.new", instance.path);
	file = fopen(path, "we");
	good = file && fprintf(file, "%s %016" PRIx64 " %s\n", instance.boot, instance.number,
			       state) > 0;
	if (file && fclose(file))
		good = false;
	if (!good || rename(path, instance.path))
		warn_errno("%s: cannot write; after a restart, attached clients may have to attach again",
			   instance.path);
}

/* Return: true if the last server has left a number that this server may use. */
static bool read_number(void)
{
	char boot[40], state[8];
	FILE *file = fopen(instance.path, "re");
	bool good;

	if (!file)
		return false;
	good = fscanf(file, "%39s %" SCNx64 " %7s", boot, &instance.number, state) == 3 &&
		!strcmp(boot, instance.boot) && !strcmp(state, "clean");
	fclose(file);
	return good;
}

void instance_begin(const struct store_config *config)
{
	char *at;

	instance.exports = config->exports;
	instance.lost = calloc(config->count, sizeof(*instance.lost));
	if (!instance.lost)
		stop(STORE_FAILED, "not enough memory");
	snprintf(instance.path, sizeof(instance.path), FOLDER "/%.150s-%.50s",
		 config->address ? config->address : "all", config->port);
	for (at = instance.path + sizeof(FOLDER); *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '-' && *at != '.')
			*at = '_';
	if (mkdir(FOLDER, 0755) && errno != EEXIST)
		warn_errno("%s", FOLDER);
	if ((!read_line("/proc/sys/kernel/random/boot_id", instance.boot, sizeof(instance.boot)) ||
	     !read_number()) &&
	    getrandom(&instance.number, sizeof(instance.number), 0) != sizeof(instance.number))
		stop(STORE_FAILED, "cannot get random numbers: %s", strerror(errno));
	store_state("open");
}

void instance_end(void)
{
	if (!instance.any_lost)
		store_state("clean");
}

void instance_lost(const struct store_export *export)
{
	pthread_mutex_lock(&instance.lock);
	instance.lost[export - instance.exports]++;
	instance.any_lost = true;
	pthread_mutex_unlock(&instance.lock);
}

bool disk_attribute(dev_t dev, const char *name, char *line, size_t size)
{
	static const char *const folders[] = { "", "../" };
	char path[128];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s", major(dev), minor(dev),
			 folders[i], name);
		if (read_line(path, line, size))
			return true;
	}
	return false;
}

/* The identity of a disk is the WWID or UUID that the disk reports, or else its device number. */
static uint64_t identify_disk(uint64_t seed, dev_t dev)
{
	static const char *const names[] = { "wwid", "device/wwid", "dm/uuid", "md/uuid" };
	char line[256];
	unsigned int i;

	if (disk_attribute(dev, "partition", line, sizeof(line)))
		seed = hash(seed, line, strlen(line));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (disk_attribute(dev, names[i], line, sizeof(line)))
			return hash(seed, line, strlen(line));
	return hash(seed, &dev, sizeof(dev));
}

static uint64_t identify_file(uint64_t seed, int fd, const struct stat *st)
{
	union {
		struct file_handle handle;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} h = { .handle.handle_bytes = MAX_HANDLE_SZ };
	struct statfs fs;
	int mount;

	if (!fstatfs(fd, &fs))
		seed = hash(seed, &fs.f_fsid, sizeof(fs.f_fsid));
	/* The handle also has a number that differs if an inode is used for another file. */
	if (!name_to_handle_at(fd, "", &h.handle, &mount, AT_EMPTY_PATH))
		return hash(seed, h.handle.f_handle, h.handle.handle_bytes);
	return hash(seed, &st->st_ino, sizeof(st->st_ino));
}

void instance_describe(const struct store_export *export, int fd, struct store_reply *reply)
{
	uint64_t seed = hash(0xcbf29ce484222325, export->name, strlen(export->name));
	unsigned int lost;
	char line[32];
	struct stat st;
	dev_t dev;

	pthread_mutex_lock(&instance.lock);
	lost = instance.lost[export - instance.exports];
	pthread_mutex_unlock(&instance.lock);
	reply->instance = hash(instance.number, &lost, sizeof(lost));
	if (fstat(fd, &st))
		return;
	seed = hash(seed, &export->offset, sizeof(export->offset));
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	reply->identity = S_ISBLK(st.st_mode) ? identify_disk(seed, dev) :
		identify_file(seed, fd, &st);
	/* A disk that was removed and added again has lost its cache, and has another number. */
	if (disk_attribute(dev, "diskseq", line, sizeof(line)))
		reply->instance = hash(reply->instance, line, strlen(line));
}
