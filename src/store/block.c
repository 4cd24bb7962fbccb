#include "store/block.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "store/one_each.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

_Static_assert(CODEC_VALUES_MAX < 1 << 24, "group_head.count has 24 bits");

enum {
    EVENTS_ZSTD_LEVEL = 3,
    BLOCK_BYTES_MAX = INT32_MAX,
    SHORT_POINT_BYTES_MAX = 1 + 8 + 8, // of a point in the short form
};

// ---- Writing ----

size_t block_begin(struct buf *out, const struct block_source *source, enum block_kind kind,
                   struct block_header *h)
{
    size_t start = out->size;
    *h = (struct block_header){
        .magic = BLOCK_MAGIC,
        .kind = (uint16_t)kind,
        .flags = source->flags,
        .owner = source->owner,
        .sequence_first = source->sequence_first,
        .sequence_last = source->sequence_last,
        .order = source->order,
    };
    buf_add(out, h, sizeof *h);
    return start;
}

int block_end(struct buf *out, size_t start, struct block_header *h)
{
    while (out->size % 8 && !out->failed)
        buf_u8(out, 0);
    if (out->failed)
        return -ENOMEM;
    if (out->size - start > BLOCK_BYTES_MAX)
        return -EFBIG;
    uint8_t *block = (uint8_t *)out->data + start;
    size_t data_at = sizeof *h + h->directory_bytes;
    h->size = (uint32_t)(out->size - start);
    h->data_bytes = h->size - (uint32_t)data_at;
    if (!(h->flags & BLOCK_ZSTD_DATA))
        h->data_raw_bytes = h->data_bytes;
    if (!(h->flags & BLOCK_ZSTD_DIRECTORY))
        h->directory_raw_bytes = h->directory_bytes;
    h->data_crc = crc32c(0, block + data_at, h->data_bytes);
    h->directory_crc = crc32c(0, block + sizeof *h, h->directory_bytes);
    memcpy(block, h, sizeof *h);
    h->head_crc = crc32c(0, block + 8, sizeof *h - 8);
    memcpy(block, h, sizeof *h);
    return 0;
}

static bool any_missing(const double *column, uint32_t rows)
{
    const uint64_t missing = STORE_MISSING_BITS;
    uint64_t found = 0;
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t bits;
        memcpy(&bits, &column[r], sizeof bits);
        found |= bits == missing;
    }
    return found;
}

static void put_column(struct buf *out, const int64_t *t_ns, const double *column, uint32_t rows,
                       double *present, struct column_entry *e)
{
    uint32_t first = 0, last = rows - 1;
    const double *values = column;
    e->count = rows;
    if (any_missing(column, rows)) {
        size_t bitmap_bytes = (rows + 7) / 8;
        uint8_t *bitmap = (uint8_t *)out->data + out->size;
        memset(bitmap, 0, bitmap_bytes);
        e->count = 0;
        for (uint32_t r = 0; r < rows; r++) {
            if (store_is_missing(column[r]))
                continue;
            bitmap[r / 8] = (uint8_t)(bitmap[r / 8] | 1 << r % 8);
            first = e->count ? first : r;
            last = r;
            present[e->count++] = column[r];
        }
        if (!e->count)
            return;
        out->size += bitmap_bytes;
        values = present;
    }
    struct codec_summary sum;
    out->size += codec_encode(values, e->count, CODEC_HOT, (uint8_t *)out->data + out->size, &sum);
    e->nans = sum.nans;
    e->first_ns = t_ns[first];
    e->last_ns = t_ns[last];
    e->summary = block_summary(&sum, values, e->count);
}

