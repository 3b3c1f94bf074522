#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the KUnit suites pass on several CPUs, where threads really race, and no checker reports anything
# tier: long
# lab: --nodes 1 --cpus 2 --kernel debug --kunit --driver none --timeout 1500
# lab uml: --machine uml --nodes 1 --cpus 2 --kernel debug --kunit --driver none --timeout 1500
# lab kcsan: --nodes 1 --cpus 2 --kernel kcsan --kunit --driver none --timeout 1500

. "$LAB_SRC/selftests/lib/lib.sh"

# The suites run when the module loads, so the lab must not load it (--driver none).
module=nhca
results=/sys/kernel/debug/kunit

if ! modprobe kunit enable=1 || ! modprobe $module; then
	notok "the module loads" "see the kernel log"
	exit
fi
suites=0
for suite in "$results"/nhca*; do
	[ -e "$suite/results" ] || continue
	suites=$((suites + 1))
	name=$(basename "$suite")
	# A test's line is "    ok 1 NAME" or "    ok 2 NAME # SKIP why". The line of the suite itself is not indented.
	sed -nE "s/^    ok [0-9]+ (\S+) # SKIP ?(.*)/skip - $name.\1: \2/p; t
		s/^    ok [0-9]+ (\S+).*/ok - $name.\1/p
		s/^    not ok [0-9]+ (\S+).*/not ok - $name.\1: see the kernel log/p" "$suite/results"
	if grep -q '^not ok' "$suite/results"; then
		LIB_FAILED=1
	fi
done
if [ $suites -ge 15 ]; then
	ok "$suites suites ran"
else
	notok "all suites ran" "$suites have results"
fi
if rmmod $module; then
	ok "the module unloads"
else
	notok "the module unloads"
fi
