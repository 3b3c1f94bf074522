#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a memory window gives access to its range and to the right queue pairs only, and to no queue pair after its invalidation
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 400
# lab bookworm: --release bookworm --nodes 1 --cpus 2 --timeout 400
# tier bookworm: long
# lab backports: --release backports --nodes 1 --cpus 2 --timeout 400
# tier backports: long
# lab rt: --release rt --nodes 1 --cpus 2 --timeout 1200
# tier rt: long
# lab rt-debug: --kernel rt-debug --nodes 1 --cpus 2 --timeout 1800
# tier rt-debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# try_as TYPE: run the tests with windows of type 2A or 2B; the names of the results begin with the type
try_as() {
	local before
	before=$(resources "$RDMA_DEV")
	memory_mark
	MW_TYPE=$1 report windows
	resources_check "$1: the device has as many objects as before" "$RDMA_DEV" "$before"
	# A process with bound windows and pinned pages was killed: its memory must also be released.
	memory_check "$1: no memory is leaked" 200
}

# Run some tests before memory_mark, because the first one makes allocations that stay, such as caches.
MW_TYPE=2B windows type > /dev/null

try_as 2B
[ "$LAB_DRIVER" = nhca ] || exit

run "module parameter: the default is 2B" grep -qx 2B /sys/module/nhca/parameters/mw_type
if rdma link del "$RDMA_DEV" && module_remove && modprobe nhca mw_type=2A &&
	device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"; then
	try_as 2A
else
	notok "2A: the module is reloaded" "see above"
fi
rdma link del "$RDMA_DEV"
module_remove
if modprobe nhca mw_type=3 2> /dev/null; then
	notok "module parameter: an invalid type is refused" "mw_type=3 is accepted"
else
	ok "module parameter: an invalid type is refused"
fi
