# SPDX-License-Identifier: GPL-2.0
"""Guest images: a Debian root tree that mmdebstrap creates, and an ext4 disk with the same files.

The tree stays because module and provider are built in it (see chroot.py). Additional packages become a second
layer over the release's image."""

import dataclasses
import hashlib
import json
import os
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

# The Debian suite of a release, and packages that come from another suite. "backports" is the kernel of
# trixie-backports with the user space of trixie.
RELEASES = {
    "bookworm": ("bookworm", {}),
    "trixie": ("trixie", {}),
    "backports": ("trixie", {"linux-image-amd64": "trixie-backports",
                             "linux-headers-amd64": "trixie-backports"}),
    "rt": ("trixie", {}),
}
# Packages that replace others: for "rt" the kernel with PREEMPT_RT
INSTEAD = {
    "rt": {"linux-image-amd64": "linux-image-rt-amd64", "linux-headers-amd64": "linux-headers-rt-amd64"},
}
# The source of bookworm's rdma-core (44) is not available any more. Its guests use trixie's, which the lab builds.
OWN_RDMA_CORE = {"bookworm"}
# Packages that the build of this rdma-core as Debian packages needs
RDMA_CORE_TOOLS = """build-essential debhelper dh-python cython3 python3-dev libsystemd-dev pandoc
    python3-docutils valgrind""".split()
# Part of the cache key: raise it when a change of this file changes the content of images.
RECIPE = 1
NO_DOCS = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*"]


@dataclasses.dataclass
class Image:
    """An image. layers: folders from the lowest up, each with root/ (tree) and root.img (disk)."""
    release: str
    layers: list

    @property
    def built_in(self):
        """The layers that all guests of the release have."""
        return self.layers[:2] if self.release in OWN_RDMA_CORE else self.layers[:1]

    @property
    def trees(self):
        return [layer / "root" for layer in self.layers]

    @property
    def disks(self):
        return [layer / "root.img" for layer in self.layers]

    @property
    def kernel(self):
        """The version of the newest kernel with headers."""
        # Not path.exists(): bookworm's links are absolute, so they are valid only inside the tree.
        versions = sorted(path.name for path in (self.trees[0] / "lib/modules").iterdir()
                          if os.path.lexists(path / "build"))
        if not versions:
            raise say.LabError(f"the {self.release} image has no kernel headers")
        return versions[-1]

    @property
    def key(self):
        return hashlib.sha256("".join((layer / "key").read_text()
                                      for layer in self.layers).encode()).hexdigest()[:12]


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
    layers = [_base(release, fresh)]
    if release in OWN_RDMA_CORE:
        layers.append((_rdma_core_packages if packaged else _rdma_core_layer)(release, layers[0]))
    extra = sorted(set(packages) - set(PACKAGES))
    if extra:
        layers.append(_package_layer(release, layers, extra))
    return Image(release, layers)


def _base(release, fresh):
    suite, pins = RELEASES[release]
    packages = [INSTEAD.get(release, {}).get(name, name) for name in PACKAGES]
    key = _key([release, packages])
    folder = paths.IMAGES / release
    if _ready(folder, key) and not fresh:
        return folder       # without the lock, which another lab may hold for minutes
    with paths.lock(f"image-{release}"):
        if _ready(folder, key) and not fresh:
            return folder
        mirror = sources.mirror()
        names = [name + ("/" + pins[name] if name in pins else "") for name in packages]
        lines = [f"deb {mirror} {suite} main"]
        lines += [f"deb {mirror} {extra} main" for extra in sorted(set(pins.values()))]
        temporary = paths.fresh(paths.IMAGES / f"{release}.tmp")
        command = ["mmdebstrap", "--mode=root", "--variant=apt", "--include=" + ",".join(names),
                   "--aptopt=APT::Install-Recommends \"false\""]
        command += [f"--aptopt={option}" for option in sources.proxy_options()]
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in NO_DOCS]
        command += [suite, str(temporary / "root"), *lines]
        # INITRD=No: the lab has its own initramfs, and Debian's takes half a minute to create.
        say.run_logged(f"making the {release} image from {mirror} (one to four minutes)", command,
                       paths.STATE / f"logs/image-{release}.log",
                       env={**os.environ, "INITRD": "No", "PATH": paths.search_path()})
        make_disk(temporary / "root", temporary / "root.img")
        (temporary / "key").write_text(key)
        paths.replace(temporary, folder)
        return folder


def _layer(name, below, parts, fill):
    """A layer over other layers. If it is not in the cache, fill(root, log) writes its tree."""
    key = _key([[(layer / "key").read_text() for layer in below], *parts])
    folder = paths.IMAGES / f"{name}+{key[:12]}"
    with paths.lock(folder.name):
        if _ready(folder, key):
            return folder
        temporary = paths.fresh(paths.IMAGES / f"{folder.name}.tmp")
        (temporary / "root").mkdir()
        fill(temporary / "root", paths.STATE / f"logs/image-{folder.name}.log")
        make_disk(temporary / "root", temporary / "root.img")
        (temporary / "key").write_text(key)
        paths.replace(temporary, folder)
        return folder


def _package_layer(release, below, packages):
    def fill(root, log):
        install = ("apt-get update && DEBIAN_FRONTEND=noninteractive INITRD=No apt-get install -y "
                   "--no-install-recommends " + " ".join(packages) +
                   " && apt-get clean && rm -rf /var/lib/apt/lists/*")
        chroot.run(f"adding to the {release} image: {' '.join(packages)}",
                   [layer / "root" for layer in below], root, {}, install, log, network=True)

    return _layer(release, below, packages, fill)


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
