# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for an NVMe target and its host, without nvmetcli and nvme-cli.
#
#   nvme_target TRANSPORT DEVICE	export the device from node 1
#   nvme_target_gone			remove the export, even if a host uses it
#   nvme_connect TRANSPORT [OPTIONS]	connect node 2 and wait for the disk
#   nvme_device				print the disk's name
#   nvme_reset				reset the controller and wait until it is live again
#   nvme_disconnect			disconnect all controllers

NVME_NQN=nqn.2024-01.test:nhca
NVMET=/sys/kernel/config/nvmet

nvme_target() {
	local transport=$1 device=$2 subsystem=$NVMET/subsystems/$NVME_NQN port=$NVMET/ports/1
	ulp_configfs
	mkdir "$subsystem" "$subsystem/namespaces/1" &&
		echo 1 > "$subsystem/attr_allow_any_host" &&
		echo nhca > "$subsystem/attr_serial" &&
		echo "$device" > "$subsystem/namespaces/1/device_path" &&
		# The host identifies the disk by its UUID, also after the target is removed and configured again.
		echo 01234567-89ab-4cde-8f01-23456789abcd > "$subsystem/namespaces/1/device_uuid" &&
		echo 1 > "$subsystem/namespaces/1/enable" &&
		mkdir $port &&
		echo "$transport" > $port/addr_trtype &&
		echo ipv4 > $port/addr_adrfam &&
		echo "$IP_1" > $port/addr_traddr &&
		echo 4420 > $port/addr_trsvcid &&
		ln -s "$subsystem" $port/subsystems/
}

nvme_target_gone() {
	local subsystem=$NVMET/subsystems/$NVME_NQN port=$NVMET/ports/1
	rm $port/subsystems/$NVME_NQN &&
		rmdir $port "$subsystem/namespaces/1" "$subsystem"
}

nvme_connect() {
	local transport=$1
	echo "transport=$transport,traddr=$IP_1,trsvcid=4420,nqn=$NVME_NQN,reconnect_delay=1,keep_alive_tmo=5${2:+,$2}" \
		> /dev/nvme-fabrics && within 20 nvme_device > /dev/null
}

nvme_device() {
	local disk
	for disk in /sys/class/nvme-subsystem/*/nvme*n1; do
		[ -b "/dev/${disk##*/}" ] && echo "/dev/${disk##*/}" && return
	done
	return 1
}

nvme_live() {
	grep -qsx live /sys/class/nvme/nvme*/state
}

nvme_reset() {
	echo 1 > "$(echo /sys/class/nvme/nvme*/reset_controller)" && within 60 nvme_live
}

nvme_disconnect() {
	local controller
	for controller in /sys/class/nvme/nvme*/delete_controller; do
		echo 1 > "$controller" || return
	done
}
