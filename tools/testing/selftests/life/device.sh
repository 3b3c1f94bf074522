#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: one or several devices can be created, follow their netdevs and are removed with them; refusals give the reason
# tier: check
# lab: --nodes 1 --modules tools/testing/selftests/life/fake_adapter --timeout 480
# lab bookworm: --release bookworm --nodes 1 --modules tools/testing/selftests/life/fake_adapter --timeout 480
# tier bookworm: long
# lab backports: --release backports --nodes 1 --modules tools/testing/selftests/life/fake_adapter --timeout 480
# tier backports: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# try NAME FUNCTION [ARGS]: ok if the function succeeds; then remove what it created
try() {
	if "${@:2}" > "$LIB_TMP/try" 2>&1; then
		ok "$1"
	else
		notok "$1" "$(tail -n 1 "$LIB_TMP/try")"
		show_tail "$LIB_TMP/try"
	fi
	clean
}

clean() {
	local it
	for it in /sys/class/infiniband/nhca_*; do
		[ -e "$it" ] && rdma link del "${it##*/}"
	done
	rmmod fake_adapter 2> /dev/null
	for it in gui1 gui2 gum nm_tun nm_wg du; do
		drop $it
	done
	for it in $(ip netns list | awk '/^ns_/ { print $1 }'); do
		ip netns del "$it"
	done
	for it in $(ip -o link show type veth | sed -n 's/^[0-9]*: \([^@:]*\).*/\1/p'); do
		drop "$it"
	done
}

# Most tests create netdevs of their own, so that a failed test does not affect the next.
veth() {
	ip link add "$1" type veth peer name "$1p" && ip link set "$1" up && ip link set "$1p" up
}

drop() {
	ip link del "$1" 2> /dev/null
}

port() {
	cat "/sys/class/infiniband/$1/ports/1/$2"
}

# becomes WANTED COMMAND...: wait up to 5 s until the command prints WANTED (a pattern)
becomes() {
	local wanted=$1 tries got
	shift
	for tries in $(seq 50); do
		got=$("$@" 2> /dev/null)
		# shellcheck disable=SC2053 # a pattern
		[[ $got == $wanted ]] && return 0
		sleep 0.1
	done
	echo "$* printed '$got', not '$wanted'"
	return 1
}

active_mtu() {
	ibv_devinfo -d "$1" | awk '/active_mtu/ { print $2 }'
}

netdev_of() {
	rdma link show "$1/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p'
}

gid_netdev() {
	local index
	index=$(gid_of "$1" "$2") && cat "/sys/class/infiniband/$1/ports/1/gid_attrs/ndevs/$index"
}

no_gid() {
	becomes gone gone_gid "$1" "$2"
}

gone_gid() {
	has_gid "$1" "$2" || echo gone
}

# beside_said YES|NO OPTIONS...: add a device on the netdev of a fake adapter, with a warning (YES) or without (NO)
beside_said() {
	local wanted=$1 said=NO
	shift
	modprobe fake_adapter netdev="$NETDEV" "$@" || return
	log_mark
	rdma link add nhca_beside type nhca netdev "$NETDEV" || return
	log_has "$NETDEV: also has the RoCE device fake0: .* the nhca device should receive" && said=YES
	rdma link del nhca_beside && rmmod fake_adapter || return
	[ $said = "$wanted" ] || echo "with '$*' the warning is there: $said" && [ $said = "$wanted" ]
}

# Some drivers of adapters report their netdev to the RDMA core. Others (mlx4) do not, and only have the same parent
# device as the netdev. There must be a warning for both. An iWARP device receives no RoCE packets, so there must be no
# warning for an iWARP device.
beside_adapter() {
	local status
	rdma link del "$RDMA_DEV" || return
	beside_said YES && beside_said YES sibling=1 && beside_said NO iwarp=1
	status=$?
	device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" && return $status
}

