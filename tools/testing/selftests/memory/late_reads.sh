#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a buffer is not read any more after a completion with any status, or the deregistration of its region, has returned the buffer
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 900
# lab debug: --machine uml --nodes 1 --cpus 2 --kernel debug --timeout 3600
# tier debug: long
# lab million: --machine uml --nodes 1 --cpus 2 --kernel debug --timeout 28800 --env COUNT=60000
# tier million: long
# lab encapsulated: --nodes 1 --cpus 2 --timeout 1800 --env SETUPS=vrf,macsec,esp,vxlan,geneve
# tier encapsulated: long
# In each set-up, a queueing discipline, another netdev or a feature of the netdev changes what happens to packets of
# the sender: they stay in a queue, or are orphaned, copied, segmented, delayed, reordered or encrypted. COUNT is the
# number of buffers to overwrite in each set-up; in some, fewer. SETUPS=a,b runs only these set-ups.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

count=${COUNT:-300}
export SLOWER
RUN_TIMEOUT=$((60 + count / 10))
SWITCH=/sys/module/nhca/parameters/same_host
NEAR_IP=10.95.1.1 FAR_IP=10.95.1.2

# far COMMAND...: run the command in the network namespace "far"
far() {
	ip netns exec far "$@"
}

# cable [bare]: connect the two namespaces by a veth pair. "bare" assigns no addresses, for set-ups that assign them to
# an upper netdev.
cable() {
	ip netns add far && ip -n far link set lo up &&
		ip link add near type veth peer name far netns far &&
		ip link set near up && ip -n far link set far up || return
	[ "$1" = bare ] || addresses near far
}

addresses() {
	ip addr add $NEAR_IP/24 dev "$1" && ip -n far addr add $FAR_IP/24 dev "$2"
}

# above TYPE ARGS...: stack the same type of netdev on both ends
above() {
	local type=$1
	shift
	ip link add link near name upper type "$type" "$@" && ip -n far link add link far name upper type "$type" "$@" &&
		ip link set upper up && ip -n far link set upper up && addresses upper upper
}

# master TYPE ARGS...: create a netdev on the near side and make the veth its port
master() {
	ip link add upper type "$@" && ip link set near down && ip link set near master upper &&
		ip link set upper up && ip link set near up && addresses upper far
}

tunnel() {
	local type=$1
	shift
	ip addr add 10.95.2.1/24 dev near && ip -n far addr add 10.95.2.2/24 dev far &&
		ip link add upper type "$type" id 7 remote 10.95.2.2 "$@" &&
		ip -n far link add upper type "$type" id 7 remote 10.95.2.1 "$@" &&
		ip link set upper up && ip -n far link set upper up && addresses upper upper
}

qdisc() {
	modprobe -q "sch_$1"
	tc qdisc replace dev near root "$@"
}

# Like qdisc(), with a handle that classes can refer to
qdisc_handle() {
	modprobe -q "sch_$2"
	tc qdisc replace dev near root handle "$@"
}

# MACsec: each end has the other's key.
macsec() {
	local mine=$1 theirs=$2 in=$3 dev=$4
	$in ip link add link "$dev" name upper type macsec sci "$mine" encrypt on &&
		$in ip macsec add upper tx sa 0 pn 1 on key 01 "0000000000000000000000000000000${mine: -1}" &&
		$in ip macsec add upper rx sci "$theirs" &&
		$in ip macsec add upper rx sci "$theirs" sa 0 pn 1 on key 02 "0000000000000000000000000000000${theirs: -1}" &&
		$in ip link set upper up
}

# ESP in transport mode between the two addresses
esp() {
	local in=$1 here=$2 there=$3 key=0x0123456789abcdef0123456789abcdef01234567
	$in ip xfrm state add src "$here" dst "$there" proto esp spi 0x95 mode transport \
		aead 'rfc4106(gcm(aes))' $key 128 &&
		$in ip xfrm state add src "$there" dst "$here" proto esp spi 0x95 mode transport \
			aead 'rfc4106(gcm(aes))' $key 128 &&
		$in ip xfrm policy add src "$here" dst "$there" dir out \
			tmpl src "$here" dst "$there" proto esp mode transport &&
		$in ip xfrm policy add src "$there" dst "$here" dir in \
			tmpl src "$there" dst "$here" proto esp mode transport
}

# ---- the set-ups: each assigns addresses, and sets UPPER and PEER where the netdevs are not near and far ----

