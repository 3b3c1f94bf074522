#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: messages of 2^31 bytes arrive, every byte in its place, and longer ones are refused
# tier: long
# lab: --nodes 1 --mtu 4200 --timeout 1800

. "$LAB_SRC/selftests/lib/lib.sh"

report big_message
