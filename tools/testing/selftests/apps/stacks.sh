# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for tests of programs that use verbs through a library: . "$LAB_SRC/selftests/apps/stacks.sh" (reads lib.sh)
#
#   over NAME SERVER CLIENT [SECONDS]		like pair(); also fail if the traffic did not use the device, or if a
#						program printed a warning
#   over_endless NAME SERVER CLIENT [AFTER]	like over(), for a server that does not end by itself; after the client,
#						node 1 kills the server and runs AFTER, which must succeed
#   carried					print the device's packets so far, plus the KiB of the same-host path
#
# ucx.sh, libfabric.sh and openmpi.sh have the same list of Debian packages (--packages), so that they share an image.

. "$LAB_SRC/selftests/lib/lib.sh"

carried() {
	local folder=/sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters
	echo $(($(cat $folder/sent_pkts) + $(cat $folder/rcvd_pkts) +
		$(cat $folder/same_host_bytes 2> /dev/null || echo 0) / 1024))
}

# complaints FILE...: print the lines that report a warning or an error
complaints() {
	cat "$@" 2> /dev/null | grep -E 'UCX +(WARN|ERROR|FATAL)|lib[a-z]*: [Ww]arning|not supported'
}

over() {
	local name=$1 before good
	before=$(carried)
	pair "$@" > "$LIB_TMP/over" && good=1
	if [ -n "$good" ] && [ $(($(carried) - before)) -lt "${LEAST:-20}" ]; then
		notok "$name" "the traffic did not use $RDMA_DEV"
	elif [ -n "$good" ] && complaints "$LIB_TMP/server" "$LIB_TMP/client" > "$LIB_TMP/complaints"; then
		notok "$name" "it prints warnings"
		show_tail "$LIB_TMP/complaints"
	else
		cat "$LIB_TMP/over"
	fi
	rm -f "$LIB_TMP/server" "$LIB_TMP/client"
}

STACKS_ENDLESS=0

over_endless() {
	local flag
	STACKS_ENDLESS=$((STACKS_ENDLESS + 1))
	flag=$LAB_CTL/endless.$STACKS_ENDLESS
	over "$1" "$2 & until [ -e $flag ]; do sleep 0.2; done; kill \$!; wait; ${4:-:}" \
		"($3); status=\$?; : > $flag; exit \$status"
}
