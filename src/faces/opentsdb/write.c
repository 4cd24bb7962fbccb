// write.c - converts query results to OpenTSDB's JSON.
//
// Points are most of any answer, so they are formatted directly into the buffer: it reserves room
// for many, then writes their numbers in place.
#include "faces/opentsdb/write.h"
#include "ask/tsuid.h"
#include "faces/opentsdb/handlers.h"

#include "base/clock.h"
#include "query/filter.h"

#include <math.h>

// Rounds down, also before 1970.
static int64_t divide_down(int64_t value, int64_t by)
{
    int64_t quotient = value / by;
    return quotient - (value % by < 0);
}

// Returns true if the value is written; *special is its text, or NULL for a number.
static bool is_written(double value, enum query_fill fill, const char **special)
{
    *special = NULL;
    if (isfinite(value))
        return true;
    if (!isnan(value) || (fill != QUERY_FILL_NAN && fill != QUERY_FILL_NULL))
        return false;
    *special = fill == QUERY_FILL_NAN ? "\"NaN\"" : "null";
    return true;
}

// Consecutive time stamps mostly differ only in their last digits, so the text of the others is
// kept.
struct stamp_text {
    // the number without its last four digits, the part that `text` keeps; 0: none yet
    int64_t high;
    size_t size; // of its text
    char text[NUMBER_TEXT_MAX];
};

static size_t write_stamp(struct stamp_text *s, char *to, int64_t stamp)
{
    enum { LOW = 10000, LOW_DIGITS = 4 };
    uint64_t low = (uint64_t)stamp - (uint64_t)s->high * LOW;
    if (low >= LOW || !s->high) {
        if (stamp < LOW) // also true before 1970
            return number_format_i64(to, stamp);
        s->high = stamp / LOW;
        s->size = number_format_i64(s->text, s->high);
        low = (uint64_t)(stamp % LOW);
    }
    memcpy(to, s->text, sizeof s->text / 2);
    number_format_four_digits(to + s->size, (unsigned)low);
    return s->size + LOW_DIGITS;
}

enum { POINT_TEXT_MAX = 2 * NUMBER_TEXT_MAX + 8, POINTS_AT_ONCE = 256 };

static char *write_point(char *to, bool comma, struct stamp_text *text, int64_t stamp, double value,
                         const char *special, bool arrays)
{
    if (comma)
        *to++ = ',';
    *to++ = arrays ? '[' : '"';
    to += write_stamp(text, to, stamp);
    if (!arrays)
        *to++ = '"';
    *to++ = arrays ? ',' : ':';
    if (special) {
        size_t size = strlen(special);
        memcpy(to, special, size);
        to += size;
    } else {
        to += number_format(to, value);
    }
    if (arrays)
        *to++ = ']';
    return to;
}

// Writes consecutive points into the buffer, which always has room for one more.
struct points_text {
    struct buf *out;
    size_t room; // number of points that still fit
    bool comma, arrays;
    struct stamp_text stamp;
};

static bool put_point(struct points_text *p, int64_t stamp, double value, const char *special)
{
    if (p->room == 0) {
        size_t points = POINTS_AT_ONCE;
        // Near the answer's limit, it reserves room for one point at a time.
        if (p->out->limit &&
            (p->out->size >= p->out->limit ||
             p->out->limit - p->out->size < (size_t)POINTS_AT_ONCE * POINT_TEXT_MAX))
            points = 1;
        if (!buf_reserve(p->out, points * POINT_TEXT_MAX))
            return false;
        p->room = points;
    }
    p->room--;
    char *to = p->out->data + p->out->size;
    char *end = write_point(to, p->comma, &p->stamp, stamp, value, special, p->arrays);
    p->out->size += (size_t)(end - to);
    p->comma = true;
    return true;
}

void opentsdb_write_points(struct json_writer *w, const struct query_series *s,
                           enum query_fill fill, const struct opentsdb_style *style)
{
    int64_t resolution_ns = style->ms ? NS_PER_MS : NS_PER_S;
    struct points_text text = {.out = w->out, .arrays = style->arrays};
    if (style->arrays)
        json_begin_array(w);
    else
        json_begin_object(w);
    bool pending = false;
    // time stamp of the pending point; start of the next second (or millisecond)
    int64_t stamp = 0, next_stamp_ns = 0;
    double value = 0;
    const char *special = NULL;
    // Writes a point only when the following one has another time stamp.
    for (size_t i = 0; i < s->count; i++) {
        const char *next_special;
        if (!is_written(s->values[i], fill, &next_special))
            continue;
        int64_t t_ns = s->t_ns[i] + style->shift_ns;
        if (!pending || t_ns >= next_stamp_ns) {
            // Usually the next stamp follows directly, so no division is necessary.
            bool follows =
                pending && (uint64_t)t_ns - (uint64_t)next_stamp_ns < (uint64_t)resolution_ns;
            int64_t next = follows ? stamp + 1 : divide_down(t_ns, resolution_ns);
            if (pending && next != stamp && !put_point(&text, stamp, value, special))
                break;
            pending = pending && next == stamp;
            stamp = next;
            // The last second of all time has no next one; then each stamp is computed by division.
            if (__builtin_mul_overflow(stamp + 1, resolution_ns, &next_stamp_ns))
                next_stamp_ns = INT64_MIN;
        }
        if (pending && next_special && !special)
            continue; // a gap does not replace a number
        pending = true;
        value = s->values[i];
        special = next_special;
    }
    if (pending)
        put_point(&text, stamp, value, special);
    if (style->arrays)
        json_end_array(w);
    else
        json_end_object(w);
}

