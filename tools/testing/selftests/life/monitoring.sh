#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: sysfs and node_exporter count what a capture has, node_exporter has all metrics of rdma_rxe, and ibstat shows the port
# tier: long
# lab: --nodes 2 --packages prometheus-node-exporter,infiniband-diags,collectl --timeout 300
# lab bookworm: --nodes 2 --release bookworm --packages prometheus-node-exporter,infiniband-diags,collectl --timeout 300
# lab rxe: --nodes 2 --release backports --driver 1=rxe,2=nhca --packages prometheus-node-exporter,infiniband-diags,collectl --timeout 300

. "$LAB_SRC/selftests/lib/traffic.sh"
. "$LAB_SRC/selftests/lib/node.sh"

read_by() {
	python3 "$LAB_SRC/selftests/life/monitoring.py" "$@"
}

difference() {
	# shellcheck disable=SC2086 # four numbers each
	set -- $1 $2
	echo $(($5 - $1)) $(($6 - $2)) $(($7 - $3)) $(($8 - $4))
}

modprobe ib_umad
udevadm settle --timeout=10
prometheus-node-exporter --collector.disable-defaults --collector.infiniband --web.listen-address=127.0.0.1:9100 \
	> "$LIB_TMP/exporter" 2>&1 &
for _ in $(seq 100); do
	read_by families > "$LIB_TMP/families" 2> /dev/null && break
	sleep 0.2
done
if [ -s "$LIB_TMP/families" ]; then
	ok "node_exporter shows the device of node $NODE"
else
	notok "node_exporter shows the device of node $NODE" "$(tail -n 1 "$LIB_TMP/exporter")"
fi
cp "$LIB_TMP/families" "$LAB_CTL/families.$NODE"

# ---- true values: each packet is one packet of the capture ----

ethtool -K "$NETDEV" gso off gro off tx-udp-segmentation off > /dev/null 2>&1
barrier quiet
tcpdump -i "$NETDEV" -s 200 -B 65536 -Z root -w "$LIB_TMP/pcap" udp port 4791 2> "$LIB_TMP/tcpdump" &
capture=$!
sleep 2
before=$(read_by sysfs "$RDMA_DEV") exported=$(read_by node_exporter "$RDMA_DEV")
barrier captured
pair "a transfer" "ib_write_bw -F -d $RDMA_DEV -x $TRAFFIC_GID -s 20000 -n 200" \
	"ib_write_bw -F -d $RDMA_DEV -x $TRAFFIC_GID -s 20000 -n 200 $IP_1"
sleep 2
counted=$(difference "$before" "$(read_by sysfs "$RDMA_DEV")")
exported=$(difference "$exported" "$(read_by node_exporter "$RDMA_DEV")")
kill -INT $capture
wait $capture 2> /dev/null
wire=$(read_by wire "$LIB_TMP/pcap" "$MY_IP")
echo "# packets sent and received, words sent and received: wire $wire, sysfs $counted, node_exporter $exported"
grep dropped "$LIB_TMP/tcpdump" | sed 's/^/#   /'
if [ "$LAB_DRIVER" = nhca ]; then
	read -r sent received _ <<< "$wire"
	if [ "$counted" = "$wire" ] && [ "$exported" = "$wire" ] && [ $((sent + received)) -gt 4000 ]; then
		ok "sysfs and node_exporter count what is on the wire"
	else
		notok "sysfs and node_exporter count what is on the wire" "$wire, sysfs $counted, node_exporter $exported"
	fi
fi

# ---- other programs ----

ibstat "$RDMA_DEV" > "$LIB_TMP/ibstat" 2>&1
if grep -q 'State: Active' "$LIB_TMP/ibstat" && grep -q 'Link layer: Ethernet' "$LIB_TMP/ibstat"; then
	ok "ibstat shows the port of node $NODE"
else
	notok "ibstat shows the port of node $NODE" "$(tail -n 1 "$LIB_TMP/ibstat")"
fi
sed 's/^/#   ibstat: /' "$LIB_TMP/ibstat"
# perfquery opens no RoCE port of any driver, because such a port has no subnet management, and collectl calls
# perfquery. Show what both programs print, as a reminder in the log.
timeout 20 perfquery -C "$RDMA_DEV" -P 1 2>&1 | head -n 5 | sed 's/^/#   perfquery: /'
timeout 60 collectl -sx -c 1 2>&1 < /dev/null | head -n 5 | sed 's/^/#   collectl: /'

barrier shown
if [ "$NODE" = 2 ]; then
	missing=$(comm -13 "$LAB_CTL/families.2" "$LAB_CTL/families.1" | paste -sd' ')
	sed 's/^/#   node_exporter: /' "$LAB_CTL/families.2"
	if [ -z "$missing" ]; then
		ok "node_exporter has all metrics that node 1 has"
	else
		notok "node_exporter has all metrics that node 1 has" "$missing"
	fi
fi
kill %1 2> /dev/null
exit 0
