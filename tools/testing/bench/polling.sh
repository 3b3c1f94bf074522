#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two user-mode guests with one CPU each: measures the latency between programs that poll, and between programs that
# sleep. While a program polls on the only CPU, work that an adapter leaves to another task waits for the scheduler.
# Emulated guests cannot measure this latency: while the programs poll, the CPU threads of both emulators keep the
# emulators' I/O threads from running for most of a message's time.
# bench: --machine uml --nodes 2 --driver nhca --timeout 900

. "$LAB_SRC/bench/guest.sh"

for who in ${DRIVERS:-nhca rxe}; do
	bench_here "$who" || exit 1
	bench_load "$who-process latency 64 polling" -m pingpong -s 64 -n "${LATENCY:-300}" -b
	bench_load "$who-process latency 64" -m pingpong -s 64 -n "${LATENCY:-300}"
done
exit 0
