#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: invalid packets are counted, and are dropped or answered as the specification says
# tier: check
# lab: --nodes 2 --timeout 400
# lab ipv6: --nodes 2 --timeout 400 --env FAMILY=IPv6
# tier ipv6: long
# lab debug: --nodes 2 --kernel debug --timeout 1200 --env LIMIT=1150
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

port=7491
RUN_TIMEOUT=${LIMIT:-380}
target=$IP_1 me=$IP_2
if [ "$FAMILY" = IPv6 ]; then
	target=$IP6_1 me=$IP6_2
fi

case $NODE in
1)
	gid=$(gid_index "$target") || {
		notok "GID of this node's address" "none in the table of $RDMA_DEV"
		exit
	}
	# Some packets have source addresses that no host has: turn off the reverse path filter.
	for rp_filter in /proc/sys/net/ipv4/conf/*/rp_filter; do
		echo 0 > "$rp_filter"
	done
	before=$(resources "$RDMA_DEV")
	kmemleak_mark
	memory_mark
	run "qp_target ran to the end" qp_target "$RDMA_DEV" "$gid" $port
	barrier packets-done $((RUN_TIMEOUT + 10))
	resources_check "rdma res show has as many objects as before" "$RDMA_DEV" "$before"
	# The packets use hundreds of QPs, so a leak of one object for each QP exceeds the bound of 100.
	memory_check "memory in use has not grown" 100
	kmemleak_check "kmemleak reports no leak"
	;;
2)
	report "$LAB_SRC/selftests/hostile/hostile_packets.py" "$target" $port "$me" "$NETDEV"
	barrier packets-done $((RUN_TIMEOUT + 10))
	;;
esac
