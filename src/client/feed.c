#include "client/feed.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { SIZE_BYTES = 8 };

struct feed {
    struct http_stream *stream;
    struct buf in; // received data
    size_t at;     // number of bytes that were already returned
};

// ---------------------------------------------------------------- selections

// True for a text that has no special meaning, neither in the selection of a stream nor in that of
// a query.
static bool is_plain(struct str text)
{
    static const char special[] = "*|(){},=\"";
    for (size_t i = 0; i < text.size; i++)
        if (memchr(special, text.data[i], sizeof special - 1) || (unsigned char)text.data[i] <= ' ')
            return false;
    return text.size > 0;
}

static bool is_value(struct str text)
{
    return str_eq(text, STR("*")) || is_plain(text);
}

static void add_tag(struct buf *out, bool first, struct str key, struct str value)
{
    buf_add_char(out, first ? '{' : ',');
    buf_add_str(out, key);
    buf_add_char(out, '=');
    buf_add_str(out, value);
}

// Reads "none:METRIC{key=value,key=*}".
static bool select_m(struct str m, struct buf *out)
{
    struct str metric = str_slice(m, sizeof "none:" - 1, m.size), tags = metric;
    metric = str_cut(&tags, '{');
    if (!is_plain(metric) || str_find_char(metric, ':') >= 0)
        return false; // a colon separates rates and intervals from the metric
    buf_add_str(out, metric);
    if (!tags.data)
        return true;
    if (!str_ends(tags, STR("}")))
        return false;
    tags.size--;
    for (bool first = true; tags.data && tags.size; first = false) {
        struct str value = str_cut(&tags, ','), key = str_cut(&value, '=');
        if (!is_plain(key) || !value.data || !is_value(value))
            return false;
        add_tag(out, first, key, value);
        if (!tags.data)
            buf_add_char(out, '}');
    }
    return true;
}

static bool select_metric(const struct sonde_query *q, struct buf *out)
{
    if (!is_plain(str_of(q->metric)))
        return false;
    buf_add_str(out, str_of(q->metric));
    for (size_t i = 0; i < q->filter_count; i++) {
        const struct sonde_filter *f = &q->filters[i];
        bool same =
            !f->type ||
            (strcmp(f->type, "literal_or") == 0 && f->value && is_plain(str_of(f->value))) ||
            (strcmp(f->type, "wildcard") == 0 && f->value && strcmp(f->value, "*") == 0);
        if (!same || !is_plain(str_of(f->key)) || !f->value || !is_value(str_of(f->value)))
            return false;
        add_tag(out, i == 0, str_of(f->key), str_of(f->value));
    }
    if (q->filter_count)
        buf_add_char(out, '}');
    return true;
}

static void add_encoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++)
        buf_printf(out, "%%%02x", (unsigned char)text.data[i]);
}

bool feed_path(const struct sonde_query *q, struct buf *out)
{
    struct buf selection = {0};
    bool can = !q->rate && !q->explicit_tags && !q->downsample && !q->span &&
               (!q->aggregator || strcmp(q->aggregator, "none") == 0) &&
               (q->m ? select_m(str_of(q->m), &selection) : select_metric(q, &selection));
    buf_printf(out, "/sonde/v1/stream?format=binary&m=");
    add_encoded(out, buf_str(&selection));
    can = can && !selection.failed && !out->failed;
    buf_free(&selection);
    return can;
}

// ---------------------------------------------------------------- received data

int feed_open(struct origin *o, const char *path, int since_ms, const struct origin_look *look,
              struct feed **out, struct error *e)
{
    struct feed *f = calloc(1, sizeof *f);
    struct buf whole = {0};
    *out = NULL;
    buf_printf(&whole, "%s&since=%dms-ago", path, since_ms);
    int rc = f && !whole.failed ? origin_stream(o, buf_cstr(&whole), look, &f->stream, e)
                                : error_set(e, -ENOMEM, "out of memory");
    buf_free(&whole);
    if (rc)
        free(f);
    else
        *out = f;
    return rc;
}

void feed_close(struct feed *f)
{
    if (!f)
        return;
    http_stream_close(f->stream);
    buf_free(&f->in);
    free(f);
}

int feed_cut(struct str *rest, struct str *piece)
{
    struct bytes b = bytes_of(rest->data, rest->size);
    uint64_t size = bytes_u64(&b);
    if (b.failed)
        return 0;
    if (size > FEED_PIECE_MAX)
        return -EBADMSG;
    *piece = bytes_take(&b, size);
    if (b.failed)
        return 0;
    *rest = str_slice(*rest, SIZE_BYTES + (size_t)size, rest->size);
    return 1;
}

// Takes the next received chunk. Returns 1 with *out, 0 if no chunk is complete, or an error.
static int take(struct feed *f, struct sonde_result **out, struct error *e)
{
    struct str rest = str_slice(buf_str(&f->in), f->at, f->in.size), piece;
    int rc;
    while ((rc = feed_cut(&rest, &piece)) == 1 && piece.size == 0)
        continue; // the chunk has no new points
    f->at = f->in.size - rest.size;
    if (rc == 0 && f->at) {
        memmove(f->in.data, rest.data, rest.size);
        f->in.size = rest.size;
        f->at = 0;
    }
    if (rc < 0)
        return error_set(e, rc, "the stream is damaged");
    if (rc == 0)
        return 0;
    struct http_answer answer = {0};
    buf_add_str(&answer.body, piece);
    if (answer.body.failed)
        return error_set(e, -ENOMEM, "out of memory");
    rc = result_read(&answer, out, e);
    return rc ? rc : 1;
}

int feed_next(struct feed *f, int timeout_ms, struct sonde_result **out, struct error *e)
{
    const int64_t end_ns = clock_monotonic_ns() + (int64_t)timeout_ms * NS_PER_MS;
    *out = NULL;
    while (true) {
        int rc = take(f, out, e);
        if (rc)
            return rc < 0 ? rc : 0;
        int64_t left_ms = (end_ns - clock_monotonic_ns()) / NS_PER_MS;
        rc = http_stream_next(f->stream, left_ms > 0 ? (int)left_ms : 0, &f->in, e);
        if (rc)
            return rc;
    }
}
