// lines.c - writes the text lines of a connection into the store, and answers each bad line.
//
// The first line of a connection is line 1. A bad line costs only its own data: the agent counts
// it, sends "line 3: value 'abc' is not a number", and reads on. After ANSWERS_MAX responses, it
// only counts bad lines, and ingest_lines_end reports their number.
#include "ingest/lines_cells.h"
#include "ingest/lines_split.h"

#include "base/clock.h"
#include "base/hash.h"
#include "ingest/ingest.h"
#include "ingest/ingest_internal.h"

#include <errno.h>
#include <stdlib.h>

enum { ANSWERS_MAX = 100 };

// A time further ahead than this is the sender's mistake (a wrong unit, a wrong date) rather than
// the difference between two clocks. The sender gets an error.
#define MISTAKE_NS (INT64_C(3600) * NS_PER_S)

// The state that all connections of an agent share.
struct ingest_lines_state {
    struct line line; // the current line
    struct line_cells *cells;
    int64_t last_ns; // the last time that stamp_now returned
};

struct ingest_lines {
    struct ingest *in;
    struct lines_split split;
    uint64_t bad;
    struct buf *reply; // reply of the running call
};

static void free_state(struct ingest *in)
{
    line_free(&in->lines->line);
    line_cells_destroy(in->lines->cells);
    free(in->lines);
    in->lines = NULL;
}

static struct ingest_lines_state *state_of(struct ingest *in)
{
    if (in->lines)
        return in->lines;
    struct ingest_lines_state *state = malloc(sizeof *state);
    if (!state)
        return NULL;
    line_init(&state->line);
    state->last_ns = 0;
    state->cells = line_cells_create(in->recorded, in->recorded_user);
    if (!state->cells) {
        free(state);
        return NULL;
    }
    in->lines = state;
    in->lines_free = free_state;
    return state;
}

int ingest_lines_create(struct ingest *in, struct ingest_lines **out)
{
    *out = state_of(in) ? calloc(1, sizeof **out) : NULL;
    if (!*out)
        return -ENOMEM;
    (*out)->in = in;
    return 0;
}

void ingest_lines_destroy(struct ingest_lines *l)
{
    if (!l)
        return;
    lines_split_free(&l->split);
    free(l);
}

// Returns the time for a line without one: now, but never the same time twice, because the store
// keeps only one point of a series at one time.
static int64_t stamp_now(struct ingest_lines_state *state)
{
    int64_t now = clock_realtime_ns();
    // If the clock was set back by more than a moment, the new time is used.
    if (now <= state->last_ns && state->last_ns - now < NS_PER_MS)
        now = state->last_ns + 1;
    state->last_ns = now;
    return now;
}

