#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: with several CPUs a network namespace has several sockets, and queue pairs are distributed over them
# tier: check
# lab: --nodes 1 --cpus 2 --timeout 240
# lab four: --nodes 1 --cpus 4 --timeout 300
# tier four: long

. "$LAB_SRC/selftests/lib/traffic.sh"

TRACING=/sys/kernel/tracing
CPUS=$(nproc)

# /proc/net/udp shows port 4791 in hexadecimal: 12B7.
sockets() {
	awk '$2 ~ /:12B7$/' "/proc/net/$1" | wc -l
}

for family in udp udp6; do
	if [ "$(sockets $family)" = "$CPUS" ]; then
		ok "$family: a socket for each CPU"
	else
		notok "$family: a socket for each CPU" "$(sockets $family) for $CPUS"
	fi
done

# Record which sockets receive packets while 16 queue pairs send through lo.
echo N > /sys/module/nhca/parameters/same_host
mountpoint -q $TRACING || mount -t tracefs none $TRACING
kprobes=
[ -e $TRACING/kprobe_events ] && echo 'p:taken nhca_sk_data_ready sk=%di' > $TRACING/kprobe_events && kprobes=1
[ -z "$kprobes" ] || echo 1 > $TRACING/events/kprobes/taken/enable
xfer -q 16 -n 48 -s 20000 -b
if [ -n "$kprobes" ]; then
	echo 0 > $TRACING/events/kprobes/taken/enable
	grep -o 'sk=0x[0-9a-f]*' $TRACING/trace | sort | uniq -c > "$LIB_TMP/taken"
	echo > $TRACING/kprobe_events
fi
if [ -z "$kprobes" ]; then
	skip "each socket receives packets" "this kernel has no kprobes"
elif [ "$(wc -l < "$LIB_TMP/taken")" = "$CPUS" ]; then
	ok "each socket receives packets"
else
	notok "each socket receives packets" "calls of each: $(tr -s ' \n' ' ' < "$LIB_TMP/taken")"
fi

rdma link del "$RDMA_DEV"
if [ "$(sockets udp)$(sockets udp6)" = 00 ]; then
	ok "the sockets close with the last device"
else
	notok "the sockets close with the last device" "$(sockets udp) and $(sockets udp6) are left"
fi
exit 0
