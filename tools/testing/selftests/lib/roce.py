# SPDX-License-Identifier: GPL-2.0
"""Builds and sends RoCEv2 packets (IBTA vol. 1 chapter 9, Annex A17), and controls qp_target on another host, whose
QPs receive them."""

import select
import socket
import struct
import time
import zlib

ROCE_PORT = 4791
PEER_QPN = 0xabcde          # destination QPN of the target's QPs
QKEY = 0x11111111
MTU = 256
REGION = 8192
RPSN, SPSN = 1000, 5000
PATIENCE = 10.0
UDP_SEGMENT = 103
SOL_PACKET, PACKET_VNET_HDR = 263, 15
# flags, GSO type, header length, GSO size, start and offset of the checksum; then the Ethernet header
VNET_HDR = struct.Struct("=BBHHHH14x")

RC, UC, UD = 0x00, 0x20, 0x60
SERVICE = {"RC": RC, "UC": UC, "UD": UD}
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
READ, READ_RESP_FIRST, READ_RESP_MIDDLE, READ_RESP_LAST, READ_RESP_ONLY, ACK, ATOMIC_ACK, \
    CMP_SWAP, FETCH_ADD = range(12, 21)
SEND_LAST_INV, SEND_ONLY_INV = 0x16, 0x17
FLUSH, ATOMIC_WRITE = 0x1c, 0x1d
CNP = 0x81
CAPS_NO_ICRC = 0x0f         # PRESENT, CONFIRMED, NO_ICRC_OK, NO_ICRC ("Between nhca ends" in wire.rst)

NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x60, 0x61, 0x62, 0x63


def bth(opcode, qpn, psn, pad=0, pkey=0xffff, version=0, ackreq=True, solicited=False, byte4=0):
    return struct.pack("!BBHBBHI", opcode, solicited << 7 | 1 << 6 | pad << 4 | version, pkey, byte4,
                       qpn >> 16, qpn & 0xffff, ackreq << 31 | psn & 0xffffff)


def reth(address, key, length):
    return struct.pack("!QII", address & (1 << 64) - 1, key, length)


def atomic_eth(address, key, swap_add=0, compare=0):
    return struct.pack("!QIQQ", address & (1 << 64) - 1, key, swap_add, compare)


def deth(qkey=QKEY, source=PEER_QPN):
    return struct.pack("!II", qkey, source)


def aeth(syndrome, msn=0):
    return struct.pack("!I", syndrome << 24 | msn)


def told_by(base):
    """Parses a packet from its BTH on: (opcode, psn, syndrome or None, bytes)."""
    service, op = base[0] & 0xe0, base[0] & 0x1f
    psn = struct.unpack("!I", base[8:12])[0] & 0xffffff
    with_aeth = service == RC and READ_RESP_FIRST <= op <= ATOMIC_ACK and op != READ_RESP_MIDDLE
    return base[0], psn, base[12] if with_aeth else None, base


class Wire:
    """Sends raw packets of one address family and captures the responses. Without a netdev it only builds packets,
    and needs no privilege.

    `head` is the number of bytes in front of the BTH. `covered` is the offset of a byte that the ICRC covers and that
    no router or socket checks. `changing` maps offsets of variant fields (A17.3.3) to values for a test."""

    def __init__(self, family, ethertype, target, me, netdev):
        self.target, self.me = target, me
        self.family, self.ethertype = family, ethertype
        if not netdev:
            return
        self.raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
        self.tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.tap.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.tap.bind((netdev, ethertype))

    def address(self, text):
        return socket.inet_pton(self.family, text)

    def packet(self, transport, source=None, icrc=None, udp_port=0xd000):
        """The complete IP packet. transport: the bytes from BTH to pad. icrc: None to compute it."""
        length = 8 + len(transport) + (4 if icrc is None else len(icrc))
        udp = struct.pack("!HHHH", udp_port, ROCE_PORT, length, 0)
        packet = self.ip_header(length, self.address(source or self.me)) + udp + transport
        if icrc is None:
            masked = bytearray(packet)
            self.mask(masked)
            # The UDP checksum and BTH byte 4 with FECN and BECN are variant fields.
            masked[self.head - 2:self.head] = b"\xff\xff"
            if len(masked) > self.head + 4:
                masked[self.head + 4] = 0xff
            icrc = struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))
        return packet + icrc

    def send_raw(self, packet):
        self.raw.sendto(packet, (self.target, 0))

    def send(self, transport, **how):
        self.send_raw(self.packet(transport, **how))

    def batch(self, transports):
        """Sends packets of one length without an ICRC as one GSO packet, which the receiver gets as a batch."""
        packets = [transport + bytes(4) for transport in transports]
        with socket.socket(self.family, socket.SOCK_DGRAM) as sock:
            sock.bind((self.me, 0xd000))
            size = struct.pack("=H", len(packets[0]))
            sock.sendmsg([b"".join(packets)], [(socket.IPPROTO_UDP, UDP_SEGMENT, size)], 0,
                         (self.target, ROCE_PORT))

    def cut(self, packet, length):
        """The packet with only `length` bytes after its UDP header, without a new ICRC."""
        packet = bytearray(packet[:self.head + length])
        self.set_length(packet, 8 + length)
        struct.pack_into("!H", packet, self.head - 4, 8 + length)
        return bytes(packet)

    def heard(self):
        """The RoCE packets that have arrived from the target so far: a list of (opcode, psn, syndrome, bytes)."""
        found = []
        while select.select([self.tap], [], [], 0)[0]:
            # GRO merges packets before the capture. The vnet header has the length of each packet.
            data = self.tap.recv(VNET_HDR.size + 65536)
            size, data = VNET_HDR.unpack_from(data)[3], data[VNET_HDR.size:]
            if len(data) < self.head + 16 or not self.from_target(data) or \
                    struct.unpack_from("!H", data, self.head - 6)[0] != ROCE_PORT:
                continue
            data = data[self.head:]
            size = size or len(data)
            found += [told_by(data[at:at + size]) for at in range(0, len(data), size)]
        return found


