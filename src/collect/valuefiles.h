// valuefiles.h - sources made of many small files in /sys that hold one number each: a folder for
// each instance, a file for each row.
//
// Files are kept open and re-read with one pread each. The number stands first; what may follow
// ("1234@1700000000.5", "812 W 1700 us") is not looked at.
#ifndef SONDE_COLLECT_VALUEFILES_H
#define SONDE_COLLECT_VALUEFILES_H

#include "collect/source.h"

enum { VALUEFILES_MAX = 256, VALUEFILES_PATH = 512, VALUEFILES_NAMES_MAX = 256 };

struct valuefile_row {
    enum metric_symbol row;
    const char *file;
    double times, per; // the metric is the number times, and divided by, these
};

struct valuefile {
    int fd;
    ptrdiff_t instance;
    const struct valuefile_row *row;
};

struct valuefiles {
    struct valuefile files[VALUEFILES_MAX];
    size_t count;
    int failed; // the errno of a file that is there and could not be opened
};

// The entries of ROOT/folder that begin with `prefix`, in order; at most VALUEFILES_NAMES_MAX. A
// callback that returns false ends it. The number of entries, or a negative errno (source_fail says
// it).
int valuefiles_list(struct source *s, const char *folder, const char *prefix,
                    bool (*each)(struct source *s, const char *folder, const char *name,
                                 void *user),
                    void *user);

// A file's first line in `out`, without its newline; false when there is none.
bool valuefiles_text(struct source *s, const char *folder, const char *name,
                     char out[SOURCE_TAG_SIZE]);

// Opens ROOT/folder/row->file for an instance (-1 = a plain row); false if it does not exist or
// cannot be read.
bool valuefiles_add(struct valuefiles *v, struct source *s, const char *folder,
                    const struct valuefile_row *row, ptrdiff_t instance);

// The number in one of them.
bool valuefiles_number(const struct valuefiles *v, size_t file, double *out);

// Puts all. The samples of a source that is nothing else.
int valuefiles_sample(struct valuefiles *v, struct source *s, double *values);

// 0 when there are files; else source_fail with `absent`, or with why they could not be read, and
// *v is closed and freed.
int valuefiles_done(struct valuefiles *v, struct source *s, const char *absent);
void valuefiles_free(struct valuefiles *v);

#endif
