#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: device memory, on-demand regions and dma-bufs carry data, and later operations use pages that have changed
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 200

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

modprobe -q udmabuf
leak_snapshot
memory_mark
report dm_odp
leak_check "no slab object or module reference is leaked"
memory_check "no page stays pinned" 50
