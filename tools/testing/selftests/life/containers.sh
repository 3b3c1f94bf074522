#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the documented recipes for containers and CI work: each network namespace has its device, and programs need no privilege
# tier: long
# lab: --nodes 1 --driver none --timeout 240
# lab archive: --nodes 1 --driver none --timeout 400 --env ARCHIVE=1
# tier archive: long
# lab backports: --nodes 1 --driver none --release backports --timeout 240
# tier backports: long
# Documentation/containers.rst shows functions of this file. The steps of a workflow come from Documentation/ci.yml.
# With ARCHIVE, setup-nhca installs an archive; otherwise nhca is already installed in the guest.

. "$LAB_SRC/selftests/lib/lib.sh"

# ---- recipe: two namespaces, a device each
setup() {
	# Set the exclusive mode once, before another namespace exists. From then on a device is visible in only one
	# namespace.
	rdma system set netns exclusive
	modprobe -a nhca ib_uverbs rdma_ucm

	ip netns add red
	ip netns add blue
	ip link add red0 netns red type veth peer name blue0 netns blue
	ip -n red addr add 10.0.0.1/24 dev red0
	ip -n blue addr add 10.0.0.2/24 dev blue0
	ip -n red link set red0 up
	ip -n blue link set blue0 up

	ip netns exec red rdma link add nhca_red type nhca netdev red0
	ip netns exec blue rdma link add nhca_blue type nhca netdev blue0
	# Before Linux 7.0 a new device is in the initial namespace, so move it.
	rdma dev set nhca_red netns red 2> /dev/null
	rdma dev set nhca_blue netns blue 2> /dev/null
	udevadm settle
}

# inside NAMESPACE COMMAND...: run a command as nobody, without capabilities and without a way to get any
inside() {
	local space=$1
	shift
	ip netns exec "$space" setpriv --reuid nobody --regid nogroup --clear-groups \
		--no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
}

pingpong() {
	inside red ibv_rc_pingpong -d nhca_red -g 1 -c &
	until ip netns exec red ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done
	inside blue ibv_rc_pingpong -d nhca_blue -g 1 -c 10.0.0.1 && wait $!
}
# ---- end of the recipe

# Limit locked memory to 8 MiB as Debian does, because the lab sets no limit.
ulimit -l 8192
setup > "$LIB_TMP/setup" 2>&1 || show_tail "$LIB_TMP/setup"
for space in red blue; do
	if [ "$(ip netns exec $space rdma dev show | sed 's/^[0-9]*: \([^:]*\):.*/\1/')" = nhca_$space ]; then
		ok "$space has its own device and no other"
	else
		notok "$space has its own device and no other" "$(ip netns exec $space rdma dev show | paste -sd,)"
		show_tail "$LIB_TMP/setup"
	fi
done
if [ "$(inside red id -u)" = "$(id -u nobody)" ] && inside red grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status; then
	ok "processes are unprivileged"
else
	notok "processes are unprivileged" "$(inside red id)"
fi
if (pingpong) > "$LIB_TMP/pingpong" 2>&1; then
	ok "ibv_rc_pingpong passes between the namespaces"
else
	notok "ibv_rc_pingpong passes between the namespaces" "$(tail -n 1 "$LIB_TMP/pingpong")"
	show_tail "$LIB_TMP/pingpong"
fi
inside red rping -s -a 10.0.0.1 -C 5 -V > "$LIB_TMP/rping" 2>&1 &
until ip netns exec red rdma res show cm_id | grep -q LISTEN; do sleep 0.1; done
if inside blue rping -c -a 10.0.0.1 -I 10.0.0.2 -C 5 -V >> "$LIB_TMP/rping" 2>&1 && wait $!; then
	ok "rping passes between the namespaces"
else
	notok "rping passes between the namespaces" "$(tail -n 1 "$LIB_TMP/rping")"
