#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a requester requests an acknowledgment as soon as a consumer waits for it, and not earlier
# tier: check
# lab: --nodes 1 --timeout 200
# lab debug: --nodes 1 --kernel debug --timeout 900
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"

echo N > /sys/module/nhca/parameters/same_host
report acks
if nhca-fault add "$RDMA_DEV" drop opcode rdma_write_only times 1; then
	report acks lost
else
	notok "a fault rule drops a WRITE"
fi
nhca-fault list | grep -q ': hit 1 of' || notok "a packet is lost" "the fault rule hit no packet"
nhca-fault clear
