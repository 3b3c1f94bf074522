# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for benchmark scripts in guests: . "$LAB_SRC/bench/guest.sh"
#
#   bench_cable			create the namespaces "left" and "right", and a veth pair between them
#   bench_ends veth|loop		create two ends on this host: a device in each namespace of bench_cable, or
#				with "loop" one device for both ends
#   bench_here DRIVER		remove all devices of this node, then add a device of DRIVER on $NETDEV
#   bench_load NAME OPTIONS...	run `load` between the ends and print a line `bench NAME {...}`
#   bench_transfers NAME OPTIONS...	like bench_load, with rCxt datagrams
#   bench_messages NAME OPTIONS...	like bench_load, with reliable messages
#   bench_netem [SPEC...]	set netem on both ends of the veth pair, or remove it
#   bench_alone NAME OPTIONS...	measure a ping-pong within one process
#   bench_ping NAME COUNT	measure half of the round trip time of ICMP echoes of 64 bytes between the nodes
#   bench_tcp NAME [SECONDS] [SIZE]	measure a stream of iperf3 between the namespaces, or between the nodes
#
# A failed measurement prints `bench-failed NAME: why`, which the benchmark reports.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

BENCH_PORT=18700
BENCH_MTU=${BENCH_MTU:-9000}

bench_failed() {
	echo "bench-failed $1: $2"
	notok "$1" "$2"
}

# bench_link NAME NETWORK: connect the namespaces by a veth pair
bench_link() {
	local name=$1 network=$2 space n=0
	ip link add "${name}left" type veth peer name "${name}right" || return
	for space in left right; do
		n=$((n + 1))
		ip link set "$name$space" netns $space
		ip -n $space link set "$name$space" mtu "$BENCH_MTU" up
		ip -n $space addr add "$network.$n/24" dev "$name$space"
	done
}

bench_cable() {
	local space
	for space in left right; do
		ip netns add $space && ip -n $space link set lo up || return
	done
	bench_link v 10.97.0
}

bench_driver() {
	LAB_DRIVER=$1
	case $1 in
	rxe) DRIVER_MODULE=rdma_rxe ;;
	*) DRIVER_MODULE=$1 ;;
	esac
	modprobe "$DRIVER_MODULE"
}

# Print the address whose GID a device must have. siw has no GIDs of addresses and needs none.
bench_address() {
	[ "$LAB_DRIVER" = siw ] || echo "$1"
}

bench_gid() {
	if [ "$LAB_DRIVER" = siw ]; then echo 0; else gid_of "$1" "$2"; fi
}

# Create the devices, and set their names BENCH_DEV_1 and BENCH_DEV_2, and the commands BENCH_IN_1 and BENCH_IN_2 that
# enter their namespaces.
bench_ends() {
	local how=$1
	if [ "$how" = veth ]; then
		ip netns exec left rdma link add bench1 type "$LAB_DRIVER" netdev vleft &&
			ip netns exec right rdma link add bench2 type "$LAB_DRIVER" netdev vright || return
		BENCH_DEV_1=bench1 BENCH_DEV_2=bench2
		BENCH_IN_1="ip netns exec left" BENCH_IN_2="ip netns exec right"
		BENCH_HOST=10.97.0.1
		# shellcheck disable=SC2046 # an address or nothing
		device_ready bench1 $(bench_address 10.97.0.1) &&
			device_ready bench2 $(bench_address 10.97.0.2) || return
		BENCH_GID_1=$(bench_gid bench1 10.97.0.1) BENCH_GID_2=$(bench_gid bench2 10.97.0.2)
	else
		ip link add loop0 type dummy && ip link set loop0 mtu "$BENCH_MTU" up &&
			ip addr add 10.98.0.1/24 dev loop0
		device_add bench1 loop0 10.98.0.1 || return
		BENCH_DEV_1=bench1 BENCH_DEV_2=bench1 BENCH_IN_1='' BENCH_IN_2=''
		BENCH_HOST=10.98.0.1
		BENCH_GID_1=$(gid_of bench1 10.98.0.1) BENCH_GID_2=$BENCH_GID_1
	fi
}

bench_ends_gone() {
	local dev
	for dev in bench1 bench2; do
		[ -e /sys/class/infiniband/$dev ] && rdma link del $dev
	done
	ip link del loop0 2> /dev/null
	module_remove
}

bench_here() {
	local dev
	for dev in /sys/class/infiniband/*; do
		[ -e "$dev" ] && rdma link del "${dev##*/}"
	done
	module_remove 2> /dev/null
	bench_driver "$1" || return
	# shellcheck disable=SC2046 # an address or nothing
	device_add bench1 "$NETDEV" $(bench_address "$MY_IP") || return
	BENCH_DEV_1=bench1 BENCH_DEV_2=bench1 BENCH_HOST=$IP_1
	BENCH_GID_1=$(bench_gid bench1 "$MY_IP") BENCH_GID_2=$BENCH_GID_1
	barrier
}

