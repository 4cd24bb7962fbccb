// findings_judge.c - the measures of a request for findings: their members, the memory that they
// take, and the verdicts on the members.
#include "faces/native/findings.h"

#include "base/array.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    OFF_GRID_MAX = 1,      // samples by the clock have one more at the end of their process
    SILENT_ROUNDS = 4,     // detect.h's default persistence
    MEMBER_TEXT = 1 << 10, // bytes of a typical member's name and tags, at most
};

int findings_no_memory(struct findings_search *s)
{
    return error_set(s->e, -ENOMEM, "no memory to compare members");
}

// ---- memory

int findings_reserve(struct findings_search *s, size_t measures, size_t members, size_t values,
                     size_t more)
{
    size_t member = sizeof(struct findings_member) + sizeof(int64_t) + sizeof(struct rounds_record);
    size_t bytes = 3 * (measures * sizeof(struct findings_measure) + members * member +
                        values * sizeof(struct rounds_sample)) +
                   members * (size_t)MEMBER_TEXT + measures * detect_bytes(0) +
                   detect_bytes(members) + more;
    return bytes <= s->reserved.bytes ? 0 : reservation_grow(&s->reserved, bytes, s->e);
}

// ---- measures and their members

struct findings_measure *findings_find_measure(struct findings_search *s, bool spans,
                                               struct str name, struct str job)
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
    s->measures[s->measure_count] = (struct findings_measure){.spans = spans,
                                                              .name = arena_str(s->arena, name),
                                                              .job = arena_str(s->arena, job),
                                                              .rounds = {.detect = detect}};
    return &s->measures[s->measure_count++];
}

void findings_forget(struct findings_search *s)
{
    for (size_t i = 0; i < s->measure_count; i++) {
        struct findings_measure *m = &s->measures[i];
        detect_destroy(m->rounds.detect);
        rounds_free(&m->rounds);
        free(m->members);
        free(m->spans_of);
    }
    s->measure_count = s->members = 0;
    map_free(&s->measure_of);
    s->measure_of = (struct map){0};
    reservation_shrink(&s->reserved, 0);
}

void findings_member_name(struct buf *name, const struct store_label *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(name, "%s%.*s=%.*s", i ? "," : "", STR_ARG(tags[i].key), STR_ARG(tags[i].value));
}

long findings_find_member(struct findings_search *s, struct findings_measure *m,
                          const struct store_label *tags, size_t count)
{
    struct buf name = {0};
    findings_member_name(&name, tags, count);
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
    m->members[member] = (struct findings_member){.tags = copy, .tag_count = count};
    m->spans_of[member] = 0;
    s->members++;
    return member;
}

struct str findings_tag(const struct store_label *tags, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(tags[i].key, key))
            return tags[i].value;
    return STR("");
}

// ---- verdicts

static void write_subject(const struct findings_measure *m, struct json_writer *w)
{
    json_key_string(w, m->spans ? "span" : "metric", m->name);
    if (m->job.size)
        json_key_string(w, "job", m->job);
}

static void write_tags(const struct findings_member *m, struct json_writer *w)
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

// `least`: the fewest values of any member that goes on.
static void write_silent(const struct rounds_record *record, const struct findings_member *m,
                         uint64_t least, struct json_writer *w)
{
    json_key_string(w, "state", STR("silent"));
    json_key_u64(w, "rounds", record->missed);
    json_key_u64(w, "values", m->points.count);
    json_key_u64(w, "others", least);
}

static int add_finding(struct findings_search *s, const struct findings_measure *m, size_t member,
                       uint64_t least)
{
    const struct rounds_record *record = &m->rounds.records[member];
    const struct findings_member *of = &m->members[member];
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
        return findings_no_memory(s);
    s->findings[s->finding_count++] =
        (struct findings_entry){record->bad, silent ? INFINITY : record->worst, json};
    return 0;
}

// Returns the fewest values of any member that goes on; 0 if none does.
static uint64_t least_values(const struct findings_measure *m, size_t members)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < members; i++)
        if (!m->rounds.records[i].missed && m->members[i].points.count < least)
            least = m->members[i].points.count;
    return least == UINT64_MAX ? 0 : least;
}

static void find_silent(struct findings_measure *m, size_t members, uint64_t least)
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

static int judge(struct findings_search *s, struct findings_measure *m)
{
    size_t members = detect_members(m->rounds.detect);
    if (members < 2 || m->left_out)
        return 0;
    if (rounds_play(&m->rounds) < 0)
        return findings_no_memory(s);
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

int findings_judge(struct findings_search *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->measure_count && !rc; i++)
        rc = clock_monotonic_ns() > s->deadline_ns
                 ? error_set(s->e, -ETIMEDOUT,
                             "comparing the members took too long (limit query_deadline)")
                 : judge(s, &s->measures[i]);
    findings_forget(s);
    return rc;
}
