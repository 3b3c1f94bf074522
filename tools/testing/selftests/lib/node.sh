# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# More functions for test scripts, to read after lib.sh: . "$LAB_SRC/selftests/lib/node.sh"
# They add, remove and inspect devices, and check for leaks.
#
#   device_add DEV NETDEV [IP...]	add a device and wait until it is active and has the GIDs of the addresses
#   device_ready DEV [IP...]		wait up to 20 s until a device is active and has these GIDs
#   device_gone DEV [SECONDS]		wait until the device is removed
#   gid_of DEV IP			print the GID index of an address of another device
#   module_remove / module_insert	unload or load the driver under test
#   reload NAME RESOURCES	check that $RDMA_DEV has these resources, then reload the module and add the device
#			again; print notok if a step fails
#   resources DEV			print the numbers of QPs, CQs, MRs, PDs, contexts ... as `rdma res show`
#   memory_mark / memory_check NAME OBJECTS	check that no slab cache of the driver or of kmalloc() has grown by
#					more than OBJECTS (plus one slab for each CPU), and that the numbers of
#					pinned pages, vmalloc areas and module references have not grown
#   kmemleak_mark / kmemleak_check NAME	check that kmemleak finds no leak, if the kernel has kmemleak
#   tasks_check NAME			check that no task hangs in the kernel
#   log_mark / log_has REGEX		search the kernel log since the mark
#   lossless NETDEV		let NETDEV send all packets of a test that counts packets
#   losses NETDEV		print how many packets this host has lost, and where, as one line
#   ended PID SECONDS			wait for the end of a background job; its status is then in JOB_STATUS

case $LAB_DRIVER in
rxe) DRIVER_MODULE=rdma_rxe ;;
*) DRIVER_MODULE=$LAB_DRIVER ;;
esac
mine=IP_$NODE mine6=IP6_$NODE
MY_IP=${!mine} MY_IP6=${!mine6}

gid_of() {
	local RDMA_DEV=$1
	gid_index "$2"
}

has_gid() {
	grep -qsx "$(gid_text "$2")" "/sys/class/infiniband/$1/ports/1/gids/"{?,??}
}

device_ready() {
	local dev=$1 deadline=$((SECONDS + 20)) ip missing
	shift
	while [ $SECONDS -le $deadline ]; do
		missing=
		grep -qs ACTIVE "/sys/class/infiniband/$dev/ports/1/state" || missing=' active port'
		for ip in "$@"; do
			has_gid "$dev" "$ip" || missing+=" GID of $ip"
		done
		[ -z "$missing" ] && break
		sleep 0.1
	done
	# Programs open the device node, so wait until udev has named it.
	udevadm settle --timeout=10
	[ -z "$missing" ] && return 0
	echo "# $dev still lacks after 20 s:$missing"
	return 1
}

device_add() {
	local dev=$1 netdev=$2
	shift 2
	rdma link add "$dev" type "$LAB_DRIVER" netdev "$netdev" 2>&1 | sed 's/^/#   /'
	[ "${PIPESTATUS[0]}" = 0 ] && device_ready "$dev" "$@"
}

device_gone() {
	local deadline=$((SECONDS + ${2:-20}))
	while [ $SECONDS -le $deadline ]; do
		[ -e "/sys/class/infiniband/$1" ] || return 0
		sleep 0.1
	done
	return 1
}

module_remove() {
	local tries
	# The kernel closes the files of a killed process a little after its end, so try for 10 s.
	for tries in $(seq 50); do
		rmmod "$DRIVER_MODULE" 2> "$LIB_TMP/rmmod" && return 0
		sleep 0.2
	done
	show_tail "$LIB_TMP/rmmod"
	rdma res show | sed 's/^/#   /'
	return 1
}

module_insert() {
	modprobe "$DRIVER_MODULE"
}

reload() {
	local name=$1 wanted=$2
	if ! resources_are "$RDMA_DEV" "$wanted"; then
		notok "$name" "resources: was '$wanted', is '$(resources "$RDMA_DEV")'"
	elif ! module_remove; then
		notok "$name" "the module cannot be removed"
	elif ! module_insert || ! device_add "$RDMA_DEV" "$NETDEV" "$MY_IP"; then
		notok "$name" "no device after the reload of the module"
	else
		return 0
	fi
	return 1
}