int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns,
                  uint32_t rows, const double *values, size_t stride, uint32_t columns)
{
    double *present = malloc(rows * sizeof *present);
    if (!present)
        return -ENOMEM;
    struct block_header h;
    size_t start = block_begin(out, source, BLOCK_SET, &h), directory_at = out->size;
    h.rows = rows;
    h.columns = columns;
    h.directory_bytes = (uint32_t)(8 + columns * sizeof(struct column_entry));
    h.first_ns = t_ns[0];
    h.last_ns = t_ns[rows - 1];
    size_t data_at = directory_at + h.directory_bytes;
    if (buf_reserve(out, h.directory_bytes + codec_bound(rows))) {
        memset(out->data + directory_at, 0, h.directory_bytes);
        out->size = data_at;
        uint32_t time_bytes =
            (uint32_t)codec_encode_times(t_ns, rows, CODEC_HOT, (uint8_t *)out->data + data_at);
        out->size += time_bytes;
        memcpy(out->data + directory_at, &time_bytes, sizeof time_bytes);
    }
    for (uint32_t c = 0; c < columns && buf_reserve(out, codec_bound(rows) + (rows + 7) / 8); c++) {
        if (out->size - start > BLOCK_BYTES_MAX) {
            free(present);
            return -EFBIG;
        }
        struct column_entry e = {.offset = (uint32_t)(out->size - data_at)};
        put_column(out, t_ns, values + c * stride, rows, present, &e);
        e.size = (uint32_t)(out->size - data_at) - e.offset;
        h.values += e.count;
        memcpy(out->data + directory_at + 8 + c * sizeof e, &e, sizeof e);
    }
    free(present);
    return block_end(out, start, &h);
}

// The groups of a block of points that have been written so far.
struct group_writer {
    struct buf *out;
    size_t series_at, offsets_at, data_at; // of the directory's two arrays, and of the data
    int64_t first_ns;                      // of the block
    unsigned width;                        // bytes of a time stamp in the short form
    uint32_t count;
};

static void put_entry(struct group_writer *w, uint32_t series)
{
    uint32_t offset = (uint32_t)(w->out->size - w->data_at);
    memcpy(w->out->data + w->series_at + 4 * (size_t)w->count, &series, sizeof series);
    memcpy(w->out->data + w->offsets_at + 4 * (size_t)w->count, &offset, sizeof offset);
    w->count++;
}

// Writes a time stamp in the short form. The next stamp or value overwrites the surplus bytes.
static inline char *put_short_time(char *at, int64_t first_ns, unsigned width, int64_t t_ns)
{
    uint64_t since = (uint64_t)t_ns - (uint64_t)first_ns;
    memcpy(at, &since, sizeof since);
    return at + width;
}

static void put_short_group(struct group_writer *w, const struct point_record *points, uint32_t n)
{
    put_entry(w, points->series);
    char *at = w->out->data + w->out->size;
    *at++ = (char)(n | w->width << 3);
    for (uint32_t i = 0; i < n; i++)
        at = put_short_time(at, w->first_ns, w->width, points[i].t_ns);
    for (uint32_t i = 0; i < n; i++, at += sizeof points->value)
        memcpy(at, &points[i].value, sizeof points->value);
    w->out->size = (size_t)(at - w->out->data);
}

// Writes a group of BLOCK_SUMMARY_MIN points or more. t and v have room for n points, up to
// CODEC_VALUES_MAX. Returns 0, -EFBIG or -ENOMEM.
static int put_long_group(struct group_writer *w, const struct point_record *points, uint32_t n,
                          int64_t *t, double *v)
{
    struct buf *out = w->out;
    if (n > CODEC_VALUES_MAX)
        return -EFBIG;
    if (!buf_reserve(out,
                     2 * codec_bound(n) + sizeof(struct group_head) + sizeof(struct group_summary)))
        return -ENOMEM;
    put_entry(w, points->series);
    for (uint32_t i = 0; i < n; i++) {
        t[i] = points[i].t_ns;
        v[i] = points[i].value;
    }
    struct group_head head = {.count = n & 0xffffff, .first_ns = t[0], .last_ns = t[n - 1]};
    struct codec_summary sum;
    size_t head_at = out->size, summary_at = head_at + sizeof head;
    out->size = summary_at + sizeof(struct group_summary);
    head.time_bytes =
        (uint32_t)codec_encode_times(t, n, CODEC_HOT, (uint8_t *)out->data + out->size);
    out->size += head.time_bytes;
    out->size += codec_encode(v, n, CODEC_HOT, (uint8_t *)out->data + out->size, &sum);
    memcpy(out->data + head_at, &head, sizeof head);
    struct group_summary s = {.nans = sum.nans, .values = block_summary(&sum, v, n)};
    memcpy(out->data + summary_at, &s, sizeof s);
    return 0;
}

