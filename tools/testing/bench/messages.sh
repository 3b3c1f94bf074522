#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest with one CPU: measures reliable messages in comparison with RC, on links with loss and reordering, and on
# two links. netem is on the sender's netdev, before GSO segments the batches, so it drops whole batches.
# bench: --nodes 1 --driver nhca --clock instructions --memory 3072 --timeout 3000

. "$LAB_SRC/bench/guest.sh"

MIB=1048576
BYTES=${BYTES:-1G}

streams() {
	bench_load "nhca-veth write $MIB" -o write -s $MIB -k 8 -n 400
	bench_load "nhca-veth write 65536" -o write -s 65536 -n 2000
	bench_messages "nhca-veth msg-write $MIB" -s $MIB -w 16 -n "$BYTES"
	bench_messages "nhca-veth msg-write 65536" -s 65536 -w 64 -n 256M
	bench_messages "nhca-veth msg-read $MIB" -o read -s $MIB -w 16 -n "$BYTES"
}

lossy() {
	local how
	for how in "loss 1%" "loss 5%" "delay 1ms" "delay 1ms reorder 25%"; do
		# shellcheck disable=SC2086 # words
		bench_netem $how
		bench_messages "nhca-veth msg-write $MIB $how" -s $MIB -w 16 -n "$BYTES"
	done
	bench_netem
}

# Measure one link and two links, each of 1 Gbit/s by the guest's clock. The CPU can send more than 3 Gbit/s, so the
# links limit the speed.
links() {
	local name space
	bench_link w 10.96.0 &&
		ip netns exec left rdma link add bench3 type nhca netdev wleft &&
		ip netns exec right rdma link add bench4 type nhca netdev wright &&
		device_ready bench3 10.96.0.1 && device_ready bench4 10.96.0.2 || return
	for name in v w; do
		for space in left right; do
			tc -n $space qdisc add dev $name$space root tbf rate 1gbit burst 128k latency 20ms
		done
	done
	bench_messages "nhca-veth msg-write $MIB one link" -s $MIB -w 16 -n 128M
	BENCH_DEV_1=bench1,bench3 BENCH_GID_1=$BENCH_GID_1,$(bench_gid bench3 10.96.0.1)
	BENCH_DEV_2=bench2,bench4 BENCH_GID_2=$BENCH_GID_2,$(bench_gid bench4 10.96.0.2)
	bench_messages "nhca-veth msg-write $MIB two links" -s $MIB -w 16 -n 256M
	rdma link del bench3 && rdma link del bench4
}

modprobe -a sch_netem sch_tbf
bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
bench_driver nhca
bench_ends veth || exit 1
echo N > /sys/module/nhca/parameters/same_host
streams
lossy
links
bench_ends_gone
exit 0
