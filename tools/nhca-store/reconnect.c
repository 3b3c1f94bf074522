// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: connects an attached export again.  A thread does it, because the calls of librdmacm
 * wait for a server that does not answer, and meanwhile the block device must react to signals.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "attach.h"

int reconnect_try(struct reconnect *r)
{
	if (client_try_connect(&r->c, r->server, TAGS))
		return -1;
	if (!client_try_open(&r->c, r->name, r->write, r->session)) {
		r->mr = ibv_reg_mr(r->c.pd, r->buffer, TAGS * REQUEST_BYTES,
				   IBV_ACCESS_LOCAL_WRITE);
		if (r->mr)
			return 0;
		snprintf(r->c.why, sizeof(r->c.why), "cannot register %u bytes of memory: %s",
			 TAGS * REQUEST_BYTES, strerror(errno));
	}
	client_drop(&r->c);
	return -1;
}

/* Return: false if the thread must end. */
static bool wait_delay(struct reconnect *r)
{
	struct pollfd cancel = { .fd = r->cancel, .events = POLLIN };

	while (poll(&cancel, 1, r->delay * 1000) < 0 && errno == EINTR)
		continue;
	r->delay = client_delay(r->delay);
	return !cancel.revents;
}

static void *reconnect_thread(void *arg)
{
	struct reconnect *r = arg;
	char why[sizeof(r->c.why)] = "";
	uint64_t one = 1;

	/* If memory is reclaimed here, its pages must not go to the block device, which waits. */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	r->failed = true;
	while (wait_delay(r)) {
		if (!reconnect_try(r)) {
			r->failed = client_check_again(&r->c, &r->before, r->unflushed);
			if (r->failed) {
				ibv_dereg_mr(r->mr);
				client_drop(&r->c);
			}
			break;
		}
		if (strcmp(why, r->c.why))
			warn("%s; trying again", r->c.why);
		strcpy(why, r->c.why);
	}
	if (write(r->done, &one, sizeof(one)) != sizeof(one))
		stop(STORE_FAILED, "cannot end an attempt to connect");
	return NULL;
}

void reconnect_start(struct reconnect *r)
{
	pthread_attr_t attr;
	int error;

	r->c.quiet = true;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	error = pthread_create(&r->thread, &attr, reconnect_thread, r);
	pthread_attr_destroy(&attr);
	if (error)
		stop(STORE_FAILED, "cannot create a thread: %s", strerror(error));
}
