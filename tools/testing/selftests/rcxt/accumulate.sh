#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: several senders accumulate into one vector: each packet is applied exactly once, also when packets are lost, repeated and reordered, when a sender is killed, and beside forged packets
# tier: check
# lab: --nodes 3 --timeout 900 --env BYTES=8388608 --env FORGED=2000
# lab whole: --machine uml --nodes 3 --timeout 7200 --memory 2048 --env BYTES=268435456 --env FORGED=1000000 --env SPEED=7
# tier whole: long
# lab 4x256: --machine uml --nodes 3 --timeout 3600 --memory 2048 --env BYTES=268435456
# tier 4x256: long
# lab speed: --nodes 1 --clock instructions --timeout 3000 --env SPEED=1
# tier speed: long
# lab debug: --nodes 3 --kernel debug --timeout 5000 --env BYTES=4194304 --env FORGED=20000
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
leak_snapshot
kmemleak_mark
modprobe sch_netem
RUN_TIMEOUT=6000

if [ "$NODES" = 1 ]; then
	# The instruction clock counts the work of sender and target, but not the traffic of memory, which accumulates
	# save. So the ratio is lower than on two hosts.
	command=(accumulate -d "$RDMA_DEV" -g "$gid" -p 18902)
	"${command[@]}" "$IP_1" > "$LIB_TMP/sender" 2>&1 &
	report "${command[@]}" -s 1 -t "$SPEED" -r 100
	wait $! && ok "the sender ends" || notok "the sender ends" "$(tail -n 1 "$LIB_TMP/sender")"
	exit
fi

[ "$NODE" != 2 ] || run "the example of nhcadv_wr_accumulate(3)" nhcadv_accumulate "$RDMA_DEV" "$gid"

# together NAME PORT NETEM PER-NODE OPTIONS...: node 1 is the target, and each other node runs PER-NODE senders
together() {
	local name=$1 port=$2 how=$3 each=$4 command i pids=() failed=
	shift 4
	command=(accumulate -d "$RDMA_DEV" -g "$gid" -p "$port")
	# shellcheck disable=SC2086 # netem has several words
	[ -z "$how" ] || tc qdisc add dev "$NETDEV" root netem limit 100000 $how || return 1
	if [ "$NODE" = 1 ]; then
		report "${command[@]}" -s $((each * (NODES - 1))) "$@"
	else
		for i in $(seq "$each"); do
			"${command[@]}" "$IP_1" > "$LIB_TMP/sender-$i" 2>&1 &
			pids+=($!)
		done
		for i in "${!pids[@]}"; do
			wait "${pids[i]}"
			# 137: with -k, the target tells one sender to kill itself
			case $? in 0 | 137) ;; *) failed+=" $i" ;; esac
			sed 's/^/# /' "$LIB_TMP/sender-$((i + 1))"
		done
		[ -z "$failed" ] && ok "$name, senders of node $NODE" || notok "$name, senders of node $NODE" "failed:$failed"
	fi
	[ -z "$how" ] || tc qdisc del dev "$NETDEV" root
	barrier "accumulate-$port" 900
}

together "good network" 18900 '' 2 -b 4194304
together "5 % loss, duplicates, reordering" 18901 'delay 1ms reorder 25% duplicate 5% loss 5%' 2 \
	-b "${BYTES:-8388608}" -f "${FORGED:-2000}" -k
[ -z "$SPEED" ] || together "speed" 18902 '' 1 -t "$SPEED"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
leak_check "no slab object or module reference is leaked on node $NODE"
kmemleak_check "kmemleak reports no leak on node $NODE"
