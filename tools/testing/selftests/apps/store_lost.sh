#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an attached export loses no committed data if the server, the client, the link or the power of the disk fails
# tier: long
# lab: --nodes 2 --packages dmsetup,e2fsprogs,fio --timeout 1500 --memory 1536 --env ROUNDS=3
# lab long: --nodes 2 --packages dmsetup,e2fsprogs,fio --timeout 6000 --memory 1536 --env ROUNDS=20

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"
. "$LAB_SRC/selftests/apps/attached.sh"

mib=96 rounds=${ROUNDS:-3}
mnt=$LIB_TMP/mnt
commits=$LAB_SRC/selftests/apps/commits.py
# the client's log of commits, which node 1 also reads
shared=$LAB_CTL/commits
mkdir -p "$mnt" "$shared"

config() {
	printf '[disk]\npath = %s\nwrite = yes\nallow = all\n' "$1" > "$LIB_TMP/conf"
}

# ---- node 1 ----

serve() {
	if ! null_disk data $mib discard=1 || ! null_disk log 768 || ! null_disk again $mib || ! modprobe dm-log-writes; then
		notok "the disks are there" "null_blk or dm-log-writes cannot be set up"
		return
	fi
	config "$(disk_of data)"
	server_begin
	barrier serving
	steps
}

# Export the disk through dm-log-writes, whose log has only those writes that survive a loss of power.
logged_begin() {
	server_end
	dd if=/dev/zero of="$(disk_of data)" bs=1M oflag=direct status=none 2> /dev/null
	dd if=/dev/zero of="$(disk_of log)" bs=1M count=1 oflag=direct status=none
	dmsetup create logged --table "0 $((mib * 2048)) log-writes $(disk_of data) $(disk_of log)"
	udevadm settle --timeout=10
	config /dev/mapper/logged
	server_begin
}

# Put marks into the log while the client commits. A commit that ended before a mark must precede the mark in the log.
logged_marks() {
	local mark
	for mark in $(seq 0 $((MARKS - 1))); do
		tail -n 1 "$shared/log" > "$shared/mark.$mark"
		dmsetup message logged 0 mark "flush$mark"
		sleep 1
	done
}

logged_end() {
	server_end
	dmsetup remove logged
}

MARKS=10

# For each mark, rebuild the disk as if the power had failed at the mark, and check the commits on this disk.
logged_check() {
	local mark number name
	for mark in $(seq 0 $((MARKS - 1))); do
		number=$(cat "$shared/mark.$mark") name="$1: the power fails at mark $mark"
		disk_fill "$(disk_of again)"
		direct_power replay "$(disk_of log)" "$(disk_of again)" "$mark" > "$LIB_TMP/report"
		grep -q '^ok' "$LIB_TMP/report" || notok "$name: replay" "$(tail -n 2 "$LIB_TMP/report")"
		mount "$(disk_of again)" "$mnt" || notok "$name: mount"
		if "$commits" check "$mnt/base" /dev/null "${number:-0}" > "$LIB_TMP/out" 2>&1; then
			ok "$name: committed rows are there"
		else
			notok "$name: committed rows are there" "$(tail -n 1 "$LIB_TMP/out")"
		fi
		umount "$mnt"
		run "$name: the file system is clean" e2fsck -fn "$(disk_of again)"
	done
}

# ---- node 2 ----

make_files() {
	run "$1: mkfs" mkfs.ext4 -q -F "$BLOCK"
	mount "$BLOCK" "$mnt" || notok "$1: mount"
	: > "$shared/log"
}

commit_begin() {
	"$commits" write "$mnt/base" "$1" "$shared/log" > "$LIB_TMP/commits" 2>&1 &
	COMMITTER=$!
}

committed_more() {
	[ "$(wc -l < "$shared/log")" -gt "$1" ]
}

# commits_go_on NAME: the program must commit more within 90 s
commits_go_on() {
	if within 90 committed_more "$(wc -l < "$shared/log")"; then
		ok "$1"
	else
		notok "$1" "$(tail -n 1 "$LIB_TMP/commits") $(tail -n 3 "$LIB_TMP/attach.err")"
	fi
}

