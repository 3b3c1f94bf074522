#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: operations on regions and windows in any order each have the expected result, and nothing stays behind
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 300 --env STEPS=20000
# lab nodes: --nodes 2 --cpus 2 --timeout 3600 --env STEPS=100000
# tier nodes: long
# lab long: --nodes 1 --cpus 2 --timeout 86400 --env STEPS=5000000
# tier long: long
# lab million: --machine uml --nodes 1 --cpus 2 --timeout 7200 --env STEPS=5000000
# tier million: long
# lab kcsan: --nodes 1 --cpus 2 --kernel kcsan --timeout 1800 --env STEPS=3000
# tier kcsan: long
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 3600 --env STEPS=20000
# tier debug: long

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

gid=$(gid_index) || exit 1
common="-d $RDMA_DEV -g $gid -p 18800"
steps=${STEPS:-20000}
before=$(resources "$RDMA_DEV")

# bash has a history of its own.
history_run() {
	# shellcheck disable=SC2086 # words
	env history $common -n "$1" -k "${KILL_MS:-700}" -r "${SEED:-$RANDOM}" "$2"
}

# The last node has the peers.
if [ "$NODE" = "$NODES" ]; then
	# shellcheck disable=SC2086 # words
	env history -S $common > "$LIB_TMP/peers" 2>&1 &
	peers=$!
fi
barrier listening
last=IP_$NODES
# What stays for good is made by the first.
[ "$NODE" = 1 ] && history_run 200 "${!last}" > /dev/null
barrier warm 240
leak_snapshot
memory_mark
barrier marked
if [ "$NODE" = 1 ]; then
	history_run "$steps" "${!last}" || LIB_FAILED=1
fi
barrier "done" 86400
if [ "$NODE" = "$NODES" ]; then
	# Those whose owner was killed may still wait for it.
	sleep 5
	grep -v 'the other side is gone' "$LIB_TMP/peers" | sed 's/^/#   /'
	kill $peers
	ended $peers 10
fi
leak_check "module references are as before on node $NODE"
memory_check "nothing stays pinned or allocated on node $NODE" 200
resources_check "rdma res show is as before on node $NODE" "$RDMA_DEV" "$before"
tasks_check "no task hangs on node $NODE"
barrier end 240
