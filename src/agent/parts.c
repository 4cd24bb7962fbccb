#include "agent/parts.h"

#include "agent/connections.h"
#include "agent/folder.h"
#include "agent/overflow.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "store/read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    META_MAX = 64,
    MARGIN_SHARE = 16, // this share of the agent's memory stays free during a merge
};
static const double RATE_DEFAULT_S = 0.5, RATE_MIN_S = 0.001, RATE_MAX_S = 3600;

void parts_init(struct parts *p, const struct agent_options *options)
{
    *p = (struct parts){.options = options, .listening = -1, .abstract = -1, .udp = -1};
    p->program_keeper.fd = options->keeper_fd > 0 ? options->keeper_fd : -1;
}

static int check_options(struct parts *p, struct error *e)
{
    const struct agent_options *o = p->options;
    if (!o->folder || !o->folder[0])
        return error_set(e, -EINVAL, "no run folder is given");
    if (o->level < 1 || o->level > 4)
        return error_set(e, -EINVAL, "level %d is not between 1 and 4", o->level);
    p->rate_s = o->rate_s > 0 ? o->rate_s : RATE_DEFAULT_S; // this also catches NaN
    if (p->rate_s < RATE_MIN_S || p->rate_s > RATE_MAX_S)
        return error_set(e, -EINVAL, "a rate of %g s is not between %g and %g s", p->rate_s,
                         RATE_MIN_S, RATE_MAX_S);
    if (!(o->window_s >= 0) || o->window_s > 1e9)
        return error_set(e, -EINVAL, "a window of %g s is not between 0 and 1e9 s", o->window_s);
    if (o->meta_count > META_MAX - 2)
        return error_set(e, -E2BIG, "more than %d entries about the run", META_MAX - 2);
    return 0;
}

static int make_names(struct parts *p, struct error *e)
{
    const struct agent_options *o = p->options;
    if (o->host && o->host[0]) {
        snprintf(p->host, sizeof p->host, "%s", o->host);
    } else if (gethostname(p->host, sizeof p->host - 1) != 0 || !p->host[0] || p->host[0] == '.') {
        strcpy(p->host, "localhost");
    } else {
        p->host[strcspn(p->host, ".")] = 0;
    }
    if (strchr(p->host, '/'))
        return error_set(e, -EINVAL, "the host's name '%s' holds a slash", p->host);
    int socket_size =
        o->socket_path
            ? snprintf(p->socket_path, sizeof p->socket_path, "%s", o->socket_path)
            : snprintf(p->socket_path, sizeof p->socket_path, "%s/agent.sock", o->folder);
    int file_size = o->file_path ? snprintf(p->file_path, sizeof p->file_path, "%s", o->file_path)
                                 : snprintf(p->file_path, sizeof p->file_path, "%s/%s.sonde",
                                            o->folder, p->host);
    if (socket_size >= PATH_MAX || file_size >= PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the run folder's path is longer than %d bytes",
                         PATH_MAX - 1);
    p->labels[0] = (struct store_label){STR("host"), str_of(p->host)};
    return 0;
}

// Returns the memory for a merge: the rest of the limit, less an overhead for blocks that malloc
// keeps and the tables of zstd.
static size_t merge_room(void *user)
{
    const struct agent_options *o = user;
    size_t own = process_memory_bytes() + o->memory_bytes / MARGIN_SHARE;
    return own < o->memory_bytes ? o->memory_bytes - own : 0;
}

static int open_store(struct parts *p, struct error *e)
{
    const struct agent_options *o = p->options;
    struct store_label meta[META_MAX];
    size_t count = 0;
    meta[count++] = (struct store_label){STR("host"), str_of(p->host)};
    if (o->job && o->job[0])
        meta[count++] = (struct store_label){STR("job"), str_of(o->job)};
    for (size_t i = 0; i < o->meta_count; i++)
        meta[count++] = o->meta[i];
    struct store_options options = {.size_limit_bytes = o->size_limit_bytes,
                                    .merge_limit_bytes = o->memory_bytes / 2,
                                    .merge_room = o->memory_bytes ? merge_room : NULL,
                                    .user = (void *)(uintptr_t)o,
                                    .window_ns = (int64_t)(o->window_s * NS_PER_S),
                                    .meta = meta,
                                    .meta_count = count};
    char path[PATH_MAX];
    overflow_resolve(p->file_path, path);
    int failed = store_open(path, &options, &p->store, e);
    if ((failed == -ENOSPC || failed == -EDQUOT) && o->overflow_folder) {
        failed = overflow_open(p->file_path, o->overflow_folder, &options, &p->store, e);
        p->moved = true;
    }
    return failed;
}

