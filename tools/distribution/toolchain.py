"""A C compiler for both architectures and an old glibc. The package `ziglang` of PyPI has clang and
the symbols of every glibc. Its programs need only symbols that the version GLIBC has."""

import dataclasses
import hashlib
import pathlib
import shutil

from . import GLIBC, PROJECT, DistributionError, cache_folder, installed_package

ZIG = "0.14.1"
# Functions are in separate sections, so that the linker drops unused ones. Symbols are hidden, so
# that libraries of an archive do not conflict with the same libraries in a user's program. Unwind
# tables would be a tenth of the size; libsonde keeps its own.
FLAGS = (
    "-O2 -g0 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections "
    "-fstack-protector-strong -fno-sanitize=undefined -fno-asynchronous-unwind-tables"
).split()
# A wrapper of zig for Meson. Meson asks for the predefined macros with an input whose language zig
# does not know, and for the name of the linker, which is lld. Meson also passes folders of
# libraries that zig finds by itself.
COMPILER = """#!/bin/sh
case "$*" in
"-E -dM -") set -- -x c "$@" ;;
esac
for word do
    shift
    case $word in
    -Wl,--version) echo "LLD (compatible with GNU linkers)"; exit ;;
    -Wl,-rpath-link,*) ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec env {caches} "{zig}" cc -target {target} "$@"
"""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    architecture: str
    folder: pathlib.Path  # contains cc, ar, ranlib, ld, objcopy, strip

    @property
    def triple(self) -> str:
        return f"{self.architecture}-linux-gnu"

    def tool(self, name: str) -> pathlib.Path:
        return self.folder / name

    def identity(self) -> str:
        """Returns a text that changes when the tools would produce other code."""
        text = f"{ZIG} {self.architecture} {GLIBC} {FLAGS}"
        return hashlib.sha256(text.encode()).hexdigest()


def _write(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.chmod(0o755)


def toolchain(architecture: str) -> Toolchain:
    zig = installed_package(f"zig-{ZIG}", f"ziglang=={ZIG}", "--no-deps") / "ziglang/zig"
    folder = cache_folder() / f"tools-{architecture}"
    folder.mkdir(exist_ok=True)
    target = f"{architecture}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    caches = f'ZIG_GLOBAL_CACHE_DIR="{cache_folder()}/zig-cache" ZIG_LOCAL_CACHE_DIR="{cache_folder()}/zig-cache"'
    zig_calls = {"ar": "ar", "ranlib": "ranlib", "ld": "ld.lld"}
    _write(folder / "cc", COMPILER.format(caches=caches, zig=zig, target=target))
    for name, word in zig_calls.items():
        _write(folder / name, f'#!/bin/sh\nexec env {caches} "{zig}" {word} "$@"\n')
    for name in ("objcopy", "strip"):
        found = shutil.which(f"llvm-{name}")
        if not found:
            raise DistributionError(f"llvm-{name} is missing: tools/deps dist installs it")
        _write(folder / name, f'#!/bin/sh\nexec {found} "$@"\n')
    return Toolchain(architecture, folder)


def meson_cross_file(tools: Toolchain, prefix: pathlib.Path, wrapper: list[str]) -> str:
    """Returns Meson's description of the machine. `wrapper` runs programs of the architecture."""
    ccache = shutil.which("ccache")
    compiler = ([ccache] if ccache else []) + [str(tools.tool("cc"))]
    binaries = {name: [str(tools.tool(name))] for name in ("ar", "ld", "objcopy", "strip")}
    binaries |= {"c": compiler, "pkgconfig": ["pkg-config"], "pkg-config": ["pkg-config"]}
    if wrapper:
        binaries["exe_wrapper"] = wrapper
    lines = ["[binaries]", *(f"{name} = {words!r}" for name, words in sorted(binaries.items()))]
    python = prefix / "include/python"
    arguments = [
        *FLAGS,
        f"-ffile-prefix-map={PROJECT}=.",
        f"-ffile-prefix-map={prefix}=.",
        f"-I{python}",
    ]
    if tools.architecture == "aarch64":
        # Else libsonde exports the compiler's functions for atomics, and libsonde.a needs them from
        # the user's compiler, which may be too old.
        arguments.append("-mno-outline-atomics")
    link = ["-Wl,--gc-sections", "-s"]
    if tools.architecture == "x86_64":
        link.append(f"{prefix}/lib/libcpuinfo.a")  # for __builtin_cpu_supports()
    return "\n".join(
        [
            *lines,
            "[properties]",
            f"pkg_config_libdir = '{prefix}/lib/pkgconfig'",
            f"needs_exe_wrapper = {'true' if wrapper else 'false'}",
            "[built-in options]",
            f"c_args = {arguments!r}",
            f"c_link_args = {link!r}",
            "prefer_static = true",
            "[host_machine]",
            "system = 'linux'",
            f"cpu_family = '{tools.architecture}'",
            f"cpu = '{tools.architecture}'",
            "endian = 'little'",
            "",
        ]
    )
