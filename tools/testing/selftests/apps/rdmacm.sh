#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: rping (with verified data), ucmatose, udaddy, cmtime and mckey pass over IPv4 and IPv6
# tier: check
# lab: --nodes 2 --timeout 240
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 240
# tier interop-server: long
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 240
# tier interop-client: long

. "$LAB_SRC/selftests/lib/lib.sh"

# cmtime may exit with 0 after a failure, so check that it printed its two tables of results. cmtime also opens a TCP
# connection over IPv4, so for IPv6 pass a host name with both addresses: librdmacm prefers IPv6.
cmtime_checked() {
	echo "set -o pipefail; cmtime $* | tee /dev/stderr | grep -c '^disconnect' | grep -qx 2"
}

# pair() cannot run mckey, because pair() does not detect when the receiver has joined the group. A message that is sent
# earlier is lost, and then the receiver never ends.
mckey_both() {
	local name=$1 group=$2 mine=$3 log=$LIB_TMP/mckey pid tries
	if [ "$NODE" = 1 ]; then
		timeout 60 stdbuf -oL mckey -m "$group" -b "$mine" -C 10 > "$log" 2>&1 &
		pid=$!
		for tries in $(seq 60); do
			grep -q 'joined dgid' "$log" && break
			kill -0 $pid 2> /dev/null || break
			sleep 0.5
		done
	fi
	barrier "$name joined"
	if [ "$NODE" = 2 ]; then
		run "$name" mckey -m "$group" -b "$mine" -C 10 -s
	elif wait $pid; then
		ok "$name"
	else
		notok "$name" "the receiver's status is $?"
		show_tail "$log"
	fi
	barrier "$name ends"
}

family() {
	local name=$1 server=$2 host=$3
	pair "rping $name" "rping -s -a $server -C 20 -V" "rping -c -a $server -C 20 -V"
	pair "rping $name, 64 KB" "rping -s -a $server -C 10 -V -S 65000" \
		"rping -c -a $server -C 10 -V -S 65000"
	pair "ucmatose $name" "ucmatose -b $server -c 10 -C 20 -S 8000" \
		"ucmatose -s $server -c 10 -C 20 -S 8000"
	pair "udaddy $name" "udaddy -b $server -c 4 -C 10 -S 512" \
		"udaddy -s $server -c 4 -C 10 -S 512"
	pair "cmtime $name" "$(cmtime_checked -b "$host" -c 25)" "$(cmtime_checked -s "$host" -c 25)"
}

family IPv4 "$IP_1" "$IP_1"
family IPv6 "$IP6_1" node1
me=IP_$NODE me6=IP6_$NODE
mckey_both "mckey IPv4" 239.77.0.1 "${!me}"
# cma_iboe_join_multicast() of every kernel up to 7.2 returns -ENOTSUPP for IPv6 groups on RoCEv2.
if timeout 20 mckey -m ff0e::7701 -b "${!me6}" -C 0 2>&1 | grep -q 'joining: Unknown error 524'; then
	skip "mckey IPv6" "rdma_cm of this kernel has no IPv6 multicast for RoCEv2"
else
	mckey_both "mckey IPv6" ff0e::7701 "${!me6}"
fi
exit 0
