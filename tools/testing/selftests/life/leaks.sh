#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the checks for leaks report what stopped processes hold, and nothing after the end of these processes
# tier: long
# lab: --nodes 1 --timeout 240
# lab debug: --nodes 1 --kernel debug --timeout 600

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
QPS=200

# notices CHECK REGEX... -- COMMAND...: the check must print "not ok" with a reason that matches each REGEX
notices() {
	local check=$1 wanted=()
	shift
	while [ "$1" != -- ]; do
		wanted+=("$1")
		shift
	done
	shift
	ktap_mark
	if ("$@") > "$LIB_TMP/notices"; then
		ktap_reset
		notok "$check finds the leak" "it reports nothing"
		return
	fi
	ktap_reset
	for regex in "${wanted[@]}"; do
		if grep '^not ok' "$LIB_TMP/notices" | grep -Eq "$regex"; then
			ok "$check reports $regex"
		else
			notok "$check reports $regex" "it reports something else"
			show_tail "$LIB_TMP/notices"
		fi
	done
}

# Start two processes with 200 connected QPs each, wait until the QPs exist, and stop both processes (SIGSTOP).
hold() {
	local command="verify_xfer -d $RDMA_DEV -g $gid -q $QPS -s 64 -w 2 -L 600" pid tries
	# shellcheck disable=SC2086 # words
	setsid $command > "$LIB_TMP/server" 2>&1 < /dev/null &
	HOLDERS=$!
	for tries in $(seq 100); do
		listens $HOLDERS && break
		sleep 0.1
	done
	# shellcheck disable=SC2086 # words
	setsid $command "$MY_IP" > "$LIB_TMP/client" 2>&1 < /dev/null &
	HOLDERS+=" $!"
	for tries in $(seq 300); do
		[[ $(resources "$RDMA_DEV") == *"qp $((2 * QPS + 1)) "* ]] && break
		sleep 0.1
	done
	sleep 1
	# shellcheck disable=SC2086 # two numbers
	kill -STOP $HOLDERS
}

release() {
	# shellcheck disable=SC2086 # two numbers
	kill -KILL $HOLDERS
	# shellcheck disable=SC2086 # two numbers
	wait $HOLDERS 2> /dev/null
}

before=$(resources "$RDMA_DEV")
# A first run makes allocations that stay, such as caches. The checks count only what the second run adds.
hold
release
resources_are "$RDMA_DEV" "$before"
memory_mark

hold
notices resources_check "qp $((2 * QPS + 1)) " -- resources_check held "$RDMA_DEV" "$before"
notices memory_check "kmalloc[^ ]*: [0-9]+ ->" vmalloc-areas pinned-pages -- memory_check held $QPS
release
resources_check "resources_check finds no leak afterwards" "$RDMA_DEV" "$before"
memory_check "memory_check finds no leak afterwards" $QPS

# Processes hold no module reference, so that the module can be removed while they run. So falsify the recorded number
# of references: the check must find the difference.
sed -i 's/^module-references .*/module-references -1/' "$LIB_TMP/memory"
notices memory_check "module-references: -1 -> 0" -- memory_check held $QPS
