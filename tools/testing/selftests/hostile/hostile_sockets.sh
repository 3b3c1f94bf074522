#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a program needs CAP_NET_RAW to send RoCEv2 packets through a socket, but only where there is an nhca device
# tier: check
# lab: --nodes 1 --timeout 200
# lab bookworm: --nodes 1 --release bookworm --timeout 300
# tier bookworm: long
# lab backports: --nodes 1 --release backports --timeout 300
# tier backports: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

DEVICE=nhcaso
ip4=10.97.0.1 ip6=fd97::1
export DEVICE

# Delete the device of the lab, so that this namespace has only the device of the test.
rdma link delete "$RDMA_DEV" && device_gone "$RDMA_DEV" &&
	ip netns add other &&
	ip link add so0 type veth peer name so1 netns other &&
	ip link set so0 up && ip addr add $ip4/24 dev so0 && ip addr add $ip6/64 dev so0 nodad &&
	ip -n other link set lo up && ip -n other link set so1 up && ip -n other addr add 10.97.0.2/24 dev so1 &&
	device_add $DEVICE so0 $ip4 $ip6 || {
	notok "a device on a veth" "$(rdma link)"
	exit
}
leak_snapshot
send=$LAB_SRC/selftests/hostile/hostile_sockets.py

report python3 -B "$send" privileged $ip4 $ip6
report setpriv --reuid 65534 --regid 65534 --clear-groups python3 -B "$send" refused $ip4 $ip6
# root without CAP_NET_RAW is also refused
report setpriv --bounding-set -net_raw --inh-caps -net_raw python3 -B "$send" refused $ip4 $ip6
# A process that has given up CAP_NET_RAW may still send through sockets that it opened before.
report python3 -B "$send" inherited $ip4 $ip6
# The namespace "other" has no nhca device, so its programs may send RoCEv2 packets.
report ip netns exec other setpriv --reuid 65534 --clear-groups python3 -B "$send" free 10.97.0.1

rdma link delete $DEVICE
device_gone $DEVICE || notok "the device is deleted" "it is still there"
report setpriv --reuid 65534 --clear-groups python3 -B "$send" free $ip4 $ip6
device_add $DEVICE so0 $ip4 $ip6
report setpriv --reuid 65534 --clear-groups python3 -B "$send" refused $ip4 $ip6
rdma link delete $DEVICE
device_gone $DEVICE
leak_check "no memory is leaked"
