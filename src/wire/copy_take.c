// copy_take.c - the receiving end of COPY: records of many nodes, each into a store that is written beside its name until it is whole.
#include "base/hash.h"
#include "wire/copy_wire.h"
#include "wire/numbers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROBLEM_MAX = 512,
    COPY_MEMORY_BYTES = 32 << 20, // of each file's store
};

struct copying {
    struct str host; // malloc'd
    uint64_t file;
    char *path, *part; // its name, and the one that it has until it is whole; NULL before its head has come
    struct store *store;
    uint32_t *metrics, *series; // our ids of its own
    size_t metric_count, metric_capacity, series_count, series_capacity;
    uint64_t points, events, bytes;
    uint32_t crc;
    bool made, whole, unchanged, failed; // made: the file under its first name
    int code;                            // of the problem
    char problem[PROBLEM_MAX];           // why it could not be written; empty: it was damaged, or nothing is wrong
};

// A recording that is in the folder already.
struct there {
    struct str name, from;           // HOST.sonde; how the node was called that it is of
    uint64_t file;                   // of that node
    bool ours, same_range, all_time; // a copy of our job; of the time that is asked for; of all
};

struct wire_copy {
    struct wire_copy_options o;
    char *folder;
    char range[64]; // of time, in words
    struct arena arena;
    struct there *there;
    struct wire_copy_known *known;
    size_t there_count, known_count;
    struct copying *all;
    size_t count, capacity;
    int64_t *times;
    double *values;
    struct store_point *points;
};

static const char all_time[] = "0..9223372036854775807";

// ---- what is there ----

static int note_there(struct wire_copy *c, const char *name, const struct store_reader *r)
{
    struct there *t = &c->there[c->there_count];
    struct str range = store_reader_meta(r, STR("copied_range")), from = store_reader_meta(r, STR("copied_from"));
    uint64_t version = 0;
    bool copy = str_to_u64(store_reader_meta(r, STR("copied_version")), &version);
    *t = (struct there){.name = arena_str(&c->arena, str_of(name)),
                        .from = arena_str(&c->arena, from),
                        .ours = copy && (!c->o.job.size || str_eq(store_reader_meta(r, STR("job")), c->o.job)),
                        .same_range = str_eq(range, str_of(c->range)),
                        .all_time = str_eq(range, str_of(all_time))};
    if (!t->name.data || !t->from.data)
        return -ENOMEM;
    str_to_u64(store_reader_meta(r, STR("copied_file")), &t->file);
    c->there_count++;
    if (t->ours && t->same_range && t->file == 0)
        c->known[c->known_count++] = (struct wire_copy_known){t->from, version};
    return 0;
}

// A file that cannot be read is there as well, and is no copy.
static int look_through(struct wire_copy *c)
{
    DIR *dir = opendir(c->folder);
    c->there = arena_array(&c->arena, WIRE_COPY_FILES_MAX, sizeof *c->there);
    c->known = arena_array(&c->arena, WIRE_COPY_FILES_MAX, sizeof *c->known);
    int status = !dir ? -errno : c->there && c->known ? 0 : -ENOMEM;
    for (struct dirent *d = dir ? readdir(dir) : NULL; d && status == 0 && c->there_count < WIRE_COPY_FILES_MAX;
         d = readdir(dir)) {
        struct store_reader *r;
        char *path = NULL;
        if (!str_ends(str_of(d->d_name), STR(".sonde")))
            continue;
        if (asprintf(&path, "%s/%s", c->folder, d->d_name) < 0)
            status = -ENOMEM;
        else if (store_reader_open(path, &r, NULL) == 0) {
            status = note_there(c, d->d_name, r);
            store_reader_close(r);
        }
        free(path);
    }
    if (dir)
        closedir(dir);
    return status;
}

int wire_copy_create(const struct wire_copy_options *options, struct wire_copy **out, struct error *e)
{
    *out = NULL;
    if (mkdir(options->folder, 0700) != 0 && errno != EEXIST)
        return error_set(e, -errno, "cannot make the folder %s: %s", options->folder, strerror(errno));
    struct wire_copy *c = calloc(1, sizeof *c);
    if (c) {
        c->o = *options;
        c->folder = strdup(options->folder);
        snprintf(c->range, sizeof c->range, "%lld..%lld", (long long)options->from_ns, (long long)options->to_ns);
        c->times = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->times);
        c->values = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->values);
        c->points = calloc(WIRE_COPY_POINTS_MAX, sizeof *c->points);
    }
    if (!c || !c->folder || !c->times || !c->values || !c->points) {
        wire_copy_destroy(c);
        return error_set(e, -ENOMEM, "no memory for a copy");
    }
    int status = look_through(c);
    if (status) {
        error_set(e, status, "cannot look through %s: %s", options->folder, strerror(-status));
        wire_copy_destroy(c);
        return status;
    }
    *out = c;
    return 0;
}

