/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nhca-store: the calls of libnhca for regions of files; see nhcadv_direct_reg_file(3).
 */
#ifndef STORE_DIRECT_H
#define STORE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/nhcadv_direct.h>

/**
 * direct_load - load libnhca
 * Return: true if the other functions of this file may be called.
 */
bool direct_load(void);

struct nhcadv_direct_pool *direct_alloc_pool(struct ibv_context *context, uint64_t blocks);
int direct_free_pool(struct nhcadv_direct_pool *pool);
struct ibv_mr *direct_reg_file(struct ibv_pd *pd, const struct nhcadv_direct_file_attr *attr);
int direct_sync(struct ibv_mr *mr);

#endif /* STORE_DIRECT_H */
