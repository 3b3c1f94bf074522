# SPDX-License-Identifier: GPL-2.0
"""Builds kernels from kernels/NAME.config and Debian's kernel source, in trixie's root tree.

A kernel is an additional disk layer of the guests' root, with /boot and /lib/modules. Its build tree stays in
build/lab/kernels, because modules are built against it. The kernel `uml` is the user-mode Linux that
`--machine uml` runs as a process, and `uml-NAME` is the same with `--kernel NAME`. kernels/uml.patch has
corrections of the source for user-mode Linux."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess

import chroot
import image
import paths
import say
import sources

CONFIGS = paths.LAB / "kernels"
USER_MODE = "uml"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.config")
               if path.stem != "base" and not path.stem.startswith(USER_MODE))
TOOLS = ["bison", "flex", "bc", "libelf-dev", "libssl-dev", "cpio", "patch"]
# Memory of a guest in MiB: a kernel with checkers needs more than a stock one.
MEMORY = 2048


@dataclasses.dataclass
class Recipe:
    """The differences between the architectures that kernels are built for."""
    arch: str
    release: str            # release of the kernel source
    configs: tuple          # config fragments before the kernel's own
    begin: str              # make targets of the base configuration
    target: str
    image: str              # result of `make TARGET`, in the build tree
    patch: str = None       # patch of the source, in kernels/


GUEST = Recipe("x86", "trixie", ("base",), "x86_64_defconfig kvm_guest.config", "bzImage",
               "arch/x86/boot/bzImage")
# Use the source of backports: in older kernels, user-mode Linux has one CPU only, and needs ptrace for system calls.
PROCESS = Recipe("um", "backports", (), "defconfig", "linux", "linux", "uml.patch")
PROCESS_CHECKED = dataclasses.replace(PROCESS, configs=(USER_MODE,))


@dataclasses.dataclass
class Kernel:
    name: str
    version: str
    key: str
    folder: pathlib.Path
    # {folder in the chroot: folder of the host} for build tree and source
    binds: dict
    # ARCH for builds of modules
    arch: str

    @property
    def tree(self):
        return self.folder / "root"

    @property
    def disk(self):
        return self.folder / "root.img"

    @property
    def modules(self):
        return self.tree / "usr/lib/modules" / self.version


def named(name, release):
    """The kernel for `--kernel NAME`; None for the kernel of the release."""
    if name == "stock":
        return None
    if release == "bookworm":
        raise say.LabError(f"--kernel {name} needs --release trixie or backports")
    return make(name)


def user_mode(name):
    """Like named(), for user-mode guests."""
    made = USER_MODE if name == "stock" else f"{USER_MODE}-{name}"
    if not (CONFIGS / f"{made}.config").is_file():
        raise say.LabError(f"--machine uml does not work with --kernel {name}")
    return make(made)


def make(name):
    """A kernel from the cache, or a new build, which takes five to thirty minutes on two CPUs."""
    recipe = GUEST
    if name.startswith(USER_MODE):
        recipe = PROCESS if name == USER_MODE else PROCESS_CHECKED
    source = sources.linux(recipe.release)
    texts = [(CONFIGS / f"{part}.config").read_text() for part in (*recipe.configs, name)]
    change = [(CONFIGS / recipe.patch).read_text()] if recipe.patch else []
    key = hashlib.sha256("\n".join([str(source), *texts, *change]).encode()).hexdigest()[:16]
    folder = paths.KERNELS / name
    objects = paths.KERNELS / f"{name}.build"
    if recipe.patch:
        source = _patched(source, CONFIGS / recipe.patch)
    with paths.lock(f"kernel-{name}"):
        if not (folder / "key").is_file() or (folder / "key").read_text() != key:
            _build(name, recipe, source, texts, objects, folder, key)
        version = (folder / "version").read_text()
        return Kernel(name, version, key, folder,
                      {"/lab-kernel/linux": source, "/lab-kernel/build": objects}, recipe.arch)


def _patched(source, patch):
    """The patched source, with hard links to all files that the patch does not change."""
    made = paths.KERNELS / f"{patch.stem}.linux"
    stamp = made / "lab.patched"
    wanted = f"{source}\n{patch.read_text()}"
    with paths.lock(f"kernel-source-{patch.stem}"):
        if not (stamp.is_file() and stamp.read_text() == wanted):
            temporary = paths.fresh(paths.KERNELS / f"{patch.stem}.linux.tmp")
            subprocess.run(["cp", "-al", f"{source}/.", temporary], check=True)
            chroot.run(f"applying {patch.name}", image.ensure("trixie", TOOLS).trees, None,
                       {"/lab-kernel/linux": temporary, "/lab-kernel/patches": CONFIGS},
                       f"patch -d /lab-kernel/linux -p1 < /lab-kernel/patches/{patch.name}",
                       paths.STATE / f"logs/kernel-{patch.name}.log")
            (temporary / stamp.name).write_text(wanted)
            paths.replace(temporary, made)
    return made


def _build(name, recipe, source, texts, objects, folder, key):
    base = image.ensure("trixie", TOOLS)
    objects.mkdir(parents=True, exist_ok=True)
    (objects / "lab.config").write_text("\n".join(texts))
    temporary = paths.fresh(paths.KERNELS / f"{name}.tmp")
    (temporary / "root").mkdir()
    log = paths.STATE / f"logs/kernel-{name}.log"
    binds = {"/lab-kernel/linux": source, "/lab-kernel/build": objects,
             "/lab-kernel/root": temporary / "root"}
    configure = f"""
        export ARCH={recipe.arch}
        cd /lab-kernel/linux
        make O=/lab-kernel/build {recipe.begin}
        cd /lab-kernel/build
        ../linux/scripts/kconfig/merge_config.sh -m -O . .config lab.config
        make olddefconfig"""
    chroot.run(f"configuring kernel {name}", base.trees, None, binds, configure,
               paths.STATE / f"logs/kernel-{name}-config.log")
    _verify(name, objects / ".config", objects / "lab.config")
    build = f"""
        export ARCH={recipe.arch}
        cd /lab-kernel/build
        make -j{os.cpu_count()} {recipe.target} modules
        version=$(cat include/config/kernel.release)
        make modules_install INSTALL_MOD_PATH=/lab-kernel/root/usr
        mkdir -p /lab-kernel/root/boot
        cp {recipe.image} /lab-kernel/root/boot/vmlinuz-$version"""
    took = "five minutes" if recipe is not GUEST else "ten to thirty minutes"
    chroot.run(f"building kernel {name} ({took})", base.trees, None, binds, build, log)
    (temporary / "version").write_text((objects / "include/config/kernel.release").read_text().strip())
    image.make_disk(temporary / "root", temporary / "root.img")
    (temporary / "key").write_text(key)
    paths.replace(temporary, folder)


def _verify(name, config, wanted):
    """Raises an error if Kconfig has dropped an option of the fragments. Kconfig itself prints nothing about it."""
    have = set(config.read_text().splitlines())
    # The last line for an option is valid.
    last = {line.split("=")[0]: line for line in wanted.read_text().splitlines()
            if line.startswith("CONFIG_")}
    lost = [line for line in last.values() if line not in have]
    if lost:
        raise say.LabError(f"kernel {name}: Kconfig dropped {', '.join(lost)}; see {config}")
