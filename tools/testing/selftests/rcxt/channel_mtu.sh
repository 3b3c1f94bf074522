#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: channels move every byte at MTUs of 1280 to 65535, with and without high-order pages, and no packet overruns its memory
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 900
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 3600
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# end SPACE IP: move one end of the veth into a new namespace SPACE and give it the address
end() {
	local space=$1 ip=$2
	ip netns add "$space" && ip -n "$space" link set lo up &&
		ip link set "mtu_$space" netns "$space" &&
		ip -n "$space" link set "mtu_$space" up && ip -n "$space" addr add "$ip/24" dev "mtu_$space"
}

device() {
	ip netns exec "$1" rdma link add "nhca_$1" type "$LAB_DRIVER" netdev "mtu_$1" &&
		device_ready "nhca_$1" "$2"
}

# A port is active only when both ends of the veth are up, so add the devices after both.
if ! { ip link add mtu_red type veth peer name mtu_blue && end red 10.96.7.1 && end blue 10.96.7.2 &&
	device red 10.96.7.1 && device blue 10.96.7.2; }; then
	notok "two devices on a veth" "they cannot be created"
	exit 1
fi
gid_red=$(gid_of nhca_red 10.96.7.1) && gid_blue=$(gid_of nhca_blue 10.96.7.2) || exit 1
chmod 666 /dev/infiniband/uverbs*

port=18900
for low in 0 1; do
	sysctl -qw net.core.high_order_alloc_disable=$low || exit 1
	for mtu in 65535 9000 1280; do
		ip -n red link set mtu_red mtu $mtu && ip -n blue link set mtu_blue mtu $mtu || exit 1
		port=$((port + 1))
		pair "MTU $mtu, high_order_alloc_disable=$low" \
			"ip netns exec red channel -d nhca_red -g $gid_red -p $port" \
			"ip netns exec blue channel -d nhca_blue -g $gid_blue -p $port 10.96.7.1" 300
	done
done
sysctl -qw net.core.high_order_alloc_disable=0

ip netns del red
ip netns del blue
device_gone nhca_red && device_gone nhca_blue && ok "the devices are removed with their namespaces"
tasks_check "no task hangs"
