#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: after each injected fault a program sees what the specification demands: an error, or none; and the same seed repeats a run packet by packet
# tier: check
# lab: --nodes 1 --timeout 300
# lab debug: --nodes 1 --kernel debug --timeout 1500
# tier debug: long
# lab bookworm: --nodes 1 --release bookworm --timeout 400
# tier bookworm: long
# lab backports: --nodes 1 --release backports --timeout 400
# tier backports: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

DEBUGFS=/sys/kernel/debug/nhca/$RDMA_DEV

# Set the default again, because the lab changes it and a dead peer must be reported within the bound of the
# specification.
echo 3 > /sys/module/nhca/parameters/max_backoff
leak_snapshot
report fault
nhca-fault clear

# ---- the same seed repeats the same packets ----

# packets FILE SEED: record the opcode, PSN and syndrome of each packet on lo during a run with faults
packets() {
	local file=$LIB_TMP/$1.pcap tries
	nhca-fault clear
	nhca-fault add "$RDMA_DEV" drop probability 5% seed "$2" > "$LIB_TMP/rules" &&
		nhca-fault add "$RDMA_DEV" duplicate probability 5% seed "$2" >> "$LIB_TMP/rules" &&
		nhca-fault add "$RDMA_DEV" corrupt receive probability 3% seed "$2" >> "$LIB_TMP/rules" &&
		nhca-fault add "$RDMA_DEV" reorder 1 opcode rdma_write_middle probability 20% seed "$2" \
			>> "$LIB_TMP/rules" || return
	tcpdump -i lo -s 0 -B 16384 -U -Z root -Q in -w "$file" udp port 4791 2> "$LIB_TMP/tcpdump" &
	for tries in $(seq 100); do
		grep -q 'listening on' "$LIB_TMP/tcpdump" && break
		sleep 0.1
	done
	fault trace > "$LIB_TMP/trace" || {
		notok "the traffic for a trace runs" "$(last_words "$LIB_TMP/trace")"
		return 1
	}
	sleep 1
	kill $!
	wait $!
	nhca-fault list > "$LIB_TMP/$1.rules"
	nhca-fault clear
	tshark -n -r "$file" --only-protocols frame,eth,ethertype,ip,udp,infiniband \
		-o infiniband.try_heuristic_first:FALSE -T fields -e infiniband.bth.opcode \
		-e infiniband.bth.psn -e infiniband.aeth.syndrome > "$LIB_TMP/$1" 2> "$LIB_TMP/tshark"
}

if packets one 7 && packets two 7 && packets three 8; then
	lines=$(wc -l < "$LIB_TMP/one")
	hits=$(sed -n 's/.*: hit \([0-9]*\) of.*/\1/p' "$LIB_TMP/one.rules" | awk '{ n += $1 } END { print n }')
	if [ "$lines" -lt 400 ] || [ "$hits" -lt 40 ]; then
		notok "a trace with faults" "$lines packets, $hits faults"
	elif ! cmp -s "$LIB_TMP/one" "$LIB_TMP/two"; then
		notok "the same seed gives the same packets twice" "they differ"
		diff "$LIB_TMP/one" "$LIB_TMP/two" | sed 's/^/#   /' | head -n "$SHOWN_LINES"
	else
		ok "the same seed gives the same packets twice"
		echo "#   $lines packets, $hits faults"
	fi
	if cmp -s "$LIB_TMP/one" "$LIB_TMP/three"; then
		notok "another seed gives other packets" "they are the same"
	else
		ok "another seed gives other packets"
	fi
else
	notok "the traces are recorded" "$(tail -n 1 "$LIB_TMP/tcpdump")"
fi

# ---- error messages of nhca-fault ----