bench_alone() {
	local name=$1
	shift
	# shellcheck disable=SC2086 # words
	if $BENCH_IN_1 timeout 300 load -m alone -d $BENCH_DEV_1 -g $BENCH_GID_1 "$@" \
		> "$LIB_TMP/client" 2>&1; then
		sed -n "s/^{/bench $name {/p" "$LIB_TMP/client"
	else
		bench_failed "$name" "$(tail -n 2 "$LIB_TMP/client" | tr '\n' ' ')"
	fi
}

# With one node both ends are on this node. With two, node 1 is the passive end.
bench_load() {
	local name=$1 ok= program=${BENCH_PROGRAM:-load}
	shift
	BENCH_PORT=$((BENCH_PORT + 1))
	set -- -p $BENCH_PORT "$@"
	if [ "$NODE" = 1 ]; then
		# shellcheck disable=SC2086 # words
		$BENCH_IN_1 timeout 300 $program -d $BENCH_DEV_1 -g $BENCH_GID_1 "$@" > "$LIB_TMP/server" 2>&1 &
	fi
	if [ "$NODE" = "$NODES" ]; then
		# shellcheck disable=SC2086
		timeout 300 $BENCH_IN_2 $program -d $BENCH_DEV_2 -g $BENCH_GID_2 "$@" $BENCH_HOST \
			> "$LIB_TMP/client" 2>&1 && ok=1
		sed -n "s/^{/bench $name {/p" "$LIB_TMP/client"
		[ -n "$ok" ] || bench_failed "$name" "$(tail -n 2 "$LIB_TMP/client" | tr '\n' ' ')"
	fi
	[ "$NODES" = 1 ] || barrier
	if [ "$NODE" = 1 ]; then
		[ "$NODES" = 1 ] && [ -n "$ok" ] || kill %% 2> /dev/null
		wait
	fi
}

bench_transfers() {
	BENCH_PROGRAM=transfers bench_load "$@"
}

bench_messages() {
	BENCH_PROGRAM=msg_xfer bench_load "$@" -e -f -j
}

bench_netem() {
	local space
	for space in left right; do
		tc -n $space qdisc del dev v$space root 2> /dev/null
		[ $# = 0 ] || tc -n $space qdisc add dev v$space root netem limit 100000 "$@" || return
	done
}

# For comparison, measure a latency with only one process: the kernel of node 1 answers the ICMP echoes.
bench_ping() {
	if [ "$NODE" = "$NODES" ]; then
		ping -n -A -s 56 -c "$2" "$IP_1" > "$LIB_TMP/ping" 2>&1
		python3 -c 'import json, re, sys
ns = sorted(float(ms) * 5e5 for ms in re.findall(r" time=([0-9.]+) ms", sys.stdin.read()))
at = lambda part: round(ns[min(int(len(ns) * part), len(ns) - 1)])
print("bench", sys.argv[1], json.dumps({"mode": "pingpong", "op": "echo", "size": 64, "count": len(ns),
      "p50_ns": at(0.5), "p99_ns": at(0.99), "p999_ns": at(0.999), "least_ns": round(ns[0])}))' \
			"$1" < "$LIB_TMP/ping" || bench_failed "$1" "$(tail -n 2 "$LIB_TMP/ping" | tr '\n' ' ')"
	fi
	barrier
}

# listening PREFIX PORT: true if a process listens on the TCP port in the namespace that the command PREFIX enters
listening() {
	# shellcheck disable=SC2086 # words
	$1 ss -Hltn "sport = :$2" | grep -q .
}

bench_tcp() {
	local name=$1 seconds=${2:-2} size=${3:-65536} server= host=$IP_1 left= right=
	if [ "$NODES" = 1 ]; then
		left='ip netns exec left' right='ip netns exec right' host=10.97.0.1
	fi
	if [ "$NODE" = 1 ]; then
		$left iperf3 -s -1 > "$LIB_TMP/server" 2>&1 &
		server=$!
		# Wait up to 20 s of guest time until the server listens. With the instruction clock
		# (Documentation/lab.rst), guest time runs fast while the guest waits for its disk.
		for _ in $(seq 200); do
			listening "$left" 5201 && break
			sleep 0.1
		done
	fi
	[ "$NODES" = 1 ] || barrier
	if [ "$NODE" = "$NODES" ]; then
		if $right iperf3 -c "$host" -t "$seconds" -l "$size" -J > "$LIB_TMP/client" 2>&1; then
			python3 -c 'import json, sys
rate = json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"]
size = int(sys.argv[2])
print("bench", sys.argv[1], json.dumps({"mode": "stream", "op": "tcp", "size": size,
      "MiB_per_s": round(rate / 8 / 1048576, 2), "ns_per_message": round(size * 8e9 / rate, 1)}))' \
				"$name" "$size" < "$LIB_TMP/client"
		else
			bench_failed "$name" "$(sed -n 's/.*"error":[[:space:]]*//p' "$LIB_TMP/client")"
		fi
	fi
	[ "$NODES" = 1 ] || barrier
	[ -z "$server" ] || { kill $server 2> /dev/null; wait $server 2> /dev/null; }
}
