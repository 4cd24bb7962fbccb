// output.h - where an export goes: standard output, a pipe or a device, or a file that appears
// under its name when it is complete.
#ifndef SONDE_EXPORT_OUTPUT_H
#define SONDE_EXPORT_OUTPUT_H

#include "base/atomic_file.h"
#include "export/export.h"

struct export_output {
    int fd;
    bool draft; // `file` is in use
    bool opened;
    struct atomic_file file;
    const char *path; // for people
    uint64_t bytes;
};

// "-" is standard output.
int export_output_open(struct export_output *o, const char *path, struct error *e);

// Ends it: with `status` 0 the file takes its name, else nothing is left of it. Returns `status`,
// or a negative errno with words.
int export_output_close(struct export_output *o, int status, struct error *e);

#endif
