"""Compiles the unit tests for aarch64 with GCC and the libraries of Debian's arm64, which are
unpacked into the cache and not installed. tools/emulated-tests and tools/big-pages run them."""

import json
import pathlib
import shutil

from . import PROJECT, DistributionError, cache_folder, emulated, is_elf, run, say, sources

TRIPLE = "aarch64-linux-gnu"
# The layers that share memory with programs, or map files.
LAYERS = ("base", "emit", "ingest", "store", "query")
SUITE = "bookworm"
PACKAGES = (
    "libc6-dev libgcc-12-dev libstdc++-12-dev libuv1-dev libmicrohttpd-dev libyaml-dev libjansson-dev nettle-dev "
    "libzstd-dev zlib1g-dev libcurl4-gnutls-dev libcmocka-dev"
).split()
CROSS = """[binaries]
c = '{triple}-gcc'
cpp = '{triple}-g++'
ar = '{triple}-ar'
ld = '{triple}-ld'
objcopy = '{triple}-objcopy'
strip = '{triple}-strip'
pkgconfig = 'pkg-config'
pkg-config = 'pkg-config'
[properties]
needs_exe_wrapper = false
sys_root = '{root}'
pkg_config_libdir = '{root}/usr/lib/{triple}/pkgconfig:{root}/usr/share/pkgconfig'
[built-in options]
c_args = {flags}
cpp_args = {flags}
c_link_args = {flags}
cpp_link_args = {flags}
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
# Outside a namespace, the kernel cannot start programs of aarch64.
IN_NAMESPACE = 'export QEMU_LD_PREFIX="$1"; shift; exec "$@"'


def libraries() -> pathlib.Path:
    """A root file system with the packages and all that they depend on, unpacked."""
    root = cache_folder() / f"roots/{SUITE}-arm64-libraries"
    if root.exists():
        return root
    say(f"fetching libraries of {SUITE} for arm64")
    entries = [f"deb {sources.mirrors()['']} {SUITE} main"]
    arm64 = ("-o=APT::Architecture=arm64", "-o=APT::Architectures::=arm64")
    apt = sources.Apt("apt-arm64", entries, *arm64)
    apt.get("update", "-q")
    wanted = "-y --no-install-recommends --download-only install".split()
    apt.get(*wanted, *PACKAGES)
    unfinished = root.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for package in sorted((apt.folder / "cache/archives").glob("*.deb")):
        run(["dpkg", "-x", package, unfinished])
    shutil.rmtree(apt.folder)
    unfinished.rename(root)
    return root


def build(folder: pathlib.Path, root: pathlib.Path) -> None:
    """Sets the build folder up. Meson runs small programs of the other processor."""
    cross = folder.with_name(folder.name + ".cross")
    flags = repr([f"--sysroot={root}"])
    text = CROSS.format(triple=TRIPLE, root=root, flags=flags)
    if cross.exists() and cross.read_text() == text and (folder / "build.ninja").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    cross.write_text(text)
    options = "-Dtests=enabled -Dpython=disabled -Dfabric=disabled".split()
    emulate(root, "meson", "setup", str(folder), str(PROJECT), f"--cross-file={cross}", *options)


def emulate(root: pathlib.Path, *command: str) -> None:
    if emulated.run_emulated(IN_NAMESPACE, str(root), *command):
        raise DistributionError(f"failed: {' '.join(command[:3])} (above)")


def select(folder: pathlib.Path, layers: list[str]) -> tuple[list[str], list[str]]:
    """The names of the tests of these layers, and what ninja has to build for them."""
    about = json.loads(run(["meson", "introspect", "--tests", "--targets", folder]))
    files = {target["id"]: target["filename"] for target in about["targets"]}
    made = {name for names in files.values() for name in names}
    tests: list[str] = []
    needed: set[str] = set()
    for test in about["tests"]:
        if any(f"/tests/unit/{layer}/" in word for layer in layers for word in test["cmd"]):
            tests.append(test["name"])
            needed |= made.intersection(test["cmd"])
            needed.update(name for target in test["depends"] for name in files.get(target, []))
    if not tests:
        raise DistributionError(f"no tests in tests/unit of: {' '.join(layers)}")
    return tests, sorted(str(pathlib.Path(name).relative_to(folder)) for name in needed)


def programs(
    folder: pathlib.Path, targets: list[str], layers: list[str]
) -> tuple[list[pathlib.Path], list[tuple[str, list[str], dict[str, str]]]]:
    """The programs and libraries among the targets, and the name, the command and the environment
    of each test that is one of these programs: not a script."""
    files = [folder / name for name in targets if is_elf(folder / name)]
    tests = [
        (test["name"], [str(word) for word in test["cmd"]], dict(test["env"]))
        for test in json.loads(run(["meson", "introspect", "--tests", folder]))
        if pathlib.Path(test["cmd"][0]) in files
        and any(f"/tests/unit/{layer}/" in test["cmd"][0] for layer in layers)
    ]
    return files, tests
