#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: forged rCxt packets obey the documented rules, except for the field that is forged
# tier: check
# lab: --nodes 2 --timeout 240
# lab ipv6: --nodes 2 --timeout 240 --env FAMILY=IPv6
# tier ipv6: long

. "$LAB_SRC/selftests/lib/lib.sh"

port=7492
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
	RUN_TIMEOUT=220
	run "qp_target ran to the end" qp_target "$RDMA_DEV" "$gid" $port
	;;
2)
	report "$LAB_SRC/selftests/rcxt/forge.py" "$target" $port "$me" "$NETDEV"
	# Print the packet rate of rcxt_forge, which shows how many packets a longer test can send.
	rcxt_forge -a "$target" -q 17 -n 20000 random-rxeth | tail -n 1
	rcxt_forge -a "$target" -q 17 -n 20000 -b -g 32 random-rxeth | tail -n 1
	;;
esac
