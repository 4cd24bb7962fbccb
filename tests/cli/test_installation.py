"""An installation works wherever it is moved to: `sonde config` names its parts, programs compile
and link with what it prints."""

import os
import pathlib
import shutil
import subprocess

from place import Place, main

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("SOURCE", "BUILD_FOLDER"))


class Installation(Place):
    def setUp(self):
        super().setUp()
        done = subprocess.run(
            [
                "meson",
                "install",
                "-C",
                BUILD,
                "--no-rebuild",
                "--quiet",
                "--tags",
                "runtime,devel",
                "--destdir",
                self.root / "first",
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        [program] = (self.root / "first").rglob("bin/sonde")
        self.prefix = self.root / "moved [1] *"
        program.parent.parent.rename(self.prefix)
        self.program = self.prefix / "bin/sonde"

    def config(self, *options, code=0):
        done = subprocess.run(
            [self.program, "config", *options], env=self.env, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def compile(self, *flags):
        subprocess.run(
            ["cc", SOURCE / "examples/hello.c", *flags, "-o", self.root / "hello"], check=True
        )
        done = subprocess.run(
            [self.program, "run", "-q", "-l", "1", self.root / "hello"], env=self.env
        )
        self.assertEqual(done.returncode, 0)
        done = subprocess.run(
            [self.program, "query", "--csv", "avg:0all-count:loss"],
            env=self.env,
            capture_output=True,
            text=True,
        )
        self.assertIn(",20\n", done.stdout, done.stderr)

    def test_parts(self):
        parts = dict(line.split(None, 1) for line in self.config().splitlines())
        self.assertEqual(parts["headers"], f"{self.prefix}/include")
        self.assertTrue((pathlib.Path(parts["libraries"]) / "libsonde.so").exists())
        self.assertTrue((pathlib.Path(parts["trace"]) / "libsonde_io.so").exists())
        self.assertTrue((pathlib.Path(parts["pkg-config"]) / "sonde.pc").exists())
        has_page = (BUILD / "web-packages").exists() or (SOURCE / "web/prebuilt").exists()
        self.assertEqual(parts["page"] == "in the program", has_page, parts["page"])
        shutil.rmtree(self.prefix / "include")
        parts = dict(line.split(None, 1) for line in self.config().splitlines())
        self.assertEqual(parts["headers"], "not installed")
        self.assertEqual(
            self.config("--libs", "--cflags", code=1).splitlines(),
            [
                f"sonde: error: --cflags: not installed in {self.prefix}/bin/../include: headers; install sonde (make install)"
            ],
        )

    def test_folders(self):
        parts = dict(line.split(None, 1) for line in self.config().splitlines())
        for part, proof in {"pkg-config": "sonde.pc", "cmake": "sonde-config.cmake"}.items():
            self.assertEqual(self.config(f"--{part}"), parts[part] + "\n")
            self.assertTrue((pathlib.Path(parts[part]) / proof).exists())
        package = self.prefix / "lib/python3.9/site-packages/sonde"
        package.mkdir(parents=True)
        refused = self.config("--python-path", code=1)
        self.assertTrue(refused.startswith("sonde: error: --python-path: not installed in "), refused)
        (package / "__init__.py").touch()
        self.assertEqual(self.config("--python-path"), f"{package.parent}\n")

    def test_libraries_of_a_package_of_red_hat(self):
        """They are in lib64, whatever folder the program was built for."""
        parts = dict(line.split(None, 1) for line in self.config().splitlines())
        libraries = self.prefix / "lib64"
        pathlib.Path(parts["libraries"]).rename(libraries)
        package = libraries / "sonde/python/sonde"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        shutil.rmtree(self.prefix / "lib", ignore_errors=True)
        parts = dict(line.split(None, 1) for line in self.config().splitlines())
        self.assertEqual(parts["libraries"], str(libraries))
        self.assertEqual(parts["pkg-config"], f"{libraries}/pkgconfig")
        self.assertEqual(parts["cmake"], f"{libraries}/cmake/sonde")
        self.assertEqual(parts["trace"], f"{libraries}/sonde")
        self.assertEqual(parts["python"], f"{libraries}/sonde/python")

    def test_programs_compile_with_what_it_prints(self):
        self.prefix = self.prefix.rename(self.root / "moved")
        self.program = self.prefix / "bin/sonde"
        self.compile(*self.config("--cflags", "--libs").split())
        self.compile(*self.config("--cflags", "--static-libs").split())


if __name__ == "__main__":
    main()
