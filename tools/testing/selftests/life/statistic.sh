#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a queue pair can have its own counters, and the port's counters still count its packets
# tier: check
# lab: --nodes 2 --timeout 240
# lab debug: --nodes 2 --kernel debug --timeout 900 --env TURNS=40
# tier debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"

# Node 1 runs the server of the transfer that statistic.py measures on node 2.
if [ "$NODE" = 1 ]; then
	ib_write_bw -d "$RDMA_DEV" -x "$TRAFFIC_GID" -F -D 600 > /dev/null 2>&1 &
	server=$!
	for _ in $(seq 100); do
		ss -Hltn 'sport = :18515' | grep -q . && break
		sleep 0.1
	done
fi
barrier ready
[ "$NODE" = 2 ] && report python3 "$LAB_SRC/selftests/life/statistic.py" "$RDMA_DEV" "${TURNS:-15}" \
	ib_write_bw -d "$RDMA_DEV" -x "$TRAFFIC_GID" -F -D 600 "$IP_1"
barrier measured 600
[ "$NODE" = 1 ] && kill $server 2> /dev/null

# In automatic mode the RDMA core binds each new queue pair to a counter. Create and destroy a queue pair.
[ "$NODE" = 2 ] && rdma statistic qp set link "$RDMA_DEV/1" auto type on
port=/sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters
before=$(cat "$port/rdma_sends" "$port/rdma_recvs")
xfer -m send -s 4096 -n 64
after=$(cat "$port/rdma_sends" "$port/rdma_recvs")
[ "$NODE" = 2 ] && rdma statistic qp set link "$RDMA_DEV/1" auto off
sum() {
	# shellcheck disable=SC2086 # two words
	set -- $1
	echo $(($1 + $2))
}
if [ $(($(sum "$after") - $(sum "$before"))) -ge 64 ]; then
	ok "messages of a destroyed queue pair are still counted"
else
	notok "messages of a destroyed queue pair are still counted" "before: $before, after: $after"
fi
