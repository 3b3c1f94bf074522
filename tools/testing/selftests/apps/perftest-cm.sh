#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: every perftest tool connects by rdma_cm (-R)
# tier: long
# lab: --nodes 2 --timeout 600
# lab interop-server: --nodes 2 --driver 1=nhca,2=rxe --timeout 600
# lab interop-client: --nodes 2 --driver 1=rxe,2=nhca --timeout 600

. "$LAB_SRC/selftests/lib/traffic.sh"

for tool in write_bw read_bw send_bw atomic_bw write_lat read_lat send_lat atomic_lat; do
	perf_cm $tool -n 20
done
exit 0
