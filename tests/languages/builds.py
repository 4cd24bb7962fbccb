"""Builds programs in each language for tests and benches, as users do with a checkout."""

import os
import pathlib
import re
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).parent.parent.parent
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
COMPILERS = {"cpp": "g++", "f90": "gfortran", "rs": "cargo", "go": "go", "java": "javac", "jl": "julia", "m": "mkoctfile", "R": "R"}


def found(*programs):
    return all(shutil.which(program) for program in programs)


class Builds:
    """Builds programs in a folder. `run` must run a command and fail if the command fails."""

    def __init__(self, folder, library, run):
        # `library` is the path of libsonde.a.
        self.folder, self.library, self.run = pathlib.Path(folder), library, run

    def commands(self, *sources):
        """Builds programs of one language; returns the command of each."""
        return getattr(self, sources[0].suffix[1:])(*sources)

    def cpp(self, *sources):
        return [self.link(source, "g++", "-std=c++14", "-O2", f"-I{SOURCE}/include", source) for source in sources]

    def f90(self, *sources):
        return [self.link(source, "gfortran", "-O2", f"-J{self.folder}", SOURCE / "bindings/fortran/sonde.f90", source) for source in sources]

    def link(self, source, *command):
        self.run(*command, self.library, "-pthread", "-o", self.folder / source.stem)
        return [self.folder / source.stem]

    def rs(self, *sources):
        """Builds a project that depends on a copy of the crate."""
        shutil.copytree(SOURCE / "bindings/rust", self.folder / "rust/sonde", ignore=shutil.ignore_patterns("target"))
        manifest = '[package]\nname = "programs"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\nsonde = { path = "sonde" }\n'
        manifest += "".join(f'[[bin]]\nname = "{source.stem}"\npath = "{source}"\n' for source in sources)
        (self.folder / "rust/Cargo.toml").write_text(manifest)
        env = [f"SONDE_LIB_DIR={os.path.dirname(self.library)}", "RUSTFLAGS=-Dwarnings"]
        self.run("env", "-C", self.folder / "rust", *env, "cargo", "build", "--quiet", "--offline", "--release", "--target-dir", "target")
        return [[self.folder / "rust/target/release" / source.stem] for source in sources]

    def go(self, *sources):
        """Builds a module that depends on the package and finds libsonde with a sonde.pc."""
        module = self.folder / "go"
        for source in sources:
            (module / source.stem).mkdir(parents=True)
            shutil.copy(source, module / source.stem / "main.go")
        (module / "go.mod").write_text(f"module programs\n\ngo 1.19\n\nrequire sonde v0.0.0\n\nreplace sonde => {SOURCE}/bindings/go\n")
        self.pkg_config(module, f"{self.library} -pthread")
        (module / "bin").mkdir()
        env = ["GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=1", f"PKG_CONFIG_PATH={module}"]
        self.run("env", "-C", module, *env, "go", "build", "-o", "bin", "./...")
        return [[module / "bin" / source.stem] for source in sources]

    def pkg_config(self, folder, libs):
        (folder / "sonde.pc").write_text(f"Name: sonde\nDescription: not installed\nVersion: 0\nLibs: {libs}\nCflags: -I{SOURCE}/include\n")

    def cmake(self, source):
        """Builds a project in Fortran that adds the folder of the binding with CMake."""
        folder = self.folder / "cmake"
        folder.mkdir()
        self.pkg_config(folder, f"-L{os.path.dirname(self.library)} -lsonde")
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.13)\nproject(program LANGUAGES Fortran)\nadd_subdirectory({SOURCE}/bindings/fortran sonde)\n"
            f"add_executable(program {source})\ntarget_link_libraries(program sonde::fortran)\n")
        self.run("env", f"PKG_CONFIG_PATH={folder}", "cmake", "-S", folder, "-B", folder / "build")
        self.run("cmake", "--build", folder / "build")
        return folder / "build/program"

    def fpm(self, fpm, source):
        """Builds a project of fpm that has the folder of the binding as a dependency."""
        folder = self.folder / "fpm"
        (folder / "app").mkdir(parents=True)
        shutil.copy(source, folder / "app/main.f90")
        (folder / "sonde").symlink_to(SOURCE / "bindings/fortran")  # fpm takes relative paths only
        (folder / "fpm.toml").write_text('name = "program"\n[dependencies]\nsonde = { path = "sonde" }\n')
        place = os.path.dirname(self.library)
        self.run("env", "-C", folder, fpm, "build", "--link-flag", f"-L{place} -Wl,-rpath,{place}")
        return next(folder.glob("build/gfortran_*/app/program"))

    def java(self, *sources):
        home = pathlib.Path(os.environ.get("JAVA_HOME") or pathlib.Path(shutil.which("javac")).resolve().parent.parent)
        self.classes, binding = self.folder / "classes", SOURCE / "bindings/java"
        self.run("javac", "-Xlint:all", "-Werror", "--release", 11, "-d", self.classes, *sorted(binding.glob("sonde/*.java")))
        self.run("javac", "-cp", self.classes, "-d", self.classes, *sources)
        self.run("cc", "-std=gnu17", "-O2", *WARNINGS, "-shared", "-fPIC", f"-I{home}/include", f"-I{home}/include/linux", f"-I{SOURCE}/include",
                 binding / "sonde_java.c", self.library, "-pthread", "-o", self.folder / "libsonde_java.so")
        version = subprocess.run(["java", "--version"], capture_output=True, text=True, check=True).stdout
        allowed = ["--enable-native-access=ALL-UNNAMED"] if int(re.search(r"\d+", version)[0]) >= 24 else []
        self.java_command = ["java", *allowed, "-cp", self.classes]
        return [[*self.java_command, f"-Djava.library.path={self.folder}", source.stem] for source in sources]

    def jl(self, *sources):
        """Julia compiles when it runs; what it has compiled stays in the folder."""
        depot = f"JULIA_DEPOT_PATH={self.folder}/depot"
        path = f"JULIA_LOAD_PATH={SOURCE}/bindings/julia:@stdlib"
        return [["env", f"SONDE_LIB_DIR={os.path.dirname(self.library)}", depot, path, "julia", "--threads=2", "--startup-file=no", source] for source in sources]

    def m(self, *sources):
        """Builds the MEX file; Octave runs the programs."""
        binding = SOURCE / "bindings/matlab"
        flags = ["-std=gnu17", "-O2", "-fPIC", *WARNINGS]
        self.run("env", f"CFLAGS={' '.join(flags)}", "mkoctfile", "--mex", f"-I{SOURCE}/include", binding / "sonde_mex.c", self.library, "-pthread",
                 "-o", self.folder / "sonde_mex.mex")
        self.octave_command = ["octave-cli", "--norc", "--no-history", "--quiet", "--path", binding]
        return [[*self.octave_command, "--path", self.folder, source] for source in sources]

    def R(self, *sources):
        """Installs the package in a library of its own; returns the commands of the scripts."""
        folder = self.folder / "r"
        shutil.copytree(SOURCE / "bindings/r", folder / "sonde", ignore=shutil.ignore_patterns("*.o", "*.so", "Makevars"))
        self.pkg_config(folder, f"{self.library} -pthread")
        (folder / "library").mkdir()
        (folder / "warnings").write_text(f"CFLAGS = -std=gnu17 -O2 -fPIC {' '.join(WARNINGS)}\n")
        env = [f"PKG_CONFIG_PATH={folder}", f"R_MAKEVARS_USER={folder}/warnings", "_R_SHLIB_STRIP_=false"]
        # R prints messages of its installation on standard error.
        self.run("env", *env, "sh", "-c", f"R CMD INSTALL --library={folder}/library {folder}/sonde >{folder}/log 2>&1 || {{ cat {folder}/log >&2; exit 1; }}")
        return [["env", f"R_LIBS={folder}/library", "Rscript", "--vanilla", source] for source in sources]
