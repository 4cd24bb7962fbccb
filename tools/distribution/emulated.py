"""Runs programs of another processor under qemu-user, in namespaces of their own: the machine stays
as it is. A namespace of users has a binfmt_misc of its own since Linux 6.7."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import DistributionError, cache_folder, run, say, sources

MAGIC = r":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{qemu}:FP"
# Waits for its maps of users and groups, and becomes root with all capabilities by exec.
WAIT = 'echo >&"$1"; read -r _ <&"$2"; shift 2; exec "$@"'
ALL_IDS = "0 0 4294967295"
# Older versions accept MADV_WIPEONFORK and do nothing, so tests of forks wait for locks for ever.
OLDEST = (8, 0)
SUITE = "trixie"  # has a newer one, linked statically


def _in_user_namespace(command: list[str]) -> int:
    """Runs a command as root of its own user and mount namespace, with all users. unshare can map
    them only in versions that Debian 12 does not have yet, so this does."""
    ready, is_ready = os.pipe()
    mapped, is_mapped = os.pipe()
    process = subprocess.Popen(
        [*"unshare --user --mount bash -c".split(), WAIT, "bash", str(is_ready), str(mapped)]
        + command,
        pass_fds=(is_ready, mapped),
    )
    os.close(is_ready)
    os.close(mapped)
    if os.read(ready, 1):  # else it has ended, and has said why
        for name in ("uid_map", "gid_map"):
            pathlib.Path(f"/proc/{process.pid}/{name}").write_text(ALL_IDS)
    os.close(is_mapped)
    os.close(ready)
    return process.wait()


def _version(emulator: pathlib.Path | str) -> tuple[int, ...]:
    found = re.search(r"version (\d+)\.(\d+)", run([emulator, "--version"]))
    return tuple(map(int, found.groups())) if found else (0,)


def emulator() -> pathlib.Path:
    """Returns this machine's qemu or, if that is too old, the fetched one of a newer Debian."""
    qemu = shutil.which("qemu-aarch64-static")
    if qemu and _version(qemu) >= OLDEST:
        return pathlib.Path(qemu)
    folder = cache_folder() / f"qemu-{SUITE}"
    if not folder.exists():
        say(f"fetching qemu-user of {SUITE}")
        apt = sources.Apt(f"apt-{SUITE}", [f"deb {sources.mirrors()['']} {SUITE} main"])
        apt.get("update", "-q")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
            place = pathlib.Path(name)
            apt.get("download", "-q", "qemu-user", cwd=place)
            [package] = place.glob("*.deb")
            run(["dpkg", "-x", package, place / "unpacked"])
            (place / "unpacked").rename(folder)
        shutil.rmtree(apt.folder)
    return folder / "usr/bin/qemu-aarch64"


def run_emulated(script: str, *words: str) -> int:
    """Runs a shell script that can start programs of aarch64. Needs root."""
    before = f"""mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' '{MAGIC.format(qemu=emulator())}' >/proc/sys/fs/binfmt_misc/register
"""
    return _in_user_namespace(["sh", "-ec", before + script, "sh", *words])
