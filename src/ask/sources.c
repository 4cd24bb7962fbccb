// sources.c - a list of files, sorted by path, under one lock. Each file has a reference count.
#include "ask/sources.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/search.h"
#include "query/labels.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// Identifies a version of a file.
struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

struct source {
    char *path;
    // from the file's metadata, else the name of its folder; NULL if memory was exhausted
    char *job;
    struct store_reader *reader; // NULL: `problem` says why
    struct error problem;
    struct identity identity;        // the version that it last tried to open
    unsigned uses;                   // references: 1 from the list, 1 from each view
    bool seen;                       // found by the current scan
    bool unopened;                   // until the end of the scan
    bool new_problem;                // until the end of the scan: `problem` is not logged yet
    uint64_t points, points_version; // cached; points_version 0: not counted yet
};

// A path that the user gave.
struct root {
    char *path;
    bool is_folder; // at the last scan
};

struct sources {
    pthread_mutex_t lock;
    struct root *roots;
    size_t root_count;
    struct source **files;
    size_t count, capacity, left_out;
    // the begin of the last scan, on the monotonic clock, and on that of the times of files
    int64_t looked_ns, looked_realtime_ns;
    bool runs, several_jobs;
    struct query_cache *cache;
};

static const char extension[] = ".sonde";
// The interval between scans of folders whose time of change shows no news. The kernel takes these
// times from a clock that ticks every 1 to 10 ms, so a change right after a scan may have an older
// time.
enum { LOOK_INTERVAL_NS = NS_PER_S, TICK_NS = 20 * NS_PER_MS };

static void release(struct source *file)
{
    if (--file->uses)
        return;
    if (file->reader)
        store_reader_close(file->reader);
    free(file->path);
    free(file->job);
    free(file);
}

static struct identity identity_of(const struct stat *st)
{
    return (struct identity){st->st_dev, st->st_ino, st->st_size, st->st_mtim};
}

static bool same_file(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool unchanged(const struct identity *a, const struct identity *b)
{
    return same_file(a, b) && a->size == b->size && a->modified.tv_sec == b->modified.tv_sec &&
           a->modified.tv_nsec == b->modified.tv_nsec;
}

// A new file may become readable without a change that stat(2) shows, because its writer maps it
// into memory.
static bool is_young(const struct stat *st)
{
    enum { YOUNG_S = 60 };
    return clock_realtime_ns() / NS_PER_S - st->st_mtim.tv_sec < YOUNG_S;
}

// True if the writer has not finished the file's header. It writes the first bytes last, in one
// piece. A file that stays in this state for long is damaged.
static bool is_unborn(const char *path, const struct stat *st)
{
    uint64_t begin = 0;
    if (!S_ISREG(st->st_mode) || !is_young(st))
        return false; // opening it will report that it is not a recording
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false; // opening it as a recording will report the reason
    ssize_t n = pread(fd, &begin, sizeof begin, 0);
    close(fd);
    return n == 0 || (n == sizeof begin && !begin);
}

// Returns the recording's job, or else the name of the folder that contains it.
static char *job_of(const struct source *file)
{
    struct str job = store_reader_meta(file->reader, STR("job"));
    if (job.size)
        return strndup(job.data, job.size);
    const char *end = strrchr(file->path, '/'), *begin = end;
    while (begin && begin > file->path && begin[-1] != '/')
        begin--;
    return end ? strndup(begin, (size_t)(end - begin)) : strdup("");
}

static void open_file(void *user, size_t i)
{
    struct source *file = ((struct source **)user)[i];
    struct error e = {0};
    if (!file->unopened)
        return;
    if (store_reader_open(file->path, &file->reader, &e) == 0) {
        file->job = job_of(file);
        return;
    }
    file->reader = NULL;
    file->new_problem = strcmp(e.text, file->problem.text) != 0;
    file->problem = e;
}

// Opens the files that the scan found, several at a time: of 1,000 files each takes 0.1 ms.
static void open_files(struct sources *s)
{
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any |= s->files[i]->unopened;
    if (any)
        parallel_each(s->count, open_file, s->files);
    for (size_t i = 0; i < s->count; i++) {
        struct source *file = s->files[i];
        // Log each reason once, not at each scan.
        if (file->new_problem)
            log_warning("left out: %s", file->problem.text);
        file->unopened = file->new_problem = false;
    }
}

static struct source *find(struct sources *s, const char *path, size_t *index)
{
    size_t i;
    SEARCH_FIRST(i, s->count, strcmp(s->files[i]->path, path) >= 0);
    *index = i;
    return i < s->count && strcmp(s->files[i]->path, path) == 0 ? s->files[i] : NULL;
}

static struct source *make(const char *path)
{
    struct source *file = calloc(1, sizeof *file);
    if (file && !(file->path = strdup(path))) {
        free(file);
        file = NULL;
    }
    if (file)
        file->uses = 1;
    return file;
}

// Handles a file that the scan found: unchanged, replaced or repaired, or new.
static void take(struct sources *s, const char *path, const struct stat *st)
{
    struct identity now = identity_of(st);
    size_t index;
    struct source *file = find(s, path, &index);
    if (file && file->unopened)
        return; // the scan has found it before
    if (!(file && file->reader && same_file(&file->identity, &now)) && is_unborn(path, st))
        return; // its header is not complete yet
    if (file) {
        file->seen = true;
        if (file->reader ? same_file(&file->identity, &now)
                         : unchanged(&file->identity, &now) && !is_young(st))
            return;
        struct source *fresh = make(path);
        if (!fresh)
            return; // the next scan tries again
        fresh->seen = fresh->unopened = true;
        fresh->identity = now;
        fresh->problem = file->problem;
        s->files[index] = fresh;
        release(file);
        return;
    }
    if (s->count >= SOURCES_FILES_MAX) {
        s->left_out++;
        return;
    }
    file = array_room(&s->files, &s->capacity, s->count + 1, sizeof *s->files) ? make(path) : NULL;
    if (!file)
        return;
    file->seen = file->unopened = true;
    file->identity = now;
    memmove(s->files + index + 1, s->files + index, (s->count - index) * sizeof(struct source *));
    s->files[index] = file;
    s->count++;
}

static void take_folder(struct sources *s, const char *path, bool deeper)
{
    DIR *folder = opendir(path);
    if (!folder) {
        log_warning("cannot read the folder %s: %s", path, strerror(errno));
        return;
    }
    struct buf name = {0};
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat st;
        bool is_file = str_ends(str_of(entry->d_name), str_of(extension));
        if (entry->d_name[0] == '.' || !(is_file || deeper))
            continue;
        name.size = 0;
        buf_printf(&name, "%s/%s", path, entry->d_name);
        if (name.failed || stat(buf_cstr(&name), &st) != 0)
            continue;
        if (is_file && !S_ISDIR(st.st_mode))
            take(s, buf_cstr(&name), &st);
        else if (deeper && S_ISDIR(st.st_mode))
            take_folder(s, buf_cstr(&name), false);
    }
    buf_free(&name);
    closedir(folder);
}

