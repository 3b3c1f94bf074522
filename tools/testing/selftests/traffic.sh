# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Traffic that several tests make: . "$LAB_SRC/selftests/traffic.sh" (it reads lib.sh)
#
#   perf TOOL ARGS...		perftest's ib_TOOL with ARGS, server on node 1, client on node 2
#   xfer ARGS...		verify_xfer with ARGS, server on node 1, client on node 2
#   WORDS in PREFIX go in front of the result's name

. "$LAB_SRC/selftests/lib.sh"

PREFIX=
TRAFFIC_GID=$(gid_index) || {
	notok "GID of this node's IPv4 address" "none in the table of $RDMA_DEV"
	exit
}
# A port of its own for each pair: the last server's socket may not be gone yet.
TRAFFIC_PORT=18600

# After a timeout rdma_rxe's requester (6.12) starts the message again one PSN late, and the responder
# refuses what is now too long: on its side a second of patience instead of 67 ms.
PERF_PATIENCE='' XFER_PATIENCE=''
if [ "$LAB_DRIVER" = rxe ]; then
	PERF_PATIENCE='-u 18' XFER_PATIENCE='-T 18'
fi

perf() {
	local tool=$1 command
	shift
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	# -F: the frequency of an emulated CPU is what it is.
	command="ib_$tool -d $RDMA_DEV -x $TRAFFIC_GID -p $TRAFFIC_PORT -F $PERF_PATIENCE $*"
	pair "$PREFIX$tool $*" "$command" "$command $IP_1"
}

# The same, connected by rdma_cm. perftest connects twice, and its client may come the second time before its
# server listens again: nobody does, it hears, and dies of that, whatever the driver. Then it is tried again. On
# user-mode guests, which are so fast, it may be so each time, and nothing is known.
perf_cm() {
	local failed=$LIB_FAILED tries raced
	for tries in 1 2 3 4 5 6; do
		LIB_FAILED=$failed
		perf "$@" -R > "$LIB_TMP/attempt"
		raced=$LAB_CTL/raced.$TRAFFIC_PORT
		if [ "$NODE" = 2 ] && grep -qE 'EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)' "$LIB_TMP/client"; then
			: > "$raced"
		fi
		barrier
		if [ ! -e "$raced" ]; then
			cat "$LIB_TMP/attempt"
			return
		fi
	done
	LIB_FAILED=$failed
	skip "$PREFIX$* -R" "perftest's client came before its server listened, each time"
}

xfer() {
	local command
	TRAFFIC_PORT=$((TRAFFIC_PORT + 1))
	command="verify_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p $TRAFFIC_PORT $XFER_PATIENCE $*"
	pair "${PREFIX}verified $*" "$command" "$command $IP_1" || return
	[ "$NODE" = 1 ] && sed -n 's/^verify_xfer: /#   /p' "$LIB_TMP/server"
	[ "$NODE" = 2 ] && sed -n 's/^verify_xfer: /#   /p' "$LIB_TMP/client"
}
