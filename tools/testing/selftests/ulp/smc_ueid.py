#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Adds a user EID to the kernel's SMC, as `smcr ueid add` does. SMC-R version 2 connects hosts that have a
common user EID."""

import os
import socket
import struct
import sys

NETLINK_GENERIC, NLMSG_ERROR, CONTROL = 16, 2, 16
REQUEST, ACK = 1, 4
GETFAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2
ADD_UEID, ENTRY, LENGTH = 10, 1, 32


def attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def ask(sock, family, command, attributes):
    body = struct.pack("BBH", command, 1, 0) + attributes
    sock.send(struct.pack("IHHII", 16 + len(body), family, REQUEST | ACK, 1, 0) + body)
    answer = sock.recv(65536)
    if struct.unpack_from("H", answer, 4)[0] == NLMSG_ERROR:
        error = -struct.unpack_from("i", answer, 16)[0]
        if error:
            sys.exit(f"smc_ueid: {os.strerror(error)}")
    return answer


def family_id(sock, name):
    answer = ask(sock, CONTROL, GETFAMILY, attribute(FAMILY_NAME, name.encode() + b"\0"))
    at = 20
    while at < len(answer):
        length, kind = struct.unpack_from("HH", answer, at)
        if kind == FAMILY_ID:
            return struct.unpack_from("H", answer, at + 4)[0]
        at += (length + 3) & ~3
    sys.exit(f"smc_ueid: no family {name}")


def main():
    name = family_id(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC), "SMC_GEN_NETLINK")
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    ask(sock, name, ADD_UEID, attribute(ENTRY, sys.argv[1].ljust(LENGTH).encode() + b"\0"))


main()
