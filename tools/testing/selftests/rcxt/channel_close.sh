#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the memory of a channel that is closed under traffic is freed when no engine uses it any more; other channels continue
# tier: check
# lab: --nodes 2 --timeout 400 --env ROUNDS=150
# lab one-host: --nodes 1 --cpus 2 --timeout 400 --env ROUNDS=150
# tier one-host: long
# lab long: --machine uml --nodes 2 --timeout 3600 --env ROUNDS=10000
# tier long: long
# lab kasan: --machine uml --kernel debug --nodes 1 --timeout 7200 --env ROUNDS=10000
# tier kasan: long
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 3600 --env ROUNDS=400
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# With KASAN, both ends are on one node. With two nodes, one sends more packets than the other can process. The
# receiver then runs softirqs only, KASAN does not release freed objects from its quarantine, and memory runs out.

rounds=${ROUNDS:-150}
gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
leak_snapshot
kmemleak_mark

command="channel_close -d $RDMA_DEV -g $gid -p 18810 -n $rounds"
pair "channels are closed during full traffic, other channels continue" "$command" "$command $IP_1" 3500
[ "$NODE" = "$NODES" ] && grep '^# ' "$LIB_TMP/client"
[ "$NODE" = 1 ] && grep '^# ' "$LIB_TMP/server"

# A recovery affects all channels of a device, so the channels that must continue are on a second device.
if [ "$NODES" = 1 ]; then
	ip link add calm0 type dummy && ip link set calm0 up && ip addr add 10.98.0.1/24 dev calm0 &&
		device_add "${LAB_DRIVER}_calm" calm0 10.98.0.1 || notok "a second device" "it cannot be created"
	calm=$(gid_of "${LAB_DRIVER}_calm" 10.98.0.1)
	command="channel_close -d $RDMA_DEV -g $gid -p 18811 -n $rounds -R 20 -D ${LAB_DRIVER}_calm -G $calm"
	pair "channels are closed amid recoveries, another device is unaffected" "$command" "$command $IP_1" 3500
	grep -h '^# ' "$LIB_TMP"/{client,server}
	resources_check "the second device has as many objects as before" "${LAB_DRIVER}_calm" \
		"${before/$RDMA_DEV/${LAB_DRIVER}_calm}"
	ip link del calm0
	device_gone "${LAB_DRIVER}_calm" || notok "the second device" "it is still there"
fi

resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
leak_check "no slab object or module reference is leaked on node $NODE"
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
