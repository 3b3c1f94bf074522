#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a cache of registrations never sends the bytes of pages that the program has unmapped or replaced
# tier: check
# lab: --nodes 1 --cpus 2 --memory 1024 --timeout 300
# lab long: --nodes 1 --cpus 2 --memory 3072 --timeout 3000 --env ROUNDS=100000 --env WORKING_SET=1024
# tier long: long
# lab debug: --nodes 1 --cpus 2 --memory 2048 --kernel debug --timeout 1200 --env ROUNDS=1000
# tier debug: long
# lab bookworm: --release bookworm --nodes 1 --cpus 2 --memory 1024 --timeout 600
# tier bookworm: long
# lab backports: --release backports --nodes 1 --cpus 2 --memory 1024 --timeout 600
# tier backports: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

before=$(resources "$RDMA_DEV")
reg_cache arguments > /dev/null
memory_mark
# Run as a user without capabilities, because RLIMIT_MEMLOCK does not limit a user with CAP_IPC_LOCK.
ulimit -l 65536
report setpriv --reuid 65534 --clear-groups --bounding-set -all --inh-caps -all reg_cache
ulimit -l unlimited

# A process that is killed while it uses registrations leaves no objects and no memory.
ROUNDS=100000000 reg_cache "mmap, write" > "$LIB_TMP/killed" 2>&1 &
sleep 1
kill -KILL $!
wait $! 2> /dev/null
resources_check "the device has as many objects as before" "$RDMA_DEV" "$before"
memory_check "no memory is leaked" 200

# The device is removed while a process has registrations.
ROUNDS=100000000 reg_cache "mmap, write" > "$LIB_TMP/removed" 2>&1 &
sleep 1
rdma link del "$RDMA_DEV"
if ended $! 90 && [ "$JOB_STATUS" = 1 ] && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"; then
	ok "a device can be removed while a process has a cache"
else
	notok "a device can be removed while a process has a cache" "status $JOB_STATUS"
fi
run "the cache works on a new device" reg_cache "each change"
