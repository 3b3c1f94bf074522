#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a memory window gives access to its range and to the right queue pairs only, and to nobody after it is closed
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

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

# Every name says which of the two type 2 windows it was tried with.
try_as() {
	local before
	before=$(resources "$RDMA_DEV")
	memory_mark
	MW_TYPE=$1 windows || LIB_FAILED=1
	resources_check "$1: all objects are gone" "$RDMA_DEV" "$before"
	# Bound windows and pinned pages of a process that was killed are gone, too.
	memory_check "$1: no memory is left behind" 200
}

# Another program first: what the first one allocates for good is no leak.
MW_TYPE=2B windows type > /dev/null

try_as 2B
[ "$LAB_DRIVER" = nhca ] || exit

run "module parameter: 2B is what there is" grep -qx 2B /sys/module/nhca/parameters/mw_type
if rdma link del "$RDMA_DEV" && module_remove && modprobe nhca mw_type=2A &&
	device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"; then
	try_as 2A
else
	notok "2A: module loaded anew" "see above"
fi
rdma link del "$RDMA_DEV"
module_remove
if modprobe nhca mw_type=3 2> /dev/null; then
	notok "module parameter: nonsense is refused" "mw_type=3 is taken"
else
	ok "module parameter: nonsense is refused"
fi
