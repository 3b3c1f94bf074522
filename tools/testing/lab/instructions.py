# SPDX-License-Identifier: GPL-2.0
"""Counts the instructions of a guest by function. A QEMU plugin counts all of them; there is no sampling.

`lab run --profile` uses it. To get names of functions, the script must copy /proc/kallsyms to $LAB_OUT while the
modules are loaded."""

import bisect
import collections
import re
import subprocess

import accel
import paths

SOURCE = paths.LAB / "instructions.c"


def _interface():
    """The version of the plugin interface for the QEMU of this host: 1 before QEMU 9, 3 from QEMU 9.1 on."""
    version = accel.qemu_version()
    match = re.search(r"version (\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) < (9, 0):
        return 1
    if match and (int(match[1]), int(match[2])) > (9, 0):
        return 3
    raise RuntimeError(f"the plugin that counts instructions does not support this QEMU: {version}")


def flags(node):
    """The QEMU options for a node. Compiles the plugin if it is missing or old."""
    interface = _interface()
    plugin = paths.STATE / f"instructions-{interface}.so"
    with paths.lock("instructions"):
        if not plugin.is_file() or plugin.stat().st_mtime < SOURCE.stat().st_mtime:
            subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-shared", "-fPIC",
                            f"-DPLUGIN_API={interface}", "-fvisibility=hidden", "-o", str(plugin), str(SOURCE)],
                           check=True)
    return ["-plugin", f"{plugin},out=profile.{node}"]


def _symbols(text):
    """A sorted list of (address, (name, module)) of the functions in /proc/kallsyms."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[1] in "tTwW":
            module = words[3].strip("[]") if len(words) > 3 else "kernel"
            found.append((int(words[0], 16), (words[2], module)))
    return sorted(found)


def functions(blocks, symbols):
    """{(function, module): [instructions, calls]} from the output of the plugin."""
    table = _symbols(symbols)
    addresses = [address for address, _ in table]
    found = collections.defaultdict(lambda: [0, 0])
    for line in blocks.splitlines():
        address, instructions, executions = line.split()
        address = int(address, 16)
        at = bisect.bisect_right(addresses, address) - 1
        if not address:
            name = ("(programs)", "user")
        elif at < 0:
            name = ("(unknown)", "kernel")
        else:
            name = table[at][1]
            if addresses[at] == address:
                found[name][1] += int(executions)
        found[name][0] += int(instructions)
    return found


def of_run(folder, node):
    """The result of functions() for a node of a run."""
    symbols = folder / f"node{node}/kallsyms"
    return functions((folder / f"profile.{node}").read_text(), symbols.read_text() if symbols.is_file() else "")


def table(found, messages, rows):
    """The lines of a report: each module, then the functions with most instructions. Numbers are for one message."""
    total = sum(instructions for instructions, _ in found.values())
    modules = collections.Counter()
    for (_, module), (instructions, _) in found.items():
        modules[module] += instructions
    lines = [f"{total / messages:10.1f}  instructions" + (" a message" if messages > 1 else "")]
    lines += [f"{instructions / messages:10.1f}  {100 * instructions / total:4.1f} %  {module}"
              for module, instructions in modules.most_common()]
    lines += ["", "instructions          calls  function"]
    for (name, module), (instructions, calls) in sorted(found.items(), key=lambda one: -one[1][0])[:rows]:
        lines.append(f"{instructions / messages:10.1f}  {100 * instructions / total:4.1f} %  "
                     f"{calls / messages:7.2f}  {name}" + (f" [{module}]" if module != "kernel" else ""))
    return lines
