#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the removal of a netdev under traffic removes its device, and processes get an event; changes of its MTU, name, state or addresses end no transfer
# tier: check
# lab: --nodes 2 --timeout 400 --env ROUNDS=2
# lab long: --nodes 2 --timeout 3600 --env ROUNDS=50
# tier long: long
# lab debug: --nodes 2 --kernel debug --timeout 1500 --env ROUNDS=12
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

rounds=${ROUNDS:-4}
# macvlan: delete a macvlan with a device. TCP continues over $NETDEV. First the RDMA device of $NETDEV is removed,
# because the RDMA core would also give that device the addresses of the macvlan, and rdma_cm would use it for these
# addresses. unbind: unbind the driver of $NETDEV itself.
ways=(macvlan macvlan unbind)
if [ ! -e /sys/bus/virtio/drivers/virtio_net ]; then
	skip "the driver of $NETDEV is unbound" "$NETDEV is not a virtio device"
	ways=(macvlan)
fi
tools=(ib_read_bw_events rping verify_xfer ib_write_bw)
EXTRA_DEV=${LAB_DRIVER}_mv EXTRA=mv0
EXTRA_IP=192.168.78.$NODE EXTRA_SERVER=192.168.78.1

# command_of TOOL DEV IP SERVER_IP: print the command of one end
command_of() {
	local tool=$1 dev=$2 ip=$3 server_ip=$4 gid server=
	gid=$(gid_of "$dev" "$ip") || return
	[ "$NODE" = 2 ] && server=$IP_1
	case $tool in
	ib_write_bw) echo "ib_write_bw -s 65536 -q 2 -d $dev -x $gid -D 600 -F $server" ;;
	ib_read_bw_events) echo "ib_read_bw -e -s 65536 -d $dev -x $gid -n 5000000 -F $server" ;;
	# verify_xfer waits five times its patience (-P) for TCP.
	verify_xfer) echo "verify_xfer -e -b -q 4 -w 8 -s 20000 -L 600 -P 6 -d $dev -g $gid $server" ;;
	rping)
		if [ -n "$server" ]; then
			echo "rping -c -a $server_ip -I $ip -S 30000 -C 100000000 -V"
		else
			echo "rping -s -a $ip -S 30000 -C 100000000 -V"
		fi ;;
	esac
}

packets_sent() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}

flows() {
	local dev=$1 pid=$2 before deadline=$((SECONDS + 30))
	before=$(packets_sent "$dev")
	while [ $SECONDS -le $deadline ]; do
		[ $(($(packets_sent "$dev") - before)) -gt 100 ] && return 0
		kill -0 "$pid" 2> /dev/null || return 1
		sleep 0.1
	done
	return 1
}

# start DEV COMMAND TAG: start the command as JOB on both nodes, the server first, and wait until data flows. False,
# after a failure was reported, if no data flows or the command does not run any more.
start() {
	local dev=$1 command=$2 tag=$3 tries good=1
	if [ "$NODE" = 1 ]; then
		setsid bash -c "exec $command" > "$LIB_TMP/job" 2>&1 < /dev/null &
		JOB=$!
		for tries in $(seq 100); do
			listens $JOB && break
			sleep 0.1
		done
	fi
	barrier "listens-$tag" || exit 1
	if [ "$NODE" = 2 ]; then
		setsid bash -c "exec $command" > "$LIB_TMP/job" 2>&1 < /dev/null &
		JOB=$!
	fi
	if ! flows "$dev" $JOB; then
		notok "$name" "no data flows: $command"
		show_tail "$LIB_TMP/job"
		good=
	fi
	barrier "flows-$tag" || exit 1
	[ -n "$good" ] || return 1
	kill -0 $JOB 2> /dev/null && return 0
	notok "$name" "the command has ended: $command"
	show_tail "$LIB_TMP/job"
	return 1
}

# ---- changes that a transfer survives ----

