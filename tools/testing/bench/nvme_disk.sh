# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions that measure reads of an NVMe disk over a transport: . "$LAB_SRC/bench/nvme_disk.sh", after guest.sh.
# The target's disk is null_blk, which takes no time and copies no bytes.
#
#   nvme_disk				create the disk
#   nvme_measure WHO TRANSPORT		connect, read and disconnect; with two nodes, node 1 is the target
#   nvme_results			print a line `bench WHO nvme ...` for each measurement

. "$LAB_SRC/selftests/ulp/ulp.sh"
. "$LAB_SRC/selftests/ulp/nvme_lib.sh"

nvme_disk() {
	modprobe null_blk gb=1 bs=4096 memory_backed=0 irqmode=0 queue_mode=2
}

# nvme_read WHO NAME SIZE FIO-OPTIONS...: run fio, and append the nanoseconds per read (1e9 / IOPS) to the file
# "WHO nvme NAME", which nvme_results reads
nvme_read() {
	local name="$1 nvme $2" size=$3
	shift 3
	if ! fio --name=bench --filename="$(nvme_device)" --direct=1 --ioengine=libaio --time_based \
		--ramp_time="${RAMP:-1}" --runtime="${SECONDS_EACH:-6}" --bs="$size" "$@" --output-format=json \
		> "$LIB_TMP/fio" 2>&1; then
		bench_failed "$name" "$(tail -n 1 "$LIB_TMP/fio")"
		return
	fi
	python3 -c 'import json, sys
read = json.load(open(sys.argv[1]))["jobs"][0]["read"]
print(1e9 / read["iops"])' "$LIB_TMP/fio" >> "$LIB_TMP/$name" || bench_failed "$name" "fio completed no read"
}

nvme_measure() {
	local who=$1 transport=$2
	modprobe -a "nvmet-$transport" "nvme-$transport"
	if [ "$NODE" = 1 ]; then
		nvme_target "$transport" /dev/nullb0 || bench_failed "$who nvme" "the target could not be set up"
	fi
	barrier
	if [ "$NODE" = "$NODES" ]; then
		if nvme_connect "$transport"; then
			# By default fio reaps one completion and submits one request, so on one CPU one request is in
			# progress at a time. The second measurement submits and reaps in batches.
			nvme_read "$who" "randread 4096" 4096 --rw=randread --iodepth=32
			nvme_read "$who" "randread batches 4096" 4096 --rw=randread --iodepth=32 \
				--iodepth_batch_submit=16 --iodepth_batch_complete_max=32
			nvme_read "$who" "read 131072" 131072 --rw=read --iodepth=16
			nvme_disconnect
		else
			bench_failed "$who nvme" "the host could not connect to the target"
		fi
	fi
	barrier measured 300
	[ "$NODE" != 1 ] || nvme_target_gone
	barrier
}

nvme_results() {
	local result
	for result in "$LIB_TMP"/*" nvme "*; do
		[ -e "$result" ] && python3 -c 'import json, statistics, sys
name = sys.argv[1].rpartition("/")[2]
size = int(name.split()[-1])
each = [float(line) for line in open(sys.argv[1])]
ns = statistics.median(each)
print("bench", name, json.dumps({"mode": "stream", "op": name.split()[2], "size": size, "rounds": len(each),
      "MiB_per_s": round(size * 1e9 / ns / 1048576, 2), "ns_per_message": round(ns, 1)}))' "$result"
	done
}
