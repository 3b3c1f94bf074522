#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: perftest's write, read, send and atomic tests run: RC, UC, UD, 1 and 16 QPs, polling and -e
# tier: check
# lab: --nodes 2 --timeout 480
# lab rt: --release rt --nodes 2 --cpus 2 --timeout 1200
# tier rt: long
# lab rt-debug: --kernel rt-debug --nodes 2 --cpus 2 --timeout 1800
# tier rt-debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"

# Bandwidth of each operation, from the smallest message to the largest.
for size in '2 -n 100' '64 -n 100' '4096 -n 100' '65536 -n 50' '1048576 -n 5' '8388608 -n 5'; do
	perf write_bw -s $size
done
for size in '2 -n 100' '65536 -n 20' '8388608 -n 5'; do
	perf read_bw -s $size
done
for size in '2 -n 100' '4096 -n 100' '1048576 -n 5' '8388608 -n 5'; do
	perf send_bw -s $size
done
perf atomic_bw -A FETCH_AND_ADD -n 100
perf atomic_bw -A CMP_AND_SWAP -n 100

# Sixteen QPs, and completion events (perftest has none for WRITE).
perf write_bw -q 16 -s 4096 -n 20
perf write_bw -q 16 -s 65536 -n 5
for tool in read_bw send_bw; do
	perf $tool -q 16 -s 4096 -n 20
	perf $tool -q 16 -s 65536 -n 5 -e
	perf $tool -s 65536 -n 20 -e
done
perf atomic_bw -q 16 -n 20
perf atomic_bw -n 100 -e

# Latency.
for size in 2 4096 1048576; do
	for tool in write_lat read_lat send_lat; do
		perf $tool -s $size -n 10
	done
done
perf atomic_lat -n 20
for tool in read_lat send_lat; do
	perf $tool -s 64 -n 20 -e
done

# The unreliable transports: so few messages that no queue overflows and nothing is lost.
perf write_bw -c UC -s 65536 -n 10
perf write_lat -c UC -s 64 -n 10
perf send_bw -c UC -s 65536 -n 10
perf send_lat -c UC -s 64 -n 10 -e
perf send_bw -c UD -s 1024 -n 50
perf send_bw -c UD -q 16 -s 64 -n 10 -e
perf send_lat -c UD -s 1024 -n 10

# Connected by rdma_cm.
perf_cm write_bw -s 65536 -n 20
perf_cm send_bw -c UD -s 1024 -n 20
exit 0
