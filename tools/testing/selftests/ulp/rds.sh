#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: RDS over nhca delivers every message once, in order and whole, also after a loss of the network or of the device; RDMA by keys works
# tier: long
# lab: --nodes 2 --timeout 400 --env CUT=5
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 400 --env CUT=0

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"

cut=${CUT:-5}
RDS=$LAB_SRC/selftests/ulp/rds.py
ulp_mark

rds_answerer() {
	"$RDS" answer "$IP_1" "$LIB_TMP/answers" > "$LIB_TMP/answerer" 2>&1 &
	ANSWERER=$!
	within 30 test -e "$LIB_TMP/answers"
}

# The answering process exits by itself when it finds an error.
rds_answerer_stop() {
	if kill "$ANSWERER" 2> /dev/null; then
		ok "$1"
	else
		notok "$1" "it has ended"
		show_tail "$LIB_TMP/answerer"
	fi
	wait "$ANSWERER" 2> /dev/null
}

ask() {
	local name=$1
	shift
	run "$name" "$RDS" ask "$IP_2" "$IP_1" "$@"
}

stream_start() {
	PATIENCE=120 "$RDS" ask "$IP_2" "$IP_1" stream "$LIB_TMP/stream" > "$LIB_TMP/streamed" 2>&1 &
	STREAM=$!
}

streamed() {
	cat "$LIB_TMP/stream" 2> /dev/null || echo 0
}

streamed_beyond() {
	[ "$(streamed)" -gt "$1" ]
}

stream_moves() {
	local before
	before=$(streamed)
	# 40 messages are more than can be in flight at a time.
	if within "$2" streamed_beyond $((before + 40)); then
		ok "$1"
	else
		notok "$1" "after $2 s $(($(streamed) - before)) messages"
		show_tail "$LIB_TMP/streamed"
	fi
}

stream_stop() {
	: > "$LIB_TMP/stream.stop"
	if ended $STREAM 130 && [ "$JOB_STATUS" = 0 ]; then
		ok "$1"
	else
		notok "$1" "status '$JOB_STATUS'"
		kill -KILL $STREAM 2> /dev/null
	fi
	show_tail "$LIB_TMP/streamed"
}

connected() {
	log_has 'RDS/IB: (Active|Passive) conn connected'
}

device_again() {
	rdma link delete "$RDMA_DEV" && device_gone "$RDMA_DEV" && sleep 2 && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"
}

ulp_modules "RDS" rds_rdma
if [ "$NODE" = 1 ]; then
	step "the answering process starts" rds_answerer || exit 1
	barrier answers || exit 1
else
	barrier answers || exit 1
	ask "messages of all sizes" messages
	ask "the peer reads memory by a key" read
	ask "the peer writes memory by a key" write
	ask "a key is valid for one use, and the connection is restored after the error" once
	stream_start
	stream_moves "many messages at a time" 60
	if [ "$cut" != 0 ]; then
		log_mark
		network_cut "$cut"
		stream_moves "messages continue after the network was cut for $cut s" 90
		step "RDS has connected again" connected
	fi
	log_mark
	step "the device is removed and added again" device_again
	stream_moves "messages continue over the new device" 90
	step "RDS has connected over the new device" connected
	stream_stop "each message arrived once, in order and complete"
	ask "the peer reads memory by a key of the new device" read
fi
barrier disconnected 400 || exit 1
[ "$NODE" = 2 ] || rds_answerer_stop "the peer found no error"
step "RDS is unloaded on node $NODE" modprobe -r rds_rdma
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
