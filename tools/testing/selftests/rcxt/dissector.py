#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Makes captures of rCxt datagrams, and checks that tshark decodes each field as it was made.

    dissector.py build FILE             write a capture with valid and invalid packets of each kind
    dissector.py damage FILE            write the same capture, with one bit of one packet's cookie inverted
    dissector.py fields                 print the fields to ask tshark for, one on each line
    dissector.py check OUTPUT           print a result for each packet; OUTPUT is that of `tshark -T fields`,
                                        with tabs between fields and commas between values of a field

The expected values come from rcxt.py, which was written from the documentation."""

import dataclasses
import ipaddress
import random
import struct
import sys

import ktap
import rcxt
import roce
from icrc import checksum

LINKTYPE_RAW = 101
PRESENT, CONFIRMED, NO_ICRC_OK, NO_ICRC, ACKS, FOREIGN = 1, 2, 4, 8, 0x10, 0x20
CAPS = PRESENT | CONFIRMED | NO_ICRC_OK
PSN = 0x3a4b5c
QPN = 0x123456
MARK = b"\xde\xad\xbe\xef"
RANDOM, GUESS = 1000, "random packets"
SHOWN = 20

# Wireshark's names for the fields of the RXETH, with the names in rcxt.Packet
PLAIN = {
    "channel": "channel", "channel.key": "key", "job": "job", "rcxt.index": "rcxt",
    "rcxt.key": "rcxt_key", "tid": "tid", "total": "total", "offset": "offset", "length": "length",
    "segment": "segment", "version": "version", "reserved": "third", "again": "again",
    "notify": "notify",
    "src.channel": "src_channel", "src.channel.key": "src_key", "src.rcxt.index": "src_rcxt",
    "src.rcxt.key": "src_rcxt_key", "cookie": "cookie",
}
# In packet mode the upper halves of the channel keys take the place of the rCxt indices.
UPPER = {"nhca.rcxt.index": "nhca.channel.key.upper",
         "nhca.src.rcxt.index": "nhca.src.channel.key.upper"}
OF_TARGET = {"target.channel": "target_channel", "target.channel.key": "target_key",
             "target.rcxt.index": "target_rcxt", "target.rcxt.key": "target_rcxt_key", "part": "part",
             "number": "number"}
PVO = ("", ".key", ".table", ".offset")
CAP_FIELDS = ("", ".present", ".confirmed", ".no_icrc_ok", ".no_icrc", ".acks", ".foreign")
FIELDS = ["_ws.lua.error", "infiniband.bth.destqp", "infiniband.bth.psn"] + [
    "nhca." + name for name in
    ["kind", *PLAIN, *OF_TARGET, "notify.third", "manager.ipv4", "manager.ipv6", "target.ipv4",
     "target.ipv6", "packet", "packets", "notify.initiator", "notify.target", "token", "status", "have",
     *("pvo" + part for part in PVO), *("reply_pvo" + part for part in PVO), "payload", "bitmap",
     "pad", "icrc", "mark", *("caps" + part for part in CAP_FIELDS), "refused"]]
EXPERTS = {"rx_too_short": "too_short", "rx_bad_version": "bad_version",
           "rx_bad_opcode": "bad_opcode", "rx_bad_length": "bad_length"}
FIELDS += [f"nhca.{name}.expert" for name in EXPERTS.values()]
FIELDS += UPPER.values()
TEXTS = ("nhca.refused", FIELDS[0],
         *(f"nhca.{end}.ipv{version}" for end in ("manager", "target") for version in "46"))
SOME = object()     # a field with any text
BYTES = ("nhca.payload", "nhca.bitmap", "nhca.pad")


@dataclasses.dataclass
class Frame:
    """A datagram of the capture: its IP packet, and the fields that tshark must show."""
    name: str
    packet: bytes
    head: int               # bytes of the packet in front of the BTH
    fields: dict
    held: int = None        # bytes of the packet in the capture (None: all)


def has_no_icrc(datagram):
    return datagram[4] & (NO_ICRC | FOREIGN) == NO_ICRC


def bth_of(datagram):
    """The fields that Wireshark's own dissector of InfiniBand shows."""
    return {"infiniband.bth.destqp": [int.from_bytes(datagram[5:8], "big")],
            "infiniband.bth.psn": [int.from_bytes(datagram[9:12], "big")]}


