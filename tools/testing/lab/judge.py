# SPDX-License-Identifier: GPL-2.0
"""Finds reports of errors in the kernel log of a guest."""

import re

# A line of the console is "[   12.345678] text". With CONFIG_PRINTK_CALLER "[ T123] " or "[ C0] " follows the time.
STAMP = r"^\s*(?:<\d+>)?\[ *\d+\.\d+\](?:\[[^\]]*\])? "

# A program whose crashes are no errors: qperf 0.4.11 has a bug and crashes after each bandwidth test, with any driver.
# The test that runs qperf checks its results.
MORTAL = r"qperf"

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
    # The number of suspected leaks is not a report, because guest/lost prints each leak that counts. With fault
    # injection kmemleak's own allocations also fail, and kmemleak then scans the full object.
    r"kmemleak: (?!Kernel memory leak detector|Automatic memory scanning|\d+ new suspected|"
    r"Cannot allocate a scan area, scanning the full object$|$)",
    r"ODEBUG:",
    # At boot, a kernel prints that it checks for double-/use-after-free.
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
# Number of stack frames of each side to search: the function that accesses the memory, and its callers
RACE_DEPTH = 3


def _is_ours(race):
    """True if on one side of a race the driver, or a helper that it called, accesses the memory."""
    sides = [number + 1 for number, line in enumerate(race) if RACE_SIDE.search(line)]
    return any("[nhca" in frame for side in sides for frame in race[side:side + RACE_DEPTH])


def _without_foreign_races(lines):
    """Removes KCSAN's reports about code other than the driver: the kernel has many races of its own."""
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


# With fault injection the creation of a slab cache may fail, with ENOMEM or EINVAL. The kernel then prints the stack,
# although there is no error in the kernel.
REFUSED_CACHE = re.compile(
    r"^.*kmem_cache_create\w*\(\w+\) failed with error -(?:12|22)\n(?:.*\n){0,15}?.*Call Trace:.*$", re.M)

FLAGS = re.compile(r"EFLAGS: ([0-9a-f]{8})")
# The highest flag of x86 is bit 21. The bits above are 0 in every processor.
FLAGS_BITS = 22


def is_emulators(report):
    """True if a report is the result of a bug in QEMU's emulation.

    When QEMU emulates several CPUs in parallel, a CPU may execute a breakpoint of a static key that the kernel has
    already removed from its code. The kernel then reports an unknown breakpoint. Sometimes undefined flags are set in
    EFLAGS. No driver can cause or prevent these errors."""
    return any("Oops: int3" in line or
               any(int(flags, 16) >> FLAGS_BITS for flags in FLAGS.findall(line)) for line in report)


def offences(text):
    """A list of reports, each a list of lines that begins one line before the report. Empty for a clean log."""
    lines = _without_foreign_races(REFUSED_CACHE.sub("", text).splitlines())
    groups = []
    last = -CONTEXT
    for number, line in enumerate(lines):
        if not BAD.search(line):
            continue
        # A report matches several times, so a match within CONTEXT lines belongs to the same report.
        if number - last >= CONTEXT or not groups:
            groups.append([])
            groups[-1].extend(lines[max(0, number - 1):number + CONTEXT])
        last = number
    return groups
