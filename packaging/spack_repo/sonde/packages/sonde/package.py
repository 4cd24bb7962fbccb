# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.meson import MesonPackage
from spack_repo.builtin.build_systems.python import PythonExtension

from spack.package import *


class Sonde(MesonPackage, PythonExtension):
    """sonde records metrics, spans and annotations of jobs and the nodes they run on, and answers
    queries while a job runs and after it."""

    homepage = "https://sonde.example"
    git = "https://sonde.example/sonde.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("python", default=True, description="Build the Python package")
    variant("fabric", default=True, description="Send data between nodes over libfabric")
    variant("https", default=True, description="Serve HTTPS")

    depends_on("c", type="build")

    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("curl@7.68:")
    depends_on("jansson@2.13:")
    depends_on("libmicrohttpd@0.9.70:")
    depends_on("libmicrohttpd+https", when="+https")
    depends_on("libuv@1.40:")
    depends_on("libyaml@0.2:")
    depends_on("nettle@3.4:")
    depends_on("zlib-api")
    depends_on("zstd@1.4:")
    # sonde opens libfabric at run time, and finds it through the rpath of its programs.
    depends_on("libfabric@1.9:", when="+fabric")

    extends("python@3.9:", when="+python")

    conflicts("platform=windows")
    conflicts("platform=darwin")

    def meson_args(self):
        def feature(name):
            return f"-D{name}={'enabled' if self.spec.satisfies('+' + name) else 'disabled'}"

        return [feature("python"), feature("fabric"), "-Dtests=disabled"]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_installation(self):
        sonde = Executable(self.prefix.bin.sonde)
        sonde("version")
        sonde("config", "--libs", "--cflags")
