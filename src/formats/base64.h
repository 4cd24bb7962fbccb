// base64.h - bytes as text (RFC 4648, with padding).
#ifndef SONDE_FORMATS_BASE64_H
#define SONDE_FORMATS_BASE64_H

#include "base/str.h"

void base64_add(struct buf *out, struct str bytes);

#endif