# wrong STATUS TEXT COMMAND...: nhca-fault must fail with STATUS and one line that contains TEXT
wrong() {
	local status=$1 text=$2 got
	shift 2
	nhca-fault "$@" > "$LIB_TMP/out" 2>&1
	got=$?
	if [ $got != "$status" ] || [ "$(wc -l < "$LIB_TMP/out")" != 1 ] ||
		! grep -qF -- "$text" "$LIB_TMP/out"; then
		notok "nhca-fault $*" "status $got: $(head -n 3 "$LIB_TMP/out")"
		return 1
	fi
	wrongs=$((wrongs + 1))
}
wrongs=0
d=$RDMA_DEV
wrong 2 'commands are add, list, remove'
wrong 2 'commands are add, list, remove' delete
wrong 2 'needs a device' add
wrong 1 "there is: $d" add nhca9 drop
wrong 1 "there is: $d" list nhca9
wrong 2 'the kinds are: drop, delay' add "$d"
wrong 2 'the kinds are: drop, delay' add "$d" lose
wrong 2 'milliseconds from 1 to 10000' add "$d" delay
wrong 2 'milliseconds from 1 to 10000' add "$d" delay long
wrong 2 'milliseconds from 1 to 60000' add "$d" link 60001
wrong 2 'from 1 to 64' add "$d" reorder 65
wrong 2 'sequence, invalid, access, operational' add "$d" nak rude
wrong 2 'ENOMEM' add "$d" mr 12
wrong 2 'from 1 to 16777215' add "$d" drop qp 16777216
wrong 2 'from 1 to 16777215' add "$d" drop qp
wrong 2 "'nhca-fault opcodes' lists them" add "$d" drop opcode sned
wrong 2 "'nhca-fault opcodes' lists them" add "$d" drop opcode
wrong 2 'such as 25%' add "$d" drop probability 25
wrong 2 'such as 25%' add "$d" drop probability 101%
wrong 2 'such as 25%' add "$d" drop probability 0%
wrong 2 'such as 25%' add "$d" drop probability
wrong 2 'from 1 to 4294967295' add "$d" drop every 0
wrong 2 'only one of probability, every' add "$d" drop every 2 probability 5%
wrong 2 'send, receive: at most one' add "$d" drop send receive
wrong 2 'drop has no such word' add "$d" drop often
wrong 2 'not possible with nak' add "$d" nak access receive
wrong 2 'not possible with cq' add "$d" cq opcode send
wrong 2 'not possible with mr' add "$d" mr ENOMEM qp 5
wrong 2 'stands alone' add "$d" link 5 now times 2
wrong 2 'the number of a rule' remove "$d"
wrong 2 'the number of a rule' remove "$d" x
wrong 1 'no such rule' remove "$d" 77
wrong 2 'too many arguments after' list "$d" all
[ -e "$DEBUGFS/fault_attr" ] || wrong 1 'CONFIG_FAULT_INJECTION_DEBUG_FS' add "$d" drop framework
[ $wrongs -ge 32 ] && ok "each wrong command gets one line with the remedy"
[ -z "$(nhca-fault list)" ] || notok "a refused command adds no rule" "$(nhca-fault list)"

# The driver checks rules itself, because a program can write to the debugfs file directly.
refused=0
for text in '' add 'add lose' 'add drop probability 25' 'add drop qp 0' 'remove' 'remove x' 'clear all' \
	"add drop opcode $(printf 'x%.0s' {1..100})" "$(printf 'x%.0s' {1..300})"; do
	printf '%s' "$text" > "$DEBUGFS/faults" 2> /dev/null && [ -n "$text" ] || refused=$((refused + 1))
done
[ $refused = 10 ] && [ -z "$(cat "$DEBUGFS/faults")" ] && ok "the driver refuses invalid rules" ||
	notok "the driver refuses invalid rules" "$refused of 10; rules: $(cat "$DEBUGFS/faults")"
if setpriv --reuid 65534 --clear-groups nhca-fault list > "$LIB_TMP/out" 2>&1 ||
	! grep -q 'needs root' "$LIB_TMP/out"; then
	notok "nhca-fault needs root" "$(cat "$LIB_TMP/out")"
elif setpriv --bounding-set -net_admin --inh-caps -net_admin nhca-fault add "$d" drop > "$LIB_TMP/out" 2>&1 ||
	! grep -q 'CAP_NET_ADMIN' "$LIB_TMP/out"; then
	notok "nhca-fault needs CAP_NET_ADMIN" "$(cat "$LIB_TMP/out")"
else
	ok "nhca-fault needs root and CAP_NET_ADMIN"
fi

nhca-fault add "$d" drop qp 0x11 opcode send_only every 3 times 2 seed 5 > "$LIB_TMP/out"
nhca-fault add "$d" mr ENOMEM >> "$LIB_TMP/out"
printf '%s\n' "$d 1: drop send qp 17 opcode send_only every 3 times 2 seed 5: hit 0 of 0" \
	"$d 2: mr ENOMEM probability 100%: hit 0 of 0" | cmp -s - "$LIB_TMP/out" &&
	nhca-fault list | cmp -s - "$LIB_TMP/out" && nhca-fault remove "$d" 1 &&
	[ "$(nhca-fault list | wc -l)" = 1 ] && ok "nhca-fault list shows rules as they were added" ||
	notok "nhca-fault list shows rules as they were added" "$(cat "$LIB_TMP/out")"

