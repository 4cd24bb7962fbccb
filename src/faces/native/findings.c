// findings.c - /sonde/v1/findings: members that are slower than the others, in everything whose
// values are times. Nobody has to name a metric or a tag.
//
//   measure                                members                            a round
//   a gauge of seconds, not a built-in     its series                         twice the usual step of its points; at most 360 rounds
//   spans of one name                      a node's rank, worker or process   the k-th span of each member
//
// Members of different jobs are not compared. A measure needs two members. detect/detect.h judges,
// with its usual options: `sonde detect` names the same members.
//
// Costs: a round costs some 1 µs a member, so a measure has at most VALUES_MAX values, by longer
// rounds if need be, and an answer at most METRICS_MAX metrics and SPANS_MAX spans.
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "collect/collect.h"
#include "detect/rounds.h"
#include "faces/native/handlers.h"

#include <errno.h>
#include <stdlib.h>

enum {
    VALUES_MAX = 200000,
    METRICS_MAX = 16,
    SPANS_MAX = 100000,
    FINDINGS_MAX = 100, // in an answer, the worst
    ROUNDS_MOST = 360,  // longer rounds are less noisy; of 30 min, 5 s
    ROUNDS_LEAST = 8,   // fewer show nothing: the first five make a verdict
    MEMBER_TAGS_MAX = 4,
};
#define ROUND_LEAST_NS NS_PER_S

struct member {
    const struct store_label *tags;
    size_t tag_count;
};

// What is compared: the series of a metric, or the spans of a name, of one job.
struct measure {
    bool spans;
    struct str name, job; // job: empty unless files of several jobs are read
    int64_t every_ns;     // a round; of spans 0
    struct rounds rounds;
    struct member *members;
    size_t member_capacity;
    int64_t *spans_of; // by member: how many it has had
    size_t spans_of_capacity;
};

struct finding {
    bool now; // it is slow at the end of the range
    double factor;
    struct str json;
};

struct search {
    struct service *service;
    struct reading *reading;
    struct arena *arena;
    int64_t from_ns, to_ns, deadline_ns;
    struct measure *measures; // of one metric, or of all spans
    size_t measure_count, measure_capacity;
    struct map measure_of; // by job and name
    struct finding *findings;
    size_t finding_count, finding_capacity;
    struct buf json; // the list of measures that were compared
    struct error *e;
};

static int no_memory(struct search *s)
{
    return error_set(s->e, -ENOMEM, "no memory to compare members");
}

// ---- measures and their members

static struct measure *find_measure(struct search *s, bool spans, struct str name, struct str job)
{
    char *text = arena_printf(s->arena, "%.*s\n%.*s", STR_ARG(job), STR_ARG(name));
    bool added = false;
    uint64_t *at = text ? map_add(&s->measure_of, str_of(text), &added) : NULL;
    if (!at)
        return NULL;
    if (!added)
        return &s->measures[*at];
    struct detect *detect = detect_create(&(struct detect_options){0});
    if (!detect || !array_room(&s->measures, &s->measure_capacity, s->measure_count + 1,
                               sizeof *s->measures)) {
        detect_destroy(detect);
        return NULL;
    }
    *at = s->measure_count;
    s->measures[s->measure_count] = (struct measure){.spans = spans,
                                                     .name = arena_str(s->arena, name),
                                                     .job = arena_str(s->arena, job),
                                                     .rounds = {.detect = detect}};
    return &s->measures[s->measure_count++];
}

static void forget_measures(struct search *s)
{
    for (size_t i = 0; i < s->measure_count; i++) {
        struct measure *m = &s->measures[i];
        detect_destroy(m->rounds.detect);
        rounds_free(&m->rounds);
        free(m->members);
        free(m->spans_of);
    }
    s->measure_count = 0;
    map_free(&s->measure_of);
    s->measure_of = (struct map){0};
}

