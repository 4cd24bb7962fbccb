// output.h - the output of an export: standard output, a pipe or a device, or a file that gets its
// name when it is complete.
#ifndef SONDE_EXPORT_OUTPUT_H
#define SONDE_EXPORT_OUTPUT_H

#include "base/atomic_file.h"
#include "export/export.h"

struct export_output {
    int fd;
    bool draft; // `file` is in use
    bool opened;
    struct atomic_file file;
    const char *path; // path in messages for users
    uint64_t bytes;
};

// The path "-" is standard output.
int export_output_open(struct export_output *o, const char *path, struct error *e);

// Closes the output. If `status` is 0, a file gets its name; otherwise it is removed. Returns
// `status`, or a negative errno with a message.
int export_output_close(struct export_output *o, int status, struct error *e);

#endif
