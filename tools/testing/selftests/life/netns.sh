#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: devices in one and several network namespaces exchange data and can be removed, also in exclusive mode
# tier: check
# lab: --nodes 1 --timeout 400
# lab backports: --nodes 1 --release backports --timeout 400
# tier backports: long
# lab debug: --nodes 1 --kernel debug --timeout 900
# tier debug: long
# device.sh tests single devices without traffic. Here devices carry traffic.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# cable SUBNET LEFT RIGHT: create a veth between the namespaces LEFT and RIGHT ("" is the initial one), with the
# addresses 10.96.SUBNET.1 and .2, and fd96:SUBNET::1 and ::2
cable() {
	local subnet=$1 left=$2 right=$3
	ip link add "v${subnet}l" type veth peer name "v${subnet}r" || return
	place "v${subnet}l" "$left" "10.96.$subnet.1" "fd96:$subnet::1"
	place "v${subnet}r" "$right" "10.96.$subnet.2" "fd96:$subnet::2"
}

place() {
	local netdev=$1 space=$2 in=
	[ -n "$space" ] && ip link set "$netdev" netns "$space" && in="-n $space"
	# shellcheck disable=SC2086 # two words or none
	ip $in link set "$netdev" up && ip $in addr add "$3/24" dev "$netdev" &&
		ip $in -6 addr add "$4/64" dev "$netdev" nodad
}

# in_space SPACE COMMAND...: run the command in the namespace SPACE, or in the initial one if SPACE is empty
in_space() {
	local space=$1
	shift
	if [ -n "$space" ]; then
		ip netns exec "$space" "$@"
	else
		"$@"
	fi
}

prefix() {
	[ -n "$1" ] && echo "ip netns exec $1 "
}

spaces() {
	local space
	for space in "$@"; do
		ip netns add "$space" && ip -n "$space" link set lo up || return
		# If the namespace of its peer is gone, the TCP socket of a killed program retransmits its FIN, and
		# keeps its own namespace until the last retry: for 100 s with the kernel's default of 8 retries.
		ip netns exec "$space" sysctl -qw net.ipv4.tcp_orphan_retries=1 || return
	done
}

# add DEV NETDEV SPACE IP...: add a device in a namespace, also on kernels that create it in the initial one
add() {
	local dev=$1 netdev=$2 space=$3 tries
	shift 3
	in_space "$space" rdma link add "$dev" type "$LAB_DRIVER" netdev "$netdev" || return
	for tries in $(seq 50); do
		in_space "$space" rdma dev show "$dev" > /dev/null 2>&1 && break
		# In exclusive mode before Linux 7.0 the device is in the initial namespace: move it.
		rdma dev set "$dev" netns "$space" 2> /dev/null
		sleep 0.1
	done
	if [ -e "/sys/class/infiniband/$dev" ]; then
		device_ready "$dev" "$@"
	fi
}

# talk NAME DEV1 SPACE1 IP1 DEV2 SPACE2 IP2 [HOST]: run verified transfers, datagrams and rdma_cm between the two
# devices. HOST is the server's address for programs that exchange their parameters over TCP and IPv4.
talk() {
	local name=$1 dev1=$2 space1=$3 ip1=$4 dev2=$5 space2=$6 ip2=$7 host=${8:-$4} gid1 gid2 from=
	# Within one namespace rdma_cm uses the device of the destination for both ends, so do not bind the client
	# there.
	[ "$space1" = "$space2" ] || from="-I $ip2"
	gid1=$(gid_in "$space1" "$dev1" "$ip1") && gid2=$(gid_in "$space2" "$dev2" "$ip2") || {
		notok "$name" "no GID"
		return
	}
	pair "$name: verified transfers" \
		"$(prefix "$space1")verify_xfer -d $dev1 -g $gid1 -q 4 -n 200 -s 20000 -b" \
		"$(prefix "$space2")verify_xfer -d $dev2 -g $gid2 -q 4 -n 200 -s 20000 -b $ip1"
	pair "$name: datagrams" \
		"$(prefix "$space1")ibv_ud_pingpong -d $dev1 -g $gid1 -n 100 -s 1024" \
		"$(prefix "$space2")ibv_ud_pingpong -d $dev2 -g $gid2 -n 100 -s 1024 $host"
	pair "$name: rdma_cm" \
		"$(prefix "$space1")rping -s -a $ip1 -C 20 -v -V" \
		"$(prefix "$space2")rping -c -a $ip1 $from -C 20 -v -V"
}

# In exclusive mode sysfs shows only devices of the namespace in which it was mounted.
gid_in() {
	local space=$1 dev=$2 ip=$3
	if [ -z "$space" ] || [ -e "/sys/class/infiniband/$dev" ]; then
		gid_of "$dev" "$ip"
	else
		# `ip netns exec` mounts a new sysfs.
		ip netns exec "$space" env RDMA_DEV="$dev" bash -c \
			'. "$0"; trap - EXIT; gid_index "$1"' "$LAB_SRC/selftests/lib/lib.sh" "$ip"
	fi
}

sockets() {
	in_space "$1" ss -Huln 'sport = :4791' | wc -l
}

