#include "store/block.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "store/codec.h"

#include <errno.h>
#include <stdlib.h>

struct group_head {
    uint32_t count, time_bytes;
    int64_t first_ns, last_ns;
};
struct group_summary {
    uint32_t nans, zero;
    double min, max, sum, sum_squares, first, last;
};

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

static void finish(struct buf *out, size_t start, struct block_header *h)
{
    while (out->size % 8 && !out->failed)
        buf_u8(out, 0);
    if (out->failed)
        return;
    uint8_t *block = (uint8_t *)out->data + start;
    size_t data_at = sizeof *h + h->directory_bytes;
    h->magic = BLOCK_MAGIC;
    h->size = (uint32_t)(out->size - start);
    h->data_bytes = h->size - (uint32_t)data_at;
    if (!(h->flags & BLOCK_ZSTD_DATA))
        h->data_raw_bytes = h->data_bytes;
    if (!(h->flags & BLOCK_ZSTD_DIRECTORY))
        h->directory_raw_bytes = h->directory_bytes;
    h->data_crc = crc32c(0, block + data_at, h->data_bytes);
    memcpy(block, h, sizeof *h);
    h->head_crc = crc32c(0, block + 8, data_at - 8);
    memcpy(block, h, sizeof *h);
}

static struct block_header header_of(const struct block_source *source, enum block_kind kind)
{
    return (struct block_header){
        .kind = (uint16_t)kind,
        .flags = source->flags,
        .owner = source->owner,
        .sequence_first = source->sequence_first,
        .sequence_last = source->sequence_last,
        .order = source->order,
    };
}

int block_put_set(struct buf *out, const struct block_source *source, const int64_t *t_ns, uint32_t rows,
                  const double *values, size_t stride, uint32_t columns)
{
    size_t start = out->size, directory_bytes = 8 + columns * sizeof(struct column_entry);
    double *present = malloc(rows * sizeof *present);
    if (!present || !buf_reserve(out, sizeof(struct block_header) + directory_bytes + codec_bound(rows) + 8)) {
        free(present);
        return -ENOMEM;
    }
    struct block_header h = header_of(source, BLOCK_SET);
    h.rows = rows;
    h.columns = columns;
    h.directory_bytes = (uint32_t)directory_bytes;
    h.first_ns = t_ns[0];
    h.last_ns = t_ns[rows - 1];
    size_t data_at = start + sizeof h + directory_bytes;
    memset(out->data + start, 0, sizeof h + directory_bytes);
    out->size = data_at;
    uint32_t time_bytes = (uint32_t)codec_encode_times(t_ns, rows, CODEC_HOT, (uint8_t *)out->data + out->size);
    out->size += time_bytes;
    memcpy(out->data + start + sizeof h, &time_bytes, 4);
    for (uint32_t c = 0; c < columns; c++) {
        const double *column = values + c * stride;
        struct column_entry entry = {.offset = (uint32_t)(out->size - data_at)};
        size_t bitmap_bytes = (rows + 7) / 8;
        if (!buf_reserve(out, codec_bound(rows) + bitmap_bytes + 8) || out->size - start > UINT32_MAX / 2)
            break;
        uint32_t first = 0, last = 0;
        for (uint32_t r = 0; r < rows; r++)
            if (!store_is_missing(column[r])) {
                if (!entry.count)
                    first = r;
                last = r;
                present[entry.count++] = column[r];
            }
        if (entry.count) {
            if (entry.count < rows) {
                uint8_t *bitmap = (uint8_t *)out->data + out->size;
                memset(bitmap, 0, bitmap_bytes);
                for (uint32_t r = 0; r < rows; r++)
                    bitmap[r / 8] = (uint8_t)(bitmap[r / 8] | !store_is_missing(column[r]) << r % 8);
                out->size += bitmap_bytes;
            }
            struct codec_summary sum;
            out->size += codec_encode(present, entry.count, CODEC_HOT, (uint8_t *)out->data + out->size, &sum);
            entry.nans = sum.nans;
            entry.first_ns = t_ns[first];
            entry.last_ns = t_ns[last];
            entry.min = sum.min;
            entry.max = sum.max;
            entry.sum = sum.sum;
            entry.sum_squares = sum.sum_squares;
            entry.first = present[0];
            entry.last = present[entry.count - 1];
        }
        entry.size = (uint32_t)(out->size - data_at) - entry.offset;
        h.values += entry.count;
        memcpy(out->data + start + sizeof h + 8 + c * sizeof entry, &entry, sizeof entry);
    }
    free(present);
    finish(out, start, &h);
    return out->failed ? -ENOMEM : out->size - start > UINT32_MAX / 2 ? -EFBIG : 0;
}

