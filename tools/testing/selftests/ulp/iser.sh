#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an ext4 file system on iSCSI over nhca (iSER) keeps every byte, also when the network is cut
# tier: long
# lab: --nodes 2 --packages e2fsprogs,fio,open-iscsi --timeout 400 --env CUT=5
# lab long: --nodes 2 --packages e2fsprogs,fio,open-iscsi --timeout 900 --env CUT=20

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"
. "$LAB_SRC/selftests/ulp/scsi_lib.sh"

cut=${CUT:-5}
TARGET=iqn.2024-01.test:nhca INITIATOR=iqn.2024-01.test:node2
ulp_mark

iser_target() {
	local portal=$LIO/iscsi/$TARGET/tpgt_1/np/$IP_1:3260
	modprobe ib_isert && lio_disk /dev/ram0 &&
		mkdir -p "$portal" && echo 1 > "$portal/iser" &&
		echo 0 > $LIO/iscsi/$TARGET/tpgt_1/attrib/authentication &&
		lio_share iscsi $TARGET tpgt_1 $INITIATOR
}

iscsi() {
	timeout 60 iscsiadm -m node -T $TARGET -p "$IP_1:3260" "$@"
}

iser_connect() {
	modprobe ib_iser && mkdir -p /etc/iscsi /run/lock/iscsi &&
		echo "InitiatorName=$INITIATOR" > /etc/iscsi/initiatorname.iscsi || return
	# iscsid kills its process group when it ends, so start it in a new session.
	setsid iscsid -f > /dev/null 2>&1 &
	iscsi --interface=iser --op=new && iscsi --login && within 20 scsi_device
}

iser_disconnect() {
	iscsi --logout && timeout 20 iscsiadm -k 0
}

if [ "$NODE" = 1 ]; then
	ulp_modules "iSER target" ib_isert
	ulp_disk 128
	step "the target is configured" iser_target || exit 1
	barrier exported || exit 1
else
	ulp_modules "iSER initiator" ib_iser sd_mod ext4
	barrier exported || exit 1
	step "the initiator logs in" iser_connect || exit 1
	disk=$(scsi_device)
	filesystem_make "an ext4 file system is created" "$disk" || exit 1
	files_make "files are written to it"
	files_check "the files are read back unchanged"
	load_start
	load_moves "a load that verifies its data runs"
	network_cut "$cut"
	load_moves "the load continues after the network was cut for $cut s" 90
	load_stop "the load found no wrong block"
	files_check "the files are unchanged"
	filesystem_check "the ext4 file system is clean" "$disk"
	step "the initiator logs out" iser_disconnect
fi
barrier disconnected 900 || exit 1
[ "$NODE" = 2 ] || step "the target is removed" lio_gone iscsi $TARGET tpgt_1
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
