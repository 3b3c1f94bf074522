# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for tests of kernel consumers, to read after lib.sh and node.sh: . "$LAB_SRC/selftests/ulp/ulp.sh"
# Node 1 exports storage, and node 2 uses it.
#
#   ulp_modules NAME MODULE...	load modules; end the test with a skip if the kernel does not have one of them
#   ulp_configfs			mount configfs
#   ulp_disk MIB			create the RAM disk /dev/ram0
#   step NAME FUNCTION...		print ok if the function succeeds; like `run`, but in this shell
#   within SECONDS COMMAND...	wait until the command succeeds
#   filesystem_make NAME DEVICE	create an ext4 file system and mount it at /mnt
#   filesystem_check NAME DEVICE	unmount the file system and check it with fsck
#   files_make NAME [MIB] / files_check NAME	write files under /mnt and keep their checksums; drop the page cache and
#				check the files against the checksums
#   load_start / load_stop NAME	run fio, which writes and verifies files under /mnt; no error is allowed
#   load_moves NAME [SECONDS]	fio must make progress within SECONDS (30)
#   ulp_mark / ulp_end NAME		check that the device has the same objects as at the mark and the driver unloads
#   network_cut SECONDS		drop all packets that this node sends, for that time

ULP_MNT=/mnt
LOAD_DEPTH=8 LOAD_SMALL=4096 LOAD_LARGE=131072

ulp_modules() {
	local name=$1 module
	shift
	for module; do
		modprobe "$module" 2> "$LIB_TMP/modprobe" && continue
		skip "$name" "no $module in $(uname -r)"
		exit 0
	done
}

ulp_configfs() {
	modprobe configfs
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
}

ulp_disk() {
	modprobe brd rd_nr=1 rd_size=$(($1 * 1024)) && within 10 test -b /dev/ram0
}

step() {
	local name=$1 status
	shift
	"$@" > "$LIB_TMP/step" 2>&1
	status=$?
	if [ $status = 0 ]; then
		ok "$name"
		return 0
	fi
	notok "$name" "status $status: $*"
	show_tail "$LIB_TMP/step"
	return 1
}

within() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -le $deadline ] || return 1
		sleep 0.1
	done
}

filesystem_make() {
	RUN_TIMEOUT=120 run "$1" sh -c "mkfs.ext4 -q -F $2 && mount $2 $ULP_MNT"
}

filesystem_check() {
	RUN_TIMEOUT=180 run "$1" sh -c "umount $ULP_MNT && fsck.ext4 -fn $2"
}

files_make() {
	# shellcheck disable=SC2016 # for the inner shell
	RUN_TIMEOUT=180 run "$1" bash -c 'set -e
		mkdir '$ULP_MNT'/files && cd '$ULP_MNT'/files
		for size in 1 511 4096 65537 1000000; do
			head -c $size /dev/urandom > $size
		done
		head -c '"${2:-8}"'M /dev/urandom > large
		mkdir -p a/b && for n in $(seq 40); do head -c $((n * 397)) /dev/urandom > a/b/$n; done
		sync
		find . -type f -print0 | xargs -0 sha256sum > '"$LIB_TMP/sums"
}

files_check() {
	RUN_TIMEOUT=180 run "$1" sh -c "sync && echo 3 > /proc/sys/vm/drop_caches &&
		cd $ULP_MNT/files && sha256sum --quiet -c $LIB_TMP/sums"
}

# fio writes files in random order with requests of 4 KiB and of 128 KiB, and verifies them, until it is stopped.
load_start() {
	mkdir -p $ULP_MNT/load
	fio --directory=$ULP_MNT/load --ioengine=libaio --direct=1 --time_based --runtime=1d --size="${LOAD_SIZE:-8M}" \
		--rw=randwrite --verify=crc32c --verify_fatal=1 --verify_dump=0 --iodepth=$LOAD_DEPTH \
		--group_reporting --eta=never --name=small --bs=$LOAD_SMALL --name=large --bs=$LOAD_LARGE \
		> "$LIB_TMP/load" 2>&1 < /dev/null &
	LOAD=$!
}

load_stop() {
	# Wait until fio reads, so that it has verified some of what it wrote.
	within "${LOAD_PATIENCE:-60}" load_moved $(($(load_bytes read) + 1)) read
	kill -INT $LOAD 2> /dev/null
	if ! ended $LOAD "${LOAD_PATIENCE:-60}"; then
		notok "$1" "fio does not end"
		kill -KILL $LOAD
	# Status 128: fio was interrupted, and had no error before.
	elif [ "$JOB_STATUS" != 128 ] || ! grep -q 'err= 0' "$LIB_TMP/load" ||
		! grep -q '^ *read: ' "$LIB_TMP/load"; then
		notok "$1" "fio's status is $JOB_STATUS"
	else
		ok "$1"
		grep -E '^ +(read|write): ' "$LIB_TMP/load" | sed 's/^ */#   /'
		return 0
	fi
	show_tail "$LIB_TMP/load"
	return 1
}

# load_bytes [read|write]: print the bytes of direct I/O that fio has submitted
load_bytes() {
	local pid
	for pid in $(pgrep -x fio); do
		awk '/^('"${1:-read|write}"')_bytes/ { print $2 }' "/proc/$pid/io"
	done 2> /dev/null | awk '{ n += $1 } END { print n + 0 }'
}

load_moved() {
	[ "$(load_bytes $2)" -gt "$1" ]
}

load_moves() {
	local before
	before=$(load_bytes)
	# The load must move more bytes than can be in flight at a time.
	if ! kill -0 $LOAD 2> /dev/null; then
		notok "$1" "fio has ended"
	elif ! within "${2:-30}" load_moved $((before + LOAD_DEPTH * (LOAD_SMALL + LOAD_LARGE))); then
		notok "$1" "fio has made no progress for ${2:-30} s"
	else
		ok "$1"
		return 0
	fi
	show_tail "$LIB_TMP/load"
	return 1
}

network_cut() {
	modprobe sch_netem
	tc qdisc replace dev "$NETDEV" root netem loss 100%
	sleep "$1"
	tc qdisc del dev "$NETDEV" root
}

# Leave out CQs and PDs: the core keeps shared CQs, and a PD for each kind of user, until the device is removed.
ulp_resources() {
	resources "$RDMA_DEV" | sed -E 's/ (cq|pd) [0-9]+//g'
}

ulp_mark() {
	ulp_resources > "$LIB_TMP/resources"
}

ulp_end() {
	if ! within 20 eval 'ulp_resources | cmp -s - "$LIB_TMP/resources"'; then
		notok "$1" "was '$(cat "$LIB_TMP/resources")', is '$(ulp_resources)'"
	elif ! module_remove; then
		notok "$1" "the driver cannot be unloaded"
	else
		ok "$1"
	fi
	tasks_check "no task hangs on node $NODE"
	barrier end 240
}
