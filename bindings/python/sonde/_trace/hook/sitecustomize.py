"""Python runs this file when it starts, because `sonde run --trace python` puts its folder into
PYTHONPATH. It starts the tracer, and then runs the sitecustomize that Python would have run
otherwise.

Every Python that the command starts reads this file, so its syntax is that of all versions.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(FOLDER))


def load(name, spec):
    """Imports one module without its parent package, which the program may never import."""
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def libsonde():
    """The extension with libsonde: that of the program's own sonde package, else the one here. So a
    process has only one."""
    from importlib.machinery import EXTENSION_SUFFIXES, FileFinder, ExtensionFileLoader, PathFinder

    own = PathFinder.find_spec("sonde")
    for folder in list(own.submodule_search_locations or [] if own else []) + [PACKAGE]:
        spec = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("sonde._emit")
        if spec:
            return spec
    raise ImportError("no sonde/_emit for this Python in " + os.path.dirname(PACKAGE))


def trace():
    if sys.version_info < (3, 9):
        raise ImportError("it needs Python 3.9 or later")
    from importlib.util import spec_from_file_location

    if "sonde._emit" not in sys.modules:
        load("sonde._emit", libsonde())
    path = os.path.join(PACKAGE, "_trace", "__init__.py")
    load("sonde._trace", spec_from_file_location("sonde._trace", path)).start()


def run_other():
    """Runs the other sitecustomize, and puts it into sys.modules in place of this one."""
    this = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as e:
        if getattr(e, "name", __name__) != __name__:
            raise
        sys.modules[__name__] = this


sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
try:
    trace()
except Exception as e:
    sys.stderr.write("sonde: --trace python: %s is not traced: %s\n" % (sys.executable, e))
run_other()