// The number of the member with these tags, which are copied; -1: no memory, or too many.
static long find_member(struct search *s, struct measure *m, const struct store_label *tags,
                        size_t count)
{
    struct buf name = {0};
    for (size_t i = 0; i < count; i++)
        buf_printf(&name, "%s%.*s=%.*s", i ? "," : "", STR_ARG(tags[i].key),
                   STR_ARG(tags[i].value));
    size_t before = detect_members(m->rounds.detect);
    long member = name.failed ? -1 : detect_member(m->rounds.detect, buf_str(&name));
    buf_free(&name);
    if (member < 0 || (size_t)member < before)
        return member;
    struct store_label *copy = arena_array(s->arena, count, sizeof *copy);
    if ((count && !copy) ||
        !array_room(&m->members, &m->member_capacity, (size_t)member + 1, sizeof *m->members) ||
        !array_room(&m->spans_of, &m->spans_of_capacity, (size_t)member + 1, sizeof *m->spans_of))
        return -1;
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct store_label){arena_str(s->arena, tags[i].key),
                                       arena_str(s->arena, tags[i].value)};
    m->members[member] = (struct member){copy, count};
    m->spans_of[member] = 0;
    return member;
}

static struct str tag_of(const struct store_label *tags, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(tags[i].key, key))
            return tags[i].value;
    return STR("");
}

// ---- verdicts

static void write_subject(const struct measure *m, struct json_writer *w)
{
    json_key_string(w, m->spans ? "span" : "metric", m->name);
    if (m->job.size)
        json_key_string(w, "job", m->job);
}

static int add_finding(struct search *s, const struct measure *m, size_t member)
{
    const struct rounds_record *record = &m->rounds.records[member];
    const struct detect_verdict *v = detect_verdict_of(m->rounds.detect, member);
    struct buf text = {0};
    struct json_writer w = json_to(&text);
    json_begin_object(&w);
    write_subject(m, &w);
    json_key(&w, STR("tags"));
    json_begin_object(&w);
    for (size_t i = 0; i < m->members[member].tag_count; i++) {
        json_key(&w, m->members[member].tags[i].key);
        json_put_string(&w, m->members[member].tags[i].value);
    }
    json_end_object(&w);
    json_key_string(&w, "state", record->bad ? STR("slow") : STR("was slow"));
    json_key_double(&w, "factor", record->worst);
    json_key_string(&w, "against", record->worst_by_peers ? STR("others") : STR("own best"));
    json_key_double(&w, "score", v->score);
    json_key_u64(&w, "rounds", record->rounds);
    json_key_i64(&w, "since_ns", record->slow_since_ns + s->service->shift_ns);
    json_key_i64(&w, "until_ns", record->until_ns + s->service->shift_ns);
    json_end_object(&w);
    struct str json = text.failed ? (struct str){0} : arena_str(s->arena, buf_str(&text));
    buf_free(&text);
    if (!json.data ||
        !array_room(&s->findings, &s->finding_capacity, s->finding_count + 1, sizeof *s->findings))
        return no_memory(s);
    s->findings[s->finding_count++] = (struct finding){record->bad, record->worst, json};
    return 0;
}

static int judge(struct search *s, struct measure *m)
{
    size_t members = detect_members(m->rounds.detect);
    if (members < 2)
        return 0;
    if (rounds_play(&m->rounds) < 0)
        return no_memory(s);
    struct json_writer w = json_to(&s->json);
    if (s->json.size)
        buf_add_char(&s->json, ',');
    json_begin_object(&w);
    write_subject(m, &w);
    json_key_u64(&w, "members", members);
    json_key_u64(&w, "rounds", m->rounds.rounds);
    if (m->every_ns)
        json_key_i64(&w, "every_ns", m->every_ns);
    json_end_object(&w);
    int rc = 0;
    for (size_t i = 0; i < members && !rc; i++)
        if (m->rounds.records[i].worst > 0)
            rc = add_finding(s, m, i);
    return rc;
}

static int judge_all(struct search *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->measure_count && !rc; i++)
        rc = clock_monotonic_ns() > s->deadline_ns
                 ? error_set(s->e, -ETIMEDOUT,
                             "comparing the members took too long (limit query_deadline)")
                 : judge(s, &s->measures[i]);
    forget_measures(s);
    return rc;
}

// ---- metrics

static bool is_time(const struct store_metric *m)
{
    if (m->kind != STORE_GAUGE || collect_find(m->name))
        return false;
    return str_eq(m->unit, STR("seconds")) || str_eq(m->name, STR("slow-gpu")) ||
           str_ends(m->name, STR("_seconds"));
}

