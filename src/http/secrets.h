// secrets.h - reads files that hold secrets, and checks them through the same descriptor: no other
// file can take their place in between.
#ifndef SONDE_HTTP_SECRETS_H
#define SONDE_HTTP_SECRETS_H

#include "base/error.h"
#include "base/str.h"

enum { SECRETS_FILE_MAX = 1 << 20 };

enum secrets_how {
    SECRETS_PUBLIC, // a certificate: everybody may read it
    // a key: a regular file of this user that no other user can open; links are followed
    SECRETS_PRIVATE,
    SECRETS_NO_LINK, // a token: the same, but links are refused
};

// Reads the whole file and adds a NUL. -EPERM: the file is not private; -ELOOP: a link; -EFBIG:
// larger than SECRETS_FILE_MAX. The caller frees *out.
int secrets_read(const char *path, enum secrets_how how, struct buf *out, struct error *e);

// Overwrites and frees.
void secrets_free(struct buf *secret);

#endif
