// The file format is RFC 8536's (TZif). A version 1 block of 32-bit times comes first and is
// skipped; the version 2+ block holds
//
//   "TZif" version  15 zero bytes  counts: isut isstd leap time type char (6 × u32, big endian)
//   i64 transition[time]  u8 type_of_transition[time]  {i32 offset, u8 dst, u8 name}[type]
//   names  leap[leap × 12]  isstd  isut
//   '\n' a POSIX TZ rule '\n'
//
// All sizes are checked against the file's size before use; a hostile file only causes an error.
#include "query/time_zone.h"
#include "base/search.h"

#include "query/civil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ZONE_NAME_MAX = 64,         // bytes; the longest IANA name has 32
    ZONE_FILE_MAX = 256 * 1024, // bytes; the largest has 4 KiB
    ZONE_HEADER_BYTES = 44,
    ZONE_TYPE_BYTES = 6,
};

// One end of summer time: "M3.5.0/2", "J60", "59".
struct rule_date {
    enum { RULE_MONTH, RULE_JULIAN, RULE_DAY } kind;
    int month, week, day;
    int32_t seconds; // local, after midnight; may be negative or more than a day
};

struct time_zone {
    size_t count;           // transitions
    const int64_t *at;      // UTC seconds, ascending
    const int32_t *offsets; // valid from at[i] on
    int32_t before;         // offset before the first transition
    // For times after the last transition.
    bool has_rule, has_summer;
    int32_t standard, summer; // seconds east of UTC
    struct rule_date summer_begins, summer_ends;
};

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t i64_at(const uint8_t *p)
{
    return (int64_t)((uint64_t)u32_at(p) << 32 | u32_at(p + 4));
}

// ---- the footer's rule: "CET-1CEST,M3.5.0,M10.5.0/3" ----

static bool rule_number(const char **p, int max, int *out)
{
    int n = 0;
    if (**p < '0' || **p > '9')
        return false;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        n = n * 10 + (**p - '0');
        if (n > max)
            return false;
    }
    *out = n;
    return true;
}

