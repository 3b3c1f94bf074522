#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: when a persistent FLUSH has completed, the bytes of earlier WRITEs survive the loss of power, on a disk and in a file
# tier: check
# lab: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 300 --env COUNT=60
# lab long: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 3000 --env COUNT=10000
# tier long: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/memory/disks.sh"

count=${COUNT:-60}
if ! null_disk data 32 || ! null_disk log 300 || ! null_disk again 32 || ! modprobe dm-log-writes; then
	notok "the disks are there" "null_blk or dm-log-writes cannot be set up"
	exit 1
fi
log=$(disk_of log)
mnt=$LIB_TMP/files
mkdir "$mnt"

# Log the writes to the disk "data".  The log of dm-log-writes has only writes that a disk with a volatile cache keeps
# after a loss of power: writes before the last flush, and writes with FUA.
log_begin() {
	dmsetup create logged --table "0 65536 log-writes $(disk_of data) $log" && udevadm settle --timeout=10
}

# power NAME MODE...: run direct_power; its results begin with NAME
power() {
	local name=$1
	shift
	direct_power "$@" > "$LIB_TMP/report"
	report_file "$LIB_TMP/report" "$name: "
}

log_begin || notok "dm-log-writes works"
power "a disk" run /dev/mapper/logged logged "$count" persistent
dmsetup remove logged
power "a disk" check "$log" "$count"

# Without a persistent FLUSH the bytes are in the disk's cache, so the log must lack some of them.
dd if=/dev/zero of="$(disk_of data)" bs=1M count=1 oflag=direct status=none
log_begin
power "a global FLUSH" run /dev/mapper/logged logged 20 global
dmsetup remove logged
power "a global FLUSH" lacks "$log" 20

count=$((count < 500 ? count : 500))
log_begin
mkfs.ext4 -q -F /dev/mapper/logged && mount /dev/mapper/logged "$mnt" || notok "there is a file system"
dd if=/dev/zero of="$mnt/file" bs=1M count=1 oflag=direct conv=fsync status=none
power "a file" run "$mnt/file" logged "$count" persistent
umount "$mnt"
dmsetup remove logged
for mark in 0 $((count / 3)) $((count - 1)); do
	disk_fill "$(disk_of again)"
	power "a file at mark $mark" replay "$log" "$(disk_of again)" "$mark"
	if mount "$(disk_of again)" "$mnt"; then
		power "a file at mark $mark" compare "$mnt/file" "$mark"
		umount "$mnt"
		run "the file system is clean at mark $mark" e2fsck -fn "$(disk_of again)"
	else
		notok "the file system can be mounted at mark $mark"
	fi
done
