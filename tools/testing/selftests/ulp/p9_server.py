#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Serves the files of a folder by 9P2000.L over RDMA, as much of it as p9.sh needs, because Debian has no such server.

    p9_server.py IP PORT FOLDER    serve one connection. The server does not notice when the client has gone; kill it"""

import errno
import os
import stat
import struct
import sys

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.qp import QPCap, QPInitAttr

MSIZE, DEPTH = 65536, 64
# requests by 9P message type
REQUESTS = {8: "statfs", 12: "lopen", 14: "lcreate", 24: "getattr", 26: "setattr", 40: "readdir", 50: "fsync",
            76: "unlinkat", 100: "version", 104: "attach", 108: "flush", 110: "walk", 116: "read",
            118: "write", 120: "clunk"}
RLERROR = 7
SET_SIZE = 1 << 3


def string(data, at):
    length = struct.unpack_from("<H", data, at)[0]
    return data[at + 2:at + 2 + length].decode(), at + 2 + length


def text(value):
    return struct.pack("<H", len(value.encode())) + value.encode()


def qid(info):
    return struct.pack("<BIQ", 0x80 if stat.S_ISDIR(info.st_mode) else 0, 0, info.st_ino)


class Files:
    """The fids of a connection: path and, if it is open, descriptor of each."""

    def __init__(self, folder):
        self.folder, self.paths, self.descriptors = folder, {}, {}

    def answer(self, kind, body):
        if kind not in REQUESTS:
            raise OSError(errno.EOPNOTSUPP, "")
        return getattr(self, REQUESTS[kind])(body)

    def version(self, body):
        return struct.pack("<I", min(MSIZE, struct.unpack_from("<I", body)[0])) + text("9P2000.L")

    def attach(self, body):
        fid = struct.unpack_from("<I", body)[0]
        self.paths[fid] = self.folder
        return qid(os.lstat(self.folder))

    def walk(self, body):
        fid, new, count = struct.unpack_from("<IIH", body)
        path, at, qids = self.paths[fid], 10, b""
        for _ in range(count):
            name, at = string(body, at)
            path = os.path.join(path, name)
            qids += qid(os.lstat(path))
        self.paths[new] = path
        return struct.pack("<H", count) + qids

    def getattr(self, body):
        info = os.lstat(self.paths[struct.unpack_from("<I", body)[0]])
        times = [int(value) for value in (info.st_atime, 0, info.st_mtime, 0, info.st_ctime, 0, 0, 0)]
        return struct.pack("<Q", 0x7ff) + qid(info) + struct.pack(
            "<IIIQQQQQ8QQQ", info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_rdev, info.st_size,
            4096, info.st_blocks, *times, 0, 0)

    def setattr(self, body):
        fid, valid, _, _, _, size = struct.unpack_from("<IIIIIQ", body)
        if valid & SET_SIZE:
            os.truncate(self.paths[fid], size)
        return b""

    def lopen(self, body):
        fid, flags = struct.unpack_from("<II", body)
        self.descriptors[fid] = os.open(self.paths[fid], flags & (os.O_ACCMODE | os.O_TRUNC))
        return qid(os.lstat(self.paths[fid])) + bytes(4)

    def lcreate(self, body):
        fid = struct.unpack_from("<I", body)[0]
        name, at = string(body, 4)
        flags, mode, _ = struct.unpack_from("<III", body, at)
        self.paths[fid] = os.path.join(self.paths[fid], name)
        self.descriptors[fid] = os.open(self.paths[fid], flags & os.O_ACCMODE | os.O_CREAT, mode)
        return qid(os.lstat(self.paths[fid])) + bytes(4)

    def read(self, body):
        fid, offset, count = struct.unpack_from("<IQI", body)
        data = os.pread(self.descriptors[fid], min(count, MSIZE - 24), offset)
        return struct.pack("<I", len(data)) + data

    def write(self, body):
        fid, offset, count = struct.unpack_from("<IQI", body)
        return struct.pack("<I", os.pwrite(self.descriptors[fid], body[16:16 + count], offset))

    def readdir(self, body):
        fid, offset, _ = struct.unpack_from("<IQI", body)
        names = sorted(os.listdir(self.paths[fid]))[offset:offset + 100]
        entries = b"".join(qid(os.lstat(os.path.join(self.paths[fid], name))) +
                           struct.pack("<QB", offset + place + 1, 0) + text(name)
                           for place, name in enumerate(names))
        return struct.pack("<I", len(entries)) + entries

    def statfs(self, _):
        return struct.pack("<IIQQQQQQI", 0x01021997, 4096, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 0, 255)

    def fsync(self, body):
        os.fsync(self.descriptors[struct.unpack_from("<I", body)[0]])
        return b""

    def unlinkat(self, body):
        fid = struct.unpack_from("<I", body)[0]
        os.unlink(os.path.join(self.paths[fid], string(body, 4)[0]))
        return b""

    def flush(self, _):
        return b""

    def clunk(self, body):
        fid = struct.unpack_from("<I", body)[0]
        self.paths.pop(fid, None)
        if fid in self.descriptors:
            os.close(self.descriptors.pop(fid))
        return b""


def reply(files, request):
    _, kind, tag = struct.unpack_from("<IBH", request)
    try:
        kind, body = kind + 1, files.answer(kind, request[7:])
    except (OSError, KeyError) as error:
        kind, body = RLERROR, struct.pack("<I", getattr(error, "errno", 0) or errno.EBADF)
    return struct.pack("<IBH", 7 + len(body), kind, tag) + body


def serve(client, folder):
    files = Files(folder)
    receives = [client.reg_msgs(MSIZE) for _ in range(DEPTH)]
    out = client.reg_msgs(MSIZE)
    for region in receives:
        client.post_recv(region)
    client.accept()
    while True:
        done = client.get_recv_comp()
        if done is None:
            continue
        if done.status != e.IBV_WC_SUCCESS:
            return
        region = receives.pop(0)
        answer = reply(files, region.read(done.byte_len, 0))
        client.post_recv(region)
        receives.append(region)
        out.write(answer, len(answer))
        client.post_send(out, length=len(answer))
        while (done := client.get_send_comp()) is None:
            pass
        if done.status != e.IBV_WC_SUCCESS:
            return


def main():
    ip, port, folder = sys.argv[1:]
    cap = QPCap(max_recv_wr=DEPTH, max_send_wr=DEPTH)
    init = QPInitAttr(qp_type=e.IBV_QPT_RC, cap=cap)
    address = AddrInfo(src=ip, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
    server = CMID(creator=address, qp_init_attr=init)
    server.listen()
    print("listening", flush=True)
    serve(server.get_request(), folder)


main()
