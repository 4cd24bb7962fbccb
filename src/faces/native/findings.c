// findings.c - /sonde/v1/findings: finds members that are slower than the others, in all metrics
// and spans that measure times. The client need not name a metric or a tag.
//
//   measure                              members              a round
//   a gauge of seconds, no built-in      its series           twice the usual step of its points;
//                                                             at most 360 rounds
//   spans of one name                    a node's rank,       the k-th span of each member
//                                        worker or process
//
// Members of different jobs are not compared. A measure needs two members. detect/detect.h judges,
// with its usual options: `sonde detect` names the same slow members.
//
// A member of a metric is silent if it has given no value in the last rounds although the others
// have, and the recording proves that it should have: its node goes on, its values are not samples
// by the clock (those end with their process), and every member that goes on has given more of
// them. So a member that has finished first is not silent.
//
// Costs: a value takes 1 to 10 µs, because a round may judge the 32 before it again. A measure has
// at most VALUES_MAX values, all metrics together VALUES_ALL_MAX (at most some 4 s), by longer
// rounds if need be; an answer has at most METRICS_MAX metrics and SPANS_MAX spans.
// Memory: 96 bytes a value or span while it is compared, 4 KB a member; for 100,000 values of 1,000
// members 14 MB. All of it is reserved with the request before it is allocated.
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "collect/collect.h"
#include "detect/rounds.h"
#include "faces/native/handlers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    VALUES_MAX = 100000,
    VALUES_ALL_MAX = 400000,
    METRICS_MAX = 16,
    SPANS_MAX = 100000,
    FINDINGS_MAX = 100, // in an answer: the worst ones
    ROUNDS_MOST = 360,  // longer rounds are less noisy; for 30 min, rounds of 5 s
    ROUNDS_LEAST = 8,   // fewer rounds show nothing, because the first five make a verdict
    MEMBER_TAGS_MAX = 4,
    OFF_GRID_MAX = 1,  // samples by the clock have one more at the end of their process
    SILENT_ROUNDS = 4, // detect.h's usual persistence
    SPANS_STEP = 1 << 12,
    MEMBERS_STEP = 1 << 5,
    MEMBER_TEXT = 1 << 10, // its name and tags, at most but for odd ones
};
#define ROUND_LEAST_NS NS_PER_S
#define GRID_NS (10 * NS_PER_MS) // samples lie on whole multiples of their interval

struct member {
    const struct store_label *tags;
    size_t tag_count;
    struct query_listed_points points; // of a metric; count 0: not known
};

// One comparison: the series of a metric, or the spans of a name, of one job.
struct measure {
    bool spans;
    struct str name, job; // job: empty unless the files belong to several jobs
    int64_t every_ns;     // length of a round; 0 for spans
    struct rounds rounds;
    struct member *members;
    size_t member_capacity;
    int64_t *spans_of; // by member: number of its spans so far
    size_t spans_of_capacity;
};

struct finding {
    bool now;      // it is slow or silent at the end of the range
    double factor; // silent: infinite
    struct str json;
};

struct search {
    struct service *service;
    struct reading *reading;
    struct arena *arena;
    int64_t from_ns, to_ns, deadline_ns;
    struct reservation held;
    size_t values_left;       // of VALUES_ALL_MAX
    size_t members;           // of all measures
    struct measure *measures; // of one metric, or of all spans
    size_t measure_count, measure_capacity;
    struct map measure_of; // by job and name
    struct finding *findings;
    size_t finding_count, finding_capacity;
    struct buf json; // the list of compared measures
    struct error *e;
};

static int no_memory(struct search *s)
{
    return error_set(s->e, -ENOMEM, "no memory to compare members");
}

// ---- memory