static void look(struct sources *s)
{
    s->looked_ns = clock_monotonic_ns();
    s->looked_realtime_ns = clock_realtime_ns();
    s->left_out = 0;
    for (size_t i = 0; i < s->count; i++)
        s->files[i]->seen = false;
    for (size_t i = 0; i < s->root_count; i++) {
        struct root *root = &s->roots[i];
        struct stat st;
        bool exists = stat(root->path, &st) == 0;
        root->is_folder = exists && S_ISDIR(st.st_mode);
        if (root->is_folder)
            take_folder(s, root->path, s->runs);
        else if (exists)
            take(s, root->path, &st);
    }
    open_files(s);
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->files[i]->seen)
            s->files[kept++] = s->files[i];
        else
            release(s->files[i]);
    }
    s->count = kept;
    const char *job = NULL;
    s->several_jobs = false;
    for (size_t i = 0; i < kept && s->runs; i++) {
        if (!s->files[i]->job)
            continue;
        s->several_jobs |= job && strcmp(job, s->files[i]->job) != 0;
        job = s->files[i]->job;
    }
}

// Whether files may have appeared or disappeared since the last scan. Requests about a new job
// arrive as soon as it starts, so a scan that has found nothing is worth nothing.
static bool has_news(const struct sources *s)
{
    if (!s->count || clock_monotonic_ns() - s->looked_ns >= LOOK_INTERVAL_NS)
        return true;
    for (size_t i = 0; i < s->root_count; i++) {
        struct stat st;
        if (s->roots[i].is_folder &&
            (stat(s->roots[i].path, &st) != 0 ||
             st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec >= s->looked_realtime_ns - TICK_NS))
            return true;
    }
    return false;
}

int sources_create(const char *const *paths, size_t count, bool runs, struct sources **out,
                   struct error *e)
{
    struct sources *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s)
        s->roots = calloc(count ? count : 1, sizeof *s->roots);
    if (!s || !s->roots) {
        free(s);
        return error_set(e, -ENOMEM, "no memory for the list of files");
    }
    pthread_mutex_init(&s->lock, NULL);
    s->runs = runs;
    int rc = query_cache_create(SOURCES_DECODED_BYTES, &s->cache);
    if (rc)
        error_set(e, rc, "no memory for the list of files");
    for (size_t i = 0; i < count && !rc; i++) {
        // Resolve the path, so a folder that is given twice in two spellings counts once.
        s->roots[i].path = realpath(paths[i], NULL);
        if (s->roots[i].path)
            s->root_count++;
        else
            rc = error_set(e, -errno, "cannot open %s: %s", paths[i], strerror(errno));
    }
    if (rc) {
        sources_destroy(s);
        return rc;
    }
    look(s);
    *out = s;
    return 0;
}

void sources_charge(struct sources *s, struct memory_account *account)
{
    query_cache_charge(s->cache, account);
}

void sources_prepare(struct sources *s)
{
    query_cache_prepare(s->cache);
}