// The names of metrics that hold times, each once.
static int list_metrics(struct search *s, struct str names[METRICS_MAX], size_t *count)
{
    struct query_series_filter f = {.from_ns = INT64_MIN};
    const struct query_listed *all;
    size_t listed;
    *count = 0;
    int rc = reading_series(s->reading, &f, &all, &listed, s->e);
    // Sorted by metric: the same name again stands right behind.
    for (size_t i = 0; i < listed && !rc && *count < METRICS_MAX; i++)
        if ((i == 0 || !str_eq(all[i].metric->name, all[i - 1].metric->name)) &&
            is_time(all[i].metric))
            names[(*count)++] = all[i].metric->name;
    return rc;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// How a metric is cut into rounds.
struct cut {
    int64_t every_ns; // 0: there are too few points to compare
    int64_t first_ns, last_ns;
};

// A round is twice the usual step between two points, and as long as ROUNDS_MOST and VALUES_MAX
// need.
static int choose_rounds(struct search *s, struct str name, struct cut *out)
{
    struct query_series_filter f = {.metric = name,
                                    .from_ns = INT64_MIN,
                                    .points = true,
                                    .points_from_ns = s->from_ns,
                                    .points_to_ns = s->to_ns};
    const struct query_listed *all;
    size_t count, steps = 0;
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    *out = (struct cut){0};
    int rc = reading_series(s->reading, &f, &all, &count, s->e);
    if (rc)
        return rc;
    int64_t *step_ns = arena_array(s->arena, count, sizeof *step_ns);
    if (count && !step_ns)
        return no_memory(s);
    for (size_t i = 0; i < count; i++) {
        const struct query_listed_points *p = &all[i].points;
        if (p->count < 2)
            continue;
        step_ns[steps++] = (p->last_ns - p->first_ns) / (int64_t)(p->count - 1);
        first_ns = p->first_ns < first_ns ? p->first_ns : first_ns;
        last_ns = p->last_ns > last_ns ? p->last_ns : last_ns;
    }
    if (steps < 2 || steps > VALUES_MAX / ROUNDS_LEAST)
        return 0;
    qsort(step_ns, steps, sizeof *step_ns, ascending);
    int64_t round_ns = 2 * step_ns[steps / 2];
    size_t most = VALUES_MAX / steps < ROUNDS_MOST ? VALUES_MAX / steps : ROUNDS_MOST;
    int64_t least_ns = (last_ns - first_ns) / (int64_t)most;
    round_ns = round_ns < least_ns ? least_ns : round_ns;
    round_ns = round_ns < ROUND_LEAST_NS ? ROUND_LEAST_NS : round_ns;
    // Whole seconds, so that the expression of the command line can say the same.
    out->every_ns = (round_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
    out->first_ns = first_ns - first_ns % out->every_ns; // an answer leaves out a part of a bucket
    out->last_ns = last_ns;
    return 0;
}

static int take_metric(struct search *s, struct str name, const struct cut *cut)
{
    struct arena work = {0};
    struct query q;
    struct query_result result = {0};
    char *m = arena_printf(&work, "none:%llds-avg:x", (long long)(cut->every_ns / NS_PER_S));
    int rc = m ? query_parse_m(str_of(m), &work, &q, s->e) : no_memory(s);
    if (!rc) {
        q.metric = name;
        q.start_ns = cut->first_ns;
        q.end_ns = cut->last_ns;
        rc = reading_run(s->reading, q, &work, &result, s->e);
    }
    for (size_t i = 0; i < result.count && !rc; i++) {
        const struct query_series *series = &result.series[i];
        struct measure *into =
            find_measure(s, false, name, tag_of(series->tags, series->tag_count, STR("job")));
        long member = into ? find_member(s, into, series->tags, series->tag_count) : -1;
        if (member < 0)
            rc = no_memory(s);
        else
            into->every_ns = cut->every_ns;
        for (size_t k = 0; k < series->count && !rc; k++)
            if (rounds_add(&into->rounds,
                           (struct rounds_sample){series->t_ns[k], series->t_ns[k], (size_t)member,
                                                  series->values[k]}) < 0)
                rc = no_memory(s);
    }
    arena_free(&work);
    return rc;
}

static int compare_metrics(struct search *s)
{
    struct str names[METRICS_MAX];
    size_t count;
    int rc = list_metrics(s, names, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        struct cut cut;
        rc = choose_rounds(s, names[i], &cut);
        if (!rc && cut.every_ns)
            rc = take_metric(s, names[i], &cut);
        if (!rc)
            rc = judge_all(s);
    }
    return rc;
}

// ---- spans

struct span {
    int64_t start_ns, end_ns;
    size_t measure, member;
};

struct span_list {
    struct search *search;
    struct span *spans;
    size_t count, capacity;
    bool failed;
};

// The node, and what tells the members of a node apart: the first of these tags that a span has.
static size_t member_tags(const struct store_event *event, struct str host,
                          struct store_label out[MEMBER_TAGS_MAX])
{
    static const struct str keys[] = {STR("rank"), STR("worker"), STR("pid")};
    struct str own = tag_of(event->labels, event->label_count, STR("host"));
    size_t count = 0;
    if (own.size || host.size)
        out[count++] = (struct store_label){STR("host"), own.size ? own : host};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct str value = tag_of(event->labels, event->label_count, keys[i]);
        if (!value.size)
            continue;
        out[count++] = (struct store_label){keys[i], value};
        break;
    }
    return count;
}

static bool take_span(const struct store_event *event, struct str host,
                      const struct store_label *file_label, void *user)
{
    struct span_list *l = user;
    if (event->kind != STORE_SPAN || event->end_ns == INT64_MAX ||
        tag_of(event->labels, event->label_count, STR(STORE_UNFINISHED_TAG)).size)
        return true;
    struct str job =
        file_label && str_eq(file_label->key, STR("job")) ? file_label->value : STR("");
    struct store_label tags[MEMBER_TAGS_MAX];
    struct measure *m = find_measure(l->search, true, event->text, job);
    long member = m ? find_member(l->search, m, tags, member_tags(event, host, tags)) : -1;
    l->failed = member < 0 || !array_room(&l->spans, &l->capacity, l->count + 1, sizeof *l->spans);
    if (l->failed)
        return false;
    l->spans[l->count++] = (struct span){event->start_ns, event->end_ns,
                                         (size_t)(m - l->search->measures), (size_t)member};
    return l->count < SPANS_MAX;
}

static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_spans(struct search *s)
{
    struct span_list l = {.search = s};
    struct store_events_wanted wanted = {
        .from_ns = s->from_ns, .to_ns = s->to_ns, .kinds = 1u << STORE_SPAN, .most = SPANS_MAX};
    int rc = reading_events(s->reading, &wanted, take_span, &l, s->e);
    if (!rc && l.failed)
        rc = no_memory(s);
    if (l.count)
        qsort(l.spans, l.count, sizeof *l.spans, by_start);
    for (size_t i = 0; i < l.count && !rc; i++) {
        const struct span *p = &l.spans[i];
        struct measure *m = &s->measures[p->measure];
        if (rounds_add(&m->rounds,
                       (struct rounds_sample){m->spans_of[p->member]++, p->end_ns, p->member,
                                              (double)(p->end_ns - p->start_ns) / NS_PER_S}) < 0)
            rc = no_memory(s);
    }
    free(l.spans);
    if (rc) {
        forget_measures(s);
        return rc;
    }
    return judge_all(s);
}

// ---- the answer

static int worst_first(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if (x->now != y->now)
        return x->now ? -1 : 1;
    return (x->factor < y->factor) - (x->factor > y->factor);
}

static int write_findings(struct search *s, struct json_writer *w)
{
    int rc = compare_metrics(s);
    if (!rc)
        rc = compare_spans(s);
    if (!rc && s->json.failed)
        rc = no_memory(s);
    if (s->finding_count)
        qsort(s->findings, s->finding_count, sizeof *s->findings, worst_first);
    json_key_u64(w, "total", s->finding_count);
    json_key(w, STR("findings"));
    json_begin_array(w);
    for (size_t i = 0; i < s->finding_count && i < FINDINGS_MAX && !rc; i++)
        json_put_raw(w, s->findings[i].json);
    json_end_array(w);
    json_key(w, STR("measures"));
    json_begin_array(w);
    if (s->json.size)
        json_put_raw(w, buf_str(&s->json));
    json_end_array(w);
    return rc;
}

void native_findings(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    struct search s = {.service = service,
                       .reading = &d,
                       .arena = &r->arena,
                       .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns,
                       .e = &e};
    int rc = native_times(service, r, &s.from_ns, &s.to_ns, &e);
    if (!rc)
        rc = service_read(service, r, s.to_ns, &d, &e);
    if (rc) {
        answer_failure(a, &e);
        return;
    }
    struct json_writer w = json_to(&a->body);
    json_begin_object(&w);
    rc = write_findings(&s, &w);
    forget_measures(&s);
    free(s.measures);
    free(s.findings);
    buf_free(&s.json);
    reading_write_missing(&d, &w);
    json_end_object(&w);
    if (rc)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
