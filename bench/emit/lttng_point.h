// lttng_point.h - the measured tracepoint, which has a number and a value like a point of sonde.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sonde_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_point.h"

#if !defined(SONDE_BENCH_LTTNG_POINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SONDE_BENCH_LTTNG_POINT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(sonde_bench, point, LTTNG_UST_TP_ARGS(uint32_t, metric, double, value),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, metric, metric)
                                                   lttng_ust_field_float(double, value, value)))

#endif

#include <lttng/tracepoint-event.h>
