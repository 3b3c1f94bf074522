#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the removal of a netdev waits until no packet refers to buffers of a running process
# tier: check
# lab: --nodes 1 --timeout 200
# The netdev is a macvlan. A queueing discipline of the netdev below it keeps the packets.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

NEAR_IP=10.95.1.1 FAR_IP=10.95.1.2

network_add() {
	ip netns add far && ip -n far link set lo up &&
		ip link add near type veth peer name far netns far &&
		ip link set near up && ip -n far link set far up &&
		ip link add link near name upper type macvlan mode bridge &&
		ip -n far link add link far name upper type macvlan mode bridge &&
		ip link set upper up && ip -n far link set upper up &&
		ip addr add $NEAR_IP/24 dev upper && ip -n far addr add $FAR_IP/24 dev upper &&
		device_add rmnear upper $NEAR_IP &&
		ip netns exec far rdma link add rmfar type nhca netdev upper && device_ready rmfar $FAR_IP
}

network_del() {
	ip link del upper 2> /dev/null
	rdma link del rmfar 2> /dev/null || ip netns exec far rdma link del rmfar
	device_gone rmnear && device_gone rmfar
	ip link del near
	ip netns del far
}

kept() {
	tc -s qdisc show dev near | sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p'
}

# stuck: start a transfer, and let the queue of the lower netdev keep packets with pages of the sender
stuck() {
	local command=(ib_write_bw -F -D 600 -s 65536 -q 4)
	server_start "${command[*]} -d rmfar -x $(gid_of rmfar $FAR_IP)" 120 || return
	setsid "${command[@]}" -d rmnear -x "$(gid_of rmnear $NEAR_IP)" 127.0.0.1 > "$LIB_TMP/client" 2>&1 < /dev/null &
	CLIENT=$!
	sleep 3
	# A retransmitted packet has a copy of the bytes, and no pages of the sender. So stop the sender until all
	# packets are acknowledged. Then the first packets in the queue are new ones, with pages.
	kill -STOP "$CLIENT"
	sleep 2
	modprobe -q sch_tbf
	tc qdisc add dev near root tbf rate 8bit burst 1600 limit 10000000
	kill -CONT "$CLIENT"
	sleep 0.5
	kill -STOP "$CLIENT"
	[ "$(kept)" -gt 0 ]
}

removal() {
	local how=$1 remover begun
	if ! network_add || ! stuck; then
		notok "$how: packets stay in the queue" "backlog: $(tc -s qdisc show dev near | paste -sd' ')"
		show_tail "$LIB_TMP/client"
		kill -KILL "$CLIENT" "$SERVER"
		network_del
		return
	fi
	ip link del upper &
	remover=$!
	sleep 4
	if [ -e /sys/class/infiniband/rmnear ]; then
		ok "$how: the removal waits for packets of a process that lives"
	else
		notok "$how: the removal waits for packets of a process that lives" "the device is gone, $(kept) packets are not"
	fi
	begun=$SECONDS
	[ "$how" = sent ] && tc qdisc del dev near root
	[ "$how" = killed ] && kill -KILL "$CLIENT"
	if device_gone rmnear; then
		ok "$how: the removal ends"
		echo "# after $((SECONDS - begun)) s"
	else
		notok "$how: the removal ends" "not within 20 s"
	fi
	if [ "$how" = killed ] && [ "$(kept)" = 0 ]; then
		notok "$how: the queue has packets after the removal" "none"
	fi
	ended "$remover" 20 || notok "$how: ip link del ends" "it still runs"
	kill -KILL "$CLIENT" 2> /dev/null
	kill -KILL -- "-$SERVER" 2> /dev/null
	ended "$CLIENT" 20 || notok "$how: the sender ends" "it still runs"
	network_del
}

echo N > /sys/module/nhca/parameters/same_host
removal sent
removal killed
tasks_check "no task hangs"
