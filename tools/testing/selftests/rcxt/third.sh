#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a manager moves bytes between two other hosts whose programs are stopped: each byte is right, each move completes once, forged packets do nothing
# tier: check
# lab: --nodes 3 --timeout 900 --env MOVES=100 --env FORGED=2000
# lab whole: --machine uml --nodes 3 --timeout 7200 --env MOVES=10000 --env FORGED=1000000
# tier whole: long
# lab debug: --machine uml --nodes 3 --kernel debug --timeout 7200 --env MOVES=300 --env FORGED=20000
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
leak_snapshot
kmemleak_mark
RUN_TIMEOUT=6000

# third_run NAME PORT LOSS OPTIONS...: node 1 is the manager, node 2 the source, node 3 the target
third_run() {
	local name=$1 port=$2 loss=$3 command
	shift 3
	command=(third -d "$RDMA_DEV" -g "$gid" -p "$port")
	[ "$loss" = 0 ] || tc qdisc add dev "$NETDEV" root netem limit 100000 loss "$loss%" || return 1
	case $NODE in
	1) run "$name" "${command[@]}" -i "$NETDEV" "$@" manager ;;
	2) run "$name, source" "${command[@]}" source "$IP_1" ;;
	3) run "$name, target" "${command[@]}" target "$IP_1" ;;
	esac
	[ "$NODE" != 1 ] || grep '^# ' "$LIB_TMP/run"
	[ "$loss" = 0 ] || tc qdisc del dev "$NETDEV" root
	barrier "third-$port" 600
}

third_run "moves at 5 % loss" 18870 5 -n "${MOVES:-100}" -f "${FORGED:-2000}"
[ "$NODE" != 1 ] || report_file "$LIB_TMP/run"
third_run "moves beside a read and a write through the manager" 18871 0 -t 5
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
leak_check "no slab object or module reference is leaked on node $NODE"
kmemleak_check "kmemleak reports no leak on node $NODE"
