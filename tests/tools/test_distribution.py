"""Tests the archives that tools/dist makes from installed files, without a build. Equal files give
equal archives, pip installs the wheel, and faults are found. tools/smoke checks real archives."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

PROJECT = pathlib.Path(os.environ["PROJECT"])
sys.path.insert(0, str(PROJECT / "tools"))
try:
    import tomllib
except ImportError:
    print("tools/dist needs Python 3.11")
    sys.exit(77)

from distribution import DistributionError, archive, bill, debian, dependencies, redhat, reproduce
from distribution import verify
from distribution.sources import LIBRARIES, Source
from distribution.toolchain import Toolchain

EPOCH = 1_700_000_000
PKG_CONFIG = """prefix=${pcfiledir}/../..
libdir=${prefix}/lib
Libs: -L${libdir} -Wl,-rpath,${libdir} -lsonde
"""
CMAKE_PROJECT = """cmake_minimum_required(VERSION 3.10)
project(zstd C CXX)
install(FILES CMakeLists.txt DESTINATION include)
"""
PACKERS = [archive.tarball, archive.wheel]
if shutil.which("dpkg-deb"):
    PACKERS.append(debian.package)
if shutil.which("rpmbuild"):
    PACKERS.append(redhat.package)


class Types(unittest.TestCase):
    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
    def test_mypy_is_strict(self):
        command = ["mypy", "--strict", f"--cache-dir={os.devnull}", "distribution"]
        done = subprocess.run(
            command,
            cwd=PROJECT / "tools",
            env=os.environ | {"MYPYPATH": str(PROJECT / "bindings/python")},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Distribution(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sd-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.files = self.installed("files")

    def write(self, path, text, mode=0o644):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def installed(self, name):
        files = self.root / name
        self.write(files / "bin/sonde", "#!/bin/sh\necho hello\n", 0o755)
        self.write(files / "lib/sonde/python/sonde/__init__.py", "__version__ = 'x'\n")
        self.write(files / "lib/libsonde.so.0.1.0", "library", 0o755)
        (files / "lib/libsonde.so.0").symlink_to("libsonde.so.0.1.0")
        (files / "lib/libsonde.so").symlink_to("libsonde.so.0")
        self.write(files / "lib/pkgconfig/sonde.pc", PKG_CONFIG)
        self.write(files / "share/modulefiles/sonde/0", "#%Module")
        self.write(files / "include/sonde.h", "header")
        return files

    def out(self, pack, number):
        folder = self.root / f"{pack.__module__}.{pack.__name__}{number}"
        folder.mkdir()
        return folder

    def test_equal_files_make_equal_archives(self):
        again = self.installed("again")
        os.utime(again / "bin/sonde", (1, 1))
        (again / "include/sonde.h").chmod(0o600)
        for pack in PACKERS:
            first = pack(self.files, "x86_64", EPOCH, self.out(pack, 1)).read_bytes()
            second = pack(again, "x86_64", EPOCH, self.out(pack, 2)).read_bytes()
            self.assertEqual(first, second)
            self.write(again / "include/sonde.h", "other header")
            third = pack(again, "x86_64", EPOCH, self.out(pack, 3)).read_bytes()
            self.assertNotEqual(first, third)
            self.write(again / "include/sonde.h", "header")

    def test_differences_of_two_builds_are_named(self):
        again = self.installed("again")
        for pack in PACKERS:
            first = pack(self.files, "x86_64", EPOCH, self.out(pack, 1))
            reproduce.compare(first, pack(again, "x86_64", EPOCH, self.out(pack, 2)))
            self.write(again / "include/sonde.h", "other header")
            second = pack(again, "x86_64", EPOCH, self.out(pack, 3))
            with self.assertRaisesRegex(DistributionError, r"two builds differ in\n.*/sonde\.h\b"):
                reproduce.compare(first, second)
            self.write(again / "include/sonde.h", "header")
            later = pack(again, "x86_64", EPOCH + 60, self.out(pack, 4))
            with self.assertRaisesRegex(DistributionError, "times"):
                reproduce.compare(first, later)

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "cmake is not installed")
    def test_the_only_compiler_is_that_of_the_archives(self):
        """A library's project may ask for C++ on a machine without a compiler for it."""
        tools = Toolchain("x86_64", self.root / "tools")
        compiler = f'#!/bin/sh\nPATH=/usr/bin:/bin exec {shutil.which("cc")} "$@"\n'
        self.write(tools.tool("cc"), compiler, 0o755)
        path = self.root / "path"
        path.mkdir()
        for name in ("cmake", "ninja", "ar", "ranlib"):
            (path / name).symlink_to(shutil.which(name))
            (tools.folder / name).symlink_to(shutil.which(name))
        source = self.root / "source"
        self.write(source / "build/cmake/CMakeLists.txt", CMAKE_PROJECT)
        prefix = self.root / "prefix"
        with unittest.mock.patch.dict(os.environ, {"PATH": str(path)}):
            os.environ.pop("CXX", None)
            dependencies._build(Source("libzstd", "1", source, ""), tools, prefix, self.root / "work")
        self.assertTrue((prefix / "include/CMakeLists.txt").exists())

    def test_tarball(self):
        made = archive.tarball(self.files, "x86_64", EPOCH, self.root)
        with tarfile.open(made) as tar:
            entries = {entry.name: entry for entry in tar}
        top = f"sonde-{archive.version()}-linux-x86_64"
        self.assertEqual(made.name, top + ".tar.gz")
        self.assertEqual(list(entries), sorted(entries))
        self.assertEqual({e.uid for e in entries.values()} | {e.gid for e in entries.values()}, {0})
        self.assertEqual({e.mtime for e in entries.values()}, {EPOCH})
        self.assertEqual(entries[f"{top}/bin/sonde"].mode, 0o755)
        self.assertEqual(entries[f"{top}/lib/libsonde.so"].linkname, "libsonde.so.0")

    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb here")
    def test_package_of_debian(self):
        """Versions and files agree with those of the other archives."""
        self.write(self.files / "share/man/man1/sonde.1", "a page")
        made = debian.package(self.files, "aarch64", EPOCH, self.root)
        self.assertEqual(made.name, f"sonde_{archive.version()}_arm64.deb")
        fields = subprocess.run(
            ["dpkg-deb", "--field", made, "Version", "Architecture", "Depends"],
            capture_output=True, text=True, check=True,
        ).stdout
        self.assertIn(f"Version: {archive.version()}\n", fields)
        self.assertIn("Architecture: arm64\n", fields)
        self.assertIn("libc6 (>= 2.28)", fields)
        root = self.root / "unpacked"
        subprocess.run(["dpkg-deb", "-x", made, root], check=True)
        self.assertNotIn("rpath", (root / "usr/lib/pkgconfig/sonde.pc").read_text())
        files = {str(p.relative_to(root / "usr")) for p in root.rglob("*") if not p.is_dir()}
        self.assertEqual(
            files,
            {
                "bin/sonde",
                "include/sonde.h",
                "lib/libsonde.so",
                "lib/libsonde.so.0",
                "lib/libsonde.so.0.1.0",
                "lib/pkgconfig/sonde.pc",
                "lib/python3/dist-packages/sonde/__init__.py",
                "share/doc/sonde/copyright",
                "share/man/man1/sonde.1.gz",
            },
        )

    @unittest.skipUnless(shutil.which("rpmbuild"), "no rpmbuild here (rpm)")
    def test_package_of_red_hat(self):
        """Libraries are where the loader of 64-bit systems looks, and every Python finds the
        package."""
        made = redhat.package(self.files, "aarch64", EPOCH, self.root)
        self.assertEqual(made.name, f"sonde-{archive.version()}-1.aarch64.rpm")

        def ask(what):
            command = ["rpm", "-qp", *what.split(), made]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        self.assertEqual(ask("--qf %{NAME}/%{VERSION}/%{ARCH}"), f"sonde/{archive.version()}/aarch64")
        self.assertNotIn("pkg-config", ask("--requires"))
        listed = ask("-l").splitlines()
        self.assertIn("/usr/lib64/libsonde.so.0", listed)
        self.assertNotIn("/usr/bin", listed)  # a folder of others
        self.assertIn("/usr/lib64/sonde/python/sonde/__init__.py", listed)
        files = reproduce.members(made)
        self.assertEqual(
            files["./usr/lib/python3.9/site-packages/sonde.pth"], b"/usr/lib64/sonde/python\n"
        )
        told = files["./usr/lib64/pkgconfig/sonde.pc"].decode()
        self.assertIn("libdir=${prefix}/lib64\n", told)
        self.assertNotIn("rpath", told)
        self.assertFalse([name for name in listed if "modulefiles" in name])

    def test_wheel(self):
        made = archive.wheel(self.files, "aarch64", EPOCH, self.root)
        self.assertEqual(
            made.name, f"sonde-{archive.version()}-cp39-abi3-manylinux_2_28_aarch64.whl"
        )
        data = f"sonde-{archive.version()}.data"
        with zipfile.ZipFile(made) as packed:
            names = packed.namelist()
            self.assertEqual(packed.read(f"{data}/data/lib/libsonde.so"), b"INPUT(libsonde.so.0)\n")
            self.assertEqual(packed.read(f"{data}/data/lib/libsonde.so.0"), b"library")
        self.assertIn(f"{data}/scripts/sonde", names)
        self.assertIn("sonde/__init__.py", names)
        self.assertNotIn(f"{data}/data/lib/libsonde.so.0.1.0", names)

    def test_pip_installs_the_wheel(self):
        made = archive.wheel(self.files, os.uname().machine, EPOCH, self.root)
        venv = self.root / "venv"
        if subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True).returncode:
            self.skipTest("cannot make a venv (python3-venv)")
        pip = [venv / "bin/pip", "--disable-pip-version-check", "install", "-q", "--no-index", made]
        done = subprocess.run(pip, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = subprocess.run(
            [venv / "bin/sonde"], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(said, "hello\n")
        self.assertTrue((venv / "include/sonde.h").exists())
        removed = subprocess.run(
            [venv / "bin/pip", "uninstall", "-q", "-y", "sonde"], capture_output=True
        )
        self.assertEqual(removed.returncode, 0)
        self.assertFalse((venv / "include/sonde.h").exists())

    def test_bill_of_materials(self):
        """The bill lists every library of the archive; the archive has its licence."""
        sources = []
        for name, (_, texts) in LIBRARIES.items():
            self.write(self.root / name / texts[0], f"licence of {name}")
            sources.append(Source(name, "1.2+dfsg-3", self.root / name, "0" * 64))
        bill.add_documents(self.files, "1", "x86_64", sources, EPOCH)
        text = (self.files / bill.FOLDER / "sonde.spdx.json").read_text()
        licences = {
            path.name: path.read_text()
            for path in (self.files / bill.FOLDER / "licenses").iterdir()
        }
        for name, (licence, _) in LIBRARIES.items():
            self.assertIn(f'"name": "{name}"', text)
            self.assertIn(licence, text)
            self.assertEqual(licences[name], f"licence of {name}")
        self.assertEqual(sources[0].upstream_version, "1.2")

    def compiled(self, text, *flags):
        shutil.rmtree(self.files)
        self.write(self.root / "x.c", text)
        (self.files / "lib").mkdir(parents=True)
        subprocess.run(
            ["cc", "-shared", "-fPIC", self.root / "x.c", "-o", self.files / "lib/libx.so", *flags],
            check=True,
        )

    def fault(self, *paths):
        with self.assertRaises(DistributionError) as raised:
            verify.verify_files(self.files, os.uname().machine, list(paths))
        return str(raised.exception)

    def test_faults_are_found(self):
        self.compiled("int sonde_x(void) { return 0; }")
        verify.verify_files(self.files, os.uname().machine, [self.root])
        other = {"x86_64": "aarch64", "aarch64": "x86_64"}[os.uname().machine]
        with self.assertRaises(DistributionError):
            verify.verify_files(self.files, other, [])
        self.compiled("int map_get(void) { return 0; }", "-Wl,-rpath,/opt/x")
        self.assertRegex(self.fault(), r"(?s)searches /opt/x.*exports map_get")
        self.compiled(f'const char *sonde_x = "{self.root}/x";')
        self.assertIn("contains /tmp", self.fault(self.root))
        self.compiled("int sonde_x(void) { return 0; }", "-Wl,--no-as-needed", "-lgcc_s")
        self.assertIn("needs libgcc_s.so.1", self.fault())
        # arc4random() is in the C library only since 2.36.
        self.compiled("int arc4random(void); int sonde_x(void) { return arc4random(); }")
        if (
            "GLIBC_2.36"
            in subprocess.run(
                ["readelf", "-V", self.files / "lib/libx.so"], capture_output=True, text=True
            ).stdout
        ):
            self.assertIn("needs glibc 2.36", self.fault())


if __name__ == "__main__":
    unittest.main()