class Wire4(Wire):
    head = 28
    covered = 5                                     # a byte of the identification
    changing = {1: 0xb8, 8: 3, 28 + 4: 0xff}        # TOS, TTL, BTH byte 4

    def __init__(self, target, me, netdev=None):
        super().__init__(socket.AF_INET, 0x0800, target, me, netdev)
        self.ident = 1
        self.strangers = (me.rsplit(".", 1)[0] + ".77", "10.9.8.7")

    def ip_header(self, length, source):
        self.ident = self.ident % 0xffff + 1
        # The kernel fills in the header checksum, which is a variant field like TOS and TTL (A17.3.3).
        return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, self.ident, 0x4000, 64, 17, 0,
                           source, self.address(self.target))

    def mask(self, packet):
        packet[1] = packet[8] = 0xff
        packet[10:12] = b"\xff\xff"

    def set_length(self, packet, length):
        struct.pack_into("!H", packet, 2, 20 + length)

    def with_options(self, packet):
        """The packet with four more bytes of IP header: options without effect"""
        longer = bytearray(packet[:20] + b"\x01\x01\x01\x00" + packet[20:])
        longer[0] = 0x46
        struct.pack_into("!H", longer, 2, len(longer))
        return bytes(longer)

    def from_target(self, data):
        return data[9] == 17 and data[12:16] == self.address(self.target)


class Wire6(Wire):
    head = 48
    covered = 41                                    # a byte of the UDP source port
    changing = {0: 0x6b, 1: 0x8f, 2: 0x12, 7: 3, 48 + 4: 0xff}  # class, flow, hop limit, BTH byte 4

    def __init__(self, target, me, netdev=None):
        super().__init__(socket.AF_INET6, 0x86dd, target, me, netdev)
        self.strangers = (me.rsplit(":", 1)[0] + ":77", "fd99:1::7")

    def ip_header(self, length, source):
        return struct.pack("!IHBB16s16s", 6 << 28, length, 17, 64, source, self.address(self.target))

    def with_options(self, packet):
        """The packet with an extension header of eight bytes: destination options without effect"""
        longer = bytearray(packet[:40] + b"\x11\x00\x01\x04\x00\x00\x00\x00" + packet[40:])
        longer[6] = 60
        struct.pack_into("!H", longer, 4, len(longer) - 40)
        return bytes(longer)

    def mask(self, packet):
        packet[0] |= 0x0f
        packet[1:4] = b"\xff\xff\xff"
        packet[7] = 0xff

    def set_length(self, packet, length):
        struct.pack_into("!H", packet, 4, length)

    def from_target(self, data):
        return data[6] == 17 and data[8:24] == self.address(self.target)


# ---- the target ----


class Wrong(Exception):
    """A check has failed."""


class Gone(Exception):
    """qp_target does not answer any more."""


class Target:
    """A TCP connection to qp_target on the other host, which creates QPs and reports their state."""

    def __init__(self, host, port):
        until = time.monotonic() + 60
        while True:
            try:
                self.sock = socket.create_connection((host, port), timeout=60)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rw")
        numbers = [int(word) for word in self.ask("region")]
        self.open, self.readable, self.foreign = zip(numbers[::2], numbers[1::2])

    def ask(self, line):
        try:
            self.file.write(line + "\n")
            self.file.flush()
            answer = self.file.readline().split()
        except OSError as error:
            raise Gone(f"qp_target does not answer: {error}") from None
        if not answer:
            raise Gone("qp_target has ended")
        if answer[0] != "ok":
            raise Wrong(f"{line}: {' '.join(answer)}")
        return answer[1:]

    def counters(self):
        return {name: int(value) for name, value in
                (word.split("=") for word in self.ask("counters"))}


