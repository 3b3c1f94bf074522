#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: Open MPI over UCX and libfabric, four ranks on two nodes: every byte and every sum is right
# tier: long
# lab: --nodes 2 --timeout 1800 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server
# lab loss: --nodes 2 --netem 'loss 1%' --timeout 1800 --packages ucx-utils,libfabric-bin,openmpi-bin,libopenmpi-dev,openssh-server

. "$LAB_SRC/selftests/apps/stacks.sh"

RUN_TIMEOUT=600
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

run "mpicc" mpicc -O1 -Wall -Wextra -o /usr/local/bin/mpi_checked "$LAB_SRC/selftests/apps/mpi/checked.c"

# mpirun starts its ranks by ssh.
keys=$LAB_CTL/keys
[ "$NODE" = 1 ] && mkdir "$keys" && ssh-keygen -q -t ed25519 -N '' -f "$keys/id_ed25519"
barrier
mkdir -p /run/sshd
mkdir -m 700 /root/.ssh
cp "$keys/id_ed25519" /root/.ssh/
chmod 600 /root/.ssh/id_ed25519
cp "$keys/id_ed25519.pub" /root/.ssh/authorized_keys
printf 'StrictHostKeyChecking no\nLogLevel ERROR\n' > /root/.ssh/config
/usr/sbin/sshd
barrier

# mpi NAME "MCA AND ENVIRONMENT" ARGS...: run two ranks on each node, more than the node has CPUs
mpi() {
	local name=$1 how=$2 before
	shift 2
	before=$(carried)
	# shellcheck disable=SC2086 # words
	if [ "$NODE" = 1 ] && run "$name" mpirun -H node1:2,node2:2 --bind-to none --map-by :OVERSUBSCRIBE \
		$how mpi_checked "$@"; then
		sed -n 's/^checked: /#   /p' "$LIB_TMP/run"
		complaints "$LIB_TMP/run" > "$LIB_TMP/complaints" && {
			notok "$name, without warnings" "it prints warnings"
			show_tail "$LIB_TMP/complaints"
		}
	fi
	barrier "$name" 700
	[ $(($(carried) - before)) -gt 100 ] || notok "$name" "the traffic did not use $RDMA_DEV"
}

ucx="--mca pml ucx --mca osc ucx -x UCX_NET_DEVICES=$RDMA_DEV:1"
mpi "UCX, rc" "$ucx -x UCX_TLS=rc_v,self" ring sums all threads
# At a fence of several threads UCX 1.18 uses a remote flush, which it has for mlx5 only. Weak fences need none.
mpi "UCX, rc, windows" "$ucx -x UCX_TLS=rc_v,self -x UCX_FENCE_MODE=weak" -m 300000 windows
mpi "UCX, ud" "$ucx -x UCX_TLS=ud_v,self" -m 300000 ring sums all
mpi "UCX with its defaults" "$ucx" ring sums all latency
# With libfabric 2.1's cache of registrations, the bytes of a long message may be wrong from some page boundary on. A
# run with the memory monitor that Open MPI selects failed, and so did a run with the monitor memhooks. A run with
# MALLOC_TRIM_THRESHOLD_=-1 MALLOC_MMAP_MAX_=0 passed: with these variables malloc returns no pages to the kernel. So
# turn the cache off. Open MPI does not use libfabric over rdma_rxe, so rdma_rxe cannot show whether nhca is at fault.
mpi "libfabric" "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm
	-x FI_MR_CACHE_MAX_COUNT=0" -m 300000 ring sums all
exit 0
