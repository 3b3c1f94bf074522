#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: when packets are lost, duplicated or reordered, RC delivers every byte, and UC and UD only correct messages
# tier: check
# lab: --nodes 2 --timeout 480 --env FROM=5
# lab whole: --nodes 2 --timeout 480
# tier whole: long
# lab debug: --nodes 2 --kernel debug --timeout 1500 --env PAIR_TIMEOUT=240 --env FROM=5
# tier debug: long
# lab rt: --release rt --nodes 2 --cpus 2 --timeout 1200 --env FROM=5
# tier rt: long
# lab rt-debug: --kernel rt-debug --nodes 2 --cpus 2 --timeout 1800 --env FROM=5
# tier rt-debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"

modprobe sch_netem

# impair NETEM: impair the packets that each node sends: requests, responses and acknowledgments. The limit of 20,000
# packets keeps netem from dropping packets because of a full queue.
impair() {
	tc qdisc replace dev "$NETDEV" root netem limit 20000 $1 || {
		notok "netem $1" "tc refuses it"
		exit
	}
	PREFIX="$1: "
	barrier
}

# Local ACK timeout, retry count and RNR retry count are those of perftest (14, 7, 7) in all transfers.
verified() {
	xfer -q 4 -n 48 -s 65536 -b
	xfer -m write -s 2097152 -w 2 -n 6
	xfer -m send -e -s 200000 -n 32
	xfer -m read -s 200000 -n 32
	xfer -m atomic -q 4 -n 64
}

unreliable() {
	xfer -t uc -m send -s 8000 -n 64
	xfer -t uc -m write -s 8000 -n 64
	xfer -t ud -m send -s 1024 -q 4 -n 64
}

# With FROM (short runs, and runs on a slow kernel) skip the losses of 1 % and 2 %.
for percent in $([ -z "$FROM" ] && echo 1 2); do
	impair "loss $percent%"
	verified
	for tool in write_bw send_bw read_bw; do
		perf $tool -n $((200 / percent))
	done
done
impair 'loss 5%'
verified
unreliable
impair 'duplicate 10%'
verified
unreliable
# One packet in four is sent without the delay and overtakes the packets of the last 10 ms.
impair 'delay 10ms reorder 25%'
xfer -q 4 -n 32 -s 20000 -b
xfer -m write -s 200000 -w 2 -n 4
xfer -m read -s 50000 -n 16
xfer -m atomic -q 4 -n 32
unreliable
exit 0
