// tensorboard.c - scalars of TensorBoard's event files, from any program that writes them.
//
// In an event of sonde's own, a tag NAME/KEY=VALUE,… is a metric with tags (export/tensorboard.c).
// Any other tag is the name of a metric, even if it looks the same ("train/lr=0.1"). The metric
// gets the tag `run`: the file's folder, as in TensorBoard.
#include "import/rows.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/storable_name.h"
#include "formats/tensorboard.h"
#include "formats/tfrecord.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RECORD_MAX = 64 << 20 }; // large, because these files also contain pictures and graphs

struct tensorboard {
    FILE *file;
    struct import_hosts *to;
    struct import_stats *stats;
    struct str run;
    struct buf record, text, key;
    struct error *e;
    // descriptions of sonde's own tags, because only the first value of a tag has one
    struct map abouts;
    struct arena arena;
};

// Returns 1; 0 at the end; -EBADMSG for a damaged or truncated record; -ENOMEM.
static int next_record(struct tensorboard *t)
{
    uint8_t head[TFRECORD_HEAD_BYTES], tail[TFRECORD_FRAME_BYTES - TFRECORD_HEAD_BYTES];
    uint64_t size;
    size_t n = fread(head, 1, sizeof head, t->file);
    if (n == 0)
        return 0;
    if (n < sizeof head || !tfrecord_size(head, &size) || size > RECORD_MAX)
        return -EBADMSG;
    t->record.size = 0;
    if (!buf_reserve(&t->record, size + 1))
        return -ENOMEM;
    t->record.size = size;
    if (fread(t->record.data, 1, size, t->file) < size ||
        fread(tail, 1, sizeof tail, t->file) < sizeof tail)
        return -EBADMSG;
    struct bytes b = bytes_of(tail, sizeof tail);
    return tfrecord_is_whole(buf_str(&t->record), bytes_u32(&b)) ? 1 : -EBADMSG;
}

// Reads the labels from the last part of a tag. Their texts go to t->text and end at `ends`.
// Returns false if the part does not consist of pairs.
static bool read_labels(struct tensorboard *t, struct str pairs, size_t *ends, size_t *count)
{
    *count = 0;
    while (pairs.data) {
        struct str value = str_cut(&pairs, ','), key = str_cut(&value, '=');
        if (!key.size || !value.data || *count == STORE_LABELS_MAX)
            return false;
        tensorboard_add_unescaped(&t->text, key);
        ends[2 * *count + 1] = t->text.size;
        tensorboard_add_unescaped(&t->text, value);
        ends[2 * ++*count] = t->text.size;
    }
    return true;
}

static ptrdiff_t last_slash(struct str tag)
{
    ptrdiff_t at = (ptrdiff_t)tag.size - 1;
    while (at >= 0 && tag.data[at] != '/')
        at--;
    return at;
}

// Returns the description from the tag's first value: "counter in seconds". NULL without memory.
static const struct str *about_of(struct tensorboard *t, const struct tensorboard_scalar *s)
{
    struct str *known;
    uint64_t *place = map_get(&t->abouts, s->tag);
    if (!place) {
        struct str tag = arena_str(&t->arena, s->tag), about = arena_str(&t->arena, s->about);
        known = arena_zalloc(&t->arena, sizeof *known);
        place = tag.data && about.data && known ? map_add(&t->abouts, tag, NULL) : NULL;
        if (!place)
            return NULL;
        *known = about;
        *place = (uint64_t)(uintptr_t)known;
    }
    return (const struct str *)(uintptr_t)*place;
}

// Splits "counter in seconds: Processor time." into kind, unit and help.
static void read_about(struct str about, struct import_row *row)
{
    row->kind = str_starts(about, STR("counter")) ? IMPORT_COUNTER : IMPORT_GAUGE;
    ptrdiff_t colon = str_find(about, STR(": ")), in = str_find(about, STR(" in "));
    size_t end = colon < 0 ? about.size : (size_t)colon;
    if (in >= 0 && (size_t)in < end)
        row->unit = str_slice(about, (size_t)in + 4, end);
    if (colon >= 0)
        row->help = str_slice(about, end + 2, about.size);
}