def caps_of(byte):
    bits = (byte & 0x3f, byte & PRESENT, byte & CONFIRMED, byte & NO_ICRC_OK, byte & NO_ICRC, byte & ACKS,
            byte & FOREIGN)
    return {f"nhca.caps{part}": [int(bool(bit)) if part else bit]
            for part, bit in zip(CAP_FIELDS, bits)}


def pvo_of(name, value):
    parts = value, value >> 47, value >> 42 & 31, value & (1 << 42) - 1
    return {f"nhca.{name}{part}": [number] for part, number in zip(PVO, parts)}


def gid_of(name, gid):
    mapped = gid[:12] == bytes(10) + b"\xff\xff"
    kind, address = ("ipv4", ipaddress.IPv4Address(gid[12:])) if mapped else ("ipv6", ipaddress.IPv6Address(gid))
    return {f"nhca.{name}.{kind}": [str(address)]}


def fields_of(datagram):
    """The fields that tshark must show of a datagram, from BTH to ICRC."""
    verdict = rcxt.judge(datagram)
    seen = {"nhca.kind": [datagram[0]], "nhca.channel": [int.from_bytes(datagram[5:8], "big")],
            **bth_of(datagram), **caps_of(datagram[4])}
    if verdict != "ok":
        seen["nhca.refused"] = [verdict]
        seen[f"nhca.{EXPERTS[verdict]}.expert"] = SOME
    if datagram[1] & 15 or verdict in ("rx_bad_opcode", "rx_too_short"):
        return seen
    packet = rcxt.parse(datagram)
    seen.update({"nhca." + name: [getattr(packet, of)] for name, of in PLAIN.items()})
    if packet.opcode == rcxt.PACKET:
        seen.update({upper: seen.pop(index) for index, upper in UPPER.items()})
    if packet.opcode in rcxt.WITH_THIRD:
        seen["nhca.notify.third"] = seen.pop("nhca.reserved")
    seen["nhca.notify.initiator"] = [packet.notify & rcxt.NOTIFY_INITIATOR]
    seen["nhca.notify.target"] = [packet.notify >> 1]
    seen.update(pvo_of("pvo", packet.pvo))
    if packet.segment:
        seen["nhca.packet"] = [packet.offset // packet.segment]
        seen["nhca.packets"] = [rcxt.packets(packet.total, packet.segment)]
    if packet.opcode in (*rcxt.OF_READ, *rcxt.OF_THIRD):
        seen.update(pvo_of("reply_pvo", packet.reply_pvo))
    if packet.opcode in rcxt.OF_THIRD:
        seen.update({"nhca." + name: [getattr(packet, of)] for name, of in OF_TARGET.items()})
        seen.update(gid_of("target", packet.gid))
    if packet.opcode == rcxt.THIRD_WRITE:
        seen.update(gid_of("manager", packet.gid))
    if packet.opcode == rcxt.ACCUMULATE:
        seen["nhca.op"], seen["nhca.type"] = [packet.op], [packet.type]
    if packet.opcode in rcxt.OF_FRAMES:
        seen["nhca.part"], seen["nhca.number"] = [packet.part], [packet.number]
    if packet.opcode in (*rcxt.OF_READ, *rcxt.OF_THIRD, *rcxt.OF_FRAMES, *rcxt.WITH_TOKEN):
        seen["nhca.token"] = [packet.token]
    if packet.opcode == rcxt.STATUS:
        seen["nhca.status"], seen["nhca.have"] = [packet.status], [packet.have]
    pad = datagram[1] >> 4 & 3
    behind = len(datagram) - rcxt.BTH - rcxt.RXETH.size - rcxt.BEHIND.get(packet.opcode, 0)
    if behind < pad + rcxt.ICRC or behind % 4:
        return seen
    if packet.payload:
        seen["nhca.bitmap" if packet.opcode == rcxt.STATUS else "nhca.payload"] = [packet.payload]
    if pad:
        seen["nhca.pad"] = [datagram[-rcxt.ICRC - pad:-rcxt.ICRC]]
    seen["nhca.mark" if has_no_icrc(datagram) else "nhca.icrc"] = \
        [int.from_bytes(datagram[-rcxt.ICRC:], "big")]
    return seen


class Capture:
    def __init__(self):
        self.wires = (roce.Wire4("192.0.2.2", "192.0.2.1"), roce.Wire6("2001:db8::2", "2001:db8::1"))
        self.frames = []

    def add(self, name, transport):
        """Adds a frame of one packet. transport: BTH to pad; with bit NO_ICRC it gets a UDP checksum and no ICRC."""
        wire = self.wires[len(self.frames) % 2]
        no_icrc = has_no_icrc(transport)
        packet = bytearray(wire.packet(transport, icrc=MARK if no_icrc else None))
        if no_icrc:
            udp = wire.head - 8
            total = checksum(packet, 0, udp, len(packet))
            struct.pack_into("!H", packet, udp + 6, 0xffff - total or 0xffff)
        self.frames.append(Frame(name, bytes(packet), wire.head, fields_of(packet[wire.head:])))
        return self.frames[-1]

    def packet(self, name, packet, **bth):
        bth.setdefault("byte4", CAPS)
        return self.add(name, packet.transport(PSN, **bth))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, LINKTYPE_RAW))
            for at, frame in enumerate(self.frames):
                held = frame.packet[:frame.held]
                file.write(struct.pack("<IIII", at // 1000, at % 1000 * 1000, len(held),
                                       len(frame.packet)) + held)


