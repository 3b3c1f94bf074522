#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs rdma-core's own tests (rdma-core's tests/, with pyverbs) on one device.

    rdma_core_tests.py FOLDER --dev DEVICE --gid INDEX [-- MODULE...]

Each module runs in a child process, which reports each test when it begins and ends. A test that crashes the
interpreter, or does not end within 120 s, is an error, and the module continues with the next test. If a module cannot
be imported, or the set-up of a class fails, its tests are errors, and the others run. Output:

    MODULE passed skipped failed errors
      skipped|failed|error TEST: why
"""

import importlib
import importlib.machinery
import os
import select
import signal
import sys
import types
import unittest

TEST_SECONDS = 120


class Telling(unittest.TestResult):
    """Writes one line for each test that begins, and for each that ends."""

    def __init__(self, pipe):
        super().__init__()
        self.pipe = pipe
        self.said = set()

    def tell(self, verdict, test, why=""):
        # A failed test may fail a second time in its clean-up. Report only the first failure.
        if verdict != "start" and test.id() in self.said:
            return
        if verdict != "start":
            self.said.add(test.id())
        why = " ".join(str(why).split())[:300]
        os.write(self.pipe, f"{verdict}\t{test.id()}\t{why}\n".encode())

    def startTest(self, test):
        super().startTest(test)
        self.tell("start", test)

    def addSuccess(self, test):
        self.tell("passed", test)

    def addSkip(self, test, reason):
        self.tell("skipped", test, reason)

    def addFailure(self, test, err):
        self.tell("failed", test, f"{err[0].__name__}: {err[1]}")

    def addError(self, test, err):
        self.tell("error", test, f"{err[0].__name__}: {err[1]}")

    def addSubTest(self, test, subtest, err):
        if err:
            self.tell("failed", test, f"{subtest}: {err[1]}")


def load(folder):
    """Loads the package `tests` as rdma-core's run_tests.py does, and lets it parse the options. In place of a module
    that cannot be imported, package.__test_modules__ has a module with the attribute `failure`."""
    real = importlib.import_module

    def import_module(name, package=None):
        try:
            return real(name, package)
        except Exception as error:  # pylint: disable=broad-except
            if not name.startswith(".test_"):
                raise
            module = types.ModuleType(f"{package}{name}")
            module.failure = f"{type(error).__name__}: {error}"
            return module

    sys.path.insert(0, folder)
    loader = importlib.machinery.SourceFileLoader("tests", os.path.join(folder, "__init__.py"))
    importlib.import_module = import_module
    try:
        package = loader.load_module()
    finally:
        importlib.import_module = real
    from args_parser import parser  # noqa: PLC0415 - it is in the folder
    parser.parse_args()
    return package


def tests_of(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests_of(one)
        else:
            yield one


def run_child(tests):
    """Runs tests in a child. Returns ({test id: (verdict, why)}, true if the child ended during a test)."""
    mine, its = os.pipe()
    child = os.fork()
    if not child:
        os.close(mine)
        os.setsid()
        unittest.TestSuite(tests).run(Telling(its))
        # os._exit() skips the exit handlers of libraries, which could fail outside of a test.
        os._exit(0)
    os.close(its)
    results, running, rest, why = {}, None, b"", None
    while True:
        if not select.select([mine], [], [], TEST_SECONDS)[0]:
            why = f"no end after {TEST_SECONDS} s"
            os.killpg(child, signal.SIGKILL)
            break
        data = os.read(mine, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            verdict, name, reason = line.decode(errors="replace").split("\t", 2)
            if verdict == "start":
                running = name
            else:
                results[name] = (verdict, reason)
                if name == running:
                    running = None
    os.close(mine)
    status = os.waitpid(child, 0)[1]
    try:
        # Kill the processes that tests forked and left running, so that they do not disturb the next tests.
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if running:
        results[running] = ("error", why or f"the interpreter died: wait status {status:#x}")
    return results, bool(running)


def run_module(tests):
    """Returns {test id: (verdict, why)}, for each of the tests."""
    results = {}
    while tests:
        ids = {test.id() for test in tests}
        new, died = run_child(tests)
        results.update((name, result) for name, result in new.items() if name in ids)
        # If the set-up of a class or module fails or is skipped, unittest reports this as a test "setUpClass (...)",
        # and does not begin the tests.
        others = [(verdict, f"{name}: {why}") for name, (verdict, why) in new.items() if name not in ids]
        tests = [test for test in tests if test.id() not in results]
        if not died:
            for test in tests:
                name = f"({type(test).__module__}.{type(test).__qualname__})"
                mine = [other for other in others if name in other[1]]
                results[test.id()] = (mine or others or [("error", "it did not run")])[0]
            break
    return results


def main():
    folder = sys.argv.pop(1)
    package = load(folder)
    wanted = sys.argv[1:]
    if wanted[:1] == ["--"]:
        wanted = wanted[1:]
    loader = unittest.TestLoader()
    for module in package.__test_modules__:
        name = module.__name__.rpartition(".")[2]
        if wanted and name not in wanted:
            continue
        if hasattr(module, "failure"):
            results = {f"tests.{name}": ("error", module.failure)}
        else:
            results = run_module(list(tests_of(loader.loadTestsFromModule(module))))
        counts = {word: sum(1 for verdict, _ in results.values() if verdict == word)
                  for word in ("passed", "skipped", "failed", "error")}
        print(name, *counts.values())
        for test, (verdict, why) in results.items():
            if verdict != "passed":
                print(f"  {verdict} {test.partition('.')[2]}: {why}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
