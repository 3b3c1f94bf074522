#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: a 9p file system over nhca keeps every byte, and can be mounted again
# tier: long
# lab: --nodes 2 --timeout 900 --env MIB=32
# lab bookworm: --nodes 2 --release bookworm --timeout 900 --env MIB=16

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"

# With CUT=20 a cut of 20 s makes a write fail before the second mount. The kernel's 9p then leaks a receive buffer,
# because recv_done() in net/9p/trans_rdma.c does not free it after an error. The unmount reports the leak as a WARNING.
mib=${MIB:-16} cut=${CUT:-0}
ulp_mark

p9_mount() {
	mount -t 9p -o trans=rdma,port=$1,version=9p2000.L,msize=65536,cache=none "$IP_1" $ULP_MNT
}

# write a file and read it back
p9_file() {
	head -c "${mib}M" /dev/urandom > "$LIB_TMP/data" && cp "$LIB_TMP/data" $ULP_MNT/"$1" &&
		dd if=$ULP_MNT/"$1" bs=64k status=none | cmp - "$LIB_TMP/data" && sha256sum < "$LIB_TMP/data" > "$LAB_CTL/$1"
}

# Start one server for each mount, because a server serves one connection.
p9_serve() {
	python3 "$LAB_SRC/selftests/ulp/p9_server.py" "$IP_1" "$1" "$LIB_TMP/export" > "$LIB_TMP/server.$1" 2>&1 &
	servers+=" $!"
	within 60 grep -q listening "$LIB_TMP/server.$1" && return
	cat "$LIB_TMP/server.$1"
	return 1
}

# Check that the server has the bytes that the client wrote.
p9_written() {
	sha256sum < "$LIB_TMP/export/$1" | cmp - "$LAB_CTL/$1"
}

p9_fails() {
	! timeout 60 dd if=/dev/zero of=$ULP_MNT/cut bs=32k count=4 status=none 2> /dev/null
}

if [ "$NODE" = 1 ]; then
	mkdir "$LIB_TMP/export"
	servers=
	step "a server listens" p9_serve 5640
	step "another server listens" p9_serve 5641
else
	ulp_modules "9p" 9p 9pnet_rdma
fi
barrier listening
if [ "$NODE" = 2 ]; then
	step "the client mounts" p9_mount 5640
	step "$mib MiB are read back unchanged" p9_file first
fi
barrier written 600
[ "$NODE" = 2 ] || step "the server has what was written" p9_written first
if [ "$NODE" = 2 ]; then
	if [ "$cut" != 0 ]; then
		modprobe sch_netem
		tc qdisc replace dev "$NETDEV" root netem loss 100%
		step "a write fails when the network is cut for $cut s" p9_fails
		sleep "$cut"
		tc qdisc del dev "$NETDEV" root
	fi
	step "the client unmounts" timeout 60 umount $ULP_MNT
	step "the client mounts again" p9_mount 5641
	step "$mib MiB more are read back unchanged" p9_file second
	step "the client unmounts at the end" timeout 60 umount $ULP_MNT
fi
barrier over 600
if [ "$NODE" = 1 ]; then
	step "the server has what was written by the second mount" p9_written second
	show_tail "$LIB_TMP/server.5640"
	# shellcheck disable=SC2086 # numbers
	kill $servers
fi
wait
ulp_end "the device has as many objects as before, and the driver unloads on node $NODE"
