# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Disks in memory for test scripts: . "$LAB_SRC/selftests/memory/disks.sh"
#
#   null_disk NAME MIB [ATTRIBUTE=VALUE...]	make a disk; its folder in configfs has further attributes, such as
#					badblocks and power
#   disk_of NAME			print the device of a disk

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
