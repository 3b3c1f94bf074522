#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: nhca-store copies the right bytes from and to files and disks, refuses what is not allowed, and works after clients were killed or lost
# tier: check
# lab: --nodes 2 --packages dmsetup,e2fsprogs,xfsprogs --timeout 400
# lab rxe: --nodes 2 --driver 1=nhca,2=rxe --packages dmsetup,e2fsprogs,xfsprogs --timeout 400 --env KEEP_LINK=1
# tier rxe: long
# lab debug: --nodes 2 --packages dmsetup,e2fsprogs,xfsprogs --kernel debug --timeout 1600
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
. "$LAB_SRC/selftests/memory/disks.sh"

mib=32
shared=$LAB_CTL/store
mnt=$LIB_TMP/mnt
mkdir -p "$shared" "$mnt"

sum() {
	sha256sum < "$1" | cut -d' ' -f1
}

disk_sum() {
	dd if="$1" bs=1M iflag=direct status=none | sha256sum | cut -d' ' -f1
}

# same VALUE WANTED NAME: print ok if VALUE is WANTED and not empty
same() {
	if [ -n "$1" ] && [ "$1" = "$2" ]; then
		ok "$3"
	else
		notok "$3" "$1 instead of $2"
	fi
}

random() {
	head -c "$2" /dev/urandom > "$1"
}

# wait_for SECONDS COMMAND...: wait up to SECONDS, times SLOWER, until the command succeeds
wait_for() {
	local deadline=$((SECONDS + $1 * SLOWER))
	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.2
	done
}

said() {
	grep -q "$1" "$LIB_TMP/server"
}

# refused STATUS TEXT COMMAND...: the command must fail with STATUS and one line that contains TEXT
refused() {
	local status=$1 text=$2 got
	shift 2
	timeout $((60 * SLOWER)) "$@" > "$LIB_TMP/out" 2>&1 < /dev/null
	got=$?
	if [ $got = "$status" ] && [ "$(wc -l < "$LIB_TMP/out")" = 1 ] && grep -qF -- "$text" "$LIB_TMP/out"; then
		ok "refused: $text"
	else
		notok "refused: $text" "status $got: $(head -n 3 "$LIB_TMP/out")"
	fi
}

start_server() {
	nhca-store serve -c "$LIB_TMP/conf" > "$LIB_TMP/server" 2>&1 < /dev/null &
	SERVER=$!
	wait_for 20 said "exports on port"
}

write_config() {
	cat > "$LIB_TMP/conf" <<- END
		pool = 1M
		connections = 4
		keepalive = 1
		[disk]
		path = $disk
		write = yes
		allow = $IP_2/32
		[odd]
		path = $mnt/odd
		allow = all
		[small]
		path = $mnt/small
		write = yes
		sync = yes
		allow = 203.0.113.1, $IP_2
		[part]
		path = $mnt/odd
		offset = 8K
		size = 5000
		allow = $IP6_2/64 all
		[hidden]
		path = $mnt/odd
		allow = 203.0.113.0/24
		[bad]
		path = $bad
		allow = all
	END
}

# the connections' ends that rdma_cm of this host has received, and the keepalives that got no acknowledgement
disconnects() {
	echo "DREQs received $(cat "/sys/class/infiniband/$RDMA_DEV/ports/1/cm_rx_msgs/dreq")," \
		"local ACK timeouts $(cat "/sys/class/infiniband/$RDMA_DEV/ports/1/hw_counters/local_ack_timeout_err")"
}

# The link of the client's host is down: the server must deregister the region of this client.
detect_loss() {
	barrier unplugged 120
	# The lab sets max_backoff to 32 (lab/guest/init), so 7 retries of the server's keepalive take up to 35 s.
	if wait_for 100 no_region; then
		ok "the region of a client whose host is gone is deregistered"
	else
		notok "the region of a client whose host is gone is deregistered" "$(tail -n 2 "$LIB_TMP/server")"
	fi
	barrier detected
	barrier plugged 120
}

