#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an invalidation costs at most 30 % more with 50,000 idle queue pairs than with one, and slows a stream on another key by at most 10 %
# tier: long
# lab idle: --nodes 1 --clock instructions --memory 6144 --timeout 3000 --env MODE=idle
# lab stream: --nodes 1 --cpus 2 --timeout 300 --env MODE=stream

. "$LAB_SRC/selftests/lib/lib.sh"

gid=$(gid_index) || exit 1

value() {
	awk -v name="$1" '$1 == name { print $2 }' "$LIB_TMP/$2"
}

ratio() {
	awk "BEGIN { printf \"%.3f\", $1 / ($2 ? $2 : 1) }"
}

measure() {
	local log=$1
	shift
	timeout 1500 invcost -d "$RDMA_DEV" -g "$gid" "$@" > "$LIB_TMP/$log" 2>&1 || {
		notok "invcost $*" "$(tail -n 1 "$LIB_TMP/$log")"
		return 1
	}
	sed "s/^/#   $log: /" "$LIB_TMP/$log"
}

idle() {
	local counts="1 1000 ${MANY:-50000}" many=${MANY:-50000} n what first last
	# Each send queue needs a mapping, so raise the limit of mappings of a process.
	sysctl -qw vm.max_map_count=1000000
	for n in $counts; do
		measure "$n" -m idle -q "$n" || return
	done
	if [ "$(value qps "$many")" != "$many" ]; then
		notok "$many idle queue pairs" "only $(value qps "$many") could be created"
	fi
	for what in local_inv unbind dereg; do
		first=$(value ${what}_ns 1) last=$(value ${what}_ns "$many")
		echo "# $what: $first ns with 1, $(value ${what}_ns 1000) with 1000, $last with $many idle QPs"
		if awk "BEGIN { exit !($last <= 1.3 * $first) }"; then
			ok "$what with $many idle queue pairs costs at most 1.3 times as much as with one"
		else
			notok "$what with $many idle queue pairs costs at most 1.3 times as much as with one" \
				"$(ratio "$last" "$first")"
		fi
	done
}

stream() {
	local part
	measure stream -m stream -t "${SECONDS_EACH:-0.5}" || return
	part=$(value part stream)
	echo "# $part of the undisturbed stream; longest pause $(value busy_pause_ns stream) ns," \
		"undisturbed $(value calm_pause_ns stream) ns; one bind or invalidation $(value bind_ns stream) ns"
	if awk "BEGIN { exit !($part >= 0.9) }"; then
		ok "a stream keeps 90 % of its rate during binds and invalidations of another key"
	else
		notok "a stream keeps 90 % of its rate during binds and invalidations of another key" "$part"
	fi
}

case ${MODE:-idle} in
idle) idle ;;
stream) stream ;;
esac
