# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Make allocations fail and count them for each function of the driver: . "$LAB_SRC/selftests/life/fail_sites.sh"
#
#   faults_choose	select the allocations that can fail: atomic ones, of pages or from slab caches of the data path
#   faults_percent S P	S percent of the slab allocations and P percent of the page allocations fail; no effect on a
#			kernel without fault injection
#   sites_begin		count failed allocations and all allocations for each call stack
#   sites_end FILE	write the counts to FILE.* and print a summary
#
# A site is the innermost function of the driver on the stack, so allocations that the kernel makes for the driver
# count as well. Page allocations are not counted.

FAULTS=/sys/kernel/debug
SITES_EVENTS=/sys/kernel/tracing/events/kmem
SITES_KINDS='kmalloc kmem_cache_alloc'

sites_begin() {
	local kind
	SITES=
	[ -e "$SITES_EVENTS/kmalloc/trigger" ] || return 0
	for kind in $SITES_KINDS; do
		{
			echo "hist:name=failed_$kind:keys=common_stacktrace:size=16384 if ptr == 0"
			echo "hist:name=all_$kind:keys=common_stacktrace:size=65536"
		} | while read -r trigger; do
			echo "$trigger" >> "$SITES_EVENTS/$kind/trigger"
		done || return 0
	done
	SITES=1
}

# sites_of FILE KIND: print each site of the histograms "failed" or "all", and its count
sites_of() {
	awk -v name="name=$2_" '/^# trigger info/ { mine = index($0, name) }
		/^{ common_stacktrace/ { site = "" }
		/\[nhca\]/ && !site { site = $1; sub(/\+.*/, "", site) }
		/hitcount:/ && mine && site { n[site] += $NF }
		END { for (s in n) print s, n[s] }' "$1" | sort
}

sites_end() {
	local kind
	[ -n "$SITES" ] || return 0
	for kind in $SITES_KINDS; do
		cat "$SITES_EVENTS/$kind/hist"
	done > "$1.hist"
	sites_of "$1.hist" failed > "$1.failed"
	sites_of "$1.hist" all > "$1.all"
	echo "#   allocations failed in $(wc -l < "$1.failed") functions of the driver: $(awk '{ print $1 "(" $2 ")" }' \
		"$1.failed" | paste -sd' ')"
	echo "#   no allocation failed in: $(awk 'NR == FNR { was[$1] = 1; next } !($1 in was) { print $1 }' \
		"$1.failed" "$1.all" | paste -sd' ')"
	# Compress the histograms, which have many megabytes.
	gzip -f "$1.hist"
	if [ ! -s "$1.failed" ]; then
		notok "allocations of the driver fail" "none did"
	fi
}

# Select the slab caches of the data path. kmemleak and other checkers disable themselves when their allocations fail,
# so leave out their caches.
faults_choose() {
	local cache kind
	[ -d "$FAULTS/failslab" ] || return 0
	for cache in /sys/kernel/slab/{kmalloc-*,skbuff_*,nhca*,radix_tree_node}; do
		[ -w "$cache/failslab" ] && echo 1 > "$cache/failslab"
	done 2> /dev/null
	echo Y > "$FAULTS"/failslab/cache-filter
	# Only atomic allocations fail here. fail_nth.sh tests those that may sleep.
	echo Y > "$FAULTS"/failslab/ignore-gfp-wait
	echo Y > "$FAULTS"/fail_page_alloc/ignore-gfp-wait
	echo 0 > "$FAULTS"/fail_page_alloc/min-order
	for kind in failslab fail_page_alloc; do
		echo N > "$FAULTS"/$kind/task-filter
		echo 0 > "$FAULTS"/$kind/verbose
		echo -1 > "$FAULTS"/$kind/times
		echo 1 > "$FAULTS"/$kind/interval
	done
}

faults_percent() {
	[ -d "$FAULTS/failslab" ] || return 0
	echo "$1" > "$FAULTS"/failslab/probability
	echo "$2" > "$FAULTS"/fail_page_alloc/probability
}
