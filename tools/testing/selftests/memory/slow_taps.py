#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Creates two tap netdevs and forwards frames between them, with a pause of 0.5 ms for each frame.

    slow_taps.py NEAR FAR NETNS     NEAR is in this network namespace, FAR in NETNS"""

import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 2, 0x1000
PAUSE = 0.0005


def tap(name):
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return end


def main():
    near, far, space = sys.argv[1:]
    ends = [tap(near)]
    with open(f"/run/netns/{space}", "rb") as where:
        os.setns(where.fileno(), os.CLONE_NEWNET)
    ends.append(tap(far))
    while True:
        for end in select.select(ends, [], [])[0]:
            try:
                frame = os.read(end, 1 << 17)
                time.sleep(PAUSE)
                os.write(ends[1 - ends.index(end)], frame)
            except OSError:
                # The other netdev is down: drop the frame.
                continue


if __name__ == "__main__":
    main()
