#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""observe.py DEVICE COMMAND...: checks what each tool shows about the queue pair of a running COMMAND

Prints a KTAP report."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import ktap

DEVICE, COMMAND = sys.argv[1], sys.argv[2:]
LINK = f"{DEVICE}/1"
INSTANCES = pathlib.Path("/sys/kernel/tracing/instances")
SCRIPTS = pathlib.Path("/usr/local/share/nhca/bpftrace")
# Indices of 32-bit words in struct nhca_res_qp
QP_WORDS = {"qpn": 1, "type": 2, "state": 3, "dest_qpn": 4, "path_mtu": 5, "sq_size": 9, "sq_psn": 12,
            "sq_una": 13, "cwnd": 15}
report = ktap.Report()


def result(name, good, why=""):
    report.result(name, good, repr(str(why)[:300]))


def rdma(*words):
    done = subprocess.run(["rdma", *words], text=True, capture_output=True)
    if done.returncode:
        raise OSError(f"rdma {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout or "[]")


def mine(kind, *flags):
    """The device's objects of a kind. Driver-specific fields lose their prefix "drv_"."""
    return [{key.removeprefix("drv_"): value for key, value in one.items()}
            for one in rdma("-j", *flags, "resource", "show", kind) if one["ifname"] == DEVICE]


def running():
    for _ in range(300):
        for one in mine("qp"):
            if one["type"] == "RC" and one["state"] == "RTS":
                return one["lqpn"]
        time.sleep(0.1)
    raise OSError("no queue pair in RTS within 30 s")


def of(objects, number):
    return next(one for one in objects if one.get("lqpn") == number)


# ---- rdma resource ----

def raw(kind):
    """The raw contexts of `rdma resource show -r`, which prints them as lists of numbers."""
    for one in rdma("-j", "-r", "resource", "show", kind):
        if one["ifname"] == DEVICE:
            yield bytes(one["data"])


def resources(number):
    first = of(mine("qp", "-dd"), number)
    wanted = {"path_mtu", "udp_sport", "peer", "tx_queued", "sq_size", "sq_outstanding", "sq_una", "sq_nxt",
              "cwnd", "retries_left", "srtt_us", "oldest_opcode", "rq_posted", "msn"}
    result("details of a queue pair", wanted <= set(first), sorted(first))
    result("details: path MTU, retries and UDP port", first["path_mtu"] == 1024 and first["retries_left"] == 7 and
           0xc000 <= first["udp_sport"] <= 0xffff, first)
    moves = wants = False
    for _ in range(50):
        now = of(mine("qp", "-dd"), number)
        moves |= now["sq_una"] != first["sq_una"]
        wants |= now["sq_outstanding"] > 0 and int(str(now["oldest_opcode"]), 0) == 0
        between = (now["sq_nxt"] - now["sq_una"]) % (1 << 24)
        if not between <= 256:
            result("at most 256 packets, the largest cwnd, are unacknowledged", False, now)
            return
        time.sleep(0.02)
    result("at most 256 packets, the largest cwnd, are unacknowledged", True)
    result("details: the PSNs advance", moves, first)
    result("RDMA WRITEs are outstanding", wants, first)

    context = next(one for one in raw("qp") if struct.unpack_from("=2I", one)[1] == number)
    words = struct.unpack_from("=28I", context)
    result("the raw context begins with its size", words[0] == len(context), (words[0], len(context)))
    got = {name: words[place] for name, place in QP_WORDS.items()}
    result("the raw context has the same values", got["qpn"] == number and got["type"] == 2 and got["state"] == 3 and
           got["dest_qpn"] == first["rqpn"] and got["path_mtu"] == first["path_mtu"] and
           got["sq_size"] == first["sq_size"] and 4 <= got["cwnd"] <= 256, (got, first))

    cqs = [one for one in mine("cq", "-dd") if one.get("comm", "").strip("[]") == "ib_write_bw"]
    result("details of completion queues", cqs and all({"entries", "unpolled", "produced", "overrun"} <= set(one)
           and one["unpolled"] <= one["entries"] for one in cqs), mine("cq", "-dd"))
    regions = [one for one in mine("mr", "-dd") if one.get("comm", "").strip("[]") == "ib_write_bw"]
    result("details of memory regions", regions and all(one["kind"] == "tce" and one["valid"] == 1 and
           one["tces"] > 0 for one in regions), mine("mr", "-dd"))
    contexts = list(raw("mr"))
    result("the raw context of a region", any(
        struct.unpack_from("=I", one)[0] == len(one) and struct.unpack_from("=Q", one, 48)[0] == regions[0]["mrlen"]
        for one in contexts), (contexts, regions[0]))


# ---- nhcatop ----

def nhcatop(*words, **options):
    return subprocess.run(["nhcatop", *words], text=True, capture_output=True, timeout=60, **options)


def instances():
    return [path.name for path in INSTANCES.glob("nhcatop-*")]


def once(number):
    done = nhcatop("--once", "--json", "--interval", "2")
    if done.returncode:
        result("nhcatop --once --json", False, done.stderr)
        return
    told = json.loads(done.stdout)
    port, qp = told["devices"][0], of(told["qps"], number)
    result("nhcatop --once --json", told["traced"] and port["device"] == DEVICE and port["sent_bytes"] > 0, port)
    result("nhcatop: rates of a queue pair", qp["sends"] > 0 and qp["bytes"] > qp["sends"], qp)
    result("nhcatop: latencies of a queue pair", qp["latency"] and 10 <= qp["p50"] <= qp["p99"] <= 33, qp)
    result("nhcatop: retries of a queue pair", qp["retries"] > 0, qp)
    result("nhcatop: process of a queue pair", qp["process"] == f"ib_write_bw/{traffic.pid}", qp)
    text = nhcatop("--once", DEVICE).stdout.splitlines()
    result("nhcatop --once", len(text) >= 3 and text[0].startswith(f"{DEVICE} ACTIVE") and
           any(line.startswith(f"{number:#x}") for line in text[2:]), text)
    result("nhcatop leaves no instance in tracefs", not instances(), instances())


class Terminal:
    """nhcatop in a terminal of 24 lines."""

    def __init__(self):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM="linux", LC_ALL="C.UTF-8")
            os.execvp("nhcatop", ["nhcatop", "-i", "0.5"])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 24, 140, 0, 0))

    def until(self, what, seconds=60):
        """Reads the terminal until it matches a pattern. Returns all output since the last call, or None."""
        seen, deadline = "", time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.5)[0]:
                try:
                    seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
            if re.search(what, seen):
                return seen
        self.last = seen
        return None

    def keys(self, text):
        os.write(self.fd, text.encode())

    def status(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            # Read the last output of nhcatop, which must not block on a full terminal.
            self.until("$^", 0.1)
            time.sleep(0.1)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def screen(number):
    terminal = Terminal()
    result("nhcatop shows the queue pair in a terminal", terminal.until(f"{number:#x}"), getattr(terminal, "last", ""))
    # Ctrl-L makes nhcatop draw the whole screen, not only what has changed.
    terminal.until("$^", 2)
    terminal.keys("\x0c")
    result("nhcatop shows a histogram", terminal.until("[▁▂▃▄▅▆▇█]"), getattr(terminal, "last", ""))
    terminal.keys("s\x0c")
    result("key s sorts by the next column", terminal.until("by RETRY"), getattr(terminal, "last", ""))
    terminal.keys("h\x0c")
    result("key h shows the keys", terminal.until("q quit"), getattr(terminal, "last", ""))
    terminal.keys("r+-\x1b[B\x1b[A")
    terminal.until("$^", 1)
    terminal.keys("q")
    result("key q ends nhcatop", terminal.status() == 0 and not instances(), instances())
    terminal = Terminal()
    terminal.until(f"{number:#x}")
    os.kill(terminal.pid, signal.SIGTERM)
    result("SIGTERM ends nhcatop", terminal.status() == 0 and not instances(), instances())


def refusals():
    for name, words, options, wanted in (
            ("without root", ["--once"], {"user": "nobody"}, "sudo nhcatop.*--no-trace"),
            ("an invalid interval", ["--once", "-i", "soon"], {}, "'soon' is no interval.*such as 2"),
            ("an unknown column", ["--once", "-s", "size"], {}, "'size'.*bytes"),
            ("an unknown device", ["--once", "eth0"], {}, f"eth0 is not an nhca device.*{DEVICE}"),
            ("no terminal", [], {"stdin": subprocess.DEVNULL}, "no terminal.*--once"),
            ("--json without --once", ["--json"], {}, "--once"),
            ("an unknown option", ["--fast"], {}, "--fast.*--help")):
        done = nhcatop(*words, **options)
        lines = done.stderr.splitlines()
        result(f"refused in one line: {name}", done.returncode == 1 and len(lines) == 1 and not done.stdout and
               re.match(f"nhcatop: .*{wanted}", lines[0]), done.stderr)
    done = nhcatop("--once", "--no-trace", "-i", "0.5", user="nobody")
    result("nhcatop runs without root and events", done.returncode == 0 and "RTS" in done.stdout, done.stderr)
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", "/usr/local/share/man/man8/nhcatop.8"], text=True,
                              capture_output=True)
        result("the man page of nhcatop has no errors", not done.stdout and not done.stderr, done.stdout + done.stderr)


