// local_zone.h - the name of this machine's time zone, for times that people write.
#ifndef SONDE_CLI_LOCAL_ZONE_H
#define SONDE_CLI_LOCAL_ZONE_H

#include "base/str.h"

enum { LOCAL_ZONE_MAX = 128 };

// An IANA name ("Europe/Berlin") from TZ or /etc/localtime; empty, which means UTC, if both have
// none.
struct str local_zone(char out[LOCAL_ZONE_MAX]);

#endif
