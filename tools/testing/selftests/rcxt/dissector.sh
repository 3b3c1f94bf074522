#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: Wireshark shows each field of an rCxt datagram as documented, and marks the datagrams that nhca drops
# tier: check
# lab: --nodes 1 --driver none --timeout 120
# lab bookworm: --nodes 1 --driver none --release bookworm --timeout 120
# tier bookworm: long

. "$LAB_SRC/selftests/lib/lib.sh"

SCRIPT=/usr/local/share/wireshark/nhca.lua
# tshark runs as nobody and must be able to read its working directory.
cd / || exit 1

dissector() {
	"$LAB_SRC/selftests/rcxt/dissector.py" "$@"
}

# Decode the capture on the standard input with tshark. tshark runs as nobody, because it loads no Lua script as root.
decode() {
	local fields
	fields=$(dissector fields | sed 's/^/-e /')
	# shellcheck disable=SC2086 # each field is two words
	setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/nonexistent \
		tshark -n -X "lua_script:$SCRIPT" -r - -T fields -E separator=/t -E occurrence=a \
		-E aggregator=, $fields 2> "$LIB_TMP/tshark"
}

dissector build "$LIB_TMP/pcap" || exit 1
decode < "$LIB_TMP/pcap" > "$LIB_TMP/fields"
report dissector check "$LIB_TMP/fields"
show_tail "$LIB_TMP/tshark"

# Test of the test: the check must find a changed bit.
dissector damage "$LIB_TMP/pcap" || exit 1
decode < "$LIB_TMP/pcap" > "$LIB_TMP/fields"
dissector check "$LIB_TMP/fields" | sed 's/^/#   /' > "$LIB_TMP/damaged"
if [ "$(grep -c 'not ok' "$LIB_TMP/damaged")" = 1 ] &&
	grep -q 'not ok [0-9]* - write # .* nhca.cookie: 0xfedcba9876543211' "$LIB_TMP/damaged"; then
	ok "the check finds a changed bit"
else
	notok "the check finds a changed bit" "$(grep -m 1 'not ok' "$LIB_TMP/damaged")"
fi