with_pfifo() { cable && qdisc pfifo limit 10000; }
# fq orphans each packet and sends it at a limited rate.
with_fq() { cable && qdisc fq maxrate 200mbit flow_limit 10000; }
with_fq_codel() { cable && qdisc fq_codel; }
# A GSO packet is larger than the burst, so tbf segments it.
with_tbf() { cable && qdisc tbf rate 100mbit burst 1600 limit 10000000; }
with_htb() {
	cable && qdisc_handle 1: htb default 1 &&
		tc class add dev near parent 1: classid 1:1 htb rate 100mbit
}
with_cake() { cable && qdisc cake bandwidth 100mbit; }
with_delay() { cable && qdisc netem delay 3ms limit 10000; }
with_reorder() { cable && qdisc netem delay 1ms reorder 70% 50% duplicate 10% limit 10000; }
# Each packet stays in the queue for 700 ms, longer than the local ACK timeout of 67 ms. So requests
# are retransmitted while their first packets are still in the queue.
with_still() { cable && qdisc netem delay 700ms limit 100000 && SETTLE=800 FEWER=10; }
with_software_gso() { cable && ethtool -K near tx-udp-segmentation off; }
with_no_sg() { cable && ethtool -K near sg off; }
with_bridge() { cable bare && master bridge && UPPER=upper; }
with_bond() { cable bare && master bond mode active-backup miimon 100 && UPPER=upper; }
# The RDMA device is on the lower netdev, and also serves the addresses of its VLANs.
with_vlan() { cable bare && above vlan id 7; }
# Capture on the lower netdev, which receives all frames of the macvlan.
with_macvlan() { cable bare && above macvlan mode bridge && UPPER=upper PEER=upper LISTEN=far; }
with_vrf() {
	cable bare && ip link add red type vrf table 95 && ip link set red up &&
		ip link set near master red && addresses near far
}
with_macsec() {
	cable bare && macsec 0000000000000001 0000000000000002 '' near &&
		macsec 0000000000000002 0000000000000001 'ip netns exec far' far && addresses upper upper &&
		UPPER=upper PEER=upper
}
# Packets on the peer's netdev are encrypted, so a capture there cannot check their bytes.
with_esp() { cable && esp '' $NEAR_IP $FAR_IP && esp 'ip netns exec far' $FAR_IP $NEAR_IP && CAPTURE=; }
with_vxlan() { tunnel_of vxlan dstport 4789; }
with_geneve() { tunnel_of geneve; }
tunnel_of() { cable bare && tunnel "$@" && UPPER=upper PEER=upper; }
# A slow program forwards frames from tap to tap.
with_tap() {
	ip netns add far && ip -n far link set lo up || return
	modprobe -q tun
	"$LAB_SRC/selftests/memory/slow_taps.py" near far far &
	CARRIER=$!
	local tries
	for tries in $(seq 100); do
		[ -e /sys/class/net/near ] && far ip link show far > /dev/null 2>&1 && break
		sleep 0.1
	done
	ip link set near up && ip -n far link set far up && addresses near far
}

setup_gone() {
	rdma link del lrnear 2> /dev/null
	far rdma link del lrfar 2> /dev/null || rdma link del lrfar 2> /dev/null
	[ -z "$CARRIER" ] || kill "$CARRIER"
	ip xfrm policy flush 2> /dev/null
	ip xfrm state flush 2> /dev/null
	ip link del upper 2> /dev/null
	ip link del red 2> /dev/null
	ip link del near 2> /dev/null
	ip netns del far 2> /dev/null
	device_gone lrnear && device_gone lrfar
	local tries
	for tries in $(seq 100); do
		[ -e /sys/class/net/near ] || return
		sleep 0.1
	done
}

devices() {
	device_add lrnear "$UPPER" $NEAR_IP || return
	far rdma link add lrfar type nhca netdev "$PEER" && device_ready lrfar $FAR_IP || return
	ping -c 1 -W 5 $FAR_IP > /dev/null || [ "$1" = vrf ]
}

same_host_bytes() {
	rdma statistic show link lrnear/1 -j | grep -o '"same_host_bytes":[0-9]*' | cut -d: -f2
}

# reads NAME ARGS...: run late_reads on the devices of the set-up
reads() {
	local name=$1
	shift
	run "$name" late_reads -d lrnear -g "$(gid_of lrnear $NEAR_IP)" -D lrfar -G "$(gid_of lrfar $FAR_IP)" \
		-n $((count / FEWER)) -w $((SETTLE * SLOWER)) ${CAPTURE:+-c "far:${LISTEN:-$PEER}"} -r "${SEED:-$RANDOM}" "$@"
	grep '^#' "$LIB_TMP/run"
}

overwrite() {
	local setup=$1 before
	UPPER=near PEER=far LISTEN='' CAPTURE=yes SETTLE=20 FEWER=1 CARRIER=
	if ! "with_$setup" 2> "$LIB_TMP/setup"; then
		skip "$setup" "this kernel cannot have it: $(tail -n 1 "$LIB_TMP/setup")"
	elif ! devices "$setup"; then
		notok "$setup" "the devices cannot reach each other"
	else
		before=$(same_host_bytes)
		# Test of the test: the program must find buffers that it overwrites before the completion.
		[ "$setup" = delay ] && reads "$setup: the test finds buffers that are overwritten too early" -x -q
		reads "$setup: no buffer is read after its completion"
		[ "$(same_host_bytes)" = "$before" ] ||
			notok "$setup: all bytes went by packets" "some bytes took the same-host path"
	fi
	setup_gone
}

all_setups="pfifo fq fq_codel tbf htb cake delay reorder still software_gso no_sg tap bridge bond vlan macvlan"

echo N > $SWITCH
kmemleak_mark
setups=${SETUPS:-$all_setups}
for setup in ${setups//,/ }; do
	overwrite "$setup"
done
kmemleak_check "kmemleak reports no leak"
tasks_check "no task hangs"
