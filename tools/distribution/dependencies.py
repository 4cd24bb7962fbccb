"""Builds static libraries, once for each version of the sources and the compiler."""

import hashlib
import inspect
import os
import pathlib
import shutil
import sys
import sysconfig

from . import run, say
from .sources import Source
from .toolchain import FLAGS, Toolchain

# The contents of pkg-config files for Meson, which replace those of the libraries: the name in
# meson.build, the linker's options, and the libraries that a static library itself needs.
PKG_CONFIG = {
    "zlib": ("zlib", "-lz", ""),
    "libzstd": ("libzstd", "-lzstd", ""),
    "libyaml": ("yaml-0.1", "-lyaml", ""),
    "jansson": ("jansson", "-ljansson", ""),
    "libuv1": ("libuv", "-luv", "-lpthread -ldl -lrt"),
    "gmp": ("gmp", "-lgmp", ""),
    "nettle": ("nettle", "-lnettle", ""),
    "gnutls28": ("gnutls", "-lgnutls", "-lhogweed -lnettle -lgmp -lpthread"),
    "libmicrohttpd": (
        "libmicrohttpd",
        "-lmicrohttpd",
        "-lgnutls -lhogweed -lnettle -lgmp -lpthread",
    ),
    "curl": ("libcurl", "-lcurl", "-lgnutls -lhogweed -lnettle -lgmp -lz -lpthread"),
}
CONFIGURE = {
    "zlib": ["--static"],
    "gmp": ["--enable-fat"],  # has code for each kind of processor and chooses when it runs
    "nettle": ["--enable-fat", "--disable-openssl", "--disable-documentation"],
    "gnutls28": [
        *"--with-included-libtasn1 --with-included-unistring --without-p11-kit --without-idn".split(),
        *"--without-zlib --without-brotli --without-zstd --without-tpm --without-tpm2".split(),
        *"--disable-cxx --disable-doc --disable-tools --disable-tests --disable-nls".split(),
        *"--disable-libdane --disable-guile --disable-ssl3-support --disable-srp-authentication".split(),
        *"--disable-heartbeat-support --disable-full-test-suite --disable-bash-tests".split(),
        *"--disable-rpath --disable-gost --disable-dtls-srtp-support".split(),
        "--disable-hardware-acceleration",  # nettle has code for each processor, too
    ],
    "libmicrohttpd": [
        *"--with-gnutls --disable-doc --disable-examples --disable-curl --disable-nls".split(),
        *"--disable-tools --disable-bauth --disable-dauth --disable-postprocessor".split(),
        *"--disable-cookie --disable-httpupgrade".split(),
    ],
}
CMAKE = {
    "libzstd": "-DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_BUILD_TESTS=OFF -DZSTD_LEGACY_SUPPORT=OFF".split(),
    "libyaml": ["-DBUILD_TESTING=OFF"],
    "jansson": "-DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF".split(),
    "libuv1": "-DLIBUV_BUILD_SHARED=OFF -DBUILD_TESTING=OFF".split(),
    # Only HTTP. sonde finds the machine's certificates when it runs (src/client/authorities.c).
    "curl": [
        *"-DCURL_USE_GNUTLS=ON -DCURL_USE_OPENSSL=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF".split(),
        *"-DUSE_NGHTTP2=OFF -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBSSH=OFF -DCURL_BROTLI=OFF".split(),
        *"-DCURL_ZSTD=OFF -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_DISABLE_LDAP=ON".split(),
        *"-DBUILD_CURL_EXE=OFF -DBUILD_LIBCURL_DOCS=OFF -DBUILD_MISC_DOCS=OFF -DHTTP_ONLY=ON".split(),
        *"-DENABLE_CURL_MANUAL=OFF -DBUILD_TESTING=OFF -DBUILD_STATIC_LIBS=ON -DCURL_LTO=OFF".split(),
        *(
            f"-DCURL_DISABLE_{name}=ON"
            for name in (
                "ALTSVC COOKIES HSTS SRP AWS DOH NTLM NEGOTIATE_AUTH KERBEROS_AUTH DIGEST_AUTH "
                "NETRC PARSEDATE WEBSOCKETS MIME FORM_API HEADERS_API SHA512_256 GETOPTIONS"
            ).split()
        ),
    ],
}
SMALL = (
    "gnutls28",
    "libmicrohttpd",
    "curl",
)  # built for size, because nettle does the work that needs speed, the ciphers
SUBFOLDER = {"libzstd": "build/cmake"}


