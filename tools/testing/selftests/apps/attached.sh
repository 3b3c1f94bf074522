# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for exports that are attached as block devices: . "$LAB_SRC/selftests/apps/attached.sh"
#
#   server_begin	start nhca-store serve with $LIB_TMP/conf, as job $SERVER
#   server_end [SIGNAL]	end the server and wait for it (SIGTERM)
#   server_again [SIGNAL]	end the server, and start it again 2 s later
#   attach [OPTIONS]	attach the export "disk" of node 1; sets ATTACHED to the job and BLOCK to the device
#   detach		detach the device that attach has created; the command must succeed
#   attach_said TEXT	true if the command of attach has printed TEXT on stderr
#   is_gone		true if the block device is gone
#   within SECONDS COMMAND...	wait until the command succeeds
#   node_1 STEP		node 2: make node 1 execute the function STEP, and wait for its end
#   steps		node 1: execute the steps that node 2 requests by node_1, until the step "end"

STEPS=0
STEP_FOLDER=$LAB_CTL/attached
mkdir -p "$STEP_FOLDER"

within() {
	local deadline=$((SECONDS + $1 * SLOWER))
	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}

server_listens() {
	grep -q "exports on port" "$LIB_TMP/server"
}

server_begin() {
	nhca-store serve -c "$LIB_TMP/conf" > "$LIB_TMP/server" 2>&1 < /dev/null &
	SERVER=$!
	within 40 server_listens || notok "the server starts" "$(tail -n 1 "$LIB_TMP/server")"
}

server_end() {
	kill "-${1:-TERM}" $SERVER
	ended $SERVER 20 || notok "the server ends"
}

server_again() {
	server_end "$1"
	sleep 2
	server_begin
}

attach() {
	nhca-store attach "$@" "$IP_1" disk > "$LIB_TMP/attach" 2> "$LIB_TMP/attach.err" < /dev/null &
	ATTACHED=$!
	for _ in $(seq $((100 * SLOWER))); do
		BLOCK=$(cat "$LIB_TMP/attach")
		[ -b "$BLOCK" ] && return
		sleep 0.1
	done
	notok "attach $*" "$(cat "$LIB_TMP/attach.err")"
	exit 1
}

detach() {
	kill -TERM $ATTACHED
	ended $ATTACHED 20
	[ "$JOB_STATUS" = 0 ] || notok "detach" "status $JOB_STATUS: $(tail -n 3 "$LIB_TMP/attach.err")"
	[ ! -b "$BLOCK" ] || notok "detach removes the device"
}

attach_said() {
	grep -q "$1" "$LIB_TMP/attach.err"
}

is_gone() {
	[ ! -b "$BLOCK" ]
}

# The name of a step is in a file whose name is the number of the step.
node_1() {
	STEPS=$((STEPS + 1))
	echo "$*" > "$STEP_FOLDER/new"
	mv "$STEP_FOLDER/new" "$STEP_FOLDER/$STEPS"
	within 600 [ -e "$STEP_FOLDER/$STEPS.done" ] || notok "node 1 executes: $*"
}

steps() {
	local step
	while [ "$step" != end ]; do
		STEPS=$((STEPS + 1))
		until [ -e "$STEP_FOLDER/$STEPS" ]; do
			[ ! -e "$LAB_CTL/status.2" ] || return
			sleep 0.1
		done
		step=$(cat "$STEP_FOLDER/$STEPS")
		[ "$step" = end ] || $step
		touch "$STEP_FOLDER/$STEPS.done"
	done
}
