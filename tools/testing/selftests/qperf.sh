#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: qperf's tests over RC connect by rdma_cm and print a result; its verifying tests find each atomic right
# tier: long
# lab: --nodes 2 --timeout 900 --packages qperf
# lab one-host: --nodes 1 --timeout 900 --packages qperf

. "$LAB_SRC/selftests/lib.sh"

# Its UC and UD tests, and all without -cm, address by LID, which RoCE has none of.
measure() {
	local name="qperf $1${2:+, $2 bytes}"
	# 3 s: a receiver that is not ready, as may be at the start, says wait for 655 ms (qperf's timer is 0)
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
