#include "store/inspect.h"

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

// Which codec each column of an intact block is in.
static void add_codec(enum codec_id id, uint64_t values, uint64_t bytes, void *user)
{
    struct store_inspection *out = user;
    if (id >= CODEC_COUNT)
        return;
    out->codecs[id].columns++;
    out->codecs[id].values += values;
    out->codecs[id].bytes += bytes;
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
    for (size_t i = 0; i < s->block_count; i++) {
        const struct block_ref *b = &s->blocks[i];
        uint8_t *bytes = block_fetch(s, b);
        if (!bytes)
            continue;
        out->blocks++;
        out->cold_blocks += (b->header.flags & BLOCK_COLD) != 0;
        out->block_bytes += b->header.size;
        out->values += b->header.values;
        out->directory_bytes += sizeof b->header + b->header.directory_bytes;
        uint64_t time_bytes = 0;
        block_each_codec(&b->header, bytes, &time_bytes, add_codec, out);
        out->time_bytes += time_bytes;
        free(bytes);
    }
    for (size_t i = 0; i < s->tail_count; i++) {
        const struct tail_copy *t = &s->tails[i];
        uint64_t per = t->kind == SEGMENT_SET_TAIL     ? r->index.sets[t->owner].count
                       : t->kind == SEGMENT_POINT_TAIL ? 1
                                                       : 0;
        out->live_values += per * t->used;
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