change() {
	case $1 in
	"MTU lowered and raised")
		ip link set "$NETDEV" mtu 1400
		sleep 1
		ip link set "$NETDEV" mtu 1500 ;;
	"netdev renamed twice")
		ip link set "$NETDEV" name other0 && sleep 1 && ip link set other0 name "$NETDEV" ;;
	"netdev down and up")
		ip link set "$NETDEV" down
		sleep 0.3
		ip link set "$NETDEV" up
		ip -6 addr add "$MY_IP6/64" dev "$NETDEV" nodad ;;
	"address added and deleted")
		ip addr add 10.97.0.1/24 dev "$NETDEV"
		sleep 1
		ip addr del 10.97.0.1/24 dev "$NETDEV" ;;
	esac
}

survive() {
	local what=$1 who=$2 gid command good=1
	name="a transfer survives: $what on node $who"
	gid=$(gid_index)
	# -T 18: a local ACK timeout of about 1 s, with 7 retries
	command="verify_xfer -e -b -q 4 -w 8 -s 20000 -L 8 -T 18 -d $RDMA_DEV -g $gid"
	[ "$NODE" = 2 ] && command+=" $IP_1"
	start "$RDMA_DEV" "$command" "survive-$who-${what// /-}" || good=
	if [ "$NODE" = "$who" ] && ! change "$what"; then
		notok "$name" "the change fails"
		good=
	fi
	if ! ended $JOB 60; then
		notok "$name" "the transfer does not end"
		kill -KILL $JOB
	elif [ "$JOB_STATUS" != 0 ]; then
		notok "$name" "status $JOB_STATUS"
		show_tail "$LIB_TMP/job"
	elif [ -n "$good" ]; then
		ok "$name"
	fi
	barrier "survived-$who-${what// /-}" || exit 1
}

# ---- removal of the netdev ----

extra_make() {
	ip link add "$EXTRA" link "$NETDEV" type macvlan mode bridge && ip link set "$EXTRA" up &&
		ip addr add "$EXTRA_IP/24" dev "$EXTRA" && device_add "$EXTRA_DEV" "$EXTRA" "$EXTRA_IP"
}

bus_id() {
	basename "$(readlink -f "/sys/class/net/$NETDEV/device")"
}

own_make() {
	local tries
	echo "$BUS_ID" > /sys/bus/virtio/drivers/virtio_net/bind
	for tries in $(seq 50); do
		[ -e "/sys/class/net/$NETDEV" ] && break
		sleep 0.1
	done
	ip addr add "$MY_IP/24" dev "$NETDEV" && ip -6 addr add "$MY_IP6/64" dev "$NETDEV" nodad &&
		ip link set "$NETDEV" up && device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"
}

# take_away WAY DEV: remove the netdev. The device must follow within 20 s, and a process must receive DEVICE_FATAL.
take_away() {
	local way=$1 dev=$2 begun=$SECONDS
	stdbuf -oL ibv_asyncwatch -d "$dev" > "$LIB_TMP/watch" 2>&1 &
	WATCH=$!
	sleep 1
	if [ "$way" = macvlan ]; then
		timeout -k 1 30 ip link del "$EXTRA"
	else
		timeout -k 1 30 bash -c "echo '$BUS_ID' > /sys/bus/virtio/drivers/virtio_net/unbind"
	fi || {
		notok "$name" "the netdev is not gone after $((SECONDS - begun)) s"
		return 1
	}
	if ! device_gone "$dev" 20; then
		notok "$name" "$dev is still there"
		return 1
	fi
	for _ in $(seq 50); do
		grep -q DEVICE_FATAL "$LIB_TMP/watch" && break
		sleep 0.1
	done
	if ! grep -q DEVICE_FATAL "$LIB_TMP/watch"; then
		notok "$name" "no IBV_EVENT_DEVICE_FATAL"
		show_tail "$LIB_TMP/watch"
		return 1
	fi
}

# told TOOL WAY VICTIM: true if this end of the tool is notified of the removal by its device, its requests, rdma_cm
# or TCP
told() {
	local tool=$1 way=$2 victim=$3
	case $tool in
	# The client notices the removal by its event channel or its requests, and the server by TCP over $NETDEV, which
	# only macvlan keeps.
	ib_read_bw_events) [ "$NODE" = 2 ] || [ "$way" = macvlan ] ;;
	verify_xfer) true ;;
	# rdma_cm reports the removal to the end whose device is gone. The other end is not notified, because rdma_cm
	# could send its DREQ only over the removed netdev.
	rping) [ "$NODE" = "$victim" ] ;;
	# ib_write_bw only polls its CQ, so its own device cannot notify it. On the client, requests fail if the
	# server's device is gone.
	ib_write_bw) [ "$NODE" != "$victim" ] && [ "$NODE" = 2 ] ;;
	esac
}

