// Times as text, time zones, calendars.
#include "query/civil.h"
#include "query/query.h"
#include "query/time_zone.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
static const int64_t NOW = INT64_C(1356998400123456789);

static void texts_that_are_times(void **state)
{
    (void)state;
    static const struct {
        const char *text, *zone;
        int64_t ns;
    } facts[] = {
        {"now", "", INT64_C(1356998400123456789)},
        {"1h-ago", "", INT64_C(1356994800123456789)},
        {"250ms-ago", "", INT64_C(1356998399873456789)},
        {"1n-ago", "", INT64_C(1354406400123456789)},
        {"1y-ago", "", INT64_C(1325462400123456789)},
        {"2012/12/20-12:42:42", "GMT", 1356007362000 * MS},
        {"2012/12/20 12:42:42", "", 1356007362000 * MS},
        {"2012/12/20-12:42", "UTC", 1356007320000 * MS},
        {"2012/12/20", "", 1355961600000 * MS},
        {"2012/12/20-12:42:42", "Europe/Berlin", 1356003762000 * MS},
        {"2012/07/20-12:42:42", "Europe/Berlin", 1342780962000 * MS},
        {"1356007362", "", 1356007362000 * MS},
        {"1356007362000", "", 1356007362000 * MS},
        {"1356007362000ms", "", 1356007362000 * MS},
        {"1356007362.5", "", 1356007362500 * MS},
        {"1356007362.123456789", "", INT64_C(1356007362123456789)},
        {"1356007362000.250", "", INT64_C(1356007362000250000)},
        {"0", "", 0},
        {"5ms", "", 5 * MS},
        {" 1356007362 ", "", 1356007362000 * MS},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        int64_t ns = -1;
        struct error e;
        int r = query_parse_time(str_of(facts[i].text), NOW, str_of(facts[i].zone), &ns, &e);
        if (r || ns != facts[i].ns)
            fail_msg("%s: %d %s %lld", facts[i].text, r, r ? e.text : "", (long long)ns);
    }
}

static void invalid_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "-5",
                                      "1h",
                                      "h-ago",
                                      "0h-ago",
                                      "-1h-ago",
                                      "1x-ago",
                                      "2012/13/01",
                                      "2012/02/30",
                                      "2013/02/29",
                                      "2012/1/1",
                                      "2012/12/20-24:00",
                                      "2012/12/20-12",
                                      "2012/12/20-12:60",
                                      "2012/12/20-12:00:60",
                                      "2012/12/20T12:00",
                                      "1969/12/31",
                                      "2300/01/01",
                                      "12345678901234567890123",
                                      "9223372036854775807",
                                      "1356007362.",
                                      "1356007362.5x",
                                      "1356007362s",
                                      "99999999999999999999y-ago",
                                      "9999y-ago",
                                      "1e9",
                                      "now-1h",
                                      "1356007362 5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = -1;
        struct error e = {0};
        if (query_parse_time(str_of(bad[i]), NOW, STR(""), &ns, &e) != -EINVAL || ns != -1 ||
            !e.text[0])
            fail_msg("'%s' was taken for a time", bad[i]);
    }
}

static void civil_dates_go_there_and_back(void **state)
{
    (void)state;
    assert_int_equal(days_of_civil(1970, 1, 1), 0);
    assert_int_equal(days_of_civil(2000, 3, 1), 11017);
    int64_t before = days_of_civil(1599, 12, 31);
    for (int64_t year = 1600; year < 2401; year++)
        for (int month = 1; month <= 12; month++) {
            static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
            bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
            for (int day = 1; day <= lengths[month - 1] + (month == 2 && leap); day++) {
                int64_t y, days = days_of_civil(year, month, day);
                int m, d;
                assert_int_equal(days, ++before);
                civil_of_days(days, &y, &m, &d);
                assert_true(y == year && m == month && d == day);
            }
        }
}

static const struct time_zone *zone_of(const char *name, struct arena *arena)
{
    const struct time_zone *zone = NULL;
    struct error e;
    if (time_zone_load(str_of(name), arena, &zone, &e))
        fail_msg("%s", e.text);
    return zone;
}

static void offsets(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        int64_t utc_s;
        int32_t offset;
    } facts[] = {
        {"", 0, 0},
        {"Europe/Berlin", 1356998400, 3600},
        {"Europe/Berlin", 1364691599, 3600}, // the second before 2013-03-31 01:00 UTC
        {"Europe/Berlin", 1364691600, 7200},
        {"Europe/Berlin", 1382835599, 7200},
        {"Europe/Berlin", 1382835600, 3600},
        {"Europe/Berlin", 4102444800, 3600}, // 2100-01-01: by the rule in the footer
        {"Europe/Berlin", 4118000400, 7200},
        {"America/New_York", 1362898799, -18000},
        {"America/New_York", 1362898800, -14400},
        {"Australia/Sydney", 4102444800, 39600}, // summer across the new year, by the rule
        {"Australia/Sydney", 4118000400, 36000},
        {"Asia/Kolkata", 4102444800, 19800},
        {"Asia/Kathmandu", 1356998400, 20700},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        int32_t offset = time_zone_offset(zone_of(facts[i].zone, &arena), facts[i].utc_s);
        if (offset != facts[i].offset)
            fail_msg("%s at %lld: %d", facts[i].zone, (long long)facts[i].utc_s, (int)offset);
    }
    arena_free(&arena);
}

