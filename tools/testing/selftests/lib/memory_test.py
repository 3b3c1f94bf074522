# SPDX-License-Identifier: GPL-2.0
"""Tests of memory_mark and memory_check of node.sh, which tools/testing/lab/judge_test runs.

memory_state() of this test does not read the kernel's slabs: its numbers are a function of how often it was called."""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent

# This memory_state() replaces that of node.sh. It prints only one slab cache, kmalloc-96, whose slabs have 42 objects.
# The number of objects in use is the value of the expression NOW, in which n is the number of calls before this one.
# now() sets NOW and resets n to 0.
STUB = """
. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"
sleep() { :; }
lsmod() { printf 'Module Size Used by\nnhca 1 0\n'; }
nproc() { echo 1; }
memory_shrink() { :; }
memory_state() {
    local n
    n=$(cat "$LIB_TMP/n")
    echo $((n + 1)) > "$LIB_TMP/n"
    echo "kmalloc-96 $((NOW)) 42"
    echo "module-references $((REFERENCES))"
}
now() { NOW=$1 REFERENCES=${2:-0}; echo 0 > "$LIB_TMP/n"; }
"""

# name, states at the mark, states at the check (objects, and references if they are not 0), true if nothing is leaked.
# memory_check allows 64 more objects, and 42 for the slab from which the CPU allocates.
CASES = (
    ("as many objects as before", "1000", "1000", True),
    ("as many objects more as the limit allows", "1000", "1106", True),
    ("a leak", "1000", "1107", False),
    ("a leaked reference", "1000", "1000 1", False),
    ("objects that are freed after a minute", "1000", "'n < 60 ? 2000 - 10 * n : 1000'", True),
    ("objects that are freed after 15 s", "1000", "'n < 15 ? 1500 : 1000'", True),
    ("a leak beside objects that are freed late", "1000", "'n < 60 ? 2000 - 10 * n : 1107'", False),
    ("objects that the check itself causes", "1000", "'n == 0 ? 1110 : n < 15 ? 1300 : 1100'", True),
    ("a leak as large as what was freed after the mark", "'n < 15 ? 1300 - 20 * n : 1000'", "1300", False),
    ("a count that other processes change", "'1000 + n % 3'", "'1100 + n % 5'", True),
    ("a leak while other processes change the count", "'1000 + n % 3'", "'1110 + n % 5'", False),
)


def leaked(mark, check):
    """True if memory_check reports a leak; None if the script ended too early."""
    script = STUB + f"now {mark}; memory_mark; now {check}; memory_check 'no leak' 64 > \"$LIB_TMP/out\"\n" \
        "grep -q '^not ok' \"$LIB_TMP/out\" && echo leak; grep -q '^ok' \"$LIB_TMP/out\" && echo none; :"
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "LAB_SRC": str(HERE.parent.parent), "LAB_DRIVER": "nhca",
                               "RDMA_DEV": "nhca0", "NODE": "1", "NODES": "1", "IP_1": "127.0.0.1", "IP6_1": "::1"})
    words = done.stdout.split("\n")
    return True if "leak" in words else False if "none" in words else None


def run(report):
    for name, mark, check, clean in CASES:
        found = leaked(mark, check)
        report.result(f"memory_check: {name}: {'no leak' if clean else 'a leak'}", found is (not clean),
                      f"judged {found}")
