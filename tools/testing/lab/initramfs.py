# SPDX-License-Identifier: GPL-2.0
"""Creates the initramfs of a guest: busybox, the modules that the root disk needs, and the payload."""

import lzma
import os
import pathlib
import shutil
import subprocess

import paths
import say

# Modules that a kernel needs to mount its root and to reach the host; in some kernels they are built in. ext4 needs
# crc32c at mount time, which modules.dep does not list.
MODULES = ["crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "overlay", "virtio_net", "9pnet_virtio", "9p",
           "virtio_console", "virtio_rng"]


def kernel_file(tree, version):
    path = tree / "boot" / f"vmlinuz-{version}"
    if not path.is_file():
        raise say.LabError(f"there is no kernel {path}")
    return path


def _busybox(image):
    for tree in image.trees:
        for name in ("usr/bin/busybox", "bin/busybox"):
            if (tree / name).is_file():
                return tree / name
    raise say.LabError(f"the {image.release} image has no busybox-static")


def _plain(path):
    """The uncompressed bytes of a module: Debian compresses modules, and busybox's insmod does not decompress."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    return path.read_bytes()


def _module_name(path):
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def _module_order(folder):
    """The module files to load according to modules.dep, dependencies first."""
    depends = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        depends[_module_name(path)] = (path, rest.split())
    order = []
    for wanted in MODULES:
        if wanted not in depends:
            continue  # built in
        path, needs = depends[wanted]
        # modules.dep lists the nearest dependency first.
        for name in [*reversed(needs), path]:
            if name not in order:
                order.append(name)
    return order


def _archive(folder, output):
    with open(output, "ab") as sink:
        names = subprocess.run(["find", ".", "-print0"], cwd=folder, capture_output=True, check=True)
        subprocess.run(["cpio", "-o", "-0", "-H", "newc", "--quiet", "--owner=0:0"], cwd=folder,
                       input=names.stdout, stdout=sink, check=True)


def base(image, key, modules, version, disks):
    """The cached archive with busybox, modules and the first init. modules is a folder lib/modules/VERSION.

    key must change whenever the image or the kernel changes."""
    script = paths.LAB / "guest/initramfs-init"
    stamp = f"{key}-{version}-{len(disks)}-{int(script.stat().st_mtime)}"
    ready = paths.STATE / "initramfs" / stamp
    with paths.lock("initramfs"):
        if ready.is_file():
            return ready
        folder = paths.fresh(paths.STATE / "tmp" / "initramfs")
        for name in ("bin", "modules", "payload"):
            (folder / name).mkdir()
        shutil.copy(_busybox(image), folder / "bin/busybox")
        (folder / "bin/sh").symlink_to("busybox")
        order = _module_order(modules)
        for path in order:
            (folder / "modules" / f"{_module_name(path)}.ko").write_bytes(_plain(modules / path))
        (folder / "modules/order").write_text("".join(f"{_module_name(path)}.ko\n" for path in order))
        (folder / "disks").write_text("".join(f"{disk}\n" for disk in disks))
        shutil.copy(script, folder / "init")
        ready.parent.mkdir(parents=True, exist_ok=True)
        temporary = ready.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        _archive(folder, temporary)
        os.replace(temporary, ready)
        return ready


def write_probe(image, output, mark):
    """Writes the initramfs of the KVM probe, which prints a mark and powers off."""
    folder = paths.fresh(paths.STATE / "tmp" / "probe-initramfs")
    (folder / "bin").mkdir()
    shutil.copy(_busybox(image), folder / "bin/busybox")
    (folder / "bin/sh").symlink_to("busybox")
    init = folder / "init"
    init.write_text(f"#!/bin/sh\necho '{mark}'\n/bin/busybox poweroff -f\n")
    init.chmod(0o755)
    _archive(folder, output)


def payload(folders, output):
    """Writes an archive of folders that the guest copies over its root: builds, and the lab's init."""
    pathlib.Path(output).unlink(missing_ok=True)
    for folder in folders:
        _archive(folder, output)
