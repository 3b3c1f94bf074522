#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: of the 181 tests in rdma-core's 20 modules at least 167 pass (164 without huge pages of 2 MiB) and none fails
# tier: check
# lab: --nodes 1 --timeout 600

. "$LAB_SRC/selftests/lib/lib.sh"

FOLDER=/usr/local/share/rdma-core-tests
TOTAL=181
# Three tests need huge pages of 2 MiB.
[ -d /sys/kernel/mm/hugepages/hugepages-2048kB ] && MINIMUM=167 || MINIMUM=164

# Reserve huge pages, which some tests register.
echo 16 > /proc/sys/vm/nr_hugepages

gid=$(gid_index) || {
	notok "GID of this node's IPv4 address" "none in the table of $RDMA_DEV"
	exit
}

# Read the report of rdma_core_tests.py: a line for each module, and a line for each test that did not pass.
passed=0 ran=0 bad=0
while read -r word count rest; do
	case $word in
	test_*)
		read -r skipped failed errors <<< "$rest"
		passed=$((passed + count))
		ran=$((ran + count + skipped + failed + errors))
		if [ $((failed + errors)) = 0 ]; then
			ok "rdma-core $word: $count passed $skipped skipped"
		else
			bad=$((bad + failed + errors))
			notok "rdma-core $word" "$count passed $skipped skipped $failed failed $errors errors"
		fi
		;;
	*)
		echo "#   $word $count $rest"
		;;
	esac
done < <(python3 "$LAB_SRC/selftests/apps/rdma_core_tests.py" "$FOLDER" --dev "$RDMA_DEV" --gid "$gid" \
	-- "$@" 2>&1)

if [ $# -gt 0 ]; then
	exit 0
elif [ $ran -ne $TOTAL ]; then
	notok "rdma-core tests" "$ran of $TOTAL tests ran"
elif [ $bad -gt 0 ] || [ $passed -lt $MINIMUM ]; then
	notok "rdma-core tests" "$passed of $TOTAL passed (at least $MINIMUM must), $bad failed"
else
	ok "rdma-core tests: $passed of $TOTAL passed"
fi
exit 0
