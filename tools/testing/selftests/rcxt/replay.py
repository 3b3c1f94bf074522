#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Checks that two captures have the same frames in the same order.

    replay.py FILE FILE     prints the numbers of frames; status 0 if the captures are equal and not empty"""

import sys

from icrc import packets


def frames(name):
    with open(name, "rb") as source:
        data = source.read()
    return [data[at:at + length] for _, at, length in packets(data)]


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    first, second = (frames(name) for name in sys.argv[1:])
    differ = [number for number, pair in enumerate(zip(first, second), 1) if pair[0] != pair[1]]
    print(f"{len(first)} and {len(second)} frames" + (f", different from frame {differ[0]} on" if differ else ""))
    return 0 if first == second and first else 1


if __name__ == "__main__":
    sys.exit(main())