finish() {
	local tool=$1 way=$2 victim=$3
	if told "$tool" "$way" "$victim"; then
		if ! ended $JOB 40; then
			notok "$name" "$tool on node $NODE still runs after 40 s"
			show_tail "$LIB_TMP/job"
			kill -KILL $JOB
			return 1
		fi
	else
		sleep 1
		kill -KILL $JOB 2> /dev/null
	fi
	if ! ended $JOB 20; then
		notok "$name" "$tool cannot be killed"
		sed 's/^/#   /' "/proc/$JOB/stack"
		return 1
	fi
}

unregister() {
	local way=$1 tool=$2 victim=$3 round=$4 dev=$RDMA_DEV command good=1
	if [ "$way" = macvlan ]; then
		dev=$EXTRA_DEV
		rdma link del "$RDMA_DEV"
		extra_make || {
			notok "$name" "no second device"
			good=
		}
		command=$(command_of "$tool" "$dev" "$EXTRA_IP" "$EXTRA_SERVER")
	else
		command=$(command_of "$tool" "$dev" "$MY_IP" "$IP_1")
	fi
	barrier "made-$round" || exit 1
	start "$dev" "$command" "$round" || good=
	WATCH=
	if [ "$NODE" = "$victim" ]; then
		take_away "$way" "$dev" || good=
	fi
	finish "$tool" "$way" "$victim" || good=
	if [ -n "$WATCH" ]; then
		kill -KILL $WATCH
		ended $WATCH 10 || {
			notok "$name" "ibv_asyncwatch cannot be killed"
			good=
		}
	fi
	barrier "finished-$round" 180 || exit 1

	if [ "$way" = unbind ] && [ "$NODE" = "$victim" ]; then
		own_make || {
			notok "$name" "no device on the netdev that came back"
			good=
		}
	fi
	if [ "$way" = macvlan ]; then
		if [ "$NODE" != "$victim" ]; then
			ip link del "$EXTRA"
			device_gone "$dev" || {
				notok "$name" "$dev outlives its netdev"
				good=
			}
		fi
		device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" || {
			notok "$name" "no device on $NETDEV"
			good=
		}
	fi
	reload "$name" "$resources" || good=
	[ -n "$good" ] && [ "$round" != 0 ] && ok "$name"
	barrier "round-$round" || exit 1
}

modprobe macvlan
BUS_ID=$(bus_id)
for who in 1 2; do
	for what in "MTU lowered and raised" "netdev renamed twice" "netdev down and up" \
		"address added and deleted"; do
		survive "$what" $who
	done
	[ "$rounds" -le 4 ] && break
done

resources=$(resources "$RDMA_DEV")
kmemleak_mark
for round in $(seq 0 "$rounds"); do
	way=${ways[$((round % ${#ways[@]}))]}
	tool=${tools[$((round % ${#tools[@]}))]}
	victim=$((round / 2 % 2 + 1))
	name="unregister $round, node $NODE: $way on node $victim under $tool, module reloaded"
	unregister "$way" "$tool" $victim "$round"
	# Round 0 makes allocations that stay, such as caches. memory_check counts only what later rounds add.
	[ "$round" = 0 ] && memory_mark
done

gid=$(gid_index)
pingpong="ibv_rc_pingpong -d $RDMA_DEV -g $gid -c"
pair "ibv_rc_pingpong passes afterwards" "$pingpong" "$pingpong $IP_1"
memory_check "memory in use has not grown on node $NODE" $((rounds / 2))
if module_remove; then
	ok "the module unloads at the end on node $NODE"
else
	notok "the module unloads at the end on node $NODE"
fi
kmemleak_check "kmemleak reports no leak on node $NODE"
tasks_check "no task hangs on node $NODE"
barrier end 240
