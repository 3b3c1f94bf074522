# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions that run traffic: . "$LAB_SRC/selftests/lib/traffic.sh" (reads lib.sh)
#
#   perf TOOL ARGS...	run perftest's ib_TOOL with ARGS, the server on node 1 and the client on node 2
#   perf_cm TOOL ARGS...	the same, connected by rdma_cm
#   xfer ARGS...		run verify_xfer with ARGS, the server on node 1 and the client on node 2
#   PREFIX		text in front of each result's name

. "$LAB_SRC/selftests/lib/lib.sh"

PREFIX=
TRAFFIC_GID=$(gid_index) || {
	notok "GID of this node's IPv4 address" "none in the table of $RDMA_DEV"
	exit
}
# Use another TCP port for each pair, because the socket of the last server may still exist.
TRAFFIC_PORT=18600

# After a timeout the requester of rdma_rxe (6.12) restarts the message one PSN late, and the responder refuses the
# message because it is too long. So raise its local ACK timeout from 67 ms to 1 s (-u 18, -T 18).
PERF_ENV='' PERF_PATIENCE='' XFER_PATIENCE=''
if [ "$LAB_DRIVER" = rxe ]; then
	PERF_PATIENCE='-u 18' XFER_PATIENCE='-T 18'
fi

perf() {
	local tool=$1 command
	shift
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	# -F: ignore the CPU frequency, which is not constant on an emulated CPU.
	command="$PERF_ENV ib_$tool -d $RDMA_DEV -x $TRAFFIC_GID -p $TRAFFIC_PORT -F $PERF_PATIENCE $*"
	pair "$PREFIX$tool $*" "$command" "$command $IP_1"
}

# Like perf, but connected by rdma_cm. perftest makes two connections. cm_order.so makes the client wait, before each of
# them, until the server listens.
perf_cm() {
	local PERF_ENV="LD_PRELOAD=/usr/local/bin/cm_order.so CM_ORDER=$LAB_CTL/cm.$((TRAFFIC_PORT + 1))"
	perf "$@" -R
}

xfer() {
	local command
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	command="verify_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p $TRAFFIC_PORT $XFER_PATIENCE $*"
	pair "${PREFIX}verified $*" "$command" "$command $IP_1" || return
	[ "$NODE" = 1 ] && sed -n 's/^verify_xfer: /#   /p' "$LIB_TMP/server"
	[ "$NODE" = 2 ] && sed -n 's/^verify_xfer: /#   /p' "$LIB_TMP/client"
}