int block_put_points(struct buf *out, const struct block_source *source, const struct point_record *points,
                     size_t count)
{
    size_t start = out->size;
    struct block_header h = header_of(source, BLOCK_POINTS);
    h.rows = (uint32_t)count;
    h.values = count;
    for (size_t i = 0; i < count; i++)
        h.columns += !i || points[i].series != points[i - 1].series;
    h.directory_bytes = (2 * h.columns + 1) * 4;
    if (h.directory_bytes % 8)
        h.directory_bytes += 4;
    h.first_ns = INT64_MAX;
    h.last_ns = INT64_MIN;
    int64_t *t = malloc(count * sizeof *t);
    double *v = malloc(count * sizeof *v);
    size_t data_at = start + sizeof h + h.directory_bytes;
    if (!t || !v || !buf_reserve(out, sizeof h + h.directory_bytes)) {
        free(t);
        free(v);
        return -ENOMEM;
    }
    memset(out->data + start, 0, sizeof h + h.directory_bytes);
    out->size = data_at;
    uint32_t group = 0;
    for (size_t i = 0; i < count; group++) {
        size_t n = 0;
        uint32_t series = points[i].series;
        while (i + n < count && points[i + n].series == series && n < CODEC_VALUES_MAX) {
            t[n] = points[i + n].t_ns;
            v[n] = points[i + n].value;
            n++;
        }
        if (!buf_reserve(out, 2 * codec_bound(n) + 128))
            break;
        uint32_t offset = (uint32_t)(out->size - data_at);
        memcpy(out->data + start + sizeof h + 4 * group, &series, 4);
        memcpy(out->data + start + sizeof h + 4 * (h.columns + group), &offset, 4);
        struct group_head head = {.count = (uint32_t)n, .first_ns = t[0], .last_ns = t[n - 1]};
        size_t head_at = out->size, summary_at = head_at + sizeof head;
        out->size = summary_at + (n >= BLOCK_SUMMARY_MIN ? sizeof(struct group_summary) : 0);
        head.time_bytes = (uint32_t)codec_encode_times(t, n, CODEC_HOT, (uint8_t *)out->data + out->size);
        out->size += head.time_bytes;
        struct codec_summary sum;
        out->size += codec_encode(v, n, CODEC_HOT, (uint8_t *)out->data + out->size, &sum);
        memcpy(out->data + head_at, &head, sizeof head);
        if (n >= BLOCK_SUMMARY_MIN) {
            struct group_summary s = {.nans = sum.nans,
                                      .min = sum.min,
                                      .max = sum.max,
                                      .sum = sum.sum,
                                      .sum_squares = sum.sum_squares,
                                      .first = v[0],
                                      .last = v[n - 1]};
            memcpy(out->data + summary_at, &s, sizeof s);
        }
        h.first_ns = head.first_ns < h.first_ns ? head.first_ns : h.first_ns;
        h.last_ns = head.last_ns > h.last_ns ? head.last_ns : h.last_ns;
        i += n;
    }
    free(t);
    free(v);
    if (out->failed)
        return -ENOMEM;
    uint32_t end = (uint32_t)(out->size - data_at);
    memcpy(out->data + start + sizeof h + 8 * h.columns, &end, 4);
    finish(out, start, &h);
    return out->failed ? -ENOMEM : 0;
}

