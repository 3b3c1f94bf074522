# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for test scripts in a guest: . "$LAB_SRC/selftests/lib/lib.sh"
#
#   ok, notok, skip, report, report_file	print results as a KTAP report: see ktap.sh
#   run NAME COMMAND...				print ok if the command succeeds, else notok with its last lines
#   pair NAME SERVER CLIENT [SECONDS]		run SERVER on node 1 and CLIENT on node 2 (or both on the only node)
#   gid_index [IP]				print the index of the RoCEv2 GID of this node's address, or of IP
#   leak_snapshot / leak_check NAME		check that the driver has no more slab objects than at the snapshot, and
#						the same number of module references
#   barrier [NAME] [SECONDS]			wait until every node has called it (a command of the lab)
#
# A script that printed a "not ok" exits with status 1, even if its last command succeeded.

. "$LAB_SRC/selftests/lib/ktap.sh"

# where the test programs in Python find the modules that they share
export PYTHONPATH=$LAB_SRC/selftests/lib
# factor on time limits, for kernels with checkers
SLOWER=${SLOWER:-1}
RUN_TIMEOUT=${RUN_TIMEOUT:-60}
PAIR_TIMEOUT=${PAIR_TIMEOUT:-60}
SHOWN_LINES=${SHOWN_LINES:-15}
LIB_TMP=$(mktemp -d)
LIB_PAIRS=0

lib_exit() {
	local status=$?
	rm -rf "$LIB_TMP"
	ktap_end $status
}
trap lib_exit EXIT

# Print the last lines of a captured output, with "#" in front so that they are not taken for results.
show_tail() {
	tail -n "$SHOWN_LINES" "$1" | sed 's/^/#   /'
}

# Print the last line of a command's output in brackets, as the reason of a result. Skip the plan of a report, which
# gives no reason.
last_words() {
	local words
	words=$(grep -v '^1\.\.' "$1" | tail -n 1 | tr -d '\r' | cut -c 1-160)
	echo "${words:+ ($words)}"
}

# status_text STATUS SECONDS: describe the exit status of a command that ran under timeout(1)
status_text() {
	case $1 in
	124) echo "no end after $2 s" ;;
	137) echo "killed (no end after $2 s, or out of memory)" ;;
	*) echo "status $1" ;;
	esac
}

run() {
	local name=$1 status
	shift
	timeout -k 5 "$((RUN_TIMEOUT * SLOWER))" "$@" > "$LIB_TMP/run" 2>&1 < /dev/null
	status=$?
	if [ $status = 0 ]; then
		ok "$name"
		return 0
	fi
	notok "$name" "$(status_text $status "$((RUN_TIMEOUT * SLOWER))"): $*$(last_words "$LIB_TMP/run")"
	show_tail "$LIB_TMP/run"
	return 1
}

