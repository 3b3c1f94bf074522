#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: packets of a queue pair do not overtake each other in a netdev's transmit queues, whatever CPUs send them
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 240
# lab uml: --machine uml --nodes 1 --cpus 2 --kernel debug --timeout 900
# tier uml: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

RATE=40mbit

out_of_seq() {
	rdma statistic show link "$1/1" -j | grep -o '"out_of_seq_request":[0-9]*' | cut -d: -f2
}

# queue_sent N: print the number of packets that transmit queue N of the sender has sent
queue_sent() {
	tc -s qdisc show dev qhere | awk -v parent="1:$1" '
		/^qdisc/ { found = 0; for (i = 1; i < NF; i++) if ($i == "parent" && $(i + 1) == parent) found = 1 }
		found && $1 == "Sent" { print $4 }'
}

# Move the sending programs to the other CPU every 20 ms.
moving() {
	local cpu=0 pid
	while :; do
		for pid in $(pgrep -x verify_xfer); do
			taskset -pc $cpu "$pid" > /dev/null 2>&1
		done
		cpu=$((1 - cpu))
		sleep 0.02
	done
}

echo N > /sys/module/nhca/parameters/same_host
ip netns add elsewhere
ip link add qhere numtxqueues 2 numrxqueues 2 type veth peer name qthere numtxqueues 2 numrxqueues 2 || {
	notok "a netdev with two queues" "none"
	exit
}
# Receive on one CPU, so that only the sender's queues can change the order.
for queue in /sys/class/net/qthere/queues/rx-*; do
	echo 1 > "$queue/rps_cpus"
done
# Handle acknowledgments on CPU 1. The requester then continues on CPU 1 to send the packets of requests that it began
# on the CPU of the program.
for queue in /sys/class/net/qhere/queues/rx-*; do
	echo 2 > "$queue/rps_cpus"
done
ip link set qthere netns elsewhere
ip link set qhere up && ip addr add 10.97.9.1/24 dev qhere
ip -n elsewhere link set qthere up && ip -n elsewhere addr add 10.97.9.2/24 dev qthere
ip link add link qhere name qhere.5 type vlan id 5 && ip link set qhere.5 up &&
	ip addr add 10.97.10.1/24 dev qhere.5
ip -n elsewhere link add link qthere name qthere.5 type vlan id 5 &&
	ip -n elsewhere link set qthere.5 up && ip -n elsewhere addr add 10.97.10.2/24 dev qthere.5
for cpu in 0 1; do
	printf '%x\n' $((1 << cpu)) > /sys/class/net/qhere/queues/tx-$cpu/xps_cpus || {
		skip "transmit queues by CPU" "this kernel has no XPS"
		exit 0
	}
done
# Packets from CPU 0 wait in a slow queue, packets from CPU 1 do not.
tc qdisc replace dev qhere root handle 1: mq &&
	tc qdisc replace dev qhere parent 1:1 handle 11: tbf rate $RATE burst 256k limit 100m &&
	tc qdisc replace dev qhere parent 1:2 handle 12: tbf rate 100gbit burst 100m limit 100m || {
	notok "a slow queue and a fast one" "tc refuses them"
	exit
}
device_add here qhere 10.97.9.1 10.97.10.1
ip netns exec elsewhere rdma link add there type nhca netdev qthere && device_ready there 10.97.9.2 10.97.10.2

# in_order NAME SUBNET ARGS...: no request of a verified transfer may arrive out of sequence at the device "there"
in_order() {
	local name=$1 subnet=$2 before after mover
	shift 2
	before=$(out_of_seq there)
	moving &
	mover=$!
	pair "$name: verified $*" \
		"verify_xfer -d here -g $(gid_of here "$subnet.1") -p 18980 $*" \
		"ip netns exec elsewhere verify_xfer -d there -g $(gid_of there "$subnet.2") -p 18980 $* 10.97.9.1"
	kill $mover
	wait $mover 2> /dev/null
	after=$(out_of_seq there)
	echo "# $name: $((after - before)) out of sequence; queues have sent $(queue_sent 1) and $(queue_sent 2) packets"
	if [ "$after" = "$before" ]; then
		ok "$name: in sequence"
	else
		notok "$name: in sequence" "$((after - before)) requests arrived out of sequence"
	fi
}

in_order "one queue pair" 10.97.9 -m write -b -s 65536 -n 100
in_order "eight queue pairs" 10.97.9 -m write -b -s 65536 -n 80 -q 8
in_order "sends" 10.97.9 -m send -e -b -s 20000 -n 200 -q 4
in_order "above a VLAN" 10.97.10 -m write -b -s 65536 -n 80 -q 8
# fq orphans packets of queue pairs before it sends them, so these packets do not count as in flight. The requester must
# hold the transmit queue all the same.
if tc qdisc replace dev qhere parent 1:1 handle 13: fq maxrate $RATE limit 100000 flow_limit 100000 &&
	tc qdisc replace dev qhere parent 1:2 handle 14: pfifo limit 100000; then
	in_order "orphaned packets" 10.97.9 -m write -b -s 65536 -n 100
	in_order "orphaned packets of eight queue pairs" 10.97.9 -m write -b -s 65536 -n 80 -q 8
else
	notok "a slow queue that orphans packets" "tc refuses fq"
fi
if [ "$(queue_sent 1)" -gt 0 ] && [ "$(queue_sent 2)" -gt 0 ]; then
	ok "both queues are used"
else
	notok "both queues are used" "$(queue_sent 1) and $(queue_sent 2) packets"
fi
rdma link del here
rdma link del there
device_gone there
ip netns del elsewhere
exit 0
