// command_detect.c - finds members that are slower than the others, in a recording or in the data
// of a running job.
//
// It converts metrics and spans to samples (round, member, value), and passes them to detect.h
// round by round.
#include "base/array.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/detect_evidence.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/answers.h"
#include "detect/rounds.h"
#include "launch/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BY_MAX = 8 }; // maximum number of keys in --by

// The data of a member, beside its verdict and its rounds.
struct record {
    struct str host; // empty: its series have no tag `host`
    int64_t spans;   // number of spans so far
    bool ended;      // it has ended: no more values, and no evidence that it hangs
};

struct work {
    const struct options *o;
    struct str by[BY_MAX];
    size_t by_count;
    struct arena arena;
    struct detect *detect;
    struct rounds rounds;
    struct record *records; // one for each member
    size_t records_capacity;
    struct str metric; // or the name of a span
    struct data_range range;
    struct sonde_result *result;
    struct evidence *evidence; // one for each member; NULL: no member is silent
    struct error *e;
    int status;
};

// ---------------------------------------------------------------- members

static struct str label_value(const struct store_label *labels, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(labels[i].key, key))
            return labels[i].value;
    return (struct str){0};
}

// Makes the name "host=n3,gpu=0" of those keys of --by that exist. If none exists, uses all tags,
// so that an expression's groups stay distinct.
static struct str member_name(struct work *w, const struct store_label *labels, size_t count)
{
    struct buf name = {0};
    for (size_t i = 0; i < w->by_count; i++) {
        struct str value = label_value(labels, count, w->by[i]);
        if (value.size)
            buf_printf(&name, "%s%.*s=%.*s", name.size ? "," : "", STR_ARG(w->by[i]),
                       STR_ARG(value));
    }
    for (size_t i = 0; i < count && !w->by_count; i++)
        buf_printf(&name, "%s%.*s=%.*s", i ? "," : "", STR_ARG(labels[i].key),
                   STR_ARG(labels[i].value));
    char *copy = arena_strdup(&w->arena, buf_str(&name));
    buf_free(&name);
    return copy ? str_of(copy) : (struct str){0};
}

// Returns the number of the known member with these labels; -1: none.
static long known_member(void *user, const struct store_label *labels, size_t count)
{
    struct work *w = user;
    struct str name = member_name(w, labels, count);
    return name.data ? detect_find(w->detect, name) : -1;
}

// Finds or adds a member. Returns its number, or -1 with the reason in w->status.
static long find_member(struct work *w, const struct store_label *labels, size_t count)
{
    struct str name = member_name(w, labels, count);
    long member = name.data ? detect_member(w->detect, name) : -1;
    if (member < 0) {
        w->status = detect_members(w->detect) == DETECT_MEMBERS_MAX
                        ? error_set(w->e, -E2BIG, "more than %d members: --by takes coarser tags",
                                    DETECT_MEMBERS_MAX)
                        : error_set(w->e, -ENOMEM, "no memory");
        return -1;
    }
    if (!array_room_zeroed(&w->records, &w->records_capacity, (size_t)member + 1,
                           sizeof *w->records)) {
        w->status = error_set(w->e, -ENOMEM, "no memory");
        return -1;
    }
    struct record *record = &w->records[member];
    struct str host = label_value(labels, count, STR("host"));
    if (!record->host.size && host.size) {
        char *copy = arena_strdup(&w->arena, host);
        record->host = copy ? str_of(copy) : (struct str){0};
    }
    return member;
}

static void add_sample(struct work *w, struct rounds_sample s)
{
    int status = rounds_add(&w->rounds, s);
    if (status == -E2BIG)
        w->status =
            error_set(w->e, -E2BIG, "more than %d values: ask for less time or longer rounds",
                      ROUNDS_SAMPLES_MAX);
    else if (status < 0)
        w->status = error_set(w->e, -ENOMEM, "no memory");
}

// ---------------------------------------------------------------- reading values

