/* SPDX-License-Identifier: GPL-2.0 */
/* The part of ccan/container_of.h of rdma-core that libnhca uses */
#ifndef MSGSIM_CONTAINER_OF_H
#define MSGSIM_CONTAINER_OF_H

#include <assert.h>
#include <stddef.h>

#define container_of(ptr, type, member)						\
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif /* MSGSIM_CONTAINER_OF_H */