void sources_drop_caches(struct sources *s)
{
    query_cache_shrink(s->cache, SIZE_MAX);
}

void sources_destroy(struct sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        release(s->files[i]);
    for (size_t i = 0; i < s->root_count; i++)
        free(s->roots[i].path);
    query_cache_destroy(s->cache);
    pthread_mutex_destroy(&s->lock);
    free(s->files);
    free(s->roots);
    free(s);
}

void sources_look(struct sources *s)
{
    pthread_mutex_lock(&s->lock);
    look(s);
    pthread_mutex_unlock(&s->lock);
}

int sources_open(struct sources *s, struct arena *arena, struct sources_view *out, struct error *e)
{
    *out = (struct sources_view){.sources = s, .cache = s->cache};
    pthread_mutex_lock(&s->lock);
    if (has_news(s))
        look(s);
    out->left_out = s->left_out;
    out->snapshots = arena_array(arena, s->count, sizeof(struct store_snapshot *));
    out->files = arena_array(arena, s->count, sizeof(struct source *));
    out->unreadable = arena_array(arena, s->count, sizeof(struct source *));
    bool memory = out->snapshots && out->files && out->unreadable;
    if (s->several_jobs) {
        out->labels = arena_array(arena, s->count, sizeof *out->labels);
        memory = memory && out->labels;
    }
    for (size_t i = 0; i < s->count && memory; i++) {
        struct source *file = s->files[i];
        file->uses++;
        if (file->reader && out->labels)
            out->labels[out->count] =
                (struct store_label){STR("job"), str_of(file->job ? file->job : "")};
        if (file->reader)
            out->files[out->count++] = file;
        else
            out->unreadable[out->unreadable_count++] = file;
    }
    pthread_mutex_unlock(&s->lock);
    // Snapshots are taken without the lock, so a large file delays only its own request.
    for (size_t i = 0; i < out->count; i++) {
        out->snapshots[i] = memory ? store_snapshot_open(out->files[i]->reader) : NULL;
        memory = memory && out->snapshots[i];
    }
    if (memory)
        return 0;
    sources_close(out);
    return error_set(e, -ENOMEM, "no memory to open the recordings");
}

void sources_close(struct sources_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->snapshots[i])
            store_snapshot_close(view->snapshots[i]);
    pthread_mutex_lock(&view->sources->lock);
    for (size_t i = 0; i < view->count; i++)
        release(view->files[i]);
    for (size_t i = 0; i < view->unreadable_count; i++)
        release(view->unreadable[i]);
    pthread_mutex_unlock(&view->sources->lock);
    view->count = view->unreadable_count = 0;
}

bool sources_series(const struct sources_view *view, size_t i, uint32_t series, struct arena *arena,
                    struct store_series_info *out)
{
    if (!store_series_get(view->snapshots[i], series, out))
        return false;
    const struct store_label *more = view->labels ? &view->labels[i] : NULL;
    if (!query_labels_lack(out, more))
        return true;
    struct store_label *labels = arena_array(arena, out->label_count + 1u, sizeof *labels);
    if (labels)
        query_labels_add(out, more, labels);
    return labels != NULL;
}

const char *source_path(const struct source *file)
{
    return file->path;
}

const struct store_reader *source_reader(const struct source *file)
{
    return file->reader;
}

const char *source_problem(const struct source *file)
{
    return file->problem.text;
}

// Counts the points from the headers of blocks and live tails, without decoding them.
static uint64_t count_points(struct store_snapshot *snapshot)
{
    uint64_t points = 0;
    size_t series = store_series_count(snapshot);
    for (size_t i = 0; i < series; i++) {
        struct store_cursor *cursor =
            store_cursor_open(snapshot, (uint32_t)i, INT64_MIN, INT64_MAX);
        struct store_run run;
        while (cursor && store_cursor_next(cursor, &run) == 1)
            points += run.count;
        if (cursor)
            store_cursor_close(cursor);
    }
    return points;
}

uint64_t source_points(struct sources *s, struct source *file, struct store_snapshot *snapshot)
{
    uint64_t version = store_snapshot_version(snapshot) + 1;
    pthread_mutex_lock(&s->lock);
    bool known = file->points_version == version;
    uint64_t points = file->points;
    pthread_mutex_unlock(&s->lock);
    if (known)
        return points;
    points = count_points(snapshot);
    pthread_mutex_lock(&s->lock);
    file->points = points;
    file->points_version = version;
    pthread_mutex_unlock(&s->lock);
    return points;
}

int sources_wire_view(const struct sources_view *view, struct arena *arena, struct wire_view *out,
                      struct error *e)
{
    struct store_reader **readers = arena_array(arena, view->count, sizeof *readers);
    if (!readers)
        return error_set(e, -ENOMEM, "no memory for an answer");
    for (size_t i = 0; i < view->count; i++)
        readers[i] = (struct store_reader *)(uintptr_t)source_reader(view->files[i]);
    *out = (struct wire_view){.stores = view->snapshots,
                              .readers = readers,
                              .labels = view->labels,
                              .count = view->count};
    return 0;
}
