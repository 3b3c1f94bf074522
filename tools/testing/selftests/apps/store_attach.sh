#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a file system on an attached export keeps what was synced, also if the client is killed; I/O waits for a lost server
# tier: long
# lab: --nodes 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 400 --env ROUNDS=3
# lab long: --nodes 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 4000 --env ROUNDS=60
# tier long: long
# lab rxe: --nodes 2 --driver 1=nhca,2=rxe --packages dmsetup,e2fsprogs,xfsprogs --timeout 400 --env ROUNDS=3
# tier rxe: long
# lab debug: --nodes 2 --packages dmsetup,e2fsprogs,xfsprogs --kernel debug --timeout 1600 --env ROUNDS=3
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"
. "$LAB_SRC/selftests/apps/attached.sh"

mib=320 rounds=${ROUNDS:-3}
mnt=$LIB_TMP/mnt
mkdir -p "$mnt"

serve() {
	if ! null_disk disk $mib cache_size=4 discard=1; then
		notok "the disk is there" "null_blk cannot be set up"
		return
	fi
	disk=$(disk_of disk)
	printf '[disk]\npath = %s\nwrite = yes\nallow = all\n' "$disk" > "$LIB_TMP/conf"
	server_begin
	barrier serving
	steps
}

# bad_block + or -: let accesses to the 4 KiB at 40 MiB of the disk fail, or succeed again
bad_block() {
	echo "${1}81920-81927" > "$NULL_DISKS/disk/badblocks"
}

# Write files whose names are their checksums, and sync each. The names of synced files go to $LIB_TMP/synced.
write_files() {
	local number
	for number in $(seq "$1"); do
		head -c $((RANDOM * 20 + 1)) /dev/urandom > "$mnt/new" &&
			sync "$mnt/new" && name=$(sha256sum < "$mnt/new" | cut -c -64) &&
			mv "$mnt/new" "$mnt/$name" && sync "$mnt" && echo "$name" >> "$LIB_TMP/synced" || return
	done
}

# check_files WHAT: all synced files must be there with their bytes
check_files() {
	local name count=0
	while read -r name; do
		if [ "$(sha256sum < "$mnt/$name" | cut -c -64)" != "$name" ]; then
			notok "$1" "file $name is missing or wrong"
			return
		fi
		count=$((count + 1))
	done < "$LIB_TMP/synced"
	ok "$1"
	echo "# $count files"
}

use_file_system() {
	local type=$1 round
	: > "$LIB_TMP/synced"
	attach
	run "$type: mkfs" "mkfs.$type" "${@:2}" "$BLOCK"
	mount "$BLOCK" "$mnt"
	write_files 30 || notok "$type: files are written"
	kill -TERM $ATTACHED
	sleep 1
	if kill -0 $ATTACHED 2> /dev/null && grep -q "is in use" "$LIB_TMP/attach.err"; then
		ok "$type: a mounted device is not detached"
	else
		notok "$type: a mounted device is not detached" "$(cat "$LIB_TMP/attach.err")"
	fi
	umount "$mnt"
	detach
	attach -r
	mount -o ro "$BLOCK" "$mnt"
	check_files "$type: files are there when the device is attached again"
	umount "$mnt"
	[ "$(cat "/sys/block/${BLOCK#/dev/}/ro")" = 1 ] || notok "$type: the device is read-only"
	detach

	for round in $(seq "$rounds"); do
		attach
		mount "$BLOCK" "$mnt" || notok "$type: round $round: mount"
		write_files 1000 2> /dev/null &
		WRITER=$!
		sleep "$((RANDOM % 3 + 1)).$((RANDOM % 10))"
		kill -KILL $ATTACHED
		wait $ATTACHED $WRITER 2> /dev/null
		umount "$mnt" 2> /dev/null || umount -l "$mnt"
		for _ in $(seq 100); do
			[ -b "$BLOCK" ] || break
			sleep 0.1
		done
	done
	attach
	# The mount replays the log or journal, as the check of the file system below requires.
	mount "$BLOCK" "$mnt" && check_files "$type: synced files survive $rounds times that the client was killed"
	umount "$mnt"
	case $type in
	ext4) run "ext4: the file system is clean" fsck.ext4 -fn "$BLOCK" ;;
	xfs) run "xfs: the file system is clean" xfs_repair -n "$BLOCK" ;;
	esac
	detach
}

