// error.h - error messages for the people who read them.
//
// Functions that can fail return 0 or a negative errno. Where a person will see the failure they
// also take a `struct error *` (which may be NULL) and leave one line in it: what was being done,
// to what, why it failed and, where there is one, what to do about it. No trailing newline, no
// "error:" in front.
#ifndef SONDE_BASE_ERROR_H
#define SONDE_BASE_ERROR_H

#define ERROR_TEXT_MAX 512

struct error {
    int code; // a negative errno, 0 when there is no error
    char text[ERROR_TEXT_MAX];
};

// Sets code and text (e may be NULL); returns `code`, so that `return error_set(e, -EINVAL, "…")`
// reads well. Text longer than ERROR_TEXT_MAX is cut; what cannot be printed in it is escaped
// (printable.h).
int error_set(struct error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "context: " in front of the text that is there. Returns e's code (0 when e is NULL).
int error_prefix(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
