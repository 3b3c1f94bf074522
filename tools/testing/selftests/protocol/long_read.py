#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Sends one long READ, whose responses nothing slows down, to a QP of qp_target.

    long_read.py TARGET PORT ME [MIB]

TARGET is an address of this host on a netdev that drops what it sends. ME is an address that is reached through
this netdev. The request is sent from ME through lo. MIB is the length of the READ (32)."""

import sys
import time

import ktap
import roce

# Another program must run again after at most LONGEST_GAP seconds, or on a slow machine after LONGEST_PART of the
# READ's duration.
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

    # The target measures the gaps in its own run time while the request arrives.
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
    report = ktap.Report()
    for name, passed, why in (
            ("a long READ gets all responses", answers == wanted,
             f"{answers} packets of {wanted}"),
            ("other programs run during a long READ", longest < max(LONGEST_GAP, took * LONGEST_PART),
             f"a program did not run for {longest:.3f} s"),
            ("the QP stays in RTS", qp.state() == "RTS", qp.state())):
        report.result(name, passed, why)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
