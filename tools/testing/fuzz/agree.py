#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Compares the driver's code for rCxt datagrams with an implementation that was written from the documentation.

    agree.py PROGRAM    PROGRAM is compiled from agree.c and the driver's wire/

selftests/lib/rcxt.py creates, checks and parses random valid and almost valid packets. The driver's decoder must give
the same verdicts and fields, and its encoder the same bytes."""

import dataclasses
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "selftests/lib"))
import rcxt             # noqa: E402
from roce import bth    # noqa: E402

COUNT = 40000
NOT_DECODED = ("payload",)


def number(rnd, bits):
    """A random number of this many bits, often 0, 1 or the largest."""
    return rnd.choice((0, 1, (1 << bits) - 1, rnd.getrandbits(bits), rnd.getrandbits(bits)))


def good(rnd):
    """A random valid packet."""
    opcode = rnd.choice(rcxt.KINDS)
    widths = {"channel": 24, "key": 32, "job": 32, "rcxt": 32, "rcxt_key": 32, "tid": 32, "pvo": 64,
              "third": 1, "again": 1, "notify": 2, "src_channel": 24, "src_key": 32, "src_rcxt": 32,
              "src_rcxt_key": 32, "cookie": 64}
    fields = {name: number(rnd, bits) for name, bits in widths.items()}
    if opcode == rcxt.PACKET:
        payload = bytes(rnd.choice((0, 1, 2, 3, 4, 1983, 1984, rnd.randrange(1985))))
        return rcxt.Packet(opcode, total=len(payload), payload=payload, **fields)
    segment = rnd.choice((64, 1024, 4096, 65532, 4 * rnd.randrange(16, 16384)))
    if opcode in (*rcxt.TO_FRAMES, *rcxt.OF_FRAMES):
        segment = rnd.choice((64, 1024, 1984, 4 * rnd.randrange(16, 497)))
    total = min(rnd.choice((0, 1, segment, segment + 1, rcxt.MAX_TRANSFER,
                            rnd.randrange(rcxt.MAX_TRANSFER + 1))), segment * rcxt.MAX_PACKETS)
    if opcode == rcxt.ACCUMULATE:
        kind = rnd.randrange(1, 8)
        size = rcxt.ELEMENT[kind]
        fields.update(op=rnd.randrange(1, 8 if kind < rcxt.F32 else 5), type=kind, pvo=fields["pvo"] // size * size)
        segment = max(segment // size * size, rcxt.MIN_SEGMENT)
        total = min(total, segment * rcxt.MAX_PACKETS) // size * size
    count = rcxt.packets(total, segment)
    offset = segment * rnd.choice((0, count - 1, rnd.randrange(count)))
    size = 0
    if opcode in (*rcxt.OF_THIRD, rcxt.THIRD_WRITE):
        fields.update(third=1, notify=2 * rnd.randrange(2), gid=rnd.randbytes(16))
    if opcode in rcxt.TO_FRAMES:
        fields.update(pvo=offset)
    if opcode in rcxt.OF_TRANSFER:
        size = min(segment, total - offset)
    elif opcode == rcxt.STATUS:
        size = rnd.randrange(min(rcxt.MAX_FRAME, -(-rcxt.packets(total - offset, segment) // 8)) + 1)
        fields.update(status=rnd.randrange(7), have=number(rnd, 32))
    elif opcode in rcxt.OF_THIRD:
        left = total - offset
        fields.update(reply_pvo=number(rnd, 64), token=number(rnd, 64), target_channel=number(rnd, 24),
                      target_key=number(rnd, 32), target_rcxt=number(rnd, 32), number=number(rnd, 32),
                      target_rcxt_key=number(rnd, 32),
                      part=rnd.choice((left, left // segment * segment or left, min(segment, left))))
    elif opcode in rcxt.OF_FRAMES:
        left = total - offset
        fields.update(token=number(rnd, 64), number=number(rnd, 32),
                      part=rnd.choice((left, left // segment * segment or left, min(segment, left))))
    elif opcode in rcxt.OF_READ:
        fields.update(reply_pvo=number(rnd, 64), token=number(rnd, 64))
    elif opcode in rcxt.WITH_TOKEN:
        fields.update(token=number(rnd, 64))
    if opcode in (*rcxt.OF_READ, rcxt.NOTICE, rcxt.FENCE):
        offset = 0
    return rcxt.Packet(opcode, total=total, offset=offset, segment=segment,
                       payload=rnd.randbytes(min(size, 4096)) + bytes(max(0, size - 4096)), **fields)


def spoilt(rnd, packet):
    """The packet with a small change of one field or of its size."""
    name = rnd.choice(("total", "offset", "length", "segment", "version", "status", "opcode", "payload", "part",
                       "third", "notify", "pvo", "op", "type"))
    limits = {"length": 65535, "segment": 65535, "version": 15, "status": 255, "opcode": 0xdf,
              "third": 1, "notify": 3, "op": 255, "type": 255}
    if name == "payload":
        size = min(max(0, len(packet.payload) + rnd.choice((-4, -1, 1, 4, 64))), 65535)
        return dataclasses.replace(packet, payload=bytes(size), length=rnd.choice((packet.length, size)))
    value = getattr(packet, name) + rnd.choice((-packet.segment, -64, -4, -1, 1, 3, 4, packet.segment,
                                                1 << 24))
    if name == "opcode":
        value = 0xc0 + rnd.randrange(32)
    return dataclasses.replace(packet, **{name: max(0, min(value, limits.get(name, (1 << 32) - 1)))})


def datagrams(rnd):
    """Generates COUNT packets, from BTH to ICRC."""
    for turn in range(COUNT):
        packet = good(rnd)
        if turn % 8 == 7:
            data = bth(0xc0 + rnd.randrange(32), rnd.getrandbits(24), 0, rnd.randrange(4)) + \
                rnd.randbytes(rnd.randrange(160))
            yield data[:rnd.choice((len(data), rnd.randrange(len(data))))]
            continue
        if turn % 2:
            packet = spoilt(rnd, packet)
        how = {"pad": rnd.randrange(4)} if turn % 16 == 1 else {}
        if turn % 32 == 3:
            how["version"] = rnd.randrange(16)
        data = packet.transport(rnd.getrandbits(24), byte4=rnd.getrandbits(6), **how) + b"icrc"
        if len(data) < 65536:
            yield data


def expected(data):
    """The line that the program must print."""
    verdict = rcxt.judge(data)
    if verdict != "ok":
        return verdict
    packet = rcxt.parse(data)
    if packet.opcode not in rcxt.WITH_THIRD:
        packet = dataclasses.replace(packet, third=0)
    fields = [value.hex() if isinstance(value, bytes) else str(value)
              for name, value in dataclasses.asdict(packet).items() if name not in NOT_DECODED]
    headers = data[:rcxt.BTH] + packet.headers()
    return " ".join([verdict, *fields, headers.hex()])


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    packets = list(datagrams(random.Random(1)))
    done = subprocess.run([sys.argv[1]], stdout=subprocess.PIPE, check=True, input=b"".join(
        struct.pack("<H", len(data)) + data for data in packets))
    lines = done.stdout.decode().splitlines()
    wanted = [expected(data) for data in packets]
    bad = [pair for pair in zip(lines, wanted) if pair[0] != pair[1]]
    for line, should in bad[:5]:
        print(f"the driver: {line[:400]}\nrcxt.py:    {should[:400]}")
    fine = sum(line.startswith("ok") for line in wanted)
    print(f"{len(packets)} packets, {fine} of them valid, {len(bad)} with different results")
    if bad or len(lines) != len(packets) or not COUNT / 4 < fine < COUNT * 3 / 4:
        print("BROKEN: the driver and the documentation do not agree")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