# refused NAME NETDEV ERROR REASON: `rdma link add` must fail with ERROR, and the kernel log must have REASON
refused() {
	local name=$1 netdev=$2 error=$3 reason=$4 said
	log_mark
	said=$(rdma link add refused0 type nhca netdev "$netdev" 2>&1)
	if [ -e /sys/class/infiniband/refused0 ]; then
		notok "$name" "it was accepted"
		rdma link del refused0
	elif [[ $said != *"$error"* ]]; then
		notok "$name" "rdma says '$said', not '$error'"
	elif ! log_has "$netdev: .*$reason"; then
		notok "$name" "the kernel log has no '$reason'"
		dmesg | tail -n 3 | sed 's/^/#   /'
	else
		ok "$name"
	fi
}

attributes() {
	local info
	info=$(ibv_devinfo -v -d "$RDMA_DEV") || return
	for line in 'transport:.*InfiniBand' 'state:.*PORT_ACTIVE' 'phys_state:.*LINK_UP' \
		'link_layer:.*Ethernet' 'max_mtu:.*4096' 'active_mtu:.*1024' 'gid_tbl_len:.*1024' \
		'max_msg_sz:.*0x80000000' 'max_sge:.*32' 'max_qp_wr:.*32768' 'phys_port_cnt:.*1' \
		'atomic_cap:.*ATOMIC_GLOB' 'hca_core_clock:.*1000000kHZ' \
		'completion timestamp_mask:.*0xffffffffffffffff'; do
		grep -Eq "^[[:space:]]*$line" <<< "$info" || {
			echo "ibv_devinfo has no '$line'"
			return 1
		}
	done
	ibv_devinfo -d "$RDMA_DEV" | grep -q "node_guid:.*$(guid_of "$NETDEV")"
}

# Print the EUI-64 of a netdev's address in the format of ibv_devinfo.
guid_of() {
	local a b c d e f
	IFS=: read -r a b c d e f < "/sys/class/net/$1/address"
	printf '%02x%s:%sff:fe%s:%s%s\n' $((0x$a ^ 2)) "$b" "$c" "$d" "$e" "$f"
}

add_del() {
	veth la && rdma link add nhca_la type nhca netdev la || return
	rdma link show nhca_la/1 | grep -q 'state ACTIVE .*netdev la' || return
	rdma dev show nhca_la | grep -q "node_type ca" || return
	rdma link del nhca_la || return
	[ ! -e /sys/class/infiniband/nhca_la ]
}

# udev must not rename the device, because the user has chosen its name.
user_name() {
	udevadm settle --timeout=10
	[ -e "/sys/class/infiniband/$RDMA_DEV" ] && [ -c /dev/infiniband/uverbs0 ]
}

node_guid() {
	cat "/sys/class/infiniband/$1/node_guid"
}

# Devices on netdevs that share a MAC address must have different GUIDs.
guids() {
	local guids netdev
	modprobe ipvlan && modprobe macvlan || return
	veth gu && device_add nhca_gu gu || return
	for netdev in gui1 gui2; do
		ip link add link gu name $netdev type ipvlan && ip link set $netdev up &&
			device_add nhca_$netdev $netdev || return
	done
	guids=$(for netdev in gu gui1 gui2; do node_guid nhca_$netdev; done | sort -u)
	[ "$(wc -l <<< "$guids")" = 3 ] || {
		echo "GUIDs: $(paste -sd' ' <<< "$guids")"
		return 1
	}
	drop gui1
	drop gui2
	device_gone nhca_gui2 || return
	ip link add link gu name gum type macvlan mode bridge && ip link set gum up && device_add nhca_gum gum || return
	[ "$(node_guid nhca_gum)" = "$(guid_of gum)" ] && [ "$(node_guid nhca_gu)" = "$(guid_of gu)" ] || {
		echo "GUIDs: $(node_guid nhca_gum) $(node_guid nhca_gu)"
		return 1
	}
}

rename_netdev() {
	veth rn1 && device_add nhca_rn rn1 || return
	# Before Linux 6.2 only a netdev that is down can be renamed.
	ip link set rn1 name rn2 ||
		{ ip link set rn1 down && ip link set rn1 name rn2 && ip link set rn2 up; } || return
	becomes rn2 netdev_of nhca_rn || return
	ip addr add 10.91.0.1/24 dev rn2
	device_ready nhca_rn 10.91.0.1
}

link_downed() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/link_downed"
}

