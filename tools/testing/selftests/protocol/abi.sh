#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: providers of older and newer versions work with the module, and doorbells work after a change of credentials
# tier: check
# lab: --nodes 1 --timeout 300
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 600
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"

for program in credentials abi_sizes; do
	report $program
done
