#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: half transfers: writes from scattered buffers, writes and reads whose packets each get exactly one frame, and reads that the peer's program answers, also when packets are lost, repeated and reordered
# tier: check
# lab: --nodes 2 --timeout 600 --env TRANSFERS=100
# lab whole: --machine uml --nodes 2 --timeout 7200 --env TRANSFERS=10000
# tier whole: long
# lab jumbo: --nodes 2 --mtu 9000 --timeout 900 --env TRANSFERS=100
# tier jumbo: long
# lab debug: --nodes 2 --kernel debug --timeout 3000 --env TRANSFERS=200
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
leak_snapshot
modprobe sch_netem

run "the example of nhcadv_wr_part(3)" nhcadv_half "$RDMA_DEV" "$gid"

port=18890
for how in '' 'loss 5%' 'delay 2ms reorder 25% duplicate 5% loss 5%'; do
	if [ -n "$how" ] && ! tc qdisc replace dev "$NETDEV" root netem limit 100000 $how; then
		notok "netem $how" "tc refuses it"
		exit
	fi
	command="half -d $RDMA_DEV -g $gid -p $port -n ${TRANSFERS:-100}"
	pair "half transfers, network: ${how:-good}" "$command" "$command $IP_1" 3000
	[ "$NODE" != "$NODES" ] || report_file "$LIB_TMP/client"
	port=$((port + 1))
done
tc qdisc del dev "$NETDEV" root
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
leak_check "no slab object or module reference is leaked on node $NODE"
