"""Builds the archives a second time and compares them with the first ones, byte by byte. The second
build has another checkout, another cache, another folder, and libraries of its own; only the
sources and the compiler are the same. ccache is off, because it would return the first objects."""

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from . import PROJECT, DistributionError, cache_folder, run, say

SHARED = ("sources", "sources.json", "zig-", "venv", "auditwheel")  # beginnings of names
NAMES_MAX = 10  # of different files in a message


def members(path: pathlib.Path) -> dict[str, bytes]:
    """All files of an archive, or links as their targets."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    plain: io.BytesIO | None = None
    if path.suffix == ".deb":
        command = ["dpkg-deb", "--fsys-tarfile", str(path)]
        plain = io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)
    if path.suffix == ".rpm":
        with path.open("rb") as package:
            done = subprocess.run(
                ["rpm2archive", "-"], stdin=package, capture_output=True, check=True
            )
        plain = io.BytesIO(done.stdout)
    members = {}
    with tarfile.open(path, fileobj=plain) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isreg() else None
            members[entry.name] = file.read() if file else entry.linkname.encode()
    return members


def compare(first: pathlib.Path, second: pathlib.Path) -> None:
    """Raises if two archives differ, and names the files that do."""
    if first.read_bytes() == second.read_bytes():
        return
    one, other = members(first), members(second)
    names = sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))
    shown = names[:NAMES_MAX] or ["modes, times or order of the files alone"]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    raise DistributionError(
        f"{first.name}: two builds differ in\n  " + "\n  ".join(shown) + more
    )


def reproduce(made: list[pathlib.Path], architectures: list[str], epoch: int) -> None:
    """Raises if another build of the last commit gives other bytes than `made`."""
    if run(["git", "-C", PROJECT, "status", "--porcelain"]).strip():
        raise DistributionError(
            "--reproduce builds the last commit, and the checkout has other changes: commit them"
        )
    with tempfile.TemporaryDirectory(prefix="sonde-again-") as name:
        place = pathlib.Path(name)
        cache = place / "another-cache"
        cache.mkdir()
        for path in cache_folder().iterdir():
            if path.name.startswith(SHARED) and path.name != "zig-cache":
                (cache / path.name).symlink_to(path)
        run(["git", "clone", "-q", PROJECT, place / "another-checkout"])
        say("building everything a second time")
        run(
            [
                sys.executable,
                place / "another-checkout/tools/dist",
                "--to",
                place / "out",
                *architectures,
            ],
            env={
                "SONDE_DIST_CACHE": str(cache),
                "SOURCE_DATE_EPOCH": str(epoch),
                "CCACHE_DISABLE": "1",
            },
        )
        for path in made:
            compare(path, place / "out" / path.name)
            say(f"{path.name}: the second build has the same bytes")