static void write_downsample(struct json_writer *w, const struct query_downsample *d)
{
    static const struct {
        char unit;
        const char *text;
        int64_t ns;
    } units[] = {
        {'a', "ms", NS_PER_MS},
        {'s', "s", NS_PER_S},
        {'m', "m", INT64_C(60) * NS_PER_S},
        {'h', "h", INT64_C(3600) * NS_PER_S},
        {'d', "d", INT64_C(86400) * NS_PER_S},
        {'w', "w", INT64_C(7) * 86400 * NS_PER_S},
        {'n', "n", INT64_C(30) * 86400 * NS_PER_S},
        {'y', "y", INT64_C(365) * 86400 * NS_PER_S},
    };
    static const char *const fills[] = {[QUERY_FILL_NONE] = "none",
                                        [QUERY_FILL_NAN] = "nan",
                                        [QUERY_FILL_NULL] = "null",
                                        [QUERY_FILL_ZERO] = "zero"};
    if (!d->on) {
        json_put_null(w);
        return;
    }
    struct buf text = {0};
    if (d->all)
        buf_add_str(&text, STR("0all"));
    for (size_t i = 0; i < sizeof units / sizeof *units && !d->all; i++)
        if (units[i].unit == d->unit)
            buf_printf(&text, "%lld%s%s",
                       (long long)(d->calendar ? d->interval : d->interval / units[i].ns),
                       units[i].text, d->calendar ? "c" : "");
    struct str function = query_aggregator_name(d->function);
    buf_printf(&text, "-%.*s", STR_ARG(function));
    if (d->fill != QUERY_FILL_NONE)
        buf_printf(&text, "-%s", fills[d->fill]);
    json_put_string(w, buf_str(&text));
    buf_free(&text);
}

