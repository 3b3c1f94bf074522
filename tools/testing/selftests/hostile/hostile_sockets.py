#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Sends RoCEv2 packets through UDP sockets, as any local program could: to QPNs that no queue pair has, so that the
device of hostile_sockets.sh counts those that reach it.

    hostile_sockets.py privileged | refused | inherited | free ADDRESS...

privileged: each packet is sent and counted. refused: each fails with EPERM, and none is counted. inherited: as
privileged, but the packets are sent after the program has given up its privilege. free: each packet is sent; there is
no device, or it is in another namespace."""

import errno
import os
import pathlib
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import ktap  # noqa: E402 - found by the path above
import roce  # noqa: E402

COUNTERS = pathlib.Path("/sys/class/infiniband", os.environ["DEVICE"], "ports/1/hw_counters")
NOBODY = 65534
UDP_CORK = 1
# SEND Only to QPN 2, which no queue pair has; the ICRC does not matter
PACKET = roce.bth(roce.SEND_ONLY, 2, 0) + bytes(64)
# hop-by-hop options: PadN of six bytes
OPTIONS = struct.pack("BBBB4x", 0, 0, 1, 4)


def plain(sock, address):
    sock.sendto(PACKET, (address, roce.ROCE_PORT))


def connected(sock, address):
    sock.connect((address, roce.ROCE_PORT))
    sock.send(PACKET)


def segmented(sock, address):
    sock.setsockopt(socket.SOL_UDP, roce.UDP_SEGMENT, len(PACKET))
    sock.sendto(2 * PACKET, (address, roce.ROCE_PORT))


def corked(sock, address):
    """setsockopt() that turns off UDP_CORK sends the packet, but does not report the error."""
    sock.connect((address, roce.ROCE_PORT))
    sock.setsockopt(socket.SOL_UDP, UDP_CORK, 1)
    sock.send(PACKET[:20])
    sock.send(PACKET[20:])
    sock.setsockopt(socket.SOL_UDP, UDP_CORK, 0)


def fragmented(sock, address):
    sock.sendto(PACKET + bytes(8000), (address, roce.ROCE_PORT))


def mapped(sock, address):
    sock.sendto(PACKET, ("::ffff:" + address, roce.ROCE_PORT))


def extended(sock, address):
    """The kernel requires CAP_NET_RAW for hop-by-hop options even if there is no nhca device."""
    sock.sendmsg([PACKET], [(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, OPTIONS)], 0, (address, roce.ROCE_PORT))


IPV4 = {"a datagram": plain, "a connected socket": connected, "UDP_SEGMENT": segmented, "UDP_CORK": corked,
        "fragments": fragmented, "a mapped address": mapped}
IPV6 = {"a datagram": plain, "a connected socket": connected, "UDP_SEGMENT": segmented,
        "hop-by-hop options": extended}


def ways(address):
    """(name, socket, function, address) of each way to send."""
    six = ":" in address
    for name, send in (IPV6 if six else IPV4).items():
        family = socket.AF_INET6 if six or send is mapped else socket.AF_INET
        yield f"{'IPv6' if six else 'IPv4'}, {name}", socket.socket(family, socket.SOCK_DGRAM), send, address


def attempt(sock, send, address):
    """Sends. Returns 0 or the error."""
    try:
        send(sock, address)
    except OSError as error:
        return error.errno
    return 0


def counted():
    """The number of packets that the device has received and dropped, for any reason."""
    return sum(int(path.read_text()) for path in COUNTERS.glob("rx_*"))


def counted_after(before):
    """Waits up to two seconds until the number of counted packets changes. Returns the difference."""
    deadline = time.monotonic() + 2
    while counted() == before and time.monotonic() < deadline:
        time.sleep(0.02)
    return counted() - before


def main():
    mode, addresses = sys.argv[1], sys.argv[2:]
    report = ktap.Report()
    sockets = [way for address in addresses for way in ways(address)
               if mode in ("privileged", "refused") or way[2] is not extended]
    total = counted()
    if mode == "inherited":
        os.setgroups([])
        os.setuid(NOBODY)
    for name, sock, send, address in sockets:
        before = counted()
        error = attempt(sock, send, address)
        if mode == "refused":
            report.result(f"{mode}: {name}", error == errno.EPERM or send is corked, f"error {error}, not EPERM")
        else:
            good = not error and (mode == "free" or counted_after(before) > 0)
            report.result(f"{mode}: {name}", good, f"error {error}, {counted() - before} packets counted")
        sock.close()
    if mode == "refused":
        time.sleep(0.2)
        report.result("refused: no packet reached the device", counted() == total, f"{counted() - total} did")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
