#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the Debian packages install, make their devices at boot and later, carry traffic, and leave nothing behind
# tier: long
# lab trixie: --nodes 1 --driver none --debs --init systemd --packages dkms,systemd-sysv --timeout 1800
# lab bookworm: --nodes 1 --release bookworm --driver none --debs --init systemd --packages dkms,systemd-sysv --timeout 1800
# The packages are already installed in the guest's root tree, where DKMS compiled the module natively, because the
# compilation would take an hour in an emulated guest. The first boot of this test is the first boot after the
# installation.

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

packages=$(cd /packages && for file in *.deb; do echo "${file%%_*}"; done | grep -v dbgsym)

files() {
	"$LAB_SRC/lab/guest/files" | sort
}

# says NAME TEXT COMMAND...: the command must fail with one line on stderr that contains TEXT
says() {
	local name=$1 text=$2
	shift 2
	if "$@" > /dev/null 2> "$LIB_TMP/said"; then
		notok "$name" "it succeeds"
	elif [ "$(wc -l < "$LIB_TMP/said")" = 1 ] && grep -qF -e "$text" "$LIB_TMP/said"; then
		ok "$name"
	else
		notok "$name" "it printed: $(paste -sd'|' "$LIB_TMP/said")"
	fi
}

netdev_of() {
	rdma link show "$1/1" 2> /dev/null | sed -n 's/.* netdev \([^ ]*\).*/\1/p'
}

# there NAME DEV NETDEV: DEV must exist on NETDEV within 20 s
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

# ---- after the installation ----

if [ "$LAB_BOOT" = 1 ]; then
	run "lintian reports nothing" sh -c '! grep . /packages/lintian'
	run "DKMS has built the module for this kernel" \
		sh -c 'dkms status -k "$(uname -r)" | grep nhca.*installed'
	run "no device exists before one is configured" sh -c '! rdma link show | grep .'
	says "nhca-devices refuses a line of three words" ':1: "eth0 nhca0 mtu" has 3 words; a line is NETDEV [NAME]' \
		nhca-devices -c <(echo "eth0 nhca0 mtu") check
	says "nhca-devices refuses a netdev in two lines" 'eth0 is in line 1 already' \
		nhca-devices -c <(printf 'eth0 nhca0\neth0 nhca1\n') check
	says "nhca-devices refuses a netdev that is not configured" 'does not name eth9' nhca-devices start eth9
	says "nhca-devices refuses a missing file" 'there is no /etc/nothing' nhca-devices -c /etc/nothing start
	says "nhca-devices refuses an unknown command" 'there is no command begin' nhca-devices begin
	printf 'eth0 nhca0\nlater0\nvlan7 nhca7\n' > /etc/nhca.conf
	run "the service reads a changed configuration" systemctl reload-or-restart nhca
	there "the configured device exists" nhca0 eth0
	ip link add link eth0 name vlan7 type vlan id 7
	says "nhca-devices prints the kernel's reason" "vlan7: is a VLAN: add the nhca device to eth0" \
		nhca-devices start vlan7
	touch /run/lab/reboot
	exit
fi

# ---- after the reboot ----

there "the device exists after a reboot" nhca0 eth0
device_ready nhca0 "$IP_1" > /dev/null
export RDMA_DEV=nhca0
command="ibv_rc_pingpong -d nhca0 -g $(gid_index) -n 100 -c"
pair "ibv_rc_pingpong" "$command" "$command $IP_1"
pair "rping" "rping -s -a $IP_1 -C 10 -V" "rping -c -a $IP_1 -C 10 -V"
run "a second nhca-devices start changes nothing" nhca-devices start

ip link add later0 type dummy
there "a netdev that appears later gets its device" nhca_later0 later0
ip link del later0
gone "the device is removed with its netdev" nhca_later0
ip link add later0 type dummy
there "the device returns with its netdev" nhca_later0 later0

run "Wireshark finds the dissector" sh -c 'tshark -G plugins 2> /dev/null | grep nhca.lua'

run "the service stops" systemctl stop nhca
gone "its devices are removed with the service" nhca0
ip link del later0
ip link add later0 type dummy
udevadm settle
sleep 2
gone "while the service is stopped, no netdev gets a device" nhca_later0
ip link del later0
run "the service starts" systemctl start nhca
there "the service adds its device" nhca0 eth0

# ---- removal of the packages ----

# shellcheck disable=SC2086 # a list of words
RUN_TIMEOUT=600 run "the packages can be purged" env DEBIAN_FRONTEND=noninteractive apt-get purge -y $packages
gone "the device is removed with the packages" nhca0
run "the module can be unloaded" rmmod nhca
files > "$LIB_TMP/files"
sort /lab/files > "$LIB_TMP/before"
left=$(comm -13 "$LIB_TMP/before" "$LIB_TMP/files")
missing=$(comm -23 "$LIB_TMP/before" "$LIB_TMP/files")
[ -z "$left$missing" ] && ok "no file is left or missing" || {
	notok "no file is left or missing" "$(printf '%s\n' "$left" "$missing" | grep -c .) files"
	printf '%s\n' "$left" | sed 's/^/#   new: /'
	printf '%s\n' "$missing" | sed 's/^/#   missing: /'
}
