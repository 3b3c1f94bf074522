#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: libfabric's verbs provider moves messages and reliable datagrams (ofi_rxm) of every size, data checked
# tier: long
# lab: --nodes 2 --timeout 900 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server
# lab one-host: --nodes 1 --timeout 900 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 900 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server

. "$LAB_SRC/selftests/apps/stacks.sh"

PAIR_TIMEOUT=200
port=47600

pingpong() {
	local name=$1 command
	shift
	port=$((port + 1))
	command="$* -d $RDMA_DEV -B $port -P $port -c -I 10 -S all"
	over "$name" "${command/-P $port/}" "${command/-B $port/} $IP_1"
}

run "fi_info finds both endpoint types" sh -c "fi_info -p verbs -d $RDMA_DEV | grep -q 'type: FI_EP_MSG' &&
	fi_info -p 'verbs;ofi_rxm' -d $RDMA_DEV | grep -q 'type: FI_EP_RDM'"
pingpong "verbs, messages" fi_pingpong -p verbs -e msg
pingpong "verbs;ofi_rxm" fi_pingpong -p "'verbs;ofi_rxm'" -e rdm
pingpong "verbs;ofi_rxm, one receive queue" env FI_OFI_RXM_USE_SRX=1 fi_pingpong -p "'verbs;ofi_rxm'" -e rdm
pingpong "verbs;ofi_rxm, rendezvous by WRITE" env FI_OFI_RXM_USE_RNDV_WRITE=1 \
	fi_pingpong -p "'verbs;ofi_rxm'" -e rdm
exit 0
