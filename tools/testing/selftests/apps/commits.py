#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Commits rows to a SQLite database, and checks that all committed rows are there.

    commits.py write DATABASE MODE LOG [COUNT]
        commits rows until COUNT or an error; appends the number of each row to LOG after its commit; MODE is wal or
        delete
    commits.py check DATABASE LOG [NUMBER]
        checks that the database is consistent, and has all rows of LOG, or up to NUMBER

Several rows are in a transaction, so a part of a transaction must not be there either."""

import hashlib
import sqlite3
import sys

ROWS = 5


def body(number, row):
    """Content of a row: 300 to 9900 bytes."""
    seed = hashlib.sha256(f"{number} {row}".encode()).digest()
    return (seed * 320)[:300 + seed[0] * 37]


def write(path, mode, log, count):
    base = sqlite3.connect(path, timeout=60, isolation_level=None)
    got = base.execute(f"pragma journal_mode={mode}").fetchone()[0]
    if got != mode:
        sys.exit(f"commits: journal_mode is {got}")
    # With `full' a loss of power can undo the deletion of the rollback journal. SQLite would then roll back the last
    # commit.
    base.execute("pragma synchronous=extra")
    base.execute("create table if not exists rows (number integer, row integer, body blob, primary key (number, row))")
    number = base.execute("select coalesce(max(number), 0) from rows").fetchone()[0]
    with open(log, "a", encoding="ascii", buffering=1) as done:
        while count is None or number < count:
            number += 1
            base.execute("begin immediate")
            for row in range(ROWS):
                base.execute("insert into rows values (?, ?, ?)", (number, row, body(number, row)))
            base.execute("commit")
            done.write(f"{number}\n")


def check(path, log, number):
    if number is None:
        with open(log, encoding="ascii") as done:
            number = int(([0] + done.read().split())[-1])
    base = sqlite3.connect(path, timeout=60)
    verdict = base.execute("pragma integrity_check").fetchone()[0]
    if verdict != "ok":
        sys.exit(f"commits: integrity_check: {verdict}")
    found = {}
    for at, row, data in base.execute("select number, row, body from rows"):
        if data != body(at, row):
            sys.exit(f"commits: row {at}, {row} has wrong bytes")
        found[at] = found.get(at, 0) + 1
    lost = [at for at in range(1, number + 1) if found.get(at) != ROWS]
    if lost:
        sys.exit(f"commits: {len(lost)} of {number} committed transactions are lost, the first is {lost[0]}")
    if any(count != ROWS for count in found.values()):
        sys.exit("commits: there is a part of a transaction")
    print(f"{number} transactions are there")


def main():
    number = int(sys.argv[-1]) if sys.argv[-1].isdigit() else None
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2], sys.argv[3], sys.argv[4], number)
    elif sys.argv[1:2] == ["check"]:
        check(sys.argv[2], sys.argv[3], number)
    else:
        sys.exit(__doc__)


main()