# Monitoring programs show no device of the host if one device has no directory `counters`, or lacks one of these files.
pma_counters() {
	local name
	veth pc && device_add nhca_pc pc || return
	for name in link_downed port_rcv_data port_rcv_errors port_rcv_packets port_xmit_data port_xmit_discards \
		port_xmit_packets port_xmit_wait symbol_error unicast_xmit_packets multicast_rcv_packets; do
		[[ $(port nhca_pc "counters/$name") =~ ^[0-9]+$ ]] || {
			echo "counters/$name is not a number"
			return 1
		}
	done
	ip link set pc down
	becomes 1 port nhca_pc counters/link_downed
}

port_state() {
	veth ps && device_add nhca_ps ps || return
	becomes 0 link_downed nhca_ps || return
	ip link set ps down
	becomes '1: DOWN' port nhca_ps state || return
	becomes '3: Disabled' port nhca_ps phys_state || return
	becomes 1 link_downed nhca_ps || return
	ip link set ps up
	becomes '4: ACTIVE' port nhca_ps state || return
	# The peer is down, so the netdev has no carrier.
	ip link set psp down
	becomes '1: DOWN' port nhca_ps state || return
	becomes '2: Polling' port nhca_ps phys_state || return
	becomes 2 link_downed nhca_ps || return
	ip link set psp up
	becomes '4: ACTIVE' port nhca_ps state
}

# The port of a netdev that is down must be down. The port becomes active when the netdev comes up.
born_down() {
	ip link add bd type veth peer name bdp && ip link set bdp up && rdma link add nhca_bd type nhca netdev bd || return
	[ "$(port nhca_bd state)" = '1: DOWN' ] || return
	ip link set bd up
	becomes '4: ACTIVE' port nhca_bd state
}

mtu() {
	local pair
	veth mt && device_add nhca_mt mt || return
	# Each pair is MTU of the netdev : path MTU. iboe_get_mtu() of the core reserves 96 bytes for headers.
	for pair in 1500:1024 4200:4096 9000:4096 2200:2048 4000:2048 700:512 400:256; do
		ip link set mt mtu "${pair%:*}"
		becomes "${pair#*:}" active_mtu nhca_mt || return
	done
}

gids() {
	veth gi && device_add nhca_gi gi || return
	ip addr add 10.92.0.1/24 dev gi
	ip addr add 10.92.0.2/24 dev gi
	ip -6 addr add fd92::1/64 dev gi nodad
	device_ready nhca_gi 10.92.0.1 10.92.0.2 fd92::1 || return
	ip addr del 10.92.0.2/24 dev gi
	no_gid nhca_gi 10.92.0.2 && has_gid nhca_gi 10.92.0.1 || return
	# An address that is added again must get a GID again.
	ip addr add 10.92.0.2/24 dev gi
	device_ready nhca_gi 10.92.0.2 || return
	! grep -qsv 'RoCE v2' /sys/class/infiniband/nhca_gi/ports/1/gid_attrs/types/[0-9]
}

vlan_gids() {
	modprobe 8021q
	veth vl && device_add nhca_vl vl || return
	ip link add link vl name vl.7 type vlan id 7 && ip link set vl.7 up || return
	ip addr add 10.93.7.1/24 dev vl.7
	ip -6 addr add fd93:7::1/64 dev vl.7 nodad
	device_ready nhca_vl 10.93.7.1 fd93:7::1 || return
	becomes vl.7 gid_netdev nhca_vl 10.93.7.1 || return
	ip link del vl.7
	no_gid nhca_vl 10.93.7.1
}

# A connection from GID 0 must fail with a message if the netdev of the device does not have the link-local address of
# GID 0.
gid0() {
	veth gz && device_add nhca_gz gz && device_add nhca_gzp gzp || return
	becomes '' ip -6 addr show dev gz tentative && becomes '' ip -6 addr show dev gzp tentative || return
	# Replace the link-local address by another one, so that there is still a route.
	ip -6 addr flush dev gz scope link
	ip -6 addr add fe80::77/64 dev gz nodad
	log_mark
	timeout 40 verify_xfer -d nhca_gzp -g 0 -p 18982 -n 4 > "$LIB_TMP/gid0" 2>&1 &
	sleep 0.5
	timeout 40 verify_xfer -d nhca_gz -g 0 -p 18982 -n 4 127.0.0.1 && return 1
	kill $! 2> /dev/null
	wait $!
	log_has 'GID 0 is the link-local address fe80::.*, which gz does not have'
}

