#include "cli/statistics_spans.h"

#include "base/log.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "report/gather.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void add_number(struct columns *c, double value, bool csv)
{
    char text[NUMBER_TEXT_MAX];
    if (isnan(value))
        columns_cell(c, "%s", csv ? "" : "-");
    else if (csv)
        columns_text(c, (struct str){text, number_format(text, value)});
    else
        columns_cell(c, "%s", words_number(value).text);
}

static void add_share(struct columns *c, double share, bool csv)
{
    char text[WORDS_MAX];
    words_share(share, text);
    if (csv)
        add_number(c, share, true);
    else
        columns_cell(c, "%s", text);
}

static void write_table(const struct report *r, bool csv, struct buf *out)
{
    static const char *const shown[] = {"span",    "count",     "mean s",  "p50 s",
                                        "p95 s",   "max s",     "total s", "share",
                                        "members", "imbalance", "slowest"};
    static const char *const raw[] = {"span",        "count",       "unfinished",  "mean_seconds",
                                      "p50_seconds", "p95_seconds", "max_seconds", "total_seconds",
                                      "share",       "members",     "imbalance",   "slowest"};
    struct columns t = {0};
    if (csv)
        columns_titles(&t, raw, sizeof raw / sizeof *raw);
    else
        columns_titles(&t, shown, sizeof shown / sizeof *shown);
    for (size_t i = 0; i < r->span_count; i++) {
        const struct report_span *s = &r->spans[i];
        const double seconds[] = {s->mean_s, s->p50_s, s->p95_s, s->max_s, s->total_s};
        columns_text(&t, s->name);
        columns_cell(&t, "%llu", (unsigned long long)s->count);
        if (csv)
            columns_cell(&t, "%llu", (unsigned long long)s->unfinished);
        for (size_t k = 0; k < sizeof seconds / sizeof *seconds; k++)
            add_number(&t, seconds[k], csv);
        add_share(&t, s->share, csv);
        columns_cell(&t, "%zu", s->members);
        add_number(&t, s->imbalance, csv);
        columns_text(&t, s->slowest.size ? s->slowest : csv ? STR("") : STR("-"));
    }
    if (csv)
        columns_csv(&t, out);
    else if (r->span_count)
        columns_write(&t, out);
    else
        log_say("no spans in this range");
    columns_free(&t);
}

static int answer(struct data_request *a, struct report *r, struct arena *arena, struct error *e)
{
    const char *name = options_text(a->o, OPT_STATISTICS_SPANS);
    struct data_range range;
    struct buf out = {0};
    if (data_request_range(a->o, &range, e) < 0)
        return command_failed(EXIT_USAGE, e);
    if (report_gather_spans(a->client, name && *name ? name : NULL, range.start_ns, range.end_ns,
                            arena, r, e) < 0)
        return command_failed(EXIT_FAILED, e);
    struct buf missing = {0};
    buf_add_str(&missing, r->missing);
    data_request_missing(a, buf_cstr(&missing));
    buf_free(&missing);
    if (options_flag(a->o, OPT_JSON))
        report_spans_json(r, &out);
    else
        write_table(r, options_flag(a->o, OPT_CSV), &out);
    for (size_t i = 0; i < r->span_count; i++)
        if (r->spans[i].recorded)
            log_say("p50, p95 and max of %.*s are of its first %llu spans",
                    STR_ARG(r->spans[i].name), (unsigned long long)r->spans[i].recorded);
    if (r->spans_cut)
        log_say("there are more spans; these are of the first ones");
    if (r->span_total > r->span_count)
        log_say("and %zu names more: --spans=NAME", r->span_total - r->span_count);
    return command_print(&out);
}

int statistics_spans(const struct options *o)
{
    struct error e = {0};
    struct data_request a;
    struct arena arena = {0};
    struct report *r = calloc(1, sizeof *r);
    int code;
    if (!r)
        code = command_failed(EXIT_FAILED, (error_set(&e, -ENOMEM, "out of memory"), &e));
    else if (data_request_open(o, o->arguments, (size_t)o->argument_count, &a, &e) < 0)
        code = command_failed(EXIT_FAILED, &e);
    else
        code = data_request_close(&a, answer(&a, r, &arena, &e));
    free(r);
    arena_free(&arena);
    return code;
}
