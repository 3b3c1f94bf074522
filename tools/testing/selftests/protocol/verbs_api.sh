#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: the verbs interface does what its man pages say: ibv_qp_ex, extended CQs, resize, SRQs, events, states, XRC, FLUSH, ATOMIC WRITE, allocators
# tier: check
# lab: --nodes 1 --timeout 300
# lab smp: --nodes 1 --cpus 2 --timeout 300
# tier smp: long
# lab debug: --nodes 1 --cpus 2 --kernel debug --timeout 900
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"

for program in verbs_api placing xrc allocators; do
	report $program
done
