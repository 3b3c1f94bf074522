#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: regions of files obey their file system: a truncation is not undone, and a full or refused file has its errno
# tier: check
# lab: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 400 --env ROUNDS=40
# lab long: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 3000 --env ROUNDS=2000
# tier long: long
# lab debug: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --kernel debug --timeout 1200 --env ROUNDS=40
# tier debug: long
# lab bookworm: --release bookworm --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 600 --env ROUNDS=40
# tier bookworm: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"

# The disk takes 1 ms for each request, so that a truncation meets writes in progress.
if ! null_disk files 400 irqmode=2 completion_nsec=1000000; then
	notok "the disk is there" "null_blk cannot be set up"
	exit 1
fi
disk=$(disk_of files)
mnt=$LIB_TMP/files
mkdir "$mnt"

# new_fs KIND: mount an empty file system on $mnt
new_fs() {
	case $1 in
	ext4) mkfs.ext4 -q -F "$disk" ;;
	xfs) mkfs.xfs -q -f "$disk" ;;
	esac > "$LIB_TMP/mkfs" 2>&1 && mount "$disk" "$mnt" && return
	show_tail "$LIB_TMP/mkfs"
	notok "there is an $1 file system"
	return 1
}

for fs in ext4 xfs; do
	new_fs $fs || continue
	dd if=/dev/zero of="$mnt/file" bs=1M count=4 oflag=direct status=none
	direct_files "$mnt/file" "${ROUNDS:-40}" > "$LIB_TMP/report"
	report_file "$LIB_TMP/report" "$fs: "
	if umount "$mnt"; then
		ok "$fs: the file system can be unmounted"
	else
		notok "$fs: the file system can be unmounted"
	fi
done
