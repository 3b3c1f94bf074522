// SPDX-License-Identifier: GPL-2.0
/*
 * regcost: measures registration, in time and in kernel memory.
 *
 *   regcost -d DEVICE [-f FILE] [-s MIB] [-n REGIONS] [-t TIMES]
 *
 * It registers one large buffer in pages of 4 KiB, TIMES times (3), and then many small regions
 * that exist together.  For both it prints lines NAME VALUE: nanoseconds, and KiB of kernel memory
 * in use while the regions exist.  The values for the large buffer are medians.
 *
 * -f: use FILE on a tmpfs as the large buffer.  Then a run on another device uses the same pages,
 * with the same physical addresses.
 */
#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>

#include "peers.h"

#define SMALL	4096UL
#define TIMES	32

static size_t buffer_mib = 1024;
static uint32_t nregions = 100000, times = 3;
static const char *file;

/* Return: a field of /proc/meminfo in KiB, or -1. */
static long meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	must(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			kib = atol(line + strlen(name) + 1);
	fclose(f);
	return kib;
}

static void poke(const char *path, const char *value)
{
	FILE *f = fopen(path, "w");

	if (f) {
		fputs(value, f);
		fclose(f);
	}
}

/* Return: KiB of free pages in the lists of each CPU, which MemFree does not include. */
static long kept_kib(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[256];
	long pages = 0, n;

	must(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &n) == 1)
			pages += n;
	fclose(f);
	return pages * 4;
}

/* Return: KiB used by the kernel, without caches that it could free. */
static long kernel_kib(void)
{
	/* wait for memory that is freed after an RCU grace period */
	usleep(500000);
	poke("/proc/sys/vm/drop_caches", "3\n");
	poke("/proc/sys/vm/stat_refresh", "1\n");
	return meminfo("MemTotal") - meminfo("MemFree") - kept_kib() - meminfo("AnonPages") -
	       meminfo("Cached") - meminfo("Buffers") - meminfo("PageTables");
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void say_median(const char *name, int64_t *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), by_size);
	printf("%s %" PRId64 "\n", name, values[count / 2]);
}

static void *buffer(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p != MAP_FAILED);
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 1, size);
	return p;
}

static void *large_buffer(size_t size)
{
	int fd;
	void *p;

	if (!file)
		return buffer(size);
	fd = open(file, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, size))
		die("%s: %s", file, strerror(errno));
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED);
	close(fd);
	memset(p, 1, size);
	return p;
}

static void large(void)
{
	size_t size = buffer_mib << 20;
	void *p = large_buffer(size);
	int64_t reg[TIMES], dereg[TIMES], held[TIMES], t;
	long slab, vmalloc, before, first;
	struct ibv_mr *one, *mr;
	uint32_t i;

	/* register one small region first: it allocates the memory that all regions share */
	before = kernel_kib();
	one = ibv_reg_mr(pd, p, SMALL, IBV_ACCESS_LOCAL_WRITE);
	must(one);
	first = kernel_kib();
	printf("# the first region and what all regions share: %+ld KiB\n", first - before);
	for (i = 0; i < times; i++) {
		/* other processes also allocate and free memory, so the medians count */
		before = kernel_kib();
		slab = meminfo("Slab");
		vmalloc = meminfo("VmallocUsed");
		t = now_ns();
		mr = ibv_reg_mr(pd, p, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		reg[i] = now_ns() - t;
		if (!mr)
			die("%zu MiB: %s", buffer_mib, strerror(errno));
		held[i] = kernel_kib() - before;
		printf("# %zu MiB: %+" PRId64 " KiB, of it Slab %+ld KiB, VmallocUsed %+ld KiB\n",
		       buffer_mib, held[i], meminfo("Slab") - slab,
		       meminfo("VmallocUsed") - vmalloc);
		t = now_ns();
		verb(ibv_dereg_mr(mr));
		dereg[i] = now_ns() - t;
	}
	say_median("large_reg_ns", reg, times);
	say_median("large_dereg_ns", dereg, times);
	say_median("large_kib", held, times);
	printf("# large, after deregistration: %+ld KiB\n", kernel_kib() - first);
	verb(ibv_dereg_mr(one));
	munmap(p, size);
}

static void many(void)
{
	struct ibv_mr **mrs = buffer(nregions * sizeof(*mrs));
	uint8_t *p = buffer(256 * SMALL);
	long before, slab, vmalloc;
	uint64_t t, reg, dereg;
	uint32_t i;

	/* let malloc() get the memory of the library's objects before kernel memory is counted */
	for (i = 0; i < nregions; i++) {
		mrs[i] = malloc(256);
		must(mrs[i]);
		memset(mrs[i], 1, 256);
	}
	for (i = 0; i < nregions; i++)
		free(mrs[i]);
	before = kernel_kib();
	slab = meminfo("Slab");
	vmalloc = meminfo("VmallocUsed");
	t = now_ns();
	for (i = 0; i < nregions; i++) {
		mrs[i] = ibv_reg_mr(pd, p + i % 256 * SMALL, SMALL, IBV_ACCESS_LOCAL_WRITE);
		if (!mrs[i])
			die("region %u: %s", i, strerror(errno));
	}
	reg = now_ns() - t;
	printf("many_kib %ld\n", kernel_kib() - before);
	printf("# %u regions: Slab %+ld KiB, VmallocUsed %+ld KiB\n", nregions,
	       meminfo("Slab") - slab, meminfo("VmallocUsed") - vmalloc);
	t = now_ns();
	for (i = 0; i < nregions; i++)
		verb(ibv_dereg_mr(mrs[i]));
	dereg = now_ns() - t;
	printf("many_reg_ns %" PRIu64 "\nmany_dereg_ns %" PRIu64 "\n", reg, dereg);
	printf("# many, after deregistration: %+ld KiB\n", kernel_kib() - before);
}

int main(int argc, char **argv)
{
	int letter;

	program = "regcost";
	while ((letter = getopt(argc, argv, "d:f:s:n:t:")) != -1)
		switch (letter) {
		case 'd':
			device_name = optarg;
			break;
		case 'f':
			file = optarg;
			break;
		case 's':
			buffer_mib = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			nregions = strtoul(optarg, NULL, 0);
			break;
		case 't':
			times = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	if (!buffer_mib || !nregions || !times || times > TIMES)
		return 2;
	open_device();
	if ((uint32_t)device.max_mr < nregions + 1)
		die("max_mr is %d", device.max_mr);
	large();
	many();
	return 0;
}
