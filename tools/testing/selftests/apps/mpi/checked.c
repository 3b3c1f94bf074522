// SPDX-License-Identifier: GPL-2.0
/*
 * checked: operations of MPI programs; every byte and every sum is checked. The program is compiled
 * in the guest, which has mpicc.
 *
 *	mpirun ... checked [-n ROUNDS] [-m MAXBYTES] PART...
 *
 *	ring		each rank to the next: blocking and nonblocking, contiguous and strided, and
 *			unexpected messages
 *	sums		all-reduce, reduce-scatter and scan
 *	all		all-to-all, all-gather, broadcast, gather
 *	windows		put, get, accumulate, fetch-and-op, compare-and-swap: fence, lock and flush
 *	threads		four threads in each rank, each with its own communicator
 *	latency		prints half of a round trip between the first and the last rank; cannot fail
 *
 * Sizes grow in steps that are no powers of two, so that they pass all thresholds of an MPI
 * library.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS		4
#define ODD		0x9e3779b97f4a7c15ULL

static int rank, ranks, rounds = 2;
static size_t max_bytes = 2 << 20;
static const char *part;

static void fail(const char *what, size_t size, size_t at)
{
	fprintf(stderr, "checked: %s: rank %d: %s of %zu bytes is wrong from byte %zu on\n", part,
		rank, what, size, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *room(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		perror("checked: malloc");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(p, 0xee, bytes);
	return p;
}

/* Return: byte @i of the message from @from to @to in this round. */
static uint8_t byte_of(int from, int to, int round, size_t i)
{
	return ((i / 8 + 1) * ODD + from * 131 + to * 31 + round * 7) >> (8 + i % 8);
}

static void fill(uint8_t *p, size_t bytes, int from, int to, int round)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = byte_of(from, to, round, i);
}

static void check(const char *what, const uint8_t *p, size_t bytes, int from, int to, int round)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (p[i] != byte_of(from, to, round, i))
			fail(what, bytes, i);
}

static size_t next_size(size_t size)
{
	return size < 8 ? size + 7 : size * 5 / 2 + 3;
}

#define for_sizes(size, limit) for (size = 1; size <= (limit); size = next_size(size))

/* ---- each rank to the next ---- */

static void ring_round(MPI_Comm comm, size_t size, int round)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, flag, got;
	uint8_t *out = room(size * 2), *in = room(size * 2);
	MPI_Request requests[2];
	MPI_Datatype strided;
	MPI_Status status;
	size_t i;

	fill(out, size, rank, next, round);
	MPI_Irecv(in, size, MPI_BYTE, before, 1, comm, &requests[0]);
	MPI_Isend(out, size, MPI_BYTE, next, 1, comm, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	check("a message", in, size, before, rank, round);

	/* the message arrives before its receive is posted, and a probe returns its size */
	fill(out, size, rank, next, round + 1);
	MPI_Isend(out, size, MPI_BYTE, next, 2, comm, &requests[0]);
	MPI_Isend(out, 0, MPI_BYTE, next, 3, comm, &requests[1]);
	MPI_Recv(in, 0, MPI_BYTE, before, 3, comm, MPI_STATUS_IGNORE);
	do
		MPI_Iprobe(before, 2, comm, &flag, &status);
	while (!flag);
	MPI_Get_count(&status, MPI_BYTE, &got);
	if ((size_t)got != size)
		fail("a probed message", size, got);
	MPI_Recv(in, size, MPI_BYTE, before, 2, comm, MPI_STATUS_IGNORE);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	check("an unexpected message", in, size, before, rank, round + 1);

	/* send every other byte */
	MPI_Type_vector(size, 1, 2, MPI_BYTE, &strided);
	MPI_Type_commit(&strided);
	memset(in, 0, size * 2);
	for (i = 0; i < size; i++)
		out[2 * i] = byte_of(rank, next, round + 2, i);
	MPI_Sendrecv(out, 1, strided, next, 4, in, 1, strided, before, 4, comm, MPI_STATUS_IGNORE);
	for (i = 0; i < size; i++)
		if (in[2 * i] != byte_of(before, rank, round + 2, i) || in[2 * i + 1])
			fail("a strided message", size, i);
	MPI_Type_free(&strided);
	free(out);
	free(in);
}

