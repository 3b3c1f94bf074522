#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a user who reaches a limit is refused; other users still get their part, and their round trips take no longer
# tier: check
# lab: --nodes 1 --timeout 300
# lab long: --nodes 1 --timeout 300 --env P99_RATIO=2
# tier long: long
# lab debug: --machine uml --nodes 1 --kernel debug --timeout 900
# tier debug: long

# shellcheck disable=SC2046 # a user is several words

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

group=/sys/fs/cgroup/greedy
RATIO=${P99_RATIO:-10}

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

# The p99 of the round trips of another user, in nanoseconds
p99() {
	$(user 4712) round_trips > "$LIB_TMP/round_trips" 2>&1
	sed -n 's/^p99 //p' "$LIB_TMP/round_trips"
}

# Another user's round trips, beside one user who holds all that it got, take at most P99_RATIO times
# as long as alone.  They are measured alone immediately before and after, because the machine's
# speed changes in the course of a test.  The mark is 2; without P99_RATIO the check leaves room for
# other work of the machine.
#	p99_check KIND ALONE_BEFORE BESIDE ALONE_AFTER
p99_check() {
	local kind=$1 alone=$2 beside=$3 after=$4 name
	name="$kind: another user's round trips take at most $RATIO times as long"
	[ "${after:-0}" -gt "${alone:-0}" ] && alone=$after
	echo "# $kind: p99 $beside ns beside a user who holds all, alone $2 ns before and $4 ns after"
	if [ -n "$beside" ] && [ "$beside" -le $((RATIO * ${alone:-0})) ]; then
		ok "$name"
	else
		notok "$name" "p99 ${beside:-?} ns, alone ${alone:-?} ns $(last_words "$LIB_TMP/round_trips")"
	fi
}

before=$(resources "$RDMA_DEV")

# Of pools that all users of a device share; the other one wants so many.
shared() {
	local kind=$1 bound=$2 alone beside
	alone=$(p99)
	greedy_begins "$kind"
	if [ -z "$TAKEN" ]; then
		notok "$kind: one user takes all that it gets" "$(last_words "$LIB_TMP/greedy")"
		greedy_ends
	else
		run "$kind: another user gets some, after one took $TAKEN" \
			$(user 4712) greedy "$RDMA_DEV" "$kind" 4721 "$bound"
		beside=$(p99)
		greedy_ends
		p99_check "$kind" "$alone" "$beside" "$(p99)"
	fi
	resources_check "$kind: all is given back" "$RDMA_DEV" "$before"
}

shared rcxts 1000
shared dm 4096
shared groups 100

# In a memory cgroup of 64 MiB: a user is refused, or killed. Another one has memory.
#	memory KIND MOST	it has at most so many by then
memory() {
	local kind=$1 most=$2 alone beside name="$1: memory is charged to the memory cgroup of the user"
	alone=$(p99)
	echo 64M > $group/memory.max
	(
		echo $BASHPID > $group/cgroup.procs
		exec timeout 120 $(user 4711) greedy "$RDMA_DEV" "$kind" 4720
	) > "$LIB_TMP/greedy" 2>&1 &
	GREEDY=$!
	TAKEN=
	for tries in $(seq $((300 * SLOWER))); do
		TAKEN=$(sed -n 's/.*: \([0-9]*\) taken.*/\1/p' "$LIB_TMP/greedy")
		[ -n "$TAKEN" ] && break
		kill -0 $GREEDY 2> /dev/null || break
		sleep 0.1
	done
	sed 's/^/# greedy: /' "$LIB_TMP/greedy"
	if [ "${TAKEN:-0}" -le "$most" ]; then
		ok "$name"
	else
		notok "$name" "$TAKEN in 64 MiB"
	fi
	run "$kind: another user gets some" $(user 4712) greedy "$RDMA_DEV" "$kind" 4721 2
	beside=$(p99)
	greedy_ends
	p99_check "$kind" "$alone" "$beside" "$(p99)"
	resources_check "$kind: all is given back" "$RDMA_DEV" "$before"
}

if [ -e /sys/fs/cgroup/cgroup.controllers ] && grep -q memory /sys/fs/cgroup/cgroup.controllers; then
	echo +memory > /sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	# 4 MiB each
	memory cqs 16
	# 2 MiB or more each
	memory qps 40
	rmdir $group
else
	skip "memory is charged to the memory cgroup of the user" "no memory controller"
fi
