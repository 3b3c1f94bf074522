#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: processes can be killed while their packets stay in the queue of a netdev, and the module unloads afterwards
# tier: check
# lab: --nodes 2 --timeout 300

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index)
# Each process has its own region. Packets in the netdev's queue refer to pages of the regions.
programs=3
command="ib_write_bw -d $RDMA_DEV -x $gid -F -D 600 -s 65536 -q 4"
[ "$NODE" = 2 ] && command+=" $IP_1"

jobs=()
for program in $(seq $programs); do
	if [ "$NODE" = 1 ]; then
		setsid bash -c "exec $command -p $((18700 + program))" > "$LIB_TMP/job.$program" 2>&1 < /dev/null &
		jobs+=($!)
		for tries in $(seq 100); do
			listens $! && break
			sleep 0.1
		done
	fi
	barrier "listens-$program" || exit 1
	if [ "$NODE" = 2 ]; then
		setsid bash -c "exec $command -p $((18700 + program))" > "$LIB_TMP/job.$program" 2>&1 < /dev/null &
		jobs+=($!)
	fi
done
sleep 3
barrier flows

if [ "$NODE" = 2 ]; then
	# A retransmitted packet has a copy of the bytes, and no pages of the sender. So stop the senders until all
	# packets are acknowledged. Then the first packets in the queue are new ones, with pages.
	kill -STOP "${jobs[@]}"
	sleep 2
	# tbf sends one byte a second and does not orphan its packets.
	tc qdisc add dev "$NETDEV" root tbf rate 8bit burst 1600 limit 10000000
	kill -CONT "${jobs[@]}"
	sleep 0.5
	queued=$(tc -s qdisc show dev "$NETDEV" | sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p')
	if [ "${queued:-0}" -gt 0 ]; then
		ok "packets stay in the netdev's queue"
	else
		notok "packets stay in the netdev's queue" "backlog: $(tc -s qdisc show dev "$NETDEV" | paste -sd' ')"
	fi
	begun=$SECONDS
	kill -KILL "${jobs[@]}"
	left=
	for job in "${jobs[@]}"; do
		ended "$job" 20 2> /dev/null || left=$job
	done
	name="processes can be killed while the queue keeps their packets"
	if [ -z "$left" ]; then
		ok "$name"
		echo "# $programs processes, $((SECONDS - begun)) s"
	else
		notok "$name" "process $left still exists after $((SECONDS - begun)) s"
		sed 's/^/#   /' "/proc/$left/stack"
	fi
	kept=$(tc -s qdisc show dev "$NETDEV" | sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p')
	if [ "${kept:-0}" -gt 0 ]; then
		ok "the queue has packets after the processes have ended"
	else
		notok "the queue has packets after the processes have ended" "none"
	fi
	tc qdisc del dev "$NETDEV" root
fi
barrier sent 120 || exit 1
[ "$NODE" = 1 ] && kill -KILL "${jobs[@]}" 2> /dev/null
for job in "${jobs[@]}"; do
	ended "$job" 20 || notok "process $job ends" "it still runs after 20 s"
done

pingpong="ibv_rc_pingpong -d $RDMA_DEV -g $gid -c"
pair "ibv_rc_pingpong passes afterwards" "$pingpong" "$pingpong $IP_1"
if module_remove; then
	ok "the module unloads on node $NODE"
else
	notok "the module unloads on node $NODE"
fi
tasks_check "no task hangs on node $NODE"
barrier end
