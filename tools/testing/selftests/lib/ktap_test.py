# SPDX-License-Identifier: GPL-2.0
"""Tests of the KTAP libraries, which tools/testing/lab/judge_test runs.

ktap.py must find each failed, skipped, missing and superfluous result, and ktap.sh must take over the results of
programs that end well, fail, crash or print nothing."""

import os
import pathlib
import subprocess
import tempfile

import ktap

HERE = pathlib.Path(__file__).resolve().parent

HEAD = "KTAP version 1\n"
SUITE = HEAD + """1..1
    KTAP version 1
    # Subtest: suite
    1..3
    ok 1 first
        KTAP version 1
        # Subtest: table
        # table: EXPECTATION FAILED at a_test.c:3
        Expected 1 == 2, but
        not ok 1 row one
        ok 2 row two
        1..2
    not ok 2 table
    ok 3 last # SKIP no such device
"""

# name, text, the results: a letter for the verdict (o, n, s) and the name, and for "n" a part of the reason
PARSED = (
    ("a whole report", HEAD + "ok 1 - a\nok 2 - b: c\n1..2\n", ["o a", "o b: c"]),
    ("a plan in front", HEAD + "1..2\nok 1 - a\nok 2 - b\n", ["o a", "o b"]),
    ("text and notes between results", "x\n" + HEAD + "ok 1 - a\n# ok 2 - b\nok - c\nword\n1..1\n", ["o a"]),
    ("a failure and its reason", HEAD + "not ok 1 - a # 3 # of 4\n1..1\n", ["n a|3 # of 4"]),
    ("a skip", HEAD + "ok 1 - a # SKIP none\n1..1\n", ["s a"]),
    ("a test that crashes before its plan", HEAD + "ok 1 - a\nSegmentation fault\n",
     ["o a", f"n {ktap.INCOMPLETE}|before its plan"]),
    ("a test that crashes before its first result", HEAD, [f"n {ktap.INCOMPLETE}|before its plan"]),
    ("fewer results than planned", HEAD + "1..3\nok 1 - a\nok 2 - b\n",
     ["o a", "o b", f"n {ktap.INCOMPLETE}|2 of 3"]),
    ("more results than planned", HEAD + "ok 1 - a\nok 2 - b\n1..1\n",
     ["o a", "o b", f"n {ktap.INCOMPLETE}|2 of 1"]),
    ("a lost line", HEAD + "ok 1 - a\nok 3 - c\n1..3\n", ["o a", "o c", f"n {ktap.INCOMPLETE}|number 3"]),
    ("no output", "", []),
    ("results without a report", "ok 1 - a\nok - b\n1..2\n", []),
    ("an empty report", HEAD + "1..0\n", []),
    ("a second report after the first", HEAD + "ok 1 - a\n1..1\n" + HEAD + "ok 1 - b\n1..1\n", ["o a", "o b"]),
    ("a second report in the first", HEAD + "ok 1 - a\n" + HEAD + "ok 1 - b\n1..1\n",
     ["o a", f"n {ktap.INCOMPLETE}|before its plan", "o b"]),
    ("suites of KUnit", SUITE + "not ok 1 suite\n",
     ["o suite.first", "n suite.table.row one|a_test.c:3 Expected 1 == 2, but", "o suite.table.row two",
      "s suite.last"]),
    ("time stamps of the kernel", "".join(f"[    1.5] {line}\n" for line in (SUITE + "not ok 1 suite").splitlines()),
     ["o suite.first", "n suite.table.row one|a_test.c:3", "o suite.table.row two", "s suite.last"]),
    ("a kernel that dies in a suite", SUITE.rpartition("        ok 2")[0],
     ["o suite.first", "n suite.table.row one|a_test.c:3", f"n suite.table.{ktap.INCOMPLETE}|before its plan",
      f"n suite.{ktap.INCOMPLETE}|1 of 3", f"n {ktap.INCOMPLETE}|0 of 1"]),
    ("a suite that fails outside of its tests", HEAD + "1..1\n    KTAP version 1\n    1..1\n    ok 1 a\nnot ok 1 s\n",
     ["o s.a", "n s|outside"]),
)

# name, commands, the results
TAKEN = (
    ("the script's own results", "ok a; notok b why; skip c none", ["o a", "n b|why", "s c"]),
    ("a program's results", f"ok a; report printf '{HEAD}ok 1 - b # SKIP no\\n1..1\\n'; ok c", ["o a", "s b", "o c"]),
    ("a program that fails", f"report sh -c 'printf \"{HEAD}not ok 1 - a # why\\n1..1\\n\"; exit 1'", ["n a|why"]),
    ("a program that crashes", f"report sh -c 'printf \"{HEAD}ok 1 - a\\n\"; kill -SEGV $$'",
     ["o a", f"n sh: {ktap.INCOMPLETE}|before its plan"]),
    ("a program that prints nothing", "report true", [f"n true: {ktap.INCOMPLETE}|before its plan"]),
    ("a program with fewer results than planned", f"report printf '{HEAD}1..2\\nok 1 - a\\n'",
     ["o a", f"n printf: {ktap.INCOMPLETE}|1 of 2"]),
    ("a program that fails after its plan", f"report sh -c 'printf \"{HEAD}ok 1 - a\\n1..1\\n\"; exit 3'",
     ["o a", "n sh: the exit status|3"]),
    ("a program with two reports", f"report printf '{HEAD}ok 1 - a\\n1..1\\n{HEAD}ok 1 - b\\n1..1\\n'", ["o a", "o b"]),
    ("a captured report", f"printf '{HEAD}ok 1 - a\\n1..1\\n' > file; report_file file 'p: '", ["o p: a"]),
    ("a captured report that is missing", "report_file none", [f"n none: {ktap.INCOMPLETE}|there is none"]),
    ("results of subshells", "ok a; (ok b); ok c | cat; ok d", ["o a", "o b", "o c", "o d"]),
    ("an attempt that does not count", "ok a; ktap_mark; notok b > /dev/null; ktap_reset; ok b", ["o a", "o b"]),
    ("no result", "true", []),
    ("a script that is killed", "ok a; kill -KILL $$", ["o a", f"n {ktap.INCOMPLETE}|before its plan"]),
)
HEAD_IN_SHELL = HEAD.replace("\n", "\\n")


def differs(text, wanted):
    """How the results in the text differ from the wanted ones, or None."""
    found = ktap.parse(text.splitlines())
    if len(found) != len(wanted):
        return f"{found} instead of {wanted}"
    for (name, verdict, why), one in zip(found, wanted):
        expected, _, part = one.partition("|")
        if f"{verdict[0]} {name}" != expected or part not in why:
            return f"{verdict} {name}: {why}; instead of {one}"
    return None


def run(report):
    for name, text, wanted in PARSED:
        why = differs(text, wanted)
        report.result(f"ktap.py: {name}", not why, why)
    with tempfile.TemporaryDirectory() as folder:
        for name, commands, wanted in TAKEN:
            done = subprocess.run(["bash", "-c", f'. "{HERE}/ktap.sh"; trap \'ktap_end $?\' EXIT; '
                                   + commands.replace(HEAD, HEAD_IN_SHELL)], cwd=folder, text=True, check=False,
                                  env={**os.environ, "TMPDIR": folder}, capture_output=True)
            why = differs(done.stdout, wanted)
            if not why and bool(done.returncode) != any(one[0] == "n" for one in wanted):
                why = f"the exit status is {done.returncode}"
            report.result(f"ktap.sh: {name}", not why, why)
