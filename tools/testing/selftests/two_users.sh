#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# promise: one user is refused at a limit of its own, and leaves rCxts and memory for others
# tier: check
# lab: --nodes 1 --timeout 300
# lab debug: --machine uml --nodes 1 --kernel debug --timeout 900
# tier debug: long

# shellcheck disable=SC2046 # a user is several words

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

group=/sys/fs/cgroup/greedy

user() {
	echo "setpriv --reuid $1 --regid $1 --clear-groups"
}

# Waits until the greedy user has all that it gets; TAKEN is what it said.
greedy_begins() {
	local tries
	$(user 4711) greedy "$RDMA_DEV" "$1" 4720 > "$LIB_TMP/greedy" 2>&1 &
	GREEDY=$!
	TAKEN=
	for tries in $(seq $((300 * SLOWER))); do
		TAKEN=$(sed -n 's/.*: \([0-9]*\) taken.*/\1/p' "$LIB_TMP/greedy")
		[ -n "$TAKEN" ] && break
		kill -0 $GREEDY 2> /dev/null || break
		sleep 0.1
	done
	sed 's/^/# greedy: /' "$LIB_TMP/greedy"
}

greedy_ends() {
	kill -TERM $GREEDY 2> /dev/null
	wait $GREEDY 2> /dev/null
}

before=$(resources "$RDMA_DEV")

greedy_begins rcxts
if [ -z "$TAKEN" ]; then
	notok "one user takes all rCxts that it gets" "$(last_words "$LIB_TMP/greedy")"
else
	run "another user gets rCxts, after one took $TAKEN" $(user 4712) greedy "$RDMA_DEV" rcxts 4721 1000
fi
greedy_ends
resources_check "rCxts: all is given back" "$RDMA_DEV" "$before"

# CQs of 4 MiB each, in a memory cgroup of 64 MiB: refused, or killed, by the time that it has 16.
if [ -e /sys/fs/cgroup/cgroup.controllers ] && grep -q memory /sys/fs/cgroup/cgroup.controllers; then
	echo +memory > /sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group && echo 64M > $group/memory.max
	(
		echo $BASHPID > $group/cgroup.procs
		exec timeout 60 $(user 4711) greedy "$RDMA_DEV" cqs 4720 64
	) > "$LIB_TMP/greedy" 2>&1
	status=$?
	sed 's/^/# greedy: /' "$LIB_TMP/greedy"
	taken=$(sed -n 's/.*: \([0-9]*\) taken.*/\1/p' "$LIB_TMP/greedy")
	name="memory of CQs is charged to the memory cgroup of their user"
	if [ "${taken:-0}" -le 16 ] && [ $status != 0 ]; then
		ok "$name"
	else
		notok "$name" "$taken CQs of 4 MiB in 64 MiB"
	fi
	rmdir $group
else
	skip "memory of CQs is charged to the memory cgroup of their user" "no memory controller"
fi
resources_check "CQs: all is given back" "$RDMA_DEV" "$before"
