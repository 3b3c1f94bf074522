#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: registering 1 GiB, and 100,000 regions, costs at most 2 % more time and memory than with rdma_rxe
# tier: long
# lab: --nodes 1 --driver none --clock instructions --memory 3072 --timeout 3000

. "$LAB_SRC/selftests/lib/lib.sh"

# Both drivers bind UDP port 4791, so measure them one after the other.
measure() {
	local module=$1 type=$2
	modprobe "$module" && rdma link add "${type}0" type "$type" netdev "$NETDEV" || return
	udevadm settle --timeout=20
	sleep 1
	timeout 1200 regcost -d "${type}0" -f "$pages/large" -s "${MIB:-1024}" -n "${REGIONS:-100000}" \
		> "$LIB_TMP/$type" 2>&1
	local status=$?
	sed "s/^#\?/#   $type:/" "$LIB_TMP/$type"
	rdma link del "${type}0"
	rmmod "$module"
	return $status
}

value() {
	awk -v name="$2" '$1 == name { print $2 }' "$LIB_TMP/$1"
}

compare() {
	local name=$1 what=$2 rxe nhca
	rxe=$(value rxe "$what") nhca=$(value nhca "$what")
	if [ -z "$rxe" ] || [ -z "$nhca" ]; then
		notok "$name" "not measured"
		return
	fi
	echo "# $name: nhca $nhca, rxe $rxe, ratio $(awk "BEGIN { printf \"%.3f\", $nhca / ($rxe ? $rxe : 1) }")"
	if awk "BEGIN { exit !($nhca <= 1.02 * $rxe) }"; then
		ok "$name"
	else
		notok "$name" "nhca $nhca, rdma_rxe $rxe"
	fi
}

# The large buffer is a file in tmpfs, so both drivers register the same pages, contiguous or not.
pages=$LIB_TMP/pages
mkdir "$pages" && mount -t tmpfs -o size=1100m regcost "$pages" || notok "a tmpfs" "not mounted"

# The second run of each driver counts. In the first run rdma_rxe gets the contiguous pages that are free after boot,
# and nhca gets only pages that rdma_rxe has used.
for _ in 1 2; do
	measure rdma_rxe rxe || notok "rdma_rxe was measured" "see above"
	measure nhca nhca || notok "nhca was measured" "see above"
done
compare "time to register 1 GiB in pages of 4 KiB" large_reg_ns
compare "time to deregister it" large_dereg_ns
compare "kernel memory while it is registered" large_kib
compare "time to register 100,000 regions" many_reg_ns
compare "time to deregister them" many_dereg_ns
compare "kernel memory while they are registered" many_kib
