#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Asks a target of qp_target's for one long READ, whose answers nothing slows down.

    long_read.py TARGET PORT ME [MIB]

TARGET is an address of this host on a netdev that drops what it sends, ME one that lies behind it:
the request is sent from ME through lo."""

import sys
import time

import roce

# Seconds that a program may not run, and, where everything is slow, the part of the time that the answer takes.
LONGEST_GAP = 0.5
LONGEST_PART = 0.25
PATIENCE = 120


class Lab:
    def __init__(self, target_ip, port, me):
        self.target = roce.Target("127.0.0.1", port)
        self.wire = roce.Wire4(target_ip, me, "lo")
        self.open_qps = []


def sent(target):
    return target.counters()["sent_pkts"]


def main():
    target_ip, port, me, mib = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    size = int(mib[0] if mib else 32) << 20
    lab = Lab(target_ip, port, me)
    target = lab.target
    address, key = [int(word) for word in target.ask(f"long {size}")]
    qp = roce.Qp(lab, "RC", receives=0)
    before, wanted = sent(target), size // roce.MTU

    # the target watches the clock while the request comes
    target.file.write("gap 1000\n")
    target.file.flush()
    time.sleep(0.3)
    begin = time.monotonic()
    lab.wire.send(qp.packet(roce.READ, roce.reth(address, key, size)))
    gaps = [int(target.file.readline().split()[1])]
    until = time.monotonic() + PATIENCE
    while sent(target) - before < wanted and time.monotonic() < until:
        gaps.append(int(target.ask("gap 1000")[0]))

    longest, took = max(gaps) / 1e6, time.monotonic() - begin
    answers = sent(target) - before
    print(f"# {answers} packets in {took:.1f} s, the longest gap was {longest * 1e3:.1f} ms")
    good = True
    for name, passed, why in (
            ("a long READ is answered whole", answers == wanted,
             f"{answers} packets of {wanted}"),
            ("others run while a long READ is answered", longest < max(LONGEST_GAP, took * LONGEST_PART),
             f"a program did not run for {longest:.3f} s"),
            ("the QP lives on", qp.state() == "RTS", qp.state())):
        print(f"ok - {name}" if passed else f"not ok - {name}: {why}")
        good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