// About every fourth day of some decades, at varying hours, matches the C library's result from the
// same files.
static void agrees_with_the_c_library(void **state)
{
    (void)state;
    static const char *const zones[] = {
        "Europe/Berlin",     "America/New_York",  "Australia/Lord_Howe",
        "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tehran",
        "Pacific/Apia",      "Europe/Dublin",     "America/Caracas"};
    char *was = getenv("TZ") ? strdup(getenv("TZ")) : NULL;
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        const struct time_zone *zone = zone_of(zones[i], &arena);
        setenv("TZ", zones[i], 1); // allowed, because the test has one thread
        tzset();
        for (int64_t t = 300000000; t < 4200000000; t += 101 * 3600 + 600) {
            time_t clock = (time_t)t;
            struct tm tm;
            localtime_r(&clock, &tm);
            if (tm.tm_gmtoff != time_zone_offset(zone, t))
                fail_msg("%s at %lld: %ld, not %d", zones[i], (long long)t, tm.tm_gmtoff,
                         (int)time_zone_offset(zone, t));
            int64_t local = t + tm.tm_gmtoff, back = time_zone_to_utc(zone, local);
            assert_int_equal(back + time_zone_offset(zone, back), local);
            assert_true(back <= t);
        }
    }
    if (was)
        setenv("TZ", was, 1);
    else
        unsetenv("TZ");
    tzset();
    free(was);
    arena_free(&arena);
}

static void clocks_that_jump(void **state)
{
    (void)state;
    struct arena arena = {0};
    const struct time_zone *berlin = zone_of("Europe/Berlin", &arena);
    int64_t spring = days_of_civil(2013, 3, 31) * SECONDS_PER_DAY,
            autumn = days_of_civil(2013, 10, 27) * SECONDS_PER_DAY;
    // 02:30 does not exist and becomes 03:30
    assert_int_equal(time_zone_to_utc(berlin, spring + 9000), spring + 5400);
    // 02:30 occurs twice: the first one
    assert_int_equal(time_zone_to_utc(berlin, autumn + 9000), autumn + 1800);
    assert_int_equal(time_zone_to_utc(berlin, autumn + 3 * 3600), autumn + 2 * 3600);
    arena_free(&arena);
}

static void unknown_zones_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Europe/Berlim",
        "Europe",
        "/etc/passwd",
        "../zoneinfo/UTC",
        "Europe/../UTC",
        "tzdata.zi",
        "a b",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct time_zone *zone;
        struct error e = {0};
        int r = time_zone_load(str_of(bad[i]), &arena, &zone, &e);
        if ((r != -EINVAL && r != -EBADMSG) || !e.text[0])
            fail_msg("%s: %d %s", bad[i], r, e.text);
    }
    arena_free(&arena);
}

// A valid file that is truncated at many lengths, or has many of its bytes changed, does no harm.
static void damaged_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/sonde-zone-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/Z", folder);
    uint8_t bytes[8192];
    FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    assert_non_null(f);
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    setenv("TZDIR", folder, 1);
    size_t refused = 0;
    for (size_t i = 0; i < 2 * size; i += 3) {
        f = fopen(path, "wb");
        if (i < size) {
            fwrite(bytes, 1, i, f);
        } else {
            bytes[i - size] ^= 0x81;
            fwrite(bytes, 1, size, f);
            bytes[i - size] ^= 0x81;
        }
        fclose(f);
        struct arena arena = {0};
        const struct time_zone *zone;
        int r = time_zone_load(STR("Z"), &arena, &zone, NULL);
        if (r == 0)
            time_zone_to_utc(zone, 4200000000);
        refused += r == -EBADMSG;
        if (i < size)
            assert_int_equal(r, -EBADMSG);
        arena_free(&arena);
    }
    assert_true(refused > size / 3);
    unsetenv("TZDIR");
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_are_times),
        cmocka_unit_test(invalid_texts_are_refused),
        cmocka_unit_test(civil_dates_go_there_and_back),
        cmocka_unit_test(offsets),
        cmocka_unit_test(agrees_with_the_c_library),
        cmocka_unit_test(clocks_that_jump),
        cmocka_unit_test(unknown_zones_are_refused),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
