#include "launch/gather.h"

#include "base/clock.h"
#include "launch/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum file_state {
    FILE_THERE,     // on its node: still being closed, or not to be fetched
    FILE_REQUESTED, // the aggregator is fetching it
    FILE_FETCHED,   // here
    FILE_STAYS,
};

struct gathered {
    enum file_state state;
    bool leaving;  // the node leaves while the job continues
    char *problem; // owned; NULL: no reason is known
};

struct gather {
    struct placement *placement;
    const struct allocation *nodes;
    const struct job *job;
    char mark[80];
    struct gathered *all;
    // number of nodes; of those whose agents still close files, at the last check
    size_t count, closing;
    uint64_t bytes;
    int64_t began_ns, moved_ns, said_ns;
};

// Chooses a unique name for the mark.
static int make_mark(struct gather *g, struct error *e)
{
    char path[FOLDER_PATH_MAX];
    snprintf(g->mark, sizeof g->mark, ".sonde-%lld-%d", (long long)clock_realtime_ns(),
             (int)getpid());
    int n = snprintf(path, sizeof path, "%s/%s", g->job->record, g->mark);
    if (n >= (int)sizeof path)
        return error_set(e, -ENAMETOOLONG, "the path %.60s… is too long", g->job->record);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(e, -errno, "cannot write %s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

int gather_create(struct placement *p, const struct allocation *nodes, const struct job *job,
                  struct gather **out, struct error *e)
{
    struct gather *g = *out = calloc(1, sizeof *g);
    struct gathered *all = calloc(nodes->hosts.count, sizeof *all);
    if (!g || !all) {
        free(g);
        free(all);
        *out = NULL;
        return error_set(e, -ENOMEM, "out of memory");
    }
    *g = (struct gather){
        .placement = p, .nodes = nodes, .job = job, .all = all, .count = nodes->hosts.count};
    g->began_ns = g->moved_ns = g->said_ns = clock_monotonic_ns();
    int status = folder_make_all(job->record, e);
    if (status == 0)
        status = make_mark(g, e);
    if (status < 0) {
        gather_free(g);
        *out = NULL;
    }
    return status;
}

static const char *name_of(const struct gather *g, size_t node)
{
    return g->nodes->hosts.names[node];
}

static void begin_to_wait(struct gather *g)
{
    g->began_ns = g->moved_ns = g->said_ns = clock_monotonic_ns();
}

void gather_leave(struct gather *g, size_t node)
{
    if (g->all[node].leaving)
        return;
    g->all[node].leaving = true;
    placement_finish(g->placement, node, g->mark);
    begin_to_wait(g);
}

bool gather_is_leaving(const struct gather *g, size_t node)
{
    return g->all[node].leaving;
}

size_t gather_leaving(const struct gather *g)
{
    size_t count = 0;
    for (size_t i = 0; i < g->count; i++)
        count += g->all[i].leaving;
    return count;
}

static void stays(struct gathered *one, struct str why)
{
    free(one->problem);
    one->problem = strndup(why.data ? why.data : "", why.size);
    one->state = FILE_STAYS;
}

void gather_lost(struct gather *g, size_t node, const char *why)
{
    if (g->all[node].state != FILE_FETCHED)
        stays(&g->all[node], str_of(why));
}

void gather_finish(struct gather *g)
{
    for (size_t i = 0; i < g->count; i++)
        placement_finish(g->placement, i, g->mark);
    begin_to_wait(g);
}

void gather_ask_anew(struct gather *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->all[i].state == FILE_REQUESTED)
            g->all[i].state = FILE_THERE;
}

// Ends a leaving node, unless its file is still being fetched.
static void end_leaving(struct gather *g, size_t node)
{
    struct gathered *one = &g->all[node];
    enum node_finish finish = placement_finishing(g->placement, node);
    if (!one->leaving || placement_state(g->placement, node) == NODE_SILENT)
        return; // the node may be back
    if (one->state == FILE_FETCHED)
        placement_drop(g->placement, node);
    else if (one->state == FILE_STAYS)
        placement_stop(g->placement, node);
    else if (finish != NODE_NOT_FINISHING)
        return;
    one->leaving = false;
}

bool gather_turn(struct gather *g, void (*tell)(void *user, const char *verb, const char *text),
                 void *user)
{
    size_t closing = 0, requested = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct gathered *one = &g->all[i];
        enum node_finish finish = placement_finishing(g->placement, i);
        if (finish == NODE_CLOSED && one->state == FILE_THERE) {
            char text[FOLDER_PATH_MAX + 256];
            snprintf(text, sizeof text, "%s %s", name_of(g, i), g->job->record);
            tell(user, "fetch", text);
            one->state = FILE_REQUESTED;
        }
        end_leaving(g, i);
        bool silent = one->leaving && placement_state(g->placement, i) == NODE_SILENT;
        closing += finish == NODE_CLOSING || silent;
        requested += finish == NODE_CLOSED && one->state == FILE_REQUESTED;
    }
    int64_t now_ns = clock_monotonic_ns();
    if (closing != g->closing)
        g->moved_ns = now_ns;
    g->closing = closing;
    bool late = now_ns - g->moved_ns >= (int64_t)GATHER_STALL_MS * NS_PER_MS ||
                now_ns - g->began_ns >= (int64_t)GATHER_MAX_MS * NS_PER_MS;
    for (size_t i = 0; i < g->count && late; i++) {
        if (!g->all[i].leaving)
            continue;
        if (g->all[i].state != FILE_FETCHED)
            stays(&g->all[i], STR("it took too long"));
        placement_stop(g->placement, i);
        g->all[i].leaving = false;
    }
    return closing + requested > 0 && !late;
}

