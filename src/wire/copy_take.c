// copy_take.c - the receiving end of COPY: records of many nodes, each into a store that is written beside its name until it is whole.
#include "base/hash.h"
#include "base/map.h"
#include "wire/copy_wire.h"
#include "wire/numbers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct copying {
    struct str host; // malloc'd
    uint64_t file;
    char *path, *part; // its name, and the one that it has until it is whole
    struct store *store;
    uint32_t *metrics, *series; // our ids of its own
    size_t metric_count, metric_capacity, series_count, series_capacity;
    uint64_t points, events;
    uint32_t crc;
    bool whole, unchanged, failed;
};

struct wire_copy {
    char *folder;
    char range[64]; // of time, in words
    struct copying *all;
    size_t count, capacity;
    int64_t *times;
    double *values;
    struct store_point *points;
};

int wire_copy_create(const char *folder, int64_t from_ns, int64_t to_ns, struct wire_copy **out, struct error *e)
{
    *out = NULL;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return error_set(e, -errno, "cannot make the folder %s: %s", folder, strerror(errno));
    struct wire_copy *c = calloc(1, sizeof *c);
    if (c) {
        c->folder = strdup(folder);
        snprintf(c->range, sizeof c->range, "%lld..%lld", (long long)from_ns, (long long)to_ns);
        c->times = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->times);
        c->values = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->values);
        c->points = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->points);
    }
    if (!c || !c->folder || !c->times || !c->values || !c->points) {
        wire_copy_destroy(c);
        return error_set(e, -ENOMEM, "no memory for a copy");
    }
    *out = c;
    return 0;
}

// ---- files ----

// Gives up what has come of it.
static void abandon(struct copying *f)
{
    if (f->store)
        store_abandon(f->store);
    if (f->store || !f->whole)
        unlink(f->part);
    f->store = NULL;
}

void wire_copy_destroy(struct wire_copy *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        struct copying *f = &c->all[i];
        abandon(f);
        free((char *)f->host.data);
        free(f->path);
        free(f->part);
        free(f->metrics);
        free(f->series);
    }
    free(c->all);
    free(c->folder);
    free(c->times);
    free(c->values);
    free(c->points);
    free(c);
}

// A host's name becomes a file's: nothing in it may lead elsewhere.
static bool is_file_name(struct str host)
{
    return host.size > 0 && host.size <= 200 && host.data[0] != '.' && str_find_char(host, '/') < 0 &&
           str_find_char(host, 0) < 0;
}

static int add_file(struct wire_copy *c, struct str host, uint64_t number, struct copying **out, struct error *e)
{
    if (!is_file_name(host) || c->count == WIRE_COPY_FILES_MAX)
        return error_set(e, -EBADMSG, "a copy of a host whose name cannot be a file's, or of too many");
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 64;
        struct copying *all = realloc(c->all, capacity * sizeof *all);
        if (!all)
            return error_set(e, -ENOMEM, "no memory for a copy");
        c->all = all;
        c->capacity = capacity;
    }
    struct copying *f = &c->all[c->count];
    *f = (struct copying){.host = {strndup(host.data, host.size), host.size}, .file = number};
    char suffix[32] = "";
    if (number)
        snprintf(suffix, sizeof suffix, "+%llu", (unsigned long long)number);
    int path = asprintf(&f->path, "%s/%.*s%s.sonde", c->folder, STR_ARG(host), suffix);
    int part = asprintf(&f->part, "%s/%.*s%s.part", c->folder, STR_ARG(host), suffix);
    if (!f->host.data || path < 0 || part < 0) {
        free((char *)f->host.data);
        free(path < 0 ? NULL : f->path);
        free(part < 0 ? NULL : f->part);
        return error_set(e, -ENOMEM, "no memory for a copy");
    }
    c->count++;
    *out = f;
    return 0;
}

static struct copying *find_file(struct wire_copy *c, struct str host, uint64_t number)
{
    // Records of one file mostly follow each other.
    for (size_t i = c->count; i-- > 0;)
        if (c->all[i].file == number && str_eq(c->all[i].host, host))
            return &c->all[i];
    return NULL;
}

// ---- records ----

static int damaged(struct error *e)
{
    return error_set(e, -EBADMSG, "a damaged copy");
}

static int refused(const struct copying *f, int code, struct error *e)
{
    return error_set(e, code, "cannot write %s: %s", f->part, strerror(-code));
}

static int read_labels(struct bytes *b, struct store_label labels[STORE_LABELS_MAX], size_t *count)
{
    uint64_t n = bytes_varint(b);
    if (b->failed || n > STORE_LABELS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        labels[i].key = bytes_short(b);
        labels[i].value = bytes_short(b);
    }
    *count = (size_t)n;
    return b->failed ? -EBADMSG : 0;
}

