# SPDX-License-Identifier: GPL-2.0
"""A run: starts guests, runs the script on each node, copies its output, checks the kernel logs, stops the guests."""

import json
import os
import pathlib
import shlex
import shutil
import sys
import time

import accel
import build
import guest
import image
import initramfs
import instructions
import judge
import kernel
import network
import paths
import question
import say
import uml

KEEP_RUNS = 20
BOOT_SECONDS = {"lab": 240, "systemd": 720}
SHOWN_LOG_LINES = 60


def drivers(text, nodes):
    """{node: driver} from the text of --driver: "nhca", or "1=nhca,2=rxe"."""
    known = ("nhca", "rxe", "siw", "none")
    chosen = {}
    for part in text.split(","):
        number, equals, name = part.partition("=")
        if not equals:
            number, name = None, part
        if name not in known:
            raise say.LabError(f"unknown driver {name}; known are {', '.join(known)}")
        if number is None:
            chosen = {node: name for node in range(1, nodes + 1)}
        elif not number.isdigit() or not 1 <= int(number) <= nodes:
            raise say.LabError(f"--driver {part}: there is no node {number}")
        else:
            chosen[int(number)] = name
    missing = [node for node in range(1, nodes + 1) if node not in chosen]
    if missing:
        raise say.LabError(f"--driver {text} does not name a driver for node {missing[0]}")
    return chosen


