#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Checks that the functions, files, tracepoints, module parameters and manual pages that comments and the book name
exist, and that the book describes each counter. Prints a KTAP report.

Usage: names.py LINUX RDMA_CORE, the source folders of the kernel and of rdma-core, to look up their functions."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/testing/selftests/lib"))

import ktap  # noqa: E402 - found by the path above

REPORT = ktap.Report()
DRIVER = ROOT / "drivers/infiniband/sw/nhca"
BOOK = sorted((ROOT / "Documentation").glob("*.rst")) + sorted(ROOT.glob("*.md"))
PAGES = sorted(path for path in (ROOT / "tools").rglob("*.[1-8]") if "testing" not in path.parts)
PAGES += sorted((ROOT / "userspace").rglob("*.md"))
CODE = sorted(path for top in ("drivers", "include", "userspace", "tools")
              for path in (ROOT / top).rglob("*.[ch]")
              if "build" not in path.parts and not path.name.endswith(".mod.c"))

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# a name with empty brackets after it that is not part of a longer expression
FUNCTION = re.compile(r"(?<![\w.>])([a-z_][a-z0-9_]{3,})\(\)")
# file names with a suffix of sources, with or without folders
PATH = re.compile(r"(?<![\w/$<*-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|rst|py|sh|lua|bt|patch))(?![\w(/*])")
# functions of the C library and system calls, which no source here declares
KNOWN = {"exit", "fork", "free", "mmap", "munmap", "madvise", "malloc", "memcpy", "ioctl", "open", "poll", "read",
         "recv", "rename", "seteuid", "write", "close", "main"}
# folders of the kernel with the declarations and definitions of functions that the driver uses
KERNEL = ("include", "net", "kernel", "mm", "lib", "drivers/infiniband", "drivers/net", "arch/x86", "fs", "io_uring")


def text_of(path):
    return path.read_text(errors="replace")


def complain(name, complaints):
    REPORT.result(name, not complaints, f"{len(complaints)} complaints")
    for line in complaints:
        print(f"#   {line}")


def comments():
    """Generates (path, text of its comments) for each source file."""
    for path in CODE:
        yield path, "\n".join(COMMENT.findall(text_of(path)))


def prose():
    """Generates (path, text) for all comments, chapters of the book and manual pages."""
    yield from comments()
    for path in (*BOOK, *PAGES):
        yield path, text_of(path)


def words_of_code():
    """All identifiers outside of comments, and all words of scripts."""
    words = set()
    for path in CODE:
        words.update(re.findall(r"\w+", COMMENT.sub(" ", text_of(path))))
    for path in (ROOT / "tools").rglob("*"):
        if path.is_file() and path.suffix in (".py", ".sh", ".bt", ".lua", "") and path.stat().st_size < 1 << 20:
            words.update(re.findall(r"\w+", text_of(path)))
    return words


def in_sources(linux, core, names):
    """The names that are words in the source of the kernel or of rdma-core."""
    tops = [str(linux / folder) for folder in KERNEL if (linux / folder).is_dir()] + [str(core)]
    found = subprocess.run(["grep", "-rhowFI", "--include=*.[ch]", "-f", "-", *tops], input="\n".join(names),
                           capture_output=True, text=True, check=False)
    return set(found.stdout.split())


def functions(linux, core):
    known = words_of_code() | KNOWN
    missing = {}
    for path, text in prose():
        for name in FUNCTION.findall(text):
            if name not in known:
                missing.setdefault(name, path)
    theirs = in_sources(linux, core, sorted(missing)) if missing else set()
    missing = {name: path for name, path in missing.items() if name not in theirs}
    return [f"{path.relative_to(ROOT)}: {name}()" for name, path in sorted(missing.items())]


def files(linux):
    """The file names in prose() that fit no file of the project or of the kernel."""
    ours = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and not {"build", ".git"} & set(path.relative_to(ROOT).parts)]
    ends = {name[start:] for name in ours
            for start in [0] + [at + 1 for at, char in enumerate(name) if char == "/"]}
    kernel = {path.name for top in ("include", "arch/x86/include", "drivers/infiniband", "net")
              for path in (linux / top).rglob("*.[ch]")}
    missing = set()
    for path, text in prose():
        for name in PATH.findall(text):
            # "drivers/.../x.c" is the short form of a longer path.
            end = re.sub(r"^(\.\./)+", "", name.rsplit(".../", 1)[-1])
            if end in ends or (path.parent / name).exists() or (linux / name).exists() or \
                    name.rsplit("/", 1)[-1] in kernel:
                continue
            missing.add(f"{path.relative_to(ROOT)}: {name}")
    return sorted(missing)


def tracepoints():
    header = "".join(text_of(path) for path in sorted((DRIVER / "observe").glob("trace*.h")))
    defined = set(re.findall(r"TRACE_EVENT\((\w+)", header) + re.findall(r"DEFINE_EVENT\(\w+,\s*(\w+)", header))
    named = set()
    for path in (*BOOK, *PAGES, *sorted((ROOT / "tools").rglob("*.bt"))):
        named |= {(path, name) for name in re.findall(r"(?:trace(?:point)?:)?nhca:(nhca_\w+)", text_of(path))}
    return [f"{path.relative_to(ROOT)}: {name}" for path, name in sorted(named) if name not in defined]


def counters():
    """The counters of the driver that the book does not describe."""
    source = text_of(DRIVER / "observe/counters.c")
    defined = set(re.findall(r'"([a-z0-9_]+)"', source))
    book = text_of(ROOT / "Documentation/observe.rst") + text_of(ROOT / "Documentation/users-guide.rst")
    return [f"Documentation: the counter {name} is missing" for name in sorted(defined)
            if not re.search(rf"\b{name}\b", book)]


def parameters():
    defined = set()
    for path in DRIVER.rglob("*.c"):
        defined |= set(re.findall(r"module_param(?:_named|_cb)?\((\w+)", text_of(path)))
    named = set()
    for path in (*BOOK, *PAGES):
        for name in re.findall(r"(?:modprobe nhca |options nhca |/sys/module/nhca/parameters/)(\w+)",
                               text_of(path)):
            named.add((path, name))
    return [f"{path.relative_to(ROOT)}: {name}" for path, name in sorted(named)
            if name not in defined]


def pages():
    """The manual pages of this project that the book names, such as ``name(8)``, and that do not exist."""
    have = {(path.stem, path.suffix[1:]) for path in PAGES if path.suffix != ".md"}
    for path in PAGES:
        if path.suffix == ".md":
            have.add((path.name.removesuffix(".md").rsplit(".", 1)[0], path.name.removesuffix(".md").rsplit(".", 1)[-1]))
            for alias in re.findall(r"\bnhcadv_\w+", text_of(path)):
                have.add((alias, "3"))
    missing = set()
    for path in (*BOOK, *PAGES):
        for name, section in re.findall(r"\b(nhca[\w-]*)\(([1-8])\)", text_of(path)):
            if (name, section) not in have:
                missing.add(f"{path.relative_to(ROOT)}: {name}({section})")
    return sorted(missing)


def main():
    linux, core = (pathlib.Path(name) for name in sys.argv[1:])
    complain("functions that comments and pages name exist", functions(linux, core))
    complain("files that comments and pages name exist", files(linux))
    complain("tracepoints that pages name exist", tracepoints())
    complain("the book has every counter", counters())
    complain("module parameters that pages name exist", parameters())
    complain("manual pages that pages name exist", pages())
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
