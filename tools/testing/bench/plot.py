# SPDX-License-Identifier: GPL-2.0
"""Draws the results of the benchmark as SVG files.

A series over sizes, numbers of queue pairs or losses becomes a picture with one line for each driver. A latency, and a
stream of another operation than WRITE, becomes a picture with one bar for each driver. The first word of a
measurement's name is the driver."""

import re
import shutil
import subprocess

BEGIN = """set terminal svg size 760,420 dynamic noenhanced font 'sans-serif,13'
set output '{svg}'
set title '{title}'
set ylabel '{label}'
"""
BARS = BEGIN + """set style data histograms
set style fill solid 0.8
set boxwidth 0.8
set yrange [0:*]
set xtics rotate by -25
plot '-' using 2:xtic(1) notitle
{rows}
e
"""
LINES = BEGIN + """set xlabel '{across}'
set key outside bottom center horizontal samplen 2
set grid lc rgb 'gray'
{axes}
plot {lines}
{rows}
"""
SIZES = "set logscale x\nset xtics (%s)" % ", ".join(
    f"'{size if size < 1024 else size >> 10 if size < 1 << 20 else size >> 20}"
    f"{'' if size < 1024 else ' KiB' if size < 1 << 20 else ' MiB'}' {size}"
    for size in (2, 64, 512, 4096, 16384, 65536, 262144, 1 << 20, 8 << 20))
LOG = SIZES + "\nset logscale y"
LOG_X = SIZES + "\nset yrange [0:*]"
LOG_COUNT = "set logscale x\nset yrange [0:*]"
LINEAR = "set yrange [0:*]"


# {first word of a measurement's name: (name in the pictures, colour, gnuplot's point type)}. The colours can be seen on
# light and on dark backgrounds.
NAMES = {"nhca-veth": ("nhca, by packets", "#2f81f7", 7), "nhca": ("nhca", "#2f81f7", 7),
         "nhca-same-host": ("nhca, same host without packets", "#8250df", 5),
         "rxe-loop": ("rdma_rxe", "#e36209", 9), "rxe": ("rdma_rxe", "#e36209", 9),
         "siw-veth": ("siw", "#2da44e", 11), "siw": ("siw", "#2da44e", 11),
         "tcp-veth": ("TCP", "#bf3989", 13), "tcp": ("TCP", "#bf3989", 13)}
OTHER = ("", "#848d97", 4)
# The pictures of the book, for draw_book()
BOOK = ("packets-bandwidth", "sizes-bandwidth", "sizes-cost", "sizes-latency", "qps")


def can():
    return shutil.which("gnuplot")


def _line(who, suffix):
    title, colour, point = NAMES.get(who, OTHER)
    return f"'-' using 1:2 with linespoints lc rgb '{colour}' lw 2 pt {point} title '{title or who}{suffix}'"


def _plain(one):
    return " of " not in one["name"] and one.get("qps", 1) == 1 and one.get("list", 1) == 1 and "loss" not in one


def _stream(one):
    """True for a stream of WRITEs or of TCP."""
    return one.get("mode") == "stream" and one.get("op") in ("write", "tcp")


def _of_64_kib(one):
    return _stream(one) and one["size"] == 65536 and " of " not in one["name"]


def _rate(one):
    return one["MiB_per_s"]


# (file, title, y label, x label, axes, filter of measurements, x value, {suffix of the line's name: y value})
SERIES = (
    ("packets-bandwidth", "WRITE by packets, one queue pair; TCP: one stream", "MiB/s", "bytes a message", LOG_X,
     lambda one: _stream(one) and _plain(one) and one["who"] != "nhca-same-host" and one["size"] >= 512,
     lambda one: one["size"], {"": _rate}),
    ("sizes-bandwidth", "WRITE, one queue pair", "MiB/s", "bytes a message", LOG,
     lambda one: _stream(one) and _plain(one), lambda one: one["size"], {"": _rate}),
    ("sizes-rate", "WRITE, one queue pair", "messages a second", "bytes a message", LOG,
     lambda one: _stream(one) and _plain(one), lambda one: one["size"],
     {"": lambda one: 1e9 / one["ns_per_message"]}),
    ("sizes-cost", "WRITE, one queue pair, both ends", "instructions a byte", "bytes a message", LOG,
     lambda one: _stream(one) and _plain(one) and "instructions_per_byte" in one,
     lambda one: one["size"], {"": lambda one: one["instructions_per_byte"]}),
    ("sizes-latency", "SEND, half of a round trip, p50", "us", "bytes a message", LOG,
     lambda one: one.get("mode") == "pingpong" and not one["polls"], lambda one: one["size"],
     {"": lambda one: one["p50_ns"] / 1000}),
    ("qps", "WRITE 64 KiB, queue pairs in turn", "MiB/s", "queue pairs", LOG_COUNT,
     lambda one: _of_64_kib(one) and one["op"] != "tcp" and "loss" not in one,
     lambda one: one["qps"], {"": _rate}),
    ("loss", "WRITE 64 KiB with packet loss", "MiB/s", "lost packets, %", LINEAR,
     lambda one: _of_64_kib(one) and one.get("qps", 1) == 1, lambda one: one.get("loss", 0),
     {"": _rate}),
)


def _draw(text, svg):
    subprocess.run(["gnuplot"], input=text, text=True, check=True)
    return svg


def _lines(found, folder, files=None):
    for file, title, label, across, axes, theirs, place, values in SERIES:
        if files and file not in files:
            continue
        lines = {}
        for name, one in found.items():
            if "failed" in one or not theirs(dict(one, name=name, who=name.split()[0])):
                continue
            for suffix, value in values.items():
                lines.setdefault((name.split()[0], suffix), {})[place(one)] = value(one)
        lines = {name: points for name, points in lines.items() if len(points) > 2}
        if not lines:
            continue
        svg = folder / f"{file}.svg"
        rows = "\n".join("".join(f"{x} {points[x]:.4f}\n" for x in sorted(points)) + "e"
                         for points in lines.values())
        yield _draw(LINES.format(svg=svg, title=title, label=label, across=across, axes=axes, rows=rows,
                                 lines=", ".join(_line(*name) for name in lines)), svg)


def _bars(found, folder):
    kinds = {}
    for name, one in found.items():
        adapter, _, what = name.partition(" ")
        if _stream(one):
            continue
        if "p50_ns" in one:
            label, amount = "us (p50)", one["p50_ns"] / 1000
        elif one.get("mode") != "stream":
            continue
        elif one["size"] >= 4096:
            label, amount = "MiB/s", one["MiB_per_s"]
        else:
            label, amount = "thousand messages a second", 1e6 / one["ns_per_message"]
        where = "one host" if "instructions_per_message" in one else "two guests"
        kinds.setdefault((f"{what}, {where}", label), []).append(f'"{adapter}" {amount:.2f}')
    for (title, label), rows in kinds.items():
        svg = folder / (re.sub(r"\W+", "-", title) + ".svg")
        yield _draw(BARS.format(svg=svg, title=title, label=label, rows="\n".join(rows)), svg)


def draw_book(found, folder):
    """Draws the pictures of BOOK. Generates their file names."""
    return _lines(found, folder, BOOK)


def draw(found, folder):
    """Draws all pictures of {measurement: its JSON}. Generates their file names."""
    yield from _lines(found, folder)
    yield from _bars(found, folder)
