# SPDX-License-Identifier: GPL-2.0
"""The folders of the lab, locks on their content, and the tools that the host must have."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import time

import say

LAB = pathlib.Path(__file__).resolve().parent
TESTING = LAB.parent
ROOT = TESTING.parent.parent
BUILD = pathlib.Path(os.environ.get("NHCA_BUILD") or ROOT / "build").resolve()
STATE = BUILD / "lab"
IMAGES = STATE / "images"
KERNELS = STATE / "kernels"
BUILDS = STATE / "builds"
RUNS = STATE / "runs"
SOURCES = BUILD / "src"


def search_path():
    """PATH with the sbin folders, which a plain su does not add."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


def have(name):
    """True if this machine has the program, or the file if the name is a path."""
    return os.path.exists(name) if name.startswith("/") else bool(shutil.which(name, path=search_path()))


def missing_packages():
    """The Debian packages of the table host-packages that this machine lacks. `make deps` reads the same table."""
    table = (LAB / "host-packages").read_text().splitlines()
    pairs = [line.split() for line in table if line and not line.startswith("#")]
    return sorted({package for name, package in pairs if not have(name)})


def need_tools():
    missing = missing_packages()
    if missing:
        raise say.LabError("these Debian packages are missing: " + " ".join(missing) +
                           " (`make deps` installs them)")


def need_root():
    if os.geteuid() != 0:
        raise say.LabError("the lab needs root, for image trees and builds in them; run it with sudo")


@contextlib.contextmanager
def lock(name):
    """A lock between processes, so that only one creates a cached object and the others wait for it."""
    folder = STATE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say.note(f"waiting for another lab that creates {name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def slot():
    """Limits the runs on this machine to the number of CPUs, or to LAB_SLOTS.

    With more runs than CPUs, emulated guests would time out. So a run waits for a free slot."""
    places = int(os.environ.get("LAB_SLOTS") or os.cpu_count())
    told = False
    with contextlib.ExitStack() as stack:
        while True:
            for number in range(places):
                # The lock is for the whole machine, because all checkouts share its CPUs.
                handle = open(f"/run/lock/nhca-lab.{number}", "w", encoding="ascii")
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    handle.close()
                    continue
                stack.enter_context(handle)
                yield
                return
            if not told:
                say.note(f"{places} other runs use the CPUs; waiting for one to end")
                told = True
            time.sleep(0.5)


def fresh(folder):
    """Creates an empty folder, and removes what an interrupted run left there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def replace(temporary, final):
    """Renames a finished folder to its final name, so that no other process finds an incomplete one."""
    old = final.with_name(final.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    temporary.rename(final)
    shutil.rmtree(old, ignore_errors=True)
