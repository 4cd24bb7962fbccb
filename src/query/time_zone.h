// time_zone.h - local time in any zone, without changing the process's TZ.
//
// The zone's file under /usr/share/zoneinfo (or $TZDIR) is read once into the arena: the list of
// its transitions and, for times after the last one, the rule in its footer. Nothing is shared, so
// any number of threads may call these functions at the same time.
#ifndef SONDE_QUERY_TIME_ZONE_H
#define SONDE_QUERY_TIME_ZONE_H

#include "base/arena.h"
#include "base/error.h"

struct time_zone;

// `name` is an IANA name ("Europe/Berlin"); empty, "UTC" and "GMT" need no file. Returns -EINVAL
// for an unknown zone, -EBADMSG for a damaged file.
int time_zone_load(struct str name, struct arena *arena, const struct time_zone **out,
                   struct error *e);

// Seconds east of UTC at that instant (seconds since the epoch).
int32_t time_zone_offset(const struct time_zone *zone, int64_t utc_s);

// The instant at which clocks in the zone show `local_s` (seconds since 1970-01-01 00:00 on those
// clocks). If they show it twice, the first instant; if they skip it, the instant as far after the
// gap's start as `local_s` is.
int64_t time_zone_to_utc(const struct time_zone *zone, int64_t local_s);

#endif
