#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: operations on regions and windows in random order have the expected results, and leak nothing
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

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
common="-d $RDMA_DEV -g $gid -p 18800"
steps=${STEPS:-20000}
before=$(resources "$RDMA_DEV")

# `env` runs the program history: bash has a builtin of that name.
history_run() {
	# shellcheck disable=SC2086 # words
	env history $common -n "$1" -k "${KILL_MS:-700}" -r "${SEED:-$RANDOM}" "$2"
}

# The last node runs the peers.
if [ "$NODE" = "$NODES" ]; then
	# shellcheck disable=SC2086 # words
	env history -S $common > "$LIB_TMP/peers" 2>&1 &
	peers=$!
fi
barrier listening
last=IP_$NODES
# A first run makes allocations that stay, such as caches. The checks count only what the second run adds.
[ "$NODE" = 1 ] && history_run 200 "${!last}" > /dev/null
barrier warm 240
leak_snapshot
memory_mark
barrier marked
if [ "$NODE" = 1 ]; then
	report history_run "$steps" "${!last}"
fi
barrier "done" 86400
if [ "$NODE" = "$NODES" ]; then
	# A peer may need up to 5 s to notice that its owner was killed.
	sleep 5
	grep -v 'the other side is gone' "$LIB_TMP/peers" | sed 's/^/#   /'
	kill $peers
	ended $peers 10
fi
leak_check "module references have not grown on node $NODE"
memory_check "no page stays pinned and no memory is leaked on node $NODE" 200
resources_check "rdma res show has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
tasks_check "no task hangs on node $NODE"
barrier end 240
