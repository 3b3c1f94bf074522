# SPDX-License-Identifier: GPL-2.0
"""KVM or emulation: decided by booting a guest once and remembering how it went."""

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


def _qemu_version():
    return subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0]


def choose(image):
    """Does KVM boot a guest on this machine?"""
    # What may change the answer: another kernel or QEMU, or /dev/kvm coming or going.
    here = {"kernel": platform.release(), "qemu": _qemu_version(),
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
    # Emulated rep movsb goes byte by byte and would distort every copy: hide that it is fast. And
    # no five-level page tables: for a moment of its boot a kernel forgets that its CPU has them,
    # and KASAN reports whatever an interrupt touches then.
    if clock == "instructions":
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,-erms,-la57"]
    if kvm:
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-la57"]


def _probe(image):
    say.note(f"testing KVM by booting a guest ({PROBE_SECONDS} s at most)")
    temporary = paths.fresh(paths.STATE / "tmp" / "kvm-probe")
    archive = temporary / "initrd"
    initramfs.write_probe(image, archive, MARK)
    command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot", "-m", "256",
               *flags(True, None), "-kernel", str(initramfs.kernel_file(image.trees[0], image.kernel)),
               "-initrd", str(archive), "-append", "console=ttyS0 panic=-1", "-serial", "stdio"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=False,
                              stdin=subprocess.DEVNULL)
        works = MARK.encode() in done.stdout
    except subprocess.TimeoutExpired:
        works = False
    say.note("KVM works" if works else "KVM cannot boot a guest here: guests are emulated")
    return works
