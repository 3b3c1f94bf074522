#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Sends packets that no correct RoCEv2 peer sends to the QPs of qp_target on another host.

    hostile_packets.py TARGET_IP TCP_PORT MY_IP NETDEV

Each packet is built here, and has a correct ICRC unless the test says otherwise. So its only error is the one that
the test names. Prints a KTAP report. Numbers in brackets are clauses of the IBTA
specification, volume 1."""

import random
import struct
import sys
import time

import ktap
from roce import (ACK, ATOMIC_ACK, ATOMIC_WRITE, CAPS_NO_ICRC, CMP_SWAP, CNP, FETCH_ADD, FLUSH, Gone, Lab,
                  MTU, NAK_ACCESS, NAK_INVALID, NAK_OPERATION, NAK_SEQUENCE, PATIENCE, QKEY, Qp, RC, READ,
                  READ_RESP_FIRST, READ_RESP_LAST, READ_RESP_ONLY, REGION, RPSN, SEND_FIRST,
                  SEND_LAST, SEND_LAST_IMM, SEND_LAST_INV, SEND_MIDDLE, SEND_ONLY, SEND_ONLY_IMM,
                  SEND_ONLY_INV, SERVICE, SPSN, UC, UD, WRITE_FIRST, WRITE_LAST, WRITE_LAST_IMM,
                  WRITE_MIDDLE, WRITE_ONLY, WRITE_ONLY_IMM, Wrong, aeth, atomic_eth, bth, deth,
                  reth)

READS = 4                   # READs that the target's QPs remember (responder resources)
BAD_SHAPE = ("rx_too_short", "rx_bad_length")


def truncated_stale(lab):
    """Truncates a packet to every length, without a new ICRC for the remaining bytes."""
    for kind in SERVICE:
        qp = Qp(lab, kind)
        whole = qp.write(bytes(range(64))) if kind != "UD" else \
            qp.packet(SEND_ONLY_IMM, deth() + b"\1\2\3\4", bytes(64))
        full = lab.wire.packet(whole)
        before = lab.target.counters()
        cuts = range(len(full) - lab.wire.head)
        for length in cuts:
            lab.wire.send_raw(lab.wire.cut(full, length))
        lab.silence(f"{kind}, cut")
        after = lab.target.counters()
        risen = {name: after[name] - before[name] for name in after
                 if name.startswith("rx_") and after[name] != before[name]}
        if sum(risen.values()) != len(cuts) or \
                set(risen) - {*BAD_SHAPE, "rx_icrc_encapsulated"}:
            raise Wrong(f"{kind}: {len(cuts)} packets cut short, counters {risen}")
        lab.lives(qp, f"{kind}, cut")
        lab.works(qp, f"{kind}, cut")
        lab.tidy()


def truncated_fresh(lab):
    """Truncates a packet to every length, with an ICRC that is correct for the remaining bytes."""
    for kind in SERVICE:
        qp = Qp(lab, kind)
        whole = qp.write(bytes(range(64))) if kind != "UD" else \
            qp.packet(SEND_ONLY_IMM, deth() + b"\1\2\3\4", bytes(64))
        headers = len(whole) - 64
        # Packets that are shorter than their headers, or whose length is not a multiple of 4, must be dropped.
        dropped = [n for n in range(len(whole)) if n < headers or n % 4]
        before = lab.target.counters()
        for length in dropped:
            lab.wire.send(whole[:length])
        lab.silence(f"{kind}, cut")
        after = lab.target.counters()
        risen = {name: after[name] - before[name] for name in after
                 if name.startswith("rx_") and after[name] != before[name]}
        if sum(risen.values()) != len(dropped) or set(risen) - set(BAD_SHAPE):
            raise Wrong(f"{kind}: {len(dropped)} packets cut short, counters {risen}")
        lab.lives(qp, f"{kind}, cut")
        lab.works(qp, f"{kind}, cut")
        lab.tidy()
        if kind == "UD":
            continue
        # The length of the payload is a multiple of 4, but less than the length in the RETH (9.7.4.1.6).
        for length in range(headers, len(whole), 4):
            what = f"{kind}, {length - headers} of 64 bytes"
            qp = Qp(lab, kind)
            lab.wire.send(qp.write(bytes(range(64)))[:length])
            if kind == "RC":
                lab.one_answer(ACK, NAK_INVALID, qp.psn, what)
                lab.in_error(qp, what)
            else:
                lab.silence(what)
                lab.lives(qp, what)
            qp.close()


def bad_icrc(lab):
    for kind in SERVICE:
        qp = Qp(lab, kind)
        good = lab.wire.packet(qp.write(bytes(range(32))) if kind != "UD" else
                               qp.packet(SEND_ONLY, payload=bytes(32)))
        # Make a packet for each byte of the payload and of the ICRC, with one bit of this byte inverted.
        flips = [(at, 1 << random.randrange(8)) for at in range(len(good) - 36, len(good))]
        packets = []
        for at, bit in flips:
            packet = bytearray(good)
            packet[at] ^= bit
            packets.append(bytes(packet))

        def throw():
            for packet in packets:
                lab.wire.send_raw(packet)
        lab.counted(throw, {"rx_icrc_encapsulated": len(packets)}, f"{kind}, a bit flipped")
        lab.silence(f"{kind}, a bit flipped")
        lab.lives(qp, f"{kind}, a bit flipped")
        # The ICRC also covers the headers in front of the BTH, except a few fields (A17.3.3).
        packet = bytearray(good)
        packet[lab.wire.covered] ^= 1
        lab.counted(lambda: lab.wire.send_raw(bytes(packet)), {"rx_icrc_encapsulated": 1},
                    f"{kind}, a header changed")
        lab.lives(qp, f"{kind}, a header changed")
        lab.works(qp, f"{kind}, a bit flipped")
        lab.tidy()
    qp = Qp(lab, "RC")
    packet = bytearray(lab.wire.packet(qp.write(b"1234")))
    for at, value in lab.wire.changing.items():
        packet[at] = value
    lab.wire.send_raw(bytes(packet))
    lab.one_answer(ACK, 0, qp.psn, "variant fields changed, which the ICRC does not cover")


def ip_options(lab):
    """The ICRC is not defined for an IP header with options (A17.3.3), so these packets are dropped and counted."""
    qp = Qp(lab, "RC")
    packet = lab.wire.with_options(lab.wire.packet(qp.write(b"12345678")))
    lab.counted(lambda: lab.wire.send_raw(packet), {"rx_bad_length": 1}, "a header with options")
    lab.silence("a header with options")
    lab.lives(qp, "a header with options")
    lab.works(qp, "a header with options")
    lab.tidy()


def refused(lab, kind, what, counter, packets):
    """Sends packets, {name: make(qp)}: each must be counted and dropped, and the QP must still work."""
    qp = Qp(lab, kind)
    for name, make in packets.items():
        lab.counted(lambda make=make: lab.wire.send(make(qp)), {counter: 1}, f"{kind}, {name}")
    lab.silence(f"{kind}, {what}")
    lab.lives(qp, f"{kind}, {what}")
    lab.works(qp, f"{kind}, {what}")
    lab.tidy()


def versions(lab):
    for kind in SERVICE:
        refused(lab, kind, "bad version", "rx_bad_version", {
            f"version {version}":
                lambda qp, version=version: qp.packet(SEND_ONLY, payload=b"abcd", version=version)
            for version in range(1, 16)})


def pads(lab):
    for kind in SERVICE:
        refused(lab, kind, "bad pad", "rx_bad_length", {
            f"pad {pad} of nothing": lambda qp, pad=pad: qp.packet(SEND_ONLY, pad=pad)
            for pad in (1, 2, 3)})


def pkeys(lab):
    for kind in SERVICE:
        refused(lab, kind, "wrong P_Key", "rx_bad_pkey", {
            f"P_Key {pkey:#x}":
                lambda qp, pkey=pkey: qp.packet(SEND_ONLY, payload=b"abcd", pkey=pkey)
            for pkey in (0, 1, 0x1234, 0x8000, 0x8001, 0xfffe, 0x7ffe)})


def qkeys(lab):
    qp = Qp(lab, "UD")
    for qkey in (0, 1, QKEY - 1, QKEY ^ 0x80000000, 0x80010000, 0xffffffff):
        lab.counted(lambda qkey=qkey: lab.wire.send(
            qp.packet(SEND_ONLY, deth(qkey), b"abcd")), {"rx_bad_qkey": 1}, f"Q_Key {qkey:#x}")
    # QP 1 has its own Q_Key (3.5.3).
    lab.counted(lambda: lab.wire.send(bth(UD | SEND_ONLY, 1, 7) + deth() + bytes(256)),
                {"rx_bad_qkey": 1}, "wrong Q_Key at QP 1")
    lab.silence("wrong Q_Key")
    lab.lives(qp, "wrong Q_Key")
    lab.works(qp, "wrong Q_Key")


def sources(lab):
    for kind in ("RC", "UC"):
        qp = Qp(lab, kind)
        for source in lab.wire.strangers:
            lab.counted(lambda source=source: lab.wire.send(qp.write(b"abcd"), source=source),
                        {"rx_bad_addr": 1}, f"{kind}, from {source}")
        lab.silence(f"{kind}, wrong source")
        lab.lives(qp, f"{kind}, wrong source")
        lab.works(qp, f"{kind}, wrong source")
        lab.tidy()


def numbers(lab):
    """Sends packets to QPs that do not exist."""
    qp = Qp(lab, "RC")
    absent = [n for n in (0, 2, 0xff, qp.qpn ^ 1, qp.qpn ^ 0x800000, 0xfffffe, 0xffffff)]
    for qpn in absent:
        lab.counted(lambda qpn=qpn: lab.wire.send(bth(SEND_ONLY, qpn, RPSN) + b"abcd"),
                    {"rx_no_qp": 1}, f"QPN {qpn:#x}")
    lab.silence("QPN that does not exist")
    lab.lives(qp, "QPN that does not exist")
    lab.works(qp, "QPN that does not exist")


def psns_rc(lab):
    # A duplicate was executed already: it is acknowledged again and not executed (9.7.4.5).
    qp = Qp(lab, "RC")
    for back in (1, 2, 100, 0x7fffff):
        lab.wire.send(qp.write(b"again", psn=RPSN - back))
        lab.one_answer(ACK, 0, RPSN - 1, f"PSN {back} behind")
        lab.lives(qp, f"PSN {back} behind")
    if lab.target.ask("poll"):
        raise Wrong("a duplicate was completed")
    # Packets with later PSNs than expected get only one NAK until the expected PSN has arrived (9.7.5.1.4).
    lab.wire.send(qp.write(b"early", psn=RPSN + 1))
    lab.one_answer(ACK, NAK_SEQUENCE, RPSN, "PSN 1 ahead")
    for ahead in (1, 2, 100, 0x7ffffe):
        lab.wire.send(qp.write(b"early", psn=RPSN + ahead))
    lab.silence("further packets ahead")
    lab.lives(qp, "PSN ahead")
    lab.works(qp, "PSN ahead")
    lab.wire.send(qp.write(b"early", psn=qp.psn + 5))
    lab.one_answer(ACK, NAK_SEQUENCE, qp.psn, "PSN ahead after progress")
    lab.lives(qp, "PSN ahead")
    lab.works(qp, "PSN ahead")


def psns_uc(lab):
    qp = Qp(lab, "UC")
    for psn in (RPSN - 1, RPSN + 1, RPSN + 1000, RPSN ^ 0x800000):
        for op in (WRITE_MIDDLE, WRITE_LAST, SEND_MIDDLE, SEND_LAST):
            lab.wire.send(qp.packet(op, payload=bytes(MTU), psn=psn))
    lab.silence("UC, PSN out of sequence")
    lab.lives(qp, "UC, PSN out of sequence")
    # On UC a message with a lost packet is dropped, but the next message is not (9.8.2.2.3).
    lab.wire.send(qp.packet(SEND_FIRST, payload=bytes(MTU), psn=2000))
    lab.wire.send(qp.packet(SEND_LAST, payload=b"abcd", psn=2002))
    lab.fence()
    if lab.target.ask("poll"):
        raise Wrong("UC: a message without its middle was completed")
    qp.psn = 2003
    lab.works(qp, "UC, PSN out of sequence")


def bad_ranges(lab):
    where, key = lab.target.open
    return [("variant of the R_Key", where, key ^ 1), ("index of the R_Key", where, key ^ 0x100),
            ("R_Key 0", where, 0), ("R_Key of ones", where, 0xffffffff),
            ("another PD's R_Key", *lab.target.foreign),
            ("before the start", where - 8, key), ("past the end", where + REGION - 56, key),
            ("after the end", where + REGION, key), ("far", where + (1 << 40), key),
            ("address wraps", (1 << 64) - 8, key), ("address 0", 0, key)]


def access(lab):
    """A request with a wrong R_Key, range or rights (9.7.4.1.3) must write or read no byte. On RC it must get a NAK and
    move the QP to the error state; on UC it is dropped."""
    def refused(kind, transport, what, qp, syndrome=NAK_ACCESS):
        lab.wire.send(transport)
        if kind == "RC":
            lab.one_answer(ACK, syndrome, qp.psn, what)
            lab.in_error(qp, what)
        else:
            lab.silence(what)
            lab.lives(qp, what)
        qp.close()

    for kind in ("RC", "UC"):
        for what, address, key in bad_ranges(lab):
            qp = Qp(lab, kind)
            refused(kind, qp.write(bytes(range(64)), address, key), f"{kind} WRITE, {what}", qp)
        qp = Qp(lab, kind)
        refused(kind, qp.write(bytes(64), *lab.target.readable), f"{kind} WRITE, read-only", qp)
        # The first packet of this WRITE alone would be inside the region.
        qp = Qp(lab, kind)
        refused(kind, qp.write(bytes(MTU), length=REGION + 1, op=WRITE_FIRST),
                f"{kind} WRITE, the end is outside", qp)
        qp = Qp(lab, kind)
        refused(kind, qp.write(bytes(MTU), length=0x80000001, op=WRITE_FIRST),
                f"{kind} WRITE of more than 2^31 bytes", qp, (NAK_INVALID, NAK_ACCESS))
    where, key = lab.target.open
    for what, address, bad_key in bad_ranges(lab):
        qp = Qp(lab, "RC")
        refused("RC", qp.packet(READ, reth(address, bad_key, 64)), f"READ, {what}", qp)
        qp = Qp(lab, "RC")
        refused("RC", qp.packet(FETCH_ADD, atomic_eth(address & ~7 if what != "past the end" else
                                                      where + REGION, bad_key, 1)),
                f"FETCH_ADD, {what}", qp)
    for op in (CMP_SWAP, FETCH_ADD):
        qp = Qp(lab, "RC")
        refused("RC", qp.packet(op, atomic_eth(*lab.target.readable, 1)), "atomic, read-only", qp)
        for off in range(1, 8):
            qp = Qp(lab, "RC")
            refused("RC", qp.packet(op, atomic_eth(where + off, key, 1)),
                    f"atomic, {off} bytes off its alignment", qp, NAK_INVALID)
    # A WRITE of no bytes accesses no memory, so its key is not checked (9.7.4.1.3).
    qp = Qp(lab, "RC")
    lab.wire.send(qp.write(b"", 0, 0))
    lab.one_answer(ACK, 0, qp.psn, "WRITE of no bytes without a key")
    lab.lives(qp, "WRITE of no bytes without a key")


def sequences(lab):
    """Sends opcodes out of order, and payload lengths that are wrong for them (9.7.4.1.2, 9.7.4.1.6)."""
    full, short = bytes(MTU), b"abcd"
    wrong = {
        "SEND Middle first": [(SEND_MIDDLE, full)], "SEND Last first": [(SEND_LAST, short)],
        "WRITE Middle first": [(WRITE_MIDDLE, full)], "WRITE Last first": [(WRITE_LAST, short)],
        "SEND First twice": [(SEND_FIRST, full), (SEND_FIRST, full)],
        "SEND Only in a SEND": [(SEND_FIRST, full), (SEND_ONLY, short)],
        "READ in a SEND": [(SEND_FIRST, full), (READ, b"")],
        "WRITE Middle in a SEND": [(SEND_FIRST, full), (WRITE_MIDDLE, full)],
        "SEND Last in a WRITE": [(WRITE_FIRST, full), (SEND_LAST, short)],
        "SEND First too short": [(SEND_FIRST, short)], "SEND First empty": [(SEND_FIRST, b"")],
        "SEND Middle too short": [(SEND_FIRST, full), (SEND_MIDDLE, short)],
        "SEND Last empty": [(SEND_FIRST, full), (SEND_LAST, b"")],
        "SEND Only too long": [(SEND_ONLY, bytes(MTU + 4))],
        "SEND Middle too long": [(SEND_FIRST, full), (SEND_MIDDLE, bytes(MTU + 4))],
        "WRITE First too short": [(WRITE_FIRST, short)],
        "WRITE Last too much": [(WRITE_FIRST, full), (WRITE_LAST, bytes(5))],
        "WRITE Last too little": [(WRITE_FIRST, full), (WRITE_LAST, bytes(3))],
        "SEND longer than its buffer": [(SEND_FIRST, full), (SEND_LAST, bytes(MTU))],
    }
    where, key = lab.target.open
    for what, steps in wrong.items():
        qp = Qp(lab, "RC", size=300)
        for number, (op, payload) in enumerate(steps):
            last = number == len(steps) - 1
            rest = reth(where, key, MTU + 4) if op in (WRITE_FIRST, READ) else b""
            lab.wire.send(qp.packet(op, rest, payload, ackreq=last))
            qp.psn += not last
        lab.one_answer(ACK, NAK_INVALID, qp.psn, what)
        state = qp.state()
        if state != "ERR":
            raise Wrong(f"{what}: the QP is in {state}, expected ERR")
        lab.target.ask("clean")
        qp.close()
    lab.tidy()
    for what, steps in wrong.items():
        if any(op == READ for op, _ in steps):
            continue
        qp = Qp(lab, "UC", size=300)
        lab.target.ask("poll")
        for op, payload in steps:
            rest = reth(where, key, MTU + 4) if op == WRITE_FIRST else b""
            lab.wire.send(qp.packet(op, rest, payload))
            qp.psn += 1
        lab.silence(f"UC, {what}")
        if qp.state() != "RTS":
            raise Wrong(f"UC, {what}: the QP is in {qp.state()}")
        if lab.target.ask("poll") and what != "SEND Only in a SEND":
            raise Wrong(f"UC, {what}: was completed")
        try:
            lab.target.ask("clean all")
        except Wrong:
            pass
        lab.works(qp, f"UC, {what}")
        qp.close()


def no_receive(lab):
    qp = Qp(lab, "RC", receives=0)
    lab.wire.send(qp.packet(SEND_ONLY, payload=b"abcd"))
    lab.one_answer(ACK, 0x20 | 12, qp.psn, "SEND without a receive")
    lab.lives(qp, "SEND without a receive")
    lab.target.ask(f"post {qp.index} 1")
    lab.wire.send(qp.packet(SEND_ONLY, payload=b"abcd"))
    lab.one_answer(ACK, 0, qp.psn, "SEND with a receive")
    for kind in ("UC", "UD"):
        qp = Qp(lab, kind, receives=0)
        lab.counted(lambda qp=qp: lab.wire.send(qp.packet(SEND_ONLY, payload=b"abcd")),
                    {"out_of_buffer": 1}, f"{kind}, without a receive")
        lab.silence(f"{kind}, without a receive")
        lab.lives(qp, f"{kind}, without a receive")
    # A datagram that is longer than its receive buffer is an error of the sender: the QP must stay in RTS.
    qp = Qp(lab, "UD", size=44)
    lab.target.ask("poll")
    lab.wire.send(qp.packet(SEND_ONLY, payload=b"too long"))
    lab.silence("UD, too long")
    lab.lives(qp, "UD, too long")


def shaped(qp, opcode):
    """A packet with this opcode byte and the extended headers that the opcode requires."""
    service, op = opcode & 0xe0, opcode & 0x1f
    where, key = qp.lab.target.open
    rest, payload = b"", b""
    if service in (RC, UC):
        if op in (WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM, READ):
            rest += reth(where, key, 2 * MTU if op == WRITE_FIRST else 64)
        if op in (CMP_SWAP, FETCH_ADD):
            rest += atomic_eth(where, key, 1, 2)
        if op in (READ_RESP_FIRST, READ_RESP_LAST, READ_RESP_ONLY, ACK, ATOMIC_ACK):
            rest += aeth(0)
        if op == ATOMIC_ACK:
            rest += bytes(8)
        if op in (SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM, SEND_LAST_INV,
                  SEND_ONLY_INV):
            rest += b"\0\0\0\1"
        if op in (SEND_FIRST, SEND_MIDDLE, WRITE_FIRST, WRITE_MIDDLE):
            payload = b"x" * MTU
        elif op not in (READ, CMP_SWAP, FETCH_ADD, ACK, ATOMIC_ACK):
            payload = b"x" * 64
        if opcode == FLUSH:
            rest, payload = struct.pack("!I", 1) + reth(where, key, 64), b""
        if opcode == ATOMIC_WRITE:
            rest, payload = reth(where, key, 8), b"x" * 8
    elif service == UD:
        rest, payload = deth() + (bytes(4) if op == SEND_ONLY_IMM else b""), b"x" * 64
    else:
        payload = bytes(16) if opcode == CNP else b"x" * 64
    psn = qp.psn
    if service == RC and READ_RESP_FIRST <= op <= ATOMIC_ACK:
        psn = SPSN
    return bth(opcode, qp.qpn, psn) + rest + payload


RC_REQUESTS = {SEND_FIRST: (ACK, 0), SEND_ONLY: (ACK, 0), SEND_ONLY_IMM: (ACK, 0),
               WRITE_FIRST: (ACK, 0), WRITE_ONLY: (ACK, 0), WRITE_ONLY_IMM: (ACK, 0),
               READ: (READ_RESP_ONLY, 0), CMP_SWAP: (ATOMIC_ACK, 0), FETCH_ADD: (ATOMIC_ACK, 0),
               SEND_MIDDLE: (ACK, NAK_INVALID), SEND_LAST: (ACK, NAK_INVALID),
               SEND_LAST_IMM: (ACK, NAK_INVALID), SEND_LAST_INV: (ACK, NAK_INVALID),
               WRITE_MIDDLE: (ACK, NAK_INVALID), WRITE_LAST: (ACK, NAK_INVALID),
               WRITE_LAST_IMM: (ACK, NAK_INVALID),
               # The QP does not permit FLUSH.
               FLUSH: (ACK, NAK_INVALID), ATOMIC_WRITE: (READ_RESP_ONLY, 0),
               # The Invalidate names a key that does not exist.
               SEND_ONLY_INV: (ACK, (NAK_INVALID, NAK_ACCESS, NAK_OPERATION))}
# States in which a receive queue works. An RC QP has no state SQE.
TAKING = {"RC": ("RTR", "RTS", "SQD"), "UC": ("RTR", "RTS", "SQD", "SQE"),
          "UD": ("RTR", "RTS", "SQD", "SQE")}
EFFECTIVE = {"RC": set(RC_REQUESTS), "UC": set(range(12)), "UD": {SEND_ONLY, SEND_ONLY_IMM}}


def opcodes_dead(lab):
    """Sends all opcodes to QPs in states that accept none."""
    for kind in SERVICE:
        for state in ("RESET", "INIT", "ERR"):
            what = f"{kind} in {state}"
            qp = Qp(lab, kind, state)
            lab.fence()
            lab.target.ask("poll")
            for opcode in range(256):
                lab.wire.send(shaped(qp, opcode))
            lab.silence(what)
            lab.lives(qp, what, state)
            if lab.target.ask("poll"):
                raise Wrong(f"{what}: completions")
            lab.tidy()


def opcodes_ineffective(lab):
    """Sends all opcodes that are wrong for a QP, and responses to requests that it never sent."""
    for kind, service in SERVICE.items():
        for state in TAKING[kind]:
            what = f"{kind} in {state}"
            qp = Qp(lab, kind, state)
            opcodes = [n for n in range(256) if n != CNP and
                       not (n & 0xe0 == service and n & 0x1f in EFFECTIVE[kind])]
            before = lab.target.counters()
            for opcode in opcodes:
                lab.wire.send(shaped(qp, opcode))
            lab.silence(what)
            after = lab.target.counters()
            dropped = sum(after[name] - before[name] for name in after
                          if name.startswith("rx_") or name == "duplicate_response")
            if dropped != len(opcodes):
                raise Wrong(f"{what}: {len(opcodes)} packets, {dropped} counted as dropped")
            lab.lives(qp, what, state)
            if lab.target.ask("poll"):
                raise Wrong(f"{what}: completions")
            lab.works(qp, what)
            lab.tidy()


def opcodes_effective(lab):
    """Sends the opcodes of the QP's own service, each to a new QP."""
    for state in TAKING["RC"]:
        for op, (answer, syndrome) in RC_REQUESTS.items():
            qp = Qp(lab, "RC", state)
            what = f"RC in {state}, opcode {op:#x}"
            lab.wire.send(shaped(qp, op))
            lab.one_answer(answer, syndrome, qp.psn, what)
            wanted = state if syndrome == 0 else "ERR"
            if qp.state() != wanted:
                raise Wrong(f"{what}: the QP is in {qp.state()}, expected {wanted}")
            lab.target.ask("clean")
            qp.close()
    for kind in ("UC", "UD"):
        for state in TAKING[kind]:
            for op in EFFECTIVE[kind]:
                qp = Qp(lab, kind, state)
                what = f"{kind} in {state}, opcode {op:#x}"
                lab.wire.send(shaped(qp, SERVICE[kind] | op))
                lab.silence(what)
                if qp.state() != state:
                    raise Wrong(f"{what}: the QP is in {qp.state()}")
                lab.target.ask("clean")
                qp.close()


