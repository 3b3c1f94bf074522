#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# promise: reliable messages complete exactly once, with every byte in place, whatever the network does to packets
# tier: check
# lab: --nodes 2 --timeout 400
# lab big: --machine uml --nodes 2 --timeout 7200 --env BYTES=2G --env LIMIT=1800
# tier big: long

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

modprobe sch_netem
GID=$(gid_index) || exit 1
PORT=18900

impair() {
	tc qdisc del dev "$NETDEV" root 2> /dev/null
	if [ -n "$1" ] && ! tc qdisc replace dev "$NETDEV" root netem limit 100000 $1; then
		notok "netem $1" "tc refuses it"
		exit
	fi
	PREFIX=${1:-clean}
	barrier
}

messages() {
	local command
	PORT=$((PORT + 1))
	command="msg_xfer -d $RDMA_DEV -g $GID -p $PORT $*"
	pair "$PREFIX: messages $*" "$command" "$command $IP_1" "${LIMIT:-120}" || return
	[ "$NODE" = 2 ] && sed -n 's/^msg_xfer: \|^# /#   /p' "$LIB_TMP/client"
	[ "$NODE" = 1 ] && sed -n 's/^# /#   /p' "$LIB_TMP/server"
}

for how in '' 'loss 1%' 'loss 5%' 'delay 10ms reorder 25%' 'delay 10ms reorder 25% duplicate 5% loss 5%'; do
	impair "$how"
	messages -n "${BYTES:-16M}" -s 1M -w 4
	messages -o read -n "${BYTES:-16M}" -s 1M -w 4
	messages -o send -n 2000
done
exit 0
