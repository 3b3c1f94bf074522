#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""statistic.py DEVICE TURNS COMMAND...: binds the queue pair of a running COMMAND to counters of its own

Prints results as lib.sh does."""

import json
import pathlib
import subprocess
import sys
import time

DEVICE, TURNS, COMMAND = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
LINK = f"{DEVICE}/1"
PORT = pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters")
failed = False


def rdma(*words):
    done = subprocess.run(["rdma", *words], text=True, capture_output=True)
    if done.returncode:
        raise OSError(f"rdma {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def result(name, good, why):
    global failed
    failed |= not good
    print(f"ok - {name}" if good else f"not ok - {name}: {why}", flush=True)


def port(name):
    return int((PORT / name).read_text())


def counters():
    """What `rdma statistic qp show` has: one for each counter."""
    return [one for one in json.loads(rdma("-j", "statistic", "qp", "show", "link", LINK) or "[]")
            if one.get("cntn")]


def running():
    """The number of the queue pair that sends, when it does."""
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
    """A counter for the queue pair, and what the port's counters do meanwhile."""
    total = port("sent_pkts")
    rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(qpn))
    mine = counters()
    good = len(mine) == 1 and [one["lqpn"] if isinstance(one, dict) else one
                               for one in mine[0]["lqpn"]] == [qpn]
    result("a counter is bound to the queue pair", good, mine)
    if not good:
        return
    result("it counts the queue pair's packets",
           grows(lambda: counters()[0]["sent_pkts"], mine[0]["sent_pkts"]), "it does not grow")
    own, all_ = counters()[0], port("sent_pkts")
    result("it began with nothing", own["sent_pkts"] <= all_ - total,
           f"{own['sent_pkts']} packets, the port {all_ - total} in a longer time")
    result("the port's counters have what it counts, too", all_ >= total + own["sent_pkts"],
           f"{all_}, before {total}, the queue pair's {own['sent_pkts']}")
    result("it has all of the port's counters",
           {path.name for path in PORT.iterdir()} - {"lifespan"} <= set(own), sorted(own))
    rdma("statistic", "qp", "unbind", "link", LINK, "cntn", str(mine[0]["cntn"]), "lqpn", str(qpn))
    after = port("sent_pkts")
    result("without it they lose nothing", after >= all_, f"{all_}, then {after}")
    result("it has gone", not counters(), counters())
    result("and the port counts on", grows(lambda: port("sent_pkts"), after), "it does not grow")


def turns(qpn):
    """Again and again while packets come and go: nothing is lost, nothing is counted twice."""
    highest = port("sent_pkts")
    for turn in range(TURNS):
        rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(qpn))
        middle = port("sent_pkts")
        number = str(counters()[0]["cntn"])
        rdma("statistic", "qp", "unbind", "link", LINK, "cntn", number, "lqpn", str(qpn))
        now = port("sent_pkts")
        if not highest <= middle <= now:
            result("the port's counter never goes back", False, f"turn {turn}: {highest}, {middle}, {now}")
            return
        highest = now
    result("the port's counter never goes back", True, "")


traffic = subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
try:
    number = running()
    bound(number)
    turns(number)
    # it goes with its queue pair
    rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(number))
    before = port("sent_pkts")
    traffic.kill()
    traffic.wait()
    for _ in range(50):
        if not counters():
            break
        time.sleep(0.1)
    result("a counter goes with its queue pair", not counters(), counters())
    result("and what it counted stays with the port", port("sent_pkts") >= before,
           f"{before}, then {port('sent_pkts')}")
except OSError as error:
    result("queue pairs with counters of their own", False, error)
finally:
    traffic.kill()
sys.exit(failed)
