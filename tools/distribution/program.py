"""Builds sonde for one architecture and installs it into a folder, in the layout of the archives.

sonde itself prints its man pages, completions and dashboards. They are equal on all architectures,
so a build for another architecture runs the program of this machine's build.
"""

import os
import pathlib
import platform
import shutil

from . import PROJECT, DistributionError, run, say
from .toolchain import Toolchain, meson_cross_file

PREFIX = pathlib.PurePosixPath("/sonde")  # Meson's prefix
PYTHON = PREFIX / "lib/sonde/python"


def _native_wrapper(own: pathlib.Path, native: pathlib.Path) -> list[str]:
    """Returns a command that runs the program with the same path in the native build folder. The
    programs with which Meson checks the compiler are not run: verify.py checks its output."""
    script = (
        "case $1 in */meson-private/*) exit 0 ;; esac; "
        f'program=$1; shift; exec "{native}/${{program#{own}/}}" "$@"'
    )
    return ["/bin/sh", "-c", script, "sh"]


def build(
    tools: Toolchain, libraries: pathlib.Path, place: pathlib.Path, epoch: int
) -> pathlib.Path:
    """Builds in PLACE/ARCHITECTURE and returns the folder that holds the installed files."""
    folder, log = place / tools.architecture, place / f"{tools.architecture}.log"
    log.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    native = place / platform.machine()
    wrapper = [] if folder == native else _native_wrapper(folder, native)
    cross = place / f"{tools.architecture}.cross"
    text = meson_cross_file(tools, libraries, wrapper)
    fresh = cross.exists() and cross.read_text() == text and (folder / "build.ninja").exists()
    cross.write_text(text)
    run([PROJECT / "tools/web", folder], PROJECT, log=log)
    if not (folder / "web-packages").exists():
        raise DistributionError(
            "the page cannot be built: an archive needs node, npm and esbuild (tools/deps dist)"
        )
    env = {
        "SOURCE_DATE_EPOCH": str(epoch),
        "CCACHE_COMPILERTYPE": "clang",
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_BASEDIR": str(PROJECT),
    }
    if not fresh:
        options = {
            "prefix": PREFIX,
            "libdir": "lib",
            "optimization": "2",
            "debug": "false",
            "tests": "disabled",
            "python": "enabled",
            "fabric": "enabled",
            "python.platlibdir": PYTHON,
            "python.purelibdir": PYTHON,
            "pkgconfig.relocatable": "true",
        }
        for old in folder.iterdir():
            if old.name != "web-packages":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        run(
            [
                "meson",
                "setup",
                folder,
                PROJECT,
                "--cross-file",
                cross,
                *(f"-D{name}={value}" for name, value in options.items()),
            ],
            env=env,
            log=log,
        )
    say(f"building sonde for {tools.architecture}")
    run(["ninja", "-C", folder], env=env, log=log)
    root = place / f"{tools.architecture}-files"
    shutil.rmtree(root, ignore_errors=True)
    run(["meson", "install", "-C", folder, "--no-rebuild", "--destdir", root], env=env, log=log)
    files = root / PREFIX.relative_to("/")
    for cache in files.rglob("__pycache__"):
        shutil.rmtree(cache)
    return files


def source_date() -> int:
    """Returns the time for all files of an archive: SOURCE_DATE_EPOCH, or else the time of the last
    commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    return int(run(["git", "-C", PROJECT, "log", "-1", "--format=%ct"]))
