#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Checks the packets that rcxt_forge sends.

    forge.py TARGET_IP TCP_PORT MY_IP NETDEV

The packets go to a queue pair of qp_target on another host, and this program captures them when they are sent. By the
documented rules each packet must have exactly the error of its kind. The other host must count each packet for
this error, and no ICRC error. Prints a KTAP report."""

import collections
import socket
import subprocess
import sys

import ktap
import rcxt
from roce import Gone, Lab, Qp, ROCE_PORT, Wrong

ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
COUNT = 500
KEY, KEY_UPPER = 0x1234, 0x8765abcd
JOB, RCXT, RCXT_KEY, TID = 77, 4711, 0xfff0001, 40000
TOTAL, SEGMENT, REGION = 4000, 64, 10000
PVO = rcxt.pvo(0x1f00, 17, 0x200000000)
TEMPLATE = {"key": KEY, "job": JOB, "rcxt": RCXT, "rcxt_key": RCXT_KEY, "tid": TID}


def pvo_parts(pvo):
    return pvo >> 47, pvo >> 42 & 31, pvo & (1 << 42) - 1


def in_region(packet):
    if packet.opcode in rcxt.TO_FRAMES:
        return packet.pvo == packet.offset
    size = packet.length if packet.opcode == rcxt.WRITE else packet.total
    begin = packet.pvo - PVO
    return 0 <= begin and begin + size <= REGION


# The values in packet mode of the fields that name an rCxt in other modes
PACKET_MODE = {"rcxt": KEY_UPPER, "rcxt_key": 0, "tid": 0}


def wrong_fields(packet):
    template = TEMPLATE | (PACKET_MODE if packet.opcode == rcxt.PACKET else {})
    return [name for name, value in template.items() if getattr(packet, name) != value]


def only(*fields):
    """A judge: exactly one of these fields differs from the template, and all others are as expected."""
    def judge(packet):
        wrong = wrong_fields(packet)
        return len(wrong) == 1 and wrong[0] in fields and \
            (packet.opcode == rcxt.PACKET or in_region(packet))
    return judge


def same_transfer(packet):
    """All fields are those of the template, so the rCxt can refuse the packet only because of its state."""
    return not wrong_fields(packet) and in_region(packet) and (packet.total, packet.segment) == (TOTAL, SEGMENT)


def number_wrong(packet):
    """A request has the number of the latest request, which is 0. A challenge has another number."""
    return same_transfer(packet) and (packet.number == 0) == (packet.opcode == rcxt.FRAMES_REQUEST)


def sizes_wrong(packet):
    """Only total, segment, or the PVO of a request is wrong. A request has a new number, which is above 0."""
    wrong = (packet.total != TOTAL) + (packet.segment != SEGMENT) + \
        (packet.opcode == rcxt.FRAMES_REQUEST and packet.pvo != PVO)
    return wrong == 1 and not wrong_fields(packet) and (packet.number > 0) == (packet.opcode == rcxt.FRAMES_REQUEST)


def channel_key_wrong(packet):
    """The channel key is wrong. In packet mode either half of it may be wrong."""
    return only(*(("key", "rcxt") if packet.opcode == rcxt.PACKET else ("key",)))(packet)


def pvo_wrong(part):
    """A judge: this part of the PVO is wrong; each packet begins another transfer."""
    def judge(packet):
        same = [one == other for one, other in zip(pvo_parts(packet.pvo), pvo_parts(PVO))]
        right = same[:2] == [number != part for number in range(2)] and \
            (part < 2 or not in_region(packet))
        return right and packet.tid > TID and all(
            getattr(packet, name) == value for name, value in TEMPLATE.items() if name != "tid")
    return judge


KINDS = {
    "good": lambda packet: packet.tid > TID and in_region(packet) and packet.key == KEY,
    "channel-key": channel_key_wrong,
    "job": only("job"),
    "rcxt-index": only("rcxt"),
    "rcxt-key": only("rcxt_key"),
    "tid": lambda packet: only("tid")(packet) and packet.tid < TID,
    "unasked": lambda packet: only("tid")(packet) and packet.tid > TID,
    "pvo-key": pvo_wrong(0),
    "pvo-table": pvo_wrong(1),
    "pvo-range": pvo_wrong(2),
    "unvouched": lambda packet: packet.opcode in (rcxt.READ_REQUEST, rcxt.FRAMES_REQUEST) and packet.tid > TID and
    in_region(packet) and packet.key == KEY,
    "repeated": same_transfer,
    "number": number_wrong,
    "sizes": sizes_wrong,
    "lengths": None,
    "random-rxeth": lambda packet: packet.key != KEY and packet.job != JOB,
    "random-bytes": None,
}


class Sniffer:
    """Captures the packets that a netdev sends to the target."""

    def __init__(self, wire, netdev):
        self.wire = wire
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.sock.bind((netdev, ETH_P_ALL))

    def packets(self):
        """The bytes from BTH to ICRC of each packet that was sent since the last call."""
        wire, found = self.wire, []
        ends = wire.address(wire.me) + wire.address(wire.target)
        while True:
            try:
                data = self.sock.recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            if data[:wire.head - 8].endswith(ends) and \
                    data[wire.head - 6:wire.head - 4] == ROCE_PORT.to_bytes(2, "big"):
                found.append(data[wire.head:])


def forge(lab, qp, kind, options):
    words = ["rcxt_forge", "-a", lab.wire.target, "-q", qp.qpn, "-k", KEY_UPPER << 32 | KEY, "-j", JOB, "-r", RCXT,
             "-K", RCXT_KEY, "-t", TID, "-v", PVO, "-l", REGION, "-T", TOTAL, "-s", SEGMENT,
             "-n", COUNT, *options, kind]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    if done.returncode or f"{kind} {COUNT}" not in done.stdout.splitlines():
        raise Wrong(f"rcxt_forge: status {done.returncode}: {done.stderr} {done.stdout}")


def as_said(lab, sniffer, qp, kind, options, read):
    """Sends COUNT packets of a kind: each must have the right error, and the target must count this error."""
    before = lab.target.counters()
    sniffer.packets()
    forge(lab, qp, kind, options)
    lab.fence()
    after = lab.target.counters()
    sent = sniffer.packets()
    if read:
        if len(sent) != COUNT:
            raise Wrong(f"{len(sent)} packets have left, {COUNT} were sent")
        for datagram in sent:
            verdict = rcxt.judge(datagram)
            wanted = {"lengths": "rx_bad_length", "random-bytes": verdict}.get(kind, "ok")
            if verdict != wanted or KINDS[kind] and not KINDS[kind](rcxt.parse(datagram)):
                raise Wrong(f"{verdict}: {rcxt.parse(datagram)}")
    risen = {name: after[name] - before[name] for name in after
             if after[name] != before[name] and name.startswith("rx_")}
    # The destination is a queue pair and not a channel, so a valid packet counts as rx_no_qp.
    if read:
        expected = collections.Counter(rcxt.judge(datagram) for datagram in sent)
        expected["rx_no_qp"] += expected.pop("ok", 0)
    elif kind == "random-bytes":
        expected = {name: number for name, number in risen.items() if name != "rx_icrc_encapsulated"}
    else:
        expected = {"rx_bad_length" if kind == "lengths" else "rx_no_qp": COUNT}
    if risen != {name: number for name, number in expected.items() if number}:
        raise Wrong(f"counters {risen}, expected {dict(expected)}")
    if sum(risen.values()) != COUNT:
        raise Wrong(f"{sum(risen.values())} packets were counted, {COUNT} were sent")


def main():
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    target, port, me, netdev = sys.argv[1:]
    lab = Lab(target, port, me, netdev)
    sniffer = Sniffer(lab.wire, netdev)
    qp = Qp(lab, "UC")
    report = ktap.Report()
    for name, options, read in (("ICRC", (), True), ("ICRC and UDP checksum", ("-c",), True),
                                ("UDP checksum", ("-b",), True), ("batches", ("-b", "-g", 16), False)):
        for kind in KINDS:
            try:
                as_said(lab, sniffer, qp, kind, options, read)
                report.ok(f"{kind}, {name}")
            except Wrong as wrong:
                report.notok(f"{kind}, {name}", wrong)
    lab.untouched("forged packets")
    return report.end()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Gone as gone:
        # the report has no plan, which fails the test
        sys.exit(f"# the target cannot be reached: {gone}")