def congestion(lab):
    qp = Qp(lab, "RC")
    lab.counted(lambda: lab.wire.send(bth(CNP, qp.qpn, 0) + bytes(16)), {"rx_cnp_pkts": 1}, "CNP")
    lab.silence("CNP")
    lab.lives(qp, "CNP")
    lab.works(qp, "CNP")


def responses(lab):
    """Sends unexpected responses to a QP that has requests outstanding."""
    def waiting():
        qp = Qp(lab, "RC")
        lab.target.ask("poll")
        lab.target.ask(f"send {qp.index} 2")
        until = time.monotonic() + PATIENCE
        while len(lab.answers()) < 2 and time.monotonic() < until:
            pass
        return qp

    def answer(qp, op, psn, rest):
        lab.wire.send(bth(op, qp.qpn, psn, ackreq=False) + rest)

    qp = waiting()
    for psn in (SPSN - 1, SPSN + 2, SPSN + 1000, SPSN ^ 0x800000):
        for syndrome in (0x1f, NAK_INVALID, NAK_ACCESS, NAK_OPERATION, 0x2c):
            answer(qp, ACK, psn, aeth(syndrome))
    lab.fence()
    if lab.target.ask("poll"):
        raise Wrong("a response to a request that was never sent completed a request")
    lab.lives(qp, "responses to requests that were never sent")
    # Answer SENDs with a READ response, an atomic response, and a reserved NAK code.
    answer(qp, READ_RESP_ONLY, SPSN, aeth(0x1f) + b"x" * 64)
    answer(qp, ATOMIC_ACK, SPSN, aeth(0x1f) + bytes(8))
    answer(qp, ACK, SPSN, aeth(0x7f))
    lab.fence()
    if any(not word.startswith("0/") for word in lab.target.ask("poll")):
        raise Wrong("a response of the wrong kind failed a request")
    lab.lives(qp, "responses of the wrong kind")
    qp.close()

    for syndrome, status in ((NAK_INVALID, 9), (NAK_ACCESS, 10), (NAK_OPERATION, 11)):
        qp = waiting()
        answer(qp, ACK, SPSN, aeth(syndrome))
        lab.in_error(qp, f"NAK {syndrome:#x}")
        until, got = time.monotonic() + PATIENCE, []
        while len(got) < 2 and time.monotonic() < until:
            got += [word for word in lab.target.ask("poll") if word.split("/")[1] != "128"]
        if [int(word.split("/")[0]) for word in got[:2]] != [status, 5]:
            raise Wrong(f"NAK {syndrome:#x}: completions {got}, expected status {status}, then 5")
        qp.close()
        lab.tidy()

    # Answer a READ with responses of the wrong length.
    qp = Qp(lab, "RC")
    lab.target.ask("poll")
    lab.target.ask(f"read {qp.index} 4096 1")
    lab.fence()
    for size in (0, 4, 60, 68, MTU):
        answer(qp, READ_RESP_ONLY, SPSN, aeth(0x1f) + b"y" * size)
    for op in (READ_RESP_FIRST, READ_RESP_LAST):
        answer(qp, op, SPSN, aeth(0x1f) + b"y" * (MTU if op == READ_RESP_FIRST else 64)
               if op == READ_RESP_FIRST else aeth(0x1f) + b"y" * 32)
    lab.fence()
    if any(word.startswith("0/") for word in lab.target.ask("poll")):
        raise Wrong("a READ response of the wrong length completed the READ")
    lab.untouched("READ response of the wrong length")


