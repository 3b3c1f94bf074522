#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: qperf's tests over RC connect by rdma_cm and print a result; its verifying tests find each atomic right
# tier: long
# lab: --nodes 2 --timeout 900 --packages qperf
# lab one-host: --nodes 1 --timeout 900 --packages qperf

. "$LAB_SRC/selftests/lib/lib.sh"

# The UC and UD tests of qperf, and all tests without -cm, need LIDs, which RoCE does not have.
measure() {
	local name="qperf $1${2:+, $2 bytes}"
	# Run for 3 s: at the start the receiver may not be ready, and its RNR timer is 655 ms (code 0 of rdma_cm).
	pair "$name" "qperf" \
		"qperf -cm 1 -t 3 ${2:+-m $2} $IP_1 $1 | tee /dev/stderr | grep -Eq '= +[0-9.]*[1-9]' && qperf $IP_1 quit"
}

for size in 1 4096 1000000; do
	for test in rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat \
		rc_rdma_write_bw rc_rdma_write_poll_lat; do
		measure $test $size
	done
done
for test in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	measure $test
done
exit 0
