# SPDX-License-Identifier: GPL-2.0
"""Guest images: a Debian root tree that mmdebstrap creates, and an ext4 disk with the same files.

The tree stays because module and provider are built in it (see chroot.py). Another kernel, another rdma-core and
additional packages become layers over the image of the Debian suite."""

import dataclasses
import hashlib
import json
import os
import shlex
import subprocess

import chroot
import paths
import say
import sources

PACKAGES = """
    linux-image-amd64 linux-headers-amd64 kmod udev mount iproute2 iputils-ping ethtool nftables
    ibverbs-utils rdmacm-utils perftest ibverbs-providers libibverbs-dev librdmacm-dev
    gcc libc6-dev make cmake ninja-build pkg-config libnl-3-dev libnl-route-3-dev libudev-dev
    liburing-dev sparse python3 python3-pyverbs tcpdump tshark iperf3 procps psmisc strace
    busybox-static zstd xz-utils ca-certificates
""".split()

# The Debian suite of the user space of each release. Releases with the same suite share its image.
RELEASES = {"bookworm": "bookworm", "bookworm-kernel": "trixie", "trixie": "trixie", "backports": "trixie",
            "rt": "trixie"}
# Releases that boot another kernel than that of their suite: the suite that has the kernel, and its packages
KERNELS = {
    "bookworm-kernel": ("bookworm", ["linux-image-amd64", "linux-headers-amd64"]),
    "backports": ("trixie-backports", ["linux-image-amd64", "linux-headers-amd64"]),
    "rt": ("trixie", ["linux-image-rt-amd64", "linux-headers-rt-amd64"]),
}
# The source of bookworm's rdma-core (44) is not available any more. So bookworm's guests use trixie's rdma-core, which
# the lab builds.
OWN_RDMA_CORE = {"bookworm"}
# Packages that the build of this rdma-core as Debian packages needs
RDMA_CORE_TOOLS = """build-essential debhelper dh-python cython3 python3-dev libsystemd-dev pandoc
    python3-docutils valgrind""".split()
# Part of the cache key: raise it when a change of this file changes the content of images.
RECIPE = 1
NO_DOCS = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*"]


@dataclasses.dataclass
class Image:
    """An image. layers: folders from the lowest up, each with root/ (tree) and root.img (disk).

    built_in: the layers that all guests of the release have."""
    release: str
    built_in: list
    layers: list

    @property
    def suite(self):
        """The Debian suite of the user space. This is also the name of a release."""
        return RELEASES[self.release]

    @property
    def trees(self):
        return [layer / "root" for layer in self.layers]

    @property
    def disks(self):
        return [layer / "root.img" for layer in self.layers]

    @property
    def kernel_tree(self):
        """The highest tree that has a kernel with headers."""
        for tree in reversed(self.trees):
            if _kernels(tree):
                return tree
        raise say.LabError(f"the {self.release} image has no kernel headers")

    @property
    def kernel(self):
        """The version of the newest kernel in this tree."""
        return _kernels(self.kernel_tree)[-1]

    @property
    def key(self):
        return hashlib.sha256("".join((layer / "key").read_text()
                                      for layer in self.layers).encode()).hexdigest()[:12]


def _kernels(tree):
    """The versions of the kernels with headers in a tree."""
    # Not path.exists(): bookworm's links are absolute, so they are valid only inside the tree.
    return sorted(path.name for path in tree.glob("usr/lib/modules/*") if os.path.lexists(path / "build"))


def _key(parts):
    return hashlib.sha256(json.dumps([RECIPE, *parts]).encode()).hexdigest()


def _ready(folder, key):
    return (folder / "key").is_file() and (folder / "key").read_text() == key


def make_disk(tree, disk):
    """Creates an ext4 image of a tree with a little free space. Guests share it read-only, so it has no journal."""
    used = int(subprocess.run(["du", "-sxk", tree], capture_output=True, text=True,
                              check=True).stdout.split()[0])
    inodes = sum(len(dirs) + len(files) for _, dirs, files in os.walk(tree))
    size = used * 5 // 4 + 65536
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0",
                    "-N", str(inodes * 5 // 4 + 1024), "-d", tree, disk, f"{size}k"], check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": paths.search_path()})


def ensure(release, packages=(), fresh=False, packaged=False):
    """The image of a release, with additional packages. Creates the image if it is not in the cache.

    packaged: install an rdma-core that the lab builds as Debian packages, so that it is in the database of dpkg."""
    if release not in RELEASES:
        raise say.LabError(f"unknown release {release}; known are {', '.join(RELEASES)}")
    paths.need_root()
    paths.need_tools()
    built_in = [_base(RELEASES[release], fresh)]
    if release in KERNELS:
        built_in.append(_kernel_layer(release, built_in, fresh))
    if release in OWN_RDMA_CORE:
        built_in.append((_rdma_core_packages if packaged else _rdma_core_layer)(release, built_in[0]))
    extra = sorted(set(packages) - set(PACKAGES))
    return Image(release, built_in, built_in + ([_package_layer(release, built_in, extra)] if extra else []))


def _base(suite, fresh):
    key = _key([suite, PACKAGES])
    folder = paths.IMAGES / suite
    if _ready(folder, key) and not fresh:
        return folder       # without the lock, which another lab may hold for minutes
    with paths.lock(f"image-{suite}"):
        if _ready(folder, key) and not fresh:
            return folder
        mirror = sources.mirror()
        temporary = paths.fresh(paths.IMAGES / f"{suite}.tmp")
        command = ["mmdebstrap", "--mode=root", "--variant=apt", "--include=" + ",".join(PACKAGES),
                   "--aptopt=APT::Install-Recommends \"false\""]
        command += [f"--aptopt={option}" for option in sources.proxy_options()]
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in NO_DOCS]
        command += [suite, str(temporary / "root"), f"deb {mirror} {suite} main"]
        # INITRD=No: the lab has its own initramfs, and Debian's takes half a minute to create.
        say.run_logged(f"making the {suite} image from {mirror} (one to four minutes)", command,
                       paths.STATE / f"logs/image-{suite}.log",
                       env={**os.environ, "INITRD": "No", "PATH": paths.search_path()})
        make_disk(temporary / "root", temporary / "root.img")
        (temporary / "key").write_text(key)
        paths.replace(temporary, folder)
        return folder