resources() {
	rdma res show "$1" | sed 's/^[0-9]*: //'
}

# resources_are DEV TEXT: wait up to 10 s until `resources DEV` prints TEXT
resources_are() {
	local tries
	[ -n "$2" ] || return 1
	for tries in $(seq 50); do
		[ "$(resources "$1")" = "$2" ] && return 0
		sleep 0.2
	done
	return 1
}

resources_check() {
	if resources_are "$2" "$3"; then
		ok "$1"
	else
		notok "$1" "was '$3', is '$(resources "$2")'"
		rdma res show qp link "$2/" | sed 's/^/#   /'
		return 1
	fi
}

# Free objects that the kernel only caches, because they count as in use. Dentries and inodes of overlayfs have an
# object of kmalloc-32 each. All objects in the partial slabs of a CPU count as in use. Each write here opens a file of
# sysfs, which leaves an object of kmalloc-96 for some seconds (kfree_rcu()).
memory_shrink() {
	local cache
	echo 2 > /proc/sys/vm/drop_caches
	for cache in /sys/kernel/slab/{kmalloc,nhca}*; do
		[ -w "$cache/cpu_partial" ] && echo 0 > "$cache/cpu_partial"
		[ -w "$cache/shrink" ] && echo 1 > "$cache/shrink"
	done 2> /dev/null
}

# Print, for each slab cache that the driver allocates from, the objects in use and the objects of one slab; then the
# module references, the driver's vmalloc areas and the pinned pages. All objects of the slab from which a CPU allocates
# count as in use, so memory_grown() allows for one slab for each CPU.
memory_state() {
	awk '$1 ~ /^(kmalloc|nhca)/ { print $1, $2, $5 }' /proc/slabinfo
	[ -e "/sys/module/$DRIVER_MODULE/refcnt" ] &&
		echo "module-references $(cat "/sys/module/$DRIVER_MODULE/refcnt")"
	echo "vmalloc-areas $(grep -c "\[$DRIVER_MODULE\]" /proc/vmallocinfo)"
	awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 }
		END { print "pinned-pages", n + 0 }' /proc/vmstat
}

# Some objects are freed with a delay: by RCU, by work items, at the end of rdma_cm's timewait state, and by kfree_rcu()
# after 5 s. A busy machine prolongs these delays. An object that is freed after the mark would hide a leaked one. So
# wait until the number of objects has not fallen by more than 20 for 6 s, for a minute at most. Other processes cause
# changes of up to 20.
memory_mark() {
	local tries count lowest='' calm=0
	memory_shrink
	for tries in $(seq 60); do
		memory_state > "$LIB_TMP/memory"
		count=$(awk '$3 { n += $2 } END { print n + 0 }' "$LIB_TMP/memory")
		calm=$((calm + 1))
		if [ -z "$lowest" ] || [ "$count" -lt $((lowest - 20)) ]; then
			lowest=$count
			calm=0
		fi
		[ $calm -lt 6 ] || break
		sleep 1
	done
	lsmod | awk 'NR > 1 { print $1 }' | sort > "$LIB_TMP/modules"
}

memory_grown() {
	local trackers=0
	# A kernel that tracks references to netdevs and namespaces keeps released trackers for a while: at most
	# two times 128 for each netdev and namespace (lib/ref_tracker.c), in kmalloc-32.
	[ -d /sys/kernel/debug/ref_tracker ] && trackers=1024
	awk -v bound="$1" -v cpus="$(nproc)" -v trackers=$trackers 'NR == FNR { was[$1] = $2; next }
		{ limit = $3 ? bound + $3 * cpus : 0 }
		$1 == "kmalloc-32" { limit += trackers }
		$2 - was[$1] > limit { print $1 ": " was[$1] + 0 " -> " $2 }' \
		"$LIB_TMP/memory" "$LIB_TMP/memory.now"
}

# Print the modules that were loaded since the mark, which have allocated memory of their own.
memory_modules() {
	lsmod | awk 'NR > 1 { print $1 }' | sort | comm -13 "$LIB_TMP/modules" - | paste -sd' '
}