static void write_filters(struct json_writer *w, const struct query *q)
{
    json_begin_array(w);
    for (size_t i = 0; i < q->filter_count; i++) {
        const struct query_filter *f = &q->filters[i];
        json_begin_object(w);
        json_key_string(w, "tagk", f->key);
        json_key_string(w, "filter", f->text);
        json_key_bool(w, "group_by", f->group_by);
        json_key_string(w, "type", query_filter_name(f->kind));
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_tsuids(struct json_writer *w, struct str tsuids)
{
    if (!tsuids.size) {
        json_put_null(w);
        return;
    }
    json_begin_array(w);
    while (tsuids.data)
        json_put_string(w, str_trim(str_cut(&tsuids, ',')));
    json_end_array(w);
}

static bool groups_before(const struct query *q, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (q->filters[k].group_by && str_eq(q->filters[k].key, q->filters[i].key))
            return true;
    return false;
}

// Writes {"host":"wildcard(*)"}: each grouping key once.
static void write_grouping_tags(struct json_writer *w, const struct query *q)
{
    json_begin_object(w);
    for (size_t i = 0; i < q->filter_count; i++) {
        const struct query_filter *f = &q->filters[i];
        if (!f->group_by || groups_before(q, i))
            continue;
        struct str kind = query_filter_name(f->kind);
        struct buf text = {0};
        buf_printf(&text, "%.*s(%.*s)", STR_ARG(kind), STR_ARG(f->text));
        json_key(w, f->key);
        json_put_string(w, buf_str(&text));
        buf_free(&text);
    }
    json_end_object(w);
}

void opentsdb_write_query(struct json_writer *w, const struct query *q, struct str metric,
                          size_t index)
{
    json_begin_object(w);
    json_key_string(w, "aggregator", query_aggregator_name(q->aggregator));
    json_key_string(w, "metric", metric);
    json_key(w, STR("tsuids"));
    write_tsuids(w, q->tsuids);
    json_key(w, STR("downsample"));
    write_downsample(w, &q->downsample);
    json_key_bool(w, "rate", q->rate.on);
    json_key(w, STR("filters"));
    write_filters(w, q);
    json_key(w, STR("rateOptions"));
    if (q->rate.on) {
        json_begin_object(w);
        json_key_bool(w, "counter", q->rate.counter);
        json_key_double(w, "counterMax",
                        q->rate.counter_max > 0 ? q->rate.counter_max : (double)INT64_MAX);
        json_key_double(w, "resetValue", q->rate.reset_value);
        json_key_bool(w, "dropResets", q->rate.drop_resets);
        json_end_object(w);
    } else {
        json_put_null(w);
    }
    json_key(w, STR("tags"));
    write_grouping_tags(w, q);
    json_key_bool(w, "explicitTags", q->explicit_tags);
    json_key_u64(w, "index", index);
    json_end_object(w);
}

// True if the query filters by values of the key. Otherwise an aggregate covers all values, even
// while only one exists.
static bool chooses(const struct query *q, struct str key)
{
    for (size_t i = 0; i < q->filter_count; i++)
        if (str_eq(q->filters[i].key, key))
            return true;
    return q->aggregator == QUERY_NONE;
}

// An annotation belongs to a series unless one of its tags contradicts a tag that the query filters
// by.
static bool belongs_to(const struct store_event *event, const struct query *q,
                       const struct query_series *s)
{
    for (size_t i = 0; i < event->label_count; i++)
        for (size_t k = 0; k < s->tag_count; k++)
            if (str_eq(event->labels[i].key, s->tags[k].key) &&
                !str_eq(event->labels[i].value, s->tags[k].value) && chooses(q, s->tags[k].key))
                return false;
    return true;
}

static struct str label_of(const struct store_event *event, struct str key)
{
    for (size_t i = 0; i < event->label_count; i++)
        if (str_eq(event->labels[i].key, key))
            return event->labels[i].value;
    return STR("");
}

void opentsdb_write_annotation(struct json_writer *w, const struct store_event *event,
                               struct str tsuid, bool ms, int64_t shift_ns)
{
    json_begin_object(w);
    if (tsuid.size)
        json_key_string(w, "tsuid", tsuid);
    int64_t time_ms = divide_down(event->start_ns + shift_ns, NS_PER_MS);
    json_key_i64(w, "startTime", ms && time_ms % 1000 ? time_ms : divide_down(time_ms, 1000));
    // Two of OpenTSDB's fields are stored as tags (put.h).
    struct str notes = label_of(event, STR("notes")), end = label_of(event, STR("endTime"));
    uint64_t end_time = 0;
    str_to_u64(end, &end_time);
    json_key_u64(w, "endTime", end_time);
    json_key_string(w, "description", event->text);
    json_key_string(w, "notes", notes);
    json_key(w, STR("custom"));
    json_begin_object(w);
    for (size_t i = 0; i < event->label_count; i++) {
        if (str_eq(event->labels[i].key, STR("notes")) ||
            str_eq(event->labels[i].key, STR("endTime")))
            continue;
        json_key(w, event->labels[i].key);
        json_put_string(w, event->labels[i].value);
    }
    json_end_object(w);
    json_end_object(w);
}

// `of` NULL: writes all of them, independent of a series.
static void write_annotations(struct json_writer *w, const char *key,
                              const struct opentsdb_annotations *annotations, const struct query *q,
                              const struct query_series *of, struct str tsuid,
                              const struct opentsdb_style *style)
{
    bool any = false;
    for (size_t i = 0; i < annotations->count; i++) {
        if (of && !belongs_to(&annotations->events[i], q, of))
            continue;
        if (!any) {
            json_key(w, str_of(key));
            json_begin_array(w);
        }
        any = true;
        opentsdb_write_annotation(w, &annotations->events[i], tsuid, style->ms, style->shift_ns);
    }
    if (any)
        json_end_array(w);
}

void opentsdb_write_series(struct json_writer *w, const struct query *q, size_t index,
                           struct str metric, const struct query_series *s,
                           const struct query_result *result,
                           const struct opentsdb_annotations *annotations,
                           const struct opentsdb_style *style)
{
    char tsuid_text[TSUID_SIZE];
    struct str tsuid = {tsuid_text, sizeof tsuid_text};
    tsuid_of(tsuid_text, metric, s->tags, s->tag_count);
    json_begin_object(w);
    json_key_string(w, "metric", metric);
    json_key(w, STR("tags"));
    json_begin_object(w);
    for (size_t i = 0; i < s->tag_count; i++) {
        json_key(w, s->tags[i].key);
        json_put_string(w, s->tags[i].value);
    }
    json_end_object(w);
    json_key(w, STR("aggregateTags"));
    json_begin_array(w);
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        json_put_string(w, s->aggregate_tags[i]);
    json_end_array(w);
    if (style->show_query) {
        json_key(w, STR("query"));
        opentsdb_write_query(w, q, q->metric, index);
    }
    if (style->show_tsuids) {
        json_key(w, STR("tsuids"));
        json_begin_array(w);
        // Only a single series has a tsuid; those in an aggregate are not listed.
        if (s->source_series == 1)
            json_put_string(w, tsuid);
        json_end_array(w);
    }
    if (style->annotations)
        write_annotations(w, "annotations", annotations, q, s, tsuid, style);
    if (style->global_annotations)
        write_annotations(w, "globalAnnotations", annotations, q, NULL, STR(""), style);
    json_key(w, STR("dps"));
    opentsdb_write_points(w, s, q->downsample.on ? q->downsample.fill : QUERY_FILL_NONE, style);
    if (style->show_stats) {
        json_key(w, STR("stats"));
        json_begin_object(w);
        json_key_u64(w, "queryIndex", index);
        json_key_u64(w, "seriesRead", result->series_read);
        json_key_u64(w, "pointsRead", result->points_read);
        json_key_u64(w, "pointsFromSummaries", result->points_from_summaries);
        json_end_object(w);
    }
    json_end_object(w);
}
