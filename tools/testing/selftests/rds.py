#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Messages and RDMA of RDS sockets over RDMA, every byte checked on both sides.

    rds.py answer ADDRESS STATE		until it is killed; the file STATE is there when it can be asked
    rds.py ask ADDRESS PEER WHAT [ARGUMENT]...

WHAT: messages		one of each size there and another one back
      stream STATE	many at a time, in order and once, until the file STATE.stop is there; STATE counts them
      read, write	the peer reads or writes memory of this process by a key that came with a message
      once		a key that was used is good for nothing more"""

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
# kind, number of the message (the seed of its bytes), bytes
HEADER = struct.Struct("<IIQ")
ECHO, READ, WRITE, DONE = range(4)
SIZES = 0, 1, 63, 4000, 4080, 4096, 8192, 65537, LARGEST - HEADER.size


def pattern(number, size):
    return random.Random(number).randbytes(size)


class Memory:
    """Pages of this process, used from an odd offset on, that RDS maps."""
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
        # the largest message has to fit in
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
                # no connection to map memory for: it is being made
                if error.errno not in (errno.ENODEV, errno.EAGAIN) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def receive(self):
        """Whom a message is from, its kind, number and bytes, and the key in it."""
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
            assert not self.receive(), "a message in place of a status"
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
            # a key is told once
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
                # mostly small, now and then of many fragments
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
        # RDS maps memory for a connection that is there
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
        # RDS hears of a key's use in an interrupt, and leaves invalidating it to work ten jiffies later
        time.sleep(1)
        size = 8192
        before = pattern(7, size)
        self.memory.fill(before)
        # without a key: the answerer takes the one from before
        self.socket.send(self.peer, WRITE, 200, struct.pack("=Q", size))
        # the DONE that rode with the write may or may not come
        while True:
            _, kind, number, data, _ = self.socket.message()
            assert kind == DONE
            if number == 201:
                break
        status, _ = struct.unpack("=iI", data)
        assert status, "a key that was used up has been good for a write"
        assert self.memory.get(size) == before, "a write by a key that was used up has changed memory"
        self.messages()


def main():
    if sys.argv[1] == "answer":
        answerer = Answerer(sys.argv[2])
        # RDS drops what comes for a port that nobody has
        pathlib.Path(sys.argv[3]).touch()
        answerer.answer()
    else:
        asker = Asker(sys.argv[2], sys.argv[3])
        asker.socket.patience(int(os.environ.get("PATIENCE", "60")))
        getattr(asker, sys.argv[4])(*sys.argv[5:])


if __name__ == "__main__":
    main()
