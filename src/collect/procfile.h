// procfile.h - a file in /proc or /sys that is opened once and read again with one pread a sample;
// and the numbers in it.
//
// The kernel generates the contents at every read from offset 0. One pread into a buffer with room
// to spare gets all of it, from one moment. A full buffer is doubled, up to PROCFILE_SIZE_MAX, so
// after the first reads no memory is allocated.
#ifndef SONDE_COLLECT_PROCFILE_H
#define SONDE_COLLECT_PROCFILE_H

#include "collect/source.h"

enum {
    // /proc/stat on a machine with 4,096 processors and as many interrupt lines stays below 1 MiB.
    PROCFILE_SIZE_MAX = 4 << 20,
    PROCFILE_SIZE_FIRST = 4096,
};

struct procfile {
    int fd; // -1 = not open
    char *data;
    size_t capacity;
    const char *path; // a constant without the root, for messages
};

// Opens ROOT/path and reads it once. Reports a failure with source_fail.
int procfile_open(struct procfile *f, struct source *s, const char *path);
void procfile_close(struct procfile *f);

// Opens the folder ROOT/path: returns its descriptor, or a negative errno after source_fail.
int procfile_folder(struct source *s, const char *path);

// Reads the contents; valid until the next read. Reports a failure (also an empty file) with
// source_fail.
int procfile_read(struct procfile *f, struct source *s, struct str *out);

// Takes the next line of *rest, without its newline; returns false at the end.
static inline bool scan_line(struct str *rest, struct str *line)
{
    if (rest->size == 0)
        return false;
    const char *newline = memchr(rest->data, '\n', rest->size);
    size_t size = newline ? (size_t)(newline - rest->data) : rest->size;
    *line = (struct str){rest->data, size};
    size_t used = newline ? size + 1 : size;
    rest->data += used;
    rest->size -= used;
    return true;
}

// Takes a decimal number and the blanks before it off the front of *s. Returns false and leaves *s
// unchanged if there is no number or it is too big.
static inline bool scan_u64(struct str *s, uint64_t *out)
{
    const char *at = s->data, *end = s->data + s->size;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    at = str_scan_u64(at, end, out);
    if (at)
        *s = (struct str){at, (size_t)(end - at)};
    return at != NULL;
}

// Parses a complete word like "0.41". All its digits, taken as one number, must fit into 2^53.
bool scan_decimal(struct str word, double *out);

#endif