int block_put_events(struct buf *out, const struct block_source *source, struct str records, uint32_t count,
                     int64_t first_ns, int64_t last_ns)
{
    size_t start = out->size;
    struct block_header h = header_of(source, BLOCK_EVENTS);
    h.rows = count;
    h.first_ns = first_ns;
    h.last_ns = last_ns;
    buf_add(out, &h, sizeof h);
    buf_add_str(out, records);
    finish(out, start, &h);
    return out->failed ? -ENOMEM : 0;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

bool block_header_fits(const struct block_header *h, uint64_t left)
{
    if (left < sizeof *h || h->magic != BLOCK_MAGIC || h->size < sizeof *h || h->size > left || h->size % 8 ||
        h->kind < BLOCK_SET || h->kind > BLOCK_EVENTS || h->sequence_first > h->sequence_last)
        return false;
    uint64_t parts = (uint64_t)sizeof *h + h->directory_bytes + h->data_bytes;
    if (parts != h->size)
        return false;
    if (h->kind == BLOCK_SET)
        return h->rows && h->rows <= CODEC_VALUES_MAX && h->columns && h->columns <= STORE_SET_SERIES_MAX &&
               h->directory_raw_bytes >= 8 + h->columns * sizeof(struct column_entry);
    if (h->kind == BLOCK_POINTS)
        return h->columns && h->directory_raw_bytes >= (2 * (uint64_t)h->columns + 1) * 4;
    return true;
}

bool block_head_intact(const struct block_header *h, const uint8_t *block)
{
    return crc32c(0, block + 8, sizeof *h - 8 + h->directory_bytes) == h->head_crc;
}

bool block_data_intact(const struct block_header *h, const uint8_t *block)
{
    return crc32c(0, block + sizeof *h + h->directory_bytes, h->data_bytes) == h->data_crc;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static const uint8_t *directory_of(const uint8_t *block)
{
    return block + sizeof(struct block_header);
}

static const uint8_t *data_of(const struct block_header *h, const uint8_t *block)
{
    return block + sizeof *h + h->directory_bytes;
}

static void column_entry_at(const uint8_t *block, uint32_t column, struct column_entry *out)
{
    memcpy(out, directory_of(block) + 8 + column * sizeof *out, sizeof *out);
}

static int find_set_column(const struct block_header *h, const uint8_t *block, uint32_t column,
                           struct block_column *out)
{
    if (column >= h->columns)
        return -ENOENT;
    struct column_entry e;
    column_entry_at(block, column, &e);
    if (!e.count)
        return -ENOENT;
    if (e.count > h->rows || e.offset > h->data_bytes || e.size > h->data_bytes - e.offset)
        return -EBADMSG;
    *out = (struct block_column){
        .count = e.count,
        .has_summary = true,
        .group = column,
        .run = {e.count, e.first_ns, e.last_ns, true, e.nans, e.min, e.max, e.sum, e.sum_squares, e.first, e.last},
    };
    return 0;
}

static int group_record(const struct block_header *h, const uint8_t *block, uint32_t group, struct bytes *out,
                        struct group_head *head)
{
    const uint8_t *offsets = directory_of(block) + 4 * (size_t)h->columns;
    uint32_t from = u32_at(offsets + 4 * (size_t)group), to = u32_at(offsets + 4 * (size_t)group + 4);
    if (from > to || to > h->data_bytes || to - from < sizeof *head)
        return -EBADMSG;
    *out = bytes_of(data_of(h, block) + from, to - from);
    memcpy(head, bytes_take(out, sizeof *head).data, sizeof *head);
    return head->count && head->count <= h->rows && head->count <= CODEC_VALUES_MAX ? 0 : -EBADMSG;
}

static int find_group(const struct block_header *h, const uint8_t *block, uint32_t series, struct block_column *out)
{
    const uint8_t *ids = directory_of(block);
    uint32_t low = 0, high = h->columns;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (u32_at(ids + 4 * (size_t)middle) < series)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == h->columns || u32_at(ids + 4 * (size_t)low) != series)
        return -ENOENT;
    struct bytes record;
    struct group_head head;
    int rc = group_record(h, block, low, &record, &head);
    if (rc)
        return rc;
    *out = (struct block_column){
        .count = head.count,
        .group = low,
        .run = {.count = head.count, .first_ns = head.first_ns, .last_ns = head.last_ns},
    };
    if (head.count < BLOCK_SUMMARY_MIN)
        return 0;
    struct group_summary s;
    struct str bytes = bytes_take(&record, sizeof s);
    if (record.failed)
        return -EBADMSG;
    memcpy(&s, bytes.data, sizeof s);
    out->has_summary = true;
    out->run.has_summary = true;
    out->run.nans = s.nans;
    out->run.min = s.min;
    out->run.max = s.max;
    out->run.sum = s.sum;
    out->run.sum_squares = s.sum_squares;
    out->run.first = s.first;
    out->run.last = s.last;
    return 0;
}

int block_find_column(const struct block_header *h, const uint8_t *block, uint32_t column_or_series,
                      struct block_column *out)
{
    if (h->kind == BLOCK_SET)
        return find_set_column(h, block, column_or_series, out);
    return h->kind == BLOCK_POINTS ? find_group(h, block, column_or_series, out) : -ENOENT;
}

int block_decode_times(const struct block_header *h, const uint8_t *block, int64_t *t_ns)
{
    uint32_t time_bytes = u32_at(directory_of(block));
    if (time_bytes > h->data_bytes)
        return -EBADMSG;
    return codec_decode_times(data_of(h, block), time_bytes, h->rows, t_ns);
}

static int decode_set_column(const struct block_header *h, const uint8_t *block, const struct block_column *column,
                             const int64_t *shared_t, int64_t *t_ns, double *values)
{
    struct column_entry e;
    column_entry_at(block, column->group, &e);
    const uint8_t *at = data_of(h, block) + e.offset;
    size_t bitmap_bytes = e.count < h->rows ? (h->rows + 7) / 8 : 0;
    if (e.size < bitmap_bytes)
        return -EBADMSG;
    int rc = codec_decode(at + bitmap_bytes, e.size - bitmap_bytes, e.count, values);
    if (rc)
        return rc;
    if (shared_t && !bitmap_bytes) {
        memcpy(t_ns, shared_t, e.count * sizeof *t_ns);
        return 0;
    }
    int64_t *all = NULL;
    if (!shared_t) {
        all = bitmap_bytes ? malloc(h->rows * sizeof *all) : t_ns;
        if (!all)
            return -ENOMEM;
        rc = block_decode_times(h, block, all);
        shared_t = all;
    }
    if (!rc && bitmap_bytes) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < h->rows && n < e.count; r++)
            if (at[r / 8] >> r % 8 & 1)
                t_ns[n++] = shared_t[r];
        rc = n == e.count ? 0 : -EBADMSG;
    }
    if (all != t_ns)
        free(all);
    return rc;
}

int block_decode_column(const struct block_header *h, const uint8_t *block, const struct block_column *column,
                        const int64_t *shared_t, int64_t *t_ns, double *values, size_t *count)
{
    *count = 0;
    int rc;
    if (h->kind == BLOCK_SET) {
        rc = decode_set_column(h, block, column, shared_t, t_ns, values);
    } else {
        struct bytes record;
        struct group_head head;
        rc = group_record(h, block, column->group, &record, &head);
        if (rc)
            return rc;
        if (head.count >= BLOCK_SUMMARY_MIN)
            bytes_take(&record, sizeof(struct group_summary));
        struct str times = bytes_take(&record, head.time_bytes);
        if (record.failed)
            return -EBADMSG;
        rc = codec_decode_times((const uint8_t *)times.data, times.size, head.count, t_ns);
        if (!rc)
            rc = codec_decode(record.at, bytes_left(&record), head.count, values);
    }
    if (!rc)
        *count = column->count;
    return rc;
}
