#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the events of the tracepoints with the counters of the device.

    trace.py begin DEVICE                        start to trace
    trace.py judge DEVICE NAME [EVENT|!EVENT]... print a result for each check; EVENT must be, or must not be, in
                                                 the trace"""

import collections
import json
import pathlib
import re
import sys

import ktap

TRACING = pathlib.Path("/sys/kernel/tracing")
INSTANCE = TRACING / "instances/nhca-test"
SAVED = pathlib.Path("/tmp/nhca-trace.json")
PSNS = 1 << 24

LINE = re.compile(r"\s(\d+\.\d+): (nhca_\w+): dev \d+ qpn (0x[0-9a-f]+|0): (.*)$")
PACKET = re.compile(r"(\w+) (\S+) peer (\S+) psn (\d+) packets (\d+) payload (\d+)")
LOCAL = re.compile(r"(\S+) peer (\S+) psn (\d+) npsn (\d+) bytes (\d+)")
STARTED = re.compile(r"(\S+) wr_id (\S+) length (\d+)")
BEGUN = re.compile(r"(\w+) key (\S+) offset (\d+) bytes (\d+) blocks (\d+)")
ENDED = re.compile(r"(\w+) key (\S+) offset (\d+) result (-?\d+)")
BLOCK = re.compile(r"(\w+) key (\S+) op (\d+) index (\d+)")
AGAIN = -11
# for each state of a block: the states that it may follow
BEFORE = {"queued": {"free"}, "filling": {"queued"}, "ready": {"filling"}, "failed": {"filling"}, "sent": {"ready"},
          "collecting": {"queued"}, "dirty": {"collecting", "draining"}, "draining": {"dirty"},
          "free": {"queued", "ready", "failed", "sent", "collecting", "draining"}}
COMPLETED = re.compile(r"(\S+) wr_id (\S+) status (\S+) length (\d+) ns (\d+)")

Event = collections.namedtuple("Event", "at kind qpn text")


def counters(device):
    port = pathlib.Path(f"/sys/class/infiniband/{device}/ports/1/hw_counters")
    return {path.name: int(path.read_text()) for path in port.iterdir() if path.name != "lifespan"}


def begin(device):
    INSTANCE.mkdir(exist_ok=True)
    (INSTANCE / "events/enable").write_text("0")
    (INSTANCE / "buffer_size_kb").write_text("32768")
    (INSTANCE / "trace_clock").write_text("mono")
    (INSTANCE / "trace").write_text("")
    (INSTANCE / "tracing_on").write_text("1")
    (INSTANCE / "events/nhca/enable").write_text("1")
    SAVED.write_text(json.dumps(counters(device)))


def end():
    """Stops the trace. Returns all its events in order."""
    (INSTANCE / "events/nhca/enable").write_text("0")
    lost = [stats.read_text() for stats in INSTANCE.glob("per_cpu/cpu*/stats")
            if not re.search(r"^overrun: 0$", stats.read_text(), re.M)]
    if lost:
        raise ValueError(f"events were lost: {lost[0]!r}")
    events = []
    with (INSTANCE / "trace").open() as trace:
        for line in trace:
            match = LINE.search(line)
            if match:
                events.append(Event(float(match[1]), match[2], int(match[3], 16), match[4]))
            elif "nhca_" in line and "nhca_channel_drop" not in line:
                raise ValueError(f"unknown event: {line!r}")
    INSTANCE.rmdir()
    return events


def fields(events, kind, expression):
    for event in events:
        if event.kind == kind:
            match = expression.match(event.text)
            if not match:
                raise ValueError(f"unknown text of an event: {event}")
            yield event, match.groups()


def reasons(events, kind):
    return collections.Counter(event.text.split(";")[0] for event in events if event.kind == kind)


def packets(events, more):
    for name, kind in (("sent", "nhca_packet_sent"), ("rcvd", "nhca_packet_received")):
        count = size = 0
        for _, values in fields(events, kind, PACKET):
            count += int(values[4])
            size += int(values[4]) * int(values[5])
        if (count, size) != (more[f"{name}_pkts"], more[f"{name}_bytes"]):
            yield f"{kind}: {count} packets of {size} bytes, the counters have " \
                  f"{more[f'{name}_pkts']} of {more[f'{name}_bytes']}"
    size = sum(int(values[4]) for _, values in fields(events, "nhca_same_host", LOCAL))
    if size != more["same_host_bytes"]:
        yield f"nhca_same_host: {size} bytes, the counters have {more['same_host_bytes']}"
    for name, count in reasons(events, "nhca_packet_refused").items():
        if count != more[name]:
            yield f"nhca_packet_refused: {count} times {name}, the counters have {more[name]}"


def names(events, _more):
    """Checks that each opcode has a name. The kernel prints a value without a name as a hexadecimal number."""
    for kind in ("nhca_packet_sent", "nhca_packet_received"):
        for event, (service, op, *_) in fields(events, kind, PACKET):
            if service.startswith("0x") or op.startswith("0x"):
                yield f"{event}: no name"
    for kind, expression in (("nhca_wqe_started", STARTED), ("nhca_wqe_completed", COMPLETED),
                             ("nhca_same_host", LOCAL)):
        for event, (wr, *_) in fields(events, kind, expression):
            if wr.startswith("0x"):
                yield f"{event}: no name"


def sequence(events, _more):
    """Checks that the PSNs of each queue pair's requests have no gap."""
    behind = {}
    for event in events:
        if event.kind == "nhca_same_host":
            # The same-host path also takes PSNs. If it closes, the queue pair continues with packets.
            behind.pop(event.qpn, None)
        if event.kind != "nhca_packet_sent":
            continue
        service, op, _, psn, count, _ = PACKET.match(event.text).groups()
        if service != "RC" or not op.startswith(("SEND", "WRITE")):
            # After another request the next PSN is unknown here. Responses take no PSNs.
            if service == "RC" and "RESP" not in op and "ACK" not in op:
                behind.pop(event.qpn, None)
            continue
        expected = behind.get(event.qpn, int(psn))
        # PSNs wrap. A smaller PSN is a retransmission.
        if 0 < (int(psn) - expected) % PSNS < PSNS // 2:
            yield f"{event}: expected PSN {expected}"
        after = (int(psn) + int(count)) % PSNS
        if (after - expected) % PSNS < PSNS // 2:
            behind[event.qpn] = after