// Reserves the memory of so many measures, members of all of them, and their values, beside `more`
// bytes. Arrays double, and an array that grows exists twice for a moment: up to three times its
// elements.
static int hold(struct search *s, size_t measures, size_t members, size_t values, size_t more)
{
    size_t member = sizeof(struct member) + sizeof(int64_t) + sizeof(struct rounds_record);
    size_t bytes = 3 * (measures * sizeof(struct measure) + members * member +
                        values * sizeof(struct rounds_sample)) +
                   members * (size_t)MEMBER_TEXT + measures * detect_bytes(0) +
                   detect_bytes(members) + more;
    return bytes <= s->held.bytes ? 0 : reservation_grow(&s->held, bytes, s->e);
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
    s->measure_count = s->members = 0;
    map_free(&s->measure_of);
    s->measure_of = (struct map){0};
    reservation_shrink(&s->held, 0);
}

static void add_name(struct buf *name, const struct store_label *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(name, "%s%.*s=%.*s", i ? "," : "", STR_ARG(tags[i].key), STR_ARG(tags[i].value));
}

// The number of the member with these tags, which are copied; -1: out of memory, or too many
// members.
static long find_member(struct search *s, struct measure *m, const struct store_label *tags,
                        size_t count)
{
    struct buf name = {0};
    add_name(&name, tags, count);
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
    m->members[member] = (struct member){.tags = copy, .tag_count = count};
    m->spans_of[member] = 0;
    s->members++;
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

static void write_tags(const struct member *m, struct json_writer *w)
{
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (size_t i = 0; i < m->tag_count; i++) {
        json_key(w, m->tags[i].key);
        json_put_string(w, m->tags[i].value);
    }
    json_end_object(w);
}

static void write_slow(const struct rounds_record *record, const struct detect_verdict *v,
                       struct json_writer *w)
{
    json_key_string(w, "state", record->bad ? STR("slow") : STR("was slow"));
    json_key_double(w, "factor", record->worst);
    json_key_string(w, "against", record->worst_by_peers ? STR("others") : STR("own best"));
    json_key_double(w, "score", v->score);
    json_key_u64(w, "rounds", record->rounds);
}

// `least`: the fewest values of a member that goes on.
static void write_silent(const struct rounds_record *record, const struct member *m, uint64_t least,
                         struct json_writer *w)
{
    json_key_string(w, "state", STR("silent"));
    json_key_u64(w, "rounds", record->missed);
    json_key_u64(w, "values", m->points.count);
    json_key_u64(w, "others", least);
}

static int add_finding(struct search *s, const struct measure *m, size_t member, uint64_t least)
{
    const struct rounds_record *record = &m->rounds.records[member];
    const struct member *of = &m->members[member];
    bool silent = record->bad && record->was_silent;
    int64_t since_ns = silent ? of->points.last_ns : record->slow_since_ns;
    struct buf text = {0};
    struct json_writer w = json_to(&text);
    json_begin_object(&w);
    write_subject(m, &w);
    write_tags(of, &w);
    if (silent)
        write_silent(record, of, least, &w);
    else
        write_slow(record, detect_verdict_of(m->rounds.detect, member), &w);
    json_key_i64(&w, "since_ns", since_ns + s->service->shift_ns);
    json_key_i64(&w, "until_ns", record->until_ns + s->service->shift_ns);
    json_end_object(&w);
    struct str json = text.failed ? (struct str){0} : arena_str(s->arena, buf_str(&text));
    buf_free(&text);
    if (!json.data ||
        !array_room(&s->findings, &s->finding_capacity, s->finding_count + 1, sizeof *s->findings))
        return no_memory(s);
    s->findings[s->finding_count++] =
        (struct finding){record->bad, silent ? INFINITY : record->worst, json};
    return 0;
}

// The fewest values of a member that goes on; 0: none does.
static uint64_t least_values(const struct measure *m, size_t members)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < members; i++)
        if (!m->rounds.records[i].missed && m->members[i].points.count < least)
            least = m->members[i].points.count;
    return least == UINT64_MAX ? 0 : least;
}

