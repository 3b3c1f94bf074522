#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: NFS over nhca keeps every byte, also when the network is cut and when the server restarts
# tier: long
# lab: --nodes 2 --packages e2fsprogs,fio,nfs-kernel-server --timeout 400 --env CUT=5
# lab long: --nodes 2 --packages e2fsprogs,fio,nfs-kernel-server --timeout 900 --env CUT=20

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"

cut=${CUT:-5}
NFSD=/proc/fs/nfsd
ulp_mark

# Serve NFSv4 only, which needs neither rpcbind nor statd.
nfs_server() {
	mkdir -p /var/lib/nfs/v4recovery
	mount -t nfsd nfsd $NFSD &&
		exportfs -o rw,no_root_squash,fsid=0,insecure,no_subtree_check "$IP_2:$ULP_MNT" &&
		rpc.mountd -N 3 && nfs_serve
}

# Start the server as rpc.nfsd does, but listen on RDMA only.
nfs_serve() {
	echo 10 > $NFSD/nfsv4leasetime && echo 10 > $NFSD/nfsv4gracetime &&
		echo -3 +4 > $NFSD/versions && echo rdma 20049 > $NFSD/portlist && echo 4 > $NFSD/threads
}

nfs_stop() {
	echo 0 > $NFSD/threads
}

nfs_unexport() {
	nfs_stop && exportfs -ua && pkill -x rpc.mountd && exportfs -f
}

nfs_mount() {
	mount -t nfs4 -o "vers=$1,proto=rdma,port=20049,clientaddr=$IP_2" "$IP_1:/" $ULP_MNT
}

if [ "$NODE" = 1 ]; then
	ulp_modules "NFS server" rpcrdma nfsd
	ulp_disk 128
	filesystem_make "an ext4 file system is created" /dev/ram0 || exit 1
	step "the server exports" nfs_server || exit 1
	barrier exported || exit 1
	barrier restart 600 || exit 1
	step "the server stops" nfs_stop
	sleep 2
	step "the server starts" nfs_serve
	barrier restarted || exit 1
else
	ulp_modules "NFS client" rpcrdma nfsv4
	barrier exported || exit 1
	step "the client mounts" nfs_mount 4.2 || exit 1
	files_make "files are written"
	files_check "the files are read back unchanged"
	load_start
	load_moves "a load that verifies its data runs"
	network_cut "$cut"
	load_moves "the load continues after the network was cut for $cut s" 90
	barrier restart || exit 1
	barrier restarted || exit 1
	load_moves "the load continues after a restart of the server" 90
	load_stop "the load found no wrong block"
	files_check "the files are unchanged"
	step "the client unmounts" umount $ULP_MNT
	for version in 4.1 4.0; do
		step "NFS $version mounts" nfs_mount $version
		files_check "NFS $version reads the same files"
		step "NFS $version unmounts" umount $ULP_MNT
	done
	cp "$LIB_TMP/sums" "$LAB_CTL/sums"
fi
barrier disconnected 900 || exit 1
if [ "$NODE" = 1 ]; then
	cp "$LAB_CTL/sums" "$LIB_TMP/sums"
	files_check "the server's disk has the files of the client"
	step "the export is removed" nfs_unexport
	filesystem_check "the ext4 file system is clean" /dev/ram0
fi
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