static int put_groups(struct group_writer *w, const struct point_record *points, size_t count,
                      int64_t *t, double *v)
{
    for (size_t i = 0; i < count;) {
        uint32_t n = 1;
        while (i + n < count && points[i + n].series == points[i].series)
            n++;
        if (n >= BLOCK_SUMMARY_MIN) {
            int rc = put_long_group(w, points + i, n, t, v);
            if (rc)
                return rc;
        } else if (!buf_reserve(w->out, (count - i) * SHORT_POINT_BYTES_MAX)) {
            return -ENOMEM;
        } else {
            put_short_group(w, points + i, n);
        }
        i += n;
    }
    uint32_t end = (uint32_t)(w->out->size - w->data_at);
    memcpy(w->out->data + w->offsets_at + 4 * (size_t)w->count, &end, sizeof end);
    return 0;
}

// Appends the directory and the records of a block of points.
static int put_records(struct buf *out, struct block_header *h, const struct point_record *points,
                       size_t count)
{
    size_t directory_at = out->size, longest = count < CODEC_VALUES_MAX ? count : CODEC_VALUES_MAX;
    h->directory_bytes = ((2 * h->columns + 1) * 4 + 7) / 8 * 8;
    int64_t *t = malloc(longest * sizeof *t);
    double *v = malloc(longest * sizeof *v);
    int rc = t && v && buf_reserve(out, h->directory_bytes) ? 0 : -ENOMEM;
    if (!rc) {
        memset(out->data + directory_at + h->directory_bytes - 8, 0, 8);
        out->size = directory_at + h->directory_bytes;
        struct group_writer w = {.out = out,
                                 .series_at = directory_at,
                                 .offsets_at = directory_at + 4 * (size_t)h->columns,
                                 .data_at = out->size,
                                 .first_ns = h->first_ns,
                                 .width = block_time_bytes(h)};
        rc = put_groups(&w, points, count, t, v);
    }
    free(t);
    free(v);
    return rc;
}

int block_put_points(struct buf *out, const struct block_source *source,
                     const struct point_record *points, size_t count)
{
    struct block_header h;
    size_t start = block_begin(out, source, BLOCK_POINTS, &h);
    h.rows = (uint32_t)count;
    h.values = count;
    int64_t first = INT64_MAX, last = INT64_MIN;
    uint32_t before = count ? ~points->series : 0; // not the first series
    size_t stretches = count > 0;
    for (size_t i = 0; i < count; i++) {
        h.columns += points[i].series != before;
        stretches += i && stretch_of(points[i].series) != stretch_of(before);
        before = points[i].series;
        first = points[i].t_ns < first ? points[i].t_ns : first;
        last = points[i].t_ns > last ? points[i].t_ns : last;
    }
    h.first_ns = first;
    h.last_ns = last;
    int rc = h.columns == count && one_each_is_smaller(&h, stretches)
                 ? one_each_put(out, &h, points, count, stretches) ? 0 : -ENOMEM
                 : put_records(out, &h, points, count);
    return rc ? rc : block_end(out, start, &h);
}

int block_put_events(struct buf *out, const struct block_source *source, struct str records,
                     uint32_t count, int64_t first_ns, int64_t last_ns)
{
    struct block_header h;
    size_t start = block_begin(out, source, BLOCK_EVENTS, &h);
    h.rows = count;
    h.first_ns = first_ns;
    h.last_ns = last_ns;
    size_t bound = ZSTD_compressBound(records.size);
    if (!buf_reserve(out, bound))
        return -ENOMEM;
    size_t packed =
        ZSTD_compress(out->data + out->size, bound, records.data, records.size, EVENTS_ZSTD_LEVEL);
    if (!ZSTD_isError(packed) && packed < records.size) {
        out->size += packed;
        h.flags |= BLOCK_ZSTD_DATA;
        h.data_raw_bytes = (uint32_t)records.size;
    } else {
        buf_add_str(out, records);
    }
    return block_end(out, start, &h);
}

// ---- Reading ----

bool block_intact(const struct block_header *h, const uint8_t *block)
{
    return crc32c(0, block + sizeof *h, h->directory_bytes) == h->directory_crc &&
           crc32c(0, block + sizeof *h + h->directory_bytes, h->data_bytes) == h->data_crc;
}

uint64_t block_next(const uint8_t *extent, uint64_t at, uint64_t used)
{
    for (; used - at >= sizeof(struct block_header); at += 8) {
        struct block_header h;
        memcpy(&h, extent + at, sizeof h);
        if (h.magic == BLOCK_MAGIC && block_header_fits(&h, used - at))
            return at;
    }
    return used;
}