static int take_head(const struct wire_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    struct store_label meta[STORE_LABELS_MAX + 2];
    size_t count;
    char version[32];
    int size = snprintf(version, sizeof version, "%llu", (unsigned long long)bytes_u64(b));
    if (read_labels(b, meta, &count) || f->store)
        return damaged(e);
    meta[count++] = (struct store_label){STR("copied_version"), {version, (size_t)size}};
    meta[count++] = (struct store_label){STR("copied_range"), str_of(c->range)};
    struct store_options o = {.meta = meta, .meta_count = count, .size_limit_bytes = UINT64_MAX};
    unlink(f->part);
    return store_open(f->part, &o, &f->store, e);
}

static int remember(uint32_t **ids, size_t *count, size_t *capacity, uint32_t id, struct error *e)
{
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 256;
        uint32_t *larger = realloc(*ids, more * sizeof **ids);
        if (!larger)
            return error_set(e, -ENOMEM, "no memory for a copy");
        *ids = larger;
        *capacity = more;
    }
    (*ids)[(*count)++] = id;
    return 0;
}

static int take_metric(struct copying *f, struct bytes *b, struct error *e)
{
    struct store_metric m = {.name = bytes_short(b)};
    m.unit = bytes_short(b);
    m.help = bytes_short(b);
    unsigned kind = bytes_u8(b);
    m.kind = (enum store_kind)kind;
    m.level = bytes_u8(b);
    uint32_t id;
    if (b->failed || kind > STORE_COUNTER)
        return damaged(e);
    int r = store_define_metric(f->store, &m, &id);
    return r ? refused(f, r, e) : remember(&f->metrics, &f->metric_count, &f->metric_capacity, id, e);
}

static int take_series(struct copying *f, struct bytes *b, struct error *e)
{
    struct store_label labels[STORE_LABELS_MAX];
    size_t count;
    uint64_t metric = bytes_varint(b);
    uint32_t id;
    if (b->failed || metric >= f->metric_count || read_labels(b, labels, &count))
        return damaged(e);
    int r = store_define_series(f->store, f->metrics[metric], labels, count, &id);
    return r ? refused(f, r, e) : remember(&f->series, &f->series_count, &f->series_capacity, id, e);
}

static int take_points(struct wire_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    uint64_t series = bytes_varint(b), count = bytes_varint(b);
    if (b->failed || series >= f->series_count || count == 0 || count > WIRE_COPY_POINTS_MAX ||
        wire_numbers_read(b, c->times, (size_t)count, true) || wire_numbers_read(b, c->values, (size_t)count, false))
        return damaged(e);
    for (size_t i = 0; i < count; i++)
        c->points[i] = (struct store_point){c->times[i], c->values[i], f->series[series]};
    int r = store_append_points(f->store, c->points, (size_t)count, NULL);
    f->points += count;
    return r ? refused(f, r, e) : 0;
}

static int take_event(struct copying *f, struct bytes *b, struct error *e)
{
    struct store_label labels[STORE_LABELS_MAX];
    struct store_event event = {.labels = labels};
    unsigned kind = bytes_u8(b);
    event.kind = (enum store_event_kind)kind;
    event.start_ns = (int64_t)bytes_u64(b);
    event.end_ns = (int64_t)bytes_u64(b);
    event.text = bytes_short(b);
    event.id = bytes_u64(b);
    event.parent = bytes_u64(b);
    if (b->failed || kind > STORE_ANNOTATION || read_labels(b, labels, &event.label_count))
        return damaged(e);
    int r = store_append_event(f->store, &event);
    f->events++;
    return r ? refused(f, r, e) : 0;
}

// It is whole when everything is there, and only then has its name.
static int take_tail(struct copying *f, struct bytes *b, struct error *e)
{
    uint64_t metrics = bytes_u64(b), series = bytes_u64(b), points = bytes_u64(b), events = bytes_u64(b);
    uint32_t crc = bytes_u32(b);
    if (b->failed || metrics != f->metric_count || series != f->series_count || points != f->points ||
        events != f->events || crc != f->crc)
        return damaged(e);
    struct store *store = f->store;
    f->store = NULL;
    int r = store_close(store, e);
    if (r == 0 && rename(f->part, f->path) != 0)
        r = error_set(e, -errno, "cannot rename %s: %s", f->part, strerror(errno));
    f->whole = r == 0;
    return r;
}

static int take_body(struct wire_copy *c, struct copying *f, unsigned kind, struct bytes *b, struct error *e)
{
    if (kind == 'u') {
        f->whole = f->unchanged = true;
        return 0;
    }
    if (kind != 'h' && !f->store)
        return damaged(e);
    switch (kind) {
    case 'h':
        return take_head(c, f, b, e);
    case 'm':
        return take_metric(f, b, e);
    case 's':
        return take_series(f, b, e);
    case 'p':
        return take_points(c, f, b, e);
    case 'e':
        return take_event(f, b, e);
    case 'z':
        return take_tail(f, b, e);
    default:
        return damaged(e);
    }
}