fi
# The device node is visible in all namespaces, so the kernel must refuse to open it.
node=$(grep -lx nhca_blue /sys/class/infiniband_verbs/*/ibdev | sed 's|.*/\(uverbs[0-9]*\)/.*|\1|')
if [ -n "$node" ] && [ -e "/dev/infiniband/$node" ] &&
	! inside red sh -c ": <> /dev/infiniband/$node" 2> "$LIB_TMP/open"; then
	ok "the other namespace's device cannot be opened"
else
	notok "the other namespace's device cannot be opened" "${node:-there is no device node}: $(cat "$LIB_TMP/open" 2> /dev/null)"
fi
ip -n red link add spare type dummy
if inside red rdma link add nhca_x type nhca netdev spare 2> /dev/null ||
	inside red rdma link del nhca_red 2> /dev/null; then
	notok "processes cannot create or remove devices"
else
	ok "processes cannot create or remove devices"
fi
ip netns del red
ip netns del blue
tries=0
while rdma dev show | grep -q nhca_ && [ $((tries += 1)) -lt 50 ]; do
	sleep 0.2
done
run "the devices are removed with their namespaces" sh -c '! rdma dev show | grep nhca_'
tries=0
until rdma system set netns shared 2> /dev/null || [ $((tries += 1)) -gt 50 ]; do
	sleep 0.2
done

# ---- the steps of a workflow ----

# step NAME: print the commands of the step of Documentation/ci.yml with that name
step() {
	awk -v name="$1" '
		/^ *- name:/ { inside = ($0 ~ "name: " name "$"); indent = 0; next }
		inside && /run: \|/ { match($0, /^ */); indent = RLENGTH + 2; next }
		indent && length($0) && match($0, /^ */) && RLENGTH < indent { indent = 0 }
		indent { print substr($0, indent + 1) }' /usr/local/share/nhca/ci.yml
}

# Pack an archive as `make prebuilt` does, and remove the installed files, so that setup-nhca has only the archive. With
# umask 077 the archive has /usr and other existing directories with mode 700: unpacking the archive must not change the
# modes of these directories.
pack() {
	local root=$LIB_TMP/root module library release tool
	umask 077
	module=$(modinfo -n nhca)
	library=$(readlink -f "$(echo /usr/lib/*/libnhca.so.1)")
	release=$(basename "$(echo /usr/lib/*/libibverbs.so.1.*)" | cut -d. -f5)
	tool=$(command -v nhca-provider)
	install -D "$module" "$root$module"
	install -D "$tool" "$root$tool"
	install -D "$library" "$root/usr/lib/nhca/providers/$release-$release/$(basename /usr/lib/*/libibverbs/libnhca-rdmav*.so)"
	mkdir "$LIB_TMP/prebuilt"
	tar -C "$root" -czf "$LIB_TMP/prebuilt/nhca-$(uname -r)-$(uname -m).tar.gz" .
	rmmod nhca
	rm -r "$module" "$tool" /usr/lib/*/libnhca.so* /usr/lib/*/libibverbs/libnhca-rdmav*.so /etc/libibverbs.d/nhca.driver
	depmod
}

# modes: print the modes of directories that are also in the archive
modes() {
	stat -c %a / /usr /usr/lib /usr/lib/modules | paste -sd' '
}

# damaged: true if setup-nhca refuses an archive of which only the first half is there
damaged() {
	local file
	file=nhca-$(uname -r)-$(uname -m).tar.gz
	mkdir "$LIB_TMP/half"
	head -c "$(($(stat -c %s "$LIB_TMP/prebuilt/$file") / 2))" "$LIB_TMP/prebuilt/$file" > "$LIB_TMP/half/$file"
	! /usr/local/share/nhca/setup-nhca --prebuilt "$LIB_TMP/half" && ! modinfo nhca
}

setup_nhca() {
	GITHUB_OUTPUT=$LIB_TMP/output /usr/local/share/nhca/setup-nhca --prebuilt "$LIB_TMP/prebuilt"
}

RUN_TIMEOUT=180
export LIB_TMP
export -f pack setup_nhca damaged
if [ -n "${ARCHIVE:-}" ]; then
	run "an archive is packed, and nhca removed" bash -ec pack
	run "a damaged archive is not installed" bash -c damaged
fi
before=$(modes)
begun=$SECONDS
run "setup-nhca makes a device" bash -c setup_nhca
run "the directories of the system keep their modes" test "$(modes)" = "$before"
run "setup-nhca tells the GID of the device" grep -qx gid=1 "$LIB_TMP/output"
run "a test of pyverbs passes" sh -c "python3 '$LAB_SRC/selftests/apps/rdma_core_tests.py' \
	/usr/local/share/rdma-core-tests --dev nhca0 --gid 1 -- test_pd | tee /dev/stderr | grep -q '^test_pd [1-9][0-9]* 0 0 0'"
took=$((SECONDS - begun))
echo "# from setup-nhca to the test: $took s"
run "from nothing to the test in 3 minutes" test $took -lt 180
run "a second call changes nothing" bash -c setup_nhca
step "Use it" > "$LIB_TMP/step"
if [ -s "$LIB_TMP/step" ]; then
	run "workflow: Use it" bash -e "$LIB_TMP/step"
else
	notok "workflow: Use it" "ci.yml has no such step"
fi
