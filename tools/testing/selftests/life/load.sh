#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the module loads on each kernel, its provider is found, and the module unloads while a device exists
# tier: check
# lab trixie: --nodes 1 --driver none --timeout 120
# lab bookworm-kernel: --nodes 1 --driver none --release bookworm-kernel --timeout 120
# lab bookworm: --nodes 1 --driver none --release bookworm --timeout 120
# tier bookworm: long
# lab backports: --nodes 1 --driver none --release backports --timeout 120

. "$LAB_SRC/selftests/lib/lib.sh"

active() {
	local tries
	for tries in $(seq 100); do
		ibv_devinfo -d nhca0 2> /dev/null | grep -q PORT_ACTIVE && return 0
		sleep 0.1
	done
	ibv_devinfo -d nhca0
	return 1
}

gone() {
	local tries
	for tries in $(seq 100); do
		[ ! -e "$1" ] && return 0
		sleep 0.1
	done
	echo "$1 is still there"
	return 1
}

run "modprobe nhca" modprobe nhca
run "rdma link add" rdma link add nhca0 type nhca netdev "$NETDEV"
# ibv_devinfo needs the provider to open the device, and shows an active port only if the netdev has a carrier.
export -f active gone
run "ibv_devinfo shows an active port" bash -c active
run "rdma link del" rdma link del nhca0
run "the device is gone" bash -c 'gone /sys/class/infiniband/nhca0'

run "rdma link add again" rdma link add nhca0 type nhca netdev "$NETDEV"
run "the port is active again" bash -c active
run "rmmod with a device" rmmod nhca
run "the device is removed with the module" bash -c 'gone /sys/class/infiniband/nhca0'
run "the module is gone" bash -c 'gone /sys/module/nhca'