class Lab:
    """The guests of a run. A Lab is a context manager, which ends all guests at its exit."""

    def __init__(self, options):
        self.options = options
        self.guests = []
        self.cables = None                  # of user-mode guests
        self.folder = None
        self.drivers = drivers(options.driver, options.nodes)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for one in self.guests:
            one.stop()
        if self.cables:
            self.cables.stop()
        if self.folder:
            for path in [self.folder / "initrd", self.folder / "alive",
                         *self.folder.glob("tty.*"), *self.folder.glob("top.*"),
                         *self.folder.glob("*.sock")]:
                path.unlink(missing_ok=True)

    def prepare(self):
        """Gets everything that is cached: image, kernel, builds, result of the KVM probe."""
        options = self.options
        paths.need_root()
        paths.need_tools()
        self.image = image.ensure(options.release, options.packages, packaged=options.debs)
        self.user_mode = options.machine == "uml"
        self.kernel = kernel.user_mode(options.kernel) if self.user_mode else \
            kernel.named(options.kernel, options.release)
        if options.kernel != "stock":
            options.memory = max(options.memory, kernel.MEMORY)
        self.disks = self.image.disks + ([self.kernel.disk] if self.kernel else [])
        builder = build.Builder(self.image, self.kernel)
        self.version = builder.version
        payloads = [builder.programs()]
        # With the driver "none" the guests also get the module, so that a script can load it.
        if options.debs:
            payloads += [builder.debs(), builder.installed_debs()]
        elif {"nhca", "none"} & set(self.drivers.values()):
            payloads.append(builder.driver(options.kunit, options.define))
        modules = {*options.modules, *({"siw"} & set(self.drivers.values()))}
        if self.kernel:
            modules.discard("siw")      # the lab's own kernels have siw, Debian's do not
        payloads += [builder.module(name) for name in sorted(modules)]
        self.kvm = not (self.user_mode or options.clock == "instructions" or options.profile) and \
            accel.choose(self.image)
        self._make_folder()
        self._make_initrd(payloads)

    def _make_folder(self):
        paths.RUNS.mkdir(parents=True, exist_ok=True)
        guest.prune(KEEP_RUNS)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for attempt in range(100):
            folder = paths.RUNS / (stamp + (f"-{attempt}" if attempt else ""))
            try:
                folder.mkdir()
                break
            except FileExistsError:
                continue
        self.folder = folder
        (folder / "alive").write_text(str(os.getpid()))
        (folder / "ctl").mkdir()
        # Rename the link over the old one, because another run may do the same.
        link = folder / "latest"
        link.symlink_to(folder.name)
        link.replace(paths.RUNS / "latest")

    def _read_disks(self):
        """Reads the disks into the page cache. On the instruction clock the time of an idle guest advances fast,
        so minutes of guest time would pass while the guest waits for a slow disk."""
        for disk in self.disks:
            with open(disk, "rb") as content:
                while content.read(1 << 22):
                    pass

    def _make_initrd(self, payloads):
        disks = uml.disks(len(self.disks)) if self.user_mode else \
            [f"vd{chr(ord('a') + index)}" for index in range(len(self.disks))]
        modules = self.kernel.modules if self.kernel else \
            self.image.kernel_tree / "usr/lib/modules" / self.version
        key = self.image.key + (f"-{self.kernel.key}" if self.kernel else "")
        base = initramfs.base(self.image, key, modules, self.version, disks)
        own = self.folder / "own/payload"
        for source, target in (("init", "lab/init"), ("barrier", "usr/local/bin/barrier"),
                               ("lab.service", "etc/systemd/system/lab.service")):
            (own / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.LAB / "guest" / source, own / target)
        wants = own / "etc/systemd/system/graphical.target.wants"
        wants.mkdir()
        (wants / "lab.service").symlink_to("../lab.service")
        initrd = self.folder / "initrd"
        initramfs.payload([*payloads, self.folder / "own"], initrd)
        shutil.rmtree(self.folder / "own")
        with open(initrd, "ab") as sink, open(base, "rb") as source:
            shutil.copyfileobj(source, sink)

    def _write_environment(self, node):
        values = network.environment(node, self.options.nodes, self.drivers[node])
        values["LAB_NETEM"] = self.options.netem or ""
        values["LAB_SHELL"] = "1" if self.options.shell else ""
        values["LAB_MHZ"] = uml.megahertz() if self.user_mode else ""
        values["LAB_EMULATED"] = "" if self.kvm else "1"
        values["LAB_RELEASE"] = self.options.release
        for pair in self.options.env:
            name, _, value = pair.partition("=")
            values[name] = value
        text = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items())
        (self.folder / f"ctl/env.{node}").write_text(text)

    def give_script(self, script, inline, arguments):
        control = self.folder / "ctl"
        if inline is not None:
            (control / "script").write_text(f"#!/bin/bash\n{inline}\n")
        else:
            data = pathlib.Path(script).read_bytes()
            if not data.startswith((b"#!", b"\x7fELF")):
                data = b"#!/bin/bash\n" + data
            (control / "script").write_bytes(data)
        (control / "script").chmod(0o755)
        (control / "arguments").write_bytes(b"".join(word.encode() + b"\0" for word in arguments))

    def boot(self):
        options = self.options
        how = "user-mode" if self.user_mode else "KVM" if self.kvm else "emulated"
        say.note(f"booting {options.nodes} guest{'s' * (options.nodes > 1)} "
                 f"({options.release}, {self.version}, {how}, "
                 f"{options.driver}); logs in {self.folder}")
        tree = self.kernel.tree if self.kernel else self.image.kernel_tree
        made = initramfs.kernel_file(tree, self.version)
        initrd = self.folder / "initrd"
        if self.user_mode:
            self.cables = uml.Cables(options.nodes)
        else:
            ends = network.cables(options.nodes)
        if options.clock == "instructions":
            self._read_disks()
        for number in range(1, options.nodes + 1):
            (self.folder / f"node{number}").mkdir()
            self._write_environment(number)
            one = (uml if self.user_mode else guest).Guest(number, self.folder)
            self.guests.append(one)
            if self.user_mode:
                plugs = [self.cables.plug(number)]
                command = one.command(self.image.trees[0], made, initrd, self.disks, plugs[0], options)
            else:
                plugs = network.plugs(number, ends)
                flags = accel.flags(self.kvm, options.clock)
                if options.profile:
                    flags += instructions.flags(number)
                command = one.command(made, initrd, self.disks, flags, accel.kernel_options(self.kvm),
                                      network.devices(number, options.nodes, options.mtu, ends), options)
            one.start(command, plugs)
            if not one.alive():
                raise say.LabError(f"node {number} ended while it started: {one.complaint()}")
        # Close the lab's copies of the sockets that the guests have inherited, so that a cable closes when its guest
        # ends.
        if self.user_mode:
            self.cables.connect()
        else:
            for end in [end for pair in ends.values() for end in pair]:
                end.close()


class Streams:
    """Copies the output of the nodes' scripts to stdout, each line with the number of its node in front."""

    def __init__(self, guests):
        self.files = [(one, open(one.output, "rb")) for one in guests]
        self.rest = {one.number: b"" for one in guests}

    def pump(self, final=False):
        for one, handle in self.files:
            data = self.rest[one.number] + handle.read()
            lines = data.split(b"\n")
            self.rest[one.number] = lines.pop()
            if final and self.rest[one.number]:
                lines.append(self.rest[one.number])
                self.rest[one.number] = b""
            for line in lines:
                sys.stdout.buffer.write(b"%d| %s\n" % (one.number, line.rstrip(b"\r")))
        sys.stdout.buffer.flush()


