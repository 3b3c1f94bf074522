# SPDX-License-Identifier: GPL-2.0
"""`lab shell`: connects a terminal to a node, through a virtio console and a unix socket."""

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
    """Boots the nodes, connects this terminal to node 1, and ends the guests when the user leaves."""
    if not sys.stdin.isatty():
        raise say.LabError("lab shell needs a terminal; use lab run for scripts")
    with run.Lab(options) as lab:
        lab.prepare()
        lab.boot()
        for one in lab.guests:
            while not one.ready_file.exists():
                if not one.alive() or one.status() is not None or \
                        time.monotonic() - one.started > run.BOOT_SECONDS[options.init]:
                    return run.verdict(lab, {one.number: "the guest did not start " +
                                             one.complaint()})
                time.sleep(0.1)
        me = os.path.relpath(paths.LAB / "lab")
        for one in lab.guests[1:]:
            print(f"lab: for node {one.number}, in another terminal: {me} attach {one.number}")
        print("lab: this is node 1; ctrl-] or exit ends the guests")
        _bridge(lab.folder, 1)
        return run.verdict(lab, {})


def attach_latest(node):
    """Connects this terminal to a node of the newest running `lab shell`."""
    found = sorted(paths.RUNS.glob(f"*/tty.{node}"), key=lambda path: path.stat().st_mtime)
    found = [path for path in found if not path.parent.is_symlink()]
    if not found:
        raise say.LabError(f"no running lab shell has a node {node}")
    if not sys.stdin.isatty():
        raise say.LabError("lab attach needs a terminal")
    print(f"lab: this is node {node}; ctrl-] detaches and leaves it running")
    _bridge(found[-1].parent, node)
    return 0


def _bridge(folder, node):
    """Connects this terminal to the node's console until ctrl-], or until its shell ends."""
    wire = socket.socket(socket.AF_UNIX)
    # The path may be too long for a unix socket, so connect from inside the folder.
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
    wire.sendall(b"\n")  # the shell printed its prompt earlier: get another one
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