const struct wire_copy_known *wire_copy_known(const struct wire_copy *c, size_t *count)
{
    *count = c->known_count;
    return c->known;
}

// ---- files ----

// Gives up what has come of it.
static void abandon(struct copying *f)
{
    if (f->store)
        store_abandon(f->store);
    if (f->made && !f->whole)
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
    arena_free(&c->arena);
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
    if (!f->host.data)
        return error_set(e, -ENOMEM, "no memory for a copy");
    c->count++;
    *out = f;
    return 0;
}

// `name`: HOST.sonde.
static int name_file(const struct wire_copy *c, struct copying *f, struct str name, struct error *e)
{
    name.size -= strlen(".sonde");
    if (asprintf(&f->path, "%s/%.*s.sonde", c->folder, STR_ARG(name)) < 0)
        f->path = NULL;
    if (asprintf(&f->part, "%s/%.*s.part", c->folder, STR_ARG(name)) < 0)
        f->part = NULL;
    return f->path && f->part ? 0 : error_set(e, -ENOMEM, "no memory for a copy");
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

// It cannot be written. Only a lack of memory is a reason to stop altogether.
static int refused(struct copying *f, int code, struct error *e)
{
    if (code == -ENOMEM)
        return error_set(e, code, "no memory for a copy");
    snprintf(f->problem, sizeof f->problem, "cannot write %s: %s", f->path, strerror(-code));
    return code;
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

// Whether a new copy may take the place of what is there.
static int check_place(const struct wire_copy *c, struct copying *f)
{
    const char *name = strrchr(f->path, '/') + 1;
    bool twice = false;
    for (size_t i = 0; i < c->count && !twice; i++)
        twice = &c->all[i] != f && c->all[i].path && strcmp(c->all[i].path, f->path) == 0;
    const struct there *t = NULL;
    for (size_t i = 0; i < c->there_count && !t; i++)
        if (str_eq(c->there[i].name, str_of(name)))
            t = &c->there[i];
    struct stat info;
    if (twice)
        snprintf(f->problem, sizeof f->problem, "two nodes would have the file %s", f->path);
    else if (t ? !t->ours : lstat(f->path, &info) == 0)
        snprintf(f->problem, sizeof f->problem, "%s is there already and is no copy of this job: choose another folder",
                 f->path);
    else if (t && t->all_time && strcmp(c->range, all_time) != 0)
        snprintf(f->problem, sizeof f->problem,
                 "%s is there already and is a copy of all time: choose another folder for some of it", f->path);
    return f->problem[0] ? -EEXIST : 0;
}

static int take_head(const struct wire_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    struct store_label meta[STORE_LABELS_MAX + 4];
    size_t count;
    char version[32], file[32], name[256];
    int size = snprintf(version, sizeof version, "%llu", (unsigned long long)bytes_u64(b));
    if (read_labels(b, meta, &count) || f->path)
        return damaged(e);
    struct str host = f->host;
    for (size_t i = 0; i < count; i++)
        if (str_eq(meta[i].key, STR("host")) && is_file_name(meta[i].value))
            host = meta[i].value;
    meta[count++] = (struct store_label){STR("copied_version"), {version, (size_t)size}};
    meta[count++] = (struct store_label){STR("copied_range"), str_of(c->range)};
    meta[count++] = (struct store_label){STR("copied_from"), f->host};
    size = snprintf(file, sizeof file, "%llu", (unsigned long long)f->file);
    meta[count++] = (struct store_label){STR("copied_file"), {file, (size_t)size}};
    snprintf(name, sizeof name, "%.*s%s%s.sonde", STR_ARG(host), f->file ? "+" : "", f->file ? file : "");
    struct store_options o = {
        .meta = meta, .meta_count = count, .size_limit_bytes = UINT64_MAX, .memory_limit_bytes = COPY_MEMORY_BYTES};
    int r = name_file(c, f, str_of(name), e);
    if (r == 0)
        r = check_place(c, f);
    if (r)
        return r;
    unlink(f->part);
    f->made = true;
    struct error why;
    r = store_open(f->part, &o, &f->store, &why);
    if (r && r != -ENOMEM)
        snprintf(f->problem, sizeof f->problem, "%s", why.text);
    return r == -ENOMEM ? error_set(e, r, "no memory for a copy") : r;
}

// What is there has the state that the node's has.
static int take_unchanged(const struct wire_copy *c, struct copying *f, struct error *e)
{
    for (size_t i = 0; i < c->there_count; i++) {
        const struct there *t = &c->there[i];
        if (!t->ours || !t->same_range || t->file != f->file || !str_eq(t->from, f->host))
            continue;
        f->whole = f->unchanged = true;
        return name_file(c, f, t->name, e);
    }
    return damaged(e); // who has said so?
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
    if (c->o.progress)
        atomic_fetch_add(&c->o.progress->points, count);
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
static int take_tail(const struct wire_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    uint64_t metrics = bytes_u64(b), series = bytes_u64(b), points = bytes_u64(b), events = bytes_u64(b);
    uint32_t crc = bytes_u32(b);
    if (b->failed || metrics != f->metric_count || series != f->series_count || points != f->points ||
        events != f->events || crc != f->crc)
        return damaged(e);
    struct store *store = f->store;
    struct error why;
    f->store = NULL;
    int r = store_close(store, &why);
    if (r == 0 && rename(f->part, f->path) != 0)
        r = -errno;
    if (r)
        return refused(f, r, e);
    f->whole = true;
    if (c->o.progress)
        atomic_fetch_add(&c->o.progress->files, 1);
    return 0;
}

static int take_body(struct wire_copy *c, struct copying *f, unsigned kind, struct bytes *b, struct error *e)
{
    if (kind == 'u')
        return f->path ? damaged(e) : take_unchanged(c, f, e);
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
        return take_tail(c, f, b, e);
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
        f->code = f->problem[0] ? r : 0;
        return f->problem[0] ? 0 : r;
    }
    f->crc = crc32c(f->crc, record.data, record.size);
    if (c->o.progress)
        atomic_fetch_add(&c->o.progress->bytes, record.size);
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct wire_copy_file *)a)->path, ((const struct wire_copy_file *)b)->path);
}

