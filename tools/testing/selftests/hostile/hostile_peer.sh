#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: packets mutated in the middle of traffic change no byte of data, and end no connection if their PSN is outside the connection's window
# tier: check
# lab: --nodes 2 --timeout 400
# lab rxe: --nodes 2 --driver 1=nhca,2=rxe --timeout 400
# tier rxe: long
# lab debug: --machine uml --nodes 2 --cpus 2 --kernel debug --timeout 1800 --env COUNT=100000
# tier debug: long
# lab debug-rxe: --machine uml --nodes 2 --cpus 2 --kernel debug --driver 1=nhca,2=rxe --timeout 1800 --env COUNT=100000
# tier debug-rxe: long
# lab million: --machine uml --nodes 2 --cpus 2 --timeout 14400 --env COUNT=10000000
# tier million: long
# lab million-rxe: --machine uml --nodes 2 --cpus 2 --driver 1=nhca,2=rxe --timeout 14400 --env COUNT=10000000
# tier million-rxe: long
# Node 2 is both the peer and the attacker of node 1. COUNT is the number of packets of "off-path: everything".

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

count=${COUNT:-20000}
rate=${RATE:-5000}
# Mutated packets for each transfer.
round=$((count < 200000 ? count : 200000))
# Allow four times the time in which the attacker sends, because an emulated guest, or one with checkers, processes
# packets slower than the attacker sends them.
limit=$((120 + 4 * round / rate))
seed=${SEED:-$RANDOM}
gid6=$(gid_index "$MY_IP6")

# attacked NAME XFER-ARGS MUTATE-ARGS: run a transfer for the time in which the attacker can send $round packets
attacked() {
	local name=$1 xfer=$2 mutate=$3 transfer
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	seed=$((seed + 1))
	transfer="verify_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p $TRAFFIC_PORT $XFER_PATIENCE $xfer -L $((2 + round / rate))"
	# The attacker ends after its packets, or with the transfer, and prints how many packets it has sent.
	pair "$name" "$transfer" \
		"peer_mutate -i $NETDEV -R $rate -r $seed $mutate > $LIB_TMP/mutated & attacker=\$!
		$transfer $IP_1; status=\$?; kill \$attacker; wait \$attacker; exit \$status" $limit
	[ "$NODE" = 1 ] || sed "s/^/# seed $seed: /" "$LIB_TMP/mutated"
}

before=$(resources "$RDMA_DEV")
# The first run makes allocations that stay, such as caches. Later runs must not add to them.
attacked "without an attacker" "-q 4 -s 20000 -b" "-n 0"
kmemleak_mark
memory_mark
barrier marked 60

attacked "off-path: capability bits of acknowledgments" "-q 4 -s 20000 -b" -k
for ((done = 0; done < count; done += round)); do
	attacked "off-path: everything, after $done" "-q 4 -s 20000 -b" "-n $round"
done

# The attacker is on the path of the IPv6 connections and may break them. The IPv4 connections must be unaffected.
TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
victim="verify_xfer -d $RDMA_DEV -g $gid6 -p $((TRAFFIC_PORT + 50)) -q 4 -s 20000 -b -P 10 -L 600"
others="verify_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p $TRAFFIC_PORT $XFER_PATIENCE -q 4 -s 20000 -b -L $((2 + round / rate))"
victims() {
	echo "setsid bash -c 'while :; do $1; sleep 0.2; done' > /dev/null 2>&1 & victims=\$!"
}
pair "on-path: connections of others" \
	"$(victims "$victim"); $others; status=\$?; pkill -KILL -s \$victims; exit \$status" \
	"$(victims "$victim $IP_1"); peer_mutate -i $NETDEV -R $rate -r $seed -w -6 > $LIB_TMP/mutated & attacker=\$!
	$others $IP_1; status=\$?; kill \$attacker; pkill -KILL -s \$victims; wait \$attacker; exit \$status" $limit
[ "$NODE" = 1 ] || sed "s/^/# seed $seed, on-path: /" "$LIB_TMP/mutated"

resources_check "rdma res show has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
if [ "$LAB_DRIVER" = nhca ]; then
	memory_check "memory in use has not grown on node $NODE" 100
	kmemleak_check "kmemleak reports no leak on node $NODE"
fi
tasks_check "no task hangs on node $NODE"
