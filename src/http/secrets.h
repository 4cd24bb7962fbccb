// secrets.h - reads files that hold secrets. It checks and reads them through the same descriptor,
// so that no other file can replace them in between.
#ifndef SONDE_HTTP_SECRETS_H
#define SONDE_HTTP_SECRETS_H

#include "base/error.h"
#include "base/str.h"

enum { SECRETS_FILE_MAX = 1 << 20 };

enum secrets_how {
    SECRETS_PUBLIC, // a certificate, which every user may read
    // a key: a regular file of this user that no other user can open; links are followed
    SECRETS_PRIVATE,
    SECRETS_NO_LINK, // a token: like a key, but links are refused
};

// Reads the whole file and appends a NUL. The caller frees *out. Returns 0, -EPERM (the file is not
// private), -ELOOP (it is a link), -EFBIG (larger than SECRETS_FILE_MAX) or another negative errno.
int secrets_read(const char *path, enum secrets_how how, struct buf *out, struct error *e);

// Overwrites the memory and frees it.
void secrets_free(struct buf *secret);

#endif
