"""Fetches the sources of the libraries in an archive. They are Debian's source packages, which have
the security fixes. apt verifies their signatures. The bill of materials has the version and the
checksum of each."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from . import DistributionError, cache_folder, run, say

# Versions of the first suite are preferred. If a mirror lacks a version that its index lists, the
# next one is used.
SUITES = ("trixie", "bookworm")
# Debian's source package → the licence (SPDX) and the files with its text.
LIBRARIES = {
    "zlib": ("Zlib", ["LICENSE"]),
    "libzstd": ("BSD-3-Clause", ["LICENSE"]),
    "libyaml": ("MIT", ["License"]),
    "jansson": ("MIT", ["LICENSE"]),
    "libuv1": ("MIT AND CC-BY-4.0", ["LICENSE"]),
    "gmp": ("LGPL-3.0-or-later OR GPL-2.0-or-later", ["COPYING.LESSERv3", "COPYINGv3"]),
    "nettle": ("LGPL-3.0-or-later OR GPL-2.0-or-later", ["COPYING.LESSERv3", "COPYINGv3"]),
    "gnutls28": ("LGPL-2.1-or-later", ["COPYING.LESSERv2", "doc/COPYING.LESSER", "COPYING.LESSER"]),
    "libmicrohttpd": ("LGPL-2.1-or-later", ["COPYING"]),
    "curl": ("curl", ["COPYING"]),
}
DAY_S = 24 * 3600
APT_HELPER = "/usr/lib/apt/apt-helper"
FRESH_S = 7 * DAY_S  # after this time, apt looks for newer versions


@dataclasses.dataclass(frozen=True)
class Source:
    name: str
    version: str
    folder: pathlib.Path  # the unpacked source with Debian's patches
    checksum: str  # SHA-256 of the .dsc file, which has the checksums of all other files

    @property
    def licence(self) -> str:
        return LIBRARIES[self.name][0]

    @property
    def upstream_version(self) -> str:
        return re.sub(r"^[0-9]+:|[+~](dfsg|ds|really).*|-[^-]*$", "", self.version)

    def licence_files(self) -> list[pathlib.Path]:
        return [
            self.folder / name for name in LIBRARIES[self.name][1] if (self.folder / name).exists()
        ]


def mirrors() -> dict[str, str]:
    """Returns the mirrors of Debian in this machine's configuration of apt: {"": address,
    "-security": address}. SONDE_DEBIAN_MIRROR replaces the first one."""
    found: dict[str, str] = {}
    lines = run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(RELEASE)|$(REPO_URI)",
            "Created-By: Packages",
        ]
    )
    for origin, release, address in (line.split("|") for line in lines.splitlines() if "|" in line):
        if origin == "Debian":
            found.setdefault("-security" if "security" in release else "", address.rstrip("/"))
    if os.environ.get("SONDE_DEBIAN_MIRROR"):
        found[""] = os.environ["SONDE_DEBIAN_MIRROR"]
    if "" not in found:
        raise DistributionError(
            "no archive of Debian in this machine's apt (run apt-get update, or set SONDE_DEBIAN_MIRROR)"
        )
    return found


class Apt:
    """apt with its own state: it changes nothing on the machine and needs no root. No package
    counts as installed."""

    def __init__(self, name: str, entries: list[str], *options: str) -> None:
        self.folder = cache_folder() / name
        (self.folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        (self.folder / "sources.list").write_text("\n".join(entries) + "\n")
        self.options = [
            *options,
            f"-o=Dir::Etc::SourceList={self.folder}/sources.list",
            "-o=Dir::Etc::SourceParts=-",
            f"-o=Dir::State={self.folder}",
            f"-o=Dir::State::Lists={self.folder}/lists",
            f"-o=Dir::State::status={self.folder}/status",
            f"-o=Dir::Cache={self.folder}/cache",
            "-o=APT::Sandbox::User=",
            "-o=Acquire::Languages=none",
        ]

    def get(self, *words: str, cwd: pathlib.Path | None = None) -> str:
        return run(["apt-get", *self.options, *words], cwd=cwd)


def _newer_first(a: str, b: str) -> int:
    newer = subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False)
    return -1 if newer.returncode == 0 else 1


def _versions(apt: Apt, name: str) -> list[str]:
    """Returns all versions in the index, the newest first."""
    text = run(["apt-cache", *apt.options, "showsrc", "--only-source", name])
    found = list(dict.fromkeys(re.findall(r"^Version: (\S+)$", text, re.M)))
    return sorted(found, key=functools.cmp_to_key(_newer_first))


def _unpack(folder: pathlib.Path) -> None:
    """Unpacks Debian's format 3.0 (quilt): the upstream archive, and a folder `debian` with
    patches. The .dsc file also lists a signature of upstream, which may be missing because it is
    not needed."""
    [upstream] = folder.glob("*.orig.tar.*[!c]")
    [debian] = folder.glob("*.debian.tar.*")
    source = folder / "source"
    source.mkdir()
    run(["tar", "-xf", upstream, "--strip-components=1", "-C", source])
    run(["tar", "-xf", debian, "-C", source])
    series = source / "debian/patches/series"
    for line in series.read_text().splitlines() if series.exists() else []:
        patch = line.partition("#")[0].split()
        if patch:
            run(["patch", "-s", "-f", "-p1", "-i", source / "debian/patches" / patch[0]], source)


def _fetch(apt: Apt, name: str, version: str) -> dict[str, str]:
    lines = apt.get("source", "--only-source", "--print-uris", f"{name}={version}").splitlines()
    files = [
        m for m in (re.match(r"'(.*)' (\S+) \d+ (SHA256:[0-9a-f]{64})", x) for x in lines) if m
    ]
    [dsc] = [file for file in files if file[2].endswith(".dsc")]
    place = cache_folder() / "sources" / f"{name}_{version.replace(':', '%3a')}"
    if not place.exists():
        say(f"fetching {name} {version}")
        unfinished = place.with_name(place.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for file in files:
            if not file[2].endswith(".asc"):
                run([APT_HELPER, "download-file", file[1], unfinished / file[2], file[3]])
        _unpack(unfinished)
        unfinished.rename(place)
    return {
        "name": name,
        "version": version,
        "checksum": dsc[3].removeprefix("SHA256:"),
        "folder": str((place / "source").relative_to(cache_folder())),
    }


def _fetch_newest(apt: Apt, name: str) -> dict[str, str]:
    faults = []
    for version in _versions(apt, name):
        try:
            return _fetch(apt, name, version)
        except DistributionError as error:
            faults.append(f"{version}: {str(error).splitlines()[-1]}")
            say(f"{name} {version} cannot be had")
    raise DistributionError(f"no sources of {name}:\n  " + "\n  ".join(faults))


def sources(refresh: bool) -> list[Source]:
    """Returns all sources, in the order of LIBRARIES. apt looks for newer versions at most once a
    week, or with `refresh`."""
    index = cache_folder() / "sources.json"
    rows = json.loads(index.read_text()) if index.exists() else []
    old = not rows or time.time() - index.stat().st_mtime > FRESH_S
    if refresh or old or [row["name"] for row in rows] != list(LIBRARIES):
        apt = Apt(
            "apt",
            [
                f"deb-src {address} {suite}{suffix} main"
                for suite in SUITES
                for suffix, address in mirrors().items()
            ],
        )
        apt.get("update", "-q")
        rows = [_fetch_newest(apt, name) for name in LIBRARIES]
        index.write_text(json.dumps(rows, indent=1))
    return [
        Source(row["name"], row["version"], cache_folder() / row["folder"], row["checksum"])
        for row in rows
    ]
