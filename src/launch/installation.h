// installation.h - the files of this installation, found from the program's own path. So an archive
// works in any folder, and a virtual environment can be moved.
//
//   PREFIX/bin/sonde          this program
//   PREFIX/include, lib, …    as the build's options say (meson.build passes the relative paths)
//
// In the build tree, the program finds the libraries of --trace and the Python package there.
#ifndef SONDE_LAUNCH_INSTALLATION_H
#define SONDE_LAUNCH_INSTALLATION_H

#include <limits.h>
#include <stdbool.h>

enum installation_part {
    INSTALLATION_HEADERS,
    INSTALLATION_LIBRARIES,
    INSTALLATION_PKG_CONFIG,
    INSTALLATION_CMAKE,
    INSTALLATION_PYTHON, // the folder that contains the package `sonde`
    INSTALLATION_TRACE,  // the libraries of `sonde run --trace`
    INSTALLATION_DASHBOARDS,
    INSTALLATION_PARTS
};

// The part's name for people.
const char *installation_name(enum installation_part part);

// Finds the folder of a part. Returns false if the part is not installed; `path` is then the folder
// where it should be, or empty if the program's own path is unknown.
bool installation_find(enum installation_part part, char path[PATH_MAX]);

#endif
