# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Failing allocations, and which of the driver's failed: . "$LAB_SRC/selftests/fail_sites.sh"
#
#   faults_choose		atomic allocations of engines and of the network can fail
#   faults_percent S P	S percent of those of slabs do, and P percent of those of pages; nothing without the option
#   sites_begin		counts allocations by their stack, those that got memory and those that did not
#   sites_end FILE	writes them to FILE and prints a summary
#
# A site is the innermost function of the driver on the stack: what the kernel allocates for it counts as well. Pages
# that fail leave no trace here.

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

# The innermost function of the driver on each stack of the histograms with that name, and how often
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
	echo "#   and in these never: $(awk 'NR == FNR { was[$1] = 1; next } !($1 in was) { print $1 }' \
		"$1.failed" "$1.all" | paste -sd' ')"
	# The histograms are many megabytes.
	gzip -f "$1.hist"
	if [ ! -s "$1.failed" ]; then
		notok "allocations of the driver fail" "none did"
	fi
}

# Caches that engines allocate from; not those of kmemleak and of the checkers, which would end themselves.
faults_choose() {
	local cache kind
	[ -d "$FAULTS/failslab" ] || return 0
	for cache in /sys/kernel/slab/{kmalloc-*,skbuff_*,nhca*,radix_tree_node}; do
		[ -w "$cache/failslab" ] && echo 1 > "$cache/failslab"
	done 2> /dev/null
	echo Y > "$FAULTS"/failslab/cache-filter
	# Whoever may sleep gets its memory: fail_nth.sh has those.
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

# faults_percent OF-SLABS OF-PAGES
faults_percent() {
	[ -d "$FAULTS/failslab" ] || return 0
	echo "$1" > "$FAULTS"/failslab/probability
	echo "$2" > "$FAULTS"/fail_page_alloc/probability
}
