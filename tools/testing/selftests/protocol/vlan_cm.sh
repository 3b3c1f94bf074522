#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: rdma_cm connects to and from the addresses of VLANs, over IPv4 and IPv6, on one host and between two hosts
# tier: check
# lab: --nodes 2 --timeout 300
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 300
# tier interop-server: long
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 300
# tier interop-client: long

. "$LAB_SRC/selftests/lib/lib.sh"

modprobe 8021q
ip link add link "$NETDEV" name v7 type vlan id 7 && ip link set v7 up || {
	notok "a VLAN on $NETDEV is created"
	exit
}
# From here on the addresses of the nodes are those of the VLAN.
for node in 1 2; do
	declare IP_$node=10.77.7.$node IP6_$node=fd77:7::$node
done
me=IP_$NODE me6=IP6_$NODE
ip addr add "${!me}/24" dev v7
ip -6 addr add "${!me6}/64" dev v7 nodad
for _ in $(seq 100); do
	gid_index "${!me}" > /dev/null 2>&1 && gid_index "${!me6}" > /dev/null 2>&1 && break
	sleep 0.1
done
# The netdev below the VLAN does not have these addresses, because they would hide errors.
. "$LAB_SRC/selftests/lib/traffic.sh"
barrier

family() {
	local name=$1 server=$2
	pair "rping $name" "rping -s -a $server -C 20 -V" "rping -c -a $server -C 20 -V"
	pair "ucmatose $name" "ucmatose -b $server -c 10 -C 20 -S 8000" \
		"ucmatose -s $server -c 10 -C 20 -S 8000"
	pair "udaddy $name" "udaddy -b $server -c 4 -C 10 -S 512" \
		"udaddy -s $server -c 4 -C 10 -S 512"
}

family "IPv4 of a VLAN" "$IP_1"
family "IPv6 of a VLAN" "$IP6_1"
perf_cm write_bw -n 20
perf write_bw -n 20

# Run both ends on one host: packets go through lo, and data may take the same-host path.
barrier
NODES=1 LAB_CTL=$LIB_TMP
if [ "$NODE" = 2 ]; then
	exit
fi
family "IPv4 of a VLAN, one host" "$IP_1"
family "IPv6 of a VLAN, one host" "$IP6_1"
exit 0
