#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a file system on an export that is attached as a block device keeps what was synced, also if the client is killed
# tier: check
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

mib=320 rounds=${ROUNDS:-3}
mnt=$LIB_TMP/mnt
mkdir -p "$mnt"

serve() {
	if ! null_disk disk $mib cache_size=4; then
		notok "the disk is there" "null_blk cannot be set up"
		return
	fi
	disk=$(disk_of disk)
	printf '[disk]\npath = %s\nwrite = yes\nallow = all\n' "$disk" > "$LIB_TMP/conf"
	nhca-store serve -c "$LIB_TMP/conf" > "$LIB_TMP/server" 2>&1 < /dev/null &
	SERVER=$!
	sleep 2
	barrier serving
	barrier used 3000
	kill -TERM $SERVER
	ended $SERVER 20
	barrier stopped 60
}

# Sets ATTACHED to the command and BLOCK to its device.
attach() {
	nhca-store attach "$@" "$IP_1" disk > "$LIB_TMP/attach" 2> "$LIB_TMP/attach.err" < /dev/null &
	ATTACHED=$!
	for _ in $(seq $((100 * SLOWER))); do
		BLOCK=$(cat "$LIB_TMP/attach")
		[ -b "$BLOCK" ] && return
		sleep 0.1
	done
	notok "attach $*" "$(cat "$LIB_TMP/attach.err")"
	exit 1
}

detach() {
	kill -TERM $ATTACHED
	ended $ATTACHED 20
	[ "$JOB_STATUS" = 0 ] || notok "detach" "status $JOB_STATUS: $(cat "$LIB_TMP/attach.err")"
	[ ! -b "$BLOCK" ] || notok "detach removes the device"
}

# Writes files, each with a name that is its checksum, and syncs each.  The names of synced files go to $LIB_TMP/synced.
write_files() {
	local number
	for number in $(seq "$1"); do
		head -c $((RANDOM * 20 + 1)) /dev/urandom > "$mnt/new" &&
			sync "$mnt/new" && name=$(sha256sum < "$mnt/new" | cut -c -64) &&
			mv "$mnt/new" "$mnt/$name" && sync "$mnt" && echo "$name" >> "$LIB_TMP/synced" || return
	done
}

# check_files WHAT: all synced files are there with their bytes
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
	# The log or journal is replayed by a mount.
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

use() {
	modprobe ublk_drv || notok "the kernel has ublk"
	barrier serving 120
	leak_snapshot
	use_file_system ext4 -q -F
	use_file_system xfs -q -f
	# The server ends while the block device exists.
	attach
	barrier used
	barrier stopped 120
	if dd if="$BLOCK" of=/dev/null bs=4k count=1 iflag=direct 2> "$LIB_TMP/dd"; then
		notok "I/O fails after the server has ended"
	else
		ok "I/O fails after the server has ended"
	fi
	kill -TERM $ATTACHED
	ended $ATTACHED 20
	if [ "$JOB_STATUS" = 1 ] && [ ! -b "$BLOCK" ]; then
		ok "the device can then be detached"
	else
		notok "the device can then be detached" "status $JOB_STATUS"
	fi
	if [ "$(killed_numbers)" = 0 ]; then
		ok "no number of a killed client is left"
	else
		notok "no number of a killed client is left" "$(echo /dev/ublkc*)"
	fi
	leak_check "no slab object or module reference is leaked"
}

if [ "$NODE" = 1 ]; then
	serve
else
	use
fi
