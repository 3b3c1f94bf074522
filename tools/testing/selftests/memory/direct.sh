#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: peers and local requests read and write a disk by its region, with a fixed amount of memory, and get the errors of the disk
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 300 --env ROUNDS=100
# lab long: --nodes 1 --cpus 2 --timeout 3000 --env ROUNDS=20000
# tier long: long
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 1200 --env ROUNDS=100
# tier debug: long
# lab files: --nodes 1 --cpus 2 --packages e2fsprogs --timeout 400 --env ROUNDS=200 --env FILES=1
# tier files: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"

if ! null_disk good 64 || ! null_disk bad 8 || ! null_disk files 32; then
	notok "the disks are there" "null_blk cannot be set up"
	exit 1
fi
good=$(disk_of good)
bad=$(disk_of bad)
files=$(disk_of files)
disk_fill "$good" "$bad" "$files"
# blocks 2048 to 2055 of 512 bytes: 4 KiB at 1 MiB
echo "+2048-2055" > $NULL_DISKS/bad/badblocks

leak_snapshot
memory_mark
report direct "$good" "$bad" "${ROUNDS:-200}"
report direct_write "$good" "$bad" "${ROUNDS:-200}"

# Compare the trace events of some tests with the counters.
traced() {
	python3 "$LAB_SRC/selftests/life/trace.py" begin "$RDMA_DEV" || exit 1
	report "$@"
	report python3 "$LAB_SRC/selftests/life/trace.py" judge "$RDMA_DEV" "$1: $5" nhca_direct_begun nhca_direct_ended \
		nhca_direct_block nhca_direct_wait
}

traced direct_write "$good" "$bad" 20 "an acknowledged WRITE"
traced direct_write "$good" "$bad" 20 "parts of the same blocks"
traced direct_write "$good" "$bad" 20 "a lost block"
traced direct_write "$good" "$bad" 20 "flushed bytes"
traced direct "$good" "$bad" 20 "peers read"

# debugfs shows a region and its pool while they exist
write_forever "$good" "$bad"
stores=$(cat /sys/kernel/debug/nhca/stores) pools=$(cat /sys/kernel/debug/nhca/pools)
kill -KILL $WRITER
ended $WRITER 20
if [[ $stores == *" $RDMA_DEV pool "*" async offset 0 length 67108864 "*" errors 0 "*" file "* ]] &&
	[[ $pools == "$RDMA_DEV pool "*" blocks 64 used "*" stores 1 "* ]]; then
	ok "debugfs shows regions and pools"
else
	notok "debugfs shows regions and pools" "pools: $pools, stores: $stores"
fi
if [ -z "$(cat /sys/kernel/debug/nhca/stores /sys/kernel/debug/nhca/pools)" ]; then
	ok "debugfs shows no region and pool of an ended process"
else
	notok "debugfs shows no region and pool of an ended process" "$(cat /sys/kernel/debug/nhca/stores)"
fi

# Test files of a file system. It must be possible to freeze and unmount the file system afterwards, because no write to
# it is in progress any more.
mnt=$LIB_TMP/files
if [ -z "$FILES" ]; then
	echo "# files of a file system are in the variant files"
elif mkdir "$mnt" && mkfs.ext4 -q -F "$files" && mount "$files" "$mnt" &&
	dd if=/dev/zero of="$mnt/file" bs=1M count=16 oflag=direct status=none; then
	report direct_write "$mnt/file" "$bad" $((${ROUNDS:-200} / 4))
	if timeout 20 fsfreeze -f "$mnt" && fsfreeze -u "$mnt" && umount "$mnt"; then
		ok "the file system can be frozen and unmounted"
	else
		notok "the file system can be frozen and unmounted"
	fi
else
	notok "there is a file system"
fi

# Run some tests with an ICRC in each packet, as with a peer that is not nhca.
insist=/sys/module/nhca/parameters/insist_icrc
echo Y > $insist
report direct_write "$good" "$bad" $((${ROUNDS:-200} / 4)) acknowledged
report direct_write "$good" "$bad" $((${ROUNDS:-200} / 4)) "own READs and receives end"
echo N > $insist

# A disk is removed while a process writes to it: the WRITE must fail.
write_forever "$files" "$bad" sync
echo 0 > $NULL_DISKS/files/power
ended $WRITER 20
if [ "$JOB_STATUS" = 3 ] && grep -q "remote operation error" "$LIB_TMP/forever"; then
	ok "a disk can be removed while it is written"
else
	notok "a disk can be removed while it is written" "status $JOB_STATUS, $(tail -1 "$LIB_TMP/forever")"
fi

# A process that is killed while it writes must leave nothing behind.
write_forever "$good" "$bad"
kill -KILL $WRITER
ended $WRITER 20
if grep -q writing "$LIB_TMP/forever" && [ "$JOB_STATUS" = 137 ]; then
	ok "a process that writes can be killed"
else
	notok "a process that writes can be killed" "status $JOB_STATUS"
fi
leak_check "no slab object or module reference is leaked"
memory_check "no page stays in use" 300
