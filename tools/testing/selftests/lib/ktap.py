#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Reads and writes KTAP reports (Documentation/dev-tools/ktap.rst of the kernel).

    KTAP version 1
    ok 1 - NAME
    not ok 2 - NAME # WHY
    ok 3 - NAME # SKIP WHY
    1..3

Report prints results of tests in Python. parse() reads reports of tests and of KUnit; it also accepts a plan in front,
indented subtests, and time stamps of the kernel log. The kernel's own parser (tools/testing/kunit/kunit_parser.py of
6.12) is not used: it reads a plan only in front, and prints without an end if there is none.

As a program: prints the results of the reports in files (or of the standard input) as one flat report."""

import re
import sys

STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[[^\]]*\])? ?")
HEADER = re.compile(r"^( *)KTAP version \d+\s*$")
SUBTEST = re.compile(r"^( *)# Subtest: (.*\S)")
PLAN = re.compile(r"^( *)1\.\.(\d+)\s*$")
RESULT = re.compile(r"^( *)(not ok|ok) (\d+)(?: - | )?(.*)$")
EXPECTATION = re.compile(r"^\s*# \S+: (?:EXPECTATION|ASSERTION) FAILED at (.*)")
INCOMPLETE = "the report is complete"


class Report:
    """Prints results. Each line is flushed, so that a crash loses none."""

    def __init__(self):
        self.count = self.failed = 0

    def _begin(self):
        if not self.count:
            print("KTAP version 1", flush=True)

    def _line(self, verdict, name, note=""):
        self._begin()
        self.count += 1
        name, note = (" ".join(str(text).split("\n")) for text in (name, note))
        print(f"{verdict} {self.count} - {name.replace(' # ', ' - ')}{' # ' if note else ''}{note}", flush=True)

    def ok(self, name):
        self._line("ok", name)

    def notok(self, name, why):
        self.failed += 1
        self._line("not ok", name, why or "failed")

    def skip(self, name, why):
        self._line("ok", name, f"SKIP {why}")

    def result(self, name, good, why=""):
        if good:
            self.ok(name)
        else:
            self.notok(name, why)

    def end(self):
        """Prints the plan. Returns the exit status of the program."""
        self._begin()
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


class _Level:
    """A report, or the subtests of one of its results: results as (name, "ok", "not ok" or "skip", why)."""

    def __init__(self, depth):
        self.depth, self.planned, self.seen, self.name = depth, None, 0, None
        self.results, self.wrong = [], []

    def end(self):
        """What is wrong with the whole report."""
        if self.planned is None:
            self.wrong.append(f"it ended before its plan, after {self.seen} results")
        elif self.planned != self.seen:
            self.wrong.append(f"it has {self.seen} of {self.planned} results")
        return "; ".join(self.wrong)


class _Reader:
    def __init__(self):
        self.results, self.levels, self.reason = [], [], []

    def header(self, depth):
        while self.levels and self.levels[-1].depth >= depth:
            self.close()
        self.levels.append(_Level(depth))

    def close(self):
        """Ends the innermost report. If it has a parent, the parent gets its results."""
        level = self.levels.pop()
        why = level.end()
        found = level.results + ([(INCOMPLETE, "not ok", why)] if why else [])
        if self.levels:
            found = [(f"{level.name or '?'}.{name}", verdict, why) for name, verdict, why in found]
            self.levels[-1].results += found
        else:
            self.results += found

    def result(self, depth, verdict, number, text):
        while len(self.levels) > 1 and self.levels[-2].depth > depth:
            self.close()
        below = self.levels.pop() if len(self.levels) > 1 and self.levels[-1].depth > depth else None
        if self.levels and self.levels[-1].depth == depth:
            self._store(self.levels[-1], below, verdict, int(number), text)
        # A line that looks like a result, but is in no report, is ordinary text.
        self.reason = []

    def _store(self, level, below, verdict, number, text):
        level.seen += 1
        if number != level.seen:
            level.wrong.append(f"result {level.seen} has the number {number}")
            level.seen = number
        name, _, note = text.partition(" # ") if " # " in text else text.partition("# ")
        name, note = name.strip(), note.strip()
        if below:
            why = below.end()
            found = below.results + ([(INCOMPLETE, "not ok", why)] if why else [])
            level.results += [(f"{name}.{inner}", *rest) for inner, *rest in found]
            if verdict == "not ok" and not any(entry[1] == "not ok" for entry in found):
                level.results.append((name, "not ok", " ".join(self.reason) or note or "failed outside its tests"))
        elif verdict == "ok" and note.upper().startswith("SKIP"):
            level.results.append((name, "skip", note[4:].strip()))
        else:
            level.results.append((name, verdict, (note or " ".join(self.reason)) if verdict == "not ok" else ""))

    def note(self, line):
        """Keeps the first failed expectation of a KUnit test, and the values in the three lines that follow."""
        found = EXPECTATION.match(line)
        if found and not self.reason:
            self.reason = [found.group(1)]
        elif 0 < len(self.reason) < 4 and line.strip() and not line.lstrip().startswith("#"):
            self.reason.append(line.strip())

    def line(self, raw):
        line = STAMP.sub("", raw.rstrip("\r\n"))
        if found := HEADER.match(line):
            self.header(len(found.group(1)))
        elif found := PLAN.match(line):
            for level in self.levels:
                if level.depth == len(found.group(1)):
                    level.planned = int(found.group(2))
        elif found := RESULT.match(line):
            self.result(len(found.group(1)), *found.groups()[1:])
        elif (found := SUBTEST.match(line)) and self.levels:
            self.levels[-1].name = found.group(2)
        else:
            self.note(line)


def parse(lines):
    """[(name, "ok", "not ok" or "skip", why)] of the reports in the lines; names of subtests are PARENT.NAME.

    A report that is not complete has a failure INCOMPLETE. There is no result if there is no report, and none if all
    reports are empty."""
    reader = _Reader()
    for line in lines:
        reader.line(line)
    while reader.levels:
        reader.close()
    return reader.results


def main():
    lines = []
    for path in sys.argv[1:] or ["/dev/stdin"]:
        with open(path, encoding="utf-8", errors="replace") as source:
            lines += source.read().splitlines()
    report = Report()
    for name, verdict, why in parse(lines):
        if verdict == "skip":
            report.skip(name, why)
        else:
            report.result(name, verdict == "ok", why)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
