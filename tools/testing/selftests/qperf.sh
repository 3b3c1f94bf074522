#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# promise: qperf's RC tests over connections of rdma_cm come to their end, and what atomics return is right
# tier: long
# lab: --nodes 2 --timeout 600 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server,qperf
# lab one-host: --nodes 1 --timeout 600 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server,qperf
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 600 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server,qperf

. "$LAB_SRC/selftests/stacks.sh"

port=19800

# Without -cm 1 qperf addresses its peer by LID, which RoCE does not have; UC and UD it connects only so.
qperf_rc() {
	local name="$*"
	port=$((port + 1))
	over_endless "$name" "qperf -lp $port" "qperf -lp $port -cm 1 -t 2 $IP_1 $*"
}

for test in rc_lat rc_bw rc_bi_bw rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat \
	rc_rdma_read_lat rc_rdma_read_bw; do
	qperf_rc $test
done
for test in rc_lat rc_rdma_read_lat rc_rdma_write_lat; do
	qperf_rc -m 100000 $test
done
qperf_rc -P 1 rc_lat
for test in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	qperf_rc $test
done
exit 0
