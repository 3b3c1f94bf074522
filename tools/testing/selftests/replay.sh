#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: rcxt_replay records what was on the wire, and replays what it recorded
# tier: check
# lab: --nodes 1 --driver none --timeout 240

. "$LAB_SRC/selftests/lib.sh"

COUNT=${COUNT:-20000}
SELF=10.97.0.1 FAR=10.97.0.2

# Two hosts with a cable. Nothing but what is sent on purpose goes over it.
ip netns add far
ip link add near0 type veth peer name far0 netns far
ip addr add $SELF/24 dev near0
ip -n far addr add $FAR/24 dev far0
ip link set near0 up
ip -n far link set far0 up
ping -c 1 -W 5 $FAR > /dev/null || exit 1

# record WHERE NETDEV FILE: begins; recorded NAME PACKETS: it ends, and has so many
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

# whole: each has its ICRC; bare: each has a UDP checksum, and leaves in batches
for kind in whole bare; do
	options=
	[ $kind = bare ] && options='-b -g 32'
	record "$far" far0 "$LIB_TMP/$kind"
	# shellcheck disable=SC2086 # several words
	rcxt_forge -a $FAR -q 17 -n "$COUNT" $options random-rxeth | tail -n 1
	recorded "$kind: all are recorded" "$COUNT"
	run "$kind: they are intact" python3 "$LAB_SRC/selftests/icrc.py" notice "$LIB_TMP/$kind" $kind

	record "$far" far0 "$LIB_TMP/again"
	run "$kind: replayed" rcxt_replay replay near0 "$LIB_TMP/$kind"
	sed 's/^/# /' "$LIB_TMP/run"
	recorded "$kind: all of the replay arrive" "$COUNT"
	run "$kind: they are the same" "$LAB_SRC/selftests/replay.py" "$LIB_TMP/$kind" "$LIB_TMP/again"
done

# At the sender's end batches are seen before they are cut apart.
record '' near0 "$LIB_TMP/sent"
rcxt_forge -a $FAR -q 17 -n 2000 -b -g 32 random-rxeth > /dev/null
recorded "recorded where they are sent" 2000
run "recorded where they are sent: intact" \
	python3 "$LAB_SRC/selftests/icrc.py" notice "$LIB_TMP/sent" bare

record "$far" far0 "$LIB_TMP/again"
near=$(cat /sys/class/net/near0/address)
rcxt_replay replay near0 "$LIB_TMP/sent" 02:00:00:00:00:01 > "$LIB_TMP/replay"
rcxt_replay replay near0 "$LIB_TMP/sent" "$near" >> "$LIB_TMP/replay"
recorded "only what came from that address" 2000

# A comparison that finds nothing must be one that could.
python3 "$LAB_SRC/selftests/icrc.py" damage "$LIB_TMP/whole" "$LIB_TMP/damaged"
if "$LAB_SRC/selftests/replay.py" "$LIB_TMP/whole" "$LIB_TMP/damaged" > "$LIB_TMP/differ"; then
	notok "a turned bit is found" "$(cat "$LIB_TMP/differ")"
else
	ok "a turned bit is found"
fi