static bool header_fits(const struct block_header *h, uint64_t left)
{
    if (left < sizeof *h || h->magic != BLOCK_MAGIC || h->size < sizeof *h || h->size > left ||
        h->size % 8 || h->kind < BLOCK_SET || h->kind > BLOCK_EVENTS ||
        h->sequence_first > h->sequence_last ||
        sizeof *h + (uint64_t)h->directory_bytes + h->data_bytes != h->size ||
        crc32c(0, (const uint8_t *)h + 8, sizeof *h - 8) != h->head_crc)
        return false;
    if (h->kind == BLOCK_EVENTS)
        return true;
    if (!h->rows || !h->columns || h->first_ns > h->last_ns)
        return false;
    bool set = h->kind == BLOCK_SET;
    if (set && (h->rows > CODEC_VALUES_MAX || h->columns > STORE_SET_SERIES_MAX))
        return false;
    if (h->flags & BLOCK_STRIPED)
        return !set && !h->directory_bytes;
    if (h->flags & BLOCK_ONE_EACH)
        return one_each_fits(h);
    if (h->flags & BLOCK_COLD)
        return true;
    return h->directory_bytes >= (set ? 8 + h->columns * sizeof(struct column_entry)
                                      : (2 * (uint64_t)h->columns + 1) * 4);
}

bool block_header_fits(const struct block_header *h, uint64_t left)
{
    return header_fits(h, left) && !(h->flags & BLOCK_STRIPE);
}

bool block_stripe_fits(const struct block_header *h, const struct block_header *stripe,
                       uint64_t left)
{
    return header_fits(stripe, left) && stripe->flags & BLOCK_STRIPE &&
           stripe->flags & BLOCK_COLD && !(stripe->flags & BLOCK_STRIPED) &&
           stripe->kind == h->kind && stripe->owner == h->owner && stripe->order == h->order &&
           stripe->sequence_first == h->sequence_first &&
           stripe->sequence_last == h->sequence_last && stripe->first_ns >= h->first_ns &&
           stripe->last_ns <= h->last_ns;
}

int block_by_number(const struct block_header *x, const struct block_header *y)
{
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->sequence_first != y->sequence_first)
        return x->sequence_first < y->sequence_first ? -1 : 1;
    return x->sequence_last > y->sequence_last ? -1 : x->sequence_last < y->sequence_last;
}

int block_entry_of_column(const struct block_header *h, const struct column_entry *e,
                          struct block_entry *out)
{
    if (!e->count)
        return -ENOENT;
    if (e->count > h->rows || e->offset > h->data_bytes || e->size > h->data_bytes - e->offset ||
        e->first_ns > e->last_ns)
        return -EBADMSG;
    *out = (struct block_entry){
        .count = e->count,
        .offset = e->offset,
        .size = e->size,
        .has_summary = true,
        .nans = e->nans,
        .first_ns = e->first_ns,
        .last_ns = e->last_ns,
        .summary = e->summary,
    };
    return 0;
}

static bool is_short(struct str record)
{
    return record.size && record.data[0];
}

// Returns the offset of the i-th time stamp from the block's first one, in a record of the short
// form.
static uint64_t short_time(struct str record, unsigned width, uint32_t i)
{
    uint64_t since = 0;
    memcpy(&since, record.data + 1 + i * width, width);
    return since;
}

static int entry_of_short_group(const struct block_header *h, uint32_t series, struct str record,
                                struct block_entry *out)
{
    uint32_t count = (uint8_t)record.data[0] & 7;
    unsigned width = (uint8_t)record.data[0] >> 3;
    if (!count || count > h->rows || width > 8 || record.size < 1 + (size_t)count * width)
        return -EBADMSG;
    *out = (struct block_entry){
        .series = series,
        .count = count,
        .first_ns = (int64_t)((uint64_t)h->first_ns + short_time(record, width, 0)),
        .last_ns = (int64_t)((uint64_t)h->first_ns + short_time(record, width, count - 1)),
    };
    return out->first_ns > out->last_ns || out->first_ns < h->first_ns || out->last_ns > h->last_ns
               ? -EBADMSG
               : 0;
}

