// error.h - error messages for users.
//
// Functions that can fail return 0 or a negative errno. If a user sees the failure, they also take
// a `struct error *` (may be NULL) and write one line to it: what failed, on what, why and, if
// possible, what to do. The line has no trailing newline, and no "error:" in front.
#ifndef SONDE_BASE_ERROR_H
#define SONDE_BASE_ERROR_H

#define ERROR_TEXT_MAX 512

struct error {
    int code; // a negative errno, 0 when there is no error
    char text[ERROR_TEXT_MAX];
};

// Sets code and text (e may be NULL); returns `code`, so that `return error_set(e, -EINVAL, "…")`
// works. Text longer than ERROR_TEXT_MAX is cut; unprintable characters are escaped (printable.h).
int error_set(struct error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "context: " in front of the existing text. Returns e->code (0 if e is NULL).
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
