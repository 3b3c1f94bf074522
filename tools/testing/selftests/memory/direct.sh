#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: peers and local requests get the bytes and the errors of a disk from its region, which uses a fixed amount of memory
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 200 --env ROUNDS=200
# lab long: --nodes 1 --cpus 2 --timeout 3000 --env ROUNDS=20000
# tier long: long
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 1200 --env ROUNDS=100
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# null_disk NAME MIB: make a disk in memory; badblocks and power of its configfs folder change it later
null_disk() {
	local dir=/sys/kernel/config/nullb/$1
	mkdir "$dir" && echo "$2" > "$dir/size" && echo 1 > "$dir/memory_backed" && echo 512 > "$dir/blocksize" &&
		echo 1 > "$dir/power"
}

mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
if ! modprobe null_blk nr_devices=0 || ! null_disk good 64 || ! null_disk bad 8; then
	notok "the disks are there" "null_blk cannot be set up"
	exit 1
fi
# The device of a disk has the name of the folder; in older kernels its name is a number.
disk_of() {
	local disk
	for _ in $(seq 50); do
		for disk in "/dev/$1" "/dev/nullb$(cat "/sys/kernel/config/nullb/$1/index")"; do
			[ -b "$disk" ] && echo "$disk" && return
		done
		sleep 0.1
	done
	echo "/dev/$1"
}

good=$(disk_of good)
bad=$(disk_of bad)
# null_blk allocates the memory of a block when the block is written: this is no leak of the test.
for disk in "$good" "$bad"; do
	dd if=/dev/zero of="$disk" bs=1M oflag=direct status=none 2> "$LIB_TMP/dd"
done
# blocks 2048 to 2055 of 512 bytes: 4 KiB at 1 MiB
echo "+2048-2055" > /sys/kernel/config/nullb/bad/badblocks

leak_snapshot
memory_mark
report direct "$good" "$bad" "${ROUNDS:-200}"
leak_check "no slab object or module reference is leaked"
memory_check "no page stays in use" 300
