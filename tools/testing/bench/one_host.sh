#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest with one CPU: measures the cost of a message, of both ends together, for each adapter and for TCP.
# bench: --nodes 1 --driver nhca --modules siw,tools/testing/bench/pagecopy
# bench: --clock instructions --memory 3072 --timeout 3000

. "$LAB_SRC/bench/guest.sh"

measure() {
	local who=$1
	bench_load "$who write 65536" -o write -s 65536 -n "${STREAM:-400}"
	bench_load "$who send 65536" -o send -s 65536 -n "${STREAM:-400}"
	bench_load "$who read 65536" -o read -s 65536 -n "${STREAM:-400}"
	bench_load "$who send 64 list 32" -o send -s 64 -l 32 -k 128 -n "${RATE:-8000}"
	bench_load "$who latency 64" -m pingpong -s 64 -n "${LATENCY:-500}"
}

# same_host Y|N: turn the same-host path on or off
same_host() {
	echo "$1" > /sys/module/nhca/parameters/same_host
}

# Measure WRITEs of 64 KiB on many queue pairs.
many() {
	local who=$1 qps
	for qps in 4 16 64 256 1000; do
		# With 256 queue pairs a ring has the mmap offset 0x90000, which libsiw takes for an error.
		[ "$LAB_DRIVER:$qps" = siw:256 ] && continue
		bench_load "$who write 65536 qps $qps" -o write -s 65536 -q $qps -k 2 \
			-n $((qps < 200 ? 800 : 4 * qps)) -w $((qps < 50 ? 200 : 4 * qps))
	done
}

# Request one completion for 16 messages. perftest also requests one completion for several messages, by default for
# 100.
silent() {
	local who=$1 what
	for what in write send; do
		bench_load "$who $what 65536 of 16" -o $what -s 65536 -k 64 -c 16 -n "${STREAM:-400}"
	done
}

# Measure the message sizes that measure() does not have.
sizes() {
	local who=$1 size
	for size in 2 64 512 4096 16384 262144 1048576 8388608; do
		bench_load "$who write $size" -o write -s $size -k $((size < 1048576 ? 32 : 4)) \
			-n $((size < 65536 ? 1500 : 100000000 / size))
	done
	for size in 2 4096 65536 1048576; do
		bench_load "$who latency $size" -m pingpong -s $size -n $((size < 65536 ? 300 : 50))
	done
}

# Measure SENDs of the unreliable services. A UD message must fit into one packet, so it has at most 4096 bytes.
unreliable() {
	local who=$1
	bench_load "$who uc-send 65536" -t uc -s 65536 -n 400
	bench_load "$who uc-send 64 list 32" -t uc -s 64 -l 32 -k 128 -n 8000
	bench_load "$who ud-send 4096" -t ud -s 4096 -n 2000
	bench_load "$who ud-send 64 list 32" -t ud -s 64 -l 32 -k 128 -n 8000
}

# Measure channels, which always use packets.
channels() {
	local who=$1 what size
	for what in write read; do
		for size in 4096 65536 1048576; do
			bench_transfers "$who rcxt-$what $size" -o $what -s $size \
				-n $((size < 65536 ? 1500 : 50000000 / size))
		done
	done
}

# One process polls on the only CPU, so work that an adapter leaves to another task waits for the scheduler.
polling() {
	bench_alone "$1 latency 64 polling" -s 64 -n 200 -b
}

# For comparison, print the time in which the kernel copies 1 MiB page by page, with memcpy() and with copy_page().
copies() {
	local what ns
	modprobe pagecopy || return
	for what in memcpy copy_page; do
		ns=$(dmesg | sed -n "s/.*pagecopy: .*\\<$what \\([0-9]*\\).*/\\1/p" | tail -n 1)
		echo "bench $what 1048576 {\"mode\": \"copy\", \"size\": 1048576, \"ns_per_message\": $ns," \
			"\"MiB_per_s\": $((1000000000 / ns))}"
	done
}

slab() {
	awk '$1 == "Slab:" || $1 == "Percpu:" { sum += $2 } END { print sum }' /proc/meminfo
}

# Measure the kernel memory of an idle queue pair: slab and per-CPU memory, but not its rings.
idle() {
	local qps=1000 before after server client
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
	echo "bench nhca idle {\"mode\": \"idle\", \"qps\": $((2 * qps))," \
		"\"bytes_per_qp\": $(((after - before) * 1024 / (2 * qps)))}"
}

bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
everything() {
	measure "$1"
	[ -n "$QUICK" ] && return
	silent "$1"
	sizes "$1"
	many "$1"
	[ "$LAB_DRIVER" = siw ] || unreliable "$1"
}

for who in ${DRIVERS:-nhca rxe siw}; do
	bench_driver "$who" || exit 1
	case $who in
	nhca)
		bench_ends veth || exit 1
		# Measure idle queue pairs before all else: later, slabs have free objects, which new queue pairs would
		# use without new memory.
		idle
		same_host N
		everything "nhca-veth"
		[ -n "$QUICK" ] || channels "nhca-veth"
		same_host Y
		everything "nhca-same-host"
		if [ -n "$QUICK" ]; then
			bench_load "nhca-same-host write 1048576" -o write -s 1048576 -n 100 -k 4
		else
			rdma link del bench1 && rdma link del bench2
			bench_ends loop || exit 1
			same_host N
			polling "nhca-loop"
		fi
		;;
	rxe)
		bench_ends loop || exit 1
		everything "rxe-loop"
		[ -n "$QUICK" ] || polling "rxe-loop"
		;;
	siw)
		bench_ends veth || exit 1
		everything "siw-veth"
		;;
	esac
	bench_ends_gone
done
bench_tcp "tcp-veth 65536"
if [ -z "$QUICK" ]; then
	for size in 64 512 4096 16384 262144 1048576; do
		bench_tcp "tcp-veth $size" 1 "$size"
	done
	copies
fi
exit 0
