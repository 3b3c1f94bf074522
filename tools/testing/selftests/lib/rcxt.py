# SPDX-License-Identifier: GPL-2.0
"""Builds, parses and checks rCxt datagrams.

This module was written only from the section "Packets" in Documentation/rcxt.rst, to prove that this page is
enough for another implementation. tools/testing/fuzz/agree.py compares it with the driver's code."""

import dataclasses
import struct

from roce import bth

KINDS = PACKET, WRITE, READ_REQUEST, READ_DATA, NOTICE, PROBE, STATUS, FENCE, \
    THIRD_REQUEST, THIRD_WRITE, ACCUMULATE, HALF_WRITE, HALF_REQUEST, FRAMES_REQUEST, FRAMES_DATA, READ_CHALLENGE, \
    PROBE_CHALLENGE, THIRD_CHALLENGE, FRAMES_CHALLENGE = \
    *range(0xc0, 0xca), *range(0xcb, 0xd0), 0xd2, 0xd5, 0xd8, 0xde
RESERVED = (0xca, 0xd0)

NOTIFY_INITIATOR, NOTIFY_TARGET = 1, 2
DONE, PARTIAL, NONE, VIOLATED, FENCED, FORBIDDEN, TOO_LONG = range(7)

MAX_TRANSFER = 1 << 24
MAX_PACKETS = 16384
MIN_SEGMENT, MAX_SEGMENT = 64, 65532
MAX_FRAME = 1984

BTH, ICRC = 12, 4
RXETH = struct.Struct("!7I2HQ4IQ")
REPLY = struct.Struct("!QQ")
TOKEN = struct.Struct("!Q")
PROGRESS = struct.Struct("!II")
THIRD = struct.Struct("!QQ16s6I")
GID = struct.Struct("!16s")
PART = struct.Struct("!IIQ")
OPERATION = struct.Struct("!BBxx")
OF_THIRD = (THIRD_REQUEST, THIRD_CHALLENGE)
WITH_THIRD = (*OF_THIRD, THIRD_WRITE, NOTICE)    # packets that have the bit t
OF_READ = (READ_REQUEST, HALF_REQUEST, READ_CHALLENGE)
OF_FRAMES = (FRAMES_REQUEST, FRAMES_CHALLENGE)
TO_FRAMES = (HALF_WRITE, FRAMES_DATA)    # payload for frames
OF_TRANSFER = (WRITE, READ_DATA, THIRD_WRITE, ACCUMULATE, *TO_FRAMES)
WITH_TOKEN = (PROBE, PROBE_CHALLENGE, FENCE)
BEHIND = {STATUS: PROGRESS.size, THIRD_WRITE: GID.size, ACCUMULATE: OPERATION.size,
          **dict.fromkeys(OF_THIRD, THIRD.size), **dict.fromkeys(OF_READ, REPLY.size),
          **dict.fromkeys(OF_FRAMES, PART.size), **dict.fromkeys(WITH_TOKEN, TOKEN.size)}


SUM, MIN, MAX, PROD, OR, AND, XOR = range(1, 8)
I32, I64, U32, U64, F32, F64, BF16 = range(1, 8)
ELEMENT = {I32: 4, I64: 8, U32: 4, U64: 8, F32: 4, F64: 8, BF16: 2}    # bytes


def pvo(key, table, offset):
    """A protocol virtual offset."""
    return key << 47 | table << 42 | offset