killed_numbers() {
	local file count=0
	for file in /dev/ublkc*; do
		[ -e "$file" ] && count=$((count + 1))
	done
	echo $count
}

# range FIRST LAST: print the checksum of the block device from MiB FIRST to MiB LAST
range() {
	dd if="$BLOCK" bs=1M skip="$1" count=$(($2 - $1 + 1)) iflag=direct status=none | sha256sum
}

same_ranges() {
	if [ "$(range 8 11)" = "$zeros" ] && [ "$(range 0 7)" = "$head" ] && [ "$(range 12 15)" = "$tail" ]; then
		ok "$1"
	else
		notok "$1" "$(range 0 7; range 8 11; range 12 15)"
	fi
}

fill_ranges() {
	dd if=/dev/urandom of="$BLOCK" bs=1M count=16 iflag=fullblock oflag=direct status=none
	head=$(range 0 7) tail=$(range 12 15)
}

# Test DISCARD and WRITE ZEROES. null_blk returns zeros for blocks that were discarded.
use_ranges() {
	local zeros head tail
	zeros=$(head -c 4M /dev/zero | sha256sum)
	attach
	fill_ranges
	run "blkdiscard" blkdiscard -o 8M -l 4M "$BLOCK"
	same_ranges "a discarded range has no earlier bytes"
	fill_ranges
	run "blkdiscard -z" blkdiscard -z -o 8M -l 4M "$BLOCK"
	same_ranges "WRITE ZEROES writes zeros, and only there"
	fill_ranges
	run "fallocate -z" fallocate -z -o 8M -l 4M "$BLOCK"
	same_ranges "WRITE ZEROES writes zeros over what was just written"
	detach
	attach -r
	if [ "$(cat "/sys/block/${BLOCK#/dev/}/queue/discard_max_bytes")" = 0 ]; then
		ok "a read-only device has no DISCARD"
	else
		notok "a read-only device has no DISCARD"
	fi
	detach
}

read_at() {
	dd if="$BLOCK" of=/dev/null bs=4k skip="$1" count=1 iflag=direct status=none 2> "$LIB_TMP/dd"
}

# The disk of the server cannot read a block: only the request for this block may fail.
use_bad() {
	attach
	dd if="$LIB_TMP/data" of="$BLOCK" bs=16k oflag=direct status=none 2> "$LIB_TMP/writes" &
	WRITER=$!
	node_1 bad_block +
	if read_at 10240; then
		notok "a block that the disk cannot read fails"
	else
		ok "a block that the disk cannot read fails"
	fi
	node_1 bad_block -
	if wait $WRITER && read_at 10239 && read_at 10240; then
		ok "other blocks do not fail"
	else
		notok "other blocks do not fail" "$(cat "$LIB_TMP/dd" "$LIB_TMP/writes" "$LIB_TMP/attach.err")"
	fi
	detach
}

# The server is restarted: I/O must wait for it, and then go on.
use_again() {
	attach
	dd if="$LIB_TMP/data" of="$BLOCK" bs=16k oflag=direct,dsync status=none 2> "$LIB_TMP/dd" &
	WRITER=$!
	node_1 server_again
	wait $WRITER
	if [ $? = 0 ] && [ "$(range 0 23)" = "$(sha256sum < "$LIB_TMP/data")" ] && attach_said "connected again"; then
		ok "writes go on after a restart of the server"
	else
		notok "writes go on after a restart of the server" "$(cat "$LIB_TMP/dd" "$LIB_TMP/attach.err")"
	fi
	# If the server is killed, only bytes that were flushed before are guaranteed to remain.
	dd if="$LIB_TMP/data" of="$BLOCK" bs=1M oflag=direct conv=fsync status=none
	node_1 server_again KILL
	if [ "$(range 0 23)" = "$(sha256sum < "$LIB_TMP/data")" ]; then
		ok "flushed bytes are there after the server was killed"
	else
		notok "flushed bytes are there after the server was killed" "$(cat "$LIB_TMP/attach.err")"
	fi
	detach
}

# The server is killed after it has acknowledged bytes that were not flushed. They may be lost, so all I/O must fail.
use_lost() {
	attach
	dd if="$LIB_TMP/data" of="$BLOCK" bs=64k count=1 oflag=direct status=none
	node_1 server_again KILL
	within 20 attach_said "may have lost"
	if dd if="$BLOCK" of=/dev/null bs=4k count=1 iflag=direct 2> "$LIB_TMP/dd"; then
		notok "I/O fails if acknowledged bytes may be lost" "$(cat "$LIB_TMP/attach.err")"
	else
		ok "I/O fails if acknowledged bytes may be lost"
	fi
	kill -TERM $ATTACHED
	ended $ATTACHED 20
	[ "$JOB_STATUS" = 1 ] && is_gone || notok "the device is detached after that" "status $JOB_STATUS"
	# use_gone() needs three attached devices.
	attach -t 2
	LIMITED=$ATTACHED LIMITED_BLOCK=$BLOCK
	attach
	KILLED=$ATTACHED KILLED_BLOCK=$BLOCK
	attach
}

read_block() {
	dd if="$1" of=/dev/null bs=4k count=1 iflag=direct 2> /dev/null &
	READER=$!
}

reader_failed() {
	ended $READER 20
	if [ "$JOB_STATUS" = 1 ]; then
		ok "$1"
	else
		notok "$1" "status $JOB_STATUS"
	fi
}

# The server has ended while three block devices exist. I/O must wait for the server, and fail only after a timeout, a
# kill of the client, or a detach.
use_gone() {
	read_block "$LIMITED_BLOCK"
	reader_failed "I/O fails when --timeout is over"
	read_block "$KILLED_BLOCK"
	sleep 1
	kill -KILL $KILLED
	reader_failed "I/O fails when the command is killed while the server is gone"
	read_block "$BLOCK"
	sleep 2
	kill -0 $READER 2> /dev/null || notok "I/O waits for the server"
	kill -TERM $ATTACHED
	reader_failed "I/O fails when the device is detached while the server is gone"
	kill -TERM $LIMITED
	for job in $ATTACHED $LIMITED; do
		ended $job 20
		[ "$JOB_STATUS" = 1 ] || notok "a device is detached while the server is gone" "status $JOB_STATUS"
	done
	wait $KILLED 2> /dev/null
	within 10 is_gone && [ ! -b "$LIMITED_BLOCK" ] && [ ! -b "$KILLED_BLOCK" ] || notok "the devices are gone"
	# The killed nhca-store has left the number of its ublk device. The next attach must delete this number.
	node_1 server_begin
	attach
	detach
	node_1 server_end
}

use() {
	modprobe ublk_drv || notok "the kernel has ublk"
	barrier serving 120
	leak_snapshot
	use_file_system ext4 -q -F
	use_file_system xfs -q -f
	dd if=/dev/urandom of="$LIB_TMP/data" bs=1M count=24 status=none
	use_ranges
	use_bad
	use_again
	use_lost
	node_1 server_end
	use_gone
	if [ "$(killed_numbers)" = 0 ]; then
		ok "no number of a killed client is left"
	else
		notok "no number of a killed client is left" "$(echo /dev/ublkc*)"
	fi
	leak_check "no slab object or module reference is leaked"
	node_1 end
}

if [ "$NODE" = 1 ]; then
	serve
else
	use
fi
