#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: 100,000 rCxts are in use at the same time on 64 channels, and take 64 bytes each plus the bitmaps that they need
# tier: long
# lab: --machine uml --nodes 2 --timeout 400
# lab qemu: --nodes 2 --timeout 1200

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

count=100000
gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")

# Print the bytes of the pages of an rCxt pool. vmalloc also has a smaller area for it, the array of page pointers.
pool_bytes() {
	sed -n '/nhca_rcxt_pool_init/ s/.* pages=\([0-9]*\).*/\1/p' /proc/vmallocinfo | sort -n |
		awk '{ n = 4096 * $1 } END { print n + 0 }'
}

available() {
	sync
	echo 3 > /proc/sys/vm/drop_caches
	awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo
}

# remake RCXTS: reload the module with the parameter rcxts, and add the device
remake() {
	module_remove && modprobe "$DRIVER_MODULE" rcxts="$1" && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"
}

bytes=$(pool_bytes)
echo "# pool of a device: $bytes bytes, $((bytes / count)) for each of $count rCxts"
if [ "$bytes" -ge $((64 * count)) ] && [ "$bytes" -le $((64 * count + 4096)) ]; then
	ok "an rCxt takes 64 bytes on node $NODE"
else
	notok "an rCxt takes 64 bytes on node $NODE" "the pool has $bytes bytes"
fi

command="many_rcxts -d $RDMA_DEV -g $gid -p 18820 -n $count"
pair "all rCxts are in use at the same time, and each transfer completes once" "$command" "$command $IP_1" 350
[ "$NODE" = "$NODES" ] && grep '^# ' "$LIB_TMP/client"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"

# The second round counts: in the first the module makes allocations that stay.
for _ in 1 2; do
	remake 1 || notok "a device with one rCxt on node $NODE" "it cannot be created"
	one=$(available)
	remake $count || notok "a device with $count rCxts on node $NODE" "it cannot be created"
	many=$(available)
done
echo "# additional memory of a device with $count rCxts, compared with one rCxt: $((one - many)) KiB," \
	"$(((one - many) * 1024 / count)) bytes for each"