static void find_silent(struct measure *m, size_t members, uint64_t least)
{
    int64_t newest_ns = INT64_MIN;
    for (size_t i = 0; i < members; i++) {
        const struct query_listed_points *p = &m->members[i].points;
        newest_ns = p->count && p->node_last_ns > newest_ns ? p->node_last_ns : newest_ns;
    }
    for (size_t i = 0; i < members; i++) {
        const struct query_listed_points *p = &m->members[i].points;
        if (m->rounds.records[i].missed && p->count && p->count < least &&
            p->off_grid > OFF_GRID_MAX &&
            newest_ns - p->node_last_ns <= SILENT_ROUNDS * m->every_ns)
            rounds_count_missed(&m->rounds.records[i]);
    }
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
    uint64_t least = m->spans ? 0 : least_values(m, members);
    find_silent(m, members, least);
    for (size_t i = 0; i < members && !rc; i++)
        if (m->rounds.records[i].worst > 0 || m->rounds.records[i].bad)
            rc = add_finding(s, m, i, least);
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

// Lists the names of metrics that measure times, without duplicates.
static int list_metrics(struct search *s, struct str names[METRICS_MAX], size_t *count)
{
    struct query_series_filter f = {.from_ns = INT64_MIN};
    const struct query_listed *all;
    size_t listed;
    *count = 0;
    int rc = reading_series(s->reading, &f, &all, &listed, s->e);
    // The list is sorted by metric, so equal names are adjacent.
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

// The rounds of a metric.
struct cut {
    int64_t every_ns; // 0: too few points to compare
    int64_t first_ns, last_ns;
    size_t values; // at most, of all members
    const struct query_listed *series;
    size_t series_count;
};

// A round is twice the usual step between two points, or longer to respect ROUNDS_MOST and
// `values_max`.
static int choose_rounds(struct search *s, struct str name, size_t values_max, struct cut *out)
{
    struct query_series_filter f = {.metric = name,
                                    .from_ns = INT64_MIN,
                                    .points = true,
                                    .points_from_ns = s->from_ns,
                                    .points_to_ns = s->to_ns,
                                    .grid_ns = GRID_NS};
    const struct query_listed *all;
    size_t count, steps = 0;
    int64_t longest_ns = 0; // of a series, because runs may lie days apart
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
        longest_ns = p->last_ns - p->first_ns > longest_ns ? p->last_ns - p->first_ns : longest_ns;
        first_ns = p->first_ns < first_ns ? p->first_ns : first_ns;
        last_ns = p->last_ns > last_ns ? p->last_ns : last_ns;
    }
    if (steps < 2 || steps > values_max / ROUNDS_LEAST)
        return 0;
    qsort(step_ns, steps, sizeof *step_ns, ascending);
    int64_t round_ns = 2 * step_ns[steps / 2];
    size_t most = values_max / steps < ROUNDS_MOST ? values_max / steps : ROUNDS_MOST;
    int64_t least_ns = longest_ns / (int64_t)most;
    round_ns = round_ns < least_ns ? least_ns : round_ns;
    round_ns = round_ns < ROUND_LEAST_NS ? ROUND_LEAST_NS : round_ns;
    // Whole seconds, so that an expression on the command line can express the same.
    out->every_ns = (round_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
    out->first_ns = first_ns - first_ns % out->every_ns; // answers exclude a partial bucket
    out->last_ns = last_ns;
    out->series = all;
    out->series_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct query_listed_points *p = &all[i].points;
        size_t rounds = p->count ? (size_t)((p->last_ns - p->first_ns) / out->every_ns) + 2 : 0;
        out->values += p->count < rounds ? (size_t)p->count : rounds;
    }
    return 0;
}

// What the listing says of the members of a metric.
static int note_points(struct search *s, struct measure *m, const struct cut *cut)
{
    struct buf name = {0};
    for (size_t i = 0; i < cut->series_count; i++) {
        name.size = 0;
        add_name(&name, cut->series[i].labels, cut->series[i].label_count);
        long member = name.failed ? -1 : detect_find(m->rounds.detect, buf_str(&name));
        if (member >= 0)
            m->members[member].points = cut->series[i].points;
    }
    bool failed = name.failed;
    buf_free(&name);
    return failed ? no_memory(s) : 0;
}

static int take_metric(struct search *s, struct str name, const struct cut *cut)
{
    struct arena work = {0};
    struct query q;
    struct query_result result = {0};
    size_t members = cut->series_count, column = sizeof(int64_t) + sizeof(double);
    int rc = hold(s, 1, members, cut->values, cut->values * column);
    if (rc)
        return rc;
    char *m = arena_printf(&work, "none:%llds-avg:x", (long long)(cut->every_ns / NS_PER_S));
    rc = m ? query_parse_m(str_of(m), &work, &q, s->e) : no_memory(s);
    if (!rc) {
        q.metric = name;
        q.start_ns = cut->first_ns;
        q.end_ns = cut->last_ns;
        rc = reading_run(s->reading, q, &work, &result, s->e);
    }
    for (size_t i = 0; i < result.count && !rc; i++) {
        const struct query_series *series = &result.series[i];
        rc = hold(s, s->measure_count + 1, members, cut->values, cut->values * column);
        if (rc)
            break;
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
        s->values_left -= series->count < s->values_left ? series->count : s->values_left;
    }
    for (size_t i = 0; i < s->measure_count && !rc; i++)
        rc = note_points(s, &s->measures[i], cut);
    arena_free(&work);
    return rc;
}

static int compare_metrics(struct search *s)
{
    struct str names[METRICS_MAX];
    size_t count;
    int rc = list_metrics(s, names, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        // A metric with few values leaves its share to those behind it.
        size_t share = s->values_left / (count - i);
        struct cut cut;
        rc = choose_rounds(s, names[i], share < VALUES_MAX ? share : VALUES_MAX, &cut);
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
    int rc;
};

// The tags of a span's member: its node, and the first of these tags that the span has.
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
    struct search *s = l->search;
    if (event->kind != STORE_SPAN || event->end_ns == INT64_MAX ||
        tag_of(event->labels, event->label_count, STR(STORE_UNFINISHED_TAG)).size)
        return true;
    struct str job =
        file_label && str_eq(file_label->key, STR("job")) ? file_label->value : STR("");
    struct store_label tags[MEMBER_TAGS_MAX];
    // A step more than there are, as the watch takes a lock.
    size_t spans = l->count + SPANS_STEP - l->count % SPANS_STEP;
    size_t members = s->members + MEMBERS_STEP - s->members % MEMBERS_STEP;
    size_t measures = s->measure_count + MEMBERS_STEP - s->measure_count % MEMBERS_STEP;
    l->rc = hold(s, measures, members, spans, 3 * spans * sizeof *l->spans);
    if (l->rc)
        return false;
    struct measure *m = find_measure(s, true, event->text, job);
    long member = m ? find_member(s, m, tags, member_tags(event, host, tags)) : -1;
    if (member < 0 || !array_room(&l->spans, &l->capacity, l->count + 1, sizeof *l->spans)) {
        l->rc = no_memory(s);
        return false;
    }
    l->spans[l->count++] =
        (struct span){event->start_ns, event->end_ns, (size_t)(m - s->measures), (size_t)member};
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
    if (!rc)
        rc = l.rc;
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
                       .values_left = VALUES_ALL_MAX,
                       .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns,
                       .e = &e};
    int rc = native_times(service, r, &s.from_ns, &s.to_ns, &e);
    if (!rc)
        rc = service_read(service, r, s.to_ns, &d, &e);
    if (rc) {
        answer_failure(a, &e);
        return;
    }
    s.held.watch = d.request.watch;
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