def usual(opcode, **fields):
    """A packet with a different value in each field: one of three packets of a transfer of 100,003 bytes."""
    begin = {
        "channel": QPN, "key": 0x80000001, "job": 4000000000, "rcxt": 99999, "rcxt_key": 0xfffe0003,
        "tid": 0xfffffffe, "total": 100003, "offset": 0, "segment": 40000,
        "pvo": rcxt.pvo(0x1fffe, 21, 0x3fedcba9876), "notify": rcxt.NOTIFY_TARGET,
        "src_channel": 0xabcdef, "src_key": 0x12345678, "src_rcxt": 77, "src_rcxt_key": 0x9abcdef0,
        "cookie": 0xfedcba9876543210,
    }
    return rcxt.Packet(opcode, **{**begin, **fields})


def small(**fields):
    return usual(fields.pop("opcode", rcxt.WRITE), **{"total": 130, "segment": 64, "payload": bytes(range(64)), **fields})


def good(capture):
    last = bytes(range(256)) * 79
    capture.packet("packet", usual(rcxt.PACKET, total=5, segment=0, pvo=0, tid=0, rcxt=0, rcxt_key=0,
                                   payload=b"words", notify=0), solicited=True)
    capture.packet("packet, longest", usual(rcxt.PACKET, total=1984, segment=0, payload=bytes(1984)))
    capture.packet("packet, empty", usual(rcxt.PACKET, total=0, segment=0))
    capture.packet("write", small(notify=3))
    capture.packet("write, last, pad 2", small(offset=128, payload=b"\1\2"))
    capture.packet("write, last, pad 3", small(total=129, offset=128, payload=b"\1", notify=0))
    capture.packet("write of no bytes", small(total=0, payload=b""))
    capture.packet("write, long", usual(rcxt.WRITE, payload=bytes(40000)))
    capture.packet("read request", usual(rcxt.READ_REQUEST, notify=1,
                                         reply_pvo=rcxt.pvo(0x12345, 31, 0x1000)))
    capture.packet("read challenge", usual(rcxt.READ_CHALLENGE, notify=1, token=0x0123456789abcdef,
                                           reply_pvo=rcxt.pvo(0x12345, 31, 0x1000)))
    capture.packet("read request, again", usual(rcxt.READ_REQUEST, again=1, token=1 << 63))
    capture.packet("read data", usual(rcxt.READ_DATA, offset=80000, payload=last[:20003]))
    capture.packet("notice", usual(rcxt.NOTICE, pvo=0))
    capture.packet("probe", usual(rcxt.PROBE, pvo=0, offset=40000))
    capture.packet("probe challenge", usual(rcxt.PROBE_CHALLENGE, pvo=0, offset=40000, token=99))
    capture.packet("fence", usual(rcxt.FENCE, pvo=0, total=0, segment=64, notify=0))
    mapped = bytes(10) + b"\xff\xff" + bytes((192, 0, 2, 9))
    third = {"notify": 0, "third": 1, "gid": mapped, "target_channel": 0x654321, "target_key": 0x87654321,
             "target_rcxt": 88, "target_rcxt_key": 0xf0000001, "part": 100003, "number": 5,
             "reply_pvo": rcxt.pvo(0x12345, 31, 0x1000)}
    for code, name in ((rcxt.THIRD_REQUEST, "request"), (rcxt.THIRD_CHALLENGE, "challenge")):
        capture.packet("third-party " + name, usual(code, **third))
        capture.packet(f"third-party {name}, a part", usual(
            code, **{**third, "offset": 40000, "part": 40000, "token": 77, "gid": bytes(range(0x20, 0x30))}))
    capture.packet("third-party write", small(opcode=rcxt.THIRD_WRITE, notify=2, third=1, gid=mapped))
    capture.packet("half-send read request", usual(rcxt.HALF_REQUEST, notify=3, pvo=(1 << 64) - 1,
                                                   reply_pvo=rcxt.pvo(0x12345, 31, 0x1000)))
    for code, name in ((rcxt.FRAMES_REQUEST, "request"), (rcxt.FRAMES_CHALLENGE, "challenge")):
        capture.packet("half-receive read " + name, usual(code, segment=1984, part=100003, number=1 << 31))
        capture.packet(f"half-receive read {name}, a part", usual(
            code, segment=1024, offset=2048, part=1024, token=(1 << 64) - 1))
    capture.packet("half-receive read data", small(opcode=rcxt.FRAMES_DATA, pvo=0))
    capture.packet("half-receive read data, last packet", small(
        opcode=rcxt.FRAMES_DATA, offset=128, pvo=128, payload=b"xy"))
    capture.packet("half-receive write", small(opcode=rcxt.HALF_WRITE, pvo=0))
    for kind, size in rcxt.ELEMENT.items():
        for op in range(rcxt.SUM, (rcxt.XOR if kind < rcxt.F32 else rcxt.PROD) + 1):
            capture.packet(f"accumulate, operation {op}, type {kind}", small(
                opcode=rcxt.ACCUMULATE, op=op, type=kind, total=64 + size, offset=64, pvo=1 << 50, payload=bytes(size)))
    capture.packet("half-receive write, last packet", small(
        opcode=rcxt.HALF_WRITE, offset=128, pvo=128, payload=b"xy"))
    capture.packet("notice to a manager", usual(rcxt.NOTICE, pvo=0, third=1))
    for status in range(7):
        capture.packet(f"status {status}", usual(
            rcxt.STATUS, pvo=0, status=status, have=2 if status == 1 else 0 if status else 3,
            payload=b"\5" if status == 1 else b""))
    capture.packet("largest transfer", usual(rcxt.PROBE, total=1 << 24, segment=1024,
                                             offset=(1 << 24) - 1024))
    capture.packet("reserved bits", small(third=1))
    capture.packet("no ICRC", small(), byte4=CAPS | NO_ICRC)
    capture.packet("no ICRC, with an acknowledgment", small(), byte4=CAPS | NO_ICRC | ACKS)
    capture.packet("bits of another sender", small(), byte4=NO_ICRC | FOREIGN)
    capture.packet("congestion marks are no capability bits", small(), byte4=0xc0)


