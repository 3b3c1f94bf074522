#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: rdma resource, nhcatop and bpftrace scripts show the queue pair, CQs and regions of a transfer, and its retries
# tier: check
# lab: --nodes 2 --timeout 300
# lab bookworm: --release bookworm --nodes 2 --timeout 400
# tier bookworm: long
# lab backports: --release backports --nodes 2 --timeout 400
# tier backports: long
# lab bpftrace: --nodes 2 --timeout 400 --packages bpftrace,mandoc
# tier bpftrace: long

. "$LAB_SRC/selftests/lib/traffic.sh"

modprobe sch_netem
if [ "$NODE" = 1 ]; then
	ib_write_bw -d "$RDMA_DEV" -x "$TRAFFIC_GID" -F -D 600 > /dev/null 2>&1 &
	server=$!
	for _ in $(seq 100); do
		ss -Hltn 'sport = :18515' | grep -q . && break
		sleep 0.1
	done
	# This node sends the acknowledgments: lose 1 % of them.
	tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 1%
fi
barrier ready
if [ "$NODE" = 2 ]; then
	tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 1%
	# ib_write_bw polls, so lower its priority: the programs that observe it must run.
	report python3 "$LAB_SRC/selftests/life/observe.py" "$RDMA_DEV" \
		nice -n 19 ib_write_bw -d "$RDMA_DEV" -x "$TRAFFIC_GID" -F -D 600 "$IP_1"
fi
barrier measured 600
[ "$NODE" = 1 ] && kill $server 2> /dev/null
exit 0