# Print an IP address in the format of the kernel's GID table.
gid_text() {
	local ip=$1 head tail words out= group
	if [[ $ip == *.* ]]; then
		# shellcheck disable=SC2046,SC2086 # four words
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' $(IFS=.; echo $ip)
		return
	fi
	head=${ip%%::*} tail=
	[[ $ip == *::* ]] && tail=${ip#*::}
	IFS=: read -ra words <<< "$head"
	IFS=: read -ra rest <<< "$tail"
	while [ $((${#words[@]} + ${#rest[@]})) -lt 8 ]; do
		words+=(0)
	done
	for group in "${words[@]}" "${rest[@]}"; do
		out+=$(printf ':%04x' "0x$group")
	done
	echo "${out:1}"
}

gid_index() {
	local mine=IP_$NODE wanted index port=/sys/class/infiniband/$RDMA_DEV/ports/1
	wanted=$(gid_text "${1:-${!mine}}")
	for index in $(seq 0 255); do
		[ -e "$port/gids/$index" ] || break
		if [ "$(cat "$port/gids/$index")" = "$wanted" ] &&
			[ "$(cat "$port/gid_attrs/types/$index" 2> /dev/null)" = "RoCE v2" ]; then
			echo "$index"
			return 0
		fi
	done
	echo "lib: $RDMA_DEV has no RoCEv2 GID for ${1:-${!mine}}" >&2
	return 1
}

# listens SESSION: true if a process of the session listens on TCP or through rdma_cm
listens() {
	local pid inodes
	for pid in $(pgrep -s "$1"); do
		inodes=$(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' 2> /dev/null |
			tr -dc '0-9\n' | paste -sd'|')
		[ -n "$inodes" ] && awk -v inodes="^($inodes)\$" \
			'$4 == "0A" && $10 ~ inodes { found = 1 } END { exit !found }' \
			"/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" && return 0
		rdma res show cm_id pid "$pid" 2> /dev/null | grep -q 'state LISTEN' && return 0
	done
	return 1
}

# server_start COMMAND SECONDS: start the server in its own session. Returns true when the server listens or after 5 s
# times SLOWER, and false if the server has ended before.
server_start() {
	local command=$1 tries
	setsid timeout -k 5 "$2" bash -c "$command" > "$LIB_TMP/server" 2>&1 < /dev/null &
	SERVER=$!
	for tries in $(seq $((50 * SLOWER))); do
		kill -0 $SERVER 2> /dev/null || return 1
		listens $SERVER && return 0
		sleep 0.1
	done
	# The server may wait for its client in a way that listens() cannot detect, so let the client try.
	return 0
}

# server_finish NAME FLAG SECONDS: the server must end by itself with success within 10 s times SLOWER after its client.
# The file FLAG exists if the client has failed.
server_finish() {
	local name=$1 flag=$2 limit=$3 status tries
	for tries in $(seq $((100 * SLOWER))); do
		kill -0 $SERVER 2> /dev/null || break
		[ -e "$flag" ] && break
		sleep 0.1
	done
	if kill -0 $SERVER 2> /dev/null; then
		# Call wait after kill, so that bash does not print that its job was killed.
		kill -KILL -- -$SERVER
		wait $SERVER 2> /dev/null
		pkill -KILL -s $SERVER
		if [ -e "$flag" ]; then
			notok "$name" "the client failed while the server waited"
		else
			notok "$name" "the server did not end within $((10 * SLOWER)) s of its client"
		fi
		show_tail "$LIB_TMP/server"
		return 1
	fi
	wait $SERVER
	status=$?
	[ $status = 0 ] && return 0
	notok "$name" "server: $(status_text $status "$limit")$(last_words "$LIB_TMP/server")"
	show_tail "$LIB_TMP/server"
	return 1
}

client_run() {
	local name=$1 flag=$2 command=$3 limit=$4 status
	timeout -k 5 "$limit" bash -c "$command" > "$LIB_TMP/client" 2>&1 < /dev/null
	status=$?
	[ $status = 0 ] && return 0
	: > "$flag"
	notok "$name" "client: $(status_text $status "$limit")$(last_words "$LIB_TMP/client")"
	show_tail "$LIB_TMP/client"
	return 1
}

pair() {
	local name=$1 server=$2 client=$3 limit=$((${4:-$PAIR_TIMEOUT} * SLOWER)) flag good=1
	LIB_PAIRS=$((LIB_PAIRS + 1))
	flag=$LAB_CTL/pair.$LIB_PAIRS
	if [ "$NODE" = 1 ]; then
		# Allow the server 30 s more, because its client may start that much later.
		if ! server_start "$server" $((limit + 30)); then
			: > "$flag.server"
			notok "$name" "the server ended before its client came"
			show_tail "$LIB_TMP/server"
		fi
	fi
	[ "$NODES" = 1 ] || barrier "pair-$LIB_PAIRS-ready" || exit 1
	if [ -e "$flag.server" ]; then
		good=
	else
		if [ "$NODE" = 2 ] || [ "$NODES" = 1 ]; then
			client_run "$name" "$flag" "$client" "$limit" || good=
		fi
		# Node 1 checks its server only after the client has ended, at most $limit s later.
		[ "$NODES" = 1 ] || barrier "pair-$LIB_PAIRS-done" $((limit + 60)) || exit 1
		if [ "$NODE" = 1 ]; then
			server_finish "$name" "$flag" $((limit + 30)) || good=
		fi
	fi
	[ "$NODES" = 1 ] || barrier "pair-$LIB_PAIRS-end" || exit 1
	if [ -n "$good" ] && [ "$NODE" -le 2 ]; then
		ok "$name"
	fi
	[ -n "$good" ]
}

# Print a line for each nhca slab cache with its objects in use, and a line with the module's references.
leak_state() {
	awk '$1 ~ /^nhca/ { print $1, $2 }' /proc/slabinfo
	[ -e /sys/module/nhca/refcnt ] && echo "references $(cat /sys/module/nhca/refcnt)"
}

# Objects in per-CPU slabs count as in use, so shrink the caches first.
leak_shrink() {
	local cache
	for cache in /sys/kernel/slab/nhca*/shrink; do
		[ -w "$cache" ] && echo 1 > "$cache"
	done
}

leak_snapshot() {
	leak_shrink
	leak_state > "$LIB_TMP/leaks"
}

# True if there are more objects, or another number of references, than in the snapshot. Fewer objects are no error:
# the snapshot may also have counted free objects in per-CPU slabs.
leak_seen() {
	awk 'NR == FNR { before[$1] = $2; next }
		$1 == "references" ? $2 != before[$1] : $2 > before[$1] + 0 { seen = 1 }
		END { exit !seen }' "$LIB_TMP/leaks" "$LIB_TMP/leaks.now"
}

leak_check() {
	local tries
	# RCU and work items free objects with a delay, so try for 10 s.
	for tries in $(seq 50); do
		leak_state > "$LIB_TMP/leaks.now"
		leak_seen || {
			ok "$1"
			return 0
		}
		leak_shrink
		sleep 0.2
	done
	notok "$1" "slab objects or module references have grown"
	diff "$LIB_TMP/leaks" "$LIB_TMP/leaks.now" | sed 's/^/#   /'
	return 1
}
