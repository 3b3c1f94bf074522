# SPDX-License-Identifier: GPL-2.0
"""The command line of the lab."""

import argparse
import shutil
import signal
import sys

import build
import image
import kernel
import paths
import run
import say
import shell
import sources
import uml

EXAMPLES = """examples:
  lab run --driver rxe -- -c 'ibv_devinfo; barrier; ping -c 1 $PEER_IP'
  lab run --driver 1=nhca,2=rxe --netem 'loss 1%' -- tools/testing/selftests/apps/pingpong.sh
  lab shell --nodes 2
See Documentation/lab.rst."""


def _add_options(parser):
    add = parser.add_argument
    add("--release", default="trixie", choices=image.RELEASES, help="Debian release (trixie)")
    add("--nodes", type=int, default=2, metavar="N", help="number of guests (2)")
    add("--cpus", type=int, default=1, metavar="N", help="virtual CPUs of each guest (1)")
    add("--memory", type=int, default=1024, metavar="MIB", help="memory of each guest (1024)")
    add("--driver", default="nhca", metavar="D",
        help="nhca, rxe, siw, none (nhca installed, not loaded), or one for each node: 1=nhca,2=rxe (nhca)")
    add("--packages", default="", metavar="A,B", help="more Debian packages for the image")
    add("--debs", action="store_true",
        help="install nhca from its Debian packages; needs --driver none")
    add("--init", default="lab", choices=("lab", "systemd"),
        help="systemd: boot systemd; files survive a reboot, and the script may ask for one and run again (lab)")
    add("--modules", default="", metavar="A,B",
        help="more modules for modprobe: siw, from the kernel's source, or a folder of the checkout")
    add("--clock", choices=("real", "instructions"), default="real",
        help="instructions: one emulated CPU, on which an instruction takes one nanosecond (real)")
    add("--profile", action="store_true",
        help="count the instructions of emulated guests by function, between two marks of a program")
    add("--netem", metavar="SPEC", help="netem parameters for the netdev of every node, such as 'loss 1%%'")
    add("--mtu", type=int, default=1500, metavar="N", help="Ethernet MTU (1500)")
    add("--machine", default="qemu", choices=("qemu", "uml"),
        help="uml: guests are user-mode Linux processes, with native speed also without KVM (qemu)")
    add("--kernel", default="stock", choices=("stock", *kernel.NAMES),
        help="stock: Debian's; others: a kernel with checkers, built by the lab (stock)")
    add("--kunit", action="store_true",
        help="build the module with its KUnit suites; needs a --kernel with checkers")
    add("--define", default="", metavar="NAME=VALUE", help="compile the messages library with this macro")
    add("--append", default="", metavar="ARGS", help="append this to the kernel command line of the guests")
    add("--env", action="append", default=[], metavar="NAME=VALUE",
        help="set a variable for the script; may be repeated")
    add("--quiet", action="store_true", help="print no progress lines")


def parser():
    top = argparse.ArgumentParser(prog="lab", epilog=EXAMPLES, description="Starts guests for testing nhca.",
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    one = commands.add_parser("run", help="start guests, run a script on each, stop them",
                              usage="lab run [options] -- SCRIPT [ARGS] | -c 'COMMANDS' [ARGS]")
    _add_options(one)
    one.add_argument("--timeout", type=int, default=300, metavar="S",
                     help="seconds after which the script is stopped (300)")
    one.add_argument("--result", metavar="FILE", help="write the result of each node to FILE, as JSON")
    one = commands.add_parser("shell", help="start guests and open a shell on node 1")
    _add_options(one)
    one = commands.add_parser("attach", help="open a shell on another node of a running `lab shell`")
    one.add_argument("node", type=int)
    one = commands.add_parser("image", help="create the image of a release")
    one.add_argument("release", choices=image.RELEASES)
    one.add_argument("--fresh", action="store_true", help="create it again if it exists")
    one.add_argument("--packages", default="", metavar="A,B")
    one = commands.add_parser("build", help="build module, provider and test programs for a release")
    one.add_argument("release", choices=image.RELEASES)
    one.add_argument("--strict", action="store_true",
                     help="build everything again with W=1 and sparse, fail on any warning")
    one = commands.add_parser("debs", help="build the Debian packages for a release and print their folder")
    one.add_argument("release", choices=image.RELEASES)
    one = commands.add_parser("kernel", help="build a kernel with checkers and print its version")
    one.add_argument("name", choices=kernel.NAMES)
    one = commands.add_parser("source", help="fetch a source from Debian and print its folder")
    one.add_argument("name", choices=("rdma-core", "linux"))
    one.add_argument("--release", default="trixie", choices=("trixie", "backports"),
                     help="release of the kernel source (trixie)")
    commands.add_parser("clean", help="remove everything that the lab made, images included")
    return top


def main(words):
    # Everything after -- belongs to the script.
    command, behind = words, []
    if "--" in words:
        at = words.index("--")
        command, behind = words[:at], words[at + 1:]
    options = parser().parse_args(command)
    say.quiet = getattr(options, "quiet", False)
    # When a signal terminates the lab, it ends its guests as after ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        return _dispatch(options, behind)
    except say.LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130


def _dispatch(options, behind):
    if options.command in ("run", "shell"):
        options.packages = [name for name in options.packages.split(",") if name]
        options.modules = [name for name in options.modules.split(",") if name]
        options.shell = options.command == "shell"
        if not 1 <= options.nodes <= 16:
            raise say.LabError("--nodes takes a number from 1 to 16")
        if options.kunit and options.kernel == "stock":
            raise say.LabError("the stock kernel has no KUnit: --kunit needs --kernel " +
                               " or ".join(kernel.NAMES))
        if options.clock == "instructions" and options.cpus != 1:
            raise say.LabError("--clock instructions works with one CPU only: leave out --cpus")
        if options.profile and options.cpus != 1:
            raise say.LabError("--profile works with one CPU only: leave out --cpus")
        if options.debs and options.driver != "none":
            raise say.LabError("--debs needs --driver none")
        if options.machine == "uml":
            uml.check(options)
    if options.command == "run":
        if not behind or (behind[0] == "-c" and len(behind) < 2):
            raise say.LabError("lab run needs a script: lab run [options] -- SCRIPT, or -- -c 'commands'")
        inline = behind[0] == "-c"
        options.inline = behind[1] if inline else None
        options.script = behind[0]
        options.arguments = behind[2:] if inline else behind[1:]
        return run.script_run(options)
    if options.command == "shell":
        return shell.serve(options)
    if options.command == "attach":
        return shell.attach_latest(options.node)
    if options.command == "image":
        image.ensure(options.release, options.packages.split(",") if options.packages else (),
                     options.fresh)
    elif options.command == "build":
        return _build(options)
    elif options.command == "debs":
        print(build.Builder(image.ensure(options.release, packaged=True)).debs() / build.DEBS)
    elif options.command == "kernel":
        print(kernel.make(options.name).version)
    elif options.command == "source":
        print(sources.rdma_core() if options.name == "rdma-core" else sources.linux(options.release))
    elif options.command == "clean":
        shutil.rmtree(paths.STATE, ignore_errors=True)
    return 0


def _build(options):
    builder = build.Builder(image.ensure(options.release))
    if not options.strict:
        print(builder.programs())
        print(builder.driver())
        return 0
    complaints = builder.strict()
    for line in complaints:
        print(line)
    print(f"lab: {options.release} ({builder.version}): "
          f"{len(complaints)} warning{'s' * (len(complaints) != 1)}")
    return 1 if complaints else 0