sockets_are() {
	local name=$1 space=$2 wanted=$3 tries
	for tries in $(seq 50); do
		[ "$(sockets "$space")" = "$wanted" ] && break
		sleep 0.1
	done
	if [ "$(sockets "$space")" = "$wanted" ]; then
		ok "$name"
	else
		notok "$name" "$(sockets "$space") sockets on port 4791, not $wanted"
	fi
}

gone() {
	if device_gone "$2"; then
		ok "$1"
	else
		notok "$1" "$2 is still there"
	fi
}

# sharing MODE: set the mode of the RDMA core. The kernel allows this only after it has destroyed all other namespaces.
# It destroys them asynchronously, so try for 10 s.
sharing() {
	local tries
	for tries in $(seq 50); do
		rdma system set netns "$1" 2> "$LIB_TMP/sharing" && return 0
		sleep 0.2
	done
	return 1
}

# Print what may still hold a namespace: processes, TCP sockets without a process, and tasks that destroy namespaces.
spaces_left() {
	local task
	lsns -t net 2>&1 | sed 's/^/#   /'
	# The count of orphaned TCP sockets is for all namespaces.
	sed 's/^/#   /' /proc/net/sockstat
	for task in /proc/[0-9]*; do
		if grep -qs 'cleanup_net\|nhca' "$task/stack"; then
			echo "#   $(cat "$task/comm"):"
			sed 's/^/#     /' "$task/stack"
		fi
	done
}

# ---- one namespace ----

kmemleak_mark
talk "one device with itself" "$RDMA_DEV" "" "$MY_IP" "$RDMA_DEV" "" "$MY_IP"
talk "one device with itself, IPv6" "$RDMA_DEV" "" "$MY_IP6" "$RDMA_DEV" "" "$MY_IP6" "$MY_IP"

cable 1 "" "" && add nhca_1l v1l "" 10.96.1.1 && add nhca_1r v1r "" 10.96.1.2 ||
	notok "two devices of one namespace" "they cannot be created"
# The RDMA core resolves the address of the other device by ARP, so accept ARP requests with a local source.
sysctl -qw net.ipv4.conf.v1l.accept_local=1 net.ipv4.conf.v1r.accept_local=1
talk "two devices of one namespace" nhca_1l "" 10.96.1.1 nhca_1r "" 10.96.1.2
talk "two devices of one namespace, IPv6" nhca_1l "" fd96:1::1 nhca_1r "" fd96:1::2 10.96.1.1
sockets_are "three devices of one namespace share a socket for each address family" "" 2

# ---- shared: every device is visible in every namespace ----

spaces red blue && cable 2 red blue && add nhca_2l v2l red 10.96.2.1 && add nhca_2r v2r blue 10.96.2.2 ||
	notok "devices in two namespaces" "they cannot be created"
talk "two namespaces, shared" nhca_2l red 10.96.2.1 nhca_2r blue 10.96.2.2
talk "two namespaces, shared, IPv6" nhca_2l red fd96:2::1 nhca_2r blue fd96:2::2 10.96.2.1
sockets_are "a namespace has its own sockets" red 2

# ---- a netdev in a VRF ----

# The device receives packets of the VRF although udp_l3mdev_accept is off. tcp_l3mdev_accept is for the test programs.
vrf() {
	cable 6 red blue && add nhca_6l v6l red 10.96.6.1 && add nhca_6r v6r blue 10.96.6.2 || return
	ip -n red link add vr6 type vrf table 106 && ip -n red link set vr6 up || return
	ip netns exec red sysctl -qw net.ipv4.tcp_l3mdev_accept=1 net.ipv6.conf.v6l.keep_addr_on_down=1 || return
	# A user who has only CAP_NET_ADMIN, and did not create the device, moves its netdev into the VRF, as the root
	# user of a container may.
	ip netns exec red setpriv --reuid nobody --clear-groups --inh-caps=+net_admin --ambient-caps=+net_admin \
		ip link set v6l master vr6 && device_ready nhca_6l 10.96.6.1 fd96:6::1
}
same_host_bytes() {
	rdma statistic show link "$1/1" -j | grep -o '"same_host_bytes":[0-9]*' | cut -d: -f2
}

if ! modprobe vrf; then
	skip "a netdev in a VRF" "no module vrf"
elif ! vrf; then
	notok "a netdev in a VRF" "it cannot be created"