def wrong(capture):
    """Packets that have exactly one error each."""
    for code in (*rcxt.RESERVED, 0xd1, 0xdc, 0xdf):
        capture.packet(f"opcode {code:#x}", rcxt.Packet(code, QPN))
    capture.packet("version 1", small(version=1))
    capture.packet("version 15", small(version=15))
    capture.packet("version of the BTH", small(), version=1)
    sizes = {
        "longer than payload": {"length": 65}, "shorter than payload": {"length": 63},
        "total too large": {"total": (1 << 24) + 1, "segment": 1028}, "segment 0": {"segment": 0},
        "segment 60": {"segment": 60}, "segment 66": {"segment": 66}, "segment 65535": {"segment": 65535},
        "16385 packets": {"total": 16384 * 64 + 1}, "offset inside a packet": {"offset": 4},
        "offset at the end": {"total": 128, "offset": 128, "payload": b""},
        "no bytes of some": {"payload": b""}, "some bytes of none": {"total": 0},
        "offset in no bytes": {"total": 0, "offset": 64, "payload": b""},
        "whole packet at the end": {"offset": 128},
    }
    for name, fields in sizes.items():
        capture.packet("write, " + name, small(**fields))
    capture.packet("packet, total", usual(rcxt.PACKET, total=4, payload=b"words"))
    capture.packet("packet, offset", usual(rcxt.PACKET, total=5, offset=5, payload=b"words"))
    capture.packet("packet, too long", usual(rcxt.PACKET, total=1985, payload=bytes(1985)))
    capture.packet("read request, offset", usual(rcxt.READ_REQUEST, offset=40000))
    capture.packet("read request, length", usual(rcxt.READ_REQUEST, length=4))
    capture.packet("read request, payload", usual(rcxt.READ_REQUEST, payload=b"four"))
    capture.packet("notice, offset", usual(rcxt.NOTICE, offset=40000))
    capture.packet("read challenge, offset", usual(rcxt.READ_CHALLENGE, offset=40000))
    capture.packet("probe, length", usual(rcxt.PROBE, length=1))
    capture.packet("fence, offset", usual(rcxt.FENCE, offset=40000))
    capture.packet("third-party request, part", usual(rcxt.THIRD_REQUEST, notify=0, third=1, part=4))
    capture.packet("third-party request, notifies its sender", usual(
        rcxt.THIRD_REQUEST, notify=1, third=1, part=100003))
    capture.packet("third-party request, notifies nobody", usual(rcxt.THIRD_REQUEST, notify=0, part=100003))
    capture.packet("third-party write, notifies nobody", small(opcode=rcxt.THIRD_WRITE, notify=0))
    capture.packet("half-send read request, offset", usual(rcxt.HALF_REQUEST, offset=40000))
    capture.packet("half-send read request, payload", usual(rcxt.HALF_REQUEST, payload=b"four"))
    capture.packet("half-receive read request, part", usual(rcxt.FRAMES_REQUEST, segment=1024, part=4))
    capture.packet("half-receive read request, segment", usual(rcxt.FRAMES_REQUEST, segment=1988, part=100003))
    capture.packet("half-receive read data, PVO", small(opcode=rcxt.FRAMES_DATA, pvo=64))
    capture.packet("half-receive write, PVO", small(opcode=rcxt.HALF_WRITE, pvo=64))
    adds = {"opcode": rcxt.ACCUMULATE, "op": rcxt.SUM, "type": rcxt.F64, "total": 64, "pvo": 0, "payload": bytes(64)}
    for what, change in (("operation 0", {"op": 0}), ("operation 8", {"op": 8}), ("type 0", {"type": 0}),
                         ("type 8", {"type": 8}), ("operation of integers", {"op": rcxt.OR}),
                         ("PVO", {"pvo": 4}), ("segment", {"segment": 68}),
                         ("total", {"total": 60, "payload": bytes(60)})):
        capture.packet("accumulate, " + what, small(**{**adds, **change}))
    capture.packet("half-receive write, segment", small(
        opcode=rcxt.HALF_WRITE, pvo=0, segment=1988, total=64))
    capture.packet("status 7", usual(rcxt.STATUS, status=7))
    capture.packet("status, too many bits", usual(rcxt.STATUS, status=1, payload=b"\5\5"))
    whole = small().transport(PSN)
    capture.add("headers cut", whole[:rcxt.BTH + rcxt.RXETH.size - 4])
    capture.add("BTH alone", whole[:rcxt.BTH])
    capture.add("read request without its PVO",
                usual(rcxt.READ_REQUEST).transport(PSN)[:rcxt.BTH + rcxt.RXETH.size])
    capture.add("no whole words", whole[:-1])
    capture.packet("no room for the pad", usual(rcxt.PROBE), pad=3)
    capture.packet("pad without payload", usual(rcxt.PACKET, total=0), pad=2)


