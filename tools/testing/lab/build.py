# SPDX-License-Identifier: GPL-2.0
"""Builds module, provider and test programs inside a release's root tree, with the release's compiler.

The sources are copied to build/lab/builds/<release>/src, so that one checkout serves several releases.
make builds there incrementally, as long as kernel and root tree are the same. The files that
`make install` writes become the payload, which guests unpack over their root."""

import hashlib
import os
import shlex
import shutil

import chroot
import image
import paths
import say
import sources

# Sources of module, libraries and tools, and sources of the test programs
TOOLS = sorted(f"tools/{path.name}" for path in (paths.ROOT / "tools").iterdir() if path.name != "testing")
DRIVER_PARTS = ["Makefile", "Kbuild", "drivers", "include", "userspace", *TOOLS]
PROGRAM_PARTS = ["Makefile", "include", "userspace/libnhca", "userspace/libnhcamsg", "tools/testing/selftests",
                 "tools/testing/bench", "tools/wireshark", "tools/setup-nhca", "Documentation/ci.yml"]
# Sources of the Debian packages, packages that their build needs, and the folder for the results in a payload
DEB_PARTS = [*DRIVER_PARTS, "dkms.conf", "debian", "README.md", "Documentation"]
DEB_TOOLS = ["build-essential", "debhelper", "dh-dkms", "dpkg-dev", "lintian", "pandoc", "pkgconf"]
DEBS = "payload/packages"
SKIPPED = {"__pycache__", "build", ".git"}
# Build the module with all warnings of the compiler, but without kernel-doc, which W=1 runs for each source.
MODULE = "W=1 cmd_checkdoc= module"
PRODUCTS = (".o", ".ko", ".mod", ".mod.c", ".cmd", ".a", ".so", ".symvers", ".order", ".pyc", ".sh")


def _files(parts):
    """Source files under the named parts, as paths relative to the checkout."""
    for part in parts:
        top = paths.ROOT / part
        if top.is_file():
            yield part
        for folder, inside, names in os.walk(top):
            inside[:] = sorted(set(inside) - SKIPPED)
            for name in sorted(names):
                if not name.endswith(PRODUCTS[:-1]):
                    yield os.path.relpath(os.path.join(folder, name), paths.ROOT)


def _digest(names):
    whole = hashlib.sha256()
    for name in names:
        whole.update(name.encode() + b"\0")
        whole.update(hashlib.sha256((paths.ROOT / name).read_bytes()).digest())
    return whole.hexdigest()


def _copy(names, target):
    """Copies changed files to target and removes old ones. Unchanged files keep their time stamp, for make."""
    manifest = target / ".lab-manifest"
    before = set(manifest.read_text().splitlines()) if manifest.is_file() else set()
    for name in before - set(names):
        (target / name).unlink(missing_ok=True)
    for name in names:
        source, copy = paths.ROOT / name, target / name
        data = source.read_bytes()
        if copy.is_file() and copy.read_bytes() == data:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
        shutil.copymode(source, copy)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text("\n".join(names))


