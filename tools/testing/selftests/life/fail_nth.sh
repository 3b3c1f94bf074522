#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a verb, device or connection whose n-th allocation fails reports it, leaves nothing behind, and works the next time
# tier: long
# lab: --machine uml --kernel debug --nodes 1 --cpus 2 --modules tools/testing/selftests/ulp/kverbs,tools/testing/selftests/life/fail_init --timeout 600
# lab long: --machine uml --kernel debug --nodes 1 --cpus 2 --modules tools/testing/selftests/ulp/kverbs,tools/testing/selftests/life/fail_init --timeout 7200 --env STRIDE=7
# tier long: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/life/fail_sites.sh"

# Use modprobe, because modinfo does not find the modules that --modules adds.
module_file() {
	modprobe --show-depends "$1" | sed -n "s/.*insmod \([^ ]*\/$1\.ko\).*/\1/p"
}

modprobe udmabuf 2> /dev/null
modprobe fail_init || exit 1
ip link add nth0 type dummy && ip link set nth0 up && ip addr add 10.99.0.1/24 dev nth0 || exit 1

# The first run makes allocations that stay, such as caches, so it comes before memory_mark.
fail_nth "an RC QP" > "$LIB_TMP/warm" || show_tail "$LIB_TMP/warm"
before=$(resources "$RDMA_DEV")
# sites_begin allocates memory for histograms, so it also comes before memory_mark.
sites_begin
memory_mark
kmemleak_mark
report fail_nth
# On this kernel the creation and removal of a device take a second and make thousands of allocations, so fail only
# every STRIDE-th allocation.
report fail_nth -D -s "${STRIDE:-499}"
# The checkers of this kernel also allocate memory, and not always at the same place. So one pass misses some
# allocations of the driver.
for _ in 1 2 3; do
	report fail_nth -K "$(module_file kverbs)"
done
sites_end "$LAB_OUT/sites"
resources_check "the device has as many objects as before" "$RDMA_DEV" "$before"
memory_check "no page stays pinned and no memory is leaked" 200
gid=$(gid_index)
run "ibv_rc_pingpong passes afterwards" bash -c "ibv_rc_pingpong -d $RDMA_DEV -g $gid -c > /dev/null &
	sleep 1; ibv_rc_pingpong -d $RDMA_DEV -g $gid -c $MY_IP"
if module_remove; then
	ok "the module unloads at the end"
	report fail_nth -M "$(module_file "$DRIVER_MODULE")"
	# kmemleak does not find a leaked slab cache, because the kernel has a list of all slab caches.
	run "no slab cache of the driver remains" bash -c '! grep ^nhca /proc/slabinfo'
else
	notok "the module unloads at the end"
fi
kmemleak_check "kmemleak reports no leak"
tasks_check "no task hangs"
