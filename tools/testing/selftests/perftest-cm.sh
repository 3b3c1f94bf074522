#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# promise: every perftest tool connects by rdma_cm (-R)
# tier: long
# lab: --nodes 2 --timeout 600
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 600
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 600

# perftest connects twice, and its client may come the second time before its server listens again: it is
# rejected (8: nobody listens), and dies of that, whatever the driver. Then it is tried again. On user-mode
# guests, which are so fast, it is always so.

. "$LAB_SRC/selftests/traffic.sh"

sysctl -q debug.exception-trace=0
for tool in write_bw read_bw send_bw atomic_bw write_lat read_lat send_lat atomic_lat; do
	failed=$LIB_FAILED
	for tries in 1 2 3 4 5 6; do
		LIB_FAILED=$failed
		perf $tool -R -n 20 > "$LIB_TMP/attempt"
		raced=$LAB_CTL/raced.$tool.$tries
		if [ "$NODE" = 2 ] && grep -q 'EVENT_REJECTED; error: 8' "$LIB_TMP/client"; then
			: > "$raced"
		fi
		barrier
		[ -e "$raced" ] || break
	done
	cat "$LIB_TMP/attempt"
done
exit 0
