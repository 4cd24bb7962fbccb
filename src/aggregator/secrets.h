// secrets.h - files that hold secrets: who else may read them, and what is in them.
#ifndef SONDE_AGGREGATOR_SECRETS_H
#define SONDE_AGGREGATOR_SECRETS_H

#include "base/error.h"
#include "base/str.h"

enum { SECRETS_FILE_MAX = 1 << 20 };

// -EPERM: others than the owner can read `path`; -errno: it cannot be looked at.
int secrets_check_private(const char *path, struct error *e);

// A certificate or key, whole, with a NUL behind it. -EFBIG: larger than SECRETS_FILE_MAX. The caller frees *out.
int secrets_read(const char *path, struct buf *out, struct error *e);

// Overwrites and frees.
void secrets_free(struct buf *secret);

#endif