else
	sockets_are "a VRF has its own sockets" red 4
	talk "VRF" nhca_6l red 10.96.6.1 nhca_6r blue 10.96.6.2
	talk "VRF, IPv6" nhca_6l red fd96:6::1 nhca_6r blue fd96:6::2 10.96.6.1
	pair "VRF: rdma_cm connects from it" "ip netns exec blue rping -s -a 10.96.6.2 -C 20 -v -V" \
		"ip netns exec red rping -c -a 10.96.6.2 -I 10.96.6.1 -C 20 -v -V"
	for ip in 10.96.6.1 fd96:6::1; do
		memory=$(gid_in red nhca_6l $ip)
		pair "VRF: one device with itself, $ip" \
			"ip netns exec red verify_xfer -d nhca_6l -g $memory -q 4 -n 200 -s 20000 -b" \
			"ip netns exec red verify_xfer -d nhca_6l -g $memory -q 4 -n 200 -s 20000 -b 127.0.0.1"
	done
	# Traffic of a device with itself goes through the VRF, which is the loopback netdev of its addresses. So
	# datagrams must not use the same-host path, which would bypass the netem of the VRF.
	memory=$(gid_in red nhca_6l 10.96.6.1)
	before=$(same_host_bytes nhca_6l)
	modprobe sch_netem
	tc -n red qdisc add dev vr6 root netem delay 1ms || notok "netem on a VRF" "tc refuses it"
	pair "VRF: datagrams of one device" "ip netns exec red verify_xfer -d nhca_6l -g $memory -t ud -m send -s 1024 -q 4 -n 256 -b" \
		"ip netns exec red verify_xfer -d nhca_6l -g $memory -t ud -m send -s 1024 -q 4 -n 256 -b 127.0.0.1"
	tc -n red qdisc del dev vr6 root
	if [ -n "$before" ] && [ "$(same_host_bytes nhca_6l)" = "$before" ]; then
		ok "VRF: no datagram bypasses a queueing discipline of the VRF"
	else
		notok "VRF: no datagram bypasses a queueing discipline of the VRF" "$before, then $(same_host_bytes nhca_6l)"
	fi
	ip -n red link set v6l nomaster
	sockets_are "the sockets of a VRF are closed when it has no device" red 2
	talk "no longer in a VRF" nhca_6l red 10.96.6.1 nhca_6r blue 10.96.6.2
	ip -n red link del v6l
	gone "a device is removed with its netdev" nhca_6l
fi

# Delete the name of the namespace while a transfer runs in it. The namespace exists until the transfer ends.
gid=$(gid_of nhca_2l 10.96.2.1)
gid_r=$(gid_of nhca_2r 10.96.2.2)
ip netns exec red setsid verify_xfer -d nhca_2l -g "$gid" -L 600 -P 20 -b > "$LIB_TMP/red" 2>&1 < /dev/null &
red=$!
sleep 2
ip netns exec blue setsid verify_xfer -d nhca_2r -g "$gid_r" -L 600 -P 20 -b 10.96.2.1 > "$LIB_TMP/blue" 2>&1 < /dev/null &
blue=$!
sleep 2
if kill -0 $red && kill -0 $blue; then
	ip netns del red
	sleep 1
	kill -KILL $red
	gone "a device is removed with its namespace during traffic" nhca_2l
	if ended $blue 40; then
		ok "the peer notices that the device is gone"
	else
		notok "the peer notices that the device is gone" "it still runs"
		kill -KILL $blue
	fi
else
	notok "a device is removed with its namespace during traffic" "no traffic"
	show_tail "$LIB_TMP/red"
	show_tail "$LIB_TMP/blue"
fi
ip netns del blue
gone "a device is removed with its namespace" nhca_2r

# ---- the module is removed with devices in several namespaces ----

spaces red blue && cable 3 red blue && add nhca_3l v3l red 10.96.3.1 && add nhca_3r v3r blue 10.96.3.2 ||
	notok "devices in two namespaces again" "they cannot be created"
if module_remove; then
	ok "the module unloads with devices in three namespaces"
	sockets_are "no socket is left in another namespace" red 0
	sockets_are "no socket is left in the initial namespace" "" 0
else
	notok "the module unloads with devices in three namespaces"
fi
module_insert
ip netns del red
ip netns del blue
ip link del v1l

# ---- exclusive: a device belongs to one namespace ----

if sharing exclusive; then
	spaces red blue && cable 4 red blue && add nhca_4l v4l red 10.96.4.1 && add nhca_4r v4r blue 10.96.4.2 ||
		notok "devices in two namespaces, exclusive" "they cannot be created"
	if [ -n "$(ip netns exec red rdma dev show | grep nhca_4r)$(ip netns exec blue rdma dev show | grep nhca_4l)" ]; then
		notok "exclusive: a namespace sees its own device only" "$(ip netns exec red rdma dev show | paste -sd,)"
	else
		ok "exclusive: a namespace sees its own device only"
	fi
	# The initial namespace does not show listeners of rdma_cm in the namespace red, so search red as well.
	eval "lib_$(declare -f listens)"
	listens() {
		lib_listens "$1" || ip netns exec red rdma res show cm_id | grep -q 'state LISTEN'
	}
	talk "two namespaces, exclusive" nhca_4l red 10.96.4.1 nhca_4r blue 10.96.4.2
	ip netns del red
	ip netns del blue
	sharing shared
	gone "exclusive: a device is removed with its namespace" nhca_4l
	gone "exclusive: the peer device is removed with its namespace" nhca_4r
else
	notok "rdma system set netns exclusive" "$(tail -n 1 "$LIB_TMP/sharing")"
	spaces_left
fi

if module_remove; then
	ok "the module unloads at the end"
else
	notok "the module unloads at the end"
fi
kmemleak_check "kmemleak reports no leak"
tasks_check "no task hangs"