def requests(events, more):
    began = {}
    done = collections.Counter()
    for event in events:
        if event.kind == "nhca_wqe_started":
            wr, number, _ = STARTED.match(event.text).groups()
            began.setdefault((event.qpn, wr, number), []).append(event.at)
        elif event.kind == "nhca_wqe_completed":
            wr, number, status, _, ns = COMPLETED.match(event.text).groups()
            done[wr.split("_")[0], status] += 1
            since = began.get((event.qpn, wr, number))
            if int(ns) and not since:
                yield f"{event}: it has no start event"
            elif since:
                # The driver reads the clock just before it writes the start event, and again for the completion
                # event. So the start event must not be earlier than the measured start.
                late = since.pop(0) - (event.at - int(ns) / 1e9)
                if not -1e-5 < late < 1:
                    yield f"{event}: its start time is wrong by {late:.6f} s"
    for name, wr in (("rdma_sends", "SEND"), ("rdma_recvs", "RECV")):
        if done[wr, "SUCCESS"] != more[name]:
            yield f"nhca_wqe_completed: {done[wr, 'SUCCESS']} times {wr}, the counters have {more[name]}"


def retries(events, more):
    seen = reasons(events, "nhca_retry")
    for name in ("rcvd_seq_err", "rcvd_rnr_err", "early_retransmits", "local_ack_timeout_err",
                 "odp_retransmits"):
        if seen[name] != more[name]:
            yield f"nhca_retry: {seen[name]} times {name}, the counters have {more[name]}"
    # The counter counts each response that shows a loss. Only the first response of a loss causes a retransmission and
    # an event.
    if seen["implied_nak_seq_err"] > more["implied_nak_seq_err"]:
        yield f"nhca_retry: {seen['implied_nak_seq_err']} times implied_nak_seq_err, the counter is smaller"
    for kind, text, name in (("sent", "PSN sequence", "send_seq_err"), ("sent", "RNR", "send_rnr_err"),
                             ("received", "PSN sequence", "rcvd_seq_err"),
                             ("received", "RNR", "rcvd_rnr_err")):
        count = sum(event.kind == f"nhca_nak_{kind}" and event.text.startswith(text)
                    for event in events)
        # If the missing packet arrives before the NAK is sent, the NAK is counted but not sent. A received NAK may be
        # stale: it gives an event, but is not counted.
        if count > more[name] if kind == "sent" else count < more[name]:
            yield f"nhca_nak_{kind}: {count} times {text}, the counters have {more[name]}"


