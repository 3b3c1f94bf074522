#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two guests with one CPU each and an Ethernet link: measures the bandwidth of each adapter and of TCP without and with
# packet loss, the latency of each adapter, the bandwidth between nhca and rdma_rxe, and how nhca and TCP share a narrow
# link.
# bench: --nodes 2 --mtu 4200 --driver nhca --modules siw --timeout 3000

. "$LAB_SRC/bench/guest.sh"

LOSSES="0.1 1 5"
modprobe -a sch_netem sch_tbf ifb

# impair [SPEC...]: set netem on both nodes, or remove it
impair() {
	tc qdisc del dev "$NETDEV" root 2> /dev/null
	[ $# = 0 ] || tc qdisc add dev "$NETDEV" root netem limit 20000 "$@"
	barrier
}

measure() {
	local who=$1 loss
	bench_load "$who write 65536" -o write -s 65536 -n "${STREAM:-3200}"
	bench_load "$who read 65536" -o read -s 65536 -n "${STREAM:-3200}"
	bench_load "$who send 64 list 32" -o send -s 64 -l 32 -k 128 -n "${RATE:-8000}"
	bench_load "$who latency 64" -m pingpong -s 64 -n "${LATENCY:-500}"
	bench_load "$who latency 64 polling" -m pingpong -s 64 -n "${LATENCY:-500}" -b
	for loss in $LOSSES; do
		impair loss "$loss%"
		bench_load "$who write 65536 loss $loss%" -o write -s 65536 -n "${LOSSY:-100}"
	done
	impair
}

# Measure messages of 1 MiB: reliable messages over channels of nhca, and RDMA WRITEs of each adapter.
large() {
	local who=$1 how count
	for how in "" "loss 1%" "loss 5%" "delay 1ms" "delay 1ms reorder 25%"; do
		# shellcheck disable=SC2086 # words
		impair $how
		if [ "$who" = nhca ]; then
			bench_messages "nhca msg-write 1048576${how:+ $how}" -s 1M -w 16 -n 128M
		fi
		# On a link without loss and delay, send more messages, so that the congestion window can grow.
		count=16
		[ -n "$how" ] || count=96
		bench_load "$who write 1048576${how:+ $how}" -o write -s 1048576 -k 4 -n $count
	done
	impair
}

# Measure reliable messages over one link and over two links of 50 Mbit/s each, which share the Ethernet link.
links() {
	local name n=0
	modprobe macvlan
	for name in one two; do
		n=$((n + 1))
		ip link add link "$NETDEV" name $name type macvlan mode bridge &&
			ip link set $name up && ip addr add "10.9$n.0.$NODE/24" dev $name &&
			tc qdisc add dev $name root tbf rate 50mbit burst 128k latency 50ms &&
			device_add "bench-$name" $name "10.9$n.0.$NODE" || return
	done
	barrier
	BENCH_DEV_1=bench-one BENCH_DEV_2=bench-one
	BENCH_GID_1=$(bench_gid bench-one "10.91.0.$NODE") BENCH_GID_2=$BENCH_GID_1
	bench_messages "nhca msg-write 1048576 one link" -s 1M -w 8 -n 160M
	BENCH_DEV_1=bench-one,bench-two BENCH_DEV_2=$BENCH_DEV_1
	BENCH_GID_1=$BENCH_GID_1,$(bench_gid bench-two "10.92.0.$NODE") BENCH_GID_2=$BENCH_GID_1
	bench_messages "nhca msg-write 1048576 two links" -s 1M -w 8 -n 160M
	for name in one two; do
		rdma link del "bench-$name"
		ip link del $name
	done
}

# Add a link of 20 Mbit/s with a buffer of 50 ms: packets that node 1 receives go through a queue that gives no
# backpressure to any sender. The link is slow, so that the link and not the CPUs limits the rate.
narrow() {
	if [ "$NODE" = 1 ]; then
		ip link add narrow type ifb && ip link set narrow mtu 4200 up &&
			tc qdisc add dev narrow root tbf rate 20mbit burst 16k latency 50ms &&
			tc qdisc add dev "$NETDEV" ingress &&
			tc filter add dev "$NETDEV" parent ffff: matchall \
				action mirred egress redirect dev narrow
	fi
	barrier
}

wide() {
	[ "$NODE" != 1 ] || { tc qdisc del dev "$NETDEV" ingress; ip link del narrow; }
	barrier
}

# tcp_between NAME BEGUN FIRST LAST: print the mean TCP rate in the full seconds between two times, from iperf3 -J
tcp_between() {
	python3 -c 'import json, sys
name, begun, first, last = sys.argv[1], *map(float, sys.argv[2:])
rates = [one["sum"]["bits_per_second"] for one in json.load(sys.stdin)["intervals"]
         if first <= begun + one["sum"]["start"] and begun + one["sum"]["end"] <= last]
rate = max(sum(rates) / len(rates), 1)
print("bench", name, json.dumps({"mode": "stream", "op": "tcp", "size": 65536, "seconds": len(rates),
      "MiB_per_s": round(rate / 8 / 1048576, 2), "ns_per_message": round(65536 * 8e9 / rate, 1)}))' "$@" ||
		bench_failed "$1" "iperf3 reported no full second of that time"
}

beside_tcp() {
	local begun first
	[ "$NODE" = 1 ] && iperf3 -s -1 > /dev/null 2>&1 &
	barrier
	if [ "$NODE" = 2 ]; then
		sleep 0.5
		begun=$(date +%s.%N)
		iperf3 -c "$IP_1" -t 24 -l 64K -J > "$LIB_TMP/tcp" 2>&1 &
		sleep 4
	fi
	barrier
	first=$(date +%s.%N)
	bench_load "nhca-beside-tcp write 65536" -o write -s 65536 -n 200
	if [ "$NODE" = 2 ]; then
		set -- "$(date +%s.%N)"
		wait
		tcp_between "tcp-beside-nhca 65536" "$begun" "$first" "$1" < "$LIB_TMP/tcp"
	fi
	barrier
	wait
}

for who in ${DRIVERS:-nhca rxe siw}; do
	bench_here "$who" && measure "$who" && large "$who"
done
if [ -z "$DRIVERS" ]; then
	# Measure rdma_rxe again as the reference for the next two measurements, because the machine's speed may have
	# changed since the first measurement.
	bench_here rxe && bench_load "rxe-again write 65536" -o write -s 65536 -n "${STREAM:-3200}"
	for order in "nhca rxe" "rxe nhca"; do
		# shellcheck disable=SC2086 # two words
		set -- $order
		bench_here "${!NODE}" && bench_load "$1-to-$2 write 65536" -o write -s 65536 -n "${STREAM:-3200}"
	done
fi
bench_ping "ping 64" "${LATENCY:-2000}"
bench_tcp "tcp 65536" 3
for loss in $LOSSES; do
	impair loss "$loss%"
	bench_tcp "tcp 65536 loss $loss%" 5
done
impair
if [[ " ${DRIVERS:-nhca} " == *" nhca "* ]]; then
	bench_here nhca
	narrow
	bench_load "nhca-narrow write 65536 qps 16" -o write -s 65536 -q 16 -k 4 -n 1280 -w 64
	beside_tcp
	wide
	links
fi
exit 0
