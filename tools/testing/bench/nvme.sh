#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An NVMe disk in one guest with one CPU: measures the cost of a request, of host and target together, over nhca,
# rdma_rxe and TCP.
# bench: --nodes 1 --driver none --clock instructions --memory 3072 --packages fio --timeout 1200

. "$LAB_SRC/bench/guest.sh"
. "$LAB_SRC/bench/nvme_disk.sh"

SECONDS_EACH=${SECONDS_EACH:-1} RAMP=${RAMP:-300ms}

# end NETDEV ADDRESS PEER: set up an end of the veth pair. NVMe over RDMA works only in the initial network namespace,
# so both ends are in it. Routing rules send packets between the two addresses over the veth pair instead of lo.
end() {
	local dev=$1 address=$2 peer=$3
	sysctl -qw "net.ipv4.conf.$dev.accept_local=1" "net.ipv4.conf.$dev.rp_filter=0"
	ip link set "$dev" mtu 4200 up && ip addr add "$address/24" dev "$dev" &&
		ip rule add pref 10 iif "$dev" to "$address" lookup local &&
		ip route add "$peer" dev "$dev" src "$address" table 97
}

cable() {
	sysctl -qw net.ipv4.conf.all.rp_filter=0
	ip link add left0 type veth peer name right0 &&
		end left0 10.97.0.1 10.97.0.2 && end right0 10.97.0.2 10.97.0.1 &&
		ip rule add pref 20 lookup 97 && ip rule add pref 30 lookup local && ip rule del pref 0
}

# devices DRIVER: add a device on each end of the veth pair
devices() {
	bench_driver "$1" && device_add bench1 left0 10.97.0.1 && device_add bench2 right0 10.97.0.2 ||
		bench_failed "$1 nvme" "the devices could not be created"
}

measure() {
	local who=$1
	case $who in
	tcp)
		nvme_measure tcp-veth tcp
		return
		;;
	nhca-*)
		devices nhca
		[ "$who" = nhca-same-host ] || echo N > /sys/module/nhca/parameters/same_host
		;;
	*)
		devices "$who"
		who+=-veth
		;;
	esac
	nvme_measure "$who" rdma
	rdma link del bench1
	rdma link del bench2
	module_remove
}

cable || exit 1
# shellcheck disable=SC2034 # for nvme_target() and nvme_connect()
IP_1=10.97.0.1
nvme_disk
for who in ${DRIVERS:-nhca-veth nhca-same-host rxe tcp}; do
	measure "$who"
done
nvme_results
exit 0
