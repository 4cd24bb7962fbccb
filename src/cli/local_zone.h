// local_zone.h - the name of this machine's time zone, for times in users' input.
#ifndef SONDE_CLI_LOCAL_ZONE_H
#define SONDE_CLI_LOCAL_ZONE_H

#include "base/str.h"

enum { LOCAL_ZONE_MAX = 128 };

// Returns an IANA name ("Europe/Berlin") from TZ or /etc/localtime, or an empty text, which means
// UTC.
struct str local_zone(char out[LOCAL_ZONE_MAX]);

#endif
