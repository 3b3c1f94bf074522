#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: verbs of kernel users work: each way to poll a CQ, with and without moderation, the CQ pool, many elements, fast registration, drains
# tier: check
# lab: --nodes 1 --modules tools/testing/selftests/ulp/kverbs --timeout 200
# lab smp: --nodes 1 --cpus 4 --modules tools/testing/selftests/ulp/kverbs --timeout 600 --env ROUNDS=50
# tier smp: long
# lab debug: --nodes 1 --kernel debug --modules tools/testing/selftests/ulp/kverbs --timeout 900 --env ROUNDS=3
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/ulp/ulp.sh"

# kverbs NAME: load the module and read its 26 results, for six ways to poll a CQ, from the kernel log
kverbs() {
	local name=$1 count line
	log_mark
	if ! modprobe kverbs "dev=$RDMA_DEV" "gid=$(gid_index)"; then
		notok "$name" "modprobe kverbs"
		return
	fi
	rmmod kverbs
	log_since | sed -n 's/.*kverbs: \(\(not \)\?ok - .*\)/\1/p' > "$LIB_TMP/kverbs"
	while IFS= read -r line; do
		case $line in
		ok*) ok "${line#ok - }, $name" ;;
		*)
			line=${line#not ok - }
			notok "${line%: *}, $name" "error ${line##*: }"
			;;
		esac
	done < "$LIB_TMP/kverbs"
	count=$(grep -c '^ok' "$LIB_TMP/kverbs")
	[ "$count" = 26 ] || notok "$name" "$count of 26 parts passed"
}

ulp_mark
for round in $(seq "${ROUNDS:-1}"); do
	for same_host in Y N; do
		echo $same_host > /sys/module/nhca/parameters/same_host
		kverbs "same_host=$same_host"
	done
	# With adaptive moderation the core changes the moderation of its CQs all the time (dim).
	rdma dev set "$RDMA_DEV" adaptive-moderation on || notok "adaptive moderation" "rdma dev set refuses it"
	kverbs "adaptive moderation"
	rdma dev set "$RDMA_DEV" adaptive-moderation off
	# A failed round is the last one.
	! ktap_failed || break
done
ulp_end "the device has as many objects as before, and the driver unloads"
