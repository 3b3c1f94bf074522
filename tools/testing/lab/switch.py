# SPDX-License-Identifier: GPL-2.0
"""The Ethernet between three or more user-mode guests: a process that forwards frames between the guests' sockets.
With a single guest it discards all frames.

Arguments: numbers of the file descriptors, one for each guest. A socket keeps the boundaries of frames. A send waits
while the receiver's socket is full, so that the switch loses no frame."""

import selectors
import socket
import sys

# Larger than the largest frame
FRAME = 1 << 17
# Frames that are read from one socket before the next socket is read
TURN = 64
GROUP = 1       # bit of the first byte of a multicast or broadcast address


def forward(frame, source, ends, known):
    """Sends a frame to the guest with the frame's address, or to all other guests if no guest has used this address."""
    known[frame[6:12]] = source
    target = None if frame[0] & GROUP else known.get(frame[:6])
    for end in [target] if target else ends - {source}:
        if end is source:
            continue
        try:
            end.send(frame)
        except OSError:
            pass        # the guest has ended


def main(numbers):
    ends = {socket.socket(fileno=int(number)) for number in numbers}
    known = {}          # MAC address: the socket of the guest that has sent from it
    with selectors.DefaultSelector() as ready:
        for end in ends:
            ready.register(end, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                for _ in range(TURN):
                    try:
                        frame = key.fileobj.recv(FRAME, socket.MSG_DONTWAIT)
                    except BlockingIOError:
                        break
                    except OSError:
                        frame = b""
                    if not frame:
                        ready.unregister(key.fileobj)
                        break
                    forward(frame, key.fileobj, ends, known)


if __name__ == "__main__":
    main(sys.argv[1:])
