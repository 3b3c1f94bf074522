# SPDX-License-Identifier: GPL-2.0
"""Guests of `--machine uml`: each is a user-mode Linux, which runs at native speed.

A guest is a process of the host with its own kernel, so a test of millions of rounds needs no KVM. It runs in its
own mount and pid namespaces, in a root with little more than the image's /usr. In this way the kernel finds the
C library that it was linked with, its hostfs reaches only the folders that other guests mount by 9p, and its helper
processes end with it."""

import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys

import guest
import network
import paths
import question
import say

# The vector driver of user-mode Linux does not stop its transmit queue: it drops packets when the queue is full. So the
# socket buffer of a cable (CABLE_BYTES) holds more bytes than can be in flight. The receive queue (DEPTH) holds the
# packets that arrive while the host does not run the guest's CPU.
CABLE_BYTES = 64 << 20
DEPTH = 1024
SO_SNDBUFFORCE = 32
# magic, version, length and text of a request to the management console
MCONSOLE = struct.Struct("=3I512s")
ANSWER_SECONDS = 5

SCRIPT = """
set -e
ulimit -c 0
mount -t tmpfs -o mode=755,size=100% tmpfs {top}
cd {top}
mkdir usr dev proc tmp run testing disks
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
mount --bind -o ro {tree}/usr usr
mount --bind /dev dev
mount -t proc proc proc
mount --bind {run} run
mount --bind -o ro {testing} testing
{disks}
touch linux
mount --bind {kernel} linux
# No exec: the shell stays the first process of the pid namespace. The kernel would ignore some of the signals that it
# sends to itself if it were the first process.
chroot . /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp TMPDIR=/tmp /linux {words} || exit $?
"""


def check(options):
    """Raises an error for options that these guests do not support, before anything is created."""
    refused = {
        "lab shell": options.shell,
        f"--release {options.release}": options.release != "trixie",
        f"--clock {options.clock}": options.clock != "real",
        f"--init {options.init}": options.init != "lab",
        "--debs": options.debs,
        "--profile": options.profile,
    }
    for what, asked in refused.items():
        if asked:
            raise say.LabError(f"--machine uml does not work with {what}")


def disks(count):
    """The names of the guest's disks."""
    return [f"ubd{chr(ord('a') + index)}" for index in range(count)]


def megahertz():
    """The CPU frequency in /proc/cpuinfo of the host. perftest needs it to convert cycles to time."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        found = re.search(r"(?m)^cpu MHz\s*: (\S+)", text.read())
    return found.group(1) if found else ""


class Cables:
    """The sockets of the guests' network cards. Two nodes share a pair of sockets. A single node, and three or more
    nodes, are connected with the process switch.py."""

    def __init__(self, nodes):
        pairs = [self._pair() for _ in range(1 if nodes == 2 else nodes)]
        self._plugs = pairs[0] if nodes == 2 else [guests for guests, _ in pairs]
        self._others = [] if nodes == 2 else [other for _, other in pairs]
        self._process = None

    @staticmethod
    def _pair():
        """Two connected sockets that keep frame boundaries."""
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in pair:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, CABLE_BYTES)
        return pair

    def plug(self, node):
        return self._plugs[node - 1]

    def connect(self):
        """Starts the process. For a single node, it discards all frames: frames that stay in the socket would block
        the network card."""
        if self._others:
            for other in self._others:
                other.setblocking(True)
            numbers = [other.fileno() for other in self._others]
            self._process = subprocess.Popen(
                [sys.executable, "-B", str(paths.LAB / "switch.py"), *map(str, numbers)], stdin=subprocess.DEVNULL,
                pass_fds=numbers, start_new_session=True, preexec_fn=say.die_with_parent)
        for end in [*self._plugs, *self._others]:
            end.close()

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()


class Guest(guest.Guest):
    def __init__(self, number, run):
        super().__init__(number, run)
        self.readers = []

    def command(self, tree, made, initrd, layers, cable, options):
        """The complete command: unshare starts a shell in new namespaces, which mounts the root and runs the kernel."""
        self.plugs = [self._reader(self.console), self._reader(self.output)]
        console, output = (plug.fileno() for plug in self.plugs)
        names = disks(len(layers))
        words = [f"mem={options.memory}M", f"ncpus={options.cpus}", "seccomp=on",
                 f"umid=node{self.number}", "uml_dir=/run/uml",
                 "con=null", "ssl=null", f"con0=fd:{console}", f"con1=fd:{output}",
                 *(f"ubd{index}r=/disks/{name}" for index, name in enumerate(names)),
                 f"initrd=/run/{initrd.name}", "rdinit=/init", "root=/dev/ram0",
                 f"vec0:transport=fd,fd={cable.fileno()},depth={DEPTH},mtu={options.mtu},"
                 f"mac={network.mac(self.number)}",
                 "panic=-1", "oops=panic", "loglevel=8", "sysrq_always_enabled", "lab.machine=uml",
                 f"lab.node={self.number}", *shlex.split(options.append)]
        mounts = [f"touch disks/{name}; mount --bind -o ro {shlex.quote(str(layer))} disks/{name}"
                  for name, layer in zip(names, layers)]
        top = paths.STATE / "tmp/uml"
        top.mkdir(parents=True, exist_ok=True)
        script = SCRIPT.format(
            top=shlex.quote(str(top)), tree=shlex.quote(str(tree)), run=shlex.quote(str(self.run)),
            testing=shlex.quote(str(paths.TESTING)), kernel=shlex.quote(str(made)),
            disks="\n".join(mounts), words=shlex.join(words))
        # The kernel is killed with the first process of its pid namespace, which is killed with the lab.
        return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                "--kill-child=SIGKILL", "sh", "-c", script]

    def _reader(self, path):
        """An end of a socket whose other end is copied to a file. A console cannot be a plain file."""
        ours, theirs = socket.socketpair()
        with open(path, "wb") as sink:
            self.readers.append(subprocess.Popen(["cat"], stdin=ours, stdout=sink,
                                                 start_new_session=True))
        ours.close()
        return theirs

    def start(self, command, sockets):
        super().start(command, [*self.plugs, *sockets])
        for plug in self.plugs:
            plug.close()

    def complaint(self):
        """The error message of the init, or the last line of an ended process. A running process also prints lines
        that are no errors, so it has no complaint."""
        if self.error_file.is_file():
            return super().complaint()
        return " ".join(say.last_lines(self.run / f"qemu.{self.number}", 1)) if not self.alive() else ""

    def ask(self):
        """Like question.ask(), through the management console of user-mode Linux."""
        path = self.run / f"uml/node{self.number}/mconsole"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            # The console replies to the sender's address. An empty name makes the host choose one.
            wire.bind("")
            wire.settimeout(ANSWER_SECONDS)
            # The path may be too long for a unix socket, so go through a file descriptor of the folder.
            here = os.open(path.parent, os.O_PATH)
            try:
                for key in question.KEYS:
                    text = f"sysrq {key}".encode()
                    wire.sendto(MCONSOLE.pack(0xcafebabe, 2, len(text), text),
                                f"/proc/self/fd/{here}/mconsole")
                    wire.recv(4096)
            except OSError:
                return
            finally:
                os.close(here)

    def stop(self):
        """Kills the guest: it has nothing to write back, and power-off with several CPUs may crash."""
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for reader in self.readers:
            try:
                reader.wait(timeout=5)
            except subprocess.TimeoutExpired:
                reader.kill()
                reader.wait()
        self.readers = []