# When a macvlan moves to another namespace, the device on its lower netdev cannot use the macvlan's addresses any more,
# so there must be no GIDs for them.
foreign_gids() {
	modprobe macvlan || return
	veth low && device_add nhca_low low && ip netns add ns_mvl || return
	ip link add link low name mvl type macvlan mode bridge && ip link set mvl up || return
	ip addr add 10.98.0.1/24 dev mvl
	device_ready nhca_low 10.98.0.1 || return
	becomes mvl gid_netdev nhca_low 10.98.0.1 || return
	ip link set mvl netns ns_mvl && ip -n ns_mvl link set mvl up || return
	no_gid nhca_low 10.98.0.1 || return
	log_mark
	ip -n ns_mvl addr add 10.98.0.2/24 dev mvl
	ip addr add 10.98.0.3/24 dev low
	device_ready nhca_low 10.98.0.3 || return
	has_gid nhca_low 10.98.0.2 && return 1
	log_has 'no GID for an address of mvl'
}

# enslaved TYPE: a netdev joins a bridge or bond: its RDMA port goes down, the log has the reason, and the port is
# active again after the netdev has left
enslaved() {
	local type=$1 netdev=en$1 master=en$1_up
	modprobe "$(sed s/bond/bonding/ <<< "$type")"
	veth "$netdev" && device_add "nhca_$netdev" "$netdev" || return
	becomes '4: ACTIVE' port "nhca_$netdev" state || return
	ip link add "$master" type "$type" || return
	log_mark
	# A bond accepts only a netdev that is down.
	ip link set "$netdev" down
	ip link set "$netdev" master "$master" && ip link set "$master" up || return
	ip link set "$netdev" up
	becomes up cat "/sys/class/net/$netdev/operstate" || return
	becomes '1: DOWN' port "nhca_$netdev" state || return
	sleep 0.5
	becomes '1: DOWN' port "nhca_$netdev" state || return
	log_has "$netdev: .*is now a port of $master" || return
	ip link set "$netdev" nomaster
	ip link set "$netdev" up
	becomes '4: ACTIVE' port "nhca_$netdev" state || return
	ip link del "$master"
}

# transfer NETDEV IP: run verified transfers from the device nhca_NETDEV to itself
transfer() {
	local gid
	gid=$(gid_of "nhca_$1" "$2") || return
	verify_xfer -d "nhca_$1" -g "$gid" -p 18983 -q 2 -n 20 -s 20000 > "$LIB_TMP/server" 2>&1 &
	sleep 0.5
	timeout 40 verify_xfer -d "nhca_$1" -g "$gid" -p 18983 -q 2 -n 20 -s 20000 127.0.0.1 && wait $!
}

loopback() {
	device_add nhca_lo lo 127.0.0.1 ::1 || return
	transfer lo 127.0.0.1 && transfer lo ::1 || return
	ibv_devinfo -d nhca_lo | grep -q 'active_mtu:.*4096' || return
	# The core does not follow the addresses of netdevs that are not Ethernet, so the driver must add these GIDs
	# itself.
	ip addr add 127.0.0.77/8 dev lo
	ip -6 addr add fd97::77/128 dev lo
	becomes 0 has_gid_status nhca_lo 127.0.0.77 && becomes 0 has_gid_status nhca_lo fd97::77
	local status=$?
	ip addr del 127.0.0.77/8 dev lo
	ip -6 addr del fd97::77/128 dev lo
	rdma link del nhca_lo
	return $status
}

has_gid_status() {
	has_gid "$1" "$2"
	echo $?
}

