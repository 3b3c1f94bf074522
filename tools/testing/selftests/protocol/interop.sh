#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: nhca and rdma_rxe exchange the right bytes, and their packets have correct ICRCs and fields
# tier: check
# lab server: --nodes 2 --driver 1=nhca,2=rxe --timeout 480
# lab client: --nodes 2 --driver 1=rxe,2=nhca --timeout 480
# tier client: long
# lab server-mtu-4200: --nodes 2 --driver 1=nhca,2=rxe --mtu 4200 --timeout 480
# tier server-mtu-4200: long
# lab client-mtu-9000: --nodes 2 --driver 1=rxe,2=nhca --mtu 9000 --timeout 480
# tier client-mtu-9000: long

. "$LAB_SRC/selftests/lib/traffic.sh"

CAPTURED=16000		# packets that an emulated guest can decode in about a minute
PCAP=$LIB_TMP/pcap
ICRC="python3 $LAB_SRC/selftests/lib/icrc.py"

capture_start() {
	# nhca receives UDP in batches, and tcpdump shows a batch as one merged packet. So an nhca node captures only
	# what it sends. The other node, with rdma_rxe, captures both directions.
	local direction=
	[ "$LAB_DRIVER" = nhca ] && direction='-Q out'
	tcpdump -i "$NETDEV" -s 0 -B 16384 -U -c $CAPTURED -Z root $direction -w "$PCAP" \
		udp port 4791 2> "$LIB_TMP/tcpdump" &
	TCPDUMP=$!
	local tries
	for tries in $(seq 100); do
		grep -q 'listening on' "$LIB_TMP/tcpdump" && break
		sleep 0.1
	done
}

decode() {
	# The payload is random bytes. Without these options tshark may decode it as one of hundreds of protocols.
	tshark -n -r "$1" --only-protocols frame,eth,ethertype,vlan,ip,ipv6,udp,infiniband \
		-o infiniband.try_heuristic_first:FALSE "${@:2}" 2> "$LIB_TMP/tshark"
}

# Print at most three frames that tshark finds malformed.
malformed() {
	decode "$1" -Y _ws.malformed | head -n 3
}

capture_check() {
	local who="$1" found
	sleep 0.5
	kill $TCPDUMP 2> /dev/null
	wait $TCPDUMP 2> /dev/null
	decode "$PCAP" -T fields -e frame.number -e infiniband.invariant.crc > "$LIB_TMP/fields"
	if $ICRC check "$PCAP" "$LIB_TMP/fields" > "$LIB_TMP/icrc" 2>&1; then
		ok "every ICRC is correct, $who"
		sed 's/^/#   /' "$LIB_TMP/icrc"
	else
		notok "every ICRC is correct, $who" "$(tail -n 1 "$LIB_TMP/icrc"); $(head -n 1 "$LIB_TMP/icrc")"
		show_tail "$LIB_TMP/icrc"
		cp "$PCAP" "$LAB_OUT/bad-icrc.pcap"
	fi
	found=$(malformed "$PCAP")
	if [ -n "$found" ]; then
		notok "no packet is malformed, $who" "$found"
		cp "$PCAP" "$LAB_OUT/malformed.pcap"
	elif ! [ "$(wc -l < "$LIB_TMP/fields")" -gt 100 ]; then
		notok "no packet is malformed, $who" "tshark decodes $(wc -l < "$LIB_TMP/fields") packets"
		show_tail "$LIB_TMP/tshark"
	else
		ok "no packet is malformed, $who"
	fi
}

# Test of the test: the check must find a changed bit and a truncated packet.
capture_check_itself() {
	local who="$1"
	# The first packets are enough.
	head -c 200000 "$PCAP" > "$LIB_TMP/some"
	$ICRC damage "$LIB_TMP/some" "$LIB_TMP/damaged"
	$ICRC cut "$LIB_TMP/some" "$LIB_TMP/cut"
	: > "$LIB_TMP/nothing"
	if ! $ICRC check "$LIB_TMP/damaged" "$LIB_TMP/nothing" > "$LIB_TMP/icrc" 2>&1 &&
		[[ $(tail -n 1 "$LIB_TMP/icrc") == *' packets, 1 bad' ]]; then
		ok "the check finds a changed bit, $who"
	else
		notok "the check finds a changed bit, $who" "$(tail -n 1 "$LIB_TMP/icrc")"
	fi
	if [ -n "$(malformed "$LIB_TMP/cut")" ]; then
		ok "the check finds a truncated packet, $who"
	else
		notok "the check finds a truncated packet, $who" "tshark accepts it"
	fi
}

pingpong() {
	local command="ibv_$1_pingpong -d $RDMA_DEV -g $TRAFFIC_GID ${*:2}"
	pair "$1 pingpong ${*:2}" "$command" "$command $IP_1"
}

# nhca's send queues go to SQD and back to RTS while the peer sends.
drained() {
	local PREFIX='nhca drains, ' XFER_PATIENCE=$XFER_PATIENCE
	[ "$LAB_DRIVER" = nhca ] && XFER_PATIENCE=-D
	xfer "$@"
}

capture_start

for transport in rc uc srq; do
	pingpong $transport -n 100 -c
done
pingpong rc -n 100 -c -e
pingpong ud -n 100 -s 1000
for server in "$IP_1" "$IP6_1"; do
	pair "rping $server" "rping -s -a $server -C 5 -V" "rping -c -a $server -C 5 -V"
done
pair ucmatose "ucmatose -b $IP_1 -c 5 -C 5" "ucmatose -s $IP_1 -c 5 -C 5"
pair udaddy "udaddy -b $IP_1 -c 2 -C 5 -S 512" "udaddy -s $IP_1 -c 2 -C 5 -S 512"
for mode in send write write_imm read atomic; do
	xfer -m $mode -n 32 -s 20000
done
# Leave out FLUSH: rdma_rxe computes the ICRC of a FLUSH differently.
far="python3 -B $LAB_SRC/selftests/protocol/placing_far.py $TRAFFIC_GID 7980"
pair "ATOMIC WRITE" "$far" "$far $IP_1"
drained -b -q 4 -n 64 -s 20000
drained -m send -e -n 64 -s 20000 -b
for tool in write send read; do
	perf ${tool}_bw -s 2 -n 20
	perf ${tool}_lat -s 4096 -n 10
done
perf atomic_bw -n 20
perf send_bw -c UC -s 65536 -n 5
perf write_bw -c UC -s 65536 -n 5
perf send_bw -c UD -s 1024 -n 20
# These tests send many packets, so the capture may be full from here on.
xfer -q 4 -n 32 -b
for tool in write send read; do
	perf ${tool}_bw -s 65536 -q 16 -n 5
	perf ${tool}_bw -s 1048576 -n 5
done

who="$LAB_DRIVER on node $NODE"
capture_check "$who"
capture_check_itself "$who"
barrier captures 300
exit 0
