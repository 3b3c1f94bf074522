#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a device is removed, alone or with its netdev or namespace, during traffic, failing allocations and CPU hotplug
# tier: long
# lab: --machine uml --kernel debug --nodes 2 --cpus 2 --timeout 400 --env SLOWER=4 --env ROUNDS=4
# lab long: --machine uml --kernel debug --nodes 2 --cpus 2 --timeout 3600 --env SLOWER=4 --env ROUNDS=60
# tier long: long
# lab hotplug: --nodes 2 --cpus 2 --timeout 1800 --env ROUNDS=16
# tier hotplug: long
# lab debug: --nodes 2 --cpus 2 --kernel debug --timeout 3600 --env ROUNDS=16
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/life/fail_sites.sh"

rounds=${ROUNDS:-4}
ways=("its link is deleted" "its netdev is deleted" "its namespace is deleted" "its netdev changes the namespace")
DEV=${LAB_DRIVER}_td EXTRA=td0
EXTRA_IP=192.168.79.$NODE
cpu1=/sys/devices/system/cpu/cpu1/online

# Until the file "stop" exists, take CPU 1 offline and online and try to unload the module.
disturb() {
	while [ ! -e "$LIB_TMP/stop" ]; do
		if [ -w $cpu1 ]; then
			echo 0 > $cpu1
			sleep 0.0$((RANDOM % 5))
			echo 1 > $cpu1
		fi
		# If the module unloads, its devices are removed with it.
		rmmod "$DRIVER_MODULE" 2> /dev/null && echo "the module went"
		sleep 0.0$((RANDOM % 10))
	done
}

packets_sent() {
	cat "/sys/class/infiniband/$DEV/ports/1/hw_counters/sent_pkts" 2> /dev/null || echo 0
}

flows() {
	local before deadline=$((SECONDS + 30))
	before=$(packets_sent)
	while [ $SECONDS -le $deadline ]; do
		[ $(($(packets_sent) - before)) -gt 100 ] && return 0
		sleep 0.1
	done
	return 1
}

# device_make WAY: create a macvlan and a device on it, in the namespace tear if WAY deletes the namespace. $IN is the
# prefix of commands that must run in the namespace of the macvlan.
device_make() {
	IN=
	ip link add "$EXTRA" link "$NETDEV" type macvlan mode bridge || return 1
	if [[ $1 == *namespace* ]]; then
		ip netns add tear && ip link set "$EXTRA" netns tear || return 1
		[ "$1" = "its namespace is deleted" ] && IN="ip netns exec tear"
		[ "$IN" ] || ip -n tear link set "$EXTRA" netns 1 || return 1
	fi
	$IN ip link set "$EXTRA" up && $IN ip addr add "$EXTRA_IP/24" dev "$EXTRA" &&
		$IN ip link set lo up || return 1
	$IN rdma link add "$DEV" type "$LAB_DRIVER" netdev "$EXTRA" && device_ready "$DEV" "$EXTRA_IP"
}

device_there() {
	[ -e "/sys/class/infiniband/$DEV" ]
}

device_take() {
	case $1 in
	# disturb() may have removed the device with the module.
	"its link is deleted") ! device_there || rdma link delete "$DEV" || ! device_there ;;
	"its netdev is deleted") ip link del "$EXTRA" ;;
	# The namespace exists as long as processes run in it. The kernel removes the netdev after the last process
	# has ended.
	"its namespace is deleted") ip netns del tear
		# kill fails if a process has ended by itself.
		kill -KILL $JOBS 2> /dev/null
		true ;;
	"its netdev changes the namespace") ip link set "$EXTRA" netns tear ;;
	esac
}

device_clean() {
	device_there && rdma link delete "$DEV"
	ip link del "$EXTRA" 2> /dev/null
	ip netns del tear 2> /dev/null
	device_gone "$DEV" 20
}

start() {
	setsid $IN bash -c "exec $1" > "$LIB_TMP/job.$2" 2>&1 < /dev/null &
	JOBS+=" $!"
}

round() {
	local way=$1 victim=$2 number=$3 server='' gid job good=1
	JOBS=
	rm -f "$LIB_TMP/stop"
	if ! device_make "$way"; then
		notok "$name" "no device"
		good=
	fi
	gid=$(gid_of "$DEV" "$EXTRA_IP")
	barrier "made-$number" || exit 1
	[ "$NODE" = 2 ] && server=192.168.79.1
	start "verify_xfer -e -b -q 4 -w 8 -s 20000 -L 600 -P 6 -p 18701 -d $DEV -g $gid $server" xfer
	start "verify_xfer -m read -q 4 -w 8 -s 60000 -L 600 -P 6 -p 18702 -d $DEV -g $gid $server" read
	start "channel_close -d $DEV -g $gid -p 18703 -n 1000000 $server" channels
	flows || {
		notok "$name" "no data flows"
		SHOWN_LINES=4 show_tail "$LIB_TMP/job.xfer"
		good=
	}
	barrier "flows-$number" || exit 1
	faults_percent 3 1
	if [ "$NODE" = "$victim" ]; then
		disturb > "$LIB_TMP/disturbed" 2>&1 &
		DISTURB=$!
		sleep 1
		device_take "$way" || {
			notok "$name" "the removal is refused"
			good=
		}
		if ! device_gone "$DEV" 40; then
			notok "$name" "$DEV is still there after 40 s"
			good=
		fi
	fi
	barrier "taken-$number" 120 || exit 1
	faults_percent 0 0
	: > "$LIB_TMP/stop"
	[ "$NODE" = "$victim" ] && wait $DISTURB
	if [ "$NODE" = "$victim" ] && grep -q 'module went' "$LIB_TMP/disturbed"; then
		echo "#   the module was unloaded, because no process used it any more:"
		for job in xfer read channels; do
			SHOWN_LINES=2 show_tail "$LIB_TMP/job.$job"
		done
	fi
	# Kill all processes: one that only polls a CQ is never notified that its device is gone.
	sleep 1
	for job in $JOBS; do
		kill -KILL "$job" 2> /dev/null
		# Drop stderr, to which bash reports that its job was killed.
		ended "$job" 30 2> /dev/null || {
			notok "$name" "a process cannot be killed"
			good=
		}
	done
	device_clean || {
		notok "$name" "$DEV cannot be removed afterwards"
		good=
	}
	barrier "cleaned-$number" 120 || exit 1
	[ -n "$good" ] && ok "$name"
}

modprobe macvlan
faults_choose
kmemleak_mark
for number in $(seq 0 $((rounds - 1))); do
	way=${ways[$((number % ${#ways[@]}))]}
	victim=$(((number / ${#ways[@]} + number) % 2 + 1))
	name="round $number, node $NODE: $way on node $victim"
	round "$way" $victim "$number"
done
[ -e /sys/module/$DRIVER_MODULE ] || { module_insert; }
[ -e "/sys/class/infiniband/$RDMA_DEV" ] || device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"
gid=$(gid_index)
pingpong="ibv_rc_pingpong -d $RDMA_DEV -g $gid -c"
pair "ibv_rc_pingpong passes afterwards" "$pingpong" "$pingpong $IP_1"
if module_remove; then
	ok "the module unloads at the end on node $NODE"
else
	notok "the module unloads at the end on node $NODE"
fi
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