int wire_copy_take(struct wire_copy *c, struct str record, struct error *e)
{
    struct bytes b = bytes_of(record.data, record.size);
    struct str host = bytes_short(&b);
    uint64_t number = bytes_varint(&b);
    unsigned kind = bytes_u8(&b);
    if (b.failed)
        return damaged(e);
    struct copying *f = find_file(c, host, number);
    int r = 0;
    if (!f)
        r = kind == 'h' || kind == 'u' ? add_file(c, host, number, &f, e) : damaged(e);
    if (r || f->failed)
        return r;
    r = f->whole ? damaged(e) : take_body(c, f, kind, &b, e);
    if (r == 0 && bytes_left(&b))
        r = damaged(e);
    if (r) {
        f->failed = true;
        f->whole = false;
        abandon(f);
        return r;
    }
    f->crc = crc32c(f->crc, record.data, record.size);
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct wire_copy_file *)a)->path, ((const struct wire_copy_file *)b)->path);
}

int wire_copy_finish(struct wire_copy *c, struct arena *arena, const struct wire_copy_file **out, size_t *count)
{
    struct wire_copy_file *files = arena_array(arena, c->count, sizeof *files);
    size_t n = 0;
    if (!files)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        struct copying *f = &c->all[i];
        if (!f->whole) {
            abandon(f);
            continue;
        }
        files[n] = (struct wire_copy_file){.path = arena_strdup(arena, str_of(f->path)),
                                           .host = arena_str(arena, f->host),
                                           .unchanged = f->unchanged,
                                           .points = f->points};
        if (!files[n].path || !files[n++].host.data)
            return -ENOMEM;
    }
    if (n)
        qsort(files, n, sizeof *files, compare_files);
    *out = files;
    *count = n;
    return 0;
}

// ---- all at once ----

// Which state, of that range of time, of which host's file is in the folder.
static int known_files(const char *folder, const char *range, struct arena *arena, const struct wire_copy_known **out,
                       size_t *count)
{
    DIR *dir = opendir(folder);
    struct wire_copy_known *known = arena_array(arena, WIRE_COPY_FILES_MAX, sizeof *known);
    size_t n = 0;
    if (!dir || !known) {
        if (dir)
            closedir(dir);
        return known ? -errno : -ENOMEM;
    }
    for (struct dirent *d = readdir(dir); d && n < WIRE_COPY_FILES_MAX; d = readdir(dir)) {
        struct str name = str_of(d->d_name);
        char path[4096];
        struct store_reader *r;
        uint64_t version;
        if (!str_ends(name, STR(".sonde")) ||
            snprintf(path, sizeof path, "%s/%s", folder, d->d_name) >= (int)sizeof path ||
            store_reader_open(path, &r, NULL))
            continue;
        name.size -= strlen(".sonde");
        if (str_to_u64(store_reader_meta(r, STR("copied_version")), &version) &&
            str_eq(store_reader_meta(r, STR("copied_range")), str_of(range)))
            known[n++] = (struct wire_copy_known){arena_str(arena, name), version};
        store_reader_close(r);
        if (n && !known[n - 1].host.data) {
            closedir(dir);
            return -ENOMEM;
        }
    }
    closedir(dir);
    *out = known;
    *count = n;
    return 0;
}

static int on_record(void *user, struct str host, struct str record, struct error *e)
{
    (void)host;
    return wire_copy_take(user, record, e);
}

int hub_copy(struct hub *h, const char *folder, int64_t from_ns, int64_t to_ns, const struct hub_where *where,
             struct arena *arena, const struct wire_copy_file **out, size_t *count, struct hub_absent *absent,
             struct error *e)
{
    struct wire_copy *c;
    struct wire_copy_request m = {.from_ns = from_ns, .to_ns = to_ns};
    struct buf request = {0};
    *absent = (struct hub_absent){0};
    int r = wire_copy_create(folder, from_ns, to_ns, &c, e);
    if (r)
        return r;
    r = known_files(folder, c->range, arena, &m.known, &m.known_count);
    wire_copy_request_write(&m, &request);
    if (r || request.failed)
        r = error_set(e, r ? r : -ENOMEM, "cannot look through %s: %s", folder, strerror(r ? -r : ENOMEM));
    else
        r = hub_ask_all(h, WIRE_COPY, buf_str(&request), where, on_record, c, arena, absent, e);
    if (r == 0 && wire_copy_finish(c, arena, out, count))
        r = error_set(e, -ENOMEM, "no memory for a copy");
    buf_free(&request);
    wire_copy_destroy(c);
    return r;
}
