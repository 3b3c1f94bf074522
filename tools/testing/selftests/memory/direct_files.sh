#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: regions of files obey their file system: a truncation is not undone, and a full file system or a refused file gives its errno
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
if ! null_disk files 330 irqmode=2 completion_nsec=1000000; then
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

# Allocate all blocks of the file system, without writing them.
fill_fs() {
	local size number=0
	for size in 64M 8M 1M 64K 4K; do
		while fallocate -l $size "$mnt/rest.$number" 2> /dev/null; do
			number=$((number + 1))
		done
	done
	sync
}

# files NAME MODE FILE NUMBER: run direct_files; its results begin with NAME
files() {
	local name=$1
	shift
	direct_files "$@" > "$LIB_TMP/report"
	report_file "$LIB_TMP/report" "$name: "
}

for fs in ext4 xfs; do
	new_fs $fs || continue
	dd if=/dev/zero of="$mnt/file" bs=1M count=4 oflag=direct status=none
	# On ext4 before Linux 6.6 the first write of a block can undo a truncation (Documentation/direct.rst), so test
	# only a file without holes.
	case $fs:$(uname -r) in
	ext4:6.1.*) files $fs truncate-blocks "$mnt/file" "${ROUNDS:-40}" ;;
	*) files $fs truncate "$mnt/file" "${ROUNDS:-40}" ;;
	esac

	# Only the first MiB of the file has blocks when the file system is full.
	dd if=/dev/zero of="$mnt/sparse" bs=1M count=1 oflag=direct status=none
	truncate -s 4M "$mnt/sparse"
	fill_fs
	files "$fs is full" full "$mnt/sparse" 0
	rm "$mnt/rest."*
	sync
	files "$fs has room again" works "$mnt/sparse" 0
	[ $fs = ext4 ] || umount "$mnt"
	[ $fs = ext4 ] || continue

	dd if=/dev/zero of="$mnt/swap" bs=1M count=4 oflag=direct status=none
	chmod 600 "$mnt/swap"
	mkswap -q "$mnt/swap"
	swapon "$mnt/swap"
	# errno 26 ETXTBSY
	files "a swap file" not-written "$mnt/swap" 26
	files "a swap file" reads "$mnt/swap" 0
	swapoff "$mnt/swap"
	files "a file" swapped "$mnt/swap" 0

	# errno 1 EPERM, 9 EBADF, and below 95 EOPNOTSUPP
	files "a file open for reading" not-opened "$mnt/file" 9
	files "a file open for appending" not-appended "$mnt/file" 1
	if chattr +a "$mnt/file"; then
		files "an append-only file" not-appended "$mnt/file" 1
		chattr -a "$mnt/file"
	fi
	mkdir "$mnt/upper" "$mnt/work" "$mnt/lower" "$LIB_TMP/overlay"
	dd if=/dev/zero of="$mnt/upper/file" bs=1M count=4 oflag=direct status=none
	if modprobe overlay && mount -t overlay overlay \
		-o "lowerdir=$mnt/lower,upperdir=$mnt/upper,workdir=$mnt/work" "$LIB_TMP/overlay"; then
		files "a file of overlayfs" works "$LIB_TMP/overlay/file" 0
		umount "$LIB_TMP/overlay"
	else
		notok "overlayfs is mounted"
	fi
	umount "$mnt"
done

mount -t tmpfs tmpfs "$mnt"
truncate -s 4M "$mnt/file"
files "a file of tmpfs for reading" not-read "$mnt/file" 95
files "a file of tmpfs for writing" not-written "$mnt/file" 95
umount "$mnt"
files "a file of proc" not-read /proc/version 95
files "a file of sysfs" not-read /sys/class/net/lo/mtu 95

if null_disk zoned 16 zoned=1 zone_size=4; then
	files "a zoned disk" not-written "$(disk_of zoned)" 95
	files "a zoned disk" reads "$(disk_of zoned)" 0
else
	notok "there is a zoned disk"
fi

# A thin volume of 16 MiB, with data blocks for 1 MiB
if null_disk data 8 && null_disk meta 4 && modprobe dm-thin-pool &&
	dmsetup create pool --table "0 2048 thin-pool $(disk_of meta) $(disk_of data) 128 0 1 error_if_no_space" &&
	dmsetup message pool 0 "create_thin 0" &&
	dmsetup create thin --table "0 32768 thin /dev/mapper/pool 0"; then
	udevadm settle --timeout=10
	dd if=/dev/zero of=/dev/mapper/thin bs=1M count=1 oflag=direct status=none
	files "a thin volume without room" full /dev/mapper/thin 0
	dmsetup remove thin
	dmsetup remove pool
else
	notok "there is a thin volume"
fi
