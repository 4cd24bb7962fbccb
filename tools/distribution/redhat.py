"""Packs the installed files of one architecture as a package of Red Hat, Fedora, SUSE and their
relatives. Libraries are in usr/lib64. The Python package is in usr/lib64/sonde/python; a .pth file
in the folder of each version of Python names it, because these distributions have no folder for all
versions.

rpmbuild takes the time and the name of the machine from the commit, so equal files make equal
packages."""

import os
import pathlib
import tempfile
import tomllib

from . import PROJECT, run
from .archive import version
from .sources import LIBRARIES
from .usr_tree import arrange, set_modes

PYTHON = "lib64/sonde/python"
PYTHON_VERSIONS = range(9, 16)  # 3.9 is the oldest that sonde supports
# Nothing is stripped or compressed again. Every rpm of a system with glibc 2.28 can read xz.
# rpmbuild finds the needed libraries by itself; it would also require pkg-config for sonde.pc, and
# offer the libraries of --trace to other packages.
SPEC = """Name: sonde
Version: {version}
Release: 1
Summary: {summary}
License: {licence}
Group: System/Monitoring
Packager: the developers of sonde
%global __requires_exclude ^/usr/bin/pkg-config$
%global __provides_exclude_from ^/usr/lib64/sonde/
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _binary_payload w9.xzdio
%global _buildhost sonde
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%description
sonde records metrics, spans and annotations of jobs and the nodes they run
on, and answers queries while a job runs and after it. This package holds the
command, libraries and headers for C and C++, and the Python package. Its
libraries contain those that they need, and depend on the C library alone.
%install
cp -a "{root}/." "%{{buildroot}}"
%post -p /sbin/ldconfig
%postun -p /sbin/ldconfig
%files
%defattr(-,root,root,-)
{files}
"""


def _licence() -> str:
    terms = {f"({licence})" if " OR " in licence else licence for licence, _ in LIBRARIES.values()}
    return " AND ".join(["Apache-2.0", *sorted(terms)])


def _list_files(root: pathlib.Path) -> str:
    """Returns the lines of %files: all files, and folders that only sonde uses."""
    lines = []
    for path in sorted(root.rglob("*")):
        name = f"/{path.relative_to(root)}"
        if not path.is_dir() or path.is_symlink():
            lines.append(f'"{name}"')
        elif "sonde" in path.relative_to(root).parts:
            lines.append(f'%dir "{name}"')
    return "\n".join(lines)


def package(files: pathlib.Path, architecture: str, epoch: int, to: pathlib.Path) -> pathlib.Path:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    out = to / f"sonde-{version()}-1.{architecture}.rpm"
    with tempfile.TemporaryDirectory(prefix="sonde-rpm-") as name:
        folder = pathlib.Path(name)
        root, spec = folder / "root", folder / "sonde.spec"
        arrange(files, root, "lib64", PYTHON)
        for minor in PYTHON_VERSIONS:
            packages = root / f"usr/lib/python3.{minor}/site-packages"
            packages.mkdir(parents=True)
            (packages / "sonde.pth").write_text(f"/usr/{PYTHON}\n")
        set_modes(root, 0o755)
        for path in root.rglob("*"):
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        text = SPEC.format(
            version=version(),
            summary=project["description"],
            licence=_licence(),
            root=root,
            files=_list_files(root),
        )
        spec.write_text(text)
        run(
            [
                "rpmbuild",
                "-bb",
                "--nodeps",
                f"--target={architecture}-linux",
                f"--define=_topdir {folder}/top",
                f"--define=_rpmdir {folder}",
                f"--define=_rpmfilename {out.name}",
                f"--define=_tmppath {folder}",
                spec,
            ],
            env={"SOURCE_DATE_EPOCH": str(epoch)},
        )
        out.write_bytes((folder / out.name).read_bytes())
    return out