// Parses the argument. The name of a metric means its average by member and round. *m is the query.
static int parse_what(struct work *w, const char *what, const char **m, struct query *q)
{
    struct buf text = {0};
    struct str rest = str_of(what), first = str_cut(&rest, ':');
    if (rest.data &&
        // It is an expression. A metric's name may contain colons, too.
        query_aggregator_of(first) != QUERY_AGGREGATOR_COUNT) {
        w->by_count = w->o->value[OPT_BY].source == FROM_DEFAULT ? 0 : w->by_count;
        *m = what;
        return query_parse_m(str_of(what), &w->arena, q, w->e);
    }
    buf_printf(&text, "avg:%lldms-avg:%s{",
               (long long)(options_number(w->o, OPT_EVERY) * 1000 + 0.5), what);
    for (size_t i = 0; i < w->by_count; i++)
        buf_printf(&text, "%s%.*s=*", i ? "," : "", STR_ARG(w->by[i]));
    buf_add_char(&text, '}');
    *m = arena_strdup(&w->arena, buf_str(&text)); // the query points into this copy
    buf_free(&text);
    return *m ? query_parse_m(str_of(*m), &w->arena, q, w->e)
              : error_set(w->e, -ENOMEM, "no memory");
}

// Converts the client's tags to labels in the arena; NULL: out of memory.
static struct store_label *labels_of(struct work *w, const struct sonde_tag *tags, size_t count)
{
    struct store_label *labels = arena_array(&w->arena, count, sizeof *labels);
    for (size_t i = 0; labels && i < count; i++)
        labels[i] = (struct store_label){str_of(tags[i].key), str_of(tags[i].value)};
    return labels;
}

static int take_metric(struct work *w, struct data_request *a, const char *m, const struct query *q)
{
    struct sonde_query query = {.m = m,
                                .start = w->range.start,
                                .start_ns = w->range.start_ns,
                                .end = w->range.end,
                                .end_ns = w->range.end_ns};
    bool groups = w->by_count == 0;
    int status = data_request_query(a, q->metric, &query, &w->result, w->e);
    const struct sonde_series *first = status ? NULL : sonde_result_series(w->result, 0);
    w->metric = first ? str_of(first->metric) : q->metric;
    for (size_t i = 0; status == 0 && w->status == 0 && i < sonde_result_count(w->result); i++) {
        const struct sonde_series *s = sonde_result_series(w->result, i);
        struct store_label *labels = labels_of(w, s->tags, s->tag_count);
        if (!labels)
            return error_set(w->e, -ENOMEM, "no memory");
        long member = find_member(w, labels, s->tag_count);
        for (size_t k = 0; k < s->count && w->status == 0; k++)
            add_sample(w, (struct rounds_sample){s->time_ns[k], s->time_ns[k], (size_t)member,
                                                 s->values[k]});
    }
    // The grouping keys of an expression distinguish recorded series, too.
    for (size_t i = 0; first && groups && i < first->tag_count && i < BY_MAX; i++)
        w->by[w->by_count++] = str_of(first->tags[i].key);
    if (status == 0 && !first)
        data_request_explain_filters(a, q);
    return status < 0 ? status : w->status;
}

static int by_end(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t s = data_request_number(x, "start_ns"), t = data_request_number(y, "start_ns");
    return (s > t) - (s < t);
}

// Reads ended spans in order of their start.
static int take_spans(struct work *w, struct data_request *a, const char *name)
{
    json_t *spans;
    size_t n = 0;
    w->metric = str_of(name);
    int status = data_request_spans(a, &w->range, name, false, &spans, w->e);
    if (status)
        return status;
    json_t **rows = calloc(json_array_size(spans) + 1, sizeof *rows);
    for (size_t i = 0; rows && i < json_array_size(spans); i++) {
        json_t *row = json_array_get(spans, i);
        if (json_object_get(row, "end_ns") &&
            !json_object_get(json_object_get(row, "tags"), STORE_UNFINISHED_TAG))
            rows[n++] = row;
    }
    if (n)
        qsort(rows, n, sizeof *rows, by_end);
    for (size_t i = 0; i < n && w->status == 0; i++) {
        size_t count;
        struct store_label *labels =
            data_request_labels(json_object_get(rows[i], "tags"), &w->arena, &count);
        int64_t start_ns = data_request_number(rows[i], "start_ns"),
                end_ns = data_request_number(rows[i], "end_ns");
        long member = labels ? find_member(w, labels, count) : -1;
        if (member >= 0)
            add_sample(w, (struct rounds_sample){w->records[member].spans++, end_ns, (size_t)member,
                                                 (double)(end_ns - start_ns) / 1e9});
    }
    if (!rows)
        w->status = error_set(w->e, -ENOMEM, "no memory");
    free(rows);
    json_decref(spans);
    return w->status;
}

// ---------------------------------------------------------------- silent members

