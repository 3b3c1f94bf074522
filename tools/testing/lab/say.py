# SPDX-License-Identifier: GPL-2.0
"""Messages of the lab: progress lines with the elapsed time, and errors in one sentence."""

import os
import signal
import subprocess
import sys
import time

START = time.monotonic()
HEARTBEAT = 10.0
quiet = False


class LabError(Exception):
    """An error of the user or the machine. Its text is the complete message."""


def note(text):
    """Prints a progress line on stderr, with the seconds since the lab started."""
    if not quiet:
        print(f"lab: [{time.monotonic() - START:5.0f} s] {text}", file=sys.stderr, flush=True)


def last_lines(path, count):
    try:
        with open(path, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 65536))
            return log.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def die_with_parent():
    """For a child process: makes the kernel kill the child when the lab ends, even by SIGKILL."""
    import ctypes  # noqa: PLC0415 - only the child needs it
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run_logged(what, argv, log, **popen):
    """Runs a command that may take long, with its output in a log file and a progress line every ten seconds.

    Raises LabError with the end of the log when the command fails."""
    begun = time.monotonic()
    beat = begun
    note(what)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as sink:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                 stderr=subprocess.STDOUT, preexec_fn=die_with_parent, **popen)
        try:
            while True:
                try:
                    status = child.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    pass
                if time.monotonic() - beat >= HEARTBEAT:
                    beat = time.monotonic()
                    tail = last_lines(log, 1)
                    note(f"  ... {tail[0].strip()[:100] if tail else what}")
        except BaseException:
            child.terminate()
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            raise
    took = time.monotonic() - begun
    if status:
        tail = "\n    ".join(last_lines(log, 25))
        raise LabError(f"{what} failed (status {status}); the complete log is {log}:\n    {tail}")
    if took > 3:
        note(f"  done: {what} ({took:.0f} s)")
    return took
