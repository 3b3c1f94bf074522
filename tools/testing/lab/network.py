# SPDX-License-Identifier: GPL-2.0
"""Addresses and the Ethernet between the guests.

Node 1 holds a hub; every other node is a cable into it. QEMU's stream netdev over a unix socket
keeps frames whole and in order and pushes back when the receiver is slow, so what a test loses it
lost by its own netem."""

NETDEV = "eth0"
HUB = 0


def addresses(node):
    return f"192.168.77.{node}", f"fd77::{node:x}"


def environment(node, nodes, driver):
    """Variables that a script sees on this node."""
    peer = node % nodes + 1
    values = {"NODE": node, "NODES": nodes, "NETDEV": NETDEV,
              "RDMA_DEV": "" if driver == "none" else f"{driver}0", "LAB_DRIVER": driver,
              "PEER_IP": addresses(peer)[0], "PEER_IP6": addresses(peer)[1]}
    for number in range(1, nodes + 1):
        values[f"IP_{number}"], values[f"IP6_{number}"] = addresses(number)
    return values


def socket_name(cable):
    return f"cable.{cable}"


def devices(node, nodes, mtu):
    """QEMU options for this node's network card and its cables."""
    card = f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:{node:02x},host_mtu={mtu},romfile="
    if nodes == 1:
        return ["-netdev", f"hubport,id=net,hubid={HUB}", "-device", card]
    if node > 1:
        return ["-netdev", f"stream,id=net,server=off,addr.type=unix,addr.path={socket_name(node)}",
                "-device", card]
    if nodes == 2:
        return ["-netdev", f"stream,id=net,server=on,addr.type=unix,addr.path={socket_name(2)}",
                "-device", card]
    words = ["-netdev", f"hubport,id=net,hubid={HUB}", "-device", card]
    for other in range(2, nodes + 1):
        words += ["-netdev", f"stream,id=cable{other},server=on,addr.type=unix,"
                             f"addr.path={socket_name(other)}",
                  "-netdev", f"hubport,id=port{other},hubid={HUB},netdev=cable{other}"]
    return words
