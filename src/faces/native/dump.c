// dump.c - /sonde/v1/dump; a worker runs it.
#include "faces/native/dump.h"

#include "ask/copy_wire.h"
#include "base/clock.h"
#include "faces/native/dump_send.h"
#include "faces/native/handlers.h"
#include "http/json_body.h"
#include "http/workers.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct dump {
    pthread_mutex_t lock; // protects the next three
    bool running;
    char to[DUMP_PATH_MAX]; // shown to people
    int64_t began_ns;
    struct ask_copy_progress progress;
    _Atomic size_t nodes, nodes_done;
};

// One dump.
struct dumping {
    struct dump *dump;
    struct service *service;
    struct request *request;
    struct reading reading;
    char to[DUMP_PATH_MAX];     // the folder; if `node` is set, on that node
    const char *node;           // empty: this node
    char staged[DUMP_PATH_MAX]; // folder for files on their way to another node; empty: none
    int64_t from_ns;
    struct str own; // name of this node
    struct json_writer *w;
};

int dump_create(struct dump **out, struct error *e)
{
    struct dump *d = *out = calloc(1, sizeof *d);
    if (!d)
        return error_set(e, -ENOMEM, "no memory for the server");
    pthread_mutex_init(&d->lock, NULL);
    return 0;
}