def wait(lab, script_seconds):
    """Waits until each node has a status. Returns {node: reason} for failures other than the script's."""
    boot_seconds = BOOT_SECONDS[lab.options.init]
    streams = Streams(lab.guests)
    reached = {}
    failures = {}
    while True:
        streams.pump()
        now = time.monotonic()
        waiting = 0
        for one in lab.guests:
            if one.number not in reached and one.ready_file.exists():
                reached[one.number] = now
                say.note(f"node {one.number} reached its script "
                         f"{now - one.started:.0f} s after power-on")
            if one.status() is not None:
                continue
            why = None
            if not one.alive():
                why = "the guest died" if one.number in reached else "the guest died while booting"
            elif one.number in reached and now - reached[one.number] > script_seconds:
                why = f"timeout: the script ran longer than {script_seconds} s"
            elif one.number not in reached and now - one.started > boot_seconds:
                why = f"the guest did not reach its script within {boot_seconds} s"
            if why:
                said = one.complaint()
                failures[one.number] = why + (f" ({said})" if said else "")
                if one.alive():
                    one.judged = one.console.stat().st_size
                    one.ask()
                one.declare_dead(why)
            else:
                waiting += 1
        if not waiting:
            break
        time.sleep(0.05)
    streams.pump(final=True)
    return failures


def verdict(lab, failures):
    """Prints the failures of each node. Returns the exit status of the run.

    Also writes the failures to result.json in the run's folder, for programs."""
    bad = False
    result = {"folder": str(lab.folder), "nodes": {}}
    for one in lab.guests:
        status = one.status()
        mine = result["nodes"][one.number] = {"status": status, "why": failures.get(one.number)}
        if one.number in failures:
            bad = True
            print(f"lab: node {one.number} failed: {failures[one.number]}", file=sys.stderr)
            tail = one.log().splitlines()[-12:]
            if one.judged is not None:
                tail += question.summary(one, one.judged)
            print("".join(f"    {line}\n" for line in tail), end="", file=sys.stderr)
        elif status:
            bad = True
            said = one.complaint()
            if status == 125 and said:
                mine["why"] = said.removeprefix(f"lab: node {one.number}: ")
            print(f"lab: node {one.number} failed: " +
                  (mine["why"] or f"the script ended with status {status}"), file=sys.stderr)
        groups = judge.offences(one.log())
        mine["reports"] = [group[0] if len(group) < 2 else group[1] for group in groups]
        for group in groups[:3]:
            bad = True
            print(f"lab: node {one.number} failed: its kernel log has a report:", file=sys.stderr)
            print("".join(f"    {line}\n" for line in group[:SHOWN_LOG_LINES]), end="",
                  file=sys.stderr)
        if len(groups) > 3:
            print(f"    ... and {len(groups) - 3} more, see {one.console}", file=sys.stderr)
    (lab.folder / "result.json").write_text(json.dumps(result))
    if bad:
        print(f"lab: logs are in {lab.folder}", file=sys.stderr)
    return 1 if bad else 0


def run_once(options):
    """Returns the exit status, and true if a report in a kernel log is the emulator's fault."""
    with Lab(options) as lab:
        lab.prepare()
        lab.give_script(options.script, options.inline, options.arguments)
        with paths.slot():
            lab.boot()
            failures = wait(lab, options.timeout)
            for one in lab.guests:
                one.stop()
        status = verdict(lab, failures)
        if options.profile:
            for one in lab.guests:
                print(f"node {one.number}:")
                print("\n".join(instructions.table(instructions.of_run(lab.folder, one.number), 1, 50)))
        if options.result:
            shutil.copy(lab.folder / "result.json", options.result)
        say.note(f"{'failed' if status else 'passed'}; files of the run: {lab.folder}")
        emulated = not lab.kvm and not lab.user_mode
        return status, emulated and any(judge.is_emulators(report) for one in lab.guests
                                        for report in judge.offences(one.log()))


def script_run(options):
    """Runs `lab run`. Repeats the run once after an error of the emulator."""
    if options.inline is None and not pathlib.Path(options.script).is_file():
        raise say.LabError(f"there is no script {options.script} "
                           "(for inline commands: -- -c 'commands')")
    status, again = run_once(options)
    if again:
        say.note("the report is an error of the emulated CPU and not of the driver: running again")
        status, _ = run_once(options)
    return status
