# SPDX-License-Identifier: GPL-2.0
"""Runs a command inside an image's root tree without changing the tree.

The tree is the lower layer of an overlay, and the files that the command writes go to another folder. In this
way `make install` becomes an archive that a guest unpacks. All mounts are in a private mount namespace, so that
none stays after the command."""

import shlex
import shutil

import paths
import say

SCRIPT = """
set -e
mount -t overlay overlay -o lowerdir={lower},upperdir={upper},workdir={work},index=off {top} || {{
    echo "this kernel cannot mount an overlay on {upper}: is build/ itself on an overlay?"; exit 1; }}
mount -t proc proc {top}/proc
mount --bind /dev {top}/dev
mount -t tmpfs tmpfs {top}/tmp
{binds}
{network}
exec chroot {top} /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 sh -ec {command}
"""


def run(what, trees, upper, binds, command, log, network=False):
    """Runs a shell command over trees (lowest first). binds maps folders in the tree to folders of the host.

    upper is the folder for the files that the command writes outside of binds; None discards them."""
    work = paths.fresh(paths.STATE / "tmp" / f"{log.stem}")
    keep = upper is not None
    if not keep:
        upper = work / "upper"
        upper.mkdir()
    for name in ("work", "top"):
        (work / name).mkdir()
    top = work / "top"
    lines = []
    for inside, outside in binds.items():
        lines.append(f"mkdir -p {top}{inside}")
        lines.append(f"mount --bind {shlex.quote(str(outside))} {top}{inside}")
    script = SCRIPT.format(
        lower=":".join(shlex.quote(str(tree)) for tree in reversed(trees)),
        upper=shlex.quote(str(upper)), work=work / "work", top=top, binds="\n".join(lines),
        network=f"cat /etc/resolv.conf > {top}/etc/resolv.conf" if network else "",
        command=shlex.quote(command))
    try:
        return say.run_logged(what, ["unshare", "--mount", "--propagation", "private",
                                     "--pid", "--fork", "--kill-child=SIGKILL", "sh", "-c", script], log)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if keep:
            # Remove the mount points of binds from the result.
            for inside in binds:
                mountpoint = upper / inside.lstrip("/")
                if mountpoint.is_dir() and not any(mountpoint.iterdir()):
                    mountpoint.rmdir()
            if network:
                (upper / "etc/resolv.conf").unlink(missing_ok=True)
