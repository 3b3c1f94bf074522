#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: two nhca ends that recognized each other use the UDP checksum instead of the ICRC; an end with insist_icrc=1 still gets the ICRC
# tier: check
# lab: --nodes 2 --timeout 240
# interop.sh tests that a peer other than nhca receives plain RoCEv2.

. "$LAB_SRC/selftests/lib/traffic.sh"

PCAP=$LIB_TMP/pcap
SWITCH=/sys/module/nhca/parameters/insist_icrc

# Capture only what this node sends, because received packets are visible only as merged batches.
capture() {
	local tries
	tcpdump -i "$NETDEV" -s 0 -B 16384 -U -Z root -Q out -w "$PCAP" udp port 4791 \
		2> "$LIB_TMP/tcpdump" &
	TCPDUMP=$!
	for tries in $(seq 100); do
		grep -q 'listening on' "$LIB_TMP/tcpdump" && break
		sleep 0.1
	done
	barrier
}

# judge NAME no-icrc|whole: each captured packet must have a correct checksum: with "no-icrc" most packets have no ICRC
# but a UDP checksum, with "whole" all packets have an ICRC
judge() {
	local name=$1 wanted=$2 found
	barrier
	sleep 0.5
	kill $TCPDUMP
	wait $TCPDUMP 2> /dev/null
	found=$(python3 "$LAB_SRC/selftests/lib/icrc.py" nhca "$PCAP" "$wanted" 2>&1)
	if [ $? = 0 ]; then
		ok "$name, sent by node $NODE"
		echo "#   $found"
	else
		notok "$name, sent by node $NODE" "$found"
	fi
}

capture
xfer -q 4 -n 48 -s 65536 -b
judge "without an ICRC, with a UDP checksum" no-icrc

# An end with insist_icrc=1 sends and requires the ICRC, so packets of both ends must have it.
[ "$NODE" = 1 ] && echo Y > $SWITCH
capture
xfer -q 4 -n 48 -s 65536 -b
judge "an ICRC in every packet" whole
[ "$NODE" = 1 ] && echo N > $SWITCH
exit 0