# If the kernel has its fault injection framework, this framework can decide when a rule applies.
if [ -e "$DEBUGFS/fault_attr" ]; then
	nhca-fault clear
	nhca-fault add "$d" mr ENOMEM framework > /dev/null
	echo 100 > "$DEBUGFS/fault_attr/probability"
	echo 0 > "$DEBUGFS/fault_attr/verbose"
	echo 3 > "$DEBUGFS/fault_attr/times"
	fault regions | grep -qx '# 3 failed' && ok "the kernel's framework decides when a rule applies" ||
		notok "the kernel's framework decides when a rule applies" "$(nhca-fault list)"
fi

# ---- the receiver has rules, the sender has none and sends batches: rules apply to each packet ----

TRACING=/sys/kernel/tracing
[ -d $TRACING/events ] || mount -t tracefs tracefs $TRACING
received=$TRACING/events/nhca/nhca_packet_received

# Create the device "ruled" at one end of a veth, and the device "plain" at the other end, in another namespace.
cable() {
	ip netns add plain && ip link add ruled0 type veth peer name plain0 netns plain &&
		ip link set ruled0 mtu 4200 up && ip addr add 10.97.1.1/24 dev ruled0 &&
		ip -n plain link set plain0 mtu 4200 up && ip -n plain addr add 10.97.1.2/24 dev plain0 &&
		ip netns exec plain rdma link add plain type "$LAB_DRIVER" netdev plain0 &&
		device_add ruled ruled0 10.97.1.1 && device_ready plain 10.97.1.2
}

# runs NAME: send messages; set RUNS to the number of batches that channels received as one unit
runs() {
	local args="-p 18960 -e -n 2M -s 256K -w 4"
	: > $TRACING/trace
	pair "$1" "msg_xfer -d ruled -g $(gid_of ruled 10.97.1.1) $args" \
		"ip netns exec plain msg_xfer -d plain -g $(gid_of plain 10.97.1.2) $args 10.97.1.1"
	RUNS=$(grep -c nhca_packet_received: $TRACING/trace)
}

if [ ! -e $received ]; then
	skip "rules apply to each packet of a batch" "this kernel has no tracepoints"
elif cable; then
	nhca-fault clear
	echo 'packets > 1' > $received/filter
	echo 1 > $received/enable
	runs "messages from another device"
	[ "$RUNS" -gt 0 ] || notok "a channel receives packets in batches" "no batch"
	nhca-fault add ruled drop receive opcode rcxt every 4000000000 > /dev/null
	runs "messages from another device, with a rule"
	[ "$RUNS" = 0 ] && ok "rules apply to each packet of a batch" ||
		notok "rules apply to each packet of a batch" "$RUNS batches passed the rules as one unit"
	echo 0 > $received/enable
	echo 0 > $received/filter
	ip link del ruled0
	device_gone ruled && device_gone plain && ip netns del plain ||
		notok "the devices are removed with their veth" "$(rdma link)"
else
	notok "rules apply to each packet of a batch" "no second device"
fi

# ---- removal of a device that has rules and delayed packets ----

nhca-fault clear
nhca-fault add "$d" delay 10000 opcode rdma_write_last > /dev/null
nhca-fault add "$d" delay 10000 receive opcode response > /dev/null
nhca-fault add "$d" mr EIO every 1000 > /dev/null
timeout 3 fault trace > /dev/null
[ "$(nhca-fault list | grep -c ': hit [1-9]')" -ge 1 ] || notok "packets are delayed" "$(nhca-fault list)"
nhca-fault add "$d" link 60000 now
rdma link del "$d"
device_gone "$d"
rdma link add "$d" type nhca netdev "$NETDEV"
device_ready "$d" "$IP_1"
if [ -n "$(nhca-fault list)" ]; then
	notok "rules are removed with their device" "$(nhca-fault list)"
else
	run "rules, delayed packets and a link fault are removed with their device" fault 'lost once'
fi
leak_check "no slab object or module reference is leaked"
