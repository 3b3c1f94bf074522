# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Results of a script as a KTAP report (Documentation/dev-tools/ktap.rst of the kernel): . ktap.sh
#
#   KTAP version 1
#   ok 1 - NAME
#   not ok 2 - NAME # WHY
#   ok 3 - NAME # SKIP WHY
#   1..3
#
# The plan is the last line, so a report without a plan comes from a script that ended too early. A line that begins
# with "# " is a note. One process at a time may print results.
#
#   ok NAME | notok NAME [WHY] | skip NAME [WHY]	print a result
#   report COMMAND...				run a program that prints a KTAP report, and print its results
#   report_file FILE [PREFIX]			print the results of a program whose output is in the file
#   ktap_failed					true if a result was "not ok"
#   ktap_mark					begin an attempt, whose output the script does not print yet
#   ktap_reset					forget the results since ktap_mark
#   ktap_end [STATUS]				print the plan and exit with STATUS (default 0), but with 1 instead of
#						0 if a result was "not ok"

# A file with the numbers of results and of failures, because subshells also print results.
KTAP_STATE=$(mktemp)
echo 0 0 > "$KTAP_STATE"

# ktap_line VERDICT FAILURES NAME NOTE
ktap_line() {
	local count failed name=${3//$'\n'/ } note=${4//$'\n'/ }
	read -r count failed < "$KTAP_STATE"
	[ "$count" != 0 ] || echo "KTAP version 1"
	count=$((count + 1))
	echo "$count $((failed + $2))" > "$KTAP_STATE"
	# In a report the first " # " separates the name from the note, so the name must not contain " # ".
	printf '%s %d - %s%s\n' "$1" $count "${name// # / - }" "${note:+ # $note}"
}

ok() {
	ktap_line ok 0 "$1" ''
}

notok() {
	ktap_line "not ok" 1 "$1" "${2:-failed}"
}

skip() {
	ktap_line ok 0 "$1" "SKIP ${2:-}"
}

# ktap_complete COUNT PLAN: print what is wrong with a report of COUNT results; nothing if it is complete
ktap_complete() {
	if [ -z "$2" ]; then
		echo "it ended before its plan, after $1 results"
	elif [ "$1" != "$2" ]; then
		echo "it printed $1 of $2 results"
	fi
}

# ktap_take SOURCE [PREFIX]: print the results of the reports on the standard input, and their other lines. False if
# a result is a failure, or if a report is not complete.
ktap_take() {
	local line count=0 plan='' why='' bad='' begun='' name note
	while IFS= read -r line || [ -n "$line" ]; do
		line=${line%$'\r'}
		if [[ $line == "KTAP version "* ]]; then
			[ -z "$begun" ] || why=${why:-$(ktap_complete "$count" "$plan")}
			begun=1 count=0 plan=
		elif [[ $line =~ ^1\.\.([0-9]+)$ ]]; then
			plan=${BASH_REMATCH[1]}
		elif [[ $line =~ ^(ok|not ok)\ ([0-9]+)\ -\ (.*)$ ]]; then
			count=$((count + 1))
			[ "${BASH_REMATCH[2]}" = $count ] || why="${why:-result $count has the number ${BASH_REMATCH[2]}}"
			name=${2:-}${BASH_REMATCH[3]%% # *} note=
			[[ ${BASH_REMATCH[3]} != *" # "* ]] || note=${BASH_REMATCH[3]#* # }
			if [ "${BASH_REMATCH[1]}" = "not ok" ]; then
				bad=1
				notok "$name" "$note"
			elif [[ $note == SKIP* ]]; then
				note=${note#SKIP}
				skip "$name" "${note# }"
			else
				ok "$name"
			fi
		else
			printf '%s\n' "$line"
		fi
	done
	why=${why:-$(ktap_complete "$count" "$plan")}
	# A program may end early after a failure, so then an incomplete report is no further failure.
	[ -z "$why" ] || [ -n "$bad" ] || notok "${2:-}$1: the report is complete" "$why"
	[ -z "$why$bad" ]
}

report() {
	local status
	"$@" | ktap_take "${1##*/}"
	status=("${PIPESTATUS[@]}")
	[ "${status[*]}" != "0 0" ] || return 0
	[ "${status[1]}" != 0 ] || notok "${1##*/}: the exit status" "it is ${status[0]}"
	return 1
}

report_file() {
	if [ -e "$1" ]; then
		ktap_take "${1##*/}" "${2:-}" < "$1"
	else
		notok "${2:-}${1##*/}: the report is complete" "there is none"
	fi
}

ktap_failed() {
	local count failed
	read -r count failed < "$KTAP_STATE"
	[ "$failed" != 0 ]
}

ktap_mark() {
	KTAP_MARK=$(cat "$KTAP_STATE")
}

ktap_reset() {
	echo "$KTAP_MARK" > "$KTAP_STATE"
}

ktap_end() {
	local count failed
	read -r count failed < "$KTAP_STATE"
	rm -f "$KTAP_STATE"
	[ "$count" != 0 ] || echo "KTAP version 1"
	echo "1..$count"
	if [ "${1:-0}" = 0 ] && [ "$failed" != 0 ]; then
		exit 1
	fi
	exit "${1:-0}"
}
