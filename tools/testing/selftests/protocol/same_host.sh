#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: queue pairs of one host copy the right bytes without packets, and can change from copies to packets and back at any time
# tier: check
# lab: --nodes 1 --timeout 400
# lab debug: --nodes 1 --kernel debug --timeout 1200
# tier debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

SWITCH=/sys/module/nhca/parameters/same_host

counter() {
	rdma statistic show link "$RDMA_DEV/1" -j | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

switch() {
	echo "$1" > "$SWITCH"
}

# moved NAME YES|NO COMMAND...: bytes must (YES) or must not (NO) take the same-host path while the command runs
moved() {
	local name=$1 wanted=$2 before after
	shift 2
	before=$(counter same_host_bytes)
	"$@"
	after=$(counter same_host_bytes)
	if [ "$wanted" = YES ] && [ $((after - before)) -lt 100000 ]; then
		notok "$name" "only $((after - before)) bytes took the same-host path"
	elif [ "$wanted" = NO ] && [ "$after" != "$before" ]; then
		notok "$name" "$((after - before)) bytes took the same-host path"
	else
		ok "$name"
	fi
}

all_kinds() {
	xfer -q 4 -n 48 -s 65536 -b
	xfer -m send -e -n 48 -s 20000
	xfer -m write -s 2097152 -w 2 -n 6
	xfer -m read -n 32 -s 200000
	xfer -m atomic -q 4 -n 32
}

# Modules that are loaded after the mark would count as leaked memory.
modprobe -a veth sch_netem sch_ingress cls_u32 act_gact
memory_mark
for way in YES NO; do
	switch ${way:0:1}
	PREFIX="same_host=$way: "
	moved "same_host=$way: RC uses the right path" $way all_kinds
done

# UC has no acknowledgments: an end recognizes its peer only by the peer's requests. So both ends send (-b).
unreliable() {
	xfer -t uc -m send -b -s 40000 -n 48
	xfer -t uc -m write -b -s 40000 -n 48
}
datagrams() {
	xfer -t ud -m send -s 1024 -q 4 -n 256 -b
}
for way in YES NO; do
	switch ${way:0:1}
	PREFIX="same_host=$way: "
	moved "same_host=$way: UC uses the right path" $way unreliable
	moved "same_host=$way: UD uses the right path" $way datagrams
done

# Change the path repeatedly in the middle of messages.
PREFIX='changing the path: '
(
	while :; do
		switch N
		sleep 0.02
		switch Y
		sleep 0.02
	done
) &
changer=$!
moved 'changing the path: the same-host path is used' YES all_kinds
kill $changer
wait $changer 2> /dev/null
switch Y

# ---- a transfer runs while captures and queueing disciplines begin and end ----

# grows NAME: within 10 s the same-host path must carry 100,000 bytes
grows() {
	local before tries
	before=$(counter same_host_bytes)
	for tries in $(seq 100); do
		[ $(($(counter same_host_bytes) - before)) -ge 100000 ] && ok "$1" && return
		sleep 0.1
	done
	notok "$1" "$(($(counter same_host_bytes) - before)) bytes took the same-host path in 10 s"
}

# stops NAME: from 1.2 s later on, the same-host path must carry nothing for a second
stops() {
	local before after
	sleep 1.2
	before=$(counter same_host_bytes)
	sleep 1
	after=$(counter same_host_bytes)
	if [ "$after" = "$before" ]; then
		ok "$1"
	else
		notok "$1" "$((after - before)) bytes took the same-host path"
	fi
}

verify_xfer -d "$RDMA_DEV" -g "$TRAFFIC_GID" -p 18992 -n 1000000 -s 4096 > "$LIB_TMP/server" 2>&1 &
server=$!
sleep 0.5
verify_xfer -d "$RDMA_DEV" -g "$TRAFFIC_GID" -p 18992 -n 1000000 -s 4096 127.0.0.1 > "$LIB_TMP/client" 2>&1 &
client=$!
grows "a long transfer uses the path"
sent=$(counter sent_bytes) copied=$(counter same_host_bytes)
sleep 4
sent=$(($(counter sent_bytes) - sent)) copied=$(($(counter same_host_bytes) - copied))
if [ $((9 * sent)) -le $copied ]; then
	ok "packets that open the path again are less than 10 % of the data"
else
	notok "packets that open the path again are less than 10 % of the data" "$sent bytes in packets, $copied without"
fi
# Capture the data as debugging.rst says: turn off batches, and make both ends send the ICRC.
ethtool -K lo tx-udp-segmentation off > /dev/null
echo Y > /sys/module/nhca/parameters/insist_icrc
tcpdump -i lo -c 100 -s 0 -Z root -w "$LIB_TMP/pcap" udp port 4791 2> "$LIB_TMP/tcpdump" &
capture=$!
if ended $capture 20; then
	ok "tcpdump on lo captures the data"
	: > "$LIB_TMP/fields"
	run "each packet of the capture is RoCEv2 with a correct ICRC" \
		python3 "$LAB_SRC/selftests/lib/icrc.py" check "$LIB_TMP/pcap" "$LIB_TMP/fields"
else
	notok "tcpdump on lo captures the data" "$(tail -n 1 "$LIB_TMP/tcpdump")"
	kill $capture
fi
echo N > /sys/module/nhca/parameters/insist_icrc
ethtool -K lo tx-udp-segmentation on > /dev/null
grows "the path is used again without tcpdump"
tc qdisc add dev lo root netem delay 1ms || notok "netem on lo" "tc refuses it"
stops "a queueing discipline on lo is obeyed within a second"
tc qdisc del dev lo root
grows "the path is used again without it"
tc qdisc add dev lo clsact && tc filter add dev lo egress protocol ip u32 match ip protocol 17 0xff action drop ||
	notok "a filter on lo" "tc refuses it"
stops "a filter on lo is obeyed within a second"
if ended $client 40 && [ "$JOB_STATUS" != 0 ]; then
	ok "the transfer fails as it would with packets"
else
	notok "the transfer fails as it would with packets" "it continues, or has ended with success"
fi
tc qdisc del dev lo clsact
kill $client $server 2> /dev/null
wait $client $server 2> /dev/null

# Create a second namespace, with a veth as its only connection to this one.
ip netns add elsewhere && ip link add vhere type veth peer name vthere &&
	ip link set vthere netns elsewhere && ip link set vhere up &&
	ip addr add 10.97.1.1/24 dev vhere && ip -n elsewhere link set vthere up &&
	ip -n elsewhere addr add 10.97.1.2/24 dev vthere
device_add here vhere 10.97.1.1
ip netns exec elsewhere rdma link add there type nhca netdev vthere && device_ready there 10.97.1.2
cross() {
	pair "two namespaces: verified transfers" \
		"verify_xfer -d here -g $(gid_of here 10.97.1.1) -p 18990 -q 4 -n 48 -s 65536 -b" \
		"ip netns exec elsewhere verify_xfer -d there -g $(gid_of there 10.97.1.2) -p 18990 -q 4 -n 48 -s 65536 -b 10.97.1.1"
}
RDMA_DEV=there
moved "two namespaces: the same-host path is used" YES cross
# While a netdev is down, the same-host path must not carry data of its device.
RDMA_DEV=here
memory=$(gid_of here 10.97.1.1)
verify_xfer -d here -g "$memory" -p 18991 -n 1000000 -s 4096 > "$LIB_TMP/server" 2>&1 &
server=$!
sleep 0.5
verify_xfer -d here -g "$memory" -p 18991 -n 1000000 -s 4096 127.0.0.1 > "$LIB_TMP/client" 2>&1 &
client=$!
sleep 2
kill -0 $client 2> /dev/null || notok "a long transfer runs" "$(tail -n 1 "$LIB_TMP/client")"
ip link set vhere down
if ended $client 30 && [ "$JOB_STATUS" != 0 ]; then
	ok "a transfer fails when its netdev goes down"
else
	notok "a transfer fails when its netdev goes down" "the transfer continues, or has ended with success"
fi
kill $client $server 2> /dev/null
wait $client $server 2> /dev/null
rdma link del here
rdma link del there
device_gone there
ip netns del elsewhere
for tries in $(seq 50); do
	[ -e /sys/class/net/vhere ] || break
	sleep 0.1
done
memory_check "no memory is leaked" 64
exit 0
