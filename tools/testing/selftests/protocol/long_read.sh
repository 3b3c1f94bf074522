#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a long READ, whose responses the stack frees immediately, does not keep other tasks from the CPU
# tier: check
# lab: --nodes 1 --timeout 240

. "$LAB_SRC/selftests/lib/lib.sh"

# The node has one CPU, so a task that does not yield blocks all others. The responses are sent to a dummy netdev, which
# frees each packet immediately, so nothing slows down the responder.
here=10.98.0.1 there=10.98.0.2 port=7493
modprobe dummy
ip link add sink type dummy && ip addr add $here/24 dev sink && ip link set sink up &&
	rdma link add nhca_sink type nhca netdev sink || {
	notok "a device on a netdev that drops everything"
	exit
}
RDMA_DEV=nhca_sink
for _ in $(seq 50); do
	gid=$(gid_index $here 2> /dev/null) && break
	sleep 0.1
done
qp_target $RDMA_DEV "$gid" $port $there &
target=$!
report "$LAB_SRC/selftests/protocol/long_read.py" $here $port $there
wait $target
rdma link del nhca_sink
ip link del sink
