# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions that configure the SCSI target of the kernel (LIO) through configfs, for SRP and iSER.
#
#   lio_disk DEVICE			add a backing disk
#   lio_share FABRIC NAME TPG INITIATOR	export the disk as LUN 0 of this target to the initiator
#   lio_gone FABRIC NAME TPG		remove the export, even if an initiator uses it
#   scsi_device				print the name of the disk on the initiator

LIO=/sys/kernel/config/target
LIO_DISK=$LIO/core/iblock_0/nhca

lio_disk() {
	ulp_configfs
	modprobe -a target_core_mod target_core_iblock || return
	mkdir -p $LIO_DISK && echo "udev_path=$1" > $LIO_DISK/control && echo 1 > $LIO_DISK/enable
}

lio_share() {
	local tpg=$LIO/$1/$2/$3 initiator=$4
	mkdir -p "$tpg/lun/lun_0" && ln -s $LIO_DISK "$tpg/lun/lun_0/disk" &&
		mkdir "$tpg/acls/$initiator" && mkdir "$tpg/acls/$initiator/lun_0" &&
		ln -s "$tpg/lun/lun_0" "$tpg/acls/$initiator/lun_0/lun" &&
		echo 1 > "$tpg/enable"
}

lio_gone() {
	local tpg=$LIO/$1/$2/$3 acl portal
	echo 0 > "$tpg/enable" || return
	for acl in "$tpg"/acls/*; do
		rm "$acl/lun_0/lun" && rmdir "$acl/lun_0" "$acl" || return
	done
	for portal in "$tpg"/np/*; do
		[ ! -d "$portal" ] || rmdir "$portal" || return
	done
	rm "$tpg/lun/lun_0/disk" &&
		rmdir "$tpg/lun/lun_0" "$tpg" "${tpg%/*}" $LIO_DISK ${LIO_DISK%/*}
}

scsi_device() {
	local disk
	for disk in /sys/block/sd*; do
		[ -b "/dev/${disk##*/}" ] && echo "/dev/${disk##*/}" && return
	done
	return 1
}
