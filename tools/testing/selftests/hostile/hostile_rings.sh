#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a process that overwrites its rings harms only its own QPs, which go to the error state
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 400
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 1200 --env SEEDS=3
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || {
	notok "GID of this node's IPv4 address" "none in the table of $RDMA_DEV"
	exit
}

before=$(resources "$RDMA_DEV")
# The first run makes allocations that stay, such as caches. Later runs must not add to them.
hostile_wqes "$RDMA_DEV" "$gid" > "$LIB_TMP/first"
resources_are "$RDMA_DEV" "$before"
kmemleak_mark
memory_mark
report hostile_rings "$RDMA_DEV" "$gid" "${SEEDS:-10}"
report hostile_wqes "$RDMA_DEV" "$gid"
resources_check "rdma res show has as many objects as before" "$RDMA_DEV" "$before"
# The attacks create hundreds of QPs, so a leak of one object for each QP exceeds the bound of 50.
memory_check "memory in use has not grown" 50
kmemleak_check "kmemleak reports no leak"
