#include "cli/sources_here.h"

#include "base/clock.h"
#include "collect/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int sources_here(struct source_here out[SOURCES_HERE_MAX], struct error *e)
{
    const struct collect_options options = {
        .root = "", .level = 4, .folder = "/tmp", .uid = geteuid(), .deadline_ns = NS_PER_S};
    struct collect *c;
    int failed = collect_create(&options, &c, e);
    if (failed)
        return failed;
    double *values = calloc(STORE_SET_SERIES_MAX, sizeof *values);
    int count = 0;
    for (; values && count < SOURCES_HERE_MAX && collect_source_name((size_t)count).size; count++)
        out[count] = (struct source_here){.name = collect_source_name((size_t)count)};
    // A new instance has its first values in the sample after its discovery.
    for (int round = 0; values && round < 2; round++) {
        for (size_t i = 0; i < collect_set_count(c); i++) {
            struct collect_set set;
            collect_get_set(c, i, &set);
            int64_t begun = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
            bool gives = collect_sample(c, i, clock_realtime_ns(), values) > 0;
            double cost = (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begun);
            for (int k = 0; k < count; k++) {
                if (!str_eq(out[k].name, set.source))
                    continue;
                out[k].gives = gives;
                out[k].core_share = cost / (double)set.rate_ns;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        struct str reason = collect_reason(c, out[i].name);
        snprintf(out[i].missing, sizeof out[i].missing, "%.*s", STR_ARG(reason));
    }
    collect_destroy(c);
    free(values);
    return values ? count : error_set(e, -ENOMEM, "out of memory");
}

void sources_here_reason(const struct source_here *sources, int count, struct str source,
                         struct buf *out)
{
    size_t before = out->size;
    for (int i = 0; i < count; i++) {
        struct str rest = sources[i].name, rows = str_cut(&rest, '-');
        if (!str_eq(rows, source))
            continue;
        if (sources[i].gives) {
            out->size = before;
            return;
        }
        bool shared = rest.size > 0;
        buf_printf(out, "%s%.*s%s%s", out->size > before ? "; " : "", shared ? (int)rest.size : 0,
                   shared ? rest.data : "", shared ? ": " : "", sources[i].missing);
    }
}
