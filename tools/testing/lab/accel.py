# SPDX-License-Identifier: GPL-2.0
"""Decides between KVM and emulation: boots a guest once under KVM and stores the result."""

import json
import os
import platform
import subprocess

import initramfs
import paths
import say

PROBE_SECONDS = 20
ANSWER = paths.STATE / "accel.json"
MARK = "lab: kvm works"


def qemu_version():
    return subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0]


def choose(image):
    """True if KVM can boot a guest on this machine."""
    # The stored result is valid only for this kernel, this QEMU and this access to /dev/kvm.
    here = {"kernel": platform.release(), "qemu": qemu_version(),
            "device": os.access("/dev/kvm", os.R_OK | os.W_OK)}
    with paths.lock("accel"):
        try:
            known = json.loads(ANSWER.read_text())
        except (OSError, ValueError):
            known = {}
        if known.get("here") != here:
            works = here["device"] and _probe(image)
            known = {"here": here, "kvm": works}
            ANSWER.parent.mkdir(parents=True, exist_ok=True)
            ANSWER.write_text(json.dumps(known))
    return known["kvm"]


def flags(kvm, clock):
    # -erms: QEMU emulates rep movsb byte by byte, which would slow down every copy. Without the flag the kernel does
    # not use rep movsb.
    # -la57: for a short part of its boot a kernel has not yet detected that its CPU uses five-level page tables. During
    # this time KASAN reports valid memory accesses of interrupts.
    if clock == "instructions":
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,-erms,-la57"]
    if kvm:
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-la57"]


def kernel_options(kvm):
    """Options on the kernel's command line that make a guest fast."""
    # Turn off randomized addresses: QEMU translates code for one virtual address. With random addresses it would
    # translate a program and its libraries again at each start, and a start would take four times as long.
    return "" if kvm else "norandmaps"


def _probe(image):
    say.note(f"testing KVM by booting a guest ({PROBE_SECONDS} s at most)")
    temporary = paths.fresh(paths.STATE / "tmp" / "kvm-probe")
    archive = temporary / "initrd"
    initramfs.write_probe(image, archive, MARK)
    command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot", "-m", "256",
               *flags(True, None), "-kernel", str(initramfs.kernel_file(image.kernel_tree, image.kernel)),
               "-initrd", str(archive), "-append", "console=ttyS0 panic=-1", "-serial", "stdio"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=False,
                              stdin=subprocess.DEVNULL)
        works = MARK.encode() in done.stdout
    except subprocess.TimeoutExpired:
        works = False
    say.note("KVM works" if works else "KVM cannot boot a guest on this machine: guests are emulated")
    return works
