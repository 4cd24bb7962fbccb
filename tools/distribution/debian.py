"""Packs the installed files of one architecture as a package of Debian and its relatives. The
Python package is in usr/lib/python3/dist-packages, for every python3 of the system.

dpkg-deb clamps all times to that of the commit, so equal files make equal packages."""

import os
import pathlib
import tempfile
import tomllib

from . import GLIBC, PROJECT, run
from .archive import version
from .usr_tree import FOLDER_MODE, arrange, set_modes

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONTROL = """Package: sonde
Version: {version}
Architecture: {architecture}
Maintainer: the developers of sonde
Installed-Size: {kib}
Depends: libc6 (>= {glibc})
Recommends: python3 (>= 3.9)
Section: utils
Priority: optional
Description: {summary}
 sonde records metrics, spans and annotations of jobs and the nodes they run
 on, and answers queries while a job runs and after it. This package holds the
 command, libraries and headers for C and C++, and the Python package. Its
 libraries contain those that they need, and depend on the C library alone.
"""
# Packages that are made of programs linked with these libraries depend on this one.
SHLIBS = "libsonde 0 sonde\nlibsonde_client 0 sonde\n"
COPYRIGHT = """sonde is under the Apache License 2.0; on Debian systems its text is in
/usr/share/common-licenses/Apache-2.0.

The programs contain libraries under other licences. sonde.spdx.json in this folder names the
libraries, their versions and licences; the folder licenses has the texts.
"""


def package(files: pathlib.Path, architecture: str, epoch: int, to: pathlib.Path) -> pathlib.Path:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    out = to / f"sonde_{version()}_{ARCHITECTURES[architecture]}.deb"
    with tempfile.TemporaryDirectory(prefix="sonde-deb-") as name:
        root = pathlib.Path(name) / "root"
        arrange(files, root, "lib", "lib/python3/dist-packages")
        documents = root / "usr/share/doc/sonde"
        documents.mkdir(parents=True, exist_ok=True)
        (documents / "copyright").write_text(COPYRIGHT)
        set_modes(root, 0o644)
        content = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
        control = CONTROL.format(
            version=version(),
            architecture=ARCHITECTURES[architecture],
            kib=sum(path.stat().st_size for path in content) // 1024,
            glibc=".".join(map(str, GLIBC)),
            summary=project["description"],
        )
        (root / "DEBIAN").mkdir(mode=FOLDER_MODE)
        (root / "DEBIAN/control").write_text(control)
        (root / "DEBIAN/shlibs").write_text(SHLIBS)
        (root / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
        for path in root.rglob("*"):
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        for path in (root / "usr", root / "DEBIAN", root):
            path.chmod(FOLDER_MODE)
            os.utime(path, (epoch, epoch))
        run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, out],
            env={"SOURCE_DATE_EPOCH": str(epoch)},
        )
    return out