// Finds out, from the recordings, whether a member without further values hangs or has ended.
static int conclude(struct work *w, struct data_request *a)
{
    size_t members = detect_members(w->detect), silent = 0;
    for (size_t i = 0; i < members; i++)
        silent += w->rounds.records[i].missed > 0;
    if (!silent)
        return 0;
    struct evidence_question question = {
        .asking = a,
        .detect = w->detect,
        .metric = w->metric,
        .spans = options_flag(w->o, OPT_SPAN),
        .range = w->range,
        .patience_ns = (int64_t)(options_number(w->o, OPT_EVERY) *
                                 options_int(w->o, OPT_PERSISTENCE) * NS_PER_S),
        .member_of = known_member,
        .user = w,
    };
    w->evidence = calloc(members, sizeof *w->evidence);
    int status = w->evidence ? evidence_gather(&question, w->evidence, w->e)
                             : error_set(w->e, -ENOMEM, "no memory");
    if (status < 0)
        return status;
    for (size_t i = 0; i < members; i++) {
        struct rounds_record *record = &w->rounds.records[i];
        if (!record->missed)
            continue;
        w->records[i].ended = !w->evidence[i].should_go_on;
        if (w->records[i].ended)
            record->bad = false;
        else
            rounds_count_missed(record);
    }
    return 0;
}

// ---------------------------------------------------------------- the answer

static const char *const states[] = {
    [DETECT_WAITING] = "too few values", [DETECT_GOOD] = "good",
    [DETECT_SUSPECT] = "suspect",        [DETECT_SLOW] = "slow",
    [DETECT_SILENT] = "silent",
};

static const char *state_of(const struct work *w, size_t member)
{
    const struct rounds_record *record = &w->rounds.records[member];
    if (record->bad || !record->rounds)
        return w->records[member].ended ? "ended"
                                        : states[detect_verdict_of(w->detect, member)->state];
    return record->was_silent ? "was silent" : "was slow";
}

static const char *evidence_of(const struct work *w, size_t member)
{
    return w->evidence ? w->evidence[member].text : "";
}

// Adds the ratio to the usual duration; a dash if it is unknown.
static void ratio_cell(struct columns *table, double ratio)
{
    if (ratio == ratio)
        columns_cell(table, "%.2f", ratio);
    else
        columns_cell(table, "-");
}

static void answer_table(const struct work *w, struct buf *out)
{
    static const char *const titles[] = {"member",   "state", "of others", "of own best",
                                         "of noise", "since", "rounds",    "evidence"};
    struct columns table = {0};
    columns_titles(&table, titles, sizeof titles / sizeof *titles - !w->evidence);
    for (size_t i = 0; i < detect_members(w->detect); i++) {
        const struct detect_verdict *v = detect_verdict_of(w->detect, i);
        const struct rounds_record *record = &w->rounds.records[i];
        char since[64] = "";
        if (record->rounds)
            answers_local_time(record->since_ns, 0, since, sizeof since);
        columns_cell(&table, "%.*s", STR_ARG(detect_name(w->detect, i)));
        columns_cell(&table, "%s", state_of(w, i));
        ratio_cell(&table, v->peers);
        ratio_cell(&table, v->own);
        columns_cell(&table, v->state == DETECT_WAITING ? "-" : "%.1f", v->score);
        columns_cell(&table, "%s", since);
        columns_cell(&table, "%u", record->rounds);
        if (w->evidence)
            columns_cell(&table, "%s", evidence_of(w, i));
    }
    columns_write(&table, out);
    columns_free(&table);
}

