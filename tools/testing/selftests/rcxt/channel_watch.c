// SPDX-License-Identifier: GPL-2.0
/* See channel_watch.h for the purpose of these functions. */
#include "channel_watch.h"

const char * const drop_names[DROPS] = {
	[NHCADV_DROP_FIFO] = "FIFO", [NHCADV_DROP_CQ] = "CQ", [NHCADV_DROP_KEY] = "key",
	[NHCADV_DROP_JOB] = "job", [NHCADV_DROP_NO_RCXT] = "no rCxt",
	[NHCADV_DROP_RCXT_KEY] = "rCxt key", [NHCADV_DROP_STALE] = "stale",
	[NHCADV_DROP_DUPLICATE] = "duplicate", [NHCADV_DROP_ABORTED] = "aborted",
	[NHCADV_DROP_BUSY] = "busy", [NHCADV_DROP_UNSOLICITED] = "unsolicited",
	[NHCADV_DROP_MISMATCH] = "mismatch", [NHCADV_DROP_NO_MEMORY] = "no memory",
	[NHCADV_DROP_PVO_KEY] = "PVO key", [NHCADV_DROP_PVO_JOB] = "PVO job",
	[NHCADV_DROP_PVO_RANGE] = "PVO range", [NHCADV_DROP_PVO_ACCESS] = "PVO access",
	[NHCADV_DROP_PVO_PAGE] = "PVO page", [NHCADV_DROP_ERROR] = "error",
	[NHCADV_DROP_SEGMENT] = "segment", [NHCADV_FENCED] = "fenced",
	[NHCADV_CHALLENGED] = "challenged",
};

static const char * const device_names[DEVICE_DROPS] = {
	"rx_no_qp", "rx_bad_length", "rx_too_short", "rx_bad_opcode", "rx_bad_version",
	"rx_icrc_encapsulated", "rx_bad_addr",
};

uint8_t *memory;

/* ---- memory ---- */

void memory_make(void)
{
	memory = mmap(NULL, WATCHED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED);
}

/* Write the bytes of pattern() for @seed, word by word. */
void memory_paint(uint32_t seed)
{
	uint64_t *words = (void *)memory;
	uint32_t i;

	for (i = 0; i < WATCHED / 8; i++)
		words[i] = mix((uint64_t)seed << 32 | i);
}

/* All memory must match the pattern, except for @size bytes at offset @from of the region. */
void memory_same(uint32_t seed, uint32_t from, uint32_t size, const char *what)
{
	const uint64_t *words = (void *)memory;
	uint32_t i, k;

	from += GUARD;
	for (i = 0; i < WATCHED / 8; i++)
		for (k = 8 * i; words[i] != mix((uint64_t)seed << 32 | i) && k < 8 * i + 8; k++)
			if ((k < from || k - from >= size) && memory[k] != pattern(seed, k))
				die("%s: byte %d of the region was written", what, (int)(k - GUARD));
}

/* Return: true if one of the first @size bytes of the region has changed. */
bool memory_changed(uint32_t seed, uint32_t size)
{
	uint32_t i;

	for (i = GUARD; i < GUARD + size; i++)
		if (memory[i] != pattern(seed, i))
			return true;
	return false;
}

struct nhcadv_job_mem *memory_register(uint32_t of_job)
{
	return nhcadv_reg_job_mem(context, of_job, memory + GUARD, REGION,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_WRITE);
}

/* ---- counters ---- */

static uint64_t device_count(const char *name)
{
	char path[256], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(context->device), name);
	fd = open(path, O_RDONLY);
	must(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoull(text, NULL, 10);
}

/*
 * Return: the counters of the device and of @c, minus those of @before.  Both pointers may be NULL.
 */
struct drops drops_now(struct channel *c, const struct drops *before)
{
	struct nhcadv_channel_info info;
	struct drops now = {};
	int i;

	if (c) {
		info = channel_info(c);
		memcpy(now.channel, info.counters, sizeof(now.channel));
	}
	for (i = 0; i < DEVICE_DROPS; i++)
		now.device[i] = device_count(device_names[i]);
	for (i = 0; before && i < DROPS; i++)
		now.channel[i] -= before->channel[i];
	for (i = 0; before && i < DEVICE_DROPS; i++)
		now.device[i] -= before->device[i];
	return now;
}

uint64_t drops_sum(const struct drops *d)
{
	uint64_t sum = 0;
	int i;

	for (i = NHCADV_DROP_FIFO; i < DROPS; i++)
		sum += d->channel[i];
	for (i = 0; i < DEVICE_DROPS; i++)
		sum += d->device[i];
	return sum;
}

void drops_print(const struct drops *d, const char *what)
{
	int i;

	printf("# %s:", what);
	for (i = NHCADV_DROP_FIFO; i < DROPS; i++)
		if (d->channel[i])
			printf(" %s %" PRIu64 ",", drop_names[i], d->channel[i]);
	for (i = 0; i < DEVICE_DROPS; i++)
		if (d->device[i])
			printf(" %s %" PRIu64 ",", device_names[i], d->device[i]);
	printf(" in all %" PRIu64 "\n", drops_sum(d));
}

/*
 * Wait until @count packets have been dropped since @before.  Return: the packets dropped, by
 * reason.
 */
struct drops drops_wait(struct channel *c, const struct drops *before, uint64_t count,
			const char *what)
{
	uint64_t end = now_ns() + patience_s() / 4 * 1000000000ULL;
	struct drops now;

	do
		now = drops_now(c, before);
	while (drops_sum(&now) < count && now_ns() < end);
	/* more drops than @count would also be wrong */
	usleep(QUIET_US);
	now = drops_now(c, before);
	drops_print(&now, what);
	if (drops_sum(&now) != count)
		die("%s: %" PRIu64 " packets were dropped, not %" PRIu64, what, drops_sum(&now),
		    count);
	return now;
}

/* Exactly these packets must have been dropped since @before, each for its reason. */
void drops_are(struct channel *c, const struct drops *before, const struct drops *right,
	       const char *what)
{
	struct drops now = drops_wait(c, before, drops_sum(right), what);
	int i;

	for (i = NHCADV_DROP_FIFO; i < DROPS; i++)
		if (now.channel[i] != right->channel[i])
			die("%s: %s: %" PRIu64 " instead of %" PRIu64, what, drop_names[i],
			    now.channel[i], right->channel[i]);
	for (i = 0; i < DEVICE_DROPS; i++)
		if (now.device[i] != right->device[i])
			die("%s: %s: %" PRIu64 " instead of %" PRIu64, what, device_names[i],
			    now.device[i], right->device[i]);
}

/* ---- programs that send packets ---- */

/* The MAC address of a netdev as text, for rcxt_replay */
void netdev_mac(const char *netdev, char *mac, size_t size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", netdev);
	must(file = fopen(path, "r"));
	must(fgets(mac, size, file));
	fclose(file);
	mac[strcspn(mac, "\n")] = 0;
}

/* Run a command, which must succeed.  Return: the number in its output that matches @format. */
uint64_t thrown(const char *command, const char *format)
{
	FILE *out = popen(command, "r");
	uint64_t number = 0;
	bool found = false;
	char line[256];

	must(out);
	while (fgets(line, sizeof(line), out))
		found |= sscanf(line, format, &number) == 1;
	if (pclose(out) || !found)
		die("%s: failed", command);
	return number;
}
