"""A virtual machine of aarch64 whose kernel has larger pages than this machine. qemu-user has the
pages of this machine, so only qemu-system can show them. The machine has no disk: the programs, the
libraries that they need, and busybox are in the initramfs, and the serial console is the answer.

    /init   written here: mounts /proc, /sys and /dev, runs each program, powers off
    /bin    busybox of Debian's arm64
    /lib    the libraries of the programs
    /usr    time zones
    /...    the programs, under the paths of this machine, which their arguments contain
"""

import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess

from . import DistributionError, cache_folder, run, say, sources
from .cross_tests import TRIPLE

SUITE = "trixie"  # has a kernel of 16 KiB pages; no release has one of 64 KiB for aarch64
KERNEL = "linux-image-arm64-16k"
# No program names these: sonde opens the first two when it needs them, and pthread_cancel() the
# third.
OPENED_LIBRARIES = ("libmicrohttpd.so.12", "libcurl-gnutls.so.4", "libgcc_s.so.1")
TIME_ZONES = pathlib.Path("/usr/share/zoneinfo")
MEMORY_MIB = 4096
# Emulation is slow: one program may take this time.
PROGRAM_S = 1200
MACHINE_S = 3600
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
ip link set lo up
export PATH=/bin HOME=/tmp
echo "pages: $(grep -m 1 KernelPageSize /proc/self/smaps)"
try() {{
    name=$1
    shift
    mkdir /tmp/here && cd /tmp/here
    timeout {program_s} env "$@" >/tmp/said 2>&1 </dev/null
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || sed 's/^/| /' /tmp/said
    echo "ended: $name $code"
    cd / && rm -rf /tmp/here
}}
{commands}
poweroff -f
"""


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    command: list[str]
    env: dict[str, str]


def fetched() -> pathlib.Path:
    """A folder with vmlinuz, the kernel of 16 KiB pages, and busybox."""
    folder = cache_folder() / f"big-pages-{SUITE}"
    if folder.exists():
        return folder
    say(f"fetching a kernel of 16 KiB pages of {SUITE} for arm64")
    arm64 = ("-o=APT::Architecture=arm64", "-o=APT::Architectures::=arm64")
    apt = sources.Apt("apt-big-pages", [f"deb {sources.mirrors()['']} {SUITE} main"], *arm64)
    apt.get("update", "-q")
    depends = run(["apt-cache", *apt.options, "depends", KERNEL])
    image = re.search(r"Depends: (linux-image-\S+)", depends)
    if not image:
        raise DistributionError(f"{KERNEL} of {SUITE} names no kernel:\n{depends}")
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    apt.get("download", "-q", image[1], "busybox-static", cwd=unfinished)
    for package in sorted(unfinished.glob("*.deb")):
        run(["dpkg", "-x", package, unfinished / "unpacked"])
        package.unlink()
    [kernel] = unfinished.glob("unpacked/boot/vmlinuz-*")
    kernel.rename(unfinished / "vmlinuz")
    (unfinished / "unpacked/usr/bin/busybox").rename(unfinished / "busybox")
    shutil.rmtree(unfinished / "unpacked")
    shutil.rmtree(apt.folder)
    unfinished.rename(folder)
    return folder


def _needed(path: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", "-W", path]))


def _add_libraries(root: pathlib.Path, libraries: pathlib.Path, programs: list[pathlib.Path]) -> None:
    """Copies all libraries that the programs need. Those of sonde are beside their programs."""
    place = root / "lib" / TRIPLE
    place.mkdir(parents=True)
    folders = [libraries / "lib" / TRIPLE, libraries / "usr/lib" / TRIPLE]
    own = {path.name for path in programs}
    wanted = [*OPENED_LIBRARIES, "ld-linux-aarch64.so.1", *(n for p in programs for n in _needed(p))]
    while wanted:
        name = wanted.pop()
        if (place / name).exists() or any(file.startswith(name) for file in own):
            continue
        found = [folder / name for folder in folders if (folder / name).exists()]
        if not found:
            raise DistributionError(f"no library {name} in {libraries}")
        shutil.copy(found[0], place / name)
        wanted += _needed(found[0])
    (root / "lib/ld-linux-aarch64.so.1").symlink_to(f"{TRIPLE}/ld-linux-aarch64.so.1")


def _stripped(path: pathlib.Path, root: pathlib.Path) -> None:
    copy = root / path.relative_to("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    run([f"{TRIPLE}-strip", "--strip-debug", "-o", copy, path])


def initramfs(
    place: pathlib.Path, libraries: pathlib.Path, files: list[pathlib.Path], programs: list[Program]
) -> pathlib.Path:
    """Packs the files of the programs, and the script that runs them one after another."""
    root = place / "root"
    for name in ("bin", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(fetched() / "busybox", root / "bin/busybox")
    for path in files:
        _stripped(path, root)
        if ".so." in path.name:  # programs need the name of its interface
            short = root / path.parent.relative_to("/") / (path.name.split(".so.")[0] + ".so.0")
            short.symlink_to(path.name)
    _add_libraries(root, libraries, files)
    shutil.copytree(TIME_ZONES, root / TIME_ZONES.relative_to("/"), symlinks=True)
    commands = "\n".join(
        shlex.join(["try", p.name, *(f"{k}={v}" for k, v in p.env.items()), *p.command])
        for p in programs
    )
    (root / "init").write_text(INIT.format(program_s=PROGRAM_S, commands=commands))
    (root / "init").chmod(0o755)
    packed = place / "initramfs"
    pack = 'cd "$1" && find . | cpio --quiet -o -H newc >"$2"'
    run(["sh", "-ec", pack, "sh", str(root), str(packed)])
    shutil.rmtree(root)
    return packed


def boot(kernel: pathlib.Path, packed: pathlib.Path) -> tuple[str, dict[str, int]]:
    """Runs the machine until it powers off, and prints its console. Returns the size of its pages
    and the exit code of each program."""
    command = ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2"]
    command += ["-m", str(MEMORY_MIB), "-nic", "none", "-nographic", "-no-reboot"]
    command += ["-kernel", str(kernel), "-initrd", str(packed)]
    command += ["-append", "console=ttyAMA0 quiet panic=-1"]
    pages, codes = "", {}
    try:
        machine = subprocess.Popen(
            ["timeout", str(MACHINE_S), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise DistributionError("timeout of coreutils is missing") from error
    assert machine.stdout
    with machine:
        for line in machine.stdout:
            print(line.rstrip(), flush=True)
            if found := re.match(r"pages: \w+: +(\d+ kB)", line):
                pages = found[1]
            elif found := re.match(r"ended: (.+) (\d+)\s*$", line):
                codes[found[1]] = int(found[2])
    return pages, codes
