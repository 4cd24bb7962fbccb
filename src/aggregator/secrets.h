// secrets.h - reads files that hold secrets, and checks them through the same descriptor: no other
// file can take their place in between.
#ifndef SONDE_AGGREGATOR_SECRETS_H
#define SONDE_AGGREGATOR_SECRETS_H

#include "base/error.h"
#include "base/str.h"

enum { SECRETS_FILE_MAX = 1 << 20 };

enum secrets_how {
    SECRETS_PUBLIC,  // a certificate: anybody may read it
    SECRETS_PRIVATE, // a key: a regular file of ours that nobody else can open; links are followed
    SECRETS_NO_LINK, // a token: the same, and no link
};

// The whole file, with a NUL behind it. -EPERM: it is not private; -ELOOP: a link; -EFBIG: larger
// than SECRETS_FILE_MAX. The caller frees *out.
int secrets_read(const char *path, enum secrets_how how, struct buf *out, struct error *e);

// Overwrites and frees.
void secrets_free(struct buf *secret);

#endif