class Builder:
    """Builds for one image and one kernel (the image's own, or a debug kernel with its tree)."""

    def __init__(self, image, kernel=None):
        self.image = image
        self.kernel = kernel
        self.version = kernel.version if kernel else image.kernel
        name = image.release + (f"-{kernel.name}" if kernel else "")
        self.folder = paths.BUILDS / name
        self.name = name
        # Leave out the layer of --packages, because builds must not depend on it.
        self.layers = image.built_in
        self.trees = [layer / "root" for layer in self.layers] + ([kernel.tree] if kernel else [])
        self.binds = dict(kernel.binds) if kernel else {}

    def _fixed(self):
        keys = [(layer / "key").read_text() for layer in self.layers]
        return f"{keys} {self.version} {self.kernel.key if self.kernel else ''}"

    def _cached(self, what, names, make, beside=""):
        """The cached payload folder for these sources and the value beside. make(new folder) creates it if needed."""
        digest = hashlib.sha256(f"{self._fixed()} {_digest(names)} {beside}".encode()).hexdigest()[:16]
        with paths.lock(f"build-{self.name}-{what}"):
            final = self.folder / f"{what}-{digest}"
            if final.is_dir():
                return final
            temporary = paths.fresh(self.folder / f"{what}.tmp")
            (temporary / "payload").mkdir()
            make(temporary)
            paths.replace(temporary, final)
            # A run copies its payloads into its initrd, so old payloads are not needed. Keep the last four, for a
            # switch between versions.
            old = sorted(self.folder.glob(f"{what}-*"), key=lambda path: path.stat().st_mtime)
            for path in old[:-4]:
                shutil.rmtree(path, ignore_errors=True)
            return final

    def _chroot(self, what, command, upper, log, binds, trees=()):
        if self.kernel:
            command = f"export ARCH={self.kernel.arch}; {command}"
        return chroot.run(f"{what} for {self.name}", [*self.trees, *trees], upper,
                          {**self.binds, **binds}, command,
                          paths.STATE / f"logs/{log}-{self.name}.log")

    def _make(self, kunit=""):
        """The make command in the chroot, without targets. All builds use it, so that objects stay up to date."""
        return f"make -C /src -j{os.cpu_count()} KDIR=/lib/modules/{self.version}/build " \
               f"RDMA_CORE_SRC=/rdma-core KUNIT={kunit}"

    def _source(self, place, afresh=False):
        """The folder where make builds. It is emptied first if its objects are for another kernel or root tree.

        make would not rebuild all of them, because the kernel's release name may be the same. A module with
        the old layout of a struct loads and crashes."""
        source = self.folder / place
        stamp = source / ".lab-for"
        if afresh or not stamp.is_file() or stamp.read_text() != self._fixed():
            paths.fresh(source)
            stamp.write_text(self._fixed())
        return source

    def _same_user_space(self):
        """The Builder whose libraries and programs this one shares, because only the kernels differ, or None."""
        if self.kernel or self.image.suite != self.image.release:
            return Builder(image.ensure(self.image.suite))
        return None

    def driver(self, kunit=False, define=""):
        """The payload with module, libraries and module index, as `make install` writes them.

        Releases with the same user space share the libraries.
        define: a macro for the messages library"""
        if not (paths.ROOT / "drivers/infiniband/sw/nhca").is_dir():
            raise say.LabError("this checkout has no driver yet (drivers/infiniband/sw/nhca); "
                               "use --driver rxe")
        core = sources.rdma_core()
        names = list(_files(DRIVER_PARTS))

        name = "kunit" if kunit else "define" if define else "driver"
        place = "src" if name == "driver" else f"src-{name}"
        base = self._same_user_space()
        shared = base and base.driver(define=define)

        def make(target):
            source = self._source(place)
            _copy(names, source)
            jobs = self._make("y" if kunit else "")
            if define:
                jobs += f" MESSAGES_CFLAGS=-D{shlex.quote(define)}"
            command = f"{jobs} {MODULE}"
            if shared:
                command += f" && {jobs} install-module"
            else:
                # Guests create their devices themselves, so install the udev rule where udev does not read it.
                command += f" && {jobs} messages store && {jobs} install UDEVDIR=/usr/share/nhca"
            self._chroot("building module and libraries", command, target / "payload", "build",
                         {"/src": source, "/rdma-core": core})
            if shared:
                shutil.copytree(shared / "payload", target / "payload", symlinks=True, dirs_exist_ok=True,
                                ignore=lambda folder, names: {"modules"} if folder.endswith("/usr/lib") else ())
            self._show_warnings("build")

        return self._cached(name, names, make, define)

    def _show_warnings(self, log):
        path = paths.STATE / f"logs/{log}-{self.name}.log"
        for line in path.read_text(errors="replace").splitlines():
            if "warning:" in line:
                say.note(f"  {line.strip()}")

    def programs(self):
        """The payload with the compiled test programs. A program that does not compile is missing, with a message.

        The programs link with the installed libraries, so their sources are part of their key. Releases with the
        same user space share the programs."""
        base = self._same_user_space()
        if base:
            return base.programs()
        names = [name for name in _files(PROGRAM_PARTS)
                 if not name.startswith("tools/") or name.endswith((".c", ".h", ".lua", "setup-nhca"))]

        def make(target):
            inside = target / "payload/usr/local/bin"
            inside.mkdir(parents=True)
            # Debian installs rdma-core's own tests under /usr/share/doc, which images do not have.
            shutil.copytree(sources.rdma_core() / "tests",
                            target / "payload/usr/local/share/rdma-core-tests",
                            ignore=shutil.ignore_patterns("test_mlx5*", "test_efa*", "test_cuda*"))
            shutil.copytree(paths.ROOT / "tools/wireshark", target / "payload/usr/local/share/wireshark")
            (target / "payload/usr/local/share/nhca").mkdir()
            for name in ("Documentation/ci.yml", "tools/setup-nhca"):
                shutil.copy(paths.ROOT / name, target / "payload/usr/local/share/nhca")
            if not any(name.startswith("tools/") and name.endswith(".c") for name in names):
                return
            provider = self.driver() / "payload"
            _copy(names, paths.fresh(self.folder / "programs"))
            command = "cd /programs && make -k selftests BUILD=/programs/build || true"
            self._chroot("compiling the test programs", command, None, "selftests",
                         {"/programs": self.folder / "programs"}, [provider])
            log = paths.STATE / f"logs/selftests-{self.name}.log"
            for line in log.read_text(errors="replace").splitlines():
                if "error" in line.lower() or "warning" in line:
                    say.note(f"  {line.strip()}")
            for program in (self.folder / "programs/build/selftests").glob("*"):
                shutil.copy(program, inside)

        return self._cached("programs", names, make)

    def module(self, name):
        """The payload with an additional module: siw, from the kernel's source, or a folder of the checkout.

        The module is in no module index, so a modprobe.d file tells modprobe how to load it."""
        if name == "siw":
            if self.image.release == "bookworm":
                raise say.LabError("siw needs --release trixie or backports")
            source = sources.linux(self.image.release) / "drivers/infiniband/sw/siw"
        else:
            source = paths.ROOT / name
            if not source.is_dir():
                raise say.LabError(f"--modules: there is no folder {source}")
        stem = source.name

        def make(target):
            work = self.folder / f"module-{stem}"
            shutil.copytree(source, paths.fresh(work), dirs_exist_ok=True)
            place = f"/usr/local/lib/modules/{stem}.ko"
            command = f"""
                make -C /lib/modules/{self.version}/build M=/module CONFIG_RDMA_SIW=m modules
                mkdir -p {os.path.dirname(place)}
                strip --strip-debug -o {place} /module/{stem}.ko
                needs=$(modinfo -F depends {place} | tr , ' ')
                echo "install {stem} ${{needs:+modprobe -a $needs && }}insmod {place} \\$CMDLINE_OPTS" \
                    > /etc/modprobe.d/lab-{stem}.conf"""
            self._chroot(f"building module {stem}", command, target / "payload", f"module-{stem}",
                         {"/module": work})

        return self._cached(f"module-{stem}", list(_files([os.path.relpath(source, paths.ROOT)])), make)

    def debs(self):
        """The payload with the Debian packages of `make deb`, and the output of lintian."""
        core = sources.rdma_core()
        names = list(_files(DEB_PARTS))
        tools = image.ensure(self.image.release, DEB_TOOLS, packaged=True)

        def make(target):
            source = paths.fresh(self.folder / "src-debs")
            _copy(names, source)
            (target / DEBS).mkdir()
            command = f"""
                export DEB_BUILD_OPTIONS=parallel={os.cpu_count()}
                make -C /src deb RDMA_CORE_SRC=/rdma-core
                cp /src/build/deb/*.deb /packages
                lintian --allow-root --tag-display-limit 0 /packages/*.deb > /packages/lintian || true"""
            chroot.run(f"building the Debian packages for {self.name}", tools.trees, None,
                       {"/src": source, "/rdma-core": core, "/packages": target / DEBS}, command,
                       paths.STATE / f"logs/debs-{self.name}.log")

        return self._cached("debs", names, make)

    def installed_debs(self):
        """The payload with all files that the installation of the packages in the image writes.

        DKMS compiles the module here, at native speed. /lab/files lists the files before the installation."""
        debs = self.debs() / DEBS

        def make(target):
            command = """
                /testing/lab/guest/files > /tmp/files
                DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                    $(ls /packages/*.deb | grep -v dbgsym)
                mkdir /lab
                mv /tmp/files /lab/files"""
            chroot.run(f"installing the Debian packages for {self.name}", self.image.trees,
                       target / "payload", {"/packages": debs, "/testing": paths.TESTING}, command,
                       paths.STATE / f"logs/installed-{self.name}.log")

        return self._cached("installed", [], make, f"{debs} {self.image.key}")

    def strict(self):
        """Builds everything again with W=1 and sparse. Returns the lines with complaints.

        The build is in the folder of driver(), with the same files and options plus sparse, so that driver() has
        nothing left to build. Releases with the same user space build it once. For them, sparse checks the module
        for one kernel only, because its checks take longer than the compilation. kernel-doc also runs for this kernel
        only."""
        core = sources.rdma_core()
        names = sorted({*_files(DRIVER_PARTS), *_files(PROGRAM_PARTS)})
        with paths.lock(f"build-{self.name}-driver"):
            source = self._source("src", afresh=True)
            _copy(names, source)
            jobs = self._make()
            if self._same_user_space():
                command = f"{jobs} {MODULE}"
            else:
                # Build the messages library also alone, as a distribution does: with the installed libnhca, and without
                # the other sources. Then compile a program with the installed libraries.
                command = f"{jobs} W=1 C=2 module"
                command += f"""
                {jobs} messages tools store && {jobs} selftests
                make -C /src/userspace install BUILD=/src/build/userspace
                cp -r /src/userspace/libnhcamsg /alone
                make -C /alone WERROR=1 all check
                make -C /alone install PREFIX=/usr/local
                export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig
                tests=/src/tools/testing/selftests
                cc -Wall -Wextra -I$tests/lib -o /tmp/many_peers $tests/rcxt/many_peers.c \
                    $tests/lib/peers.c $tests/lib/ktap.c \
                    $(pkg-config --cflags --libs libnhcamsg libibverbs) -pthread"""
            self._chroot("building with all warnings", command, None, "strict",
                         {"/src": source, "/rdma-core": core})
            log = paths.STATE / f"logs/strict-{self.name}.log"
            return [line for line in log.read_text(errors="replace").splitlines()
                    if is_complaint(line)]


# Messages that have nothing to do with this project
HARMLESS = ("the compiler differs from the one used to build the kernel",
            "Skipping BTF generation")


def is_complaint(line):
    lowered = line.lower()
    if any(text in line for text in HARMLESS):
        return False
    return any(word in lowered for word in ("warning:", "error:", "sparse:")) or \
        line.startswith("WARNING")
