#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a disk that hangs delays only the processes that have regions of it; these processes end when the disk works again
# tier: long
# lab: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 300
# lab debug: --nodes 1 --cpus 2 --packages dmsetup,e2fsprogs,xfsprogs --kernel debug --timeout 900
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"

if ! null_disk good 16 || ! null_disk slow 32 cache_size=4 || ! modprobe dm-mod ||
	! dmsetup create hung --table "0 65536 linear $(disk_of slow) 0"; then
	notok "the disks are there" "null_blk or the device mapper cannot be set up"
	exit 1
fi
good=$(disk_of good)
udevadm settle --timeout=10
disk_fill "$good" "$(disk_of slow)"
leak_snapshot
memory_mark
report direct_hung hung "$good"

# in_time NAME COMMAND...: the command must end within 10 s while the disk hangs
in_time() {
	local name=$1
	shift
	RUN_TIMEOUT=10 run "while a disk hangs: $name" "$@"
}

log_mark
begun=$SECONDS
timeout=$(sysctl -n kernel.hung_task_timeout_secs)
sysctl -qw kernel.hung_task_timeout_secs=13
write_forever /dev/mapper/hung "$good"
victim=$WRITER
dmsetup suspend --noflush hung
sleep 0.5
kill -KILL $victim
sleep 1

name="a process that was killed waits for its disk"
if [ "$(awk '/^State/ { print $2 }' "/proc/$victim/status")" = D ] &&
	grep -q nhca_store_stop /proc/$victim/task/*/stack; then
	ok "$name"
else
	notok "$name" "$(grep State "/proc/$victim/status")"
	sed 's/^/#   /' /proc/$victim/task/*/stack
fi
in_time "a region of another process works and ends" direct_write "$good" "$good" 4 "an acknowledged WRITE"
write_forever "$good" "$good"
kill -KILL $WRITER
ended $WRITER 10
if [ "$JOB_STATUS" = 137 ]; then
	ok "while a disk hangs: another process can be killed"
else
	notok "while a disk hangs: another process can be killed" "status $JOB_STATUS"
fi
in_time "rdma link" rdma link show
in_time "rdma resource" rdma resource show mr -dd
in_time "rdma statistic" rdma statistic show link "$RDMA_DEV/1"
in_time "keys in debugfs" cat /sys/kernel/debug/nhca/keys
in_time "a device is added" bash -c "ip link add hung9 type dummy && ip link set hung9 up &&
	rdma link add nhca9 type nhca netdev hung9"
in_time "that device is removed" rdma link delete nhca9
in_time "a netdev is removed with its device" bash -c "rdma link add nhca9 type nhca netdev hung9 && ip link delete hung9"
in_time "devices are listed" ibv_devices

# The kernel's detector of hung tasks runs every 13 s, and must report nothing.
while [ $((SECONDS - begun)) -lt 40 ]; do
	sleep 1
done
if log_has "waits for the disk of a region"; then
	ok "the kernel log says who waits"
else
	notok "the kernel log says who waits"
fi
if log_has "blocked for more than"; then
	notok "the wait is not reported as a hung task" "it is"
else
	ok "the wait is not reported as a hung task"
fi
sysctl -qw kernel.hung_task_timeout_secs="$timeout"
dmsetup resume hung
ended $victim 20
if [ "$JOB_STATUS" = 137 ]; then
	ok "the process ends when the disk works again"
else
	notok "the process ends when the disk works again" "status $JOB_STATUS"
fi
leak_check "no slab object or module reference is leaked"
memory_check "no page stays in use" 300
if dmsetup remove hung; then
	ok "the disk is not in use"
else
	notok "the disk is not in use"
fi
tasks_check "no task hangs"
