// authorities.h - the file with the certificates of authorities that HTTPS connections trust. It is
// needed if libcurl was built without such a file, as in the portable archive, which runs on every
// distribution.
#ifndef SONDE_CLIENT_AUTHORITIES_H
#define SONDE_CLIENT_AUTHORITIES_H

#include <stddef.h>

// Returns the first readable file of the list, which ends with NULL, or NULL if there is none.
const char *authorities_first(const char *const *files);

// Returns the file of this machine. NULL: libcurl knows its own, or the machine has none.
const char *authorities_default(void);

#endif
