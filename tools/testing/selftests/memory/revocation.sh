#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: after an invalidation has completed, no byte is read or written by the old key
# tier: check
# lab: --nodes 2 --cpus 2 --timeout 300
# lab one-host: --nodes 1 --cpus 2 --timeout 300
# tier one-host: long
# lab long: --nodes 2 --cpus 2 --timeout 172800 --env COUNT=500
# tier long: long
# lab million: --machine uml --nodes 2 --cpus 2 --mtu 4200 --timeout 14400 --env MANY=1000000
# tier million: long
# lab rxe: --nodes 2 --cpus 2 --driver rxe --timeout 3600 --env COUNT=1
# tier rxe: long
# lab debug: --nodes 2 --cpus 2 --kernel debug --timeout 7200 --env COUNT=1
# tier debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# Another driver runs for comparison only: its failures are printed as skips.
if [ "$LAB_DRIVER" != nhca ]; then
	notok() {
		skip "$1" "$LAB_DRIVER: ${2:-failed}"
		sed -n 's/^not ok [0-9]* - /#   /p' "$LIB_TMP/server" "$LIB_TMP/client" 2> /dev/null
	}
fi

# A dropped NAK would turn a remote access error into a retry error, because the queue pair that has sent the NAK is
# in the error state and does not answer the retransmission. So use a queue that is long enough to drop nothing.
lossless "$NETDEV"

count=${COUNT:-0}
many=${MANY:-0}
limit=$((120 + count * 1000 + many / 100))

keys() {
	local command
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	command="revocation -d $RDMA_DEV -g $TRAFFIC_GID -p $TRAFFIC_PORT -r ${SEED:-$TRAFFIC_PORT} $*"
	pair "$PREFIX$*" "$command" "$command $IP_1" $limit
	[ "$NODE" = 2 ] || report_file "$LIB_TMP/server" "$PREFIX"
}

# as_many: run about nine tenths of MANY invalidations; the part for type 2A below runs the others. Most messages have
# only two packets, because a round lasts as long as its messages. The responder executes a SEND with Invalidate after it
# has answered the READs before it, so the invalidation rarely comes in the middle of a READ. More than 160 such
# invalidations would test little more.
as_many() {
	local mode
	keys -x -m type1 -n 32 -q 4 -B
	for mode in type1 type2 dereg rereg; do
		keys -m $mode -n $((many / 10)) -s 8000 -B
	done
	keys -m send_inv -n $((many / 20)) -s 8000
	keys -m send_inv -n 160 -s 8000 -R
	keys -m type1 -n $((many * 3 / 100)) -s 64 -q 16 -B
}

everything() {
	# Test of the test: the owner reuses memory before the completion, and the test must find late bytes.
	keys -x -m type1 -n 32 -q 4 -B
	if [ "$count" = 0 ]; then
		keys -m all -n 48 -B
		keys -m type1 -n 80 -s 64 -q 16
		return
	fi
	keys -m all -n $((80 * count)) -s 65536 -B
	keys -m all -n $((80 * count)) -s 8000 -B
	# Test small messages on many queue pairs, and long messages on few.
	keys -m type1 -n $((120 * count)) -s 64 -q 16 -B
	keys -m type2 -n $((40 * count)) -s 1000000 -q 2 -B
	keys -m dereg -n $((40 * count)) -s 300000 -q 4 -B
}

# With COUNT=500, everything() makes 1,000,000 invalidations.
leak_snapshot
if [ "$many" = 0 ]; then
	everything
else
	as_many
fi
# So far the type 2 windows were of type 2B. Type 2A has other rules about protection domains, so test it as well.
if [ "$LAB_DRIVER" = nhca ] && [ "$count$many" != 00 ]; then
	barrier 2A-begins
	if ! rdma link del "$RDMA_DEV" || ! module_remove || ! modprobe nhca mw_type=2A ||
		! device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"; then
		notok "2A: the module is reloaded" "see above"
	fi
	TRAFFIC_GID=$(gid_index)
	barrier 2A-loaded
	PREFIX="2A: "
	if [ "$many" = 0 ]; then
		keys -m type2 -n $((80 * count)) -s 65536 -B
		keys -m send_inv -n $((80 * count)) -s 8000 -B
	else
		keys -m type2 -n $((many / 25)) -s 8000 -B
		keys -m send_inv -n $((many / 100)) -s 8000
		keys -m send_inv -n 160 -s 8000 -R
	fi
fi
leak_check "no slab object or module reference is leaked on node $NODE"
