// valuefiles.h - sources made of many small files in /sys that hold one number each: a folder for
// each instance, a file for each row.
//
// Files are kept open and re-read with one pread each. The number comes first; any text after it
// ("1234@1700000000.5", "812 W 1700 us") is ignored.
#ifndef SONDE_COLLECT_VALUEFILES_H
#define SONDE_COLLECT_VALUEFILES_H

#include "collect/source.h"

enum { VALUEFILES_MAX = 256, VALUEFILES_PATH = 512, VALUEFILES_NAMES_MAX = 256 };

struct valuefile_row {
    enum metric_symbol row;
    const char *file;
    double times, per; // the metric is number × times / per
};

struct valuefile {
    int fd;
    ptrdiff_t instance;
    const struct valuefile_row *row;
};

struct valuefiles {
    struct valuefile files[VALUEFILES_MAX];
    size_t count;
    int failed; // the errno of an existing file that could not be opened
};

// The entries of ROOT/folder that begin with `prefix`, in order; at most VALUEFILES_NAMES_MAX. A
// callback that returns false ends the list. Returns the number of entries, or a negative errno
// after source_fail.
int valuefiles_list(struct source *s, const char *folder, const char *prefix,
                    bool (*each)(struct source *s, const char *folder, const char *name,
                                 void *user),
                    void *user);

// Reads a file's first line into `out`, without its newline; returns false without a line.
bool valuefiles_text(struct source *s, const char *folder, const char *name,
                     char out[SOURCE_TAG_SIZE]);

// Opens ROOT/folder/row->file for an instance (-1 = a plain row); returns false if it does not
// exist or cannot be read.
bool valuefiles_add(struct valuefiles *v, struct source *s, const char *folder,
                    const struct valuefile_row *row, ptrdiff_t instance);

// Reads the number of one file.
bool valuefiles_number(const struct valuefiles *v, size_t file, double *out);

// Puts all numbers; the complete sample function of a source without other files.
int valuefiles_sample(struct valuefiles *v, struct source *s, double *values);

// Returns 0 if files are open. Otherwise calls source_fail with `absent`, or with the error of the
// files, and closes and frees *v.
int valuefiles_done(struct valuefiles *v, struct source *s, const char *absent);
void valuefiles_free(struct valuefiles *v);

#endif