def keys(events, _more):
    """Checks that a key is revoked before the completion of its LOCAL_INV, and that no key stays valid."""
    opened, began, revoked = {}, {}, {}
    for event in events:
        if event.kind in ("nhca_key_opened", "nhca_key_revoked"):
            key = re.search(r"key (\S+)", event.text)[1]
            if event.kind == "nhca_key_opened":
                opened[key] = event.at
            else:
                opened.pop(key, None)
                revoked[event.qpn] = event.at
        elif event.kind == "nhca_wqe_started" and event.text.startswith("LOCAL_INV"):
            began[event.qpn] = event.at
        elif event.kind == "nhca_wqe_completed" and event.text.startswith("LOCAL_INV") \
                and "SUCCESS" in event.text:
            if not began.get(event.qpn, event.at + 1) <= revoked.get(event.qpn, 0) <= event.at:
                yield f"{event}: its key was not revoked between start and completion"
    if opened:
        yield f"keys of processes that have ended were not revoked: {sorted(opened)[:5]}"


def disks(events, more):
    """Compares the I/O requests of regions of files with the counters."""
    begun = [values for _, values in fields(events, "nhca_direct_begun", BEGUN)]
    ended = [(*values[:3], int(values[3])) for _, values in fields(events, "nhca_direct_ended", ENDED)]
    # I/O requests for the same place may end in another order than they began.
    wanted = collections.defaultdict(list)
    errors = 0
    for kind, key, offset, size, _ in begun:
        wanted[kind, key, offset].append(int(size))
    for *place, result in ended:
        sizes = wanted[tuple(place)]
        if not sizes:
            yield f"nhca_direct_ended: {place} has not begun"
            return
        errors += result not in (*sizes, AGAIN)
        sizes.remove(result if result in sizes else sizes[0])
    for name, count in (
            ("direct_io_begun", len(begun)), ("direct_io_ended", len(ended)), ("direct_io_errors", errors),
            ("direct_io_blocks", sum(int(values[4]) for values in begun)),
            ("direct_io_edges", sum(one[0] == "edge" for one in ended)),
            ("direct_io_again", sum(one[3] == AGAIN for one in ended)),
            ("direct_read_bytes", sum(max(one[3], 0) for one in ended if one[0] == "read")),
            ("direct_write_bytes", sum(max(one[3], 0) for one in ended if one[0] in ("write", "merged"))),
            ("direct_waits", sum(event.kind == "nhca_direct_wait" for event in events)),
            ("direct_flushes", sum(event.kind == "nhca_direct_flushed" for event in events))):
        if count != more[name]:
            yield f"nhca_direct: {count} for {name}, the counter has {more[name]}"


def blocks(events, _more):
    """Checks that each block of an operation goes through its states in order, and is free in the end."""
    # Operations of several queue pairs may have the same number and use the same block.
    states = collections.defaultdict(list)
    for event, (state, *block) in fields(events, "nhca_direct_block", BLOCK):
        mine = states[tuple(block)]
        before = next((one for one in mine if one in BEFORE[state]), None)
        if before:
            mine.remove(before)
        elif "free" not in BEFORE[state]:
            yield f"{event}: the block was {mine}"
        if state != "free":
            mine.append(state)
    left = [block for block, mine in states.items() if mine]
    if left:
        yield f"blocks are not free: {left[:5]}"


PROMISES = (("every packet is in an event", packets), ("every opcode has a name", names),
            ("PSNs have no gaps", sequence),
            ("work requests start and complete at the traced times", requests),
            ("every retry and NAK is in an event", retries),
            ("a key is revoked before its LOCAL_INV completes", keys),
            ("every I/O request of a region of a file is in an event", disks),
            ("blocks of regions of files have their states in order", blocks))


def judge(device, name, wanted):
    report = ktap.Report()
    before = json.loads(SAVED.read_text())
    more = {key: value - before[key] for key, value in counters(device).items()}
    events = end()
    print(f"# {name}: " + ", ".join(f"{count} {kind}" for kind, count in
                                    collections.Counter(e.kind for e in events).items()))
    for promise, check in PROMISES:
        wrong = list(check(events, more))
        report.result(f"{name}: {promise}", not wrong, f"{wrong[0]} ({len(wrong)})" if wrong else "")
    kinds = {event.kind for event in events}
    for word in wanted:
        report.result(f"{name}: {word}", (word.lstrip("!") in kinds) != word.startswith("!"),
                      f"the events were {sorted(kinds)}")
    return report.end()


if sys.argv[1] == "begin":
    begin(sys.argv[2])
else:
    sys.exit(judge(sys.argv[2], sys.argv[3], sys.argv[4:]))
