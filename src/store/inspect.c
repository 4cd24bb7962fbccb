#include "store/inspect.h"

#include "store/codec_table.h"
#include "store/event_record.h"
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool count_event(const struct store_event *event, void *user)
{
    (void)event;
    ++*(uint64_t *)user;
    return true;
}

static void add_codec(struct store_inspection *out, enum codec_id id, uint64_t columns,
                      uint64_t values, uint64_t bytes)
{
    if (id >= CODEC_COUNT)
        return;
    out->codecs[id].columns += columns;
    out->codecs[id].values += values;
    out->codecs[id].bytes += bytes;
}

static void add_hot(struct store_snapshot *s, struct block_ref *b, struct store_inspection *out)
{
    const struct block_header *h = &b->header;
    uint64_t value_bytes = 0;
    if (h->flags & BLOCK_ONE_EACH) {
        value_bytes = h->rows * sizeof(double);
        add_codec(out, CODEC_PLAIN, h->columns, h->values, value_bytes);
        out->time_bytes += h->data_bytes - value_bytes;
        return;
    }
    for (uint32_t i = 0; i < h->columns; i++) {
        uint32_t id = i;
        int rc = 0;
        if (h->kind == BLOCK_POINTS) {
            const uint8_t *at = block_copy(s, b, sizeof *h + 4 * (size_t)i, sizeof id, &rc);
            if (at)
                memcpy(&id, at, sizeof id);
        }
        struct block_entry e;
        if (rc || block_lookup(s, b, id, &e))
            continue;
        const uint8_t *at =
            block_copy(s, b, sizeof *h + h->directory_bytes + e.offset, e.size, &rc);
        struct str column = {(const char *)at, e.size}, values;
        if (rc || block_value_bytes(h, &e, column, &values))
            continue;
        value_bytes += values.size;
        bool raw = h->kind == BLOCK_POINTS && e.count < BLOCK_SUMMARY_MIN;
        add_codec(out, raw ? CODEC_PLAIN : codec_of((const uint8_t *)values.data, values.size), 1,
                  e.count, values.size);
    }
    out->time_bytes += h->data_bytes - value_bytes;
}

// Divides the bytes of a part among its columns, time stamps included, in the ratio of their bytes
// before compression.
static void add_cold(struct store_snapshot *s, struct block_ref *b, struct store_inspection *out)
{
    struct cold_directory *d;
    if (cold_directory_of(s, b, &d))
        return;
    for (uint32_t part = 0; part < d->part_count; part++) {
        struct cache_item *item;
        if (cold_part(s, b, part, &item))
            return;
        const struct codec_table *t = item->table;
        uint64_t all = 0;
        for (size_t c = 0; c < codec_table_columns(t); c++)
            all += codec_table_column_bytes(t, c);
        double per_byte = all ? (double)d->parts[part].size / (double)all : 0;
        double used = 0;
        for (uint32_t i = 0; i < d->entry_count; i++) {
            const struct block_entry *e = &d->entries[i];
            if (!e->count || e->part != part || e->value_column >= codec_table_columns(t))
                continue;
            double bytes = per_byte * (double)codec_table_column_bytes(t, e->value_column);
            add_codec(out, codec_table_codec(t, e->value_column), 1, e->count, (uint64_t)bytes);
            used += bytes;
        }
        out->time_bytes += d->parts[part].size > used ? d->parts[part].size - (uint64_t)used : 0;
        cache_unpin(item);
    }
}

int store_inspect(const char *path, struct store_inspection *out, struct error *e)
{
    *out = (struct store_inspection){0};
    struct store_reader *r;
    int rc = store_reader_open(path, &r, e);
    if (rc)
        return rc;
    struct stat st;
    if (!fstat(r->fd, &st)) {
        out->file_bytes = (uint64_t)st.st_size;
        out->disk_bytes = (uint64_t)st.st_blocks * 512;
    }
    const struct superblock *sb = (const struct superblock *)(const void *)r->mapping->base;
    out->major = sb->major;
    out->minor = sb->minor;
    out->state = store_reader_state(r);
    struct store_snapshot *s = store_snapshot_open(r);
    if (!s) {
        store_reader_close(r);
        return error_set(e, -ENOMEM, "no memory to read %s", path);
    }
    out->metrics = s->metric_count;
    out->series = s->series_count;
    out->sets = s->set_count;
    const struct view *v = s->view;
    for (size_t i = 0; i < v->block_count; i++) {
        struct block_ref *b = v->blocks[i];
        if (block_check(r, b, true))
            continue;
        out->blocks++;
        out->cold_blocks += (b->header.flags & BLOCK_COLD) != 0;
        out->block_bytes += b->header.size;
        out->values += b->header.values;
        out->directory_bytes += sizeof b->header + b->header.directory_bytes;
        if (b->header.kind == BLOCK_EVENTS)
            continue;
        if (b->header.flags & BLOCK_COLD)
            add_cold(s, b, out);
        else
            add_hot(s, b, out);
    }
    for (size_t i = 0; i < v->tail_count; i++) {
        const struct view_tail *t = &v->tails[i];
        uint64_t per = t->kind == EXTENT_SET_TAIL     ? r->index.sets[t->owner].count
                       : t->kind == EXTENT_POINT_TAIL ? 1
                                                      : 0;
        out->live_values += per * s->used[i];
    }
    out->values += out->live_values;
    if (!store_time_range(s, &out->first_ns, &out->last_ns))
        out->first_ns = out->last_ns = 0;
    store_events(s, INT64_MIN, INT64_MAX, count_event, &out->events);
    out->catalog_bytes = s->catalog_bytes;
    store_snapshot_close(s);
    store_reader_damage(r, &out->damage);
    store_reader_close(r);
    return 0;
}