serve() {
	if ! null_disk disk $mib || ! null_disk files 64 || ! null_disk bad 4; then
		notok "the disks are there" "null_blk cannot be set up"
		return
	fi
	disk=$(disk_of disk) files=$(disk_of files) bad=$(disk_of bad)
	disk_fill "$disk" "$files" "$bad"
	echo "+4096-4103" > "$NULL_DISKS/bad/badblocks"
	mkfs.ext4 -q -F "$files" && mount "$files" "$mnt"
	random "$mnt/odd" 5000123
	random "$mnt/small" 100
	sync
	for file in odd small; do
		sum "$mnt/$file" > "$shared/$file"
	done
	tail -c +8193 "$mnt/odd" | head -c 5000 > "$LIB_TMP/part"
	sum "$LIB_TMP/part" > "$shared/part"

	printf '[mounted]\npath = %s\nwrite = yes\nallow = all\n' "$files" > "$LIB_TMP/conf"
	refused 1 "this host uses the device" nhca-store serve -c "$LIB_TMP/conf"
	printf '[nothing]\npath = %s/none\nallow = all\n' "$mnt" > "$LIB_TMP/conf"
	refused 1 "No such file" nhca-store serve -c "$LIB_TMP/conf"
	printf '[none]\npath = /etc/passwd\n' > "$LIB_TMP/conf"
	refused 2 "nobody could open it" nhca-store serve -c "$LIB_TMP/conf"

	write_config
	if ! start_server; then
		notok "the server starts" "$(cat "$LIB_TMP/server")"
		return
	fi
	barrier serving
	barrier copied 300
	same "$(disk_sum "$disk")" "$(cat "$shared/put")" "the disk has what the client has put"
	same "$(sum "$mnt/small")" "$(cat "$shared/put-small")" "a file of 100 bytes was written"
	barrier killed 120
	# The kernel of a killed client sends one DREQ. If this packet is lost, only the keepalive detects the loss.
	if wait_for 100 no_region; then
		ok "the region of a killed client is deregistered"
	else
		notok "the region of a killed client is deregistered" "$(disconnects), $(tail -n 2 "$LIB_TMP/server")"
	fi
	[ -n "$KEEP_LINK" ] || detect_loss
	restart put
	restart get
	store_hostile server > "$LIB_TMP/fake" 2>&1 &
	FAKE=$!
	wait_for 20 fake_listens || notok "the wrong server listens"
	barrier fake 120
	barrier faked 120
	ended $FAKE 20
	same "$JOB_STATUS" 0 "the wrong server has sent all replies"
	barrier open 120
	kill -TERM $SERVER
	ended $SERVER 20
	same "$JOB_STATUS" 0 "the server ends with status 0"
	umount "$mnt"
	barrier stopped 120
}

# Restart the server while the client copies.
restart() {
	barrier "$1-begun" 120
	kill -TERM $SERVER
	ended $SERVER 20
	start_server || notok "the server starts again" "$(cat "$LIB_TMP/server")"
	barrier "$1-restarted"
	barrier "$1-ended" 120
}

fake_listens() {
	rdma res show cm_id | grep -q ":4799"
}

no_region() {
	[ -z "$(cat /sys/kernel/debug/nhca/stores)" ]
}

# Start a copy to a pipe from which no process reads, so that the client stays connected. Set BLOCKED to the client's
# pid, and SLEEPER to the pid of the process that has the pipe open.
blocked_get() {
	rm -f "$LIB_TMP/pipe"
	mkfifo "$LIB_TMP/pipe"
	# shellcheck disable=SC2217 # it holds the pipe open, and does not read
	sleep 1000 < "$LIB_TMP/pipe" &
	SLEEPER=$!
	nhca-store get "$IP_1" disk - > "$LIB_TMP/pipe" 2> "$LIB_TMP/blocked" &
	BLOCKED=$!
	sleep 2
}

