"""Arranges the installed files below /usr, as packages of distributions have them:

    usr/bin, include, share     as in the tarball; man pages are compressed
    usr/LIBRARIES               libraries, where the loader looks
    usr/PACKAGES                the Python package
"""

import gzip
import pathlib
import re
import shutil

from .archive import PYTHON

FOLDER_MODE = 0o755


def _compress(path: pathlib.Path) -> None:
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def arrange(files: pathlib.Path, root: pathlib.Path, libraries: str, packages: str) -> None:
    """Copies the files below `root`. `libraries` and `packages` are folders below usr. The loader
    finds libraries in usr by itself, and all programs in usr/bin are on PATH: rpath and modulefile
    are left out."""
    usr = root / "usr"
    shutil.copytree(files, usr, symlinks=True)
    shutil.rmtree(usr / "share/modulefiles", ignore_errors=True)
    (usr / PYTHON).rename(usr / "packages")
    if libraries != "lib":
        (usr / "lib").rename(usr / libraries)
    for path in (usr / libraries / "pkgconfig").glob("*.pc"):
        text = path.read_text().replace(" -Wl,-rpath,${libdir}", "")
        path.write_text(text.replace("libdir=${prefix}/lib\n", f"libdir=${{prefix}}/{libraries}\n"))
    (usr / packages).parent.mkdir(parents=True, exist_ok=True)
    (usr / "packages").rename(usr / packages)
    for page in sorted((usr / "share/man").rglob("*.1")):
        _compress(page)


def set_modes(root: pathlib.Path, library_mode: int) -> None:
    """Gives the files and folders their modes. Distributions differ in that of shared libraries."""
    root.chmod(FOLDER_MODE)
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            is_program = path.parent == root / "usr/bin"
            is_library = re.search(r"\.so(\.\d+)*$", path.name)
            path.chmod(0o755 if is_program else library_mode if is_library else 0o644)
        elif path.is_dir():
            path.chmod(FOLDER_MODE)
