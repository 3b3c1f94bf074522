#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a user's random work requests, ring contents and commands, under MTU changes and link flaps, affect no other user
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 400 --env SECONDS_EACH=30
# lab debug: --machine uml --nodes 1 --cpus 2 --kernel debug --timeout 1200 --env SECONDS_EACH=60
# tier debug: long
# lab hours: --machine uml --nodes 1 --cpus 2 --kernel debug --timeout 9000 --env SECONDS_EACH=7200
# tier hours: long
# SEED is the random seed of the first process. The test prints it.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

seconds=${SECONDS_EACH:-60}
ip=10.94.1.1

ip link add hua type veth peer name hub && ip link set hua up && ip link set hub up &&
	ip addr add $ip/24 dev hua && device_add nhcahu hua $ip || {
	notok "a device on a veth" "it cannot be created"
	exit
}
gid=$(gid_of nhcahu $ip)
bystander_gid=$(gid_index)
before=$(resources nhcahu)

# Turn off the same-host path, so that the transfers of the attacker and of the bystander use packets.
echo N > /sys/module/nhca/parameters/same_host
kmemleak_mark
memory_mark

# A privileged process changes the MTU and takes the link down from time to time.
(
	mtus=(1280 1500 2048 4200 9000 16000 32768 65535)
	while :; do
		ip link set hua mtu "${mtus[RANDOM % ${#mtus[@]}]}"
		sleep "0.$((RANDOM % 5))"
		if [ $((RANDOM % 8)) = 0 ]; then
			ip link set hua down
			sleep "0.$((RANDOM % 3))"
			ip link set hua up
		fi
	done
) 2> /dev/null &
changer=$!

ulimit -l 262144
report setpriv --reuid nobody --regid nogroup --clear-groups \
	hostile_user nhcahu "$gid" "$RDMA_DEV" "$bystander_gid" "$seconds" ${SEED:+"$SEED"}
kill $changer
wait $changer 2> /dev/null
ip link set hua mtu 1500 up

resources_check "rdma res show has as many objects as before" nhcahu "$before"
memory_check "memory in use has not grown" 100
rdma link del nhcahu
device_gone nhcahu
ip link del hua
kmemleak_check "kmemleak reports no leak"
tasks_check "no task hangs"
