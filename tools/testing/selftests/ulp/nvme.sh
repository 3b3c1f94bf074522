#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: an ext4 file system on NVMe over nhca keeps every byte through resets, a cut network and the removal of the target
# tier: long
# lab: --nodes 2 --packages e2fsprogs,fio --timeout 400 --env RESETS=2 --env CUT=5 --env TAKEN=1
# lab long: --nodes 2 --packages e2fsprogs,fio --timeout 1200 --env RESETS=50 --env CUT=20 --env TAKEN=5
# tier long: long
# lab interop-target: --nodes 2 --driver 1=rxe,2=nhca --packages e2fsprogs,fio --timeout 900 --env RESETS=5 --env CUT=20 --env TAKEN=1
# tier interop-target: long
# lab interop-host: --nodes 2 --driver 1=nhca,2=rxe --packages e2fsprogs,fio --timeout 900 --env RESETS=5 --env CUT=20 --env TAKEN=1
# tier interop-host: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"
. "$LAB_SRC/selftests/ulp/nvme_lib.sh"

resets=${RESETS:-2} cut=${CUT:-5} taken=${TAKEN:-1}
ulp_mark

if [ "$NODE" = 1 ]; then
	ulp_modules "NVMe target" nvmet nvmet-rdma
	ulp_disk 128
	step "the target is configured" nvme_target rdma /dev/ram0 || exit 1
	barrier exported || exit 1
else
	ulp_modules "NVMe host" nvme-rdma ext4
	barrier exported || exit 1
	step "the host connects" nvme_connect rdma || exit 1
	NVME_DEV=$(nvme_device)
	filesystem_make "an ext4 file system is created" "$NVME_DEV" || exit 1
	files_make "files are written to it"
	files_check "the files are read back unchanged"
	load_start
	load_moves "a load that verifies its data runs"
	for round in $(seq "$resets"); do
		step "controller reset $round" nvme_reset
		load_moves "the load continues after reset $round"
	done
	network_cut "$cut"
	load_moves "the load continues after the network was cut for $cut s" 60
fi
for round in $(seq "$taken"); do
	barrier "take-$round" 2400 || exit 1
	if [ "$NODE" = 1 ]; then
		step "the target's configuration is removed, $round" nvme_target_gone
		sleep 3
		step "the target is configured again, $round" nvme_target rdma /dev/ram0
		barrier "made-$round" || exit 1
	else
		barrier "made-$round" || exit 1
		load_moves "the load continues on target $round" 60
	fi
done
if [ "$NODE" = 2 ]; then
	load_stop "the load found no wrong block"
	files_check "the files are unchanged"
	filesystem_check "the ext4 file system is clean" "$NVME_DEV"
	md5sum < "$NVME_DEV" > "$LAB_CTL/sum"
	step "the host disconnects" nvme_disconnect
fi
barrier disconnected 240 || exit 1
if [ "$NODE" = 1 ]; then
	run "the target's disk has the data that the host read" sh -c "md5sum < /dev/ram0 | cmp - $LAB_CTL/sum"
	nvme_target_gone
fi
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
