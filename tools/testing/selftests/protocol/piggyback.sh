#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the reply carries the acknowledgment of a SEND if replies are quick; without a reply the acknowledgment still arrives in time
# tier: check
# lab: --nodes 1 --clock instructions --timeout 300
# lab debug: --nodes 1 --kernel debug --timeout 900
# tier debug: long
# lab smp: --nodes 1 --cpus 2 --timeout 200
# tier smp: long

. "$LAB_SRC/selftests/lib/lib.sh"

echo N > /sys/module/nhca/parameters/same_host
report piggyback

modprobe sch_netem
tc qdisc add dev lo root netem loss 2% && report piggyback lost
tc -s qdisc show dev lo | grep -Eq 'dropped [1-9]' || notok "packets are lost" "netem dropped none"
tc qdisc del dev lo root

# With fault rules on packets, the same seed must give the same packets, so no ACK may be piggybacked.
if nhca-fault add "$RDMA_DEV" drop opcode rdma_write_only times 1; then
	report piggyback none "no piggybacked ACK on a device with fault rules on packets"
else
	notok "a fault rule drops a WRITE"
fi
nhca-fault clear

echo Y > /sys/module/nhca/parameters/insist_icrc
report piggyback none "no piggybacked ACK with insist_icrc=1"
