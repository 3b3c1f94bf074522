# SPDX-License-Identifier: GPL-2.0
"""A guest: its QEMU process, and the files through which host and guest communicate.

The guests mount the folder of the run by 9p. ctl/ has env.N, the script, barriers and status.N. node<N>/ is
$LAB_OUT. console.N is the kernel log, and output.N has the output of the script."""

import os
import subprocess
import time

import paths
import question
import say


# Size of the disk for files that survive a reboot of the guest. The file on the host is sparse.
TOP_BYTES = 8 << 30


class Guest:
    def __init__(self, number, run):
        self.number = number
        self.run = run                      # the run's folder
        self.console = run / f"console.{number}"
        self.output = run / f"output.{number}"
        self.status_file = run / f"ctl/status.{number}"
        self.ready_file = run / f"ctl/ready.{number}"
        self.error_file = run / f"ctl/error.{number}"
        self.top = run / f"top.{number}"
        self.process = None
        self.started = None
        self.judged = None                  # length of the console log before ask(); None: all of it

    def command(self, kernel, initrd, disks, accel, fast, network, options):
        """The complete QEMU command. Paths in the run's folder are relative, as names of unix sockets are short.

        fast: the kernel options of accel.py"""
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                 *([] if self._keeps(options) else ["-no-reboot"]),
                 "-machine", "q35", "-m", str(options.memory), "-smp",
                 str(options.cpus), *accel, "-kernel", str(kernel), "-initrd", str(initrd),
                 "-append", f"console=ttyS0 panic=-1 oops=panic no_timer_check net.ifnames=0 mitigations=off "
                            f"audit=0 apparmor=0 loglevel=8 nmi_watchdog=0 sysrq_always_enabled rdinit=/init {fast} "
                            f"lab.node={self.number} lab.init={options.init} {options.append}".strip(),
                 "-chardev", f"socket,id=console,path=serial.{self.number}.sock,server=on,wait=off,"
                             f"logfile={self.console.name}",
                 "-serial", "chardev:console",
                 "-monitor", f"unix:monitor.{self.number}.sock,server=on,wait=off",
                 "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
                 "-chardev", f"file,id=out,path={self.output.name}",
                 "-device", "virtserialport,chardev=out,name=script"]
        if options.shell:
            words += ["-chardev", f"socket,id=tty,path=tty.{self.number},server=on,wait=off",
                      "-device", "virtconsole,chardev=tty"]
        for index, disk in enumerate(disks):
            # Turn off QEMU's lock of the file, because user-mode guests also lock it. Nothing writes to the file.
            words += ["-drive", f"file={disk},format=raw,if=none,id=disk{index},readonly=on,"
                                "file.locking=off",
                      "-device", f"virtio-blk-pci,drive=disk{index}"]
        if self._keeps(options):
            self._make_top()
            words += ["-drive", f"file={self.top.name},format=raw,if=none,id=top",
                      "-device", "virtio-blk-pci,drive=top,serial=top"]
        for tag, folder, mode in (("run", ".", ""), ("testing", paths.TESTING, ",readonly=on")):
            words += ["-fsdev", f"local,id={tag},path={folder},security_model=none{mode}",
                      "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        return words + network

    @staticmethod
    def _keeps(options):
        """True if the guest's files survive a reboot. QEMU then boots the guest again, without the lab."""
        return options.init == "systemd"

    def _make_top(self):
        with open(self.top, "wb") as disk:
            disk.truncate(TOP_BYTES)
        subprocess.run(["mkfs.ext4", "-q", self.top], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PATH": paths.search_path()})

    def start(self, command, sockets):
        """Starts QEMU, which inherits these sockets with the same file descriptor numbers."""
        self.console.touch()
        self.output.touch()
        self.started = time.monotonic()
        with open(self.run / f"qemu.{self.number}", "wb") as log:
            # Start a new session, so that ctrl-C reaches only the lab, which then stops each guest itself.
            self.process = subprocess.Popen(command, cwd=self.run, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True,
                                            pass_fds=[one.fileno() for one in sockets],
                                            preexec_fn=say.die_with_parent)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def status(self):
        """The exit status of the script; None while it runs, 124 after declare_dead()."""
        try:
            return int(self.status_file.read_text())
        except (OSError, ValueError):
            return None

    def complaint(self):
        """The error message of QEMU or of the guest's init, or an empty string."""
        for path in (self.error_file, self.run / f"qemu.{self.number}"):
            if path.is_file() and path.stat().st_size:
                lines = path.read_text(errors="replace").splitlines()
                # Skip QEMU's warnings. For a single node QEMU warns of a hub without a cable.
                said = " ".join(line for line in lines if ": warning: " not in line)
                if said:
                    return said
        return ""

    def ask(self):
        """Makes a guest that does not end print its state."""
        question.ask(self)

    def log(self):
        """The kernel log without the output of ask()."""
        return self.console.read_bytes()[:self.judged].decode(errors="replace")

    def declare_dead(self, why):
        """Writes the status file of a guest that ended or failed, so that barriers of the other nodes end."""
        if not self.status_file.exists():
            self.error_file.write_text(why + "\n")
            self.status_file.write_text("124\n")

    def stop(self):
        if not self.alive():
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def prune(keep):
    """Removes the folders of all runs but the last `keep`. Folders of runs in progress stay."""
    if not paths.RUNS.is_dir():
        return
    import shutil  # noqa: PLC0415
    runs = sorted((path for path in paths.RUNS.iterdir() if path.is_dir() and not path.is_symlink()),
                  key=lambda path: path.stat().st_mtime)
    for path in runs[:-keep]:
        if not os.path.exists(path / "alive") or not _running(path / "alive"):
            shutil.rmtree(path, ignore_errors=True)


def _running(path):
    try:
        os.kill(int(path.read_text()), 0)
        return True
    except (OSError, ValueError):
        return False