def crossed(lab):
    """One batch has a duplicate of the oldest READ in the responder resources, and a new READ that takes over the
    resource of this READ. This happens when a response and the retransmission of its request cross. The new READ must
    get its response."""
    qp = Qp(lab, "RC")
    where, key = lab.target.readable

    def read(number):
        return qp.packet(READ, reth(where + 8 * number, key, 8), psn=RPSN + number, byte4=CAPS_NO_ICRC)

    for number in range(READS):
        lab.wire.batch([read(number)])
    for number in range(READS, READS + 40):
        lab.answers()
        lab.wire.batch([read(number - READS), read(number)])
        got, until = [], time.monotonic() + PATIENCE
        while (READ_RESP_ONLY, RPSN + number) not in got and time.monotonic() < until:
            got += [(op, psn) for op, psn, *_ in lab.answers()]
        if (READ_RESP_ONLY, RPSN + number) not in got or any(op == ACK for op, _ in got):
            raise Wrong(f"READ {number}, after a duplicate of READ {number - READS}: responses {got}")
    lab.lives(qp, "READs that crossed")


def noise(lab):
    """Sends random bytes after a valid BTH, and only random bytes; the ICRC is correct."""
    random.seed(4711)
    for kind, service in SERVICE.items():
        qp = Qp(lab, kind)
        for _ in range(400):
            body = random.randbytes(random.randrange(0, 200))
            # The key is random as well, so no WRITE, READ or atomic is permitted.
            lab.wire.send(bth(service | random.randrange(32), qp.qpn, RPSN + random.randrange(-2, 3),
                              pad=random.randrange(4)) + body)
        for _ in range(200):
            lab.wire.send(random.randbytes(random.randrange(0, 300)))
        lab.answers()
        lab.untouched(f"{kind}, random bytes")
        lab.tidy()
    for kind in SERVICE:
        lab.works(Qp(lab, kind), "random bytes")


