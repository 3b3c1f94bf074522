#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: when CPUs of either node go offline and online under traffic, no connection ends and no wrong byte arrives
# tier: long
# lab: --nodes 2 --cpus 2 --timeout 240
# lab long: --nodes 2 --cpus 2 --timeout 3600 --env SECONDS_EACH=60 --env ALL=1
# tier long: long
# lab debug: --nodes 2 --cpus 2 --kernel debug --timeout 3600 --env SECONDS_EACH=40 --env ALL=1
# tier debug: long

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

each=${SECONDS_EACH:-6}
cpu1=/sys/devices/system/cpu/cpu1/online

# User-mode Linux has no CPU hotplug.
if [ ! -w "$cpu1" ]; then
	skip "CPUs go offline and online" "this machine cannot take a CPU offline"
	exit
fi

# Take CPU 1 offline and online until the file "stop" exists. Print the number of times, and each refusal of the kernel.
toggle() {
	local times=0
	while [ ! -e "$LIB_TMP/stop" ]; do
		echo 0 > "$cpu1" || echo "refused: offline"
		echo 1 > "$cpu1" || echo "refused: online"
		times=$((times + 1))
		# A pause of 0 to 50 ms lets the senders run on CPU 1.
		sleep "0.0$((RANDOM % 6))"
	done
	echo "times $times"
}

# under NAME NODES COMMAND...: toggle CPU 1 of NODES while COMMAND runs traffic
under() {
	local name=$1 nodes=$2 times
	shift 2
	PREFIX="CPU 1 of node $nodes goes offline and online: "
	rm -f "$LIB_TMP/stop"
	if [[ $nodes == *$NODE* ]]; then
		toggle > "$LIB_TMP/toggled" 2>&1 &
	fi
	"$@"
	: > "$LIB_TMP/stop"
	wait
	if [[ $nodes == *$NODE* ]]; then
		times=$(sed -n 's/^times //p' "$LIB_TMP/toggled")
		echo "#   CPU 1 of node $NODE went offline and online $times times"
		if grep -q refused "$LIB_TMP/toggled"; then
			notok "$name: CPU 1 of node $NODE is toggled" "$(sort "$LIB_TMP/toggled" | uniq -c | head -n 3)"
		elif [ "${times:-0}" -lt 5 ]; then
			notok "$name: CPU 1 of node $NODE is toggled" "only ${times:-0} times"
		fi
	fi
	[ "$(cat $cpu1)" = 1 ] || notok "$name: CPU 1 of node $NODE is online" "it is offline"
	barrier
}

resources=$(resources "$RDMA_DEV")
kmemleak_mark
PAIR_TIMEOUT=$((each * 4 + 60))
channel="channel_close -d $RDMA_DEV -g $TRAFFIC_GID -n $((each * 4))"
if [ -n "$ALL" ]; then
	for nodes in 2 1; do
		for op in read write send; do
			under "$op" "$nodes" xfer -m $op -q 4 -w 8 -s 60000 -L "$each"
		done
		under read_bw "$nodes" perf read_bw -q 4 -D "$each"
	done
	for op in write send; do
		under "$op" "1 and 2" xfer -m $op -q 4 -w 8 -s 60000 -L "$each"
	done
	under UC "1 and 2" xfer -t uc -m write -q 4 -s 8000 -L "$each"
	under UD "1 and 2" xfer -t ud -m send -q 4 -s 1024 -L "$each"
fi
under read "1 and 2" xfer -m read -q 4 -w 8 -s 60000 -L "$each"
under read_bw "1 and 2" perf read_bw -q 4 -D "$each"
under "all operations, with events" "1 and 2" xfer -e -b -q 4 -w 8 -s 20000 -L "$each"
under channels "1 and 2" pair "CPU 1 of node 1 and 2 goes offline and online: channels" "$channel" "$channel $IP_1"

resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$resources"
if module_remove; then
	ok "the module unloads at the end on node $NODE"
else
	notok "the module unloads at the end on node $NODE"
fi
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
