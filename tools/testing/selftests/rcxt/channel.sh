#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: channels do what nhcadv's man pages say (packets, writes, reads, retransmission, cancel, fences, recovery) and refuse everything else
# tier: check
# lab: --nodes 2 --cpus 2 --timeout 400
# lab one-host: --nodes 1 --cpus 2 --timeout 400
# tier one-host: long
# lab jumbo: --nodes 1 --cpus 2 --mtu 9000 --timeout 400
# tier jumbo: long
# lab debug: --nodes 2 --cpus 2 --kernel debug --timeout 1800
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1

# The unprivileged user of the test opens these device nodes.
chmod 666 /dev/infiniband/uverbs*

run "the example of nhcadv(7)" nhcadv_write "$RDMA_DEV" "$gid"
run "the example of nhcadv_wr_move(3)" nhcadv_move "$RDMA_DEV" "$gid"
[ "$NODE" = 1 ] && report channel_features -d "$RDMA_DEV" -g "$gid"

tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs tracefs $tracing 2> /dev/null
drops=$tracing/events/nhca/nhca_channel_drop/enable
[ -e $drops ] && echo 1 > $drops

before=$(resources "$RDMA_DEV")
leak_snapshot
command="channel -d $RDMA_DEV -g $gid -p 18800"
pair "all operations of channels" "$command" "$command $IP_1" 300
# Server and client pass each case together, so the results of the client are enough.
[ "$NODE" = "$NODES" ] && report_file "$LIB_TMP/client"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
leak_check "no slab object or module reference is leaked on node $NODE"
if [ ! -e $drops ]; then
	skip "dropped packets are traced" "this kernel has no tracepoints"
elif [ "$NODE" = 1 ]; then
	# The client sends packets that the server's channel must drop for each of these reasons.
	for why in fifo stale pvo_range; do
		run "a dropped packet is traced: $why" \
			grep -q "nhca_channel_drop: channel 0x[0-9a-f]*: $why; from 0x" $tracing/trace
	done
fi
