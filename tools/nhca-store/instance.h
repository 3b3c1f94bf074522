/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nhca-store: numbers by which a client that connects again knows whether an export is the same,
 * and whether it still has all bytes that the server has acknowledged.
 */
#ifndef STORE_INSTANCE_H
#define STORE_INSTANCE_H

#include <sys/types.h>

#include "store.h"

/**
 * instance_begin - get the number of this server
 * @config: configuration of the server
 *
 * If the last server with the same address and port has ended with all acknowledged bytes on the
 * disks, and the host has not been restarted since then, this server gets the number of the last
 * server.  Otherwise the number is random.
 */
void instance_begin(const struct store_config *config);

/* The server ends.  The next server gets the same number, unless bytes were lost. */
void instance_end(void);

/* Some bytes of @export that were acknowledged could not be made durable. */
void instance_lost(const struct store_export *export);

/* Fills in the identity and the instance of an export whose file is open as @fd. */
void instance_describe(const struct store_export *export, int fd, struct store_reply *reply);

/*
 * Reads an attribute of a block device from sysfs.  A partition has some of its attributes in the
 * folder of its disk.  Return: false if there is none.
 */
bool disk_attribute(dev_t dev, const char *name, char *line, size_t size);

#endif /* STORE_INSTANCE_H */
