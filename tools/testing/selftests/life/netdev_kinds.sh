# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Kinds of netdevs for netdevs.sh and netdevs_nvme.sh. A kind has a function kind_NAME SPACE NUMBER PEER, which runs
# for both ends. The netdev `base` has the address 10.102.0.NUMBER. The function may create a netdev, and sets
#   DEV	the netdev that gets an nhca device
#   ADDR	the netdev that gets the address 10.103.0.NUMBER, if it is another one
# If they exist, late_NAME runs after the nhca device was created, and gone_NAME NUMBER after the test.
#
# The test defines peer_mac NUMBER, which prints the MAC address of `base` at end NUMBER. SPACE is the namespace of the
# end, empty for the initial one.

KEY=0123456789abcdef0123456789abcdef

on() {
	ip ${SPACE:+-n "$SPACE"} "$@"
}

inside() {
	${SPACE:+ip netns exec "$SPACE"} "$@"
}

kind_veth() {
	DEV=base
}

kind_bridge() {
	on link add up0 type bridge && on link set base master up0
	DEV=up0
}

kind_bond() {
	on link add up0 type bond mode active-backup && on link set base down && on link set base master up0
	DEV=up0
}

# The bond has no port when the nhca device is created.
kind_bond_late() {
	on link add up0 type bond mode active-backup miimon 100
	DEV=up0
}

late_bond_late() {
	on link set base down && on link set base master up0 && on link set base up
}

kind_team() {
	on link add up0 type team && inside teamnl up0 setoption mode roundrobin &&
		on link set base down && on link set base master up0 && on link set base up
	DEV=up0
}

# The nhca device is on the internal port of the bridge, a netdev with the bridge's name.
kind_ovs() {
	local folder=$LIB_TMP/ovs$2
	mkdir "$folder" && ovsdb-tool create "$folder/db" /usr/share/openvswitch/vswitch.ovsschema || return
	OVS_RUNDIR=$folder inside ovsdb-server "$folder/db" --remote="punix:$folder/sock" --unixctl="$folder/dbctl" \
		--pidfile="$folder/db.pid" --detach --log-file="$folder/log" &&
		ovs-vsctl --db="unix:$folder/sock" --no-wait init &&
		OVS_RUNDIR=$folder inside ovs-vswitchd "unix:$folder/sock" --unixctl="$folder/ctl" \
			--pidfile="$folder/vs.pid" --detach --log-file="$folder/log" &&
		ovs-vsctl --timeout=20 --db="unix:$folder/sock" add-br up0 -- add-port up0 base
	DEV=up0
}

gone_ovs() {
	local folder=$LIB_TMP/ovs$1 name
	ovs-vsctl --timeout=20 --db="unix:$folder/sock" del-br up0
	for name in vs db; do
		[ ! -e "$folder/$name.pid" ] || kill "$(cat "$folder/$name.pid")"
	done
	sleep 1
	rm -rf "$folder"
}

kind_vlan() {
	on link add link base name up0 type vlan id 5
	DEV=base ADDR=up0
}

kind_macvlan() {
	on link add link base name up0 type macvlan mode bridge
	DEV=up0
}

kind_ipvlan() {
	on link add link base name up0 type ipvlan mode l2
	DEV=up0
}

# Only end 1, the server, is in a VRF, because a client in a VRF cannot connect by TCP without `ip vrf exec`.
kind_vrf() {
	DEV=base
	[ "$2" = 1 ] || return 0
	on link add up0 type vrf table 110 && on link set up0 up && on link set base master up0 &&
		inside sysctl -qw net.ipv4.tcp_l3mdev_accept=1
}

kind_vxlan() {
	on link add up0 type vxlan id 7 local "10.102.0.$2" remote "10.102.0.$3" dstport 4789 dev base
	DEV=up0
}

kind_geneve() {
	on link add up0 type geneve id 7 remote "10.102.0.$3"
	DEV=up0
}

kind_gretap() {
	on link add up0 type gretap local "10.102.0.$2" remote "10.102.0.$3"
	DEV=up0
}

kind_macsec() {
	local mac
	mac=$(peer_mac "$3")
	on link add link base up0 type macsec encrypt on && on macsec add up0 tx sa 0 pn 1 on key 01 "$KEY" &&
		on macsec add up0 rx port 1 address "$mac" &&
		on macsec add up0 rx port 1 address "$mac" sa 0 pn 1 on key 01 "$KEY"
	DEV=up0
}

# ESP in transport mode for everything between the two addresses
kind_ipsec() {
	local from to way
	for way in "$2 $3 out" "$3 $2 in"; do
		read -r from to way <<< "$way"
		on xfrm state add src "10.103.0.$from" dst "10.103.0.$to" proto esp spi "0x10$from" mode transport \
			aead 'rfc4106(gcm(aes))' "0x${KEY}01020304" 128 &&
			on xfrm policy add src "10.103.0.$from" dst "10.103.0.$to" dir "$way" \
				tmpl src "10.103.0.$from" dst "10.103.0.$to" proto esp mode transport || return
	done
	DEV=base
}

# kind_end KIND NUMBER PEER DEVICE: create the netdev and the nhca device of one end
kind_end() {
	local kind=$1 number=$2
	ADDR=''
	"kind_$kind" "$SPACE" "$number" "$3" || return
	ADDR=${ADDR:-$DEV}
	on link set "$DEV" up && on link set "$ADDR" up || return
	on addr add "10.103.0.$number/24" dev "$ADDR" || return
	inside rdma link add "$4" type nhca netdev "$DEV" || return
	! declare -F "late_$kind" > /dev/null || "late_$kind"
}
