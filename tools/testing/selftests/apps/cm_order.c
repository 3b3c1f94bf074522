// SPDX-License-Identifier: GPL-2.0
/*
 * cm_order.so: a client of rdma_cm connects only when its server listens.
 *
 *   LD_PRELOAD=cm_order.so CM_ORDER=PATH PROGRAM
 *
 * perftest with -R connects twice, and its server listens a second time for the second connection.
 * Both ends begin the second connection at the same time, so the client may connect before the
 * server listens.  The connection is then rejected, and the client crashes when it tries again.
 *
 * The library replaces two functions of librdmacm.  The server's Nth successful rdma_listen()
 * creates the file PATH.N.  The client's first rdma_connect() waits for PATH.1, and later ones wait
 * for PATH.2, because a client with several QPs connects each of them to the second listener.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

/* after this time the client connects anyway, which fails if the server does not listen */
#define WAIT_S		60
#define POLL_US		20000

static void order_path(char path[PATH_MAX], int n)
{
	const char *prefix = getenv("CM_ORDER");

	if (!prefix) {
		fprintf(stderr, "cm_order: CM_ORDER is not set\n");
		exit(2);
	}
	snprintf(path, PATH_MAX, "%s.%d", prefix, n);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*real)(struct rdma_cm_id *, int) = dlsym(RTLD_NEXT, "rdma_listen");
	static int listens;
	char path[PATH_MAX];
	int err, fd;

	err = real(id, backlog);
	if (err)
		return err;
	order_path(path, ++listens);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		perror(path);
	else
		close(fd);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) = dlsym(RTLD_NEXT, "rdma_connect");
	static int connects;
	char path[PATH_MAX];
	long polls;

	order_path(path, connects++ ? 2 : 1);
	for (polls = WAIT_S * 1000000L / POLL_US; polls && access(path, F_OK); polls--)
		usleep(POLL_US);
	return real(id, param);
}
