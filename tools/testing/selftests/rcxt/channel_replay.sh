#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: replayed packets of channels write no byte, also after rCxts, memory or the module have changed; counters say why
# tier: check
# lab: --nodes 2 --cpus 1 --timeout 240
# lab debug: --nodes 2 --kernel debug --timeout 1800
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# The unprivileged user of the test opens these device nodes.
chmod 666 /dev/infiniband/uverbs*
# The test counts packets.
lossless "$NETDEV"

# replayed NAME [OPTION]: run channel_replay on both nodes
replayed() {
	local command
	command="channel_replay -d $RDMA_DEV -g $(gid_index) -p 18810 -n $NETDEV -f $LIB_TMP $2"
	pair "$1" "$command" "$command $IP_1" 200
	if [ "$NODE" = "$NODES" ]; then
		report_file "$LIB_TMP/client"
	else
		grep '^# ' "$LIB_TMP/server"
	fi
	echo "# node $NODE has lost: $(losses "$NETDEV")"
}

before=$(resources "$RDMA_DEV")
replayed "packets of a finished run are replayed"
reload "the module is reloaded on node $NODE" "$before" && ok "the module is reloaded on node $NODE"
replayed "packets from before the reload are replayed" -a
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
