#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a sender that has all values of a channel but one writes no byte; counters say what was wrong, and a wrong PVO raises an event
# tier: check
# lab: --nodes 2 --timeout 240
# lab debug: --nodes 2 --kernel debug --timeout 1800 --env COUNT=100
# tier debug: long
# lab long: --nodes 2 --timeout 3600 --env MILLIONS=10
# tier long: long
# lab half: --nodes 2 --timeout 3600 --env HALF=1
# tier half: long
# lab uml: --machine uml --nodes 2 --timeout 3600 --env MILLIONS=10
# tier uml: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# Packets wait up to 1 ms (1,000,000 ns) for others of their flow, so that GRO can merge them.
echo 1 > "/sys/class/net/$NETDEV/napi_defer_hard_irqs"
echo 1000000 > "/sys/class/net/$NETDEV/gro_flush_timeout"

# The test counts packets.
lossless "$NETDEV"

before=$(resources "$RDMA_DEV")
command="channel_forged -d $RDMA_DEV -g $(gid_index) -p 18820 -c ${COUNT:-500} -r ${MILLIONS:-0} -h ${HALF:-0}"
SHOWN_LINES=5
pair "forged packets" "$command" "$command $IP_1" $((MILLIONS || HALF ? 3000 : COUNT ? 900 : 200))
if [ "$NODE" = "$NODES" ]; then
	report_file "$LIB_TMP/client"
else
	grep '^# ' "$LIB_TMP/server"
fi
echo "# node $NODE has lost: $(losses "$NETDEV")"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
