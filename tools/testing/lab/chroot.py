# SPDX-License-Identifier: GPL-2.0
"""Run a command inside an image's root tree without changing it.

The tree is the lower side of an overlay; what the command writes lands in a folder of its own,
which is how `make install` becomes an archive that a guest unpacks. Everything is mounted in a
private mount namespace, so nothing stays mounted, however the command ends."""

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
    """Run a shell command over trees (lowest first); binds maps guest folders to host ones.

    upper collects what the command writes outside the binds; None throws it away."""
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
            # Mount points and what they covered are no part of the result.
            for inside in binds:
                mountpoint = upper / inside.lstrip("/")
                if mountpoint.is_dir() and not any(mountpoint.iterdir()):
                    mountpoint.rmdir()
            if network:
                (upper / "etc/resolv.conf").unlink(missing_ok=True)