class Qp:
    def __init__(self, lab, kind, state="RTS", receives=4, size=4096):
        self.lab, self.kind, self.service = lab, kind, SERVICE[kind]
        index, qpn = lab.target.ask(f"qp {kind} {state} {PEER_QPN} {RPSN} {SPSN}")
        self.index, self.qpn, self.psn = int(index), int(qpn), RPSN
        if receives and state not in ("RESET",):
            lab.target.ask(f"post {self.index} {receives} {size}")
        lab.open_qps.append(self)

    def state(self):
        return self.lab.target.ask(f"state {self.index}")[0]

    def close(self):
        self.lab.target.ask(f"close {self.index}")
        self.lab.open_qps.remove(self)

    def packet(self, op, rest=b"", payload=b"", psn=None, **fields):
        """The bytes from BTH to pad of a request to this QP. op: the opcode without the service."""
        pad = -len(payload) % 4
        if self.kind == "UD" and not rest:
            rest = deth()
        return bth(self.service | op, self.qpn, self.psn if psn is None else psn,
                   pad=fields.pop("pad", pad), **fields) + rest + payload + bytes(pad)

    def write(self, payload, address=None, key=None, length=None, op=WRITE_ONLY, **fields):
        where, open_key = self.lab.target.open
        return self.packet(op, reth(where if address is None else address,
                                    open_key if key is None else key,
                                    len(payload) if length is None else length), payload, **fields)


class Lab:
    def __init__(self, target_ip, port, me, netdev):
        self.target = Target(target_ip, port)
        self.wire = (Wire6 if ":" in target_ip else Wire4)(target_ip, me, netdev)
        self.open_qps = []

    def fence(self):
        """Waits until all packets and responses so far have arrived: the TCP connection uses the same netdev."""
        self.target.ask("region")
        time.sleep(0.02)

    def answers(self):
        self.fence()
        return self.wire.heard()

    def one_answer(self, op, syndrome, psn=None, what=""):
        """Waits for a response. The response must be the only one and have this opcode, syndrome and PSN."""
        until = time.monotonic() + PATIENCE
        got = []
        while not got and time.monotonic() < until:
            got = self.answers()
        shown = [f"{o:#x}/{s if s is None else hex(s)}@{p}" for o, p, s, _ in got]
        if len(got) != 1 or got[0][0] != op:
            raise Wrong(f"{what}: answers {shown}, expected one {op:#x}")
        wanted = syndrome if isinstance(syndrome, tuple) else (syndrome,)
        # The low bits of an ACK's syndrome are a credit count.
        seen = got[0][2] & 0xe0 if got[0][2] is not None and not got[0][2] & 0x60 else got[0][2]
        if seen not in wanted:
            raise Wrong(f"{what}: syndrome {got[0][2]:#x}, expected "
                        f"{' or '.join(hex(one) for one in wanted)}")
        if psn is not None and got[0][1] != psn & 0xffffff:
            raise Wrong(f"{what}: answer with PSN {got[0][1]}, expected {psn}")

    def silence(self, what):
        got = self.answers()
        if got:
            raise Wrong(f"{what}: answered with "
                        f"{[f'{o:#x}/{s}@{p}' for o, p, s, _ in got]}, expected nothing")

    def counted(self, send, expected, what):
        """Runs send(). Of the receive counters, exactly the expected ones must rise by the expected numbers."""
        before = self.target.counters()
        send()
        self.fence()
        after = self.target.counters()
        risen = {name: after[name] - before[name] for name in after
                 if after[name] != before[name] and name.startswith(("rx_", "out_of", "dup"))}
        if risen != expected:
            raise Wrong(f"{what}: counters {risen}, expected {expected}")

    def untouched(self, what):
        try:
            self.target.ask("clean all")
        except Wrong as wrong:
            raise Wrong(f"{what}: {wrong}") from None

    def lives(self, qp, what, state="RTS"):
        """The QP must still be in this state, and no byte of the target's memory may have changed."""
        now = qp.state()
        if now != state:
            raise Wrong(f"{what}: the QP is in {now}, expected {state}")
        self.untouched(what)

    def in_error(self, qp, what):
        until = time.monotonic() + PATIENCE
        while qp.state() != "ERR":
            if time.monotonic() > until:
                raise Wrong(f"{what}: the QP is in {qp.state()}, expected ERR")
        self.untouched(what)

    def works(self, qp, what):
        """The QP must still receive a valid datagram or WRITE."""
        if qp.kind == "UD":
            self.target.ask("poll")
            self.wire.send(qp.packet(SEND_ONLY, payload=b"good"))
            self.fence()
            if self.target.ask("poll") != ["0/128/44"]:
                raise Wrong(f"{what}: afterwards a good datagram was not received")
            return
        self.wire.send(qp.write(b"good"))
        if qp.kind == "RC":
            self.one_answer(ACK, 0, qp.psn, f"{what}: afterwards, a good WRITE")
        else:
            self.fence()
        try:
            self.target.ask("clean all")
        except Wrong:
            qp.psn += 1
            return
        raise Wrong(f"{what}: afterwards a good WRITE was not executed")

    def tidy(self):
        for qp in list(self.open_qps):
            qp.close()
        self.fence()
        self.wire.heard()
        self.target.ask("poll")
        try:
            self.target.ask("clean all")
        except Wrong:
            pass
