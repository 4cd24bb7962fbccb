"""Tests `make install` and `make uninstall`, and small projects outside the tree that find sonde
with CMake and Meson."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.environ["PLACE"])
from place import Place, main

PROJECT, BUILD = (pathlib.Path(os.environ[name]) for name in ("PROJECT", "BUILD_FOLDER"))
MODULES = glob.glob("/usr/lib/*/modulecmd.tcl") + glob.glob("/usr/share/Modules/libexec/modulecmd.tcl")
PROGRAM = (PROJECT / "examples/hello.c").read_text()
CLIENT = """
#include <sonde_client.h>
int main(void) { sonde_client_close(0); return 0; }
"""
CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(outside C)
find_package(sonde {version} REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello sonde::sonde)
add_executable(hello-static hello.c)
target_link_libraries(hello-static sonde::static)
add_executable(client client.c)
target_link_libraries(client sonde::client)
"""
MESON = """
project('outside', 'c')
executable('hello', 'hello.c', dependencies: dependency('sonde', version: '>=0.1'))
"""
INSTALLED = """
project('installs', version: '1')
install_data('tool', install_dir: 'bin')
install_data('mod.py', install_dir: 'lib/python3/site-packages/sonde')
install_data('page.1', install_dir: 'share/man/man1')
"""


