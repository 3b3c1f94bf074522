#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a key that is guessed, or was invalidated, gives no access
# tier: check
# lab: --nodes 2 --cpus 2 --timeout 300 --env GUESSES=200000
# lab long: --nodes 2 --cpus 2 --timeout 20000 --env GUESSES=10000000
# tier long: long
# lab million: --machine uml --nodes 2 --cpus 2 --timeout 7200 --env GUESSES=10000000
# tier million: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

guesses=${GUESSES:-200000}
limit=$((120 + guesses / 1000))
port=18700

keys_pair() {
	local name=$1 command gid
	shift
	gid=$(gid_index) || exit 1
	port=$((port + 1))
	command="keys -d $RDMA_DEV -g $gid -p $port -r ${SEED:-$RANDOM}"
	pair "$name" "$command $*" "$command $IP_1" $limit
	[ "$NODE" = 2 ] || grep '^# ' "$LIB_TMP/server"
}

keys_pair "guessed keys and keys of deregistered regions" -n "$guesses" -w /tmp/keys
if [ "$NODE" = 1 ]; then
	rdma link del "$RDMA_DEV"
	if ! module_remove || ! module_insert ||
		! device_add "$RDMA_DEV" "$NETDEV" "$MY_IP" "$MY_IP6"; then
		notok "the module is reloaded" "see above"
	fi
fi
barrier reloaded
keys_pair "keys from before the reload of the module" -n 1000 -f /tmp/keys
