#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: packets with link-local addresses do not cross between a netdev and a VLAN on it
# tier: check
# lab: --nodes 2 --timeout 300

. "$LAB_SRC/selftests/lib/lib.sh"

modprobe 8021q
ip link add link "$NETDEV" name v5 type vlan id 5 && ip link set v5 up || {
	notok "a VLAN on $NETDEV is created"
	exit
}
port=/sys/class/infiniband/$RDMA_DEV/ports/1

# Print the index of the GID that is the link-local address of a netdev.
link_index() {
	local index
	for index in $(seq 0 63); do
		if [[ $(cat "$port/gids/$index" 2> /dev/null) == fe80:* ]] &&
			[ "$(cat "$port/gid_attrs/ndevs/$index" 2> /dev/null)" = "$1" ] &&
			[ "$(cat "$port/gid_attrs/types/$index" 2> /dev/null)" = "RoCE v2" ]; then
			echo "$index"
			return 0
		fi
	done
	return 1
}

for _ in $(seq $((100 * SLOWER))); do
	plain=$(link_index "$NETDEV") && tagged=$(link_index v5) &&
		! ip -6 addr show tentative | grep -q fe80 && break
	sleep 0.1
done
if [ -z "$plain" ] || [ -z "$tagged" ]; then
	notok "GIDs of the link-local addresses" "$(ip -6 addr)"
	exit
fi
# The link-local addresses must be equal. With different addresses the tests would not depend on the VLAN.
run "$NETDEV and v5 have the same link-local address" cmp "$port/gids/$plain" "$port/gids/$tagged"
barrier

pingpong="ibv_rc_pingpong -d $RDMA_DEV -n 100"
pair "link-local peers without VLAN" "$pingpong -g $plain" "$pingpong -g $plain $IP_1"
pair "link-local peers on a VLAN" "$pingpong -g $tagged" "$pingpong -g $tagged $IP_1"

# refused NAME SERVER CLIENT: the client's requests stay without an answer, and the server gets none of them.
refused() {
	barrier
	if [ "$NODE" = 1 ]; then
		server_start "$2" $((120 * SLOWER))
		barrier
		# Wait until the client has ended.
		barrier "$1" $((120 * SLOWER))
		if kill -0 "$SERVER" 2> /dev/null; then
			ok "$1"
		else
			notok "$1" "the server has ended"
			show_tail "$LIB_TMP/server"
		fi
		kill -KILL -- "-$SERVER"
		wait "$SERVER" 2> /dev/null
		return
	fi
	barrier
	if timeout $((60 * SLOWER)) $3 > "$LIB_TMP/client" 2>&1; then
		notok "$1" "the client had an answer"
	elif grep -q "transport retry counter exceeded" "$LIB_TMP/client"; then
		ok "$1"
	else
		notok "$1" "the client failed otherwise"
		show_tail "$LIB_TMP/client"
	fi
	barrier "$1" $((120 * SLOWER))
}

refused "a VLAN does not reach the netdev below" "$pingpong -g $plain" "$pingpong -g $tagged $IP_1"
refused "a netdev does not reach the VLAN above" "$pingpong -g $tagged" "$pingpong -g $plain $IP_1"
exit 0
