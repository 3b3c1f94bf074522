#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest with one CPU and a disk, of which the passive end registers a region. Measures the cost of WRITEs and READs
# of this region, of both ends together, and for comparison the cost of WRITEs and READs of memory. The disk is
# null_blk, which takes no time and copies no bytes.
# bench: --nodes 1 --driver nhca --clock instructions --memory 3072 --timeout 1200

. "$LAB_SRC/bench/guest.sh"

modprobe null_blk gb=1 bs=512 memory_backed=0 irqmode=0 queue_mode=2
rdma link del "$RDMA_DEV"
bench_cable && bench_ends veth || exit 1
echo N > /sys/module/nhca/parameters/same_host

# measure SIZE COUNT DEPTH: messages of SIZE bytes
measure() {
	local size=$1 op
	shift
	set -- -s "$size" -n "$1" -k "$2"
	for op in write read; do
		bench_load "nhca-veth memory-$op $size" -o $op "$@"
		bench_load "nhca-veth direct-$op $size" -o $op "$@" -f /dev/nullb0
	done
	bench_load "nhca-veth direct-write-sync $size" -o write "$@" -f /dev/nullb0 -y
}

measure 4096 2000 32
measure 131072 200 16
measure 1048576 40 4
exit 0