commit_end() {
	kill -KILL $COMMITTER 2> /dev/null
	wait $COMMITTER 2> /dev/null
}

check_commits() {
	run "$1: committed rows are there" "$commits" check "$mnt/base" "$shared/log"
}

unmount() {
	umount "$mnt" 2> /dev/null || umount -l "$mnt"
}

link_down() {
	ip link set "$NETDEV" down
	sleep "$1"
	ip link set "$NETDEV" up
	ip addr replace "$MY_IP6/64" dev "$NETDEV" nodad
	device_ready "$RDMA_DEV" "$MY_IP" || notok "the device is ready again"
}

# survive NAME MODE FAULT...: after the command FAULT, commits on the same mounted file system must go on
survive() {
	local name="$2: commits go on after $1"
	commit_begin "$2"
	within 30 committed_more 3
	shift 2
	"$@"
	commits_go_on "$name"
	commit_end
}

use_sqlite() {
	local mode=$1 round
	attach
	make_files "$mode"
	survive "a restart of the server" "$mode" node_1 server_again
	survive "a link that is down for 10 s" "$mode" link_down 10
	check_commits "$mode: after faults of the connection"
	for round in $(seq "$rounds"); do
		commit_begin "$mode"
		within 30 committed_more "$(($(wc -l < "$shared/log") + 5))"
		kill -KILL $ATTACHED
		wait $ATTACHED 2> /dev/null
		commit_end
		unmount
		within 10 is_gone
		attach
		mount "$BLOCK" "$mnt" || notok "$mode: mount after a kill"
		check_commits "$mode: kill $round of the client"
	done
	for round in $(seq "$rounds"); do
		commit_begin "$mode"
		within 30 committed_more "$(($(wc -l < "$shared/log") + 5))"
		# If bytes may be lost, all I/O fails until the device is attached again.
		node_1 server_again KILL
		within 30 attach_said "connected again\|may have lost"
		sleep 1
		commit_end
		unmount
		kill -TERM $ATTACHED
		ended $ATTACHED 20
		attach
		mount "$BLOCK" "$mnt" || notok "$mode: mount after a kill of the server"
		check_commits "$mode: kill $round of the server"
	done
	unmount
	run "$mode: the file system is clean" e2fsck -fn "$BLOCK"
	detach
}

use_power() {
	local mode=$1
	node_1 logged_begin
	attach
	make_files "$mode"
	commit_begin "$mode"
	within 30 committed_more 0
	node_1 logged_marks
	commits_go_on "$mode: commits on a logged disk"
	commit_end
	unmount
	detach
	node_1 logged_end
	node_1 logged_check "$mode"
	# Export the plain disk again, because the next mode begins with a new log.
	node_1 plain_begin
}

plain_begin() {
	config "$(disk_of data)"
	server_begin
}

# fio writes and verifies the device while the connection is lost three times.
use_fio() {
	attach
	fio --name=verify --filename="$BLOCK" --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bsrange=4k-128k \
		--verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_backlog=256 --time_based --runtime=60 \
		--eta=never > "$LIB_TMP/fio" 2>&1 &
	FIO=$!
	sleep 3
	node_1 server_again
	sleep 3
	link_down 10
	sleep 3
	node_1 server_again
	ended $FIO 300
	if [ "$JOB_STATUS" = 0 ]; then
		ok "fio verifies all bytes while the connection is lost"
	else
		notok "fio verifies all bytes while the connection is lost" "status $JOB_STATUS: $(tail -n 3 "$LIB_TMP/fio")"
	fi
	grep -E '^ +(read|write): ' "$LIB_TMP/fio" | sed 's/^ */#   /'
	sed 's/^/#   /' "$LIB_TMP/attach.err"
	detach
}

use() {
	modprobe ublk_drv || notok "the kernel has ublk"
	barrier serving 120
	use_fio
	use_sqlite wal
	use_sqlite delete
	use_power wal
	use_power delete
	node_1 end
}

if [ "$NODE" = 1 ]; then
	serve
else
	use
fi