static void answer_json(const struct work *w, struct buf *out)
{
    struct json_writer j = json_to(out);
    json_begin_object(&j);
    json_key_u64(&j, "rounds", w->rounds.rounds);
    json_key(&j, STR("members"));
    json_begin_array(&j);
    for (size_t i = 0; i < detect_members(w->detect); i++) {
        const struct detect_verdict *v = detect_verdict_of(w->detect, i);
        const struct rounds_record *record = &w->rounds.records[i];
        json_begin_object(&j);
        json_key_string(&j, "member", detect_name(w->detect, i));
        json_key_string(&j, "host", w->records[i].host);
        json_key_string(&j, "state", str_of(w->records[i].ended ? "ended" : states[v->state]));
        if (*evidence_of(w, i))
            json_key_string(&j, "evidence", str_of(evidence_of(w, i)));
        json_key(&j, STR("peers"));
        json_put_double(&j, v->peers);
        json_key(&j, STR("own"));
        json_put_double(&j, v->own);
        json_key(&j, STR("score"));
        json_put_double(&j, v->score);
        json_key_u64(&j, "bad_rounds", record->rounds);
        if (record->rounds) {
            json_key_i64(&j, "since_ns", record->since_ns);
            json_key_i64(&j, "until_ns", record->until_ns);
        }
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    buf_add_char(out, '\n');
}

// Writes the hosts of members that are bad now, without duplicates.
static int write_excluded(const struct work *w, const char *path, struct error *e)
{
    struct buf text = {0};
    for (size_t i = 0; i < detect_members(w->detect); i++) {
        struct str host = w->records[i].host;
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = w->rounds.records[k].bad && str_eq(w->records[k].host, host);
        if (!w->rounds.records[i].bad || again)
            continue;
        if (!host.size)
            log_say("%.*s carries no tag host: it is not in %s", STR_ARG(detect_name(w->detect, i)),
                    path);
        else
            buf_printf(&text, "%.*s\n", STR_ARG(host));
    }
    FILE *f = fopen(path, "we");
    bool good = f && fwrite(text.data, 1, text.size, f) == text.size;
    int why = errno;
    if (f && fclose(f) != 0 && good) {
        good = false;
        why = errno;
    }
    buf_free(&text);
    return good ? 0 : error_set(e, -why, "cannot write %s: %s", path, strerror(why));
}

static int answer(struct work *w)
{
    size_t bad = 0;
    for (size_t i = 0; i < detect_members(w->detect); i++)
        bad += w->rounds.records[i].bad;
    struct buf out = {0};
    if (options_flag(w->o, OPT_JSON))
        answer_json(w, &out);
    else if (w->rounds.count)
        answer_table(w, &out);
    else
        log_say("no values of %s in this range", w->o->arguments[0]);
    const char *path = options_text(w->o, OPT_EXCLUDE_FILE);
    if (path && write_excluded(w, path, w->e) < 0) {
        buf_free(&out);
        return command_failed(EXIT_FAILED, w->e);
    }
    int code = command_print(&out);
    return code == EXIT_OK && bad ? EXIT_FOUND : code;
}

// ---------------------------------------------------------------- the command

static int read_options(struct work *w)
{
    const struct options *o = w->o;
    struct str rest = str_of(options_text(o, OPT_BY));
    while (rest.data) {
        struct str key = str_trim(str_cut(&rest, ','));
        if (!key.size)
            continue;
        if (w->by_count == BY_MAX)
            return error_set(w->e, -EINVAL, "--by: at most %d tags", BY_MAX);
        w->by[w->by_count++] = key;
    }
    if (!w->by_count)
        return error_set(w->e, -EINVAL, "--by: name a tag, as in --by host,gpu");
    struct detect_options options = {.slowdown = options_number(o, OPT_SLOWDOWN),
                                     .persistence = (unsigned)options_int(o, OPT_PERSISTENCE),
                                     .less_is_worse = options_flag(o, OPT_LESS_IS_WORSE),
                                     .not_peers = options_flag(o, OPT_NO_PEERS)};
    w->detect = detect_create(&options);
    w->rounds.detect = w->detect;
    return w->detect ? 0 : error_set(w->e, -ENOMEM, "no memory");
}

static int detect_members_of(struct work *w, struct data_request *a, const char *m,
                             const struct query *q)
{
    int status = m ? take_metric(w, a, m, q) : take_spans(w, a, w->o->arguments[0]);
    if (status == 0) {
        status =
            rounds_play(&w->rounds) < 0 ? error_set(w->e, -ENOMEM, "no memory") : conclude(w, a);
    }
    return status < 0 ? command_failed(status == -EINVAL ? EXIT_USAGE : EXIT_FAILED, w->e)
                      : answer(w);
}

int command_detect(const struct options *o)
{
    struct error e = {0};
    struct work w = {.o = o, .e = &e};
    struct data_request a;
    struct query q = {0};
    const char *m = NULL;
    int code, status = read_options(&w);
    if (status == 0 && !options_flag(o, OPT_SPAN))
        status = parse_what(&w, o->arguments[0], &m, &q);
    if (status == 0)
        status = data_request_range(o, &w.range, &e);
    if (status < 0)
        code = command_failed(status == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    else if (data_request_open(o, o->arguments + 1, (size_t)(o->argument_count - 1), &a, &e) < 0)
        code = command_failed(EXIT_FAILED, &e);
    else
        code = data_request_close(&a, detect_members_of(&w, &a, m, &q));
    detect_destroy(w.detect);
    sonde_result_free(w.result);
    rounds_free(&w.rounds);
    free(w.records);
    free(w.evidence);
    arena_free(&w.arena);
    return code;
}