class Outside(Place):
    """Projects outside the tree that use an installed sonde."""

    def setUp(self):
        super().setUp()
        self.do("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "runtime,devel", "--destdir", self.root / "stage")
        [program] = (self.root / "stage").rglob("bin/sonde")
        self.prefix = self.root / "a prefix"
        program.parent.parent.rename(self.prefix)
        [self.config] = self.prefix.rglob("sonde-config.cmake")
        self.libraries = self.config.parent.parent.parent
        self.project = self.root / "project"
        self.project.mkdir()
        (self.project / "hello.c").write_text(PROGRAM)
        (self.project / "client.c").write_text(CLIENT)

    def do(self, *command, code=0, env=None):
        done = subprocess.run([*map(str, command)], env=self.env | (env or {}), capture_output=True, text=True, cwd=self.root)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def emits(self, program):
        done = self.sonde("run", "-q", "-l", "1", "--", program, env={"LD_LIBRARY_PATH": ""})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(",20\n", self.sonde("query", "--csv", "avg:0all-count:loss").stdout)

    def cmake(self, version, code=0):
        (self.project / "CMakeLists.txt").write_text(CMAKE.format(version=version))
        shutil.rmtree(self.root / "made", ignore_errors=True)
        return self.do("cmake", "-S", self.project, "-B", self.root / "made", f"-DCMAKE_PREFIX_PATH={self.prefix}", code=code)

    @unittest.skipUnless(shutil.which("cmake"), "cmake is not installed")
    def test_cmake(self):
        self.cmake("0.1")
        self.do("cmake", "--build", self.root / "made")
        for name in ("hello", "hello-static"):
            self.emits(self.root / "made" / name)
        self.do(self.root / "made/client")
        for version in ("0.2", "1.0"):
            self.assertIn("compatible", self.cmake(version, code=1))
        (self.libraries / "libsonde.so").unlink()
        self.assertIn("libsonde.so does not exist", self.cmake("", code=1))

    def test_meson(self):
        """A project finds sonde with pkg-config. Because of the rpath there, its program finds
        libsonde without LD_LIBRARY_PATH."""
        [file] = self.prefix.rglob("sonde.pc")
        lines = file.read_text().splitlines()
        file.write_text("\n".join([f"prefix={str(self.prefix).replace(' ', chr(92) + ' ')}", *lines[1:]]))
        (self.project / "meson.build").write_text(MESON)
        self.do("meson", "setup", self.root / "made", self.project, env={"PKG_CONFIG_PATH": str(file.parent)})
        self.do("ninja", "-C", self.root / "made")
        self.emits(self.root / "made/hello")


    @unittest.skipUnless(MODULES, "Environment Modules are not installed (environment-modules)")
    def test_modulefile(self):
        """Wherever the installation is, the module leads to its command and its libraries."""
        script = """
            unset PKG_CONFIG_PATH CMAKE_PREFIX_PATH PYTHONPATH
            change() { eval "$("$0" sh "$1" sonde)"; }
            change load && command -v sonde && printf "%s\n" "$PKG_CONFIG_PATH" "$CMAKE_PREFIX_PATH" "$PYTHONPATH"
            change unload && printf "%s\n" "$PKG_CONFIG_PATH" "$CMAKE_PREFIX_PATH" "$PYTHONPATH"
        """
        package = self.prefix / "lib/python3.9/site-packages/sonde"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        [folder] = self.prefix.rglob("modulefiles")
        said = self.do("sh", "-c", script, MODULES[0], env={"MODULEPATH": str(folder)})
        self.assertEqual(said.splitlines(), [f"{self.prefix}/bin/sonde", str(self.libraries / "pkgconfig"), str(self.prefix), str(package.parent), "", "", ""])


class Recipes(unittest.TestCase):
    """The files for Spack, conda, EasyBuild and Apptainer have the version and the needs of
    meson.build."""

    # A dependency of meson.build → its names in Spack, conda and EasyBuild.
    NAMES = {
        "libuv": ("libuv", "libuv", "libuv"),
        "nettle": ("nettle", "nettle", "nettle"),
        "libmicrohttpd": ("libmicrohttpd", "libmicrohttpd", "libmicrohttpd"),
        "jansson": ("jansson", "jansson", "Jansson"),
        "libzstd": ("zstd", "zstd", "zstd"),
        "yaml-0.1": ("libyaml", "yaml", "libyaml"),
        "zlib": ("zlib-api", "zlib", "zlib"),
        "libcurl": ("curl", "libcurl", "cURL"),
        "libfabric": ("libfabric", "libfabric", "libfabric"),
    }
    SPACK, CONDA, EASYBUILD, APPTAINER = ("spack_repo/sonde/packages/sonde/package.py", "conda/recipe.yaml", "easybuild/sonde-{}-GCCcore-13.2.0.eb", "apptainer/sonde.def")

    def setUp(self):
        self.meson = "".join(path.read_text() for path in [PROJECT / "meson.build", *sorted(PROJECT.glob("src/*/meson.build"))])
        self.version = re.search(r"^  version: '(.*)'", self.meson, re.M)[1]

    def read(self, name):
        return (PROJECT / "packaging" / name.format(self.version)).read_text()

    def test_versions(self):
        for name, text in {self.SPACK: 'version("{}", tag="v{}")', self.CONDA: "\n  version: {}\n", self.EASYBUILD: "\nversion = '{}'\n", self.APPTAINER: "PACKAGE=sonde_{}_amd64.deb"}.items():
            self.assertIn(text.replace("{}", self.version), self.read(name), name)
        self.assertIn(f'\nversion = "{self.version}"\n', (PROJECT / "bindings/fortran/fpm.toml").read_text())

    def test_needs(self):
        needs = {}
        for name, version in re.findall(r"= dependency\('([^']+)'(?:, version: '([^']+)')?", self.meson):
            needs[name] = needs.get(name) or version
        self.assertEqual(set(needs), {*self.NAMES, "threads", "cmocka"})
        spack, conda, easybuild = (self.read(name) for name in (self.SPACK, self.CONDA, self.EASYBUILD))
        for name, (of_spack, of_conda, of_easybuild) in self.NAMES.items():
            # the name of several packages has no version in Spack
            version = "" if of_spack == "zlib-api" else needs[name].replace(">=", "@") + ":"
            self.assertIn(f'depends_on("{of_spack}{version}"', spack)
            self.assertIn(f"\n    - {of_conda} {needs[name]}\n", conda)
            self.assertIn(f"('{of_easybuild}', ", easybuild)


class Uninstall(Place):
    """A small Meson project replaces sonde, so that the test can use its build folder freely."""

    def run_it(self, *command):
        done = subprocess.run([*map(str, command)], env=self.env, capture_output=True, text=True, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def install(self, prefix, stage=None):
        source = self.root / "source"
        source.mkdir(exist_ok=True)
        (source / "meson.build").write_text(INSTALLED)
        for name in ("tool", "mod.py", "page.1"):
            (source / name).write_text("")
        self.run_it("meson", "setup", f"--prefix={prefix}", "made", "source")
        for _ in range(2):  # the log of a second installation has no folders
            self.run_it("meson", "install", "-C", "made", *(["--destdir", stage] if stage else []))

    def uninstall(self):
        self.run_it(PROJECT / "tools/uninstall", "made")

    def test_nothing_is_left(self):
        prefix = self.root / "home/prefix"
        prefix.parent.mkdir()
        self.install(prefix)
        package = prefix / "lib/python3/site-packages/sonde"
        (package / "__pycache__").mkdir()
        (package / "__pycache__/mod.cpython-311.pyc").write_text("")
        self.assertTrue((prefix / "bin/tool").exists())
        self.uninstall()
        self.assertEqual(list((self.root / "home").iterdir()), [])

    def test_files_of_others_stay(self):
        prefix = self.root / "home/prefix"
        prefix.parent.mkdir()
        self.install(prefix)
        (prefix / "bin/other").write_text("")
        self.uninstall()
        self.assertEqual([str(path.relative_to(prefix)) for path in prefix.rglob("*")], ["bin", "bin/other"])

    def test_a_stage(self):
        stage = self.root / "stage"
        stage.mkdir()
        self.install("/usr", stage)
        self.uninstall()
        # Other packages use /usr, too, so only folders of sonde are removed.
        left = sorted(str(path.relative_to(stage / "usr")) for path in stage.rglob("*") if path != stage / "usr")
        self.assertEqual(left, ["bin", "lib", "lib/python3", "lib/python3/site-packages", "share", "share/man", "share/man/man1"])


class LeftOut(Place):
    """A project that builds sonde as a part of itself. The summary of `meson setup` says what is
    left out, and why."""

    def do(self, *command):
        done = subprocess.run([*map(str, command)], env=self.env, capture_output=True, text=True, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_subproject_without_optional_parts(self):
        subprojects = self.root / "project/subprojects"
        subprojects.mkdir(parents=True)
        shutil.copy(PROJECT / "packaging/sonde.wrap", subprojects)
        (subprojects / "sonde").symlink_to(PROJECT)  # as if Meson had cloned it
        (self.root / "project/hello.c").write_text(PROGRAM)
        (self.root / "project/meson.build").write_text(MESON)
        left_out = [f"-Dsonde:{name}=disabled" for name in ("python", "fabric", "tests", "http_client")]
        said = self.do("meson", "setup", "made", "project", "--force-fallback-for=sonde", *left_out)
        lines = said.partition("  Parts\n")[2].partition("\n\n")[0].splitlines()
        parts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.assertEqual(parts["Python package"], "NO: -Dpython=disabled")
        self.assertEqual(parts["data over libfabric"], "NO: -Dfabric=disabled")
        self.assertEqual(parts["HTTP client"], "NO: -Dhttp_client=disabled")
        self.assertEqual(parts["unit tests"], "NO: -Dtests=disabled")
        # nothing has fetched esbuild; a release archive has the page
        self.assertEqual(parts["page in the browser"] == "yes", (PROJECT / "web/prebuilt").exists())
        self.do("ninja", "-C", "made", "hello")
        done = self.sonde("run", "-q", "-l", "1", "--", self.root / "made/hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(",20\n", self.sonde("query", "--csv", "avg:0all-count:loss").stdout)


class PythonFolder(unittest.TestCase):
    """The folder in which python3 looks for packages."""

    def folder(self, prefix, packages):
        tool = types.ModuleType("tool")
        exec((PROJECT / "tools/python-folder").read_text(), tool.__dict__)
        with mock.patch("site.getsitepackages", lambda: packages), mock.patch("site.getusersitepackages", lambda: "/home/me/.local/lib/python3.9/site-packages"):
            return str(tool.below(pathlib.Path(prefix)))

    def test_folders(self):
        debian = ["/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages"]
        self.assertEqual(self.folder("/usr", debian), debian[1])
        self.assertEqual(self.folder("/usr/local", debian), debian[0])
        self.assertEqual(self.folder("/usr", ["/usr/lib64/python3.9/site-packages", "/usr/lib/python3.9/site-packages"]), "/usr/lib64/python3.9/site-packages")
        self.assertEqual(self.folder("/home/me/.local", debian), "/home/me/.local/lib/python3.9/site-packages")
        self.assertRegex(self.folder("/opt/x", debian), r"^/opt/x/lib(64)?/python3\.\d+/site-packages$")


if __name__ == "__main__":
    main()