# Netdevs without MAC addresses. No program is attached to the tun netdev, so its port is down.
no_mac() {
	modprobe tun && ip tuntap add nm_tun mode tun && ip link set nm_tun up || return
	ip addr add 10.100.0.1/24 dev nm_tun
	rdma link add nhca_tun type nhca netdev nm_tun && becomes 0 has_gid_status nhca_tun 10.100.0.1 || return
	if modprobe wireguard; then
		ip link add nm_wg type wireguard && ip link set nm_wg up && ip addr add 10.100.1.1/24 dev nm_wg || return
		device_add nhca_nm_wg nm_wg 10.100.1.1 && transfer nm_wg 10.100.1.1 || return
		[ "$(node_guid nhca_tun)" != "$(node_guid nhca_nm_wg)" ] || return
		ip link del nm_wg
		device_gone nhca_nm_wg || return
	fi
	ip link del nm_tun
	device_gone nhca_tun
}

# A dummy netdev gives RDMA on a host without a network, also for rdma_cm.
dummy() {
	modprobe dummy && ip link add du type dummy && ip link set du up && ip addr add 10.101.0.1/32 dev du || return
	device_add nhca_du du 10.101.0.1 && transfer du 10.101.0.1 || return
	rping -s -a 10.101.0.1 -C 5 > /dev/null 2>&1 &
	sleep 1
	timeout 20 rping -c -a 10.101.0.1 -C 5 && wait $! || return
	ip link del du
	device_gone nhca_du
}

refusals() {
	veth re || notok "refusals" "no veth"
	modprobe ipip
	ip tunnel add re_tun mode ipip local 10.94.0.1 remote 10.94.0.2
	refused "refused: a netdev that is not Ethernet" re_tun 'not supported' 'ARP hardware type'
	ip link del re_tun
	ip link add link re name re.8 type vlan id 8
	refused "refused: a VLAN" re.8 'not permitted' 'is a VLAN: add the nhca device to re'
	modprobe bridge
	ip link add re_br type bridge && ip link set re master re_br
	refused "refused: a port of a bridge" re busy 'is a port of re_br'
	ip link set re nomaster
	ip link del re_br
	ip link set re mtu 200
	refused "refused: an MTU too small" re 'too long' 'MTU 200 is too small'
	ip link set re mtu 1500
	refused "refused: a second device on a netdev" "$NETDEV" exists "already has the nhca device $RDMA_DEV"
	if rdma link add "$RDMA_DEV" type nhca netdev re 2> /dev/null; then
		notok "refused: a device name in use" "it was accepted"
	else
		ok "refused: a device name in use"
	fi
	drop re
}

# rdma_rxe binds UDP port 4791 first. The namespace must not have an nhca device at this time.
port_taken() {
	if ! modprobe rdma_rxe; then
		skip "refused: UDP port 4791 is taken" "no rdma_rxe"
		return
	fi
	veth rx
	veth pt
	rdma link add rxe_rx type rxe netdev rx
	refused "refused: UDP port 4791 is taken" pt 'in use' 'UDP port 4791 is in use'
	rdma link del rxe_rx
	rmmod rdma_rxe
	drop rx
	drop pt
}

several() {
	local i
	for i in 1 2 3 4; do
		veth "se$i" && device_add "nhca_se$i" "se$i" || return
	done
	rdma link del nhca_se2 && [ -e /sys/class/infiniband/nhca_se3 ] || return
	device_add nhca_se5 se2
}

listens_4791() {
	ip netns exec "$1" ss -Huln 'sport = :4791' | wc -l
}

namespaces() {
	local ns
	for ns in left right; do
		ip netns add "ns_$ns" && ip link add "ns$ns" type veth peer name "ns${ns}p" || return
		ip link set "ns$ns" netns "ns_$ns" && ip link set "ns${ns}p" up || return
		ip -n "ns_$ns" link set "ns$ns" up
		becomes 0 listens_4791 "ns_$ns" || return
		ip netns exec "ns_$ns" rdma link add "nhca_$ns" type nhca netdev "ns$ns" || return
		# One socket for IPv4 and one for IPv6.
		becomes 2 listens_4791 "ns_$ns" || return
		ip -n "ns_$ns" addr add 10.95.0.1/24 dev "ns$ns"
		device_ready "nhca_$ns" 10.95.0.1 || return
	done
	# The kernel removes the netdev with its namespace, and the driver removes the device with its netdev.
	ip netns del ns_left
	device_gone nhca_left || return
	[ -e /sys/class/infiniband/nhca_right ] || return
	ip netns exec ns_right rdma link del nhca_right || return
	becomes 0 listens_4791 ns_right
}