def _key(tools: Toolchain, sources: list[Source]) -> str:
    text = tools.identity() + "".join(f"{s.name} {s.version} {s.checksum}\n" for s in sources)
    text += inspect.getsource(sys.modules[__name__])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _environment(tools: Toolchain, prefix: pathlib.Path, work: pathlib.Path) -> dict[str, str]:
    flags = [*FLAGS, f"-ffile-prefix-map={work}=.", f"-ffile-prefix-map={prefix}=."]
    if work.name in SMALL:
        flags.append("-Os")
    return {
        "CC": str(tools.tool("cc")),
        "AR": str(tools.tool("ar")),
        "RANLIB": str(tools.tool("ranlib")),
        "CFLAGS": " ".join(flags),
        "CPPFLAGS": f"-I{prefix}/include",
        "LDFLAGS": f"-L{prefix}/lib",
        "CC_FOR_BUILD": "cc",
        "PKG_CONFIG": "pkg-config --static",
        "PKG_CONFIG_LIBDIR": f"{prefix}/lib/pkgconfig",
        "SOURCE_DATE_EPOCH": "1",
    }


def _configure(source: Source, tools: Toolchain, prefix: pathlib.Path, work: pathlib.Path) -> None:
    env, log = _environment(tools, prefix, work), work / "log"
    common = [f"--prefix={prefix}", f"--libdir={prefix}/lib"]
    if source.name != "zlib":  # the script of zlib is not autoconf's and lacks these options
        common += ["--sysconfdir=/etc", "--disable-shared", "--enable-static", "--with-pic"]
        common += ["--disable-dependency-tracking", f"--host={tools.triple}"]
        common += ["--build=x86_64-pc-linux-gnu"]  # unlike --host, so that it is a cross build
    run([work / "source/configure", *common, *CONFIGURE[source.name]], work / "build", env, log)
    jobs = f"-j{os.cpu_count()}"
    run(["make", jobs], work / "build", env, log)
    run(["make", "install"], work / "build", env, log)


def _cmake(source: Source, tools: Toolchain, prefix: pathlib.Path, work: pathlib.Path) -> None:
    env, log = _environment(tools, prefix, work), work / "log"
    del env["CC"]
    variables = {
        "CMAKE_C_COMPILER": tools.tool("cc"),
        # libzstd's project asks for C++ and compiles none; the machine may have no compiler for it.
        "CMAKE_CXX_COMPILER": tools.tool("cc"),
        "CMAKE_AR": tools.tool("ar"),
        "CMAKE_RANLIB": tools.tool("ranlib"),
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": tools.architecture,
        "CMAKE_INSTALL_PREFIX": prefix,
        "CMAKE_INSTALL_LIBDIR": "lib",
        "CMAKE_PREFIX_PATH": prefix,
        "CMAKE_FIND_ROOT_PATH": prefix,
        "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_INCLUDE": "ONLY",
        "CMAKE_BUILD_TYPE": "None",
        "BUILD_SHARED_LIBS": "OFF",
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
    }
    place = work / "source" / SUBFOLDER.get(source.name, "")
    run(
        [
            "cmake",
            "-G",
            "Ninja",
            place,
            *(f"-D{k}={v}" for k, v in variables.items()),
            *CMAKE[source.name],
        ],
        work / "build",
        env,
        log,
    )
    run(["ninja", "install"], work / "build", env, log)


