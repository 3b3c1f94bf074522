# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Disks in memory for test scripts: . "$LAB_SRC/selftests/memory/disks.sh"
#
#   null_disk NAME MIB [ATTRIBUTE=VALUE...]	make a disk; its folder in configfs has further attributes, such as
#					badblocks and power
#   disk_of NAME			print the device of a disk
#   disk_fill DISK...			write zeros to all blocks. null_blk allocates the memory of a block when it is
#					written, so a test that compares the memory in use calls this first.
#   write_forever DISK BAD [sync]	start direct_write, which writes to a region of DISK until it is killed, as job
#					$WRITER; its output is in $LIB_TMP/forever

NULL_DISKS=/sys/kernel/config/nullb

null_disk() {
	local dir=$NULL_DISKS/$1 mib=$2 setting
	shift 2
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	[ -d $NULL_DISKS ] || modprobe null_blk nr_devices=0 || return 1
	mkdir "$dir" || return 1
	for setting in size="$mib" memory_backed=1 blocksize=512 "$@" power=1; do
		echo "${setting#*=}" > "$dir/${setting%%=*}" || return 1
	done
}

# The device of a disk has the name of the folder; in older kernels its name is a number.
disk_of() {
	local disk
	for _ in $(seq 50); do
		for disk in "/dev/$1" "/dev/nullb$(cat "$NULL_DISKS/$1/index")"; do
			[ -b "$disk" ] && echo "$disk" && return
		done
		sleep 0.1
	done
	echo "/dev/$1"
}

disk_fill() {
	local disk
	for disk in "$@"; do
		# dd ends with an error at the end of the disk
		dd if=/dev/zero of="$disk" bs=1M oflag=direct status=none 2> "$LIB_TMP/dd"
	done
}

write_forever() {
	direct_write "$1" "$2" 0 ${3:+"$3"} > "$LIB_TMP/forever" &
	WRITER=$!
	for _ in $(seq 100); do
		grep -q writing "$LIB_TMP/forever" && break
		sleep 0.1
	done
	# Wait until many writes are in progress.
	sleep 0.3
}
