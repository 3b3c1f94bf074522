#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: rcxt_replay records what was on the wire, and replays what it recorded
# tier: check
# lab: --nodes 1 --driver none --timeout 240

. "$LAB_SRC/selftests/lib/lib.sh"

COUNT=${COUNT:-20000}
SELF=10.97.0.1 FAR=10.97.0.2

# Create two hosts with a veth between them, which carries only the packets of this test.
ip netns add far
ip link add near0 type veth peer name far0 netns far
ip addr add $SELF/24 dev near0
ip -n far addr add $FAR/24 dev far0
ip link set near0 up
ip -n far link set far0 up
ping -c 1 -W 5 $FAR > /dev/null || exit 1

# record PREFIX NETDEV FILE: start a recording; recorded NAME PACKETS: end the recording, which must have this
# number of packets
far='ip netns exec far'
record() {
	local tries
	# shellcheck disable=SC2086 # several words; one process
	$1 rcxt_replay record "$2" "$3" > "$LIB_TMP/record" 2>&1 &
	RECORDER=$!
	for tries in $(seq 100); do
		grep -q '^recording' "$LIB_TMP/record" && break
		sleep 0.1
	done
}

recorded() {
	sleep 0.5
	kill $RECORDER
	wait $RECORDER
	if grep -q "^$2 packets recorded, 0 frames lost" "$LIB_TMP/record"; then
		ok "$1"
	else
		notok "$1" "$(tail -n 1 "$LIB_TMP/record"), $2 were sent"
	fi
}

# whole: each packet has an ICRC; no-icrc: each packet has a UDP checksum instead, and packets are sent in batches
for kind in whole no-icrc; do
	options=
	[ $kind = no-icrc ] && options='-b -g 32'
	record "$far" far0 "$LIB_TMP/$kind"
	# shellcheck disable=SC2086 # several words
	rcxt_forge -a $FAR -q 17 -n "$COUNT" $options random-rxeth | tail -n 1
	recorded "$kind: all packets are recorded" "$COUNT"
	run "$kind: all checksums are correct" python3 "$LAB_SRC/selftests/lib/icrc.py" nhca "$LIB_TMP/$kind" $kind

	record "$far" far0 "$LIB_TMP/again"
	run "$kind: the recording is replayed" rcxt_replay replay near0 "$LIB_TMP/$kind"
	sed 's/^/# /' "$LIB_TMP/run"
	recorded "$kind: all replayed packets arrive" "$COUNT"
	run "$kind: replayed packets are unchanged" "$LAB_SRC/selftests/rcxt/replay.py" "$LIB_TMP/$kind" "$LIB_TMP/again"
done

# On the sender's netdev rcxt_replay receives whole batches, because GSO segments them later.
record '' near0 "$LIB_TMP/sent"
rcxt_forge -a $FAR -q 17 -n 2000 -b -g 32 random-rxeth > /dev/null
recorded "all packets are recorded on the sender's netdev" 2000
run "all checksums of the sender's recording are correct" \
	python3 "$LAB_SRC/selftests/lib/icrc.py" nhca "$LIB_TMP/sent" no-icrc

record "$far" far0 "$LIB_TMP/again"
near=$(cat /sys/class/net/near0/address)
rcxt_replay replay near0 "$LIB_TMP/sent" 02:00:00:00:00:01 > "$LIB_TMP/replay"
rcxt_replay replay near0 "$LIB_TMP/sent" "$near" >> "$LIB_TMP/replay"
recorded "only packets of the given source address are replayed" 2000

# Test of the test: the comparison must find a changed bit.
python3 "$LAB_SRC/selftests/lib/icrc.py" damage "$LIB_TMP/whole" "$LIB_TMP/damaged"
if "$LAB_SRC/selftests/rcxt/replay.py" "$LIB_TMP/whole" "$LIB_TMP/damaged" > "$LIB_TMP/differ"; then
	notok "the comparison finds a changed bit" "$(cat "$LIB_TMP/differ")"
else
	ok "the comparison finds a changed bit"
fi
