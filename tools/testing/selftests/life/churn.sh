#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: many rdma_cm connections are opened, verified and closed, and leave nothing behind
# tier: check
# lab: --nodes 2 --timeout 240 --env CONNECTIONS=150
# lab long: --nodes 2 --timeout 3600 --env CONNECTIONS=10000
# tier long: long
# lab uml: --machine uml --nodes 2 --timeout 5400 --env CONNECTIONS=10000
# tier uml: long
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 240 --env CONNECTIONS=100
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 240 --env CONNECTIONS=100
# tier interop-server: long
# tier interop-client: long
# lab debug: --nodes 2 --kernel debug --timeout 1200 --env CONNECTIONS=200
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

connections=${CONNECTIONS:-300}
limit=$((connections > 1000 ? connections / 3 : 180))

churn() {
	local name=$1 count=$2 ip=$3
	pair "$name" "cm_churn -s -n $count $ip" "cm_churn -n $count -t 4 $ip" "$limit"
}

# The first connections make allocations that stay: caches, modules, ports of rdma_cm.
churn "warm-up, IPv4" 20 "$IP_1"
churn "warm-up, IPv6" 20 "$IP6_1"

before=$(resources "$RDMA_DEV")
kmemleak_mark
memory_mark
barrier marked
churn "$connections connections, IPv4" "$connections" "$IP_1"
churn "$((connections / 10)) connections, IPv6" "$((connections / 10))" "$IP6_1"

resources_check "rdma res show has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
# cm_churn ends connections in four ways in turn. A leak in one way leaves one object for four connections, which is
# more than the bound of one for five.
memory_check "memory in use and module references have not grown on node $NODE" $((connections / 5))
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
