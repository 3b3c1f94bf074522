#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A kernel user in two guests with a CPU each: an NVMe disk over nhca, over rdma_rxe and over TCP. They take
# turns, several times, and the median counts: what else the machine does meets them alike.
# bench: --nodes 2 --mtu 4200 --driver nhca --packages fio --timeout 3000

. "$LAB_SRC/bench/guest.sh"
. "$LAB_SRC/selftests/ulp.sh"
. "$LAB_SRC/selftests/nvme_lib.sh"

# measured WHO NAME SIZE FIO-OPTIONS...: nanoseconds a request, as one more line of a file
measured() {
	local name="$1 nvme $2" size=$3
	shift 3
	if ! fio --name=bench --filename="$(nvme_device)" --direct=1 --ioengine=libaio --time_based \
		--ramp_time=1 --runtime="${SECONDS_EACH:-6}" --bs="$size" "$@" --output-format=json \
		> "$LIB_TMP/fio" 2>&1; then
		bench_failed "$name" "$(tail -n 1 "$LIB_TMP/fio")"
		return
	fi
	python3 -c 'import json, sys
read = json.load(open(sys.argv[1]))["jobs"][0]["read"]
print(1e9 / read["iops"])' "$LIB_TMP/fio" >> "$LIB_TMP/$name" || bench_failed "$name" "fio read nothing"
}

measure() {
	local who=$1 transport=rdma
	if [ "$who" = tcp ]; then
		transport=tcp
	else
		bench_here "$who" || return
	fi
	modprobe -a nvmet-$transport nvme-$transport
	[ "$NODE" = 2 ] || nvme_target $transport /dev/nullb0 || bench_failed "$who nvme" "no target"
	barrier
	if [ "$NODE" = 2 ]; then
		if nvme_connect $transport; then
			measured "$who" "randread 4096" 4096 --rw=randread --iodepth=32
			measured "$who" "read 131072" 131072 --rw=read --iodepth=16
			nvme_disconnect
		else
			bench_failed "$who nvme" "the host does not connect"
		fi
	fi
	barrier measured 300
	[ "$NODE" = 2 ] || nvme_target_gone
	barrier
}

modprobe null_blk gb=1 bs=4096 memory_backed=0 irqmode=0 queue_mode=2
for round in $(seq "${ROUNDS:-3}"); do
	for who in ${DRIVERS:-nhca rxe tcp}; do
		measure "$who"
	done
done
for result in "$LIB_TMP"/*" nvme "*; do
	[ -e "$result" ] && python3 -c 'import json, statistics, sys
name = sys.argv[1].rpartition("/")[2]
size = int(name.split()[-1])
each = [float(line) for line in open(sys.argv[1])]
ns = statistics.median(each)
print("bench", name, json.dumps({"mode": "stream", "op": name.split()[2], "size": size, "rounds": len(each),
      "MiB_per_s": round(size * 1e9 / ns / 1048576, 2), "ns_per_message": round(ns, 1)}))' "$result"
done
exit 0
