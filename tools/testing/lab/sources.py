# SPDX-License-Identifier: GPL-2.0
"""The Debian mirror, and the sources of the kernel and of rdma-core from it."""

import hashlib
import pathlib
import re
import subprocess

import paths
import say

PUBLIC_MIRROR = "http://deb.debian.org/debian"


def _source_entries():
    """(URI, suites) of each enabled entry in this machine's apt configuration."""
    etc = pathlib.Path("/etc/apt")
    lists = [etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))]
    for path in lists:
        if not path.is_file():
            continue
        for line in path.read_text(errors="replace").splitlines():
            found = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
            if found:
                yield found.group(1), found.group(2)
    for path in sorted(etc.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text(errors="replace")):
            if re.search(r"^Enabled:\s*(no|false)", stanza, re.M | re.I):
                continue
            uris = re.search(r"^URIs:\s*(.+)$", stanza, re.M)
            suites = re.search(r"^Suites:\s*(.+)$", stanza, re.M)
            for uri in uris.group(1).split() if uris else []:
                yield uri, suites.group(1) if suites else ""


def mirror():
    """The Debian mirror of this machine's apt configuration, else Debian's public mirror."""
    for uri, suites in _source_entries():
        plain = uri.rstrip("/")
        if plain.endswith("/debian") and "security" not in suites:
            return plain
    return PUBLIC_MIRROR


def proxy_options():
    """The proxy settings of this machine's apt, for apt inside a new root tree."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [line.rstrip(";") for line in dump.splitlines()
            if re.match(r"Acquire::(http|https)::Proxy\b", line)]


def _private_apt(suite="trixie"):
    """An apt command with a private state, so that it changes nothing on this machine."""
    base = paths.BUILD / ("apt" if suite == "trixie" else f"apt-{suite}")
    for folder in ("lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (base / folder).mkdir(parents=True, exist_ok=True)
    (base / "etc/sources.list").write_text(
        f"deb {mirror()} {suite} main\ndeb-src {mirror()} {suite} main\n", encoding="ascii")
    conf = base / "apt.conf"
    conf.write_text(f'Dir::State "{base}";\nDir::State::lists "{base}/lists";\n'
                    'Dir::State::status "/var/lib/dpkg/status";\n'
                    f'Dir::Cache "{base}/cache";\nDir::Etc::sourcelist "{base}/etc/sources.list";\n'
                    'Dir::Etc::sourceparts "-";\nAPT::Sandbox::User "root";\n', encoding="ascii")
    return ["apt-get", "-c", str(conf)]


def linux(release="trixie"):
    """The folder in build/src with the source of a release's kernel. The first call fetches it.

    The source of trixie is for checkpatch, KUnit, the debug kernels and the RT kernel. The source of backports is
    for user-mode guests; it is the newest version at the time when it was fetched."""
    release = "trixie" if release == "rt" else release
    prefix = "linux-" if release == "trixie" else f"linux-{release}-"
    with paths.lock("sources"):
        ready = sorted(paths.SOURCES.glob(f"{prefix}[0-9]*/Makefile"))
        if ready:
            return ready[-1].parent
        apt = _private_apt("trixie" if release == "trixie" else f"trixie-{release}")
        log = paths.STATE / "logs"
        downloads = paths.fresh(paths.BUILD / "downloads/linux.tmp")
        say.run_logged("reading Debian's package index", [*apt, "update"], log / "apt-update.log")
        version = _newest_linux(apt)
        final = paths.SOURCES / f"{prefix}{version}"
        say.run_logged(f"fetching linux-source-{version} (150 MB)",
                       [*apt, "download", f"linux-source-{version}"], log / "linux.log", cwd=downloads)
        package = next(downloads.glob("*.deb"))
        temporary = paths.fresh(paths.SOURCES / "linux.tmp")
        say.run_logged("unpacking the kernel source", ["sh", "-ec",
            f"dpkg-deb --fsys-tarfile '{package}' |"
            f" tar -xOf - ./usr/src/linux-source-{version}.tar.xz |"
            f" tar -xJf - -C '{temporary}' --strip-components=1"], log / "linux.log")
        paths.replace(temporary, final)
        paths.fresh(downloads).rmdir()
        return final


def _newest_linux(apt):
    """The newest version of the linux-source packages in the index."""
    names = subprocess.run(["apt-cache", *apt[1:], "pkgnames", "linux-source-"], capture_output=True,
                           text=True, check=True).stdout
    found = re.findall(r"(?m)^linux-source-(\d+)\.(\d+)$", names)
    if not found:
        raise say.LabError(f"{mirror()} has no linux-source package")
    return "{}.{}".format(*max((int(major), int(minor)) for major, minor in found))


def rdma_core():
    """The folder in build/src with the source of trixie's rdma-core. The first call fetches and verifies it."""
    with paths.lock("sources"):
        ready = sorted(paths.SOURCES.glob("rdma-core-[0-9]*/CMakeLists.txt"))
        if ready:
            return ready[-1].parent
        apt = _private_apt()
        log = paths.STATE / "logs"
        say.run_logged("reading Debian's source index", [*apt, "update"], log / "apt-update.log")
        listing = subprocess.run([*apt, "source", "--print-uris", "--download-only", "rdma-core"],
                                 capture_output=True, text=True, check=False)
        found = re.search(r"'\S+' (rdma-core_([0-9.]+)\.orig\.tar\.\w+) \d+ SHA256:([0-9a-f]{64})",
                          listing.stdout)
        if not found:
            raise say.LabError(f"{mirror()} has no source of rdma-core: {listing.stderr.strip()}")
        name, version, digest = found.groups()
        downloads = paths.BUILD / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        tarball = downloads / name
        if not _has_digest(tarball, digest):
            # apt-get may fail for other files of the source package. Only the tarball is needed, and its digest
            # comes from the signed index.
            try:
                say.run_logged(f"fetching rdma-core {version}",
                               [*apt, "source", "--download-only", "rdma-core"],
                               log / "rdma-core.log", cwd=downloads)
            except say.LabError as error:
                if not _has_digest(tarball, digest):
                    raise error
        if not _has_digest(tarball, digest):
            raise say.LabError(f"{tarball} is not the file that Debian's index names")
        temporary = paths.fresh(paths.SOURCES / "rdma-core.tmp")
        subprocess.run(["tar", "-xf", tarball, "-C", temporary, "--strip-components=1"], check=True)
        final = paths.SOURCES / f"rdma-core-{version}"
        paths.replace(temporary, final)
        return final


def _has_digest(path, digest):
    if not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == digest
