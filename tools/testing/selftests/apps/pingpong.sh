#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the ping-pong programs of libibverbs run, polling and with events, data checked
# tier: check
# lab: --nodes 2 --timeout 240
# lab one-host: --nodes 1 --timeout 240
# tier one-host: long
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 240
# tier interop-server: long
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 240
# tier interop-client: long
# lab debug: --nodes 2 --kernel debug --timeout 600 --env COUNT=100
# tier debug: long
# lab rt: --release rt --nodes 2 --cpus 2 --timeout 1200
# tier rt: long
# lab rt-debug: --kernel rt-debug --nodes 2 --cpus 2 --timeout 1800
# tier rt-debug: long

. "$LAB_SRC/selftests/lib/lib.sh"

gid=$(gid_index) || {
	notok "GID of this node's IPv4 address" "none in the table of $RDMA_DEV"
	exit
}

pingpong() {
	local name=$1 command="ibv_$2 -d $RDMA_DEV -g $gid"
	pair "$name" "$command" "$command $IP_1"
}

for transport in rc uc srq; do
	for mode in '' -e; do
		for check in '' -c; do
			pingpong "$transport${mode:+ $mode}${check:+ $check}" \
				"${transport}_pingpong -n ${COUNT:-500} $mode $check"
		done
	done
done
# ud_pingpong does not retransmit. Its message of 1024 bytes fits into one packet.
for mode in '' -e; do
	pingpong "ud${mode:+ $mode}" "ud_pingpong -n ${COUNT:-500} -s 1024 $mode"
done
