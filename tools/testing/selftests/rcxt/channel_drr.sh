#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: channels share a device by their quanta, and a single packet does not wait for long writes
# tier: check
# lab: --nodes 1 --timeout 300
# lab smp: --nodes 1 --cpus 2 --timeout 300
# tier smp: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

gid=$(gid_index) || exit 1
RUN_TIMEOUT=200
run "channels share the device by their quanta" channel_drr -d "$RDMA_DEV" -g "$gid"
grep '^# ' "$LIB_TMP/run"

# A link of 50 Mbit/s without a host at its other end. The link is slower than the channels can send, so the channels
# must wait for the link and leave the CPU to the program. On a busy host an emulated machine cannot fill even a link
# of 300 Mbit/s.
ip link add slow0 type dummy && ip link set slow0 up && ip addr add 10.98.2.1/24 dev slow0 &&
	ip neigh add 10.98.2.2 lladdr 02:00:00:00:00:02 dev slow0 &&
	tc qdisc add dev slow0 root tbf rate 50mbit burst 128k limit 4m &&
	device_add "${LAB_DRIVER}_slow" slow0 10.98.2.1 || notok "a slow link" "it cannot be created"
gid=$(gid_of "${LAB_DRIVER}_slow" 10.98.2.1)
run "channels share a slow link by their quanta" \
	channel_drr -d "${LAB_DRIVER}_slow" -g "$gid" -a 10.98.2.2
sed -n '/^# / s/$/, on a slow link/p' "$LIB_TMP/run"
