"""Packs the installed files of one architecture as a tarball and as a wheel. Equal files give equal
archives, because entries are sorted, and have the same time, the same owner and one of two modes.

    tarball   sonde-VERSION-linux-ARCHITECTURE/{bin,include,lib,share}
    wheel     the Python package            in the folder of Python packages
              bin/sonde                     as a script, so that it is on PATH
              include, lib, share           in the environment's prefix, as in the tarball
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import stat
import tarfile
import time
import tomllib
import zipfile

from . import GLIBC, PROJECT, DistributionError

PYTHON = "lib/sonde/python"


def version() -> str:
    found = re.search(r"^ *version: '([^']+)'", (PROJECT / "meson.build").read_text(), re.M)
    if not found:
        raise DistributionError("meson.build has no version")
    return found[1]


def _mode(path: pathlib.Path) -> int:
    return 0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644


def tarball(files: pathlib.Path, architecture: str, epoch: int, to: pathlib.Path) -> pathlib.Path:
    name = f"sonde-{version()}-linux-{architecture}"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in [files, *sorted(files.rglob("*"))]:
            entry = tar.gettarinfo(
                path, arcname=str(pathlib.PurePosixPath(name) / path.relative_to(files))
            )
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = epoch
            entry.mode = 0o777 if path.is_symlink() else _mode(path)
            if entry.isreg():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    out = to / f"{name}.tar.gz"
    with out.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed:
        packed.write(plain.getvalue())
    return out


# ---------------------------------------------------------------- the wheel


def _metadata(project: dict[str, object]) -> str:
    """Returns the fields of pyproject.toml as core metadata."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}"]
    lines += [f"Summary: {project['description']}", "License: Apache-2.0"]
    lines += [f"Requires-Python: {project['requires-python']}"]
    classifiers, extras = project["classifiers"], project["optional-dependencies"]
    assert isinstance(classifiers, list) and isinstance(extras, dict)
    lines += [f"Classifier: {name}" for name in classifiers]
    for extra, needs in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need} ; extra == "{extra}"' for need in needs]
    readme = (PROJECT / str(project["readme"])).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _wheel_entries(files: pathlib.Path) -> dict[str, tuple[int, bytes]]:
    """Returns path → (mode, content). A wheel cannot have symbolic links. So a library has only its
    run-time name, and a linker script has the name for linkers."""
    data = f"sonde-{version()}.data"
    entries: dict[str, tuple[int, bytes]] = {}
    for path in sorted(files.rglob("*")):
        inside = str(path.relative_to(files))
        if path.is_dir() or re.search(r"\.so(\.\d+){2,}$", inside):
            continue
        if inside.startswith(PYTHON + "/"):
            name = inside.removeprefix(PYTHON + "/")
        elif inside.startswith("bin/"):
            name = f"{data}/scripts/{inside.removeprefix('bin/')}"
        else:
            name = f"{data}/data/{inside}"
        content = path.read_bytes()
        if path.is_symlink() and inside.endswith(".so"):
            content = f"INPUT({os.readlink(path)})\n".encode()
            entries[name] = (0o644, content)
        else:
            entries[name] = (_mode(path), content)
    return entries


def wheel(files: pathlib.Path, architecture: str, epoch: int, to: pathlib.Path) -> pathlib.Path:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    oldest = re.sub(r"\D", "", project["requires-python"])  # ">=3.9" is 39
    tag = f"cp{oldest}-abi3-manylinux_{GLIBC[0]}_{GLIBC[1]}_{architecture}"
    entries = _wheel_entries(files)
    info = f"sonde-{version()}.dist-info"
    description = (
        f"Wheel-Version: 1.0\nGenerator: sonde-tools-dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    entries[f"{info}/METADATA"] = (0o644, _metadata(project).encode())
    entries[f"{info}/WHEEL"] = (0o644, description.encode())
    entries[f"{info}/licenses/LICENSE"] = (0o644, (PROJECT / "LICENSE").read_bytes())
    record = []
    for name, (_, content) in sorted(entries.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}\n")
    entries[f"{info}/RECORD"] = (0o644, ("".join(record) + f"{info}/RECORD,,\n").encode())
    out = to / f"sonde-{version()}-{tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in sorted(entries, key=lambda name: (name.startswith(info), name)):
            mode, content = entries[name]
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)
    return out
