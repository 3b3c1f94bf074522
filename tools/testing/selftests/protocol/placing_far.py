#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tests WRITE, FLUSH and ATOMIC WRITE (IBTA A19) to the memory of another node.

    placing_far.py GID_INDEX PORT [-f]              owns the memory: waits for each word and checks the bytes that
                                                    were written before it
    placing_far.py GID_INDEX PORT [-f] HOST         writes bytes and then a word, and waits until the owner has
                                                    read the word

With -f a FLUSH between the bytes and the word makes the bytes visible."""

import os
import socket
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QPAttr, QPCap, QPEx, QPInitAttrEx
from pyverbs.wr import SGE

SIZE = 20000
ROUNDS = 30
PATIENCE = 20
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_FLUSH_GLOBAL)
HELLO = struct.Struct("!II48sQI")
FLUSH = "-f" in sys.argv
KINDS = (e.IBV_WC_RDMA_WRITE, *(e.IBV_WC_FLUSH,) * 2 * FLUSH, e.IBV_WC_ATOMIC_WRITE)


def meet(port, host):
    if host:
        return socket.create_connection((host, port), PATIENCE)
    with socket.create_server(("", port)) as listener:
        listener.settimeout(PATIENCE)
        sock = listener.accept()[0]
    sock.settimeout(PATIENCE)
    return sock


class End:
    def __init__(self, sock, index):
        context = Context(name=os.environ["RDMA_DEV"])
        pd = PD(context)
        self.mr = MR(pd, SIZE + 8, ACCESS)
        self.cq = CQ(context, 16)
        self.qp = QPEx(context, QPInitAttrEx(
            qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, pd=pd, cap=QPCap(max_send_wr=8, max_inline_data=8),
            sq_sig_all=1, comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            send_ops_flags=e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_FLUSH |
            e.IBV_QP_EX_WITH_ATOMIC_WRITE))
        gid = context.query_gid(1, index).gid.encode()
        sock.sendall(HELLO.pack(self.qp.qp_num, 17, gid, self.mr.buf, self.mr.rkey))
        qpn, psn, gid, self.address, self.rkey = HELLO.unpack(sock.recv(HELLO.size, socket.MSG_WAITALL))
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS & ~e.IBV_ACCESS_LOCAL_WRITE
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn, attr.path_mtu = qpn, psn, 17, e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
        route = GlobalRoute(dgid=GID(gid.rstrip(b"\0").decode()), sgid_index=index)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attr)
        self.keep = context, pd

    def done(self):
        """Waits for the next completion. Returns its opcode."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            count, found = self.cq.poll()
            if count:
                if found[0].status:
                    raise SystemExit(f"completion with status {found[0].status}")
                return found[0].opcode
        raise SystemExit("no completion")


def ask(end, sock):
    for number in range(1, ROUNDS + 1):
        end.mr.write(bytes([number]) * SIZE, SIZE)
        end.qp.wr_start()
        end.qp.wr_id = number
        end.qp.wr_rdma_write(end.rkey, end.address)
        end.qp.wr_set_sge(SGE(end.mr.buf, SIZE, end.mr.lkey))
        if FLUSH:
            end.qp.wr_flush(end.rkey, end.address, SIZE, e.IBV_FLUSH_GLOBAL, e.IBV_FLUSH_RANGE)
            end.qp.wr_flush(end.rkey, 0, 0, e.IBV_FLUSH_GLOBAL, e.IBV_FLUSH_MR)
        end.qp.wr_atomic_write(end.rkey, end.address + SIZE, struct.pack("=Q", number))
        end.qp.wr_complete()
        for kind in KINDS:
            found = end.done()
            if found != kind:
                raise SystemExit(f"round {number}: a completion of {found}, not {kind}")
        if sock.recv(1) != b"y":
            raise SystemExit(f"round {number}: the other end has not seen it")


def own(end, sock):
    for number in range(1, ROUNDS + 1):
        limit = time.monotonic() + PATIENCE
        while end.mr.read(8, SIZE) != struct.pack("=Q", number):
            if time.monotonic() > limit:
                raise SystemExit(f"round {number}: no word arrived: {end.mr.read(8, SIZE)}, {end.mr.read(8, 0)}")
        if end.mr.read(SIZE, 0) != bytes([number]) * SIZE:
            raise SystemExit(f"round {number}: the word arrived before the bytes")
        sock.sendall(b"y")


def main():
    index, port, host = ([word for word in sys.argv[1:] if word != "-f"] + [None])[:3]
    index, port = int(index), int(port)
    sock = meet(port, host)
    end = End(sock, index)
    sock.sendall(b"r")
    sock.recv(1)
    (ask if host else own)(end, sock)
    print(f"{ROUNDS} rounds")


main()
