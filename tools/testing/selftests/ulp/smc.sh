#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: SMC-R sockets move every byte over nhca, report a cut network, and connect again; device and module can be removed under an idle link group
# tier: long
# lab: --nodes 2 --timeout 1800 --env MIB=1024 --env CUT=20
# lab bookworm: --nodes 2 --release bookworm --timeout 900 --env MIB=64 --env CUT=20

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"

mib=${MIB:-64} cut=${CUT:-20} port=19000
counters=/sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters

ulp_modules "SMC" smc
step "node $NODE has a user EID" python3 "$LAB_SRC/selftests/ulp/smc_ueid.py" NHCA.TEST || exit 1

listening() {
	ss -Hltn "sport = :$port" | grep -q .
}

# Start one end of a stream in the background; the receiver listens before the sender starts. The sockets that listen
# are those of the kernel, so pair() would not find them.
stream_start() {
	port=$((port + 1))
	if [ "$NODE" = 1 ]; then
		smc_xfer $port > "$LIB_TMP/stream" 2>&1 &
		stream=$!
		within 20 listening
		barrier listening
	else
		barrier listening
		smc_xfer $port "$IP_1" "$1" > "$LIB_TMP/stream" 2>&1 &
		stream=$!
	fi
}

# stream_ends NAME STATUS: the stream must end with this status
stream_ends() {
	if ended $stream 1500 && [ "$JOB_STATUS" = "$2" ]; then
		ok "$1, node $NODE"
	else
		notok "$1, node $NODE" "status '$JOB_STATUS', $(tail -n 1 "$LIB_TMP/stream")"
		kill $stream 2> /dev/null
	fi
	sed 's/^/#   /' "$LIB_TMP/stream"
}

# transfer NAME MIB: a verified stream. If the device has sent the stream, RDMA has carried it and
# not TCP.
transfer() {
	local name=$1 before sent=0
	before=$(cat "$counters/sent_bytes")
	stream_start "$2"
	stream_ends "$name" 0
	barrier streamed 1600
	[ "$NODE" = 2 ] || return
	sent=$(($(cat "$counters/sent_bytes") - before))
	if [ $sent -ge $(($2 << 20)) ]; then
		ok "$name: RDMA has carried it"
	else
		notok "$name: RDMA has carried it" "the device has sent $sent bytes"
	fi
}

transfer "a stream of $mib MiB" "$mib"

# ---- the network is cut under a stream ----

stream_start 0
[ "$NODE" = 1 ] || {
	sleep 3
	network_cut "$cut"
}
barrier healed $((cut + 120))
stream_ends "a stream ends with an error when the network is cut for $cut s" 2
transfer "a stream after the cut" 16

# ---- the device is removed while SMC keeps its link group ----

rdma link del "$RDMA_DEV"
step "the device goes with an idle link group on node $NODE" device_gone "$RDMA_DEV"
device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"
barrier again
transfer "a stream over the device that was made again" 16
step "the driver unloads with an idle link group on node $NODE" module_remove
step "the smc module unloads on node $NODE" rmmod smc
tasks_check "no task hangs on node $NODE"
barrier end 240
exit 0
