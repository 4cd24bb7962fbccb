#include "launch/installation.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES_MAX = 4 };

// `places` are patterns relative to the program's folder, the installed one first. A wheel puts the
// Python package into a folder named after Python's version, so it is found by a pattern. A package
// of Red Hat or SUSE has the libraries of the other archives in lib64.
static const struct part {
    const char *name;
    // a file of the part that no other program installs: proves that the part is there
    const char *proof;
    const char *places[PLACES_MAX];
} parts[INSTALLATION_PARTS] = {
    [INSTALLATION_HEADERS] = {"headers", "sonde.h", {SONDE_INCLUDE_FOLDER}},
    [INSTALLATION_LIBRARIES] = {"libraries", "libsonde.so", {SONDE_LIBRARY_FOLDER, "../lib64"}},
    [INSTALLATION_PKG_CONFIG] = {"pkg-config",
                                 "sonde.pc",
                                 {SONDE_LIBRARY_FOLDER "/pkgconfig", "../lib64/pkgconfig"}},
    [INSTALLATION_CMAKE] = {"cmake",
                            "sonde-config.cmake",
                            {SONDE_LIBRARY_FOLDER "/cmake/sonde", "../lib64/cmake/sonde"}},
    [INSTALLATION_PYTHON] = {"python",
                             "sonde/__init__.py",
                             {SONDE_PYTHON_FOLDER, "../lib64/sonde/python",
                              "../lib/python3*/*-packages", "bindings/python"}},
    [INSTALLATION_TRACE] = {"trace",
                            "libsonde_io.so",
                            {SONDE_LIBRARY_FOLDER "/sonde", "../lib64/sonde", "src/trace"}},
    [INSTALLATION_DASHBOARDS] = {"dashboards",
                                 "dashboards/job.json",
                                 {SONDE_DATA_FOLDER "/sonde/grafana"}},
};

const char *installation_name(enum installation_part part)
{
    return parts[part].name;
}

static bool own_folder(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return false;
    path[n] = 0;
    *strrchr(path, '/') = 0;
    return true;
}

// Escapes the characters that have a meaning in patterns.
static void escape(const char *text, char pattern[2 * PATH_MAX])
{
    for (; *text; text++) {
        if (strchr("*?[\\", *text))
            *pattern++ = '\\';
        *pattern++ = *text;
    }
    *pattern = 0;
}

// Writes the folder of the first file that matches, without the file's own name.
static bool find_match(const char *pattern, size_t proof_size, char path[PATH_MAX])
{
    glob_t found;
    bool is_found = false;
    if (glob(pattern, 0, NULL, &found) == 0) {
        char *first = found.gl_pathv[0];
        first[strlen(first) - proof_size - 1] = 0;
        is_found = realpath(first, path) != NULL;
    }
    globfree(&found);
    return is_found;
}

bool installation_find(enum installation_part part, char path[PATH_MAX])
{
    const struct part *p = &parts[part];
    char own[PATH_MAX], escaped[2 * PATH_MAX], pattern[3 * PATH_MAX];
    path[0] = 0;
    if (!own_folder(own))
        return false;
    escape(own, escaped);
    for (size_t i = 0; i < PLACES_MAX && p->places[i]; i++) {
        int size = snprintf(pattern, sizeof pattern, "%s/%s/%s", escaped, p->places[i], p->proof);
        if (size > 0 && size < (int)sizeof pattern && find_match(pattern, strlen(p->proof), path))
            return true;
    }
    if (snprintf(path, PATH_MAX, "%s/%s", own, p->places[0]) >= PATH_MAX)
        path[0] = 0;
    return false;
}
