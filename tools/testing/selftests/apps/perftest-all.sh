#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: every perftest tool runs with every size (-a): RC, UC and UD, 1 and 16 QPs, polling and -e
# tier: long
# lab: --machine uml --nodes 2 --timeout 7200
# lab mtu-4200: --machine uml --nodes 2 --mtu 4200 --timeout 7200
# lab interop-server: --machine uml --nodes 2 --driver 1=nhca,2=rxe --timeout 7200
# lab interop-client: --machine uml --nodes 2 --driver 1=rxe,2=nhca --memory 6144 --timeout 7200
# lab emulated: --nodes 2 --timeout 14400

# As a UC server, rdma_rxe queues all packets that it has not yet processed: more than 1 GiB here. So interop-client
# needs --memory 6144.

. "$LAB_SRC/selftests/lib/traffic.sh"

# -a runs every power of two from 2 B to 8 MiB, on UD up to the MTU.
PAIR_TIMEOUT=900

for mode in '' -e; do
	for tool in read send; do
		perf ${tool}_bw -a -n 5 $mode
		perf ${tool}_bw -a -n 5 -q 16 $mode
	done
	for verb in FETCH_AND_ADD CMP_AND_SWAP; do
		perf atomic_bw -A $verb -n 200 $mode
		perf atomic_bw -A $verb -n 50 -q 16 $mode
		perf atomic_lat -A $verb -n 50 $mode
	done
	perf read_lat -a -n 5 $mode
	perf send_lat -a -n 5 $mode
	perf send_bw -c UC -a -n 5 $mode
	perf send_bw -c UC -a -n 5 -q 16 $mode
	perf send_lat -c UC -a -n 5 $mode
	perf send_bw -c UD -a -n 20 $mode
	perf send_bw -c UD -a -n 5 -q 16 $mode
	perf send_lat -c UD -a -n 10 $mode
done
# perftest has no completion events (-e) for WRITE.
for transport in RC UC; do
	perf write_bw -c $transport -a -n 5
	perf write_bw -c $transport -a -n 5 -q 16
done
perf write_lat -a -n 5
perf write_lat -c UC -a -n 5
exit 0
