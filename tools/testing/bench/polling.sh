#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two guests that are processes, with a CPU each: latency of programs that poll on the only CPU, where
# whatever an adapter leaves to another task waits for the scheduler. Emulated guests cannot show it:
# there most of a message's time is the emulator's threads waiting for the two that poll.
# bench: --machine uml --nodes 2 --driver nhca --timeout 900

. "$LAB_SRC/bench/guest.sh"

for who in ${DRIVERS:-nhca rxe}; do
	bench_here "$who" || exit 1
	bench_load "$who-process latency 64 polling" -m pingpong -s 64 -n "${LATENCY:-300}" -b
	bench_load "$who-process latency 64" -m pingpong -s 64 -n "${LATENCY:-300}"
done
exit 0
