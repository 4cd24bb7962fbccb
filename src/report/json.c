// json.c - writes a report as JSON; docs/report.md describes its members. Unknown values are left
// out.
#include "base/json_writer.h"
#include "report/programs.h"
#include "report/words.h"

#include <stdio.h>

static void text(struct json_writer *w, const char *key, struct str value)
{
    if (value.size)
        json_key_string(w, key, value);
}

static void number(struct json_writer *w, const char *key, double value)
{
    if (isfinite(value))
        json_key_double(w, key, value);
}

static void begin_list(struct json_writer *w, const char *key)
{
    json_key(w, str_of(key));
    json_begin_array(w);
}

static void pairs(struct json_writer *w, const char *key, const struct report_key *all,
                  size_t count)
{
    if (!count)
        return;
    json_key(w, str_of(key));
    json_begin_object(w);
    for (size_t i = 0; i < count; i++) {
        json_key(w, all[i].key);
        json_put_string(w, all[i].value);
    }
    json_end_object(w);
}

static void write_run(struct json_writer *w, const struct report *r)
{
    text(w, "job", r->job);
    text(w, "name", r->name);
    text(w, "command", r->command);
    text(w, "note", r->note);
    text(w, "directory", r->directory);
    text(w, "commit", r->commit);
    text(w, "branch", r->branch);
    pairs(w, "tags", r->tags, r->tag_count);
    pairs(w, "environment", r->environment, r->environment_count);
    json_key_string(w, "state",
                    r->ended     ? STR("ended")
                    : r->running ? STR("running")
                                 : STR("unknown"));
    json_key_i64(w, "start_ns", r->start_ns);
    json_key_i64(w, "end_ns", r->end_ns);
    if (r->ended)
        json_key_i64(w, "exit_code", r->exit_code);
    json_key_u64(w, "restarts", r->restarts);
    json_key_u64(w, "damaged_blocks", r->damaged_blocks);
    begin_list(w, "nodes");
    for (size_t i = 0; i < r->node_count; i++) {
        json_begin_object(w);
        json_key_string(w, "host", r->nodes[i].host);
        json_key_string(w, "state", r->nodes[i].state);
        if (r->nodes[i].first_ns) {
            json_key_i64(w, "first_ns", r->nodes[i].first_ns);
            json_key_i64(w, "last_ns", r->nodes[i].last_ns);
        }
        json_end_object(w);
    }
    json_end_array(w);
    text(w, "missing", r->missing);
    text(w, "unreadable", r->unreadable);
}

