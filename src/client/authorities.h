// authorities.h - the certificates of authorities that HTTPS connections trust, where the build of
// libcurl knows no file of them: that of a built archive, which runs on every distribution.
#ifndef SONDE_CLIENT_AUTHORITIES_H
#define SONDE_CLIENT_AUTHORITIES_H

#include <stddef.h>

// The first readable file of the list, which ends with NULL; NULL: there is none.
const char *authorities_first(const char *const *files);

// The file of this machine. NULL: libcurl knows its own, or the machine has none.
const char *authorities_default(void);

#endif
