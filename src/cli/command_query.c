#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/plot.h"
#include "cli/query_lists.h"

#include "base/log.h"
#include "collect/collect.h"

#include <errno.h>
#include <stdio.h>

// ---------------------------------------------------------------- the query

// Converts the client's result to the engine's type, for the functions that print it. Points are
// not copied.
static int view_of(const struct sonde_result *r, struct arena *arena, struct query_result *out,
                   struct error *e)
{
    struct query_series *all = arena_array(arena, sonde_result_count(r), sizeof *all);
    for (size_t i = 0; all && i < sonde_result_count(r); i++) {
        const struct sonde_series *s = sonde_result_series(r, i);
        struct store_label *tags = arena_array(arena, s->tag_count, sizeof *tags);
        struct str *keys = arena_array(arena, s->aggregate_tag_count, sizeof *keys);
        if (!tags || !keys)
            return error_set(e, -ENOMEM, "no memory");
        for (size_t k = 0; k < s->tag_count; k++)
            tags[k] = (struct store_label){str_of(s->tags[k].key), str_of(s->tags[k].value)};
        for (size_t k = 0; k < s->aggregate_tag_count; k++)
            keys[k] = str_of(s->aggregate_tags[k]);
        all[i] = (struct query_series){.metric = str_of(s->metric),
                                       .tags = tags,
                                       .tag_count = s->tag_count,
                                       .aggregate_tags = keys,
                                       .aggregate_tag_count = s->aggregate_tag_count,
                                       .t_ns = s->time_ns,
                                       .values = s->values,
                                       .count = s->count,
                                       .source_series = s->source_series,
                                       .estimated = s->estimated};
    }
    *out = (struct query_result){.series = all, .count = sonde_result_count(r)};
    return all ? 0 : error_set(e, -ENOMEM, "no memory");
}

static struct str unit_of(const struct sonde_result *r, const struct query *q)
{
    // Counts and squares have another unit than the metric.
    bool same = q->aggregator != QUERY_COUNT && q->aggregator != QUERY_SQUARE_SUM;
    return same && sonde_result_count(r) ? str_of(sonde_result_series(r, 0)->unit) : STR("");
}

static int write_answer(const struct options *o, const struct query *q,
                        const struct sonde_result *r, struct arena *arena, struct error *e)
{
    struct query_result result;
    struct buf out = {0};
    enum answers_order order = options_text(o, OPT_PER_SPAN) ? ANSWERS_BY_TIME : ANSWERS_BY_SERIES;
    if (view_of(r, arena, &result, e) < 0)
        return command_failed(EXIT_FAILED, e);
    if (options_flag(o, OPT_PLOT) && result.count)
        plot_series(&out, &result, unit_of(r, q));
    else if (options_flag(o, OPT_JSON))
        answers_json(&out, q, q->metric, &result);
    else if (options_flag(o, OPT_CSV))
        answers_csv(&out, &result, order);
    else if (result.count == 0)
        log_say("no points of %.*s in this range", STR_ARG(q->metric));
    else
        answers_table(&out, &result, unit_of(r, q), order);
    return command_print(&out);
}

static int ask(struct data_request *a, const char *m, const struct query *q,
               const struct data_range *range, struct arena *arena, struct error *e)
{
    struct sonde_query query = {.m = m,
                                .start = range->start,
                                .start_ns = range->start_ns,
                                .end = range->end,
                                .end_ns = range->end_ns,
                                .span = options_text(a->o, OPT_PER_SPAN)};
    struct sonde_result *r = NULL;
    if (query.span && query.start && strcmp(query.start, "first") == 0)
        query.start = "0"; // a span may begin before its first point
    if (data_request_query(a, q->metric, &query, &r, e) < 0)
        return command_failed(EXIT_FAILED, e);
    int code = write_answer(a->o, q, r, arena, e);
    if (!sonde_result_count(r))
        data_request_explain_filters(a, q);
    sonde_result_free(r);
    return code;
}

// Parses an expression. A name without an aggregator, with or without tags, selects every series by
// itself. If names of metrics or values of tags contain colons, the expression needs an aggregator.
static int parse_expression(struct str text, struct arena *arena, const char **m, struct query *q,
                            struct error *e)
{
    struct str rest = text, name = str_cut(&rest, '{');
    bool alone = str_find_char(name, ':') < 0;
    *m = arena_printf(arena, "%s%.*s", alone ? "none:" : "", STR_ARG(text));
    return *m ? query_parse_m(str_of(*m), arena, q, e) : error_set(e, -ENOMEM, "no memory");
}

static int answer(struct data_request *a, const char *m, const struct query *q, struct arena *arena,
                  struct error *e)
{
    struct data_range range;
    if (data_request_range(a->o, &range, e) < 0)
        return command_failed(EXIT_USAGE, e);
    return query_lists_given(a->o) ? query_lists(a, &range) : ask(a, m, q, &range, arena, e);
}

int command_query(const struct options *o)
{
    struct error e;
    struct data_request a;
    struct arena arena = {0};
    struct query q = {0};
    const char *m = NULL;
    int skip = query_lists_given(o) ? 0 : 1, code;
    if (options_flag(o, OPT_JSON) && options_flag(o, OPT_CSV))
        return command_failed(
            EXIT_USAGE, (error_set(&e, -EINVAL, "--json and --csv contradict each other"), &e));
    if (options_flag(o, OPT_PLOT) &&
        (options_flag(o, OPT_JSON) || options_flag(o, OPT_CSV) || query_lists_given(o)))
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL,
                       "--plot draws an expression; it goes with no list, --json or --csv"),
             &e));
    if (query_lists_given(o) > 1)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "choose one of --list, --spans, --annotations and --tags"),
             &e));
    if (o->argument_count < skip)
        return command_failed(
            EXIT_USAGE, (error_set(&e, -EINVAL,
                                   "an expression is missing, as in sonde query cpu_percent, or "
                                   "'avg:1s-avg:cpu_percent'; --list names the series"),
                         &e));
    if (skip && parse_expression(str_of(o->arguments[0]), &arena, &m, &q, &e) < 0)
        code = command_failed(EXIT_USAGE, &e);
    else if (data_request_open(o, o->arguments + skip, (size_t)(o->argument_count - skip), &a, &e) <
             0)
        code = command_failed(EXIT_FAILED, &e);
    else
        code = data_request_close(&a, answer(&a, m, &q, &arena, &e));
    arena_free(&arena);
    return code;
}