def _build(source: Source, tools: Toolchain, prefix: pathlib.Path, work: pathlib.Path) -> None:
    say(f"building {source.name} {source.version} for {tools.architecture}")
    shutil.rmtree(work, ignore_errors=True)
    (work / "build").mkdir(parents=True)
    shutil.copytree(source.folder, work / "source", symlinks=True)
    # Equal times, because patched files must not be newer than files that are generated from them.
    for path in (work / "source").rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)
    if source.name == "gmp":  # Debian leaves out the documentation because of its licence
        (work / "source/doc").mkdir(exist_ok=True)
        (work / "source/doc/Makefile.in").write_text("all install:\n")
    if source.name in CMAKE:
        _cmake(source, tools, prefix, work)
    else:
        _configure(source, tools, prefix, work)
    name, library, behind = PKG_CONFIG[source.name]
    _write_pkg_config(prefix, name, source.upstream_version, f"{library} {behind}")


def _write_pkg_config(prefix: pathlib.Path, name: str, version: str, libraries: str) -> None:
    (prefix / "lib/pkgconfig").mkdir(parents=True, exist_ok=True)
    (prefix / f"lib/pkgconfig/{name}.pc").write_text(
        f"prefix={prefix}\nName: {name}\nDescription: {name}\nVersion: {version}\n"
        f"Cflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib {libraries}\n"
    )


def _fabric_headers(prefix: pathlib.Path) -> None:
    """Copies the headers of this machine's libfabric. sonde opens the library when it runs, and
    requests the interface of an old version, which newer libraries have, too."""
    folder = run(["pkg-config", "--variable=includedir", "libfabric"]).strip()
    shutil.copytree(pathlib.Path(folder) / "rdma", prefix / "include/rdma", dirs_exist_ok=True)
    version = run(["pkg-config", "--modversion", "libfabric"]).strip()
    _write_pkg_config(prefix, "libfabric", version, "")


def _python_headers(prefix: pathlib.Path) -> None:
    """Copies the headers of CPython without the system's other headers. Debian's pyconfig.h
    includes that of the architecture; for the limited API, those of all architectures are equal."""
    include = pathlib.Path(sysconfig.get_path("include"))
    folder = prefix / "include/python"
    shutil.copytree(include, folder, dirs_exist_ok=True)
    for found in pathlib.Path("/usr/include").glob(f"*-linux-gnu/{include.name}/pyconfig.h"):
        for architecture in ("x86_64", "aarch64"):
            place = folder / f"{architecture}-linux-gnu" / include.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, place)


def _processor_model(tools: Toolchain, prefix: pathlib.Path) -> None:
    """Takes the function that __builtin_cpu_supports() needs from GCC, because zig's runtime lacks
    it."""
    if tools.architecture != "x86_64":
        return
    library = run(["gcc", "-print-libgcc-file-name"]).strip()
    run(["ar", "x", library, "cpuinfo.o"], prefix / "lib")
    (prefix / "lib/libcpuinfo.a").unlink(missing_ok=True)
    run([tools.tool("ar"), "rcsD", "libcpuinfo.a", "cpuinfo.o"], prefix / "lib")


def dependencies(tools: Toolchain, sources: list[Source], cache: pathlib.Path) -> pathlib.Path:
    """Builds all libraries, if necessary; returns their prefix."""
    prefix = cache / f"libraries-{tools.architecture}" / _key(tools, sources)
    if not (prefix / "complete").exists():
        shutil.rmtree(prefix.parent, ignore_errors=True)
        prefix.mkdir(parents=True)
        for source in sources:
            _build(source, tools, prefix, cache / f"work-{tools.architecture}" / source.name)
        _python_headers(prefix)
        _fabric_headers(prefix)
        _processor_model(tools, prefix)
        (prefix / "complete").touch()
        shutil.rmtree(cache / f"work-{tools.architecture}")
    return prefix