netdev_moves() {
	veth mv && device_add nhca_mv mv && ip netns add ns_mv || return
	ip link set mv netns ns_mv || return
	device_gone nhca_mv || return
	ip -n ns_mv link set mv up
	ip netns exec ns_mv rdma link add nhca_mv type nhca netdev mv || return
	ip netns del ns_mv
	device_gone nhca_mv
}

no_namespaces() {
	rdma system set netns exclusive && rdma system show
}

exclusive() {
	# The kernel allows the exclusive mode only after it has destroyed the namespaces of earlier tests.
	becomes '*exclusive*' no_namespaces && ip netns add ns_ex || return
	veth ex && device_add nhca_ex ex || return
	rdma dev set nhca_ex netns ns_ex || return
	[ ! -e /sys/class/infiniband/nhca_ex ] || return
	ip netns exec ns_ex rdma dev | grep -q nhca_ex || return
	# The core moves the device to the initial namespace when its namespace is destroyed.
	ip netns del ns_ex
	becomes '*nhca_ex*' rdma dev && rdma link del nhca_ex && rdma system set netns shared
}

netdev_gone() {
	veth go && device_add nhca_go go || return
	timeout 20 ip link del go || return
	device_gone nhca_go
}

# A process that has the device open must not block the removal of the netdev, and receives an event.
netdev_gone_in_use() {
	veth iu && device_add nhca_iu iu || return
	stdbuf -oL ibv_asyncwatch -d nhca_iu > "$LIB_TMP/watch" 2>&1 &
	local watch=$!
	becomes '*async event FD*' cat "$LIB_TMP/watch" || return
	timeout 20 ip link del iu || return
	device_gone nhca_iu || return
	becomes '*DEVICE_FATAL*' cat "$LIB_TMP/watch" || return
	kill $watch
	wait $watch
	:
}

res_show() {
	# The MAD service of the RDMA core has one PD, one CQ and QP 1 on each device.
	rdma res show qp link "$RDMA_DEV/1" | grep -Eq 'type GSI .*state RTS' &&
		rdma res show "$RDMA_DEV" | grep -Eq 'pd 1 cq 1 qp 1 '
}

unload() {
	rmmod nhca || return
	[ -z "$(ls /sys/class/infiniband)" ] && [ "$(listens_here)" = 0 ]
}

listens_here() {
	ss -Huln 'sport = :4791' | wc -l
}

reload() {
	modprobe nhca && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"
}

# `rdma link add` loads the module by its alias.
autoload() {
	rmmod nhca && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"
}

try "attributes have the right values" attributes
try "the device keeps its name and has a device node" user_name
try "rdma res show" res_show
try "rdma link add and del" add_del
try "GUIDs of ipvlan and macvlan" guids
try "netdev renamed" rename_netdev
try "port state follows the netdev" port_state
try "counters of the performance management agent" pma_counters
try "a device on a netdev that is down" born_down
try "path MTU follows the netdev" mtu
try "GIDs of IPv4 and IPv6 addresses" gids
try "GIDs of a VLAN" vlan_gids
try "GID 0 without a link-local address" gid0
try "no GIDs of another namespace" foreign_gids
try "netdev enslaved by a bridge" enslaved bridge
try "netdev enslaved by a bond" enslaved bond
try "the loopback netdev" loopback
try "tun and WireGuard" no_mac
try "a dummy netdev" dummy
refusals
try "several devices" several
try "two namespaces, each with its own sockets" namespaces
try "a warning beside the RoCE device of an adapter" beside_adapter
try "netdev moved to another namespace" netdev_moves
try "RDMA device moved to another namespace" exclusive
try "netdev unregistered" netdev_gone
try "netdev unregistered while the device is open" netdev_gone_in_use
try "module removed with a device present" unload
port_taken
try "module loaded again" reload
try "module loaded by rdma link add" autoload
