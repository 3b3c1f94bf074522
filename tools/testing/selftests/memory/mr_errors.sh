#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: bad arguments of regions, and keys that do not fit, end with the errno or status of the specification
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 200

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# An unprivileged process of the test opens these device nodes.
chmod 666 /dev/infiniband/uverbs*
leak_snapshot
memory_mark
report mr_errors
leak_check "no slab object or module reference is leaked"
memory_check "no page stays pinned" 50
