# SPDX-License-Identifier: GPL-2.0
"""Finds out what a guest that does not end is doing, through QEMU's monitor and the serial console.

The output of the magic SysRq key is in the kernel log, and the registers are in monitor.N of the run's folder.
If the kernel does not answer, the registers show where its CPUs are."""

import os
import re
import socket
import time

ANSWER_SECONDS = 15
QUIET_SECONDS = 2
SHOWN = 45
# SysRq keys: backtraces of all CPUs, tasks that sleep uninterruptibly, all tasks
KEYS = "lwt"


def ask(guest):
    """Makes the guest print its state at the end of its console log."""
    registers = guest.run / f"monitor.{guest.number}"
    with _connected(guest, "monitor") as monitor, _connected(guest, "serial") as serial:
        if not monitor or not serial:
            return
        monitor.sendall(b"info registers -a\ninfo network\n")
        registers.write_bytes(_read(monitor, QUIET_SECONDS))
        for key in KEYS:
            monitor.sendall(b"chardev-send-break console\n")
            _read(monitor, 0.2)
            serial.sendall(key.encode())
            _until_quiet(guest.console)


def summary(guest, begin):
    """The most important lines: what the CPUs do, and which tasks run or are blocked."""
    with open(guest.console, "rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").splitlines()
    found = [line for line in lines if re.search(
        r"sysrq:|RIP: 0010|task:.* state:[RD]|\] +(?:\[<[0-9a-f]+>\] )?[a-z_][\w.]+\+0x", line)]
    if not found:
        found = ["the kernel does not answer SysRq"]
        registers = guest.run / f"monitor.{guest.number}"
        if registers.exists():
            found += re.findall(r"(?m)^RIP=.*$", registers.read_text(errors="replace"))
    return found[:SHOWN]


class _connected:
    """A connection to a unix socket in the run's folder; None if there is none. The path may be too long for a unix
    socket, so connect from inside the folder."""

    def __init__(self, guest, name):
        self.path = guest.run / f"{name}.{guest.number}.sock"
        self.socket = None

    def __enter__(self):
        here = os.getcwd()
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(5)
        os.chdir(self.path.parent)
        try:
            wire.connect(self.path.name)
            self.socket = wire
        except OSError:
            wire.close()
        finally:
            os.chdir(here)
        return self.socket

    def __exit__(self, *error):
        if self.socket:
            self.socket.close()
        # QEMU may end in the middle of an answer. Use what has arrived.
        return bool(error[0]) and issubclass(error[0], OSError)


def _read(wire, quiet):
    """Reads until no byte has arrived for `quiet` seconds, at most ANSWER_SECONDS."""
    data = b""
    wire.settimeout(quiet)
    end = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < end:
        try:
            part = wire.recv(65536)
        except TimeoutError:
            break
        if not part:
            break
        data += part
    wire.settimeout(5)
    return data


def _until_quiet(path):
    end = time.monotonic() + ANSWER_SECONDS
    size, since = path.stat().st_size, time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.1)
        if path.stat().st_size != size:
            size, since = path.stat().st_size, time.monotonic()