static bool rule_name(const char **p)
{
    const char *from = *p;
    if (**p == '<') {
        while (**p && **p != '>')
            (*p)++;
        if (!**p)
            return false;
        (*p)++;
        return true;
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z'))
        (*p)++;
    return *p - from >= 3;
}

// Parses [+-]hh[:mm[:ss]].
static bool rule_clock(const char **p, int32_t *seconds)
{
    int sign = **p == '-' ? -1 : 1, h, m = 0, s = 0;
    if (**p == '-' || **p == '+')
        (*p)++;
    if (!rule_number(p, 167, &h))
        return false;
    if (**p == ':' && ((*p)++, !rule_number(p, 59, &m)))
        return false;
    if (**p == ':' && ((*p)++, !rule_number(p, 59, &s)))
        return false;
    *seconds = sign * (h * 3600 + m * 60 + s);
    return true;
}

static bool rule_date(const char **p, struct rule_date *d)
{
    *d = (struct rule_date){.kind = RULE_DAY, .seconds = 2 * 3600};
    if (**p == 'M') {
        (*p)++;
        d->kind = RULE_MONTH;
        if (!rule_number(p, 12, &d->month) || d->month < 1 || *(*p)++ != '.')
            return false;
        if (!rule_number(p, 5, &d->week) || d->week < 1 || *(*p)++ != '.')
            return false;
        if (!rule_number(p, 6, &d->day))
            return false;
    } else {
        if (**p == 'J') {
            (*p)++;
            d->kind = RULE_JULIAN;
        }
        if (!rule_number(p, 365, &d->day))
            return false;
    }
    if (**p == '/') {
        (*p)++;
        return rule_clock(p, &d->seconds);
    }
    return true;
}

static bool parse_rule(const char *p, struct time_zone *z)
{
    int32_t west;
    if (!rule_name(&p) || !rule_clock(&p, &west))
        return false;
    z->standard = -west;
    z->has_rule = true;
    if (!*p)
        return true;
    if (!rule_name(&p))
        return false;
    z->summer = z->standard + 3600;
    if (*p && *p != ',') {
        if (!rule_clock(&p, &west))
            return false;
        z->summer = -west;
    }
    if (*p++ != ',' || !rule_date(&p, &z->summer_begins) || *p++ != ',' ||
        !rule_date(&p, &z->summer_ends) || *p)
        return false;
    z->has_summer = true;
    return true;
}

static bool leap_year(int64_t y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

// Local seconds since 1970 of the date in that year.
static int64_t rule_local(const struct rule_date *d, int64_t year)
{
    int64_t days = days_of_civil(year, 1, 1);
    if (d->kind == RULE_DAY) {
        days += d->day;
    } else if (d->kind == RULE_JULIAN) {
        // 29 February never counts.
        days += d->day - 1 + (leap_year(year) && d->day >= 60);
    } else {
        days = days_of_civil(year, d->month, 1);
        int64_t weekday = (days + 4) - floor_div(days + 4, 7) * 7; // 1970-01-01 was a Thursday
        days += (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
        int64_t next =
            d->month == 12 ? days_of_civil(year + 1, 1, 1) : days_of_civil(year, d->month + 1, 1);
        while (days >= next)
            days -= 7;
    }
    return days * SECONDS_PER_DAY + d->seconds;
}

static int32_t rule_offset(const struct time_zone *z, int64_t utc_s)
{
    if (!z->has_summer)
        return z->standard;
    int64_t year;
    int month, day;
    civil_of_days(floor_div(utc_s + z->standard, SECONDS_PER_DAY), &year, &month, &day);
    int64_t begin = rule_local(&z->summer_begins, year) - z->standard;
    int64_t end = rule_local(&z->summer_ends, year) - z->summer;
    bool summer = begin < end ? utc_s >= begin && utc_s < end : !(utc_s >= end && utc_s < begin);
    return summer ? z->summer : z->standard;
}

// ---- the file ----

struct counts {
    uint32_t isut, isstd, leap, time, type, text;
};

static bool read_header(const uint8_t *p, size_t size, struct counts *c, size_t *body,
                        size_t time_bytes)
{
    if (size < ZONE_HEADER_BYTES || memcmp(p, "TZif", 4) != 0)
        return false;
    *c = (struct counts){u32_at(p + 20), u32_at(p + 24), u32_at(p + 28),
                         u32_at(p + 32), u32_at(p + 36), u32_at(p + 40)};
    if (c->isut > size || c->isstd > size || c->leap > size || c->time > size || c->type > size ||
        c->text > size)
        return false;
    *body = c->time * (time_bytes + 1) + c->type * (size_t)ZONE_TYPE_BYTES + c->text +
            c->leap * (time_bytes + 4) + c->isstd + c->isut;
    return c->type > 0 && *body <= size - ZONE_HEADER_BYTES;
}

static int damaged(struct str name, struct error *e)
{
    return error_set(e, -EBADMSG, "the time zone file of %.*s is damaged", STR_ARG(name));
}

static int parse_file(const uint8_t *p, size_t size, struct str name, struct arena *arena,
                      struct time_zone *z, struct error *e)
{
    struct counts c;
    size_t body;
    if (!read_header(p, size, &c, &body, 4))
        return damaged(name, e);
    if (p[4] < '2')
        return error_set(
            e, -EBADMSG,
            "the time zone file of %.*s is of version 1; install current time zone data",
            STR_ARG(name));
    p += ZONE_HEADER_BYTES + body;
    size -= ZONE_HEADER_BYTES + body;
    if (!read_header(p, size, &c, &body, 8))
        return damaged(name, e);
    const uint8_t *times = p + ZONE_HEADER_BYTES;
    const uint8_t *type_of = times + c.time * 8ull;
    const uint8_t *types = type_of + c.time;
    int64_t *at = arena_array(arena, c.time, sizeof *at);
    int32_t *offsets = arena_array(arena, c.time, sizeof *offsets);
    if (!at || !offsets)
        return error_set(e, -ENOMEM, "no memory for the time zone %.*s", STR_ARG(name));
    for (size_t i = 0; i < c.time; i++) {
        at[i] = i64_at(times + i * 8);
        if (type_of[i] >= c.type || (i && at[i] <= at[i - 1]))
            return damaged(name, e);
        offsets[i] = (int32_t)u32_at(types + type_of[i] * (size_t)ZONE_TYPE_BYTES);
    }
    *z = (struct time_zone){
        .count = c.time, .at = at, .offsets = offsets, .before = (int32_t)u32_at(types)};
    const char *footer = (const char *)p + ZONE_HEADER_BYTES + body;
    size_t left = size - ZONE_HEADER_BYTES - body;
    const char *line_end = left > 1 ? memchr(footer + 1, '\n', left - 1) : NULL;
    if (!line_end || *footer != '\n')
        return damaged(name, e);
    char *rule = arena_strdup(arena, (struct str){footer + 1, (size_t)(line_end - footer - 1)});
    if (!rule)
        return error_set(e, -ENOMEM, "no memory for the time zone %.*s", STR_ARG(name));
    return *rule && !parse_rule(rule, z) ? damaged(name, e) : 0;
}

static int unknown(struct str name, struct error *e)
{
    return error_set(e, -EINVAL, "no such time zone: '%.*s' (names are as in Europe/Berlin)",
                     STR_ARG(name));
}

static bool plain_name(struct str name)
{
    if (name.size > ZONE_NAME_MAX || name.data[0] == '/' || str_find(name, STR("..")) >= 0)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr("/_+-", c)) ||
            !c)
            return false;
    }
    return true;
}

