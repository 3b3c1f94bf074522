#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an endpoint has thousands of peers on a device with default parameters; idle peers cost few rCxts and no time
# tier: check
# lab: --nodes 1 --timeout 400 --env PEERS=300
# lab whole: --machine uml --nodes 1 --memory 6144 --timeout 900 --env PEERS=2000
# tier whole: long
# lab debug: --machine uml --nodes 1 --memory 10240 --kernel debug --timeout 1800 --env PEERS=2000
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

peers=${PEERS:-2000}
gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
kmemleak_mark
RUN_TIMEOUT=300
run "$peers peers of one endpoint receive their messages, and hold 4 rCxts on each side when idle" \
	many_peers -d "$RDMA_DEV" -g "$gid" -n "$peers"
grep '^# ' "$LIB_TMP/run"
resources_check "the device has as many objects as before" "$RDMA_DEV" "$before"
kmemleak_check "kmemleak reports no leak"
