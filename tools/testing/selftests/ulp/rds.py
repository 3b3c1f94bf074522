#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests messages and RDMA of RDS sockets over RDMA; both sides check every byte.

    rds.py answer ADDRESS STATE		answers until it is killed; creates the file STATE when it is ready
    rds.py ask ADDRESS PEER WHAT [ARGUMENT]...

WHAT: messages		sends a message of each size, and expects another of the same size back
      stream STATE	has up to 16 messages in flight until the file STATE.stop exists; each must be answered once
      and in order; the file STATE has their number
      read, write	let the peer read or write memory of this process by a key that a message carries
      once		checks that a key is invalid after its first use"""

import ctypes
import errno
import mmap
import os
import pathlib
import random
import socket
import struct
import sys
import time

PORT = 4000
SO_SNDBUFFORCE = 32
SOL_RDS, SO_RDS_TRANSPORT, TRANSPORT_IB = 276, 8, 0
CMSG_ARGS, CMSG_DEST, CMSG_MAP, CMSG_STATUS = 1, 2, 3, 4
TO_PEER, FENCE, INVALIDATE, USE_ONCE, NOTIFY = 1, 2, 4, 8, 0x20
LARGEST = 1 << 20
PAGE = mmap.PAGESIZE
# kind, number of the message (the seed of its bytes), length in bytes
HEADER = struct.Struct("<IIQ")
ECHO, READ, WRITE, DONE = range(4)
SIZES = 0, 1, 63, 4000, 4080, 4096, 8192, 65537, LARGEST - HEADER.size


def pattern(number, size):
    return random.Random(number).randbytes(size)


class Memory:
    """Memory of this process that RDS maps. The memory starts at an odd offset in its first page."""
    OFFSET = 411

    def __init__(self):
        self.pages = mmap.mmap(-1, LARGEST + PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages)) + self.OFFSET

    def fill(self, data):
        self.pages[self.OFFSET:self.OFFSET + len(data)] = data

    def get(self, size):
        return self.pages[self.OFFSET:self.OFFSET + size]


class Socket:
    def __init__(self, address, port):
        self.rds = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
        self.rds.setsockopt(SOL_RDS, SO_RDS_TRANSPORT, TRANSPORT_IB)
        # The send buffer must hold the largest message.
        self.rds.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 * LARGEST)
        self.rds.bind((address, port))
        self.statuses = {}

    def patience(self, seconds):
        limit = struct.pack("ll", seconds, 0)
        self.rds.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.rds.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, peer, kind, number, data=b"", control=()):
        deadline = time.monotonic() + 60
        while True:
            try:
                self.rds.sendmsg([HEADER.pack(kind, number, len(data)), data],
                                 [(SOL_RDS, *one) for one in control], 0, peer)
                return
            except OSError as error:
                # RDS cannot map memory until the connection exists, so wait for it.
                if error.errno not in (errno.ENODEV, errno.EAGAIN) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def receive(self):
        """The sender of the next message, its kind, number and bytes, and the key in it; None for a status only."""
        while True:
            data, controls, _, peer = self.rds.recvmsg(LARGEST, 256)
            key = None
            for level, kind, content in controls:
                assert level == SOL_RDS
                if kind == CMSG_DEST:
                    key, = struct.unpack_from("=Q", content)
                elif kind == CMSG_STATUS:
                    token, status = struct.unpack_from("=Qi", content)
                    self.statuses[token] = status
            if data:
                kind, number, size = HEADER.unpack_from(data)
                assert len(data) == HEADER.size + size
                return peer, kind, number, data[HEADER.size:], key
            return None

    def message(self):
        while True:
            found = self.receive()
            if found:
                return found

    def status(self, token):
        while token not in self.statuses:
            assert not self.receive(), "a message instead of a status"
        return self.statuses.pop(token)


def key_for(memory, size, flags):
    return CMSG_MAP, struct.pack("=QQQQ", memory.address, size, 0, flags)


class Answerer:
    def __init__(self, address):
        self.socket = Socket(address, PORT)
        self.memory = Memory()
        self.token = 0

    def transfer(self, peer, number, key, size, flags):
        self.token += 1
        vector = ctypes.create_string_buffer(struct.pack("=QQ", self.memory.address, size))
        args = struct.pack("=QQQQQQQ", key, 0, size, ctypes.addressof(vector), 1, flags | NOTIFY, self.token)
        self.socket.send(peer, DONE, number, control=[(CMSG_ARGS, args)])
        return self.socket.status(self.token)

    def answer(self):
        keys = {}
        while True:
            peer, kind, number, data, key = self.socket.message()
            if kind == ECHO:
                assert data == pattern(number, len(data)), f"message {number} of {len(data)} bytes is wrong"
                self.socket.send(peer, ECHO, number, pattern(number + 1, len(data)))
                continue
            size, = struct.unpack("=Q", data)
            # RDS passes a key to the program only once, so store it.
            key = keys.setdefault(peer, key) if key is None else key
            keys[peer] = key
            if kind == WRITE:
                self.memory.fill(pattern(number, size))
                status = self.transfer(peer, number, key, size, TO_PEER)
                good = True
            else:
                self.memory.fill(bytes(size))
                status = self.transfer(peer, number, key, size, FENCE)
                good = self.memory.get(size) == pattern(number, size)
            self.socket.send(peer, DONE, number + 1, struct.pack("=iI", status, good))


class Asker:
    def __init__(self, address, peer):
        self.socket = Socket(address, 0)
        self.peer = (peer, PORT)
        self.memory = Memory()

    def expect(self, wanted, number):
        peer, kind, got, data, _ = self.socket.message()
        assert (peer, kind, got) == (self.peer, wanted, number), \
            f"{kind} {got} from {peer}, not {wanted} {number}"
        return data

    def expect_echo(self, number, size):
        assert self.expect(ECHO, number) == pattern(number + 1, size), f"the answer to {number} is wrong"

    def messages(self):
        for number, size in enumerate(SIZES):
            self.socket.send(self.peer, ECHO, number, pattern(number, size))
            self.expect_echo(number, size)

    def stream(self, state):
        state, stop = pathlib.Path(state), pathlib.Path(state + ".stop")
        written = state.with_suffix(".new")
        window, sent, answered = [], 0, 0
        while True:
            while len(window) < 16 and not stop.exists():
                # Most messages are small, and every 16th may have many fragments.
                size = sent * 7919 % (200000 if sent % 16 == 0 else 6000)
                self.socket.send(self.peer, ECHO, sent, pattern(sent, size))
                window.append((sent, size))
                sent += 1
            if not window:
                break
            self.expect_echo(*window.pop(0))
            answered += 1
            if answered % 10 == 0:
                written.write_text(f"{answered}\n")
                written.rename(state)
        print(f"{answered} messages each way")

    def transfers(self, kind):
        # RDS maps memory only when a connection exists, so create it with messages.
        self.messages()
        for number, size in enumerate((1, 8, PAGE, 3 * PAGE + 5, 65536, LARGEST - PAGE, LARGEST), 100):
            self.memory.fill(pattern(number, size) if kind == READ else bytes(size))
            self.socket.send(self.peer, kind, number, struct.pack("=Q", size),
                             [key_for(self.memory, size, TO_PEER | USE_ONCE | INVALIDATE)])
            assert self.expect(DONE, number) == b""
            if kind == WRITE:
                assert self.memory.get(size) == pattern(number, size), f"wrong memory after a write of {size}"
            status, good = struct.unpack("=iI", self.expect(DONE, number + 1))
            assert status == 0 and good, f"{size} bytes: status {status}, good {good}"

    def read(self):
        self.transfers(READ)

    def write(self):
        self.transfers(WRITE)

    def once(self):
        self.write()
        # RDS notices the use of a key in softirq context. A work item invalidates the key ten jiffies later.
        time.sleep(1)
        size = 8192
        before = pattern(7, size)
        self.memory.fill(before)
        # Request 200 has no key, so the answerer uses the previous key of this peer.
        self.socket.send(self.peer, WRITE, 200, struct.pack("=Q", size))
        # Skip the message DONE with number 200, if it arrives: only the status, 201, must arrive.
        while True:
            _, kind, number, data, _ = self.socket.message()
            assert kind == DONE
            if number == 201:
                break
        status, _ = struct.unpack("=iI", data)
        assert status, "a write by a used key has succeeded"
        assert self.memory.get(size) == before, "a write by a used key has changed memory"
        self.messages()


def main():
    if sys.argv[1] == "answer":
        answerer = Answerer(sys.argv[2])
        # RDS drops messages for a port that is not bound. The port is bound now, so create the file STATE.
        pathlib.Path(sys.argv[3]).touch()
        answerer.answer()
    else:
        asker = Asker(sys.argv[2], sys.argv[3])
        asker.socket.patience(int(os.environ.get("PATIENCE", "60")))
        getattr(asker, sys.argv[4])(*sys.argv[5:])


if __name__ == "__main__":
    main()
