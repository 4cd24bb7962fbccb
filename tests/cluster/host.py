"""The first process of a host of the lab, or of its switch: process 1 of its own namespaces
(network, name, mounts, processes, IPC).

The process reads its configuration, one line of JSON, from its standard input, makes private
folders for the host, starts the services, and reaps orphans. It ends when its standard input is
closed. Then the kernel ends every process of the host, and removes the mounts and the network.

If hosts share memory, the switch is process 1 of all of them, and all use one /dev/shm.
"""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys

MEMORY = "/dev/shm"
PRIVATE = ["/tmp", "/run", "/root", "/var/tmp", "/var/spool", "/var/log"]
# Folders of the kernel and of the lab. They contain no files of the machine's owner.
SPARED = ("/proc/", "/sys/", "/dev/", "/mnt/")
OPEN_TO_ALL = ["/tmp", "/var/tmp", MEMORY]


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def mount_empty(folder):
    run("mount", "-t", "tmpfs", "-o", f"mode={'1777' if folder in OPEN_TO_ALL else '0755'}", "tmpfs", folder)


def mounted():
    """Returns the mount points, in the order in which they were mounted."""
    with open("/proc/self/mountinfo") as f:
        return [line.split()[4].encode().decode("unicode_escape").encode("latin-1").decode() for line in f]


def bind(source, target):
    """Mounts the folder of an open descriptor at `target`. Its path may be hidden by another mount,
    so --no-canonicalize keeps `mount` from resolving it."""
    subprocess.run(["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{source}", target], check=True, stdin=subprocess.DEVNULL, pass_fds=[source])


def mount(lab, shares_memory, folders):
    """Mounts the host's folders: /mnt is shared by all hosts, folders to which programs may write
    are private, and everything else is read-only."""
    seen = {name: os.open(path, os.O_PATH | os.O_DIRECTORY) for name, path in folders.items()}
    # These binds precede the read-only remounts, because a bind of a read-only mount is read-only.
    run("mount", "--bind", f"{lab}/mnt", "/mnt")
    for name in ("hosts", "slurm"):
        run("mount", "--bind", f"{lab}/etc/{name}", f"/etc/{name}")
    for point in dict.fromkeys(mounted()):
        if not f"{point}/".startswith(SPARED) and os.path.lexists(point):
            run("mount", "-o", "remount,bind,ro", point)
    for folder in PRIVATE + ([] if shares_memory else [MEMORY]):
        mount_empty(folder)
    for name, source in seen.items():
        bind(source, f"/mnt/folders/{name}")
        run("mount", "-o", "remount,bind,ro", f"/mnt/folders/{name}")
    for fd in seen.values():
        os.close(fd)
    for folder in ("/run/munge", "/run/sshd", "/run/slurm", "/var/log/slurm", "/var/spool/slurm"):
        os.mkdir(folder, 0o755)
    os.mkdir("/root/.ssh", 0o700)
    for name in ("config", "id"):
        pathlib.Path(f"/root/.ssh/{name}").write_bytes(pathlib.Path(f"/mnt/ssh/{name}").read_bytes())
        os.chmod(f"/root/.ssh/{name}", 0o600)


def service(name, *command):
    with open(f"/mnt/log/{socket.gethostname()}-{os.path.basename(command[0])}.log", "ab") as log:
        return subprocess.Popen([*command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def join(me):
    """Sets this process up as the host."""
    mount(me["lab"], me["shares_memory"], me["folders"])
    print("here", flush=True)
    sys.stdin.readline()  # the network is connected
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{me['address']}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    run("munged", "--force", "--key-file=/mnt/etc/munge.key", "--log-file=/var/log/munged.log", "--seed-file=/run/munge/seed",
        "--pid-file=/run/munge/pid", "--socket=/run/munge/munge.socket.2", "--num-threads=1")
    for command in me["services"]:
        service(*([command[0]] + command))
    print("ready", flush=True)


def main():
    os.chdir("/")
    me = json.loads(sys.stdin.readline())
    socket.sethostname(me["name"])
    if "address" in me:
        join(me)
    else:
        mount_empty(MEMORY)
        print("here", flush=True)

    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable = select.select([0, wake], [], [])[0]
        if 0 in readable and not os.read(0, 64):
            return
        if wake in readable:
            os.read(wake, 512)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


main()
