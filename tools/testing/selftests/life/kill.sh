#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: after SIGKILL of one end during a transfer the other end ends by itself, the module unloads, and nothing is leaked
# tier: check
# lab: --nodes 2 --timeout 400 --env KILLS=3
# lab long: --nodes 2 --timeout 5400 --env KILLS=100
# tier long: long
# lab uml: --machine uml --nodes 2 --timeout 5400 --env KILLS=100
# tier uml: long
# lab channels: --machine uml --nodes 2 --timeout 400 --env KILLS=20 --env TOOLS=channel_close
# tier channels: long
# lab debug: --nodes 2 --kernel debug --timeout 1200 --env KILLS=5
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

kills=${KILLS:-6}
# None of these transfers ends before one end is killed. The other end then notices by TCP, by rdma_cm or by a failed
# request.
read -ra tools <<< "${TOOLS:-ib_write_bw rping verify_xfer ib_read_bw ib_read_bw_events}"

# command_of TOOL SERVER: print the command of one end. SERVER is empty on the server.
command_of() {
	local tool=$1 server=$2 gid perftest
	gid=$(gid_index) || return 1
	perftest="-d $RDMA_DEV -x $gid -F $server"
	case $tool in
	ib_write_bw) echo "ib_write_bw -D 600 -q 4 -s 65536 $perftest" ;;
	ib_read_bw_events) echo "ib_read_bw -n 5000000 -e -s 4096 $perftest" ;;
	ib_read_bw) echo "ib_read_bw -D 600 -s 262144 $perftest" ;;
	# Both ends send, so that each one notices that the other was killed. Every byte is checked.
	verify_xfer) echo "verify_xfer -d $RDMA_DEV -g $gid -b -e -q 8 -w 8 -s 20000 -L 600 -P 25 $server" ;;
	channel_close) echo "channel_close -d $RDMA_DEV -g $gid -n 1000000000 $server" ;;
	rping)
		if [ -n "$server" ]; then
			echo "rping -c -a $server -S 30000 -C 100000000 -V"
		else
			echo "rping -s -a $MY_IP -S 30000 -C 100000000 -V"
		fi ;;
	esac
}

packets_sent() {
	cat "/sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters/sent_pkts"
}

# flows PID: wait up to 30 s until the device has sent more than 200 packets, or PID has ended
flows() {
	local before deadline=$((SECONDS + 30))
	before=$(packets_sent)
	while [ $SECONDS -le $deadline ]; do
		[ $(($(packets_sent) - before)) -gt 200 ] && return 0
		kill -0 "$1" 2> /dev/null || return 1
		sleep 0.1
	done
	return 1
}

start() {
	setsid bash -c "exec $1" > "$LIB_TMP/job" 2>&1 < /dev/null &
	JOB=$!
}

# kill_one TOOL VICTIM ROUND: kill one end while data flows. The other end must then end by itself within 30 s.
kill_one() {
	local tool=$1 victim=$2 round=$3 tries command
	command=$(command_of "$tool" "$([ "$NODE" = 2 ] && echo "$IP_1")") || return 1
	if [ "$NODE" = 1 ]; then
		start "$command"
		for tries in $(seq 100); do
			listens $JOB && break
			sleep 0.1
		done
	fi
	barrier "listens-$round" 180 || return 1
	[ "$NODE" = 2 ] && start "$command"
	if ! flows $JOB; then
		notok "$name" "no data flows: $command"
		kill -KILL $JOB
		wait $JOB
		show_tail "$LIB_TMP/job"
		return 1
	fi
	barrier "flows-$round" 180 || return 1
	if [ "$NODE" = "$victim" ]; then
		sleep "0.$((RANDOM % 10))"
		if ! kill -KILL $JOB; then
			wait $JOB
			notok "$name" "this end had ended with status $? before it was killed"
			show_tail "$LIB_TMP/job"
			return 1
		fi
	fi
	if ! ended $JOB 30; then
		if [ "$NODE" = "$victim" ]; then
			notok "$name" "the killed process still exists after 30 s"
		else
			notok "$name" "this end still waits 30 s after the death of the other"
			show_tail "$LIB_TMP/job"
		fi
		sed 's/^/#   /' "/proc/$JOB/stack"
		kill -KILL $JOB
		return 1
	fi
	# rping ends with success when its peer disconnects.
	if [ "$NODE" != "$victim" ] && [ $JOB_STATUS = 0 ] && [ "$tool" != rping ]; then
		notok "$name" "this end reports success although the other was killed"
		show_tail "$LIB_TMP/job"
		return 1
	fi
}

resources=$(resources "$RDMA_DEV")
kmemleak_mark
for round in $(seq 0 "$kills"); do
	tool=${tools[$((round / 2 % ${#tools[@]}))]}
	victim=$((round % 2 + 1))
	[ $victim = 1 ] && role=server || role=client
	name="kill $round, node $NODE: $tool, its $role is killed, module reloaded"
	kill_one "$tool" $victim "$round" && good=1 || good=
	reload "$name" "$resources" && [ -n "$good" ] && [ "$round" != 0 ] && ok "$name"
	barrier "round-$round" 180 || exit 1
	# Round 0 makes allocations that stay, such as caches. memory_check counts only what later rounds add.
	[ "$round" = 0 ] && memory_mark
done

gid=$(gid_index)
pingpong="ibv_rc_pingpong -d $RDMA_DEV -g $gid -c"
pair "ibv_rc_pingpong passes afterwards" "$pingpong" "$pingpong $IP_1"
memory_check "memory in use has not grown on node $NODE" $((kills / 2))
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
