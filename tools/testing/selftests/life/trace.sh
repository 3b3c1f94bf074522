#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the tracepoints show every packet, work request, retry, NAK and key correctly
# tier: check
# lab: --nodes 2 --timeout 300
# lab bookworm: --release bookworm --nodes 2 --timeout 400
# tier bookworm: long
# lab backports: --release backports --nodes 2 --timeout 400
# tier backports: long

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

begin() {
	python3 "$LAB_SRC/selftests/life/trace.py" begin "$RDMA_DEV" || exit 1
	[ "$NODES" = 1 ] || barrier
}

# judge NAME [EVENT|!EVENT]...: check the events since begin() against the counters, on each node
judge() {
	[ "$NODES" = 1 ] || barrier
	# Wait for packets that the other node still sends.
	sleep 0.5
	report python3 "$LAB_SRC/selftests/life/trace.py" judge "$RDMA_DEV" "$@"
	[ "$NODES" = 1 ] || barrier
}

begin
xfer -m send -b -s 20000 -n 32
xfer -m write -s 200000 -n 16
judge "SEND and WRITE" nhca_packet_sent nhca_packet_received nhca_wqe_started \
	nhca_wqe_completed '!nhca_nak_sent' '!nhca_same_host'

begin
xfer -m read -s 200000 -n 16
xfer -m atomic -n 32
xfer -t ud -m send -s 1024 -n 32
judge "READ, atomics and datagrams" nhca_packet_sent nhca_packet_received

begin
command="msg_xfer -d $RDMA_DEV -g $TRAFFIC_GID -p 18950 -n 2M -s 256K -w 4"
pair "messages over channels" "$command" "$command $IP_1"
judge "channels" nhca_packet_sent nhca_packet_received nhca_wqe_completed

modprobe sch_netem
tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 3%
begin
# netem drops whole batches, so send enough batches that each node loses one.
xfer -m write -b -s 100000 -n 200
xfer -m read -s 100000 -n 16
tc qdisc del dev "$NETDEV" root
judge "3 % loss" nhca_retry

# Both ends run on node 1.
if [ "$NODE" = 1 ]; then
	NODES=1
	begin
	xfer -m write -s 20000 -n 32
	MW_TYPE=2B windows > "$LIB_TMP/windows" 2>&1 || {
		notok "windows are bound and invalidated" "see windows.sh"
		show_tail "$LIB_TMP/windows"
	}
	judge "one host" nhca_same_host nhca_key_opened nhca_key_revoked

	# The tests' queue pairs send packets to this host.
	same_host=/sys/module/nhca/parameters/same_host
	echo N > $same_host
	begin
	for tests in "placing word" "placing ranges" "xrc WRITE"; do
		# shellcheck disable=SC2086
		$tests > "$LIB_TMP/opcodes" 2>&1 || {
			notok "$tests: the operations succeed" "see verbs_api.sh"
			show_tail "$LIB_TMP/opcodes"
		}
	done
	judge "XRC, FLUSH and ATOMIC WRITE" nhca_packet_sent nhca_packet_received nhca_wqe_started
	echo Y > $same_host

	# the test posts its requests in the error state, so none is executed
	begin
	verbs_api "flush in the error state" > "$LIB_TMP/flush" 2>&1 || {
		notok "requests are flushed" "see verbs_api.sh"
		show_tail "$LIB_TMP/flush"
	}
	judge "requests that are flushed" nhca_wqe_completed '!nhca_wqe_started'
fi
exit 0