static const char *store_words(int code)
{
    static const struct {
        int code;
        const char *words;
    } table[] = {
        {-E2BIG, "too many tags (16 with host), or a name that is too long"},
        {-ERANGE, "older than the data that are kept"},
        {-ENOSPC, "no room for more series or points"},
        {-EOVERFLOW, "the set has too many members (65536 between two samples)"},
        {-EEXIST, "this series is of another StatsD type"},
        {-EDOM, "its total would not be finite"},
        {-ENOMEM, "no memory"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].words;
    return "a bad name, tag or time";
}

// A line's own tags override the node's tags, because a relay may send host=.
static size_t all_labels(const struct ingest *in, const struct line *line,
                         struct store_label out[2 * STORE_LABELS_MAX])
{
    size_t count = line->label_count;
    memcpy(out, line->labels, count * sizeof *out);
    for (size_t i = 0; i < in->label_count && count < 2 * STORE_LABELS_MAX; i++) {
        bool overridden = false;
        for (size_t j = 0; j < line->label_count; j++)
            overridden |= str_eq(line->labels[j].key, in->labels[i].key);
        if (!overridden)
            out[count++] = in->labels[i];
    }
    return count;
}

static int define(struct ingest *in, const struct line *line, const struct line_item *item,
                  uint32_t *series)
{
    struct store_metric metric = {.name = item->name,
                                  .unit = item->unit,
                                  .kind = item->kind == LINE_COUNT ? STORE_COUNTER : STORE_GAUGE,
                                  .level = 1};
    uint32_t id;
    int failed = store_define_metric(in->store, &metric, &id);
    if (failed)
        return failed;
    struct store_label labels[2 * STORE_LABELS_MAX];
    return store_define_series(in->store, id, labels, all_labels(in, line, labels), series);
}

static void count_refusal(struct ingest *in, int code)
{
    if (code == -E2BIG || code == -EEXIST || code == -EOVERFLOW || code == -EDOM)
        in->stats.dropped_limit++;
    else
        in->stats.dropped_store++;
}

// Returns the time of the line, or now if the line has none. A time ahead of the wall clock becomes
// now (conversion.h gives the reason).
static int64_t time_of_line(struct ingest *in, const struct line *line)
{
    if (line->has_time && line->t_ns <= clock_realtime_ns() + INGEST_FUTURE_MAX_NS)
        return line->t_ns;
    in->stats.clamped += line->has_time;
    return stamp_now(in->lines);
}

static bool take_annotation(struct ingest *in, struct line *line)
{
    struct store_label labels[2 * STORE_LABELS_MAX];
    struct store_event event = {
        .kind = STORE_ANNOTATION, .text = line->annotation, .labels = labels};
    event.start_ns = event.end_ns = time_of_line(in, line);
    event.label_count = all_labels(in, line, labels);
    int failed = store_append_event(in->store, &event);
    if (!failed)
        return true;
    count_refusal(in, failed);
    return line_fail(line, "the annotation is not stored: %s", store_words(failed));
}

static bool begin_span(struct ingest *in, struct line *line)
{
    struct store_label labels[2 * STORE_LABELS_MAX];
    // A sender may use any number as an id, but the table of open spans needs a hash.
    struct store_event event = {.kind = STORE_SPAN,
                                .text = line->span_name,
                                .id = hash_u64(line->span_id),
                                .parent = line->span_parent ? hash_u64(line->span_parent) : 0,
                                .end_ns = INT64_MAX,
                                .labels = labels};
    event.start_ns = time_of_line(in, line);
    event.label_count = all_labels(in, line, labels);
    int failed = store_append_event(in->store, &event);
    if (failed) {
        count_refusal(in, failed);
        return line_fail(line, "the span is not stored: %s", store_words(failed));
    }
    open_spans_add(in, &in->line_spans, &event);
    return true;
}

static bool end_span(struct ingest *in, struct line *line)
{
    uint64_t id = hash_u64(line->span_id);
    struct open_spans *spans = &in->line_spans;
    const struct store_event *begun = open_spans_find(spans, id);
    if (!begun) { // the span was begun under an agent that was killed
        spans = open_spans_recorded(in);
        begun = open_spans_find(spans, id);
    }
    if (!begun)
        return line_fail(line, "no open span has the id %llx", (unsigned long long)line->span_id);
    struct store_event event = *begun;
    int64_t end_ns = time_of_line(in, line);
    event.end_ns = end_ns > event.start_ns ? end_ns : event.start_ns;
    int failed = store_append_event(in->store, &event);
    open_spans_remove(in, spans, id);
    if (!failed)
        return true;
    count_refusal(in, failed);
    return line_fail(line, "the end of the span is not stored: %s", store_words(failed));
}

// Stores all items of the line. If the store refused one, sets line->error and returns false.
static bool take_items(struct ingest *in, struct line *line)
{
    struct ingest_lines_state *state = in->lines;
    bool all = true;
    int64_t t_ns = 0;
    if (line->has_time && line->t_ns > clock_realtime_ns() + MISTAKE_NS)
        return line_fail(line, "the time is more than an hour in the future");
    if (line->annotation.size)
        return take_annotation(in, line);
    if (line->span != LINE_NO_SPAN)
        return line->span == LINE_SPAN_BEGIN ? begin_span(in, line) : end_span(in, line);
    for (size_t i = 0; i < line->item_count; i++) {
        const struct line_item *item = &line->items[i];
        uint32_t series;
        int failed = define(in, line, item, &series);
        if (!failed && item->kind != LINE_POINT)
            failed = line_cells_apply(state->cells, series, item);
        else if (!failed) {
            // The values of one line share one time, unless they belong to one series.
            if (t_ns == 0 || str_eq(item->name, item[-1].name))
                t_ns = time_of_line(in, line);
            failed = store_append(in->store, series, t_ns, item->value);
        }
        if (failed) {
            count_refusal(in, failed);
            all = line_fail(line, "'%s' is not stored: %s", line_quote(item->name),
                            store_words(failed));
        }
    }
    return all;
}

static void answer(struct ingest_lines *l, const char *words)
{
    l->bad++;
    l->in->stats.lines_bad++;
    if (l->bad <= ANSWERS_MAX)
        buf_printf(l->reply, "line %llu: %s\n", (unsigned long long)l->split.number, words);
}

static void take_line(void *user, struct str text, bool too_long)
{
    struct ingest_lines *l = user;
    struct line *line = &l->in->lines->line;
    struct str bare = str_trim(text);
    if (!too_long && (bare.size == 0 || bare.data[0] == '#'))
        return; // an empty line or a comment
    l->in->stats.lines++;
    if (too_long) {
        line_fail(line, "longer than %d bytes", LINE_SIZE_MAX);
        answer(l, line->error);
    } else if (str_eq(bare, STR("version"))) {
        // OpenTSDB's collectors send this to check for a server
        buf_printf(l->reply, "sonde %s\n", SONDE_VERSION);
    } else if (!line_parse(line, text) || !take_items(l->in, line)) {
        answer(l, line->error);
    }
}

void ingest_lines_feed(struct ingest_lines *l, struct str piece, struct buf *reply)
{
    l->reply = reply;
    lines_split_feed(&l->split, piece, LINE_SIZE_MAX, take_line, l);
    l->reply = NULL;
}

void ingest_lines_end(struct ingest_lines *l, struct buf *reply)
{
    l->reply = reply;
    lines_split_end(&l->split, LINE_SIZE_MAX, take_line, l);
    if (l->bad > ANSWERS_MAX)
        buf_printf(reply, "%llu lines were refused, the first %d are listed\n",
                   (unsigned long long)l->bad, ANSWERS_MAX);
    l->bad = 0;
    l->split.number = 0;
    l->reply = NULL;
}

void ingest_lines_sample(struct ingest *in, int64_t t_ns)
{
    if (in->lines)
        in->stats.dropped_store += line_cells_sample(in->lines->cells, in->store, t_ns);
}
