#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: sockets over RDMA carry streams, mapped memory and files unchanged; librdmacm's clients and servers communicate
# tier: check
# lab: --nodes 2 --timeout 300
# lab one-host: --nodes 1 --timeout 300
# tier one-host: long
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 600
# tier loss: long

. "$LAB_SRC/selftests/apps/stacks.sh"

port=7600

# stream TOOL OPTIONS...: run a tool that verifies what it receives (-T v). Asynchronous sockets (-T a) are not tested,
# because the client reports the server's disconnection as an error although the client has not read all data. Datagram
# sockets (udpong) are not tested, because they need LIDs, which RoCE does not have.
stream() {
	local tool=$1
	shift
	port=$((port + 1))
	over "$tool $*" "$tool -b $IP_1 -p $port -T v $*" "$tool -s $IP_1 -p $port -T v $*"
}

for mode in b n r; do
	stream rstream -T $mode -S 2000 -C 10 -I 10
	stream rstream -T $mode -S 300000 -C 2 -I 5
done
stream riostream -T b -S 2000 -C 10 -I 10
stream riostream -T n -S 300000 -C 2 -I 5

file=/tmp/rcopied
head -c 3000001 /dev/urandom > "$LIB_TMP/random"
port=$((port + 1))
over_endless "rcopy" "rcopy -p $port" \
	"cp $LIB_TMP/random $LAB_CTL && rcopy $LIB_TMP/random $IP_1:$file -p $port" "cmp $file $LAB_CTL/random"

for tool in rdma_server:rdma_client 'rdma_xserver -c r:rdma_xclient -c r'; do
	port=$((port + 1))
	LEAST=2 over "${tool/:*/}" "${tool/:*/} -p $port" "${tool/*:/} -s $IP_1 -p $port"
done
exit 0
