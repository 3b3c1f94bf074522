#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: many RC queue pairs move verified data at the same time and leave nothing behind
# tier: check
# lab: --nodes 2 --timeout 240 --env QPS=100
# lab long: --nodes 2 --timeout 1800 --env QPS=1000 --env ACK_TIMEOUT=18
# tier long: long
# lab uml: --machine uml --nodes 2 --timeout 5400 --env QPS=1000 --env ACK_TIMEOUT=18
# tier uml: long
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 1800 --env QPS=200
# tier loss: long
# lab debug: --nodes 2 --kernel debug --timeout 1800 --env QPS=100 --env ACK_TIMEOUT=18
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

qps=${QPS:-100}
limit=$((qps > 100 ? 600 : 100))
# On an emulated machine, or with checkers, the traffic of the other QPs may delay an ACK until all retries at the
# default timeout of 67 ms are used up. ACK_TIMEOUT sets a longer timeout.
patience=${ACK_TIMEOUT:+-T $ACK_TIMEOUT}

gid=$(gid_index) || exit 1
transfer() {
	local name=$1 count=$2 command
	shift 2
	command="verify_xfer -d $RDMA_DEV -g $gid -q $count $patience $*"
	pair "$name" "$command" "$command $IP_1" "$limit"
}

# The first run makes allocations that stay, such as caches. Later runs must not add to them.
transfer "warm-up" 10 -n 10 -s 4096 -w 4
before=$(resources "$RDMA_DEV")
kmemleak_mark
memory_mark
barrier marked

transfer "$qps RC queue pairs, both ways, all operations" "$qps" -m mixed -b -n 8 -s 8192 -w 4
transfer "$qps RC queue pairs, messages of many packets, with events" "$qps" -m write_imm -e -n 4 -s 30000 -w 2
transfer "$qps RC queue pairs, reads" "$qps" -m read -n 4 -s 16384 -w 2

resources_check "rdma res show has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
# The bound of half the QPs finds a leak of one object for each queue pair of one transfer.
memory_check "memory in use and module references have not grown on node $NODE" $((qps / 2))
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