# put_get OPTION: copy a local disk to the export and back
put_get() {
	local name="put and get${1:+, $1}"
	shred -n 1 "$mine_disk"
	disk_sum "$mine_disk" > "$shared/put"
	run "$name: put" nhca-store put ${1:+"$1"} "$mine_disk" "$IP_1" disk || return
	dd if=/dev/zero of="$mine_disk" bs=1M count=$mib oflag=direct status=none
	run "$name: get" nhca-store get ${1:+"$1"} "$IP_1" disk "$mine_disk" || return
	same "$(disk_sum "$mine_disk")" "$(cat "$shared/put")" "$name: the bytes are the same"
}

# The link of the client's host goes down. The copy is blocked, so only the server's keepalive can detect this.
lose_link() {
	blocked_get
	ip link set "$NETDEV" down
	barrier unplugged
	# Leave the link down until the server has detected the loss.
	barrier detected 200
	kill -KILL $BLOCKED $SLEEPER
	wait $BLOCKED $SLEEPER 2> /dev/null
	ip link set "$NETDEV" up
	ip addr replace "$MY_IP6/64" dev "$NETDEV" nodad
	device_ready "$RDMA_DEV" "$MY_IP" || notok "the device is ready again"
	barrier plugged 120
}

# copied NAME: the put or get in the background (BLOCKED) must have connected again and succeeded
copied() {
	wait $BLOCKED
	status=$?
	if [ $status = 0 ] && grep -q "connected again" "$LIB_TMP/again"; then
		ok "$1"
	else
		notok "$1" "status $status: $(tail -n 2 "$LIB_TMP/again")"
	fi
}

# With --timeout, put and get go on after the server was restarted.
go_on() {
	shred -n 1 "$mine_disk"
	rm -f "$LIB_TMP/pipe"
	mkfifo "$LIB_TMP/pipe"
	nhca-store put -t 60 -l ${mib}M - "$IP_1" disk < "$LIB_TMP/pipe" 2> "$LIB_TMP/again" &
	BLOCKED=$!
	exec 8> "$LIB_TMP/pipe"
	dd if="$mine_disk" bs=1M count=10 status=none >&8
	barrier put-begun
	barrier put-restarted 120
	dd if="$mine_disk" bs=1M skip=10 status=none >&8
	exec 8>&-
	copied "put goes on after a restart of the server"
	barrier put-ended

	nhca-store get -t 60 "$IP_1" disk - > "$LIB_TMP/pipe" 2> "$LIB_TMP/again" &
	BLOCKED=$!
	exec 8< "$LIB_TMP/pipe"
	dd bs=1M count=10 iflag=fullblock status=none <&8 > "$LIB_TMP/copy"
	barrier get-begun
	barrier get-restarted 120
	cat <&8 >> "$LIB_TMP/copy"
	exec 8<&-
	copied "get goes on after a restart of the server"
	same "$(sum "$LIB_TMP/copy")" "$(disk_sum "$mine_disk")" "the bytes are the same after both restarts"
	barrier get-ended
}

