# SPDX-License-Identifier: GPL-2.0
"""`lab shell`: a terminal on a node, through a virtio console and a unix socket."""

import os
import select
import socket
import sys
import termios
import time
import tty

import paths
import run
import say

LEAVE = b"\x1d"  # ctrl-]


def serve(options):
    """Boot the nodes, put this terminal on node 1, end everything when the person leaves."""
    if not sys.stdin.isatty():
        raise say.LabError("lab shell needs a terminal; use lab run for scripts")
    with run.Lab(options) as lab:
        lab.prepare()
        lab.boot()
        for one in lab.guests:
            while not one.ready_file.exists():
                if not one.alive() or one.status() is not None or \
                        time.monotonic() - one.started > run.BOOT_SECONDS[options.init]:
                    return run.verdict(lab, {one.number: "the guest did not come up " +
                                             one.complaint()})
                time.sleep(0.1)
        me = os.path.relpath(paths.LAB / "lab")
        for one in lab.guests[1:]:
            print(f"lab: for node {one.number}, in another terminal: {me} attach {one.number}")
        print("lab: this is node 1; ctrl-] or exit ends the guests")
        _bridge(lab.folder, 1)
        return run.verdict(lab, {})


def attach_latest(node):
    """Attach to a node of the newest `lab shell` that is still running."""
    found = sorted(paths.RUNS.glob(f"*/tty.{node}"), key=lambda path: path.stat().st_mtime)
    found = [path for path in found if not path.parent.is_symlink()]
    if not found:
        raise say.LabError(f"no running lab shell has a node {node}")
    if not sys.stdin.isatty():
        raise say.LabError("lab attach needs a terminal")
    print(f"lab: this is node {node}; ctrl-] leaves it running")
    _bridge(found[-1].parent, node)
    return 0


def _bridge(folder, node):
    """Join this terminal and the node's console until ctrl-], or until its shell has ended."""
    wire = socket.socket(socket.AF_UNIX)
    # Unix socket names are short, folders are not: go there for the connect.
    here = os.getcwd()
    os.chdir(folder)
    try:
        wire.connect(f"tty.{node}")
    except OSError as error:
        raise say.LabError(f"cannot attach to node {node}: {error.strerror}") from error
    finally:
        os.chdir(here)
    size = os.get_terminal_size()
    (folder / f"ctl/size.{node}").write_text(f"{size.lines} {size.columns}\n")
    wire.sendall(b"\n")  # the prompt that the shell printed before we came
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        while not (folder / f"ctl/status.{node}").exists():
            ready, _, _ = select.select([0, wire], [], [], 0.5)
            if wire in ready:
                data = wire.recv(65536)
                if not data:
                    break
                os.write(1, data)
            if 0 in ready:
                data = os.read(0, 4096)
                if LEAVE in data or not data:
                    break
                wire.sendall(data)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        wire.close()
        print()