# ---- bpftrace ----

def scripts(number):
    events = pathlib.Path("/sys/kernel/tracing/events/nhca")
    for script in sorted(SCRIPTS.glob("*.bt")):
        text = script.read_text()
        wrong = []
        for event, body in re.findall(r"^tracepoint:nhca:(\w+)(.*?)^}", text, re.M | re.S):
            path = events / event / "format"
            have = set(re.findall(r"field:.* (\w+);", path.read_text())) if path.exists() else set()
            wrong += [f"{event}.{name}" for name in set(re.findall(r"args->(\w+)", body)) - have]
        result(f"{script.name}: its events and fields exist", not wrong, wrong)
        if not shutil.which("bpftrace"):
            continue
        program = subprocess.Popen(["bpftrace", str(script)], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        time.sleep(20)
        program.send_signal(signal.SIGINT)
        said, _ = program.communicate(timeout=60)
        wanted = rf"@us\[{number}, 0\]:.*@@@" if "latency" in script.name else rf"@went_back\[{number}\]: \d+"
        result(f"{script.name} runs", re.search(wanted, said, re.S), said)


traffic = subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
try:
    qpn = running()
    resources(qpn)
    once(qpn)
    screen(qpn)
    refusals()
    scripts(qpn)
except (OSError, KeyError, StopIteration) as error:
    result("the tools can be tested", False, repr(error))
finally:
    traffic.kill()
sys.exit(report.end())
