#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the KUnit suites pass on several CPUs, where threads run at the same time, and no checker reports anything
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
	report "$LAB_SRC/selftests/lib/ktap.py" "$suite/results"
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
