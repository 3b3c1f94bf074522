#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the Debian packages install, make their devices at boot and later, carry traffic, and leave nothing behind
# tier: long
# lab trixie: --nodes 1 --driver none --debs --init systemd --packages dkms,systemd-sysv --timeout 1800
# lab bookworm: --nodes 1 --release bookworm --driver none --debs --init systemd --packages dkms,systemd-sysv --timeout 1800
# The packages are installed in the guest's root tree, where DKMS compiles natively: in an emulated guest that
# would take an hour. The first boot here is the first one after that.

. "$LAB_SRC/selftests/lib.sh"
. "$LAB_SRC/selftests/node.sh"

packages=$(cd /packages && for file in *.deb; do echo "${file%%_*}"; done | grep -v dbgsym)

files() {
	"$LAB_SRC/lab/guest/files" | sort
}

# says NAME TEXT COMMAND...: it fails, with one line that has this text in it
says() {
	local name=$1 text=$2
	shift 2
	if "$@" > /dev/null 2> "$LIB_TMP/said"; then
		notok "$name" "it succeeds"
	elif [ "$(wc -l < "$LIB_TMP/said")" = 1 ] && grep -qF -e "$text" "$LIB_TMP/said"; then
		ok "$name"
	else
		notok "$name" "it says: $(paste -sd'|' "$LIB_TMP/said")"
	fi
}

netdev_of() {
	rdma link show "$1/1" 2> /dev/null | sed -n 's/.* netdev \([^ ]*\).*/\1/p'
}

# there NAME DEV NETDEV
there() {
	local tries
	for tries in $(seq 100); do
		[ "$(netdev_of "$2")" = "$3" ] && ok "$1" && return 0
		sleep 0.2
	done
	notok "$1" "there is no $2 on $3"
	journalctl --no-pager -u nhca -u "nhca@$3" | tail -n 10 | sed 's/^/#   /'
}

gone() {
	if device_gone "$2"; then
		ok "$1"
	else
		notok "$1" "$2 is still there"
	fi
}

# ---- what is installed ----

if [ "$LAB_BOOT" = 1 ]; then
	run "lintian has nothing to say" sh -c '! grep . /packages/lintian'
	run "DKMS has built the module for this kernel" \
		sh -c 'dkms status -k "$(uname -r)" | grep nhca.*installed'
	run "no device that nobody asked for" sh -c '! rdma link show | grep .'
	says "nhca-devices: a word too many" ':1: "eth0 nhca0 mtu" has 3 words; a line is NETDEV [NAME]' \
		nhca-devices -c <(echo "eth0 nhca0 mtu") check
	says "nhca-devices: a netdev twice" 'eth0 is in line 1 already' \
		nhca-devices -c <(printf 'eth0 nhca0\neth0 nhca1\n') check
	says "nhca-devices: a netdev that nobody named" 'does not name eth9' nhca-devices start eth9
	says "nhca-devices: no such file" 'there is no /etc/nothing' nhca-devices -c /etc/nothing start
	says "nhca-devices: no such command" 'there is no command begin' nhca-devices begin
	printf 'eth0 nhca0\nlater0\nvlan7 nhca7\n' > /etc/nhca.conf
	run "a change of the configuration is taken" systemctl reload-or-restart nhca
	there "its device is there" nhca0 eth0
	ip link add link eth0 name vlan7 type vlan id 7
	says "nhca-devices: why the kernel refuses" "vlan7: is a VLAN: add the nhca device to eth0" \
		nhca-devices start vlan7
	touch /run/lab/reboot
	exit
fi

# ---- after the reboot ----

there "the device is there after a reboot" nhca0 eth0
device_ready nhca0 "$IP_1" > /dev/null
export RDMA_DEV=nhca0
command="ibv_rc_pingpong -d nhca0 -g $(gid_index) -n 100 -c"
pair "ibv_rc_pingpong" "$command" "$command $IP_1"
pair "rping" "rping -s -a $IP_1 -C 10 -V" "rping -c -a $IP_1 -C 10 -V"
run "making devices again changes nothing" nhca-devices start

ip link add later0 type dummy
there "a netdev that comes later gets its device" nhca_later0 later0
ip link del later0
gone "it goes with its netdev" nhca_later0
ip link add later0 type dummy
there "and comes again" nhca_later0 later0

run "Wireshark finds the dissector" sh -c 'tshark -G plugins 2> /dev/null | grep nhca.lua'

run "the service stops" systemctl stop nhca
gone "and takes its devices along" nhca0
ip link del later0
ip link add later0 type dummy
udevadm settle
sleep 2
gone "while it is stopped no netdev gets one" nhca_later0
ip link del later0
run "and starts" systemctl start nhca
there "with its device" nhca0 eth0

# ---- away with it ----

# shellcheck disable=SC2086 # a list of words
RUN_TIMEOUT=600 run "the packages can be purged" env DEBIAN_FRONTEND=noninteractive apt-get purge -y $packages
gone "the device goes with the packages" nhca0
run "the module can be unloaded" rmmod nhca
files > "$LIB_TMP/files"
sort /lab/files > "$LIB_TMP/before"
left=$(comm -13 "$LIB_TMP/before" "$LIB_TMP/files")
missing=$(comm -23 "$LIB_TMP/before" "$LIB_TMP/files")
[ -z "$left$missing" ] && ok "nothing is left behind" || {
	notok "nothing is left behind" "$(printf '%s\n' "$left" "$missing" | grep -c .) files"
	printf '%s\n' "$left" | sed 's/^/#   new: /'
	printf '%s\n' "$missing" | sed 's/^/#   missing: /'
}
