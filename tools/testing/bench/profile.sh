#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs one measurement for `bench profile`: profile.sh WHERE LOAD-OPTIONS...
# WHERE is nhca-veth, nhca-same-host, nhca-qdisc (by packets, because the netdevs have a queueing
# discipline), rxe-loop or siw-veth; with two nodes nhca-hosts, rxe-hosts or siw-hosts.

. "$LAB_SRC/bench/guest.sh"

where=$1
shift

ends() {
	bench_cable || return
	device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
	bench_driver "${where%%-*}" || return
	bench_ends "$1" || return
	case $where in
	nhca-veth) echo N > /sys/module/nhca/parameters/same_host ;;
	nhca-qdisc) ip netns exec left tc qdisc add dev vleft root pfifo &&
		ip netns exec right tc qdisc add dev vright root pfifo ;;
	esac
}

case $where in
*-hosts) bench_here "${where%%-*}" && set -- -P "$@" ;;
*-loop) ends loop ;;
*) ends veth ;;
esac || exit 1
sysctl -qw kernel.kptr_restrict=0
cp /proc/kallsyms "$LAB_OUT/"
bench_load "$where" "$@"
exit 0