static struct gathered *find(struct gather *g, struct str host)
{
    ptrdiff_t i = hosts_find(&g->nodes->hosts, host);
    return i < 0 || g->all[i].state != FILE_REQUESTED ? NULL : &g->all[i];
}

bool gather_heard(struct gather *g, const char *line)
{
    struct str rest = str_of(line), word = str_cut(&rest, ' ');
    bool fetched = str_eq(word, STR("fetched"));
    if (str_eq(word, STR("fetching"))) {
        str_to_u64(rest, &g->bytes);
    } else if (fetched || str_eq(word, STR("unfetched"))) {
        struct gathered *one = find(g, str_cut(&rest, ' '));
        if (one && fetched)
            one->state = FILE_FETCHED;
        else if (one)
            stays(one, rest);
    } else {
        return false;
    }
    g->moved_ns = clock_monotonic_ns();
    return true;
}

void gather_words(struct gather *g, char *out, size_t size)
{
    int64_t now_ns = clock_monotonic_ns();
    out[0] = 0;
    if (now_ns - g->said_ns < (int64_t)GATHER_SAY_MS * NS_PER_MS)
        return;
    g->said_ns = now_ns;
    size_t here = 0, awaited = g->closing;
    for (size_t i = 0; i < g->count; i++) {
        here += g->all[i].state == FILE_FETCHED;
        awaited += g->all[i].state == FILE_REQUESTED;
    }
    char bytes[32];
    summary_bytes_text((double)g->bytes, bytes, sizeof bytes);
    snprintf(
        out, size,
        "bringing the recordings of the other nodes here: %zu of %zu, %s; Ctrl-C leaves them there",
        here, here + awaited, bytes);
}

void gather_release(struct gather *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->all[i].state == FILE_FETCHED)
            placement_drop(g->placement, i);
}

void gather_end(struct gather *g)
{
    char path[FOLDER_PATH_MAX + 80];
    if (!g->mark[0])
        return;
    snprintf(path, sizeof path, "%s/%s", g->job->record, g->mark);
    unlink(path);
    g->mark[0] = 0;
}

void gather_free(struct gather *g)
{
    if (!g)
        return;
    gather_end(g);
    for (size_t i = 0; i < g->count; i++)
        free(g->all[i].problem);
    free(g->all);
    free(g);
}

bool gather_has(const struct gather *g, size_t node)
{
    return g->all[node].state == FILE_FETCHED;
}

const char *gather_problem(const struct gather *g, size_t node)
{
    return g->all[node].problem;
}
