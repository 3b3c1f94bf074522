# SPDX-License-Identifier: GPL-2.0
"""Reads a guest's kernel log and says what in it no healthy kernel prints."""

import re

# A line of the console: "[   12.345678] text", with "[ T123] " or "[ C0] " after it where the
# kernel was built to say who speaks.
STAMP = r"^\s*(?:<\d+>)?\[ *\d+\.\d+\](?:\[[^\]]*\])? "

# Programs that die in a library of their own doing, whatever the driver: perftest by rdma_cm when its client comes
# before its server listens, qperf 0.4.11 after each test of bandwidth. What they did until then their test judges.
MORTAL = r"ib_(?:send|write|read|atomic)_(?:bw|lat)|qperf"

BAD = re.compile("|".join([
    STAMP + r"(?:BUG|WARNING|UBSAN|KASAN|KCSAN|KFENCE|KMSAN)\b",
    r"\bBUG: ",
    r"\bWARNING: (?:CPU|possible|suspicious|inconsistent|bad unlock|held lock|Nested lock|lock held|"
    r"at |stack|refcount)",
    r"\bkernel BUG at\b",
    r"\bOops\b",
    r"Kernel panic",
    r"general protection fault",
    r"Unable to handle kernel",
    r"unable to handle",
    r"divide error:",
    r"possible (?:circular|recursive|irq lock|deadlock)",
    STAMP + r"INFO: (?:possible|task|rcu|suspicious|lockdep|trying to register non-static)",
    r"INFO: task .* blocked for more than",
    r"inconsistent lock state",
    r"suspicious RCU",
    r"bad unlock balance",
    r"held lock freed",
    r"soft lockup",
    r"hard LOCKUP",
    r"rcu: INFO:|rcu.*(?:self-detected stall|detected stalls|expedited stalls)",
    r"refcount_t:",
    r"unregister_netdevice: waiting",
    # How many suspects a scan has found is no report: each of them is one, if it is not the machine's own.
    # Where allocations are failed, kmemleak's own fail as well, and it then looks at more than it has to.
    r"kmemleak: (?!Kernel memory leak detector|Automatic memory scanning|\d+ new suspected|"
    r"Cannot allocate a scan area, scanning the full object$|$)",
    r"ODEBUG:",
    # A kernel that looks for such things says at boot that it does.
    r"(?<!double-/)use-after-free|out-of-bounds",
    r"=============================================================================",
    r"Slab .* objects? remaining|Objects remaining in",
    r"scheduling while atomic|sleeping function called from invalid context",
    r"list_(?:add|del) corruption",
    r"DEADLOCK",
    r"Call Trace:",
    r"stack-protector|Stack guard page|double fault",
    r"nobody cared",
    r"segfault at .* in libnhca",
    STAMP + rf"(?!(?:{MORTAL})\[).*segfault at .* in lib(?:ibverbs|rdmacm)",
    r"lab: guest cannot start",
]))

CONTEXT = 30

RACE = re.compile(r"BUG: KCSAN: ")
RACE_ENDS = re.compile(r"={66}$")
RACE_SIDE = re.compile(r" of \d+ bytes by ")
# The frames of a side's stack that are looked at: what touches the memory, and who called it.
RACE_DEPTH = 3


def _is_ours(race):
    """Is it the driver, or a helper that it has called, that touches memory there?"""
    sides = [number + 1 for number, line in enumerate(race) if RACE_SIDE.search(line)]
    return any("[nhca" in frame for side in sides for frame in race[side:side + RACE_DEPTH])


def _without_foreign_races(lines):
    """Drops KCSAN's reports about others than the driver: the kernel and its virtual hardware have
    plenty, and they are for others to mend."""
    kept, race = [], None
    for line in lines:
        if race is None and RACE.search(line):
            race = []
        if race is None:
            kept.append(line)
            continue
        race.append(line)
        if RACE_ENDS.search(line):
            if _is_ours(race):
                kept.extend(race)
            race = None
    return kept + (race or [])


FLAGS = re.compile(r"EFLAGS: ([0-9a-f]{8})")
# The highest flag of x86 is bit 21; those above it are 0 in every processor.
FLAGS_BITS = 22


def is_emulators(report):
    """Does a report show an emulated CPU that is not one?

    QEMU's CPUs, when they run side by side, now and then run into a breakpoint that the kernel had put
    into its own code (static keys) and taken away again: it knows nothing of it any more. And sometimes
    flags are set that there are not. No driver can do anything about either, or cause it."""
    return any("Oops: int3" in line or
               any(int(flags, 16) >> FLAGS_BITS for flags in FLAGS.findall(line)) for line in report)


def offences(text):
    """Groups of log lines, one a report: the line before it, then the report. Empty: a clean log."""
    lines = _without_foreign_races(text.splitlines())
    groups = []
    last = -CONTEXT
    for number, line in enumerate(lines):
        if not BAD.search(line):
            continue
        # One splat matches many times over: what follows closely is the same report.
        if number - last >= CONTEXT or not groups:
            groups.append([])
            groups[-1].extend(lines[max(0, number - 1):number + CONTEXT])
        last = number
    return groups