int block_entry_of_group(const struct block_header *h, uint32_t series, struct str record,
                         struct block_entry *out)
{
    if (is_short(record))
        return entry_of_short_group(h, series, record, out);
    struct bytes in = bytes_of(record.data, record.size);
    struct group_head head = {0};
    struct group_summary s = {0};
    struct str bytes = bytes_take(&in, sizeof head), summary = bytes_take(&in, sizeof s);
    if (in.failed)
        return -EBADMSG;
    memcpy(&head, bytes.data, sizeof head);
    memcpy(&s, summary.data, sizeof s);
    if (head.count < BLOCK_SUMMARY_MIN || head.count > h->rows || head.count > CODEC_VALUES_MAX ||
        head.first_ns > head.last_ns)
        return -EBADMSG;
    *out = (struct block_entry){
        .series = series,
        .count = head.count,
        .has_summary = true,
        .nans = s.nans,
        .first_ns = head.first_ns,
        .last_ns = head.last_ns,
        .summary = s.values,
    };
    return 0;
}

// Finds the two streams of a group's record: time stamps and values.
static bool group_streams(const struct block_entry *e, struct str record, struct str *times,
                          struct str *values)
{
    struct bytes in = bytes_of(record.data, record.size);
    if (is_short(record)) {
        unsigned width = bytes_u8(&in) >> 3;
        *times = bytes_take(&in, (size_t)e->count * width);
        *values = (struct str){(const char *)in.at, bytes_left(&in)};
        return !in.failed && !e->has_summary && e->count == ((uint8_t)record.data[0] & 7);
    }
    struct group_head head;
    struct str bytes = bytes_take(&in, sizeof head);
    if (in.failed)
        return false;
    memcpy(&head, bytes.data, sizeof head);
    bytes_take(&in, sizeof(struct group_summary));
    *times = bytes_take(&in, head.time_bytes);
    *values = (struct str){(const char *)in.at, bytes_left(&in)};
    return !in.failed && e->has_summary && head.count == e->count;
}

int block_entry_of_point(const struct block_header *h, uint32_t series, const uint8_t *at,
                         struct block_entry *out)
{
    int64_t t_ns = one_each_point(h, at, series).t_ns;
    *out = (struct block_entry){.series = series, .count = 1, .first_ns = t_ns, .last_ns = t_ns};
    return t_ns < h->first_ns || t_ns > h->last_ns ? -EBADMSG : 0;
}

int block_value_bytes(const struct block_header *h, const struct block_entry *e, struct str column,
                      struct str *out)
{
    struct str times;
    if (h->flags & BLOCK_ONE_EACH) {
        *out = str_slice(column, block_time_bytes(h), column.size);
        return column.size == one_each_point_bytes(h) ? 0 : -EBADMSG;
    }
    if (h->kind == BLOCK_POINTS)
        return group_streams(e, column, &times, out) ? 0 : -EBADMSG;
    size_t skip = block_bitmap_bytes(h, e);
    *out = str_slice(column, skip, column.size);
    return column.size < skip ? -EBADMSG : 0;
}

int block_decode_values(const struct block_header *h, const struct block_entry *e,
                        struct str column, double *values)
{
    struct str stored;
    int rc = block_value_bytes(h, e, column, &stored);
    if (!rc && h->kind == BLOCK_POINTS && !e->has_summary) {
        if (stored.size != e->count * sizeof *values)
            return -EBADMSG;
        memcpy(values, stored.data, e->count * sizeof *values);
        return 0;
    }
    return rc ? rc : codec_decode((const uint8_t *)stored.data, stored.size, e->count, values);
}

int block_decode_group_times(const struct block_header *h, const struct block_entry *e,
                             struct str record, int64_t *t_ns)
{
    struct str times, values;
    if (h->flags & BLOCK_ONE_EACH) {
        t_ns[0] = e->first_ns;
        return 0;
    }
    if (!group_streams(e, record, &times, &values))
        return -EBADMSG;
    if (e->has_summary)
        return codec_decode_ascending_times((const uint8_t *)times.data, times.size, e->count,
                                            t_ns);
    unsigned width = (uint8_t)record.data[0] >> 3;
    uint64_t first = short_time(record, width, 0);
    for (uint32_t i = 0; i < e->count; i++)
        t_ns[i] = (int64_t)((uint64_t)e->first_ns + (short_time(record, width, i) - first));
    return codec_ascending(t_ns, e->count) ? 0 : -EBADMSG;
}

int block_pick_times(const uint8_t *bitmap, const int64_t *t_ns, uint32_t rows, uint32_t count,
                     int64_t *out)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < rows && n < count; r++)
        if (bitmap[r / 8] >> r % 8 & 1)
            out[n++] = t_ns[r];
    return n == count ? 0 : -EBADMSG;
}
