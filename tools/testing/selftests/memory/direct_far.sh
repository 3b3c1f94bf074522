#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: many queue pairs read a disk through a small pool, also with packet loss, while the server's program sleeps
# tier: long
# lab: --nodes 2 --cpus 2 --timeout 400 --env MIB=8 --env PEERS=16
# lab long: --nodes 2 --cpus 2 --timeout 4000 --env MIB=256 --env PEERS=16
# tier long: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

mib=${MIB:-8} peers=${PEERS:-16} port=18800
modprobe sch_netem
if [ "$NODE" = 1 ] && ! modprobe null_blk nr_devices=1 gb=1 bs=512 memory_backed=1; then
	notok "the disk is there" "null_blk cannot be loaded"
	exit 1
fi

# far NAME OPTIONS: node 1 serves the disk, node 2 reads it
far() {
	local name=$1 gid command
	shift
	gid=$(gid_index) || exit 1
	port=$((port + 1))
	command="direct_far -d $RDMA_DEV -g $gid -p $port -n $peers $*"
	pair "$name" "$command -f /dev/nullb0" "$command $IP_1" $((120 + mib * peers))
	[ "$NODE" = 2 ] || grep '^# ' "$LIB_TMP/server"
}

far "peers read the disk" -m "$mib" -b 256
far "peers read through a pool of 64 blocks" -m 1 -b 64
tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 1% reorder 1% delay 1ms duplicate 1%
far "peers read over a lossy network" -m 1 -b 64
tc qdisc del dev "$NETDEV" root