// Reads a tag that sonde has written: NAME, or NAME/KEY=VALUE,…
static void read_own_tag(struct tensorboard *t, struct str tag, struct import_row *row,
                         struct store_label *labels)
{
    size_t ends[2 * STORE_LABELS_MAX + 1] = {0}, count = 0;
    ptrdiff_t slash = last_slash(tag);
    struct str name = tag;
    if (slash > 0 && read_labels(t, str_slice(tag, (size_t)slash + 1, tag.size), ends, &count)) {
        name = str_slice(tag, 0, (size_t)slash);
    } else {
        count = 0;
        t->text.size = 0;
    }
    size_t at = t->text.size;
    tensorboard_add_unescaped(&t->text, name);
    struct str all = buf_str(&t->text);
    for (size_t i = 0; i < count; i++)
        labels[i] = (struct store_label){str_slice(all, ends[2 * i], ends[2 * i + 1]),
                                         str_slice(all, ends[2 * i + 1], ends[2 * i + 2])};
    row->name = str_slice(all, at, all.size);
    row->label_count = count;
}

static void read_foreign_tag(struct tensorboard *t, struct str tag, struct import_row *row,
                             struct store_label *labels)
{
    storable_name_add(&t->text, tag, STORE_NAME_MAX);
    row->name = buf_str(&t->text);
    if (t->run.size)
        labels[row->label_count++] = (struct store_label){STR("run"), t->run};
}

static int take(void *user, const struct tensorboard_scalar *s)
{
    struct tensorboard *t = user;
    struct store_label labels[STORE_LABELS_MAX];
    struct import_row row = {
        .t_ns = s->t_ns, .end_ns = INT64_MAX, .value = s->value, .labels = labels};
    const struct str *about = s->ours ? about_of(t, s) : &s->about;
    t->text.size = 0;
    if (s->ours && about) {
        read_about(*about, &row);
        read_own_tag(t, s->tag, &row, labels);
    } else {
        read_foreign_tag(t, s->tag, &row, labels);
    }
    if (t->text.failed || !about)
        return error_set(t->e, -ENOMEM, "out of memory");
    int rc = import_row_take(t->to, &row, &t->key, t->stats, t->e);
    if (rc == -EINVAL)
        t->stats->bad_rows++;
    return rc == -EINVAL ? 0 : rc;
}

static int read_all(struct tensorboard *t, struct error *e)
{
    uint64_t records = 0;
    int rc;
    while ((rc = next_record(t)) > 0) {
        records++;
        rc = tensorboard_read(buf_str(&t->record), take, t);
        if (rc == -EBADMSG)
            t->stats->bad_rows++;
        else if (rc)
            return rc;
    }
    if (rc == -ENOMEM)
        return error_set(e, rc, "out of memory");
    if (!records)
        return error_set(e, rc ? -EBADMSG : -ENODATA,
                         rc ? "no event file of TensorBoard" : "the file is empty");
    // not an error, because the programs that write these files are often killed
    t->stats->truncated = rc < 0;
    return import_rows_check(t->stats, e);
}

// Returns the name of the folder: "lr0.1" of "logs/lr0.1/events.out.tfevents.1".
static struct str folder_of(const char *path)
{
    struct str rest = str_of(path), folder = {0};
    ptrdiff_t slash = last_slash(rest);
    if (slash <= 0)
        return folder;
    rest = str_slice(rest, 0, (size_t)slash);
    slash = last_slash(rest);
    folder = str_slice(rest, (size_t)(slash + 1), rest.size);
    return str_eq(folder, STR(".")) || str_eq(folder, STR("..")) ? (struct str){0} : folder;
}

int import_tensorboard(const char *path, struct import_hosts *to, struct import_stats *stats,
                       struct error *e)
{
    struct tensorboard t = {.to = to, .stats = stats, .run = folder_of(path), .e = e};
    *stats = (struct import_stats){0};
    t.file = fopen(path, "rbe");
    int rc = t.file ? read_all(&t, e) : error_set(e, -errno, "%s", strerror(errno));
    if (rc)
        error_prefix(e, "cannot import %s", path);
    if (t.file)
        fclose(t.file);
    buf_free(&t.record);
    buf_free(&t.text);
    buf_free(&t.key);
    map_free(&t.abouts);
    arena_free(&t.arena);
    return rc;
}