static void write_findings(struct json_writer *w, const struct report *r)
{
    begin_list(w, "findings");
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct report_finding *f = &r->findings[i];
        struct buf line = {0};
        json_begin_object(w);
        json_key_string(w, "kind", str_of(f->kind));
        json_key_string(w, "sureness", str_of(words_sureness(f->sureness)));
        json_key_double(w, "weight", f->weight);
        json_key_string(w, "title", f->title);
        text(w, "evidence", f->evidence);
        text(w, "advice", f->advice);
        number(w, "value", f->value);
        text(w, "unit", str_of(f->unit));
        text(w, "hosts", f->hosts);
        text(w, "m", f->m);
        text(w, "span", f->span);
        json_key_i64(w, "start_ns", f->start_ns);
        json_key_i64(w, "end_ns", f->end_ns);
        report_query_line(r, f, &line);
        text(w, "query", buf_str(&line));
        buf_free(&line);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_uses(struct json_writer *w, const struct report *r)
{
    begin_list(w, "use");
    for (size_t i = 0; i < r->use_count; i++) {
        const struct report_use *u = &r->uses[i];
        json_begin_object(w);
        json_key_string(w, "resource", str_of(u->key));
        json_key_string(w, "unit", str_of(u->unit));
        number(w, "mean", u->mean);
        number(w, "peak", u->peak);
        number(w, "total", u->total);
        json_end_object(w);
    }
    json_end_array(w);
    json_key(w, STR("energy"));
    json_begin_object(w);
    number(w, "nodes_joules", r->energy.node_joules);
    number(w, "gpus_joules", r->energy.gpu_joules);
    number(w, "total_joules", r->energy.total_joules);
    text(w, "covers", r->energy.covers);
    number(w, "grams_co2", r->energy.grams_co2);
    json_end_object(w);
}

static void write_measure(struct json_writer *w, const struct report_measure *m)
{
    if (!m->count)
        return;
    json_begin_object(w);
    json_key_string(w, "metric", m->metric);
    text(w, "unit", m->unit);
    json_key_string(w, "kind", m->counter ? STR("counter") : STR("gauge"));
    begin_list(w, "series");
    for (size_t i = 0; i < m->count; i++) {
        const struct report_line *l = &m->lines[i];
        json_begin_object(w);
        text(w, "host", l->host);
        text(w, "part", l->part);
        number(w, "points", l->points);
        number(w, "mean", l->mean);
        number(w, "peak", l->peak);
        number(w, "total", l->total);
        number(w, "reached", l->reached);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static void write_agreements(struct json_writer *w, const struct report *r)
{
    struct report_agreement all[AGREEMENTS_MAX];
    size_t count = program_agreements(r, all);
    begin_list(w, "agreements");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(w);
        begin_list(w, "metrics");
        json_put_string(w, all[i].a->metric);
        json_put_string(w, all[i].b->metric);
        json_end_array(w);
        number(w, "correlation", all[i].correlation);
        number(w, "difference", all[i].difference);
        number(w, "first_half", all[i].first_half);
        number(w, "second_half", all[i].second_half);
        json_key_u64(w, "buckets", all[i].buckets);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_measures(struct json_writer *w, const struct report *r)
{
    begin_list(w, "metrics");
    for (size_t i = 0; i < REPORT_MEASURES_COUNT; i++)
        write_measure(w, &r->measures[i]);
    for (size_t i = 0; i < r->own_count; i++)
        write_measure(w, &r->own[i]);
    json_end_array(w);
}

static void write_span_rows(struct json_writer *w, const struct report *r)
{
    json_begin_array(w);
    for (size_t i = 0; i < r->span_count; i++) {
        const struct report_span *s = &r->spans[i];
        json_begin_object(w);
        json_key_string(w, "name", s->name);
        json_key_u64(w, "count", s->count);
        json_key_u64(w, "unfinished", s->unfinished);
        if (s->recorded)
            json_key_u64(w, "recorded", s->recorded);
        number(w, "total_seconds", s->total_s);
        number(w, "mean_seconds", s->mean_s);
        number(w, "p50_seconds", s->p50_s);
        number(w, "p95_seconds", s->p95_s);
        number(w, "max_seconds", s->max_s);
        number(w, "share", s->share);
        json_key_u64(w, "members", s->members);
        number(w, "imbalance", s->imbalance);
        text(w, "slowest", s->slowest);
        number(w, "gpu_idle", s->gpu_idle);
        number(w, "cpu_percent", s->cpu_within);
        number(w, "cpu_percent_outside", s->cpu_outside);
        text(w, "inner", s->inner);
        if (s->inner.size)
            number(w, "inner_share", s->inner_share);
        json_end_object(w);
    }
    json_end_array(w);
}

void report_spans_json(const struct report *r, struct buf *out)
{
    struct json_writer w = json_to(out);
    write_span_rows(&w, r);
    buf_add_char(out, '\n');
}

static void write_kernels(struct json_writer *w, const struct report *r)
{
    double all_s = report_kernel_seconds(r);
    begin_list(w, "kernels");
    for (size_t i = 0; i < r->kernel_count; i++) {
        const struct report_kernel *k = &r->kernels[i];
        json_begin_object(w);
        json_key_string(w, "name", k->name);
        number(w, "count", k->count);
        number(w, "total_seconds", k->seconds);
        number(w, "share", k->seconds / all_s);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_stragglers(struct json_writer *w, const struct report *r)
{
    begin_list(w, "stragglers");
    for (size_t i = 0; i < r->straggler_count; i++) {
        const struct report_straggler *s = &r->stragglers[i];
        json_begin_object(w);
        json_key_string(w, s->span ? "span" : "metric", s->what);
        json_key_string(w, "member", s->member);
        json_key_string(w, "state", s->now ? STR("slow") : STR("was slow"));
        json_key_double(w, "factor", s->factor);
        json_key_string(w, "against", s->against);
        json_key_u64(w, "rounds", s->rounds);
        json_key_i64(w, "since_ns", s->since_ns);
        json_key_i64(w, "until_ns", s->until_ns);
        json_end_object(w);
    }
    json_end_array(w);
}

void report_json(const struct report *r, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_begin_object(&w);
    json_key_string(&w, "format", STR("sonde report 1"));
    write_run(&w, r);
    json_key_i64(&w, "from_ns", r->from_ns);
    json_key_i64(&w, "to_ns", r->to_ns);
    write_findings(&w, r);
    write_uses(&w, r);
    json_key(&w, STR("spans"));
    write_span_rows(&w, r);
    write_kernels(&w, r);
    write_stragglers(&w, r);
    write_measures(&w, r);
    write_agreements(&w, r);
    json_end_object(&w);
    buf_add_char(out, '\n');
}