static bool describe(const struct copying *f, struct arena *arena, struct wire_copy_file *out)
{
    struct stat info;
    const char *problem = f->problem[0] ? arena_strdup(arena, str_of(f->problem)) : NULL;
    *out = (struct wire_copy_file){.path = arena_strdup(arena, str_of(f->path)),
                                   .host = arena_str(arena, f->host),
                                   .unchanged = f->unchanged,
                                   .code = f->code,
                                   .problem = problem,
                                   .points = f->points,
                                   .bytes = f->whole && stat(f->path, &info) == 0 ? (uint64_t)info.st_size : 0};
    return out->path && out->host.data && (problem || !f->problem[0]);
}

int wire_copy_finish(struct wire_copy *c, struct arena *arena, const struct wire_copy_file **out, size_t *count)
{
    struct wire_copy_file *files = arena_array(arena, c->count, sizeof *files);
    size_t n = 0;
    if (!files)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        struct copying *f = &c->all[i];
        if (!f->whole)
            abandon(f);
        if ((f->whole || f->problem[0]) && !describe(f, arena, &files[n++]))
            return -ENOMEM;
    }
    if (n)
        qsort(files, n, sizeof *files, compare_files);
    *out = files;
    *count = n;
    return 0;
}

// ---- all at once ----

static int on_record(void *user, struct str host, struct str record, struct error *e)
{
    (void)host;
    return wire_copy_take(user, record, e);
}

int hub_copy(struct hub *h, struct str host, const struct wire_copy_options *options, const struct hub_where *where,
             struct arena *arena, struct wire_copied *out, struct error *e)
{
    struct wire_copy *c;
    struct wire_copy_request m = {.from_ns = options->from_ns, .to_ns = options->to_ns};
    struct buf request = {0};
    *out = (struct wire_copied){0};
    int r = wire_copy_create(options, &c, e);
    if (r)
        return r;
    m.known = wire_copy_known(c, &m.known_count);
    wire_copy_request_write(&m, &request);
    if (request.failed) {
        r = error_set(e, -ENOMEM, "no memory for a copy");
    } else if (h) {
        r = hub_ask_all(h, WIRE_COPY, buf_str(&request), where, on_record, c, arena, &out->absent, e);
    } else {
        struct hub_ask ask = {.question = WIRE_COPY,
                              .request = buf_str(&request),
                              .deadline_ns = where->deadline_ns,
                              .watch = where->watch,
                              .user = c};
        r = hub_answer_here(&ask, where->local, host, on_record, e);
    }
    if (r == 0 && wire_copy_finish(c, arena, &out->files, &out->count))
        r = error_set(e, -ENOMEM, "no memory for a copy");
    buf_free(&request);
    wire_copy_destroy(c);
    return r;
}
