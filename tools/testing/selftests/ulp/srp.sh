#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an ext4 file system on SCSI over nhca (SRP) keeps every byte, also when the network is cut
# tier: long
# lab: --nodes 2 --packages e2fsprogs,fio --timeout 400 --env CUT=5
# lab long: --nodes 2 --packages e2fsprogs,fio --timeout 900 --env CUT=20

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"
. "$LAB_SRC/selftests/ulp/scsi_lib.sh"

cut=${CUT:-5}
ulp_mark
log_mark

# srp_guid NODE: print the GUID of a node, which is part of its SRP names
srp_guid() {
	cat "$LAB_CTL/guid.$1"
}

# ib_srpt names a port by its first GID.
srp_port() {
	echo "0xfe80000000000000$(srp_guid 1)"
}

srp_target() {
	modprobe ib_srpt && lio_disk /dev/ram0 &&
		mkdir $LIO/srpt && echo 5555 > $LIO/srpt/discovery_auth/rdma_cm_port &&
		lio_share srpt "$(srp_port)" "$(srp_port)" "0x0000000000000000$(srp_guid 2)"
}

srp_connect() {
	local guid
	guid=$(srp_guid 1)
	modprobe ib_srp && echo "id_ext=$guid,ioc_guid=$guid,dest=$IP_1:5555,src=$IP_2,tl_retry_count=7" \
		> "$(echo /sys/class/infiniband_srp/*/add_target)" && within 20 scsi_device
}

srp_disconnect() {
	local port
	for port in /sys/class/srp_remote_ports/*/delete; do
		echo 1 > "$port" || return
	done
}

tr -d : < "/sys/class/infiniband/$RDMA_DEV/node_guid" > "$LAB_CTL/guid.$NODE"
barrier named || exit 1
if [ "$NODE" = 1 ]; then
	ulp_modules "SRP target" ib_srpt
	ulp_disk 128
	step "the target is configured" srp_target || exit 1
	barrier exported || exit 1
else
	ulp_modules "SRP initiator" ib_srp sd_mod ext4
	barrier exported || exit 1
	step "the initiator logs in" srp_connect || exit 1
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
	if log_has 'ib_srp: Failed'; then
		notok "ib_srp mapped every request" "$(log_since | grep -m 1 'ib_srp: Failed')"
	else
		ok "ib_srp mapped every request"
	fi
	step "the initiator logs out" srp_disconnect
fi
barrier disconnected 900 || exit 1
[ "$NODE" = 2 ] || step "the target is removed" lio_gone srpt "$(srp_port)" "$(srp_port)"
[ "$NODE" = 2 ] || echo 0 > $LIO/srpt/discovery_auth/rdma_cm_port
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