TESTS = {
    "truncated at every length": truncated_stale,
    "truncated at every length, with a correct ICRC": truncated_fresh,
    "bad ICRC": bad_icrc,
    "IP header with options": ip_options,
    "bad transport version": versions,
    "bad pad count": pads,
    "wrong P_Key": pkeys,
    "wrong Q_Key": qkeys,
    "wrong source address": sources,
    "QPs that do not exist": numbers,
    "wrong PSN, RC": psns_rc,
    "wrong PSN, UC": psns_uc,
    "wrong R_Key, range or right": access,
    "opcodes out of order, payloads of the wrong length": sequences,
    "no receive posted": no_receive,
    "every opcode in RESET, INIT and ERR": opcodes_dead,
    "every opcode not for the QP in RTR, RTS, SQD and SQE": opcodes_ineffective,
    "every opcode for the QP in RTR, RTS, SQD and SQE": opcodes_effective,
    "congestion notification": congestion,
    "unexpected responses": responses,
    "a new READ after a duplicate READ": crossed,
    "random bytes": noise,
}


def main():
    lab = Lab(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    report = ktap.Report()
    for name, test in TESTS.items():
        begun = time.monotonic()
        try:
            lab.tidy()
            test(lab)
            report.ok(name)
        except Wrong as wrong:
            report.notok(name, wrong)
        except Gone as gone:
            report.notok(name, gone)
            return 1
        print(f"#   {time.monotonic() - begun:.1f} s", flush=True)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
