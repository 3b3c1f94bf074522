#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the invariant CRC of every RoCEv2 packet of a pcap file, by its own computation and against tshark.

    icrc.py check FILE TSHARK-FIELDS    prints "N packets, B bad"; status 0 if N > 0 and B is 0.
                                        TSHARK-FIELDS is the output of `tshark -T fields -e frame.number
                                        -e infiniband.invariant.crc` for the same file; an empty file
                                        skips the comparison with tshark
    icrc.py nhca FILE no-icrc|whole     packets between nhca ends: every ICRC must be correct, and so must
                                        the UDP checksum of a packet whose bit says that it has no ICRC;
                                        no-icrc: most packets have none, whole: all packets have one
    icrc.py damage FILE COPY            COPY is FILE with one bit of one packet's payload inverted
    icrc.py cut FILE COPY               COPY is FILE with one packet truncated inside its BTH"""

import struct
import sys
import zlib

PORT = 4791
BTH = 12


def packets(data):
    """(offset of the record, offset and length of its bytes) for each packet of a pcap file."""
    magic = data[:4]
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(magic)
    if not order:
        raise SystemExit("icrc: the file is not a pcap file")
    at = 24
    while at + 16 <= len(data):
        _, _, held, full = struct.unpack_from(order + "IIII", data, at)
        if at + 16 + held > len(data):
            break                       # tcpdump was still writing this record
        if held != full:
            raise SystemExit("icrc: the capture has truncated packets; capture whole packets (tcpdump -s 0)")
        yield at, at + 16, held
        at += 16 + held


def roce(data, at, length):
    """(offset of the IP header, of the UDP header, end of the datagram), or None if the packet is not RoCEv2."""
    kind, = struct.unpack_from("!H", data, at + 12)
    network = at + 14
    if kind == 0x8100:
        kind, = struct.unpack_from("!H", data, at + 16)
        network = at + 18
    if kind == 0x0800 and data[network + 9] == 17:
        udp = network + (data[network] & 15) * 4
    elif kind == 0x86dd and data[network + 6] == 17:
        udp = network + 40
    else:
        return None
    port, size = struct.unpack_from("!HH", data, udp + 2)
    if port != PORT or udp + size > at + length:
        return None
    return network, udp, udp + size


def icrc(data, network, udp, end):
    """The correct invariant CRC. Fields that may change on the way (variant fields) count as ones."""
    header = bytearray(data[network:udp + 8 + BTH])
    bth = udp + 8 - network
    if header[0] >> 4 == 4:
        header[1] = header[8] = header[10] = header[11] = 0xff
    else:
        header[0] |= 0x0f
        header[1] = header[2] = header[3] = header[7] = 0xff
    header[bth - 2] = header[bth - 1] = 0xff
    header[bth + 4] = 0xff
    crc = zlib.crc32(b"\xff" * 8)
    crc = zlib.crc32(header, crc)
    return zlib.crc32(data[udp + 8 + BTH:end - 4], crc)


def check(name, fields):
    with open(name, "rb") as source:
        data = source.read()
    decoded = {}
    with open(fields, encoding="ascii") as source:
        for line in source:
            number, _, text = line.strip().partition("\t")
            if text:
                decoded[int(number)] = int(text.split(",")[0], 16)
    seen = bad = unseen = 0
    for number, (_, at, length) in enumerate(packets(data), 1):
        found = roce(data, at, length)
        if not found:
            continue
        network, udp, end = found
        seen += 1
        want = struct.pack("<I", icrc(data, network, udp, end))
        have = data[end - 4:end]
        # tshark shows the four bytes as one big-endian number.
        shown = decoded.get(number, int.from_bytes(have, "big"))
        unseen += number not in decoded
        if want != have or shown != int.from_bytes(have, "big"):
            bad += 1
            if bad <= 5:
                print(f"packet {number}: ICRC {have.hex()}, must be {want.hex()}, "
                      f"tshark decodes {shown:08x}; BTH "
                      f"{data[udp + 8:udp + 8 + BTH].hex()}, {end - udp} bytes of UDP")
    if decoded and unseen:
        print(f"tshark shows no ICRC for {unseen} packets of {seen}")
        bad += unseen
    print(f"{seen} packets, {bad} bad")
    return 0 if seen and not bad else 1


def checksum(data, network, udp, end):
    """The sum over the datagram, which is 0xffff if the UDP checksum is correct."""
    addresses = data[network + 12:network + 20] if data[network] >> 4 == 4 else \
        data[network + 8:network + 40]
    covered = addresses + struct.pack("!HH", 17, end - udp) + data[udp:end]
    covered += b"\0" * (len(covered) % 2)
    total = sum(struct.unpack(f"!{len(covered) // 2}H", covered))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


NO_ICRC = 8        # capability bit NO_ICRC in BTH byte 4 (Documentation/wire.rst)


def between_nhca(name, wanted):
    with open(name, "rb") as source:
        data = source.read()
    seen = without = bad = 0
    for _, at, length in packets(data):
        found = roce(data, at, length)
        if not found:
            continue
        network, udp, end = found
        seen += 1
        if data[udp + 8 + 4] & NO_ICRC:
            without += 1
            good = data[udp + 6:udp + 8] != b"\0\0" and checksum(data, network, udp, end) == 0xffff
        else:
            good = data[end - 4:end] == struct.pack("<I", icrc(data, network, udp, end))
        bad += not good
    print(f"{seen} packets, {without} without an ICRC, {bad} bad")
    enough = without > seen * 0.8 if wanted == "no-icrc" else not without
    return 0 if seen > 100 and not bad and enough else 1


def change(name, copy, cut):
    with open(name, "rb") as source:
        data = bytearray(source.read())
    for _, at, length in packets(bytes(data)):
        found = roce(data, at, length)
        if found and found[2] - found[1] > 8 + BTH + 4 + 16:
            network, udp, end = found
            break
    else:
        raise SystemExit("icrc: no packet of the capture is long enough")
    if cut:
        # Set the lengths of IP and UDP to match the packet, whose BTH is too short.
        struct.pack_into("!H", data, udp + 4, 8 + 6)
        if data[network] >> 4 == 4:
            struct.pack_into("!H", data, network + 2, udp - network + 8 + 6)
        else:
            struct.pack_into("!H", data, network + 4, 8 + 6)
    else:
        data[end - 8] ^= 1
    with open(copy, "wb") as target:
        target.write(data)
    return 0


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("check", "nhca", "damage", "cut"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "check":
        return check(*sys.argv[2:])
    if sys.argv[1] == "nhca":
        return between_nhca(*sys.argv[2:])
    return change(*sys.argv[2:], sys.argv[1] == "cut")


if __name__ == "__main__":
    sys.exit(main())
