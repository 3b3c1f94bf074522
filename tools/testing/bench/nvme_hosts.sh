#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An NVMe disk in two guests with one CPU each, over nhca, rdma_rxe and TCP. Each of ROUNDS rounds measures all three,
# so that other load on the machine affects all three alike. The result is the median of the rounds.
# bench: --nodes 2 --mtu 4200 --driver nhca --packages fio --timeout 3000

. "$LAB_SRC/bench/guest.sh"
. "$LAB_SRC/bench/nvme_disk.sh"

measure() {
	local who=$1
	if [ "$who" = tcp ]; then
		nvme_measure tcp tcp
	else
		bench_here "$who" && nvme_measure "$who" rdma
	fi
}

nvme_disk
for round in $(seq "${ROUNDS:-3}"); do
	for who in ${DRIVERS:-nhca rxe tcp}; do
		measure "$who"
	done
done
nvme_results
exit 0
