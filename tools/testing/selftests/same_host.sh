#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: queue pairs of one host move the right bytes without packets, and can change between this and packets at any time
# tier: check
# lab: --nodes 1 --timeout 300
# lab debug: --nodes 1 --kernel debug --timeout 1200
# tier debug: long

. "$LAB_SRC/selftests/traffic.sh"
. "$LAB_SRC/selftests/node.sh"

SWITCH=/sys/module/nhca/parameters/same_host

counter() {
	rdma statistic show link "$RDMA_DEV/1" -j | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

switch() {
	echo "$1" > "$SWITCH"
}

# moved NAME YES|NO COMMAND...: was anything moved without packets meanwhile?
moved() {
	local name=$1 wanted=$2 before after
	shift 2
	before=$(counter same_host_bytes)
	"$@"
	after=$(counter same_host_bytes)
	if [ "$wanted" = YES ] && [ $((after - before)) -lt 100000 ]; then
		notok "$name" "only $((after - before)) bytes went without packets"
	elif [ "$wanted" = NO ] && [ "$after" != "$before" ]; then
		notok "$name" "$((after - before)) bytes went without packets"
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

memory_mark
for way in YES NO; do
	switch ${way:0:1}
	PREFIX="same_host=$way: "
	moved "same_host=$way: that way is taken" $way all_kinds
done

# UC hears of its peer only from what that sends.
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
	moved "same_host=$way: that way is taken by UC" $way unreliable
	moved "same_host=$way: that way is taken by UD" $way datagrams
done

# Back and forth, in the middle of messages.
PREFIX='changing ways: '
(
	while :; do
		switch N
		sleep 0.02
		switch Y
		sleep 0.02
	done
) &
changer=$!
moved 'changing ways: both are taken' YES all_kinds
kill $changer
wait $changer 2> /dev/null
switch Y

# Two namespaces: no route leads from one to the other but by a cable.
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
moved "two namespaces: without packets" YES cross
# A netdev that is down carries nothing, whoever could do without.
RDMA_DEV=here
memory=$(gid_of here 10.97.1.1)
verify_xfer -d here -g "$memory" -p 18991 -n 1000000 -s 4096 > "$LIB_TMP/server" 2>&1 &
server=$!
sleep 0.5
verify_xfer -d here -g "$memory" -p 18991 -n 1000000 -s 4096 127.0.0.1 > "$LIB_TMP/client" 2>&1 &
client=$!
sleep 2
kill -0 $client 2> /dev/null || notok "a transfer that lasts" "$(tail -n 1 "$LIB_TMP/client")"
ip link set vhere down
if ended $client 30 && [ "$JOB_STATUS" != 0 ]; then
	ok "not past a netdev that is down"
else
	notok "not past a netdev that is down" "the transfer goes on, or has ended well"
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
memory_check "nothing stays behind" 64
exit 0
