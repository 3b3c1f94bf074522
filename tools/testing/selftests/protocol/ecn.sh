#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a receiver of CE-marked packets sends CNPs to the sender, and marked packets are not lost
# tier: check
# lab: --nodes 2 --timeout 240

. "$LAB_SRC/selftests/lib/traffic.sh"

modprobe sch_netem

counter() {
	rdma statistic show link "$RDMA_DEV/1" -j | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

# more NAME COUNTER BEFORE: the counter must be larger than BEFORE
more() {
	local now
	now=$(counter "$2")
	if [ "$now" -gt "$3" ]; then
		ok "$1"
		echo "#   $2: $((now - $3))"
	else
		notok "$1" "$2 is still $now"
	fi
}

# Because of "ecn", netem sets CE in a packet that has ECT (traffic class 2) instead of dropping it.
[ "$NODE" = 2 ] && tc qdisc replace dev "$NETDEV" root netem limit 20000 loss 10% ecn
barrier
marked=$(counter rx_ecn_marked_pkts) told=$(counter tx_cnp_pkts) heard=$(counter rx_cnp_pkts)
gaps=$(counter rcvd_seq_err)
perf write_bw -s 65536 -n 100 --tclass=2
if [ "$NODE" = 1 ]; then
	more "marked packets are counted" rx_ecn_marked_pkts "$marked"
	more "the receiver sends CNPs" tx_cnp_pkts "$told"
else
	more "the sender receives CNPs" rx_cnp_pkts "$heard"
	if [ "$(counter rcvd_seq_err)" = "$gaps" ]; then
		ok "no packet is lost"
	else
		notok "no packet is lost" "$(($(counter rcvd_seq_err) - gaps)) gaps"
	fi
fi

# Without congestion no packet may be marked.
barrier
[ "$NODE" = 2 ] && tc qdisc del dev "$NETDEV" root
barrier
marked=$(counter rx_ecn_marked_pkts)
perf write_bw -s 65536 -n 50
if [ "$NODE" = 1 ]; then
	if [ "$(counter rx_ecn_marked_pkts)" = "$marked" ]; then
		ok "no packet is marked without congestion"
	else
		notok "no packet is marked without congestion" "$(($(counter rx_ecn_marked_pkts) - marked))"
	fi
fi
exit 0
