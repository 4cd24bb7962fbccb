"""Checks the promises of archives in the finished files: required symbols of the C library, needed
libraries, exported names, no paths of the machine that built them, sizes."""

import json
import pathlib
import re
import subprocess
import sys

from . import GLIBC, DistributionError, installed_package, is_elf, run, say

# The libraries of the C library, and those of sonde.
NEEDED = re.compile(
    r"(lib(c|m|dl|pthread|rt)|ld-linux-(x86-64|aarch64)|libsonde(_client)?)\.so\.\d+"
)
EXPORTED = re.compile(r"sonde_\w+|PyInit_\w+")
WHEEL_BYTES_MAX = 5_000_000
ELF_MACHINE = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}


def _elf_files(files: pathlib.Path) -> list[pathlib.Path]:
    return [p for p in sorted(files.rglob("*")) if p.is_file() and not p.is_symlink() and is_elf(p)]


def _newest_glibc(path: pathlib.Path) -> tuple[int, ...]:
    found = re.findall(r"Name: GLIBC_([0-9.]+)", run(["readelf", "-V", "-W", path]))
    return max((tuple(map(int, text.split("."))) for text in found), default=(0,))


def _faults(path: pathlib.Path, architecture: str) -> list[str]:
    faults = []
    if ELF_MACHINE[architecture] not in run(["readelf", "-h", path]):
        faults.append(f"is not of {architecture}")
    newest = _newest_glibc(path)
    if newest > GLIBC:
        faults.append(f"needs glibc {'.'.join(map(str, newest))}")
    dynamic = run(["readelf", "-d", "-W", path])
    faults += [
        f"needs {n}"
        for n in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        if not NEEDED.fullmatch(n)
    ]
    for folder in re.findall(r"\(RU?N?PATH\).*\[(.*)\]", dynamic):
        faults += [f"searches {f}" for f in folder.split(":") if not f.startswith("$ORIGIN")]
    # The tracers in lib/sonde export the names of the functions that they wrap.
    if ".so" in path.name and path.parent.name != "sonde":
        symbols = run(["nm", "-D", "--defined-only", path]).split()[2::3]
        strange = [name for name in symbols if not EXPORTED.fullmatch(name)]
        faults += [f"exports {', '.join(strange[:5])} ({len(strange)} names)"] if strange else []
    return faults


def verify_files(files: pathlib.Path, architecture: str, secret_paths: list[pathlib.Path]) -> None:
    """Raises an error if a promise is broken. No file may contain one of `secret_paths`."""
    faults = []
    elf = _elf_files(files)
    for path in elf:
        faults += [f"{path.relative_to(files)} {fault}" for fault in _faults(path, architecture)]
    for path in files.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            faults += [
                f"{path.relative_to(files)} contains {s}"
                for s in secret_paths
                if str(s).encode() in content
            ]
    if not elf:
        faults.append("no programs")
    if faults:
        raise DistributionError("the files break promises:\n  " + "\n  ".join(faults))
    newest = max(_newest_glibc(path) for path in elf)
    say(
        f"{architecture}: {len(elf)} programs and libraries need glibc {'.'.join(map(str, newest))} at most"
    )


def verify_wheel(wheel: pathlib.Path) -> None:
    """Raises if the wheel is too big, or if auditwheel would give it another tag."""
    size = wheel.stat().st_size
    if size > WHEEL_BYTES_MAX:
        raise DistributionError(f"{wheel.name} has {size} bytes, more than {WHEEL_BYTES_MAX}")
    folder = installed_package("auditwheel", "auditwheel>=6.8")
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", "--json", wheel],
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    tag = json.loads(done.stdout)["overall_tag"] if done.returncode == 0 else ""
    version = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    if not version or (int(version[1]), int(version[2])) > GLIBC:
        raise DistributionError(
            f"auditwheel does not agree with {wheel.name}:\n{done.stdout}{done.stderr}"
        )
    say(f"{wheel.name}: {size} bytes; auditwheel agrees ({tag})")
