#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest, one CPU: what a message costs, both ends of it, in each adapter and in TCP.
# bench: --nodes 1 --driver nhca --clock instructions --memory 3072 --timeout 3000

. "$LAB_SRC/bench/guest.sh"

measure() {
	local who=$1
	bench_load "$who write 65536" -o write -s 65536 -n "${STREAM:-400}"
	bench_load "$who send 65536" -o send -s 65536 -n "${STREAM:-400}"
	bench_load "$who read 65536" -o read -s 65536 -n "${STREAM:-400}"
	bench_load "$who send 64 list 32" -o send -s 64 -l 32 -k 128 -n "${RATE:-8000}"
	bench_load "$who latency 64" -m pingpong -s 64 -n "${LATENCY:-500}"
}

# with and without the way around the network
same_host() {
	echo "$1" > /sys/module/nhca/parameters/same_host
}

# 1,000 queue pairs taking turns, and 16 that share alike.
many() {
	local who=$1
	bench_load "$who write 65536 qps 1000" -o write -s 65536 -q 1000 -k 2 -n 4000 -w 1000
	bench_load "$who write 65536 qps 16" -o write -s 65536 -q 16 -k 8 -n 800
}

slab() {
	awk '$1 == "Slab:" || $1 == "Percpu:" { sum += $2 } END { print sum }' /proc/meminfo
}

# What an idle queue pair costs the kernel beyond its rings, which are no slab memory.
idle() {
	local who=$1 qps=1000 before after server client
	BENCH_PORT=$((BENCH_PORT + 1))
	mkfifo "$LIB_TMP/hold.1" "$LIB_TMP/hold.2"
	before=$(slab)
	$BENCH_IN_1 load -m idle -d $BENCH_DEV_1 -g $BENCH_GID_1 -p $BENCH_PORT -q $qps -s 64 -k 1 \
		< "$LIB_TMP/hold.1" > "$LIB_TMP/server" 2>&1 &
	server=$!
	$BENCH_IN_2 load -m idle -d $BENCH_DEV_2 -g $BENCH_GID_2 -p $BENCH_PORT -q $qps -s 64 -k 1 \
		$BENCH_HOST < "$LIB_TMP/hold.2" > "$LIB_TMP/client" 2>&1 &
	client=$!
	exec 7> "$LIB_TMP/hold.1" 8> "$LIB_TMP/hold.2"
	until grep -qs ready "$LIB_TMP/server" && grep -qs ready "$LIB_TMP/client"; do
		kill -0 $client 2> /dev/null || break
		sleep 0.1
	done
	after=$(slab)
	exec 7>&- 8>&-
	wait $server $client
	rm "$LIB_TMP/hold.1" "$LIB_TMP/hold.2"
	echo "bench $who idle {\"mode\": \"idle\", \"qps\": $((2 * qps))," \
		"\"bytes_per_qp\": $(((after - before) * 1024 / (2 * qps)))}"
}

bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
for who in ${DRIVERS:-nhca rxe}; do
	bench_driver "$who" || exit 1
	if [ "$who" = nhca ]; then
		bench_ends veth || exit 1
		# First: what was freed before would be used again.
		[ -n "$QUICK" ] || idle "nhca"
		same_host N
		measure "nhca-veth"
		[ -n "$QUICK" ] || many "nhca-veth"
		same_host Y
		measure "nhca-same-host"
		bench_load "nhca-same-host write 1048576" -o write -s 1048576 -n 100 -k 4
	else
		bench_ends loop || exit 1
		[ -n "$QUICK" ] || idle "$who"
		measure "$who-loop"
	fi
	bench_ends_gone
done
bench_tcp "tcp-veth 65536"
