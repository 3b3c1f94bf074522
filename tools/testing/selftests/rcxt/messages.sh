#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: reliable messages complete exactly once, with every byte in place, whatever the network does to packets
# tier: check
# lab: --nodes 2 --timeout 400 --env BRIEF=1
# lab whole: --nodes 2 --timeout 900
# tier whole: long
# lab debug: --nodes 2 --kernel debug --timeout 1800 --env LIMIT=400
# tier debug: long
# lab renew: --nodes 2 --timeout 400 --env BRIEF=1 --define MSG_LAST_TID=2
# tier renew: long
# lab big: --machine uml --nodes 2 --timeout 7200 --env BRIEF=1 --env BYTES=2G --env LIMIT=1800
# tier big: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

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

DEVICES=$RDMA_DEV GIDS=$GID

messages() {
	local command
	PORT=$((PORT + 1))
	command="msg_xfer -d $DEVICES -g $GIDS -p $PORT $*"
	pair "$PREFIX: messages $*" "$command" "$command $IP_1" "${LIMIT:-120}" || return
	[ "$NODE" = 2 ] && sed -n 's/^msg_xfer: \|^# /#   /p' "$LIB_TMP/client"
	[ "$NODE" = 1 ] && sed -n 's/^# /#   /p' "$LIB_TMP/server"
}

# Add a second link (macvlan) on the same netdev, with its own addresses and RDMA device.
link_add() {
	modprobe macvlan
	ip link add link "$NETDEV" name second type macvlan mode bridge &&
		ip addr add "192.168.78.$NODE/24" dev second &&
		ip -6 addr add "fd78::$NODE/64" dev second nodad && ip link set second up &&
		device_add nhca1 second "192.168.78.$NODE"
}

# messages_and NODE COMMAND ARGS...: run messages, and after 40 messages COMMAND on NODE
messages_and() {
	local node=$1 what=$2
	shift 2
	if [ "$NODE" = "$node" ]; then
		messages "-X '40:$what'" "$@"
	else
		messages "$@"
	fi
}

# whole COMMAND...: run the command, unless BRIEF is set
whole() {
	[ -n "$BRIEF" ] || "$@"
}

for how in '' 'loss 1%' 'loss 5%' 'delay 10ms reorder 25%' 'delay 10ms reorder 25% duplicate 5% loss 5%'; do
	[[ -n $BRIEF && $how != '' && $how != *duplicate* ]] && continue
	impair "$how"
	messages -n "${BYTES:-16M}" -s 1M -w 4
	messages -o read -n "${BYTES:-16M}" -s 1M -w 4
	messages -o send -n 2000
done

# Packets wait long in the deep queue of a slow link. These packets are not lost, so few of them may be
# retransmitted.
impair 'rate 10mbit'
messages -o read -n 24M -s 1M -w 16
if [ "$NODE" = 2 ]; then
	line=$(grep -o '[0-9]* packets, [0-9]* resent' "$LIB_TMP/client")
	set -- ${line//[!0-9 ]/}
	if [ $((${2:-1} * 10)) -lt "${1:-0}" ]; then
		ok "$PREFIX: less than a tenth of the packets is retransmitted"
	else
		notok "$PREFIX: less than a tenth of the packets is retransmitted" "${line:-msg_xfer printed no counts}"
	fi
fi

impair 'loss 1%'
messages -C -n 32M -s 1M -w 8
messages -C -b 128 -n 32M -s 1M -w 8
whole messages -C -o read -n 32M -s 1M -w 8
# A recovery (-R) of a device replaces its channels and rCxts during the messages.
messages -R 20 -n 64M -s 1M -w 8
whole messages -R 3 -o read -n 64M -s 1M -w 8
whole messages -R 500 -o send -n 2000
messages -e -n 16M -s 1M -w 4

impair ''
if ! link_add; then
	notok "a second link" "cannot be made"
	exit
fi
barrier
DEVICES=$RDMA_DEV,nhca1 GIDS=$GID,$(gid_of nhca1 "192.168.78.$NODE")
PREFIX='two links'
messages -n 64M -s 1M -w 8
messages -b 4096 -n 16M -s 1M -w 8
whole messages -o read -n 64M -s 1M -w 8
whole messages -R 20 -n 64M -s 1M -w 8
PREFIX='two links, one goes down for 2 s'
messages_and 2 'ip link set second down; sleep 2; ip link set second up' -n 128M -s 1M -w 8
whole messages_and 1 'ip link set second down; sleep 2; ip link set second up' -o read -n 128M -s 1M -w 8
PREFIX='two links, one loses all packets for 2 s'
whole messages_and 1 'tc qdisc add dev second root netem loss 100%; sleep 2; tc qdisc del dev second root' \
	-n 128M -s 1M -w 8
PREFIX='two links, one device is removed'
messages_and 2 'rdma link del nhca1' -n 128M -s 1M -w 8
exit 0