use() {
	null_disk mine $mib
	mine_disk=$(disk_of mine)
	barrier serving 120
	nhca-store ls "$IP_1" > "$LIB_TMP/ls" 2>&1
	if [ "$(awk '{ print $1, $2, $3, $4 }' "$LIB_TMP/ls" | tr '\n' ,)" = \
		"disk rw device $((mib << 20)),odd ro file 5000123,small rw file 100,part ro file 5000,bad ro device $((4 << 20))," ]; then
		ok "ls shows the exports that this host may open"
	else
		notok "ls shows the exports that this host may open" "$(tr '\n' ',' < "$LIB_TMP/ls")"
	fi
	for name in odd small part; do
		run "get $name" nhca-store get "$IP_1" $name "$LIB_TMP/$name"
		same "$(sum "$LIB_TMP/$name")" "$(cat "$shared/$name")" "$name has the right bytes"
	done
	nhca-store get -o 4999 -l 4995000 "$IP_1:4792" odd - > "$LIB_TMP/range" 2> "$LIB_TMP/out"
	same "$(sum "$LIB_TMP/range")" "$(tail -c +5000 "$LIB_TMP/odd" | head -c 4995000 | sha256sum | cut -d' ' -f1)" \
		"get copies a range that ends in the tail"
	run "get over IPv6" nhca-store get "[$IP6_1]:4792" part "$LIB_TMP/part6"
	same "$(sum "$LIB_TMP/part6")" "$(cat "$shared/part")" "get over IPv6: the bytes are the same"

	put_get
	[ "$LAB_DRIVER" != nhca ] || put_get --direct
	[ "$LAB_DRIVER" = nhca ] || refused 1 "not an nhca device" nhca-store get --direct "$IP_1" disk "$mine_disk"
	# put bytes 100000 to 199999 from a pipe, and write the same bytes to the local disk
	random "$LIB_TMP/piece" 100000
	run "put from a pipe" bash -c "cat '$LIB_TMP/piece' | nhca-store put -o 100000 -l 100000 - $IP_1 disk"
	dd if="$LIB_TMP/piece" of="$mine_disk" bs=1000 seek=100 conv=notrunc,fsync status=none
	disk_sum "$mine_disk" > "$shared/put"
	random "$LIB_TMP/piece" 100
	run "put a small file" nhca-store put "$LIB_TMP/piece" "$IP_1" small
	sum "$LIB_TMP/piece" > "$shared/put-small"

	refused 1 "does not allow writes" nhca-store put "$LIB_TMP/piece" "$IP_1" odd
	refused 1 "no such export" nhca-store get "$IP_1" hidden "$LIB_TMP/hidden"
	refused 1 "no such export" nhca-store get "$IP_1" none "$LIB_TMP/hidden"
	refused 1 "has only 5000 bytes" nhca-store get -o 5001 "$IP_1" part "$LIB_TMP/hidden"
	refused 1 "has only 100 bytes" nhca-store put "$LIB_TMP/odd" "$IP_1" small
	refused 1 "disk has failed" nhca-store get -q "$IP_1" bad "$LIB_TMP/hidden"
	refused 2 "a pipe needs --length" bash -c "true | nhca-store put - $IP_1 disk"
	refused 1 "the server refuses the connection" nhca-store ls "$IP_1:4793"
	barrier copied

	blocked_get
	kill -KILL $BLOCKED $SLEEPER
	wait $BLOCKED $SLEEPER 2> /dev/null
	barrier killed
	run "the server goes on after a killed client" nhca-store get "$IP_1" odd "$LIB_TMP/odd"

	[ -n "$KEEP_LINK" ] || lose_link
	go_on
	report store_hostile client "$IP_1"
	barrier fake 120
	for reply in $(seq "$(store_hostile replies)"); do
		nhca-store get "$IP_1:4799" disk "$LIB_TMP/fake" > "$LIB_TMP/out" 2>&1
		status=$?
		if [ $status = 1 ] && [ "$(wc -l < "$LIB_TMP/out")" = 1 ]; then
			ok "the client refuses wrong reply $reply"
		else
			notok "the client refuses wrong reply $reply" "status $status: $(head -n 3 "$LIB_TMP/out")"
		fi
	done
	barrier faked 60

	blocked_get
	barrier open
	kill -KILL $SLEEPER
	wait $BLOCKED
	status=$?
	if [ $status = 1 ] || [ $status = 141 ]; then
		ok "a client ends when the server does"
	else
		notok "a client ends when the server does" "status $status: $(cat "$LIB_TMP/blocked")"
	fi
	barrier stopped 120
	refused 1 "the server refuses the connection" nhca-store ls "$IP_1"
}

leak_snapshot
if [ "$NODE" = 1 ]; then
	serve
else
	use
fi
leak_check "no slab object or module reference is leaked"