# Some objects are freed with a delay (see memory_mark()). So if there are too many objects, wait until their number has
# not fallen for 20 s, for three minutes at most. The number of leaked objects does not fall.
memory_check() {
	local tries grown excess least='' calm=0 modules
	for tries in $(seq 180); do
		memory_state > "$LIB_TMP/memory.now"
		grown=$(memory_grown "$2")
		[ -z "$grown" ] && break
		excess=$(echo "$grown" | awk '{ n += $4 - $2 } END { print n }')
		calm=$((calm + 1))
		if [ -z "$least" ] || [ "$excess" -lt "$least" ]; then
			least=$excess
			calm=0
		fi
		[ $calm -lt 20 ] || break
		# memory_shrink() raises the excess for a few seconds, so do not compare with the excess before it.
		[ "$tries" != 1 ] || { memory_shrink; least=; }
		sleep 1
	done
	if [ -z "$grown" ]; then
		ok "$1"
	else
		modules=$(memory_modules)
		grown="$(echo "$grown" | paste -sd,)${modules:+; modules loaded since then: $modules}"
		notok "$1" "more than $2 objects in use since the start: $grown"
		return 1
	fi
}

kmemleak_mark() {
	[ -w /sys/kernel/debug/kmemleak ] || return 0
	echo scan > /sys/kernel/debug/kmemleak
	echo clear > /sys/kernel/debug/kmemleak
}

kmemleak_check() {
	[ -w /sys/kernel/debug/kmemleak ] || return 0
	"$LAB_SRC/lab/guest/lost" > "$LIB_TMP/kmemleak"
	if [ -s "$LIB_TMP/kmemleak" ]; then
		notok "$1" "$(grep -c '^unreferenced' "$LIB_TMP/kmemleak") objects without a reference"
		SHOWN_LINES=60 show_tail "$LIB_TMP/kmemleak"
		return 1
	fi
	ok "$1"
}

# Print pid, state and name of tasks in state D, but not the wait channel. To find the wait channel, user-mode Linux
# reads the stack of the task, and KASAN reports this as an error of the kernel. tasks_check reads the wait channel of
# tasks that hang.
hung_tasks() {
	ps -eo pid=,stat=,comm= | awk '$2 ~ /^D/'
}

# A task may sleep uninterruptibly for a moment, but not for 20 s.
tasks_check() {
	local deadline=$((SECONDS + 20)) left
	while [ $SECONDS -le $deadline ]; do
		left=$(hung_tasks)
		if [ -z "$left" ]; then
			ok "$1"
			return 0
		fi
		sleep 0.5
	done
	notok "$1" "$(echo "$left" | while read -r pid _ comm; do
		echo "$comm($pid) in $(cat "/proc/$pid/wchan")"
	done | paste -sd,)"
	for pid in $(echo "$left" | awk '{ print $1 }'); do
		sed "s/^/#   $pid: /" "/proc/$pid/stack"
	done
	return 1
}

LOG_MARKS=0
log_mark() {
	LOG_MARKS=$((LOG_MARKS + 1))
	echo "selftest: mark $LOG_MARKS" > /dev/kmsg
}

log_since() {
	dmesg | sed "1,/selftest: mark $LOG_MARKS\$/d"
}

log_has() {
	log_since | grep -Eq "$1"
}

# fq_codel, the default queueing discipline of Debian's kernel, drops packets of a queue that has been longer than 5 ms
# for 100 ms, as happens on a busy machine. No program is told.
lossless() {
	tc qdisc replace dev "$1" root pfifo limit 100000
}

losses() {
	local stat=/sys/class/net/$1/statistics queue
	queue=$(tc -s qdisc show dev "$1" | grep -o 'dropped [0-9]*' | awk '{ n += $2 } END { print n + 0 }')
	echo "queueing discipline $queue, netdev tx $(cat "$stat/tx_dropped") rx $(cat "$stat/rx_dropped")," \
		"UDP$(awk '$1 != "Udp:" { next } !n { n = split($0, name); next }
			{ for (i = 2; i <= n; i++) if (name[i] ~ /Errors/) printf " %s %s", name[i], $i }' /proc/net/snmp)"
}

ended() {
	local deadline=$((SECONDS + $2))
	while [ $SECONDS -le $deadline ]; do
		if ! kill -0 "$1" 2> /dev/null; then
			wait "$1" 2> /dev/null
			JOB_STATUS=$?
			return 0
		fi
		sleep 0.1
	done
	JOB_STATUS=
	return 1
}