def packets(total, segment):
    """The number of packets of a transfer. A transfer of no bytes has one packet without payload."""
    return -(-total // segment) or 1


@dataclasses.dataclass
class Packet:
    """The fields of one packet, with the names of the RXETH. length: None for the length of the payload."""
    opcode: int
    channel: int = 0                # BTH: the destination QP
    key: int = 0
    job: int = 0
    rcxt: int = 0
    rcxt_key: int = 0
    tid: int = 0
    total: int = 0
    offset: int = 0
    length: int = None
    segment: int = 0
    pvo: int = 0
    version: int = 0
    third: int = 0                  # the bit t
    again: int = 0
    notify: int = 0
    src_channel: int = 0
    src_key: int = 0
    src_rcxt: int = 0
    src_rcxt_key: int = 0
    cookie: int = 0
    reply_pvo: int = 0              # in read, half-send read and third-party request, and their challenges
    token: int = 0                  # in each request and challenge, in probe and in fence
    status: int = 0                 # in status
    have: int = 0                   # in status
    gid: bytes = bytes(16)          # in third-party request, challenge and write
    target_channel: int = 0         # in third-party request and challenge
    target_key: int = 0             # in third-party request and challenge
    target_rcxt: int = 0            # in third-party request and challenge
    target_rcxt_key: int = 0        # in third-party request and challenge
    part: int = 0                   # in third-party and half-receive read request, and their challenges
    number: int = 0                 # in third-party and half-receive read request, and their challenges
    op: int = 0                     # in accumulate
    type: int = 0                   # in accumulate
    payload: bytes = b""

    def __post_init__(self):
        if self.length is None:
            self.length = len(self.payload)

    def headers(self):
        """The RXETH, and the extended header of the opcode after it."""
        flags = self.version << 28 | self.third << 27 | self.again << 26 | self.notify << 24
        data = RXETH.pack(self.key, self.job, self.rcxt, self.rcxt_key, self.tid, self.total,
                          self.offset, self.length, self.segment, self.pvo,
                          flags | self.src_channel, self.src_key, self.src_rcxt,
                          self.src_rcxt_key, self.cookie)
        if self.opcode in OF_THIRD:
            data += THIRD.pack(self.reply_pvo, self.token, self.gid, self.target_channel, self.target_key,
                               self.target_rcxt, self.target_rcxt_key, self.part, self.number)
        elif self.opcode == THIRD_WRITE:
            data += GID.pack(self.gid)
        elif self.opcode == ACCUMULATE:
            data += OPERATION.pack(self.op, self.type)
        elif self.opcode in OF_READ:
            data += REPLY.pack(self.reply_pvo, self.token)
        elif self.opcode in OF_FRAMES:
            data += PART.pack(self.part, self.number, self.token)
        elif self.opcode in WITH_TOKEN:
            data += TOKEN.pack(self.token)
        elif self.opcode == STATUS:
            data += PROGRESS.pack(self.status << 24, self.have)
        return data

    def transport(self, psn=0, **fields):
        """The bytes from BTH to pad. fields are arguments of bth()."""
        pad = fields.pop("pad", -len(self.payload) % 4)
        return bth(self.opcode, self.channel, psn, pad=pad, ackreq=False, **fields) + \
            self.headers() + self.payload + bytes(pad)


def parse(datagram):
    """The Packet of the bytes from BTH to ICRC, which must have all headers."""
    opcode = datagram[0]
    end = BTH + RXETH.size
    *first, flags, src_key, src_rcxt, src_rcxt_key, cookie = RXETH.unpack(datagram[BTH:end])
    reply, token, progress, gid, target, operation = 0, 0, (0, 0), bytes(16), [0] * 6, (0, 0)
    if opcode in OF_THIRD:
        reply, token, gid, *target = THIRD.unpack_from(datagram, end)
        target[0] &= 0xffffff
    elif opcode == THIRD_WRITE:
        gid, = GID.unpack_from(datagram, end)
    elif opcode == ACCUMULATE:
        operation = OPERATION.unpack_from(datagram, end)
    elif opcode in OF_READ:
        reply, token = REPLY.unpack_from(datagram, end)
    elif opcode in OF_FRAMES:
        target[4], target[5], token = PART.unpack_from(datagram, end)
    elif opcode in WITH_TOKEN:
        token, = TOKEN.unpack_from(datagram, end)
    elif opcode == STATUS:
        progress = PROGRESS.unpack_from(datagram, end)
    end += BEHIND.get(opcode, 0)
    payload = datagram[end:len(datagram) - ICRC - (datagram[1] >> 4 & 3)]
    return Packet(opcode, int.from_bytes(datagram[5:8], "big"), *first, flags >> 28,
                  flags >> 27 & 1, flags >> 26 & 1, flags >> 24 & 3, flags & 0xffffff, src_key,
                  src_rcxt, src_rcxt_key, cookie, reply, token, progress[0] >> 24, progress[1],
                  gid, *target, *operation, payload)


def judge(datagram):
    """Checks the bytes from BTH to ICRC. Returns "ok", or the counter of the drop reason."""
    if len(datagram) < BTH:
        return "rx_too_short"
    opcode, pad = datagram[0], datagram[1] >> 4 & 3
    if datagram[1] & 15:
        return "rx_bad_version"
    if opcode not in KINDS:
        return "rx_bad_opcode"
    headers = BTH + RXETH.size + BEHIND.get(opcode, 0)
    if len(datagram) < headers:
        return "rx_too_short"
    behind = len(datagram) - headers
    if behind < pad + ICRC or behind % 4:
        return "rx_bad_length"
    if opcode not in (PACKET, STATUS, *OF_TRANSFER) and behind != ICRC:
        return "rx_bad_length"
    packet = parse(datagram)
    if packet.version:
        return "rx_bad_version"
    return "ok" if fits(packet) else "rx_bad_length"


def elements(packet):
    """Checks operation and type of an accumulate, and that it consists of whole aligned elements."""
    if not SUM <= packet.op <= XOR or packet.type not in ELEMENT or (packet.op >= OR and packet.type >= F32):
        return False
    return not any(field % ELEMENT[packet.type] for field in (packet.total, packet.segment, packet.pvo))


def fits(packet):
    """Checks a packet against the table "Lengths" in Documentation/rcxt.rst."""
    length, total, offset, segment = packet.length, packet.total, packet.offset, packet.segment
    if length != len(packet.payload):
        return False
    if packet.opcode == PACKET:
        return length == total and length <= MAX_FRAME and offset == 0
    if total > MAX_TRANSFER or not MIN_SEGMENT <= segment <= MAX_SEGMENT or segment % 4 or \
            packets(total, segment) > MAX_PACKETS:
        return False
    if offset % segment or (offset and offset >= total):
        return False
    if packet.opcode in (*OF_THIRD, THIRD_WRITE) and (not packet.third or packet.notify & NOTIFY_INITIATOR):
        return False
    if packet.opcode in (*TO_FRAMES, *OF_FRAMES) and segment > MAX_FRAME:
        return False
    if packet.opcode in (*OF_THIRD, *OF_FRAMES):
        left = total - offset
        return length == 0 and (packet.part == left or 0 < packet.part < left and packet.part % segment == 0)
    if packet.opcode in TO_FRAMES and packet.pvo != offset:
        return False
    if packet.opcode == ACCUMULATE and not elements(packet):
        return False
    if packet.opcode in OF_TRANSFER:
        return length == min(segment, total - offset)
    if packet.opcode in (*OF_READ, FENCE, NOTICE):
        return length == 0 and offset == 0
    if packet.opcode == STATUS:
        return packet.status <= TOO_LONG and length <= MAX_FRAME and \
            length <= -(-packets(total - offset, segment) // 8)
    return length == 0
