#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One guest with two CPUs, so that the ends need not share a CPU: measures the latency with events and with polling. The
# measurement runs in real time. The drivers take turns in three rounds, and for each measurement the
# round with the median p50 counts.
# bench: --nodes 1 --cpus 2 --driver nhca --memory 2048 --timeout 900

. "$LAB_SRC/bench/guest.sh"

ROUNDS=${ROUNDS:-3}

# measure WHO: append a line for each measurement
measure() {
	local who=$1 how
	for how in "" " polling"; do
		bench_load "$who latency 64$how two cpus" -m pingpong -s 64 -n "${LATENCY:-3000}" \
			${how:+-b} >> "$LIB_TMP/measured"
	done
}

# Print the round with the median p50 for each measurement.
results() {
	python3 -c 'import json, sys
rounds = {}
for line in open(sys.argv[1]):
	if not line.startswith("bench "):
		print(line, end="")
		continue
	name, _, text = line.removeprefix("bench ").partition(" {")
	rounds.setdefault(name, []).append(json.loads("{" + text))
for name, all_of in rounds.items():
	all_of.sort(key=lambda one: one["p50_ns"])
	print("bench", name, json.dumps({**all_of[len(all_of) // 2], "rounds": len(all_of)}))' \
		"$LIB_TMP/measured"
}

bench_cable || exit 1
device_gone "$RDMA_DEV" || rdma link del "$RDMA_DEV"
for _ in $(seq "$ROUNDS"); do
	bench_driver nhca && bench_ends veth || exit 1
	for same in Y N; do
		echo $same > /sys/module/nhca/parameters/same_host
		if [ $same = Y ]; then measure nhca-same-host; else measure nhca-veth; fi
	done
	bench_ends_gone
	bench_driver rxe && bench_ends loop || exit 1
	measure rxe-loop
	bench_ends_gone
done
results
exit 0