def _layer(name, below, parts, fill, fresh=False):
    """A layer over other layers. If it is not in the cache, fill(root, log) writes its tree."""
    key = _key([[(layer / "key").read_text() for layer in below], *parts])
    folder = paths.IMAGES / f"{name}+{key[:12]}"
    with paths.lock(folder.name):
        if _ready(folder, key) and not fresh:
            return folder
        temporary = paths.fresh(paths.IMAGES / f"{folder.name}.tmp")
        (temporary / "root").mkdir()
        fill(temporary / "root", paths.STATE / f"logs/image-{folder.name}.log")
        make_disk(temporary / "root", temporary / "root.img")
        (temporary / "key").write_text(key)
        paths.replace(temporary, folder)
        return folder


def _kernel_layer(release, below, fresh):
    """The layer with the kernel of a release that has the user space of another one."""
    suite, packages = KERNELS[release]
    return _package_layer(release, below, [f"{name}/{suite}" for name in packages], suite, fresh)


def _package_layer(release, below, packages, suite=None, fresh=False):
    """The layer with additional packages, of the image's own suite and of another one."""
    def fill(root, log):
        line = f"deb {sources.mirror()} {suite} main"
        source = f"echo {shlex.quote(line)} > /etc/apt/sources.list.d/{suite}.list && " if suite else ""
        # A kernel of an older suite is a downgrade.
        older = "--allow-downgrades " if suite else ""
        install = (source + "apt-get update && DEBIAN_FRONTEND=noninteractive INITRD=No apt-get install -y "
                   "--no-install-recommends " + older + " ".join(packages) +
                   " && apt-get clean && rm -rf /var/lib/apt/lists/*")
        chroot.run(f"adding to the {release} image: {' '.join(packages)}",
                   [layer / "root" for layer in below], root, {}, install, log, network=True)

    return _layer(release, below, packages, fill, fresh)


def _rdma_core_layer(release, base):
    """The layer with libraries, providers and programs of the rdma-core source, over those of the release."""
    source = sources.rdma_core()

    def fill(root, log):
        # Install to Debian's folders, so that the files replace those of the release.
        build = """
            cmake -S /rdma-core -B /tmp/build -GNinja -DCMAKE_BUILD_TYPE=Release -DNO_PYVERBS=1 \
                -DNO_MAN_PAGES=1 -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc \
                -DCMAKE_INSTALL_LIBDIR=lib/$(gcc -print-multiarch) -DCMAKE_INSTALL_RUNDIR=/run \
                -DCMAKE_INSTALL_LIBEXECDIR=/usr/lib -DCMAKE_INSTALL_SHAREDSTATEDIR=/var/lib \
                -DCMAKE_INSTALL_UDEV_RULESDIR=/usr/lib/udev/rules.d \
                -DCMAKE_INSTALL_SYSTEMD_SERVICEDIR=/usr/lib/systemd/system
            ninja -C /tmp/build
            DESTDIR= ninja -C /tmp/build install > /dev/null
            ldconfig"""
        chroot.run(f"building {source.name} for the {release} image (some minutes)",
                   [base / "root"], root, {"/rdma-core": source}, build, log)

    return _layer(release, [base], [source.name], fill)


def _rdma_core_packages(release, base):
    """The layer with Debian packages of rdma-core, built by its own debian/, in place of the release's packages."""
    source = sources.rdma_core()

    def fill(root, log):
        tools = _package_layer(release, [base], RDMA_CORE_TOOLS)
        debs = paths.fresh(paths.STATE / "tmp/rdma-core-debs")
        build = f"""
            cp -a /rdma-core /build
            cd /build
            DEB_BUILD_OPTIONS=parallel={os.cpu_count()} dpkg-buildpackage --build=binary --unsigned-changes
            cp ../*.deb /debs"""
        chroot.run(f"building {source.name} as packages for {release} (some minutes)",
                   [base / "root", tools / "root"], None, {"/rdma-core": source, "/debs": debs}, build,
                   log)
        install = """
            cd /debs
            dpkg --install $(for deb in *.deb; do
                dpkg-query -s "${deb%%_*}" 2> /dev/null | grep -q '^Status: .* installed' && echo "$deb"
            done)"""
        chroot.run(f"installing {source.name} in the {release} image", [base / "root"], root,
                   {"/debs": debs}, install, log)

    return _layer(release, [base], [source.name, "packages"], fill)
