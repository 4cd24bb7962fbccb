// civil.h - days since 1970-01-01 and the dates of the Gregorian calendar, without time zones.
#ifndef SONDE_QUERY_CIVIL_H
#define SONDE_QUERY_CIVIL_H

#include <stdint.h>

enum { SECONDS_PER_DAY = 86400 };

// Rounds towards minus infinity; b > 0.
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

// Howard Hinnant's arithmetic: years begin in March, so that the leap day comes last; eras of 400
// years (146,097 days) repeat.
static inline int64_t days_of_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static inline void civil_of_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

#endif
