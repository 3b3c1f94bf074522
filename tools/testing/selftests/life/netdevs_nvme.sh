#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: NVMe over nhca between two hosts reads what it wrote, over each kind of netdev that rdma_cm supports
# tier: long
# lab: --nodes 2 --packages libteam-utils,openvswitch-switch --timeout 1800
# lab backports: --nodes 2 --release backports --packages libteam-utils,openvswitch-switch --timeout 1800
# lab bookworm: --nodes 2 --release bookworm --packages libteam-utils,openvswitch-switch --timeout 1800

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/life/netdev_kinds.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"
. "$LAB_SRC/selftests/ulp/nvme_lib.sh"

SPACE='' PEER=$((3 - NODE)) MIB=8
# nvme_lib.sh uses IP_1.
IP_1=10.103.0.1

peer_mac() {
	cat "$LAB_CTL/mac.$1"
}

# Give $NETDEV the name and address that the kinds expect. base_gone restores the name.
base_make() {
	ip link set "$NETDEV" down && ip link set "$NETDEV" name base && ip link set base up &&
		ip addr flush dev base && ip addr add "10.102.0.$NODE/24" dev base
}

base_gone() {
	ip link del up0 2> /dev/null
	ip link set base down && ip link set base name "$NETDEV"
}

# `base` is in a bridge with one end of a veth pair. The nhca device is on the other end.
kind_veth() {
	ip link add br0 type bridge && ip link add up0 type veth peer name up0p &&
		ip link set base master br0 && ip link set up0p master br0 && ip link set up0p up && ip link set br0 up
	DEV=up0
}

gone_veth() {
	ip link del up0
	ip link del br0
}

kind_virtio() {
	DEV=base
}

gone_ipsec() {
	ip xfrm policy flush
	ip xfrm state flush
}

kind_gone() {
	rdma link del nhca_k
	device_gone nhca_k
	! declare -F "gone_$1" > /dev/null || "gone_$1" "$NODE"
	base_gone
}

# write random bytes with direct I/O, and read them back
disk_io() {
	head -c "${MIB}M" /dev/urandom > "$LIB_TMP/data" &&
		dd if="$LIB_TMP/data" of="$1" bs=256k oflag=direct conv=fsync status=none &&
		echo 3 > /proc/sys/vm/drop_caches &&
		dd if="$1" bs=128k count=$((MIB * 8)) iflag=direct status=none | cmp - "$LIB_TMP/data" &&
		sha256sum < "$LIB_TMP/data" > "$LAB_CTL/sum"
}

# Test one kind of netdev. Both nodes create a netdev of this kind; node 1 is the target, node 2 the host.
kind() {
	local name=$1 ready=1
	modprobe -q "$2"
	base_make > "$LIB_TMP/kind" 2>&1 && kind_end "$name" "$NODE" $PEER nhca_k >> "$LIB_TMP/kind" 2>&1 &&
		device_ready nhca_k "10.103.0.$NODE" >> "$LIB_TMP/kind" 2>&1 && ready=0
	if [ $ready != 0 ]; then
		notok "$name: the device is ready on node $NODE" "$(tail -n 1 "$LIB_TMP/kind")"
		show_tail "$LIB_TMP/kind"
	fi
	[ "$NODE" = 2 ] || step "$name: the target is configured" nvme_target rdma /dev/ram0
	barrier "exported-$name"
	if [ "$NODE" = 2 ]; then
		if step "$name: the host connects" nvme_connect rdma; then
			step "$name: the disk has what was written" disk_io "$(nvme_device)"
			nvme_disconnect
		fi
	fi
	barrier "used-$name" 300
	if [ "$NODE" = 1 ]; then
		[ ! -e "$LAB_CTL/sum" ] ||
			run "$name: the target's disk has it, too" \
				sh -c "head -c ${MIB}M /dev/ram0 | sha256sum | cmp - $LAB_CTL/sum"
		rm -f "$LAB_CTL/sum"
		nvme_target_gone
	fi
	barrier "unused-$name"
	kind_gone "$name"
	barrier "gone-$name"
}

if [ "$NODE" = 1 ]; then
	ulp_modules "NVMe target" nvmet nvmet-rdma
	ulp_disk $((2 * MIB))
else
	ulp_modules "NVMe host" nvme-rdma
fi
cat "/sys/class/net/$NETDEV/address" > "$LAB_CTL/mac.$NODE"
rdma link del "$RDMA_DEV"
device_gone "$RDMA_DEV"
barrier macs

# KIND, or KIND:MODULE if the module has another name
for it in ${KINDS:-virtio:virtio_net veth bridge bond:bonding bond_late:bonding team ovs:openvswitch vlan:8021q macvlan \
	ipvlan vrf vxlan geneve gretap:ip_gre macsec ipsec:esp4}; do
	kind "${it%:*}" "${it#*:}"
done
exit 0
