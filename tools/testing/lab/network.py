# SPDX-License-Identifier: GPL-2.0
"""The addresses of the guests, and the Ethernet between them.

Two nodes share one cable. With three or more nodes, node 1 has a hub, and each other node has a cable to the hub. A
cable is a pair of connected unix sockets. Frames stay complete and in order, and a slow receiver blocks the sender, so
only the test's own netem loses packets. The lab creates the pair, because QEMU 7.2 leaves a socket that it
accepts itself in blocking mode. Then a guest would stop while its peer has no driver for its network card."""

import socket

NETDEV = "eth0"
HUB = 0


def addresses(node):
    return f"192.168.77.{node}", f"fd77::{node:x}"


def environment(node, nodes, driver):
    """The environment variables of a script on this node."""
    peer = node % nodes + 1
    values = {"NODE": node, "NODES": nodes, "NETDEV": NETDEV,
              "RDMA_DEV": "" if driver == "none" else f"{driver}0", "LAB_DRIVER": driver,
              "PEER_IP": addresses(peer)[0], "PEER_IP6": addresses(peer)[1]}
    for number in range(1, nodes + 1):
        values[f"IP_{number}"], values[f"IP6_{number}"] = addresses(number)
    return values


def cables(nodes):
    """{node: (end at node 1, end at the node)} for each node except node 1."""
    ends = {node: socket.socketpair() for node in range(2, nodes + 1)}
    for pair in ends.values():
        for end in pair:
            end.setblocking(False)
    return ends


def plugs(node, ends):
    """The ends of cables that this node's QEMU inherits."""
    return [pair[0] for pair in ends.values()] if node == 1 else [ends[node][1]]


def mac(node):
    return f"52:54:00:77:00:{node:02x}"


def _stream(name, end):
    return f"stream,id={name},server=off,addr.type=fd,addr.str={end.fileno()}"


def devices(node, nodes, mtu, ends):
    """The QEMU options for this node's network card and cables."""
    card = f"virtio-net-pci,netdev=net,mac={mac(node)},host_mtu={mtu},romfile="
    if nodes == 1:
        return ["-netdev", f"hubport,id=net,hubid={HUB}", "-device", card]
    if node > 1 or nodes == 2:
        return ["-netdev", _stream("net", plugs(node, ends)[0]), "-device", card]
    words = ["-netdev", f"hubport,id=net,hubid={HUB}", "-device", card]
    for other, (end, _) in ends.items():
        words += ["-netdev", _stream(f"cable{other}", end),
                  "-netdev", f"hubport,id=port{other},hubid={HUB},netdev=cable{other}"]
    return words
