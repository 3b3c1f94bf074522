#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Reads the port counters of a device as monitoring programs do, for monitoring.sh.

    monitoring.py families          the metrics that node_exporter has of RDMA devices, by name
    monitoring.py sysfs DEV         packets sent and received, words of 4 bytes sent and received
    monitoring.py node_exporter DEV the same as node_exporter shows them
    monitoring.py wire FILE IP      the same of a capture, for the node with this address"""

import re
import subprocess
import sys
import urllib.request

URL = "http://127.0.0.1:9100/metrics"
METRIC = re.compile(r"^(node_infiniband_\w+)(\{.*\})? (\S+)$")
NAMES = ("port_packets_transmitted_total", "port_packets_received_total",
         "port_data_transmitted_bytes_total", "port_data_received_bytes_total")
# bytes of extended headers by opcode: RC WRITE, READ and ACK, and UD SEND, without immediate data; RC SEND has none
EXTENDED = {0x06: 16, 0x0a: 16, 0x0c: 16, 0x0d: 4, 0x0f: 4, 0x10: 4, 0x11: 4, 0x64: 8}
UDP, BTH, ICRC = 8, 12, 4


def metrics():
    with urllib.request.urlopen(URL, timeout=20) as answer:
        text = answer.read().decode()
    return [match.groups() for match in map(METRIC.match, text.splitlines()) if match]


def node_exporter(device):
    values = {name: int(float(value)) for name, labels, value in metrics()
              if labels and f'device="{device}"' in labels}
    got = [values[f"node_infiniband_{name}"] for name in NAMES]
    return [got[0], got[1], got[2] // 4, got[3] // 4]


def sysfs(device):
    counters = []
    for name in ("xmit_packets", "rcv_packets", "xmit_data", "rcv_data"):
        with open(f"/sys/class/infiniband/{device}/ports/1/counters/port_{name}", encoding="ascii") as file:
            counters.append(int(file.read()))
    return counters


def wire(capture, ip):
    fields = ["ip.src", "udp.length", "infiniband.bth.opcode", "infiniband.bth.padcnt"]
    lines = subprocess.run(["tshark", "-n", "-r", capture, "-T", "fields",
                            *[word for field in fields for word in ("-e", field)],
                            "-Y", "infiniband.bth"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    counts = [0, 0, 0, 0]
    for line in lines:
        source, length, opcode, pad = line.split("\t")
        place = 0 if source == ip else 1
        counts[place] += 1
        counts[place + 2] += int(length) - UDP - BTH - ICRC - EXTENDED.get(int(opcode, 0), 0) - int(pad, 0)
    return [*counts[:2], counts[2] // 4, counts[3] // 4]


def main():
    match sys.argv[1:]:
        case ["families"]:
            print("\n".join(sorted({name for name, _, _ in metrics()})))
        case ["sysfs", device]:
            print(*sysfs(device))
        case ["node_exporter", device]:
            print(*node_exporter(device))
        case ["wire", capture, ip]:
            print(*wire(capture, ip))


main()