void dump_destroy(struct dump *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void write_target(struct json_writer *w, const char *key, const char *node,
                         const char *folder)
{
    struct buf text = {0};
    buf_printf(&text, "%s%s%s", node, node[0] ? ":" : "", folder);
    json_key_string(w, key, buf_str(&text));
    buf_free(&text);
}

void dump_write(struct dump *d, const struct service *service, struct json_writer *w)
{
    json_key(w, STR("dump"));
    json_begin_object(w);
    write_target(w, "configured", service->dump_node, service->dump_dir);
    pthread_mutex_lock(&d->lock);
    json_key_bool(w, "running", d->running);
    if (d->running) {
        json_key_string(w, "to", str_of(d->to));
        json_key_double(w, "seconds", (double)(clock_monotonic_ns() - d->began_ns) / NS_PER_S);
        json_key_u64(w, "nodes", atomic_load(&d->nodes));
        json_key_u64(w, "nodes_done", atomic_load(&d->nodes_done));
        json_key_u64(w, "files", atomic_load(&d->progress.files));
        json_key_u64(w, "points", atomic_load(&d->progress.points));
        json_key_u64(w, "bytes", atomic_load(&d->progress.bytes));
    }
    pthread_mutex_unlock(&d->lock);
    json_end_object(w);
}

// ---------------------------------------------------------------- requests

// "10m" means "10m-ago".
static int read_since(struct str text, int64_t *out_ns, struct error *e)
{
    char ago[64];
    struct error ignored;
    int64_t now_ns = clock_realtime_ns();
    snprintf(ago, sizeof ago, "%.*s-ago", STR_ARG(str_slice(text, 0, sizeof ago - sizeof "-ago")));
    if (query_parse_time(str_of(ago), now_ns, STR(""), out_ns, &ignored) == 0)
        return 0;
    return query_parse_time(text, now_ns, STR(""), out_ns, e);
}

// If the node is this one, ssh is not necessary.
static bool is_here(const char *node)
{
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    struct str name = str_of(node), full = str_of(own), rest = full, plain = str_cut(&rest, '.');
    return str_eq(name, full) || str_eq(name, plain) || str_eq(name, STR("localhost"));
}

static int read_target(struct dumping *d, struct str to, struct error *e)
{
    const struct service *service = d->service;
    int size;
    d->node = "";
    if (to.size) {
        if (to.data[0] != '/')
            return error_set(e, -EINVAL, "to has to be an absolute path");
        size = snprintf(d->to, sizeof d->to, "%.*s", STR_ARG(to));
    } else if (service->dump_dir[0]) {
        d->node = is_here(service->dump_node) ? "" : service->dump_node;
        size = snprintf(d->to, sizeof d->to, "%s/sonde-dump-%.*s", service->dump_dir,
                        STR_ARG(service->reads.job));
    } else {
        return error_set(
            e, -EINVAL,
            "to is missing: the folder for the files (dump_dir is not configured either)");
    }
    return size < (int)sizeof d->to ? 0
                                    : error_set(e, -EINVAL, "the path of the folder is too long");
}

static int read_request(struct dumping *d, struct error *e)
{
    struct str to = STR(""), since = STR("");
    int rc = json_body_take(d->request, e);
    if (rc)
        return rc;
    request_parameter(d->request, "to", &to);
    request_parameter(d->request, "since", &since);
    rc = read_target(d, to, e);
    return rc || !since.size ? rc : read_since(since, &d->from_ns, e);
}

// ---------------------------------------------------------------- one dump at a time

static int begin(struct dumping *d, struct error *e)
{
    struct dump *all = d->dump;
    pthread_mutex_lock(&all->lock);
    bool busy = all->running;
    if (!busy) {
        all->running = true;
        all->began_ns = clock_monotonic_ns();
        snprintf(all->to, sizeof all->to, "%s%s%.*s", d->node, d->node[0] ? ":" : "",
                 DUMP_PATH_MAX / 2, d->to);
        atomic_store(&all->progress.files, 0);
        atomic_store(&all->progress.points, 0);
        atomic_store(&all->progress.bytes, 0);
        atomic_store(&all->nodes, 0);
        atomic_store(&all->nodes_done, 0);
    }
    pthread_mutex_unlock(&all->lock);
    return busy ? error_set(e, -EBUSY, "a dump is being made already, into %s: wait for its end",
                            all->to)
                : 0;
}

static void end(struct dumping *d)
{
    pthread_mutex_lock(&d->dump->lock);
    d->dump->running = false;
    pthread_mutex_unlock(&d->dump->lock);
}

static void unstage(struct dumping *d)
{
    DIR *dir = d->staged[0] ? opendir(d->staged) : NULL;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    if (d->staged[0])
        rmdir(d->staged);
}

// Files on their way to another node are beside our own file, in a folder that is removed with the
// job.
static int stage(struct dumping *d, struct error *e)
{
    struct str socket = d->service->agent_socket;
    const char *slash = memrchr(socket.data, '/', socket.size);
    int size = snprintf(d->staged, sizeof d->staged, "%.*s/dump-XXXXXX",
                        slash ? (int)(slash - socket.data) : 1, slash ? socket.data : ".");
    if (size < (int)sizeof d->staged && mkdtemp(d->staged))
        return 0;
    d->staged[0] = 0;
    return error_set(e, -errno, "cannot make a folder for the files that wait for %s: %s", d->node,
                     strerror(errno));
}

// ---------------------------------------------------------------- the files

static const char *const ways[] = {[ASK_COPY_WHOLE] = "copied",
                                   [ASK_COPY_UPDATED] = "updated",
                                   [ASK_COPY_UNCHANGED] = "unchanged"};

static void write_file(const struct dumping *d, const struct ask_copy_file *f, const char *name,
                       const char *problem)
{
    struct json_writer *w = d->w;
    json_begin_object(w);
    json_key_string(w, "host", f->host);
    if (d->node[0]) {
        struct buf path = {0};
        buf_printf(&path, "%s:%s/%s", d->node, d->to, name);
        json_key_string(w, "path", buf_str(&path));
        buf_free(&path);
    } else {
        json_key_string(w, "path", str_of(f->path));
    }
    json_key_string(w, "state", str_of(problem ? "failed" : ways[f->way]));
    json_key_u64(w, "points", problem ? 0 : f->points);
    json_key_u64(w, "new_bytes", f->received_bytes);
    json_key_u64(w, "bytes", problem ? 0 : f->bytes);
    json_key_string(w, "message", str_of(problem ? problem : ""));
    json_end_object(w);
}

static bool lacks_space(const struct ask_copy_file *f)
{
    return f->code == -ENOSPC || f->code == -EDQUOT;
}

// Reports copied files. Files that found no room beside others are not reported yet, because they
// are copied again, alone.
static int take_files(const struct dumping *d, const struct ask_copied *copied, bool alone,
                      struct error *e)
{
    for (size_t i = 0; i < copied->count; i++) {
        const struct ask_copy_file *f = &copied->files[i];
        if (lacks_space(f) && !alone)
            continue;
        const char *name = strrchr(f->path, '/') + 1, *problem = f->problem;
        struct error why = {0};
        if (d->node[0] && !problem) {
            int rc = dump_send_file(d->node, d->to, name, f->path, workers_watch(), &why);
            unlink(f->path);
            if (rc && rc != -EIO) {
                if (e)
                    *e = why;
                return rc;
            }
            problem = rc ? why.text : NULL;
        }
        write_file(d, f, name, problem);
    }
    return 0;
}

static int copy_some(struct dumping *d, const struct str *hosts, size_t count, struct error *e)
{
    struct ask_copy_options o = {.folder = d->staged[0] ? d->staged : d->to,
                                 .job = d->service->reads.job,
                                 .from_ns = d->from_ns,
                                 .to_ns = INT64_MAX,
                                 .progress = &d->dump->progress};
    struct hub_where where = {.hosts = hosts,
                              .host_count = count,
                              .deadline_ns =
                                  clock_monotonic_ns() + (int64_t)DUMP_DEADLINE_S * NS_PER_S,
                              .watch = workers_watch(),
                              .local = &d->reading.local};
    struct ask_copied copied;
    int rc = hub_copy(d->service->reads.hub, d->own, &o, &where, &d->request->arena, &copied, e);
    if (!rc)
        rc = take_files(d, &copied, count == 1, e);
    if (!rc)
        rc = reading_note_missing(&d->reading, &copied.absent, e);
    // Repeats failed copies alone, because one large file may have taken the room of all others.
    for (size_t i = 0; i < copied.count && !rc && count > 1; i++)
        if (lacks_space(&copied.files[i]))
            rc = copy_some(d, &copied.files[i].host, 1, e);
    return rc;
}

// Lists our own host, then the others.
static int list_hosts(const struct dumping *d, const struct str **out, size_t *count,
                      struct error *e)
{
    struct arena *arena = &d->request->arena;
    const struct hub_node *nodes;
    size_t others = 0;
    const struct sources_view *view = &d->reading.view;
    if (d->service->reads.hub && hub_nodes(d->service->reads.hub, arena, &nodes, &others))
        return error_set(e, -ENOMEM, "no memory for the request");
    struct str *hosts = arena_array(arena, others + 1, sizeof *hosts);
    if (!hosts)
        return error_set(e, -ENOMEM, "no memory for the request");
    if (d->service->reads.hub)
        hosts[0] = hub_host(d->service->reads.hub);
    else
        hosts[0] =
            view->count ? store_reader_meta(source_reader(view->files[0]), STR("host")) : STR("");
    for (size_t i = 0; i < others; i++)
        hosts[i + 1] = nodes[i].host;
    *out = hosts;
    *count = others + 1;
    return 0;
}

static int copy_all(struct dumping *d, struct error *e)
{
    const struct str *hosts = NULL;
    size_t count = 0, n;
    int rc = list_hosts(d, &hosts, &count, e);
    if (!rc) {
        d->own = hosts[0];
        atomic_store(&d->dump->nodes, count);
    }
    for (size_t i = 0; i < count && !rc; i += n) {
        n = count - i < DUMP_NODES_AT_ONCE ? count - i : DUMP_NODES_AT_ONCE;
        rc = copy_some(d, hosts + i, n, e);
        atomic_fetch_add(&d->dump->nodes_done, n);
    }
    return rc;
}

// Copies in the folder of our own file would be served as recordings of this job.
static int check_folder(const struct dumping *d, struct error *e)
{
    const struct sources_view *view = &d->reading.view;
    struct stat to, own;
    char folder[DUMP_PATH_MAX];
    if (d->node[0] || stat(d->to, &to) != 0)
        return 0;
    for (size_t i = 0; i < view->count; i++) {
        const char *path = source_path(view->files[i]), *slash = strrchr(path, '/');
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        if (stat(folder, &own) == 0 && own.st_dev == to.st_dev && own.st_ino == to.st_ino)
            return error_set(e, -EINVAL, "%s is the job's own folder: choose another", d->to);
    }
    return 0;
}

static int make(struct dumping *d, struct answer *a, struct error *e)
{
    struct json_writer w = json_to(&a->body);
    int rc = service_read(d->service, d->request, INT64_MAX, &d->reading, e);
    if (rc)
        return rc;
    if (!d->service->reads.hub)
        rc = sources_wire_view(&d->reading.view, &d->request->arena, &d->reading.local, e);
    if (!rc)
        rc = check_folder(d, e);
    if (!rc && d->node[0])
        rc = dump_send_prepare(d->node, d->to, workers_watch(), e);
    if (!rc && d->node[0])
        rc = stage(d, e);
    d->w = &w;
    json_begin_object(&w);
    json_key_string(&w, "job", d->service->reads.job);
    write_target(&w, "to", d->node, d->to);
    json_key(&w, STR("files"));
    json_begin_array(&w);
    if (!rc)
        rc = copy_all(d, e);
    json_end_array(&w);
    if (d->service->reads.hub) {
        reading_write_missing(&d->reading, &w);
    } else {
        json_key(&w, STR("missing"));
        json_put_raw(&w, STR("[]"));
    }
    json_end_object(&w);
    unstage(d);
    service_read_end(&d->reading, rc ? NULL : a);
    return rc;
}

void native_dump(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    if (!service->agent_socket.size) {
        answer_error(a, 501, "only running jobs are dumped",
                     "Recordings are files already: copy those.");
        return;
    }
    struct dumping *d = arena_zalloc(&r->arena, sizeof *d);
    int rc = d ? 0 : error_set(&e, -ENOMEM, "no memory for the request");
    if (d) {
        d->dump = service->dump;
        d->service = service;
        d->request = r;
        rc = read_request(d, &e);
    }
    if (!rc)
        rc = begin(d, &e);
    if (rc) {
        answer_failure(a, &e);
        return;
    }
    rc = make(d, a, &e);
    end(d);
    if (rc)
        answer_failure(a, &e);
}
