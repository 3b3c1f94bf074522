#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""statistic.py DEVICE TURNS COMMAND...: binds the queue pair of a running COMMAND to a counter, TURNS times

Prints a KTAP report."""

import json
import pathlib
import subprocess
import sys
import time

import ktap

DEVICE, TURNS, COMMAND = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
LINK = f"{DEVICE}/1"
PORT = pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters")
report = ktap.Report()


def rdma(*words):
    done = subprocess.run(["rdma", *words], text=True, capture_output=True)
    if done.returncode:
        raise OSError(f"rdma {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def port(name):
    return int((PORT / name).read_text())


def counters():
    """The counters that `rdma statistic qp show` lists."""
    return [one for one in json.loads(rdma("-j", "statistic", "qp", "show", "link", LINK) or "[]")
            if one.get("cntn")]


def running():
    """Waits up to 30 s until a queue pair sends. Returns its number."""
    for _ in range(300):
        for one in json.loads(rdma("-j", "resource", "show", "qp", "link", LINK)):
            if one["type"] == "RC" and one["state"] == "RTS" and port("sent_pkts"):
                return one["lqpn"]
        time.sleep(0.1)
    raise OSError("no queue pair in RTS within 30 s")


def grows(read, since):
    for _ in range(100):
        if read() > since:
            return True
        time.sleep(0.1)
    return False


def bound(qpn):
    """Binds the queue pair to a counter, and checks the counter and the port's counters."""
    total = port("sent_pkts")
    rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(qpn))
    mine = counters()
    good = len(mine) == 1 and [one["lqpn"] if isinstance(one, dict) else one
                               for one in mine[0]["lqpn"]] == [qpn]
    report.result("a counter is bound to the queue pair", good, mine)
    if not good:
        return
    report.result("the counter counts the queue pair's packets",
           grows(lambda: counters()[0]["sent_pkts"], mine[0]["sent_pkts"]), "it does not grow")
    own, all_ = counters()[0], port("sent_pkts")
    report.result("the counter starts at 0", own["sent_pkts"] <= all_ - total,
           f"{own['sent_pkts']} packets, the port {all_ - total} in a longer time")
    report.result("the port's counters include the bound counter", all_ >= total + own["sent_pkts"],
           f"{all_}, before {total}, the queue pair's {own['sent_pkts']}")
    report.result("the counter has all counters of the port",
           {path.name for path in PORT.iterdir()} - {"lifespan"} <= set(own), sorted(own))
    rdma("statistic", "qp", "unbind", "link", LINK, "cntn", str(mine[0]["cntn"]), "lqpn", str(qpn))
    after = port("sent_pkts")
    report.result("the port's counters keep their values after unbind", after >= all_, f"{all_}, then {after}")
    report.result("the counter is removed after unbind", not counters(), counters())
    report.result("the port continues to count", grows(lambda: port("sent_pkts"), after), "it does not grow")


def turns(qpn):
    """Binds and unbinds repeatedly during traffic: no packet may be lost from the counters or counted twice."""
    highest = port("sent_pkts")
    for turn in range(TURNS):
        rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(qpn))
        middle = port("sent_pkts")
        number = str(counters()[0]["cntn"])
        rdma("statistic", "qp", "unbind", "link", LINK, "cntn", number, "lqpn", str(qpn))
        now = port("sent_pkts")
        if not highest <= middle <= now:
            report.result("the port's counter never decreases", False, f"turn {turn}: {highest}, {middle}, {now}")
            return
        highest = now
    report.result("the port's counter never decreases", True, "")


traffic = subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
try:
    number = running()
    bound(number)
    turns(number)
    # A bound counter is removed with its queue pair.
    rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(number))
    before = port("sent_pkts")
    traffic.kill()
    traffic.wait()
    for _ in range(50):
        if not counters():
            break
        time.sleep(0.1)
    report.result("a counter is removed with its queue pair", not counters(), counters())
    # The files of the performance management agent must also count the packets of queue pairs with their own counters.
    for name, counter, unit in (("port_xmit_packets", "sent_pkts", 1), ("port_rcv_packets", "rcvd_pkts", 1),
                                ("port_xmit_data", "sent_bytes", 4), ("port_rcv_data", "rcvd_bytes", 4)):
        wanted = port(counter) // unit
        path = PORT.parent / "counters" / name
        got = int(path.read_text()) if path.exists() else "no such file"
        report.result(f"counters/{name} is {counter} / {unit}", got == wanted, f"{got}, not {wanted}")
    report.result("the port keeps the counts of a removed counter", port("sent_pkts") >= before,
           f"{before}, then {port('sent_pkts')}")
except OSError as error:
    report.result("queue pairs with counters of their own", False, error)
finally:
    traffic.kill()
sys.exit(report.end())