int time_zone_load(struct str name, struct arena *arena, const struct time_zone **out,
                   struct error *e)
{
    struct time_zone *z = arena_zalloc(arena, sizeof *z);
    if (!z)
        return error_set(e, -ENOMEM, "no memory for a time zone");
    *out = z;
    if (name.size == 0 || str_eq(name, STR("UTC")) || str_eq(name, STR("GMT")))
        return 0;
    if (!plain_name(name))
        return unknown(name, e);
    const char *folder = getenv("TZDIR");
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%.*s", folder ? folder : "/usr/share/zoneinfo",
                     STR_ARG(name));
    if (n < 0 || (size_t)n >= sizeof path)
        return unknown(name, e);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (!folder && access("/usr/share/zoneinfo", R_OK) != 0)
            return error_set(
                e, -EINVAL,
                "no time zones here but UTC: /usr/share/zoneinfo is missing (install tzdata)");
        return unknown(name, e);
    }
    uint8_t *bytes = malloc(ZONE_FILE_MAX);
    size_t size = 0;
    ssize_t got = bytes ? 1 : 0;
    while (got > 0 && size < ZONE_FILE_MAX) {
        got = read(fd, bytes + size, ZONE_FILE_MAX - size);
        if (got > 0)
            size += (size_t)got;
    }
    close(fd);
    int r;
    if (!bytes)
        r = error_set(e, -ENOMEM, "no memory for the time zone %.*s", STR_ARG(name));
    else if (got < 0)
        r = unknown(name, e); // a folder such as "Europe"
    else
        r = parse_file(bytes, size, name, arena, z, e);
    free(bytes);
    return r;
}

int32_t time_zone_offset(const struct time_zone *z, int64_t utc_s)
{
    if (z->count == 0 || utc_s < z->at[0])
        return z->count == 0 && z->has_rule ? rule_offset(z, utc_s) : z->before;
    if (utc_s >= z->at[z->count - 1])
        return z->has_rule ? rule_offset(z, utc_s) : z->offsets[z->count - 1];
    size_t next; // at[0] <= utc_s < at[count - 1]
    SEARCH_FIRST(next, z->count, z->at[next] > utc_s);
    return z->offsets[next - 1];
}

int64_t time_zone_to_utc(const struct time_zone *z, int64_t local_s)
{
    // No zone is more than a day from UTC, and none changes twice within two days.
    int32_t before = time_zone_offset(z, local_s - SECONDS_PER_DAY);
    if (time_zone_offset(z, local_s - before) == before)
        return local_s - before;
    int32_t after = time_zone_offset(z, local_s + SECONDS_PER_DAY);
    if (time_zone_offset(z, local_s - after) == after)
        return local_s - after;
    return local_s - before;
}
