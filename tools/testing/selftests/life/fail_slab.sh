#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: when atomic allocations fail during traffic, RC delivers every byte, and UC, UD and channels at most lose packets
# tier: long
# lab: --machine uml --kernel debug --nodes 2 --cpus 2 --timeout 400 --env SLOWER=4
# lab long: --machine uml --kernel debug --nodes 2 --cpus 2 --timeout 3600 --env SLOWER=4 --env MESSAGES=64 --env "PERCENT=2 10"
# tier long: long

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/life/fail_sites.sh"

if [ ! -d "$FAULTS/failslab" ]; then
	skip "atomic allocations fail" "this kernel has no fault injection"
	exit
fi

before=$(resources "$RDMA_DEV")
kmemleak_mark
faults_choose
sites_begin
n=${MESSAGES:-16}
for percent in ${PERCENT:-3}; do
	PREFIX="$percent % of atomic allocations fail: "
	barrier
	faults_percent "$percent" 1
	xfer -q 4 -w 4 -s 65536 -b -n "$n"
	xfer -m write -q 2 -w 2 -s 500000 -n $((n / 4))
	xfer -m read -q 4 -w 4 -s 100000 -n "$n"
	xfer -m send -e -q 4 -s 20000 -n "$n"
	xfer -m atomic -q 4 -n "$n"
	xfer -t uc -m send -s 8000 -n "$n"
	xfer -t ud -m send -q 4 -s 1024 -n "$n"
	command="msg_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p $((18960 + percent)) -n 2M -s 100K -w 4"
	pair "${PREFIX}messages over channels" "$command" "$command $IP_1"
	faults_percent 0 0
done
PREFIX="without faults: "
xfer -q 4 -w 4 -s 65536 -b -n "$n"
sites_end "$LAB_OUT/sites"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
if module_remove; then
	ok "the module unloads at the end on node $NODE"
else
	notok "the module unloads at the end on node $NODE"
fi
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
