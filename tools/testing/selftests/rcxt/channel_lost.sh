#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the channels of a netdev that is removed raise an event and are destroyed; shared job memory stays usable by another device
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 300 --env ROUNDS=5
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 1500 --env ROUNDS=20
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

rounds=${ROUNDS:-5}
LOST=${LAB_DRIVER}_lost
# When a device is removed, the kernel destroys its objects. With this variable, libibverbs reports success when the
# program destroys them afterwards.
export RDMAV_ALLOW_DISASSOCIATE_DESTROY=1

gid=$(gid_index) || exit 1
before=$(resources "$RDMA_DEV")
kmemleak_mark
for round in $(seq 0 "$rounds"); do
	name="a netdev is deleted during traffic of channels, round $round"
	ip link add lost0 type dummy && ip link set lost0 up && ip addr add 10.98.1.1/24 dev lost0 &&
		device_add "$LOST" lost0 10.98.1.1 || notok "$name" "no second device"
	lost_gid=$(gid_of "$LOST" 10.98.1.1)
	run "$name" channel_lost -d "$LOST" -g "$lost_gid" -d "$RDMA_DEV" -g "$gid" "ip link del lost0"
	[ "$round" = "$rounds" ] && report_file "$LIB_TMP/run"
	device_gone "$LOST" || notok "$name" "the device is still there"
	# Round 0 makes allocations that stay, such as caches. Later rounds must not add to them.
	[ "$round" = 0 ] && memory_mark
done

# Programs in the initial namespace use a device in another namespace, which is then deleted.
name="the device of a deleted namespace is removed while programs outside use it"
ip netns add away && ip -n away link set lo up && ip -n away link add away0 type dummy &&
	ip -n away link set away0 up && ip -n away addr add 10.98.2.1/24 dev away0 &&
	ip netns exec away rdma link add "$LOST" type "$LAB_DRIVER" netdev away0 &&
	device_ready "$LOST" 10.98.2.1 || notok "$name" "no device in a namespace"
command="channel_close -d $LOST -g $(gid_of "$LOST" 10.98.2.1) -p 18840 -n 1000000000"
server_start "$command" 120
$command "$IP_1" > "$LIB_TMP/client" 2>&1 &
client=$!
sleep 2
if ! kill -0 $client; then
	notok "$name" "there is no traffic"
	show_tail "$LIB_TMP/client"
elif ip netns del away && device_gone "$LOST"; then
	ok "$name"
else
	notok "$name" "the device is still there"
fi
kill -KILL $client -- -$SERVER 2> /dev/null
ended $client 10 && ended $SERVER 10 || notok "$name" "the programs cannot be killed"

resources_check "the device has as many objects as before" "$RDMA_DEV" "$before"
memory_check "memory in use has not grown" 4
if module_remove; then
	ok "the module unloads at the end"
else
	notok "the module unloads at the end"
fi
kmemleak_check "kmemleak reports no leak"
tasks_check "no task hangs"
