#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: UCX's tagged messages, streams, active messages, puts, gets and atomics work over RC and over UD
# tier: long
# lab: --nodes 2 --timeout 1800 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server
# lab one-host: --nodes 1 --timeout 1800 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 1800 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server

. "$LAB_SRC/selftests/apps/stacks.sh"

# Use weak fences, because other fences need a remote flush, which UCX has for mlx5 only.
export UCX_NET_DEVICES=$RDMA_DEV:1 UCX_FENCE_MODE=weak
PAIR_TIMEOUT=300
port=13400

# Print a line of the batch file.
line() {
	echo "$1.$2 -t $1 -s $2 -n $3 -w 2 ${*:4}"
}

messages() {
	local test size
	# The sizes are for the protocols of UCX: inline, bcopy, zcopy and rendezvous.
	for test in tag_lat tag_sync_lat stream_lat ucp_am_lat; do
		for size in 8 200 6000 100000; do
			line $test $size 10
		done
	done
	line tag_lat 300 10 -U
	line ucp_am_lat 3000 10 -H 64
	for test in tag_bw stream_bw ucp_am_bw; do
		line $test 64 200 -O 16
		line $test 1000000 8
	done
	line tag_lat 100 10 -E sleep
	line tag_bw 5000 50 -M multi -T 3
}

remote_memory() {
	local test size
	for test in ucp_put_lat ucp_put_bw ucp_get; do
		for size in 8 200 6000 100000 1000000; do
			line $test $size 10
		done
	done
	for test in ucp_add ucp_fadd ucp_swap ucp_cswap; do
		line $test 8 50
		line $test 8 50 -O 8
	done
	line ucp_put_bw 50000 10 -z
	line ucp_put_bw 50000 10 -B
}

# UCT, the layer below UCP, has only the operations of the transport. So leave out swap, which verbs do not have.
transport() {
	local test
	for test in am_lat am_bw put_lat put_bw; do
		line $test 64 50 -D short
		line $test 1000 50 -D bcopy
		line $test 8000 20 -D zcopy
	done
	line get_bw 1000 20 -D bcopy
	line get_bw 300000 4 -D zcopy
	for test in add_lat fadd cswap add_mr; do
		line $test 8 50
	done
}

# perftest NAME TESTS ENVIRONMENT...: run ucx_perftest with the batch that the function TESTS prints
perftest() {
	local name=$1 tests=$2 command
	shift 2
	port=$((port + 1))
	$tests > "$LIB_TMP/batch"
	command="env $* ucx_perftest -P 0 -p $port -b $LIB_TMP/batch -f"
	[ $tests = transport ] && command+=" -d $RDMA_DEV:1 -x rc_verbs"
	over "$name" "$command" "$command $IP_1"
}

run "UCX finds rc_verbs" sh -c 'ucx_info -d | grep -q "Transport: rc_verbs"'
run "UCX finds ud_verbs" sh -c 'ucx_info -d | grep -q "Transport: ud_verbs"'
perftest "rc: messages" messages UCX_TLS=rc_v
perftest "rc: remote memory" remote_memory UCX_TLS=rc_v
perftest "rc: UCT" transport UCX_TLS=rc_v
perftest "rc: rendezvous by WRITE, two queue pairs" messages UCX_TLS=rc_v UCX_RNDV_SCHEME=put_zcopy \
	UCX_IB_NUM_PATHS=2 UCX_MAX_RNDV_LANES=2 UCX_MAX_EAGER_LANES=2
perftest "ud: messages" messages UCX_TLS=ud_v
perftest "ud: remote memory" remote_memory UCX_TLS=ud_v
exit 0
