#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a receiver of CE-marked packets sends CNPs to the sender, and marked packets are not lost
# tier: check
# lab: --nodes 2 --timeout 240

. "$LAB_SRC/selftests/traffic.sh"

modprobe sch_netem

counter() {
	rdma statistic show link "$RDMA_DEV/1" -j | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

# more NAME COUNTER BEFORE: it has grown
more() {
	local now
	now=$(counter "$2")
	if [ "$now" -gt "$3" ]; then
		ok "$1"
		echo "#   $2: $((now - $3))"
	else
		notok "$1" "$2 is $now as before"
	fi
}

# What would be lost is marked, if the packet says that it may be (ECT).
[ "$NODE" = 2 ] && tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 10% ecn
barrier
marked=$(counter rx_ecn_marked_pkts) told=$(counter tx_cnp_pkts) heard=$(counter rx_cnp_pkts)
gaps=$(counter rcvd_seq_err)
perf write_bw -s 65536 -n 100 --tclass=2
if [ "$NODE" = 1 ]; then
	more "marked packets are counted" rx_ecn_marked_pkts "$marked"
	more "and the sender is told" tx_cnp_pkts "$told"
else
	more "the sender hears" rx_cnp_pkts "$heard"
	if [ "$(counter rcvd_seq_err)" = "$gaps" ]; then
		ok "nothing is lost"
	else
		notok "nothing is lost" "$(($(counter rcvd_seq_err) - gaps)) gaps"
	fi
fi

# Nobody marks what does not say so.
barrier
[ "$NODE" = 2 ] && tc qdisc del dev "$NETDEV" root
barrier
marked=$(counter rx_ecn_marked_pkts)
perf write_bw -s 65536 -n 50
if [ "$NODE" = 1 ]; then
	if [ "$(counter rx_ecn_marked_pkts)" = "$marked" ]; then
		ok "an open road has no marks"
	else
		notok "an open road has no marks" "$(($(counter rx_ecn_marked_pkts) - marked))"
	fi
fi
exit 0