static void ring(void)
{
	size_t size;
	int round;

	for_sizes(size, max_bytes)
		for (round = 0; round < rounds; round++)
			ring_round(MPI_COMM_WORLD, size, round);
}

/* ---- reductions ---- */

static void sums(void)
{
	size_t size, n, i, max = max_bytes / sizeof(uint64_t);
	uint64_t of_ranks = (uint64_t)ranks * (ranks - 1) / 2, to_me = (uint64_t)rank * (rank + 1) / 2;

	for_sizes(size, max) {
		uint64_t *in = room(size * 8 * ranks), *out = room(size * 8 * ranks);
		double *reals = room(size * 8), *maxima = room(size * 8);

		for (i = 0; i < size; i++) {
			in[i] = rank * ODD + i;
			reals[i] = (double)((rank + i) % ranks) / 4;
		}
		MPI_Allreduce(in, out, size, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (i = 0; i < size; i++)
			if (out[i] != of_ranks * ODD + ranks * i)
				fail("an all-reduce", size * 8, i * 8);

		MPI_Allreduce(reals, maxima, size, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		for (i = 0; i < size; i++)
			if (maxima[i] != (double)(ranks - 1) / 4)
				fail("a maximum", size * 8, i * 8);

		MPI_Scan(in, out, size, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (i = 0; i < size; i++)
			if (out[i] != to_me * ODD + (rank + 1) * i)
				fail("a scan", size * 8, i * 8);

		n = size * ranks;
		for (i = 0; i < n; i++)
			in[i] = rank * ODD + i;
		MPI_Reduce_scatter_block(in, out, size, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (i = 0; i < size; i++)
			if (out[i] != of_ranks * ODD + ranks * (rank * size + i))
				fail("a reduce-scatter", size * 8, i * 8);
		free(in);
		free(out);
		free(reals);
		free(maxima);
	}
}

/* ---- all ranks to all ranks ---- */

static void all(void)
{
	size_t size;
	int r, root;

	for_sizes(size, max_bytes / ranks) {
		uint8_t *in = room(size * ranks), *out = room(size * ranks);

		for (r = 0; r < ranks; r++)
			fill(out + r * size, size, rank, r, 0);
		MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
		for (r = 0; r < ranks; r++)
			check("an all-to-all", in + r * size, size, r, rank, 0);

		fill(out, size, rank, 0, 1);
		MPI_Allgather(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
		for (r = 0; r < ranks; r++)
			check("an all-gather", in + r * size, size, r, 0, 1);

		for (root = 0; root < ranks; root++) {
			memset(in, 0, size);
			if (rank == root)
				fill(in, size, root, 0, 2);
			MPI_Bcast(in, size, MPI_BYTE, root, MPI_COMM_WORLD);
			check("a broadcast", in, size, root, 0, 2);
			MPI_Gather(out, size, MPI_BYTE, in, size, MPI_BYTE, root, MPI_COMM_WORLD);
			for (r = 0; rank == root && r < ranks; r++)
				check("a gather", in + r * size, size, r, 0, 1);
		}
		free(in);
		free(out);
	}
}

/* ---- one-sided ---- */

/*
 * Each rank writes into its own part of the next rank's window and reads it back, with fences or
 * with locks.
 */
static void put_get(MPI_Win win, uint8_t *mine, size_t size, bool fence)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	uint8_t *out = room(size), *in = room(size);

	fill(out, size, rank, next, fence);
	if (fence) {
		MPI_Win_fence(0, win);
		MPI_Put(out, size, MPI_BYTE, next, rank * max_bytes, size, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		check("a put", mine + before * max_bytes, size, before, rank, fence);
		MPI_Get(in, size, MPI_BYTE, next, rank * max_bytes, size, MPI_BYTE, win);
		MPI_Win_fence(0, win);
	} else {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
		MPI_Put(out, size, MPI_BYTE, next, rank * max_bytes, size, MPI_BYTE, win);
		MPI_Win_flush(next, win);
		MPI_Get(in, size, MPI_BYTE, next, rank * max_bytes, size, MPI_BYTE, win);
		MPI_Win_unlock(next, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
		check("a put under a lock", mine + before * max_bytes, size, before, rank, fence);
		MPI_Win_unlock(rank, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	check("a get", in, size, rank, next, fence);
	free(out);
	free(in);
}

/* All ranks count in two words of the first rank, one by addition and one by compare-and-swap. */
static void count(void)
{
	uint64_t *words, one = 1, old, seen, wanted, turns = rounds * 20, i;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof(*words), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
	MPI_Win_lock_all(0, win);
	words[0] = words[1] = 0;
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < turns; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (old >= turns * ranks)
			fail("a count", sizeof(old), 0);
		for (seen = 0;; seen = old) {
			wanted = seen + 1;
			MPI_Compare_and_swap(&wanted, &seen, &old, MPI_UINT64_T, 0, 8, win);
			MPI_Win_flush(0, win);
			if (old == seen)
				break;
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	if (!rank && (words[0] != turns * ranks || words[1] != turns * ranks))
		fail("the counts", sizeof(*words), words[0] == turns * ranks ? 8 : 0);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/* All ranks add to the words of the first rank at the same time. */
static void accumulate(size_t size)
{
	uint64_t *words, *out = room(size * 8);
	MPI_Win win;
	size_t i;

	MPI_Win_allocate(size * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
	memset(words, 0, size * 8);
	for (i = 0; i < size; i++)
		out[i] = (rank + 1) * (i + 1);
	MPI_Win_fence(0, win);
	MPI_Accumulate(out, size, MPI_UINT64_T, 0, 0, size, MPI_UINT64_T, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; !rank && i < size; i++)
		if (words[i] != (uint64_t)ranks * (ranks + 1) / 2 * (i + 1))
			fail("an accumulation", size * 8, i * 8);
	MPI_Win_free(&win);
	free(out);
}

static void windows(void)
{
	uint8_t *mine = room(max_bytes * ranks);
	MPI_Win win;
	size_t size;

	MPI_Win_create(mine, max_bytes * ranks, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for_sizes(size, max_bytes) {
		put_get(win, mine, size, true);
		put_get(win, mine, size, false);
	}
	MPI_Win_free(&win);
	free(mine);
	count();
	for_sizes(size, max_bytes / 64)
		accumulate(size);
}

/* ---- threads ---- */

static void *thread(void *comm)
{
	size_t size;
	int round;

	for_sizes(size, max_bytes / 8)
		for (round = 0; round < rounds; round++)
			ring_round(*(MPI_Comm *)comm, size, round);
	return NULL;
}

static void threads(void)
{
	MPI_Comm comms[THREADS];
	pthread_t ids[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&ids[i], NULL, thread, &comms[i]))
			fail("the start of a thread", 0, i);
	for (i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	for (i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
}

/* ---- latency ---- */

static void latency(void)
{
	int turns = rounds * 50, peer = rank ? 0 : ranks - 1, i;
	uint8_t *buf = room(max_bytes);
	double begun = 0;
	size_t size;

	for (size = 1; size <= max_bytes && (!rank || rank == ranks - 1); size *= 16) {
		for (i = -10; i < turns; i++) {
			if (!i)
				begun = MPI_Wtime();
			if (!rank)
				MPI_Send(buf, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
			MPI_Recv(buf, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (rank)
				MPI_Send(buf, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
		}
		if (!rank)
			printf("checked: latency: %8zu bytes %10.1f us\n", size,
			       (MPI_Wtime() - begun) * 1e6 / turns / 2);
	}
	free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- all parts ---- */

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "ring", ring }, { "sums", sums }, { "all", all }, { "windows", windows },
	{ "threads", threads }, { "latency", latency },
};

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int provided, option, length;
	size_t i;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while ((option = getopt(argc, argv, "n:m:")) != -1) {
		if (option == 'n')
			rounds = atoi(optarg);
		else if (option == 'm')
			max_bytes = strtoul(optarg, NULL, 0);
		else
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Get_processor_name(host, &length);
	printf("checked: rank %d of %d is on %s\n", rank, ranks, host);
	for (; optind < argc; optind++) {
		part = argv[optind];
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (!strcmp(part, parts[i].name))
				break;
		if (i == sizeof(parts) / sizeof(parts[0]) ||
		    (parts[i].run == threads && provided != MPI_THREAD_MULTIPLE)) {
			fprintf(stderr, "checked: %s: there is no such part\n", part);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		parts[i].run();
		MPI_Barrier(MPI_COMM_WORLD);
		if (!rank)
			printf("checked: %s: good\n", part);
	}
	MPI_Finalize();
	return 0;
}
