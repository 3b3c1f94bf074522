#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One measurement of one_host.sh, for `bench profile`: profile.sh WHERE LOAD-OPTIONS...
# WHERE is nhca-veth, nhca-same-host, rxe-loop or siw-veth.

. "$LAB_SRC/bench/guest.sh"

where=$1
shift
bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
bench_driver "${where%%-*}" || exit 1
case $where in *-loop) bench_ends loop ;; *) bench_ends veth ;; esac || exit 1
case $where in nhca-*)
	[ "$where" != nhca-same-host ] && echo N > /sys/module/nhca/parameters/same_host ;;
esac
sysctl -qw kernel.kptr_restrict=0
cp /proc/kallsyms "$LAB_OUT/"
bench_load "$where" "$@"
exit "${LIB_FAILED:-0}"
