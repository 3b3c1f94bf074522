#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: raw packet QPs send frames unchanged and receive the whole frames that their rules select; the host receives all others
# tier: check
# lab: --nodes 1 --timeout 300
# lab debug: --nodes 1 --kernel debug --timeout 1500
# tier debug: long
# lab bookworm: --nodes 1 --release bookworm --timeout 400
# tier bookworm: long
# lab backports: --nodes 1 --release backports --timeout 400
# tier backports: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

DEVICE=nhca-raw

# Create a veth with a device at one end. The other end, in a namespace, acts as another host.
cable() {
	ip link add raw0 type veth peer name far0 netns far &&
		sysctl -qw net.ipv6.conf.raw0.disable_ipv6=1 &&
		ip link set raw0 up && ip addr add 10.98.0.1/24 dev raw0 &&
		ip -n far link set far0 up && ip -n far addr add 10.98.0.2/24 dev far0 &&
		device_add $DEVICE raw0 10.98.0.1
}

# holds [PREFIX...]: start a process in the background that has a rule for all frames of an EtherType
holds() {
	: > "$LIB_TMP/hold"
	RDMA_DEV=$DEVICE "$@" raw hold > "$LIB_TMP/hold" 2>&1 &
	HOLDER=$!
	local tries
	for tries in $(seq 100); do
		[ -s "$LIB_TMP/hold" ] && break
		sleep 0.1
	done
	grep -qx held "$LIB_TMP/hold"
}

# In the background, send frames of the EtherType of `raw hold`, one after the other, until $FLOOD is killed.
flood() {
	ip netns exec far python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("far0", 0))
frame = bytes.fromhex("ffffffffffff" "020000000001" "88b5") + bytes(200)
while True:
    try:
        s.send(frame)
    except OSError:
        pass' > /dev/null 2>&1 &
	FLOOD=$!
}

ip netns add far && ip netns exec far sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
	net.ipv6.conf.default.disable_ipv6=1
if ! cable; then
	notok "a device on a cable" "$(rdma link)"
	exit
fi
leak_snapshot
RDMA_DEV=$DEVICE report raw

# ---- permission ----

if holds setpriv --reuid 65534 --clear-groups; then
	notok "raw packet QPs need CAP_NET_RAW" "a process without it has a rule"
	kill $HOLDER
elif grep -q 'not permitted' "$LIB_TMP/hold"; then
	ok "raw packet QPs need CAP_NET_RAW"
else
	notok "raw packet QPs need CAP_NET_RAW" "$(cat "$LIB_TMP/hold")"
fi
wait

# ---- all kinds of removal while frames arrive ----

flood
for round in 1 2 3; do
	if ! holds; then
		notok "a process with a rule is killed" "$(cat "$LIB_TMP/hold")"
		break
	fi
	sleep 0.5
	kill -KILL $HOLDER
	wait $HOLDER
	[ $round = 3 ] && ok "a process with a rule is killed"
done 2> /dev/null
leak_check "no slab object or module reference is leaked"

if holds && rdma link del $DEVICE && device_gone $DEVICE; then
	ok "a device with rules is removed"
else
	notok "a device with rules is removed" "$(cat "$LIB_TMP/hold"; rdma link)"
fi
kill -KILL $HOLDER
wait $HOLDER 2> /dev/null
device_add $DEVICE raw0 10.98.0.1

ip netns add elsewhere
if holds && ip link set raw0 netns elsewhere && device_gone $DEVICE; then
	ok "a netdev with rules moves to another namespace"
else
	notok "a netdev with rules moves to another namespace" "$(cat "$LIB_TMP/hold"; rdma link)"
fi
kill -KILL $HOLDER
wait $HOLDER 2> /dev/null
ip -n elsewhere link set raw0 netns 1

ip link set raw0 up && ip addr add 10.98.0.1/24 dev raw0 && device_add $DEVICE raw0 10.98.0.1
if holds && ip link del raw0 && device_gone $DEVICE; then
	ok "a netdev with rules is deleted"
else
	notok "a netdev with rules is deleted" "$(cat "$LIB_TMP/hold"; rdma link)"
fi
kill -KILL $HOLDER $FLOOD
wait 2> /dev/null
if cable && RDMA_DEV=$DEVICE run "raw packet QPs work again afterwards" raw 'frames leave'; then
	module_remove && module_insert || notok "the module is reloaded" "$(lsmod | grep nhca)"
fi
exit 0
