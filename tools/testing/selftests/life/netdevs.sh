#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: verbs work over each kind of netdev, and rdma_cm over each kind that it supports
# tier: long
# lab: --nodes 1 --packages libteam-utils,openvswitch-switch --timeout 1800
# lab backports: --nodes 1 --release backports --packages libteam-utils,openvswitch-switch --timeout 1800
# lab bookworm: --nodes 1 --release bookworm --packages libteam-utils,openvswitch-switch --timeout 1800

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

. "$LAB_SRC/selftests/life/netdev_kinds.sh"

peer_mac() {
	ip -n "end$1" -o link show base | grep -o 'ether [^ ]*' | cut -d' ' -f2
}

kind_tun() {
	on tuntap add up0 mode tun
	DEV=up0
}

# A tun netdev needs a program at its other end: forward packets between both netdevs.
tun_pipe() {
	cat > "$LIB_TMP/pipe.py" <<- 'EOF'
		import fcntl, os, select, socket, struct, sys
		mine, theirs = sys.argv[1:]
		tun = os.open("/dev/net/tun", os.O_RDWR)
		fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"up0", 0x1001))
		sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		sock.bind(mine)
		while True:
		    for ready in select.select([tun, sock], [], [])[0]:
		        try:
		            if ready == tun:
		                sock.sendto(os.read(tun, 65536), theirs)
		            else:
		                os.write(tun, sock.recv(65536))
		        except OSError:
		            pass
	EOF
	ip netns exec end1 python3 "$LIB_TMP/pipe.py" "$LIB_TMP/tun1" "$LIB_TMP/tun2" &
	ip netns exec end2 python3 "$LIB_TMP/pipe.py" "$LIB_TMP/tun2" "$LIB_TMP/tun1" &
}

ends() {
	local number
	for number in 1 2; do
		ip netns add end$number && ip -n end$number link set lo up || return
	done
	ip link add base netns end1 type veth peer name base netns end2 || return
	for number in 1 2; do
		ip -n end$number link set base up && ip -n end$number addr add 10.102.0.$number/24 dev base || return
	done
	SPACE=end1 kind_end "$1" 1 2 nhca_e1 && SPACE=end2 kind_end "$1" 2 1 nhca_e2 || return
	[ "$1" != tun ] || tun_pipe
	device_ready nhca_e1 10.103.0.1 && device_ready nhca_e2 10.103.0.2
}

no_ends() {
	local number jobs
	if declare -F "gone_$1" > /dev/null; then
		"gone_$1" 1
		"gone_$1" 2
	fi
	jobs=$(jobs -p)
	# shellcheck disable=SC2086 # numbers
	[ -z "$jobs" ] || kill $jobs 2> /dev/null
	wait
	for number in 1 2; do
		ip netns del end$number 2> /dev/null
		device_gone nhca_e$number
	done
	rm -f "$LIB_TMP"/tun?
}

kind() {
	local name=$1 gid1 gid2
	modprobe "${2:-$name}" 2> "$LIB_TMP/modprobe" || {
		skip "$name" "$(head -n 1 "$LIB_TMP/modprobe")"
		return
	}
	if ! ends "$name" > "$LIB_TMP/ends" 2>&1; then
		notok "$name: the devices are ready" "$(tail -n 1 "$LIB_TMP/ends")"
		show_tail "$LIB_TMP/ends"
		no_ends "$name"
		return
	fi
	gid1=$(gid_of nhca_e1 10.103.0.1) gid2=$(gid_of nhca_e2 10.103.0.2)
	pair "$name: ib_write_bw" "ip netns exec end1 ib_write_bw -F -d nhca_e1 -x $gid1 -s 20000 -n 100" \
		"ip netns exec end2 ib_write_bw -F -d nhca_e2 -x $gid2 -s 20000 -n 100 10.103.0.1"
	# rdma_cm finds a RoCE device only by an address of an Ethernet netdev, and a tun netdev is none.
	[ "$name" = tun ] ||
		pair "$name: rping" "ip netns exec end1 rping -s -a 10.103.0.1 -C 10 -V" \
			"ip netns exec end2 rping -c -a 10.103.0.1 -I 10.103.0.2 -C 10 -V"
	no_ends "$name"
}

kind veth
kind bridge
kind bond bonding
kind bond_late bonding
kind team
kind ovs openvswitch
kind vlan 8021q
kind macvlan
kind ipvlan
kind vrf
kind vxlan
kind geneve
kind gretap ip_gre
kind macsec
kind ipsec esp4
kind tun

# alone NAME NETDEV IP: a device on NETDEV exchanges data with itself
alone() {
	local name=$1 netdev=$2 ip=$3
	device_add nhca_alone "$netdev" "$ip" > "$LIB_TMP/alone" 2>&1 || {
		notok "$name: the device is ready" "$(tail -n 1 "$LIB_TMP/alone")"
		return
	}
	pair "$name: ib_write_bw" "ib_write_bw -F -d nhca_alone -x $(gid_of nhca_alone "$ip") -s 20000 -n 100" \
		"ib_write_bw -F -d nhca_alone -x $(gid_of nhca_alone "$ip") -s 20000 -n 100 127.0.0.1"
	[ "$name" = lo ] ||
		pair "$name: rping" "rping -s -a $ip -C 10 -V" "rping -c -a $ip -C 10 -V"
	rdma link del nhca_alone
	device_gone nhca_alone
}

rdma link del "$RDMA_DEV"
device_gone "$RDMA_DEV"
alone virtio "$NETDEV" "$MY_IP"
alone lo lo 127.0.0.1
if modprobe dummy && ip link add du type dummy && ip link set du up && ip addr add 10.101.0.1/32 dev du; then
	alone dummy du 10.101.0.1
fi
if modprobe wireguard 2> /dev/null && ip link add wg type wireguard && ip link set wg up; then
	ip addr add 10.101.1.1/32 dev wg
	device_add nhca_wg wg 10.101.1.1
	pair "wireguard: ib_write_bw" "ib_write_bw -F -d nhca_wg -x $(gid_of nhca_wg 10.101.1.1) -s 20000 -n 100" \
		"ib_write_bw -F -d nhca_wg -x $(gid_of nhca_wg 10.101.1.1) -s 20000 -n 100 127.0.0.1"
else
	skip wireguard "no module"
fi
exit 0
