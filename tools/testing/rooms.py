#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Checks that the directories ("rooms") of the driver include headers and use functions of lower rooms only, and that
no rooms form a circle. Prints a KTAP report."""

import re
import sys

from names import DRIVER, REPORT, complain

# The allowed order, from top to bottom. A room may use the rooms of later lines, but no other room of its own line.
# Only this file defines the order; the figure in Documentation/internals.rst shows it. tests/ may use every room.
ORDER = (("main",),
         ("verbs", "ingress"),
         ("transport", "rcxt", "direct"),
         ("net",),
         ("memory",),
         ("queue",),
         ("observe",),
         ("base",),
         ("wire",))
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Definitions in a .c file that other files can use: they begin at the start of a line, and are not static.
DEFINED = (re.compile(r"^(?!static\b|typedef\b|return\b|else\b)(?:\w+[ \t*]+)+(nhca_\w+)\((?![^;{]*;)", re.M),
           re.compile(r"^(?!static\b|typedef\b|extern\b)(?:\w+[ \t*]+)+(nhca_\w+)(?:\[[^]\n]*\])?(?: =|;)", re.M),
           re.compile(r"^DEFINE_\w+\((?:[^()\n]+, )?(nhca_\w+)\)", re.M))


def room_of(path):
    """The directory of a file; "base" for the files beside main.c, which every room but wire/ may use."""
    parts = path.relative_to(DRIVER).parts
    if len(parts) > 1:
        return parts[0]
    return "main" if path.name == "main.c" else "base"


def sources():
    """{path: text without comments} of the driver, without tests and generated files."""
    return {path: COMMENT.sub(" ", path.read_text()) for path in sorted(DRIVER.rglob("*.[ch]"))
            if room_of(path) != "tests" and not path.name.endswith(".mod.c")}


def arrows(texts):
    """Generates (path, the name that it uses, the room of the name) for each use of another room."""
    owner = {}
    for path, text in texts.items():
        if path.suffix == ".c":
            owner.update({name: room_of(path) for form in DEFINED for name in form.findall(text)})
    for path, text in texts.items():
        room = room_of(path)
        for name in INCLUDE.findall(text):
            target = (path.parent / name).resolve()
            if target in texts and room_of(target) != room:
                yield path, target.relative_to(DRIVER), room_of(target)
        for name in sorted(set(re.findall(r"\bnhca_\w+", text))):
            # A name in a header, such as a prototype, is not a use. The loop above counts a file's #include of the
            # header as a use instead.
            if path.suffix == ".c" and owner.get(name, room) != room:
                yield path, f"{name}()", owner[name]


def circles(graph):
    """The groups of rooms in which each room reaches every other room."""
    reach = {}
    for room in graph:
        found, left = set(), [room]
        while left:
            new = graph.get(left.pop(), set()) - found
            found |= new
            left += new
        reach[room] = found
    groups = {frozenset(other for other in reach[room] if room in reach.get(other, ())) for room in graph}
    return sorted(sorted(group) for group in groups if group)


def main():
    texts = sources()
    unknown = sorted({room_of(path) for path in texts} - set(LEVEL))
    upward, graph = [f"{room}/: its place is unknown" for room in unknown], {}
    for path, what, target in arrows(texts):
        room = room_of(path)
        graph.setdefault(room, set()).add(target)
        if LEVEL.get(target, -1) <= LEVEL.get(room, -1):
            upward.append(f"{path.relative_to(DRIVER)} uses {what} of {target}")
    complain("each directory of the driver uses only lower ones", upward)
    complain("no directories of the driver form a circle",
             [" ".join(group) for group in circles(graph)])
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