static int open_parts(struct parts *p, void (*wake)(void *user), void *user, struct error *e)
{
    const struct agent_options *o = p->options;
    p->recorded = recorded_open(p->file_path);
    struct ingest_options ingest = {.socket_path = p->socket_path,
                                    .labels = p->labels,
                                    .label_count = 1,
                                    .level = o->level,
                                    .recorded = recorded_last,
                                    .open_spans = recorded_events,
                                    .recorded_user = p->recorded,
                                    .keep = keeper_keep,
                                    .forget = keeper_forget,
                                    .keep_user = &p->program_keeper};
    int failed = ingest_create(p->store, &ingest, &p->ingest, e);
    if (failed)
        return failed;
    struct collect_options collect = {.root = "",
                                      .labels = p->labels,
                                      .label_count = 1,
                                      .level = o->level,
                                      .rate_s = p->rate_s,
                                      .sources = o->sources,
                                      .folder = o->folder,
                                      .job = o->job,
                                      .uid = geteuid()};
    failed = collect_create(&collect, &p->collect, e);
    if (failed)
        return failed;
    failed = sampler_create(p->collect, p->rate_s, wake, user, &p->sampler, e);
    if (failed)
        return failed;
    p->own = self_metrics_create(p->store, p->labels, 1, o->level, e);
    return p->own ? 0 : e->code;
}

// Opens the sockets before the file. So an agent that cannot be reached makes no file, and does not
// mistake a running agent's file for a damaged one.
static int open_sockets(struct parts *p, struct error *e)
{
    p->listening = p->options->listening_fd > 0 ? folder_listen_take(p->options->listening_fd, e)
                                                : folder_listen(p->socket_path, e);
    if (p->listening < 0)
        return p->listening;
    p->reachable = true;
    p->abstract = folder_listen_abstract(p->socket_path);
    if (p->abstract < 0)
        log_warning("programs that do not see the folder of the job cannot reach the agent: the "
                    "abstract name of %s "
                    "cannot be had: %s",
                    p->socket_path, strerror(-p->abstract));
    if (p->options->udp_port) {
        p->udp = agent_connections_udp(p->options->udp_port, e);
        if (p->udp < 0)
            return p->udp;
    }
    return 0;
}

int parts_open(struct parts *p, void (*wake)(void *user), void *user, struct error *e)
{
    int failed = check_options(p, e);
    if (!failed)
        failed = make_names(p, e);
    if (!failed)
        failed = folder_prepare(p->options->folder, e);
    if (!failed)
        failed = open_sockets(p, e);
    if (!failed)
        failed = open_store(p, e);
    if (!failed)
        failed = open_parts(p, wake, user, e);
    return failed;
}

void parts_make_space(struct parts *p)
{
    const char *folder = p->options->overflow_folder;
    if (p->moved || !folder || !store_waiting(p->store))
        return;
    struct error e;
    p->moved = true;
    if (overflow_move(p->store, p->file_path, folder, &e))
        log_warning("the data stay where there is no space: %s", e.text);
    else
        log_warning("there is no space for the data in %s; they go on in %s", p->options->folder,
                    folder);
}

void parts_stop_sampling(struct parts *p)
{
    sampler_destroy(p->sampler);
    collect_destroy(p->collect);
    p->sampler = NULL;
    p->collect = NULL;
}

// Called after another program has truncated the recording. The rest of the file stays beside the
// new recording that the next agent makes. If readers can still open it, it stays as a recording.
static void set_cut_file_aside(const struct parts *p)
{
    char aside[PATH_MAX];
    struct store_reader *reader;
    bool readable = store_reader_open(p->file_path, &reader, NULL) == 0;
    if (readable)
        store_reader_close(reader);
    struct str path = str_of(p->file_path);
    if (str_ends(path, STR(".sonde")))
        path.size -= strlen(".sonde");
    int size = snprintf(aside, sizeof aside, "%.*s.cut-%lld%s", STR_ARG(path),
                        (long long)(clock_realtime_ns() / NS_PER_S), readable ? ".sonde" : "");
    if (size >= PATH_MAX || rename(p->file_path, aside) != 0)
        log_warning("cannot rename %s, which was cut short, to %s: %s", p->file_path, aside,
                    strerror(errno));
    else
        log_warning("the rest of %s is kept as %s; the next agent makes a new file", p->file_path,
                    aside);
}

int parts_close(struct parts *p, struct error *e)
{
    parts_stop_sampling(p);
    if (p->udp >= 0)
        close(p->udp);
    if (p->listening >= 0)
        close(p->listening);
    if (p->abstract >= 0)
        close(p->abstract);
    if (p->reachable)
        folder_unlisten(p->socket_path);
    ingest_destroy(p->ingest);
    recorded_close(p->recorded);
    self_metrics_destroy(p->own);
    if (!p->store)
        return 0;
    if (store_is_cut(p->store))
        set_cut_file_aside(p);
    return store_close(p->store, e);
}
