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

bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
for who in ${DRIVERS:-nhca rxe}; do
	bench_driver "$who" || exit 1
	if [ "$who" = nhca ]; then
		bench_ends veth || exit 1
		same_host N
		measure "nhca-veth"
		same_host Y
		measure "nhca-same-host"
		bench_load "nhca-same-host write 1048576" -o write -s 1048576 -n 100 -k 4
	else
		bench_ends loop || exit 1
		measure "$who-loop"
	fi
	bench_ends_gone
done
bench_tcp "tcp-veth 65536"