def joined(capture):
    """Packets that UDP GRO has merged to a batch, which is valid only for packets without an ICRC."""
    for bits, name in ((CAPS | NO_ICRC, "a batch"), (CAPS, "bytes after a packet")):
        singles = [small(offset=offset, payload=bytes(range(min(64, 130 - offset)))).transport(
            PSN + offset // 64, byte4=bits) for offset in (0, 64, 128)]
        frame = capture.add(name, MARK.join(singles))
        if bits & NO_ICRC:
            each = [fields_of(single + MARK) for single in singles]
            frame.fields = {key: [value for one in each for value in one.get(key, [])]
                            for key in each[0] | each[-1]} | bth_of(singles[0])


def others(capture):
    """Packets of plain RoCEv2, where the dissector adds only the capability bits; and truncated captures."""
    send = roce.bth(roce.RC | roce.SEND_ONLY, QPN, PSN, byte4=PRESENT | CONFIRMED) + bytes(64)
    plain = roce.bth(roce.RC | roce.SEND_ONLY, QPN, PSN) + bytes(64)
    cnp = roce.bth(roce.CNP, QPN, 0, byte4=0x40) + bytes(16)
    for name, transport in (("SEND with capability bits", send), ("SEND", plain), ("CNP", cnp)):
        frame = capture.add(name, transport)
        frame.fields = bth_of(transport) | (caps_of(transport[4]) if transport[4] & 0x3f else {})
    whole = small().transport(PSN, byte4=CAPS)
    for name, held in (("RXETH cut by the capture", 50), ("payload cut by the capture", 100)):
        frame = capture.add(name, whole)
        frame.held = frame.head + held
        if held < rcxt.BTH + rcxt.RXETH.size:
            frame.fields = {key: value for key, value in frame.fields.items() if "caps" in key or
                            "bth" in key or key in ("nhca.kind", "nhca.channel")}
        else:
            del frame.fields["nhca.payload"], frame.fields["nhca.icrc"]


def guessed(capture):
    """Random bytes after a BTH, and valid packets with some inverted bits."""
    rnd = random.Random(1)
    kinds = [frame.packet[frame.head:-rcxt.ICRC] for frame in capture.frames if frame.name in
             ("packet", "write", "read request", "read data", "notice", "probe", "status 1")]
    for turn in range(RANDOM):
        if turn % 4 == 0:
            transport = bytearray(roce.bth(0xc0 + rnd.randrange(32), QPN, PSN, rnd.randrange(4)) +
                                  rnd.randbytes(rnd.randrange(200)))
        else:
            transport = bytearray(rnd.choice(kinds))
            for _ in range(rnd.randrange(1, 4)):
                at = rnd.choice([1, *range(32, 44), 52, *range(76, 84)])
                if at < len(transport):
                    transport[at] ^= 1 << rnd.randrange(8)
        capture.add(GUESS, bytes(transport))


def capture_all():
    capture = Capture()
    for part in (good, wrong, joined, others, guessed):
        part(capture)
    return capture


# ---- the output of tshark ----


def number(text):
    """The value of a field. Wireshark 4.0 shows a Boolean as a number, later ones as True or False."""
    return {"True": 1, "False": 0}.get(text) if text.isalpha() else int(text, 0)


def values(name, text):
    """The values that tshark shows for all fields of that name in a frame."""
    words = [word for word in text.split(",") if word]
    if name in BYTES:
        return [bytes.fromhex(word.replace(":", "")) for word in words]
    return words if name in TEXTS else [number(word) for word in words]


def complaint(frame, said):
    """The first field that is not as expected, or None."""
    for name, text in said.items():
        wanted = frame.fields.get(name, [])
        if wanted is SOME:
            if not text:
                return f"{name}: nothing"
        elif values(name, text) != wanted:
            return f"{name}: {text or 'nothing'}, expected {wanted}"
    return None


def check(path):
    frames = capture_all().frames
    with open(path, encoding="utf-8") as source:
        lines = source.read().splitlines()
    report = ktap.Report()
    bad = guesses = 0
    for at, frame in enumerate(frames):
        words = lines[at].split("\t") if at < len(lines) else []
        if len(words) != len(FIELDS):
            why = f"tshark gave {len(words)} fields of {len(FIELDS)}"
        else:
            why = complaint(frame, dict(zip(FIELDS, words)))
        bad += bool(why)
        if frame.name == GUESS:
            guesses += not why
        if why and bad < SHOWN:
            report.notok(frame.name, f"frame {at + 1}: {why}")
        elif not why and frame.name != GUESS:
            report.ok(frame.name)
    if guesses == RANDOM:
        report.ok(GUESS)
    print(f"# {len(frames)} frames, {bad} bad")
    return report.end()


def main():
    command, *rest = sys.argv[1:] or [""]
    if command == "fields":
        print("\n".join(FIELDS))
        return 0
    if command == "check" and len(rest) == 1:
        return check(*rest)
    if command not in ("build", "damage") or len(rest) != 1:
        raise SystemExit(__doc__)
    capture = capture_all()
    if command == "damage":
        frame = next(frame for frame in capture.frames if frame.name == "write")
        packet = bytearray(frame.packet)
        packet[frame.head + rcxt.BTH + rcxt.RXETH.size - 1] ^= 1
        frame.packet = bytes(packet)
    capture.write(*rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
