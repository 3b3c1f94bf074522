#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two guests with a CPU each and an Ethernet link: bandwidth, latency and loss, in each adapter, each
# with the other as its peer, and in TCP.
# bench: --nodes 2 --mtu 4200 --driver nhca --timeout 3000

. "$LAB_SRC/bench/guest.sh"

modprobe sch_netem

lossy() {
	if [ "$1" = 0 ]; then
		tc qdisc del dev "$NETDEV" root 2> /dev/null
	else
		tc qdisc replace dev "$NETDEV" root netem limit 20000 loss "$1"%
	fi
	barrier
}

# here DRIVER: this node has a device of it, and nobody else the port
here() {
	local dev
	for dev in /sys/class/infiniband/*; do
		[ -e "$dev" ] && rdma link del "${dev##*/}"
	done
	module_remove 2> /dev/null
	bench_driver "$1" || return
	device_add bench1 "$NETDEV" "$MY_IP" || return
	BENCH_DEV_1=bench1 BENCH_DEV_2=bench1 BENCH_HOST=$IP_1
	BENCH_GID_1=$(gid_of bench1 "$MY_IP") BENCH_GID_2=$BENCH_GID_1
	barrier
}

measure() {
	local who=$1
	bench_load "$who write 65536" -o write -s 65536 -n "${STREAM:-800}"
	bench_load "$who read 65536" -o read -s 65536 -n "${STREAM:-800}"
	bench_load "$who send 64 list 32" -o send -s 64 -l 32 -k 128 -n "${RATE:-8000}"
	bench_load "$who latency 64" -m pingpong -s 64 -n "${LATENCY:-500}"
	bench_load "$who latency 64 polling" -m pingpong -s 64 -n "${LATENCY_POLLING:-40}" -b
	lossy 5
	bench_load "$who write 65536 loss 5%" -o write -s 65536 -n "${LOSSY:-100}"
	lossy 0
}

for who in ${DRIVERS:-nhca rxe}; do
	here "$who" && measure "$who"
done
if [ -z "$DRIVERS" ]; then
	for order in "nhca rxe" "rxe nhca"; do
		# shellcheck disable=SC2086 # two words
		set -- $order
		here "${!NODE}" && bench_load "$1-to-$2 write 65536" -o write -s 65536 -n "${STREAM:-800}"
	done
fi
bench_tcp "tcp 65536" 3

# One link, nhca and TCP at the same time.
if [[ " ${DRIVERS:-nhca rxe} " == *" nhca "* ]]; then
	here nhca
	[ "$NODE" = 1 ] && iperf3 -s -1 > /dev/null 2>&1 &
	barrier
	if [ "$NODE" = 2 ]; then
		sleep 0.5
		iperf3 -c "$IP_1" -t 12 -l 64K -J > "$LIB_TMP/tcp" 2>&1 &
		sleep 2
	fi
	bench_load "nhca-beside-tcp write 65536" -o write -s 65536 -n "${STREAM:-600}"
	if [ "$NODE" = 2 ]; then
		wait
		python3 -c 'import json, sys
rates = [one["sum"]["bits_per_second"] for one in json.load(sys.stdin)["intervals"]]
# while both sent: from the third second to where TCP had the link for itself again
print("bench tcp-beside-nhca 65536", json.dumps({"mode": "stream", "op": "tcp", "size": 65536,
      "MiB_per_s": round(min(rates[3:7]) / 8 / 1048576, 2),
      "ns_per_message": round(65536 * 8e9 / max(min(rates[3:7]), 1), 1)}))' < "$LIB_TMP/tcp"
	fi
	barrier
	wait
fi
lossy 5
bench_tcp "tcp 65536 loss 5%" 5
exit 0
