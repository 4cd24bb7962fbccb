// copy_take.c - the receiving end of COPY: writes the records of many nodes into stores. Each store
// has a temporary name until it is complete. When the head of a file arrives, the kept part of the
// existing copy is added to the new store (copy_draft.h).
#include "ask/copy_part.h"
#include "ask/copy_there.h"
#include "ask/numbers.h"
#include "base/array.h"
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROBLEM_MAX = 512,
    COPY_MEMORY_BYTES = 32 << 20, // memory limit of each file's store
};

struct copying {
    struct str host; // malloc'd
    uint64_t file;
    // path: the file; part: its draft, until the copy is complete. Both are NULL until the head
    // arrives
    char *path, *part;
    struct ask_copy_draft draft;
    enum ask_copy_way way;
    uint64_t points, received_bytes; // transferred points; bytes
    uint32_t crc;
    bool made, whole, failed; // made: the file exists under its temporary name
    // the older copy did not match its sums
    bool again;
    // the file was complete before nodes were asked again; its later records are ignored
    bool settled;
    int code; // error code of the problem
    // why the file could not be written; empty: there is no problem, or the records were damaged
    char problem[PROBLEM_MAX];
};

struct ask_copy {
    struct ask_copy_options o;
    struct ask_copy_stop stop;
    char *folder;
    char range[ASK_COPY_RANGE_MAX]; // the period of time as text
    struct arena arena;
    struct ask_there_list there;
    struct copying *all;
    size_t count, capacity;
    int64_t *times;
    double *values;
};

int ask_copy_create(const struct ask_copy_options *options, struct ask_copy **out, struct error *e)
{
    *out = NULL;
    if (mkdir(options->folder, 0700) != 0 && errno != EEXIST)
        return error_set(e, -errno, "cannot make the folder %s: %s", options->folder,
                         strerror(errno));
    struct ask_copy *c = calloc(1, sizeof *c);
    if (c) {
        c->o = *options;
        c->stop = (struct ask_copy_stop){options->cancel, options->watch, options->progress};
        c->o.folder = c->folder = strdup(options->folder);
        ask_copy_range_text(options->from_ns, options->to_ns, c->range);
        c->times = calloc(ASK_COPY_POINTS_MAX, sizeof *c->times);
        c->values = calloc(ASK_COPY_POINTS_MAX, sizeof *c->values);
    }
    if (!c || !c->folder || !c->times || !c->values) {
        ask_copy_destroy(c);
        return error_set(e, -ENOMEM, "no memory for a copy");
    }
    int status = ask_there_read(&c->o, &c->arena, &c->there);
    if (status) {
        error_set(e, status, "cannot read the folder %s: %s", options->folder, strerror(-status));
        ask_copy_destroy(c);
        return status;
    }
    *out = c;
    return 0;
}

int ask_copy_ask(struct ask_copy *c, const struct str *hosts, size_t host_count,
                 struct buf *request, struct error *e)
{
    struct ask_copy_request m = {.from_ns = c->o.from_ns, .to_ns = c->o.to_ns};
    int r = ask_there_sum_up(&c->there, &c->o, hosts, host_count, &c->stop, &c->arena, e);
    if (r)
        return r;
    r = ask_there_known(&c->there, &c->arena, &m.known, &m.known_count);
    if (r == 0)
        ask_copy_request_write(&m, request);
    return r || request->failed ? error_set(e, -ENOMEM, "no memory for a copy") : 0;
}

// ---- files ----

// Gives up a file and removes its draft.
static void abandon(struct copying *f)
{
    if (f->draft.store)
        store_abandon(f->draft.store);
    if (f->made && !f->whole)
        unlink(f->part);
    ask_copy_draft_free(&f->draft);
}

void ask_copy_destroy(struct ask_copy *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        struct copying *f = &c->all[i];
        abandon(f);
        free((char *)f->host.data);
        free(f->path);
        free(f->part);
    }
    free(c->all);
    arena_free(&c->arena);
    free(c->folder);
    free(c->times);
    free(c->values);
    free(c);
}

// A host's name becomes a file name, so it must not lead to another folder.
static bool is_file_name(struct str host)
{
    return host.size > 0 && host.size <= 200 && host.data[0] != '.' &&
           str_find_char(host, '/') < 0 && str_find_char(host, 0) < 0;
}

