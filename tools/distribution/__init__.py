"""The steps of `make dist`. tools/dist calls these modules in this order:

toolchain     a C compiler that targets an old glibc, on both architectures
sources       the sources of the libraries that sonde needs
dependencies  builds them as static libraries
program       builds and installs sonde with them
bill          lists what an archive contains, with versions and licences (SPDX)
archive       packs the installed files as a tarball and as a wheel
usr_tree      arranges them below /usr
debian        packs them as a package of Debian
redhat        packs them as a package of Red Hat, SUSE and Fedora
verify        reads the finished files: symbols, libraries, paths, sizes
reproduce     builds the archives a second time, elsewhere, and compares them

Other tools use these:

emulated      runs programs of aarch64 under qemu-user
cross_tests   compiles the unit tests for aarch64
big_pages     runs them in a virtual machine with larger pages
"""

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
# The glibc of RHEL 8 and its rebuilds, the oldest systems of clusters that still get updates.
# libsonde needs memfd_create(), which glibc has since 2.27 and the kernel of RHEL 7 lacks.
GLIBC = (2, 28)
ARCHITECTURES = ("x86_64", "aarch64")


class DistributionError(Exception):
    """An error with a message for the caller of `make dist`."""


def cache_folder() -> pathlib.Path:
    """Returns the folder for downloads and built libraries. `make clean` keeps it, because making
    it again takes minutes."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get("SONDE_DIST_CACHE") or pathlib.Path(base) / "sonde-dist")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def say(text: str) -> None:
    print(f"dist: {text}", file=sys.stderr, flush=True)


def is_elf(path: pathlib.Path) -> bool:
    """True for a program or a library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def run(
    command: Sequence[str | pathlib.Path],
    cwd: pathlib.Path | None = None,
    env: dict[str, str] | None = None,
    log: pathlib.Path | None = None,
) -> str:
    """Runs a command and returns its standard output. If the command fails, the error has the last
    lines of its output; `log` has all of them."""
    words = list(map(str, command))
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise DistributionError(
            f"{words[0]} is missing: tools/deps dist installs what `make dist` needs"
        ) from error
    if log:
        with log.open("a") as file:
            file.write(f"$ {' '.join(words)}\n{done.stdout}")
    if done.returncode:
        last = "\n".join(((done.stderr or "") + done.stdout).splitlines()[-30:])
        where = f" (all of it: {log})" if log else ""
        raise DistributionError(f"failed: {' '.join(words)}{where}\n{last}")
    return done.stdout


def installed_package(name: str, requirement: str, *options: str) -> pathlib.Path:
    """Installs a package with pip in the cache, if necessary; returns its folder."""
    folder, venv = cache_folder() / name, cache_folder() / "venv"
    if not folder.exists():
        say(f"fetching {requirement} from PyPI")
        if not (venv / "bin/pip").exists():
            run([sys.executable, "-m", "venv", venv])
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        pip: list[str | pathlib.Path] = [
            venv / "bin/pip",
            "--disable-pip-version-check",
            "install",
            "-q",
        ]
        run([*pip, "--no-compile", *options, "--target", unfinished, requirement])
        unfinished.rename(folder)
    return folder