static int add_file(struct ask_copy *c, struct str host, uint64_t number, struct copying **out,
                    struct error *e)
{
    if (!is_file_name(host) || c->count == ASK_COPY_FILES_MAX)
        return error_set(e, -EBADMSG,
                         "a host's name is not valid as a file name, or there are too many files");
    if (!array_room(&c->all, &c->capacity, c->count + 1, sizeof *c->all))
        return error_set(e, -ENOMEM, "no memory for a copy");
    struct copying *f = &c->all[c->count];
    *f = (struct copying){.host = {strndup(host.data, host.size), host.size}, .file = number};
    if (!f->host.data)
        return error_set(e, -ENOMEM, "no memory for a copy");
    c->count++;
    *out = f;
    return 0;
}

// Sets the paths of the file `name`, HOST.sonde.
static int name_file(const struct ask_copy *c, struct copying *f, struct str name, struct error *e)
{
    name.size -= strlen(".sonde");
    if (asprintf(&f->path, "%s/%.*s.sonde", c->folder, STR_ARG(name)) < 0)
        f->path = NULL;
    return f->path ? 0 : error_set(e, -ENOMEM, "no memory for a copy");
}

static struct copying *find_file(struct ask_copy *c, struct str host, uint64_t number)
{
    // Searches from the end, because consecutive records mostly belong to one file.
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

// Handles the error of a record that is invalid or cannot be written. Only a lack of memory ends
// the whole operation.
static int refused(struct copying *f, int code, struct error *e)
{
    if (code == 0)
        return 0;
    if (code == -EBADMSG)
        return damaged(e);
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

// Checks that a new copy may replace the existing file.
static int check_place(const struct ask_copy *c, struct copying *f)
{
    const char *name = strrchr(f->path, '/') + 1;
    bool twice = false;
    for (size_t i = 0; i < c->count && !twice; i++)
        twice = &c->all[i] != f && c->all[i].path && strcmp(c->all[i].path, f->path) == 0;
    const struct ask_there *t = ask_there_named(&c->there, str_of(name));
    struct stat info;
    if (twice)
        snprintf(f->problem, sizeof f->problem, "two nodes have recordings of the name %s",
                 f->path);
    else if (t ? !t->ours : lstat(f->path, &info) == 0)
        snprintf(f->problem, sizeof f->problem,
                 "%s already exists and is not a copy of this job: choose another folder", f->path);
    else if (t && t->all_time && !t->same_range)
        snprintf(
            f->problem, sizeof f->problem,
            "%s already exists and is a copy of all time: choose another folder for some of it",
            f->path);
    return f->problem[0] ? -EEXIST : 0;
}

// Opens the draft with new_file: store_open then fails if a file of this name has appeared since.
static int open_draft(const struct ask_copy *c, struct copying *f, const struct store_options *o,
                      struct error *e)
{
    struct error why;
    const char *name = strrchr(f->path, '/') + 1;
    struct str host = {name, strlen(name) - strlen(".sonde")};
    int r = copy_part_name(c->folder, host, &f->part);
    if (r == -EBUSY)
        snprintf(f->problem, sizeof f->problem,
                 "another process is writing %s: wait until it has ended", f->path);
    if (r == 0) {
        struct store_options new = *o;
        new.new_file = true;
        r = store_open(f->part, &new, &f->draft.store, &why);
        f->made = r != -EEXIST;
        if (r && r != -ENOMEM)
            snprintf(f->problem, sizeof f->problem, "%s", why.text);
    }
    if (r && r != -ENOMEM && !f->problem[0])
        snprintf(f->problem, sizeof f->problem, "cannot write %s: %s", f->path, strerror(-r));
    return r == -ENOMEM ? error_set(e, r, "no memory for a copy") : r;
}

// Reads which parts of the existing copy are kept. *t gets the existing copy.
static int read_kept(const struct ask_copy *c, const struct copying *f, struct bytes *b,
                     struct ask_copy_kept *kept, const struct ask_there **t, struct error *e)
{
    unsigned upon = bytes_u8(b);
    *t = upon ? ask_there_copy(&c->there, f->host, f->file) : NULL;
    if (b->failed || upon > 1 || (upon && (!*t || !(*t)->sums)))
        return damaged(e);
    size_t size = *t ? ask_copy_kept_bytes((*t)->sums->count) : 0;
    struct str points = bytes_take(b, size), events = bytes_take(b, size);
    if (b->failed)
        return damaged(e);
    *kept = (struct ask_copy_kept){0};
    if (size) {
        memcpy(kept->points, points.data, size);
        memcpy(kept->events, events.data, size);
    }
    return 0;
}

static int keep(const struct ask_copy *c, struct copying *f, const struct ask_there *t,
                const struct ask_copy_kept *kept, struct error *e)
{
    char *path;
    if (asprintf(&path, "%s/%.*s", c->folder, STR_ARG(t->name)) < 0)
        return error_set(e, -ENOMEM, "no memory for a copy");
    struct error stopped = {0};
    int r = ask_copy_draft_keep(&f->draft, path, t->sums, kept, c->o.from_ns, c->o.to_ns, &c->stop,
                                &stopped);
    free(path);
    f->way = ASK_COPY_UPDATED;
    if (stopped.code) {
        *e = stopped;
        return r;
    }
    return r == -ESTALE ? r : refused(f, r, e);
}

static int take_head(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    struct store_label meta[STORE_LABELS_MAX + 4];
    size_t count;
    char version[32], file[32], name[256];
    int size = snprintf(version, sizeof version, "%llu", (unsigned long long)bytes_u64(b));
    struct ask_copy_kept kept;
    const struct ask_there *upon;
    if (read_labels(b, meta, &count) || f->path)
        return damaged(e);
    int r = read_kept(c, f, b, &kept, &upon, e);
    if (r)
        return r;
    struct str host = f->host;
    for (size_t i = 0; i < count; i++)
        if (str_eq(meta[i].key, STR("host")) && is_file_name(meta[i].value))
            host = meta[i].value;
    meta[count++] = (struct store_label){STR("copied_version"), {version, (size_t)size}};
    meta[count++] = (struct store_label){STR("copied_range"), str_of(c->range)};
    meta[count++] = (struct store_label){STR("copied_from"), f->host};
    size = snprintf(file, sizeof file, "%llu", (unsigned long long)f->file);
    meta[count++] = (struct store_label){STR("copied_file"), {file, (size_t)size}};
    snprintf(name, sizeof name, "%.*s%s%s.sonde", STR_ARG(host), f->file ? "+" : "",
             f->file ? file : "");
    struct store_options o = {.meta = meta,
                              .meta_count = count,
                              .size_limit_bytes = UINT64_MAX,
                              .memory_limit_bytes = COPY_MEMORY_BYTES};
    r = name_file(c, f, str_of(name), e);
    if (r == 0)
        r = check_place(c, f);
    if (r == 0)
        r = open_draft(c, f, &o, e);
    return r || !upon ? r : keep(c, f, upon, &kept, e);
}

// The existing copy has the same contents as the node's file.
static int take_unchanged(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    (void)b;
    const struct ask_there *t = ask_there_copy(&c->there, f->host, f->file);
    if (f->path || !t || !t->sums || !t->same_range)
        // we have sent no sums of this copy, so the node cannot know that it is equal
        return damaged(e);
    f->whole = true;
    f->way = ASK_COPY_UNCHANGED;
    return name_file(c, f, t->name, e);
}

static int take_metric(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    (void)c;
    struct store_metric m = {.name = bytes_short(b)};
    m.unit = bytes_short(b);
    m.help = bytes_short(b);
    unsigned kind = bytes_u8(b);
    m.kind = (enum store_kind)kind;
    m.level = bytes_u8(b);
    if (b->failed || kind > STORE_COUNTER)
        return damaged(e);
    return refused(f, ask_copy_draft_metric(&f->draft, &m), e);
}

static int take_series(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    (void)c;
    struct store_label labels[STORE_LABELS_MAX];
    size_t count;
    uint64_t metric = bytes_varint(b);
    if (b->failed || read_labels(b, labels, &count))
        return damaged(e);
    return refused(f, ask_copy_draft_series(&f->draft, metric, labels, count), e);
}

static int take_points(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    uint64_t series = bytes_varint(b), count = bytes_varint(b);
    if (b->failed || count == 0 || count > ASK_COPY_POINTS_MAX ||
        ask_numbers_read(b, c->times, (size_t)count, true) ||
        ask_numbers_read(b, c->values, (size_t)count, false))
        return damaged(e);
    f->points += count;
    if (c->o.progress)
        atomic_fetch_add(&c->o.progress->points, count);
    return refused(f, ask_copy_draft_points(&f->draft, series, c->times, c->values, (size_t)count),
                   e);
}

static int take_event(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    (void)c;
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
    return refused(f, ask_copy_draft_event(&f->draft, &event), e);
}

// The last record: checks that the file is complete, and only then gives it its final name.
static int take_tail(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    const struct ask_copy_draft *d = &f->draft;
    uint64_t metrics = bytes_u64(b), series = bytes_u64(b), points = bytes_u64(b),
             events = bytes_u64(b), point_sum = bytes_u64(b), event_sum = bytes_u64(b);
    uint32_t crc = bytes_u32(b);
    if (b->failed || crc != f->crc)
        return damaged(e);
    if (metrics != d->metric_count || series != d->series_count || points != d->points ||
        events != d->events || point_sum != d->point_sum || event_sum != d->event_sum)
        return f->way == ASK_COPY_UPDATED ? -ESTALE : damaged(e);
    struct store *store = d->store;
    struct error why;
    f->draft.store = NULL;
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

// The node is still summing its file.
static int take_look(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e)
{
    (void)c, (void)f, (void)b, (void)e;
    return 0;
}

// ---- kinds ----

struct kind_row {
    int (*take)(struct ask_copy *c, struct copying *f, struct bytes *b, struct error *e);
    bool begins; // may be the first record of a file, and needs no draft
};
static const struct kind_row kinds[] = {
    [COPY_KIND_LOOK] = {take_look, true},      [COPY_KIND_UNCHANGED] = {take_unchanged, true},
    [COPY_KIND_HEAD] = {take_head, true},      [COPY_KIND_METRIC] = {take_metric, false},
    [COPY_KIND_SERIES] = {take_series, false}, [COPY_KIND_POINTS] = {take_points, false},
    [COPY_KIND_EVENT] = {take_event, false},   [COPY_KIND_TAIL] = {take_tail, false},
};

// Returns NULL for an unknown kind.
static const struct kind_row *kind_row(unsigned kind)
{
    return kind < sizeof kinds / sizeof *kinds && kinds[kind].take ? &kinds[kind] : NULL;
}

static void give_up(struct copying *f, int code)
{
    f->failed = true;
    f->whole = false;
    f->again = code == -ESTALE;
    abandon(f);
    f->code = f->problem[0] ? code : 0;
}

int ask_copy_take(struct ask_copy *c, struct str record, struct error *e)
{
    struct bytes b = bytes_of(record.data, record.size);
    struct str host = bytes_short(&b);
    uint64_t number = bytes_varint(&b);
    const struct kind_row *kind = kind_row(bytes_u8(&b));
    if (b.failed)
        return damaged(e);
    struct copying *f = find_file(c, host, number);
    int r = 0;
    if (!f)
        r = kind && kind->begins ? add_file(c, host, number, &f, e) : damaged(e);
    if (r)
        return r;
    f->received_bytes += record.size;
    if (c->o.progress)
        atomic_fetch_add(&c->o.progress->bytes, record.size);
    if (f->failed || f->settled)
        return 0;
    bool in_order = kind && !f->whole && (kind->begins || f->draft.store);
    r = in_order ? kind->take(c, f, &b, e) : damaged(e);
    if (r == 0 && bytes_left(&b))
        r = damaged(e);
    if (r) {
        give_up(f, r);
        return f->problem[0] || f->again ? 0 : r;
    }
    f->crc = crc32c(f->crc, record.data, record.size);
    return 0;
}

// Resets the file to its state before the first record, but keeps the transfer counts.
static void begin_anew(struct copying *f)
{
    free(f->path);
    free(f->part);
    *f = (struct copying){
        .host = f->host, .file = f->file, .points = f->points, .received_bytes = f->received_bytes};
}

int ask_copy_again(struct ask_copy *c, struct arena *arena, const struct str **hosts, size_t *count)
{
    struct str *all = arena_array(arena, c->count, sizeof *all);
    size_t n = 0;
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        bool listed = !c->all[i].again;
        for (size_t k = 0; k < n && !listed; k++)
            listed = str_eq(all[k], c->all[i].host);
        if (!listed && !(all[n++] = arena_str(arena, c->all[i].host)).data)
            return -ENOMEM;
    }
    for (size_t i = 0; i < c->count; i++) {
        struct copying *f = &c->all[i];
        f->settled |= f->whole;
        if (f->again)
            begin_anew(f);
    }
    for (size_t i = 0; i < c->there.count; i++)
        for (size_t k = 0; k < n; k++)
            c->there.files[i].spoiled |= str_eq(c->there.files[i].from, all[k]);
    *hosts = all;
    *count = n;
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct ask_copy_file *)a)->path, ((const struct ask_copy_file *)b)->path);
}

static bool describe(const struct copying *f, struct arena *arena, struct ask_copy_file *out)
{
    struct stat info;
    const char *problem = f->problem[0] ? arena_strdup(arena, str_of(f->problem)) : NULL;
    *out = (struct ask_copy_file){
        .path = arena_strdup(arena, str_of(f->path)),
        .host = arena_str(arena, f->host),
        .way = f->way,
        .code = f->code,
        .problem = problem,
        .points = f->points,
        .received_bytes = f->received_bytes,
        .bytes = f->whole && stat(f->path, &info) == 0 ? (uint64_t)info.st_size : 0};
    return out->path && out->host.data && (problem || !f->problem[0]);
}

int ask_copy_finish(struct ask_copy *c, struct arena *arena, const struct ask_copy_file **out,
                    size_t *count)
{
    struct ask_copy_file *files = arena_array(arena, c->count, sizeof *files);
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
