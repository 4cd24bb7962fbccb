#include "launch/nodes.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/gather.h"
#include "launch/node_report.h"
#include "launch/node_tree.h"
#include "launch/placement.h"
#include "launch/substitute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LATE_MS = 1000, // beyond the node time-out, so that a silent node is known to be silent
};

struct nodes {
    const struct nodes_options *o;
    const struct job *job;
    struct allocation allocation;
    struct restart restart;
    struct placement *placement; // NULL: there are no other nodes
    char program[FOLDER_PATH_MAX];
    char *list, *words; // owned: names of the nodes that take part
    enum restart_verb pending, verdict;
    bool begun, stopped;
    struct gather *gather; // NULL: not begun
    struct node_tree tree;
};

// ---------------------------------------------------------------- nodes that take part

static const char *name_of(const struct nodes *n, size_t node)
{
    return allocation_name(&n->allocation, node, n->job->host);
}

static char *join(const struct nodes *n, char separator)
{
    struct buf text = {0};
    for (size_t i = 0; i < n->restart.count; i++) {
        if (!restart_takes_part(&n->restart, i))
            continue;
        if (text.size > 0)
            buf_add_char(&text, separator);
        buf_add_str(&text, str_of(name_of(n, i)));
    }
    char *out = text.failed ? NULL : strdup(buf_cstr(&text));
    buf_free(&text);
    return out;
}

static int make_lists(struct nodes *n, struct error *e)
{
    free(n->list);
    free(n->words);
    n->list = join(n, ',');
    n->words = join(n, ' ');
    return n->list && n->words ? 0 : error_set(e, -ENOMEM, "out of memory");
}

int nodes_find(const struct nodes_options *options, const struct job *job, struct nodes **out,
               struct error *e)
{
    *out = NULL;
    struct nodes *n = calloc(1, sizeof *n);
    if (!n)
        return error_set(e, -ENOMEM, "out of memory");
    n->o = options;
    n->job = job;
    int status = allocation_find(options->hosts, options->hostfile, &n->allocation, e);
    if (status < 0 && status != -ENOMEM && !options->hosts && !options->hostfile &&
        !options->strict) {
        // Only a warning, because the batch system made the mistake and not the user.
        log_warning("the job's nodes are not known: %s; there is telemetry of this node only "
                    "(--hosts names others)",
                    e->text);
        n->allocation = (struct allocation){.here = true};
        status = 0;
    }
    size_t count = n->allocation.kind == ALLOCATION_LOCAL ? 1 : n->allocation.hosts.count;
    if (status == 0)
        status = restart_init(&n->restart, &options->rules, count, e);
    if (status == 0)
        status = make_lists(n, e);
    if (status == 0)
        status = node_tree_init(&n->tree, &n->allocation, &n->restart, options->fanout,
                                nodes_own_name(n), e);
    if (status < 0) {
        nodes_close(n);
        return status;
    }
    *out = n;
    return 0;
}

void nodes_close(struct nodes *n)
{
    if (!n)
        return;
    gather_free(n->gather);
    placement_destroy(n->placement);
    restart_free(&n->restart);
    allocation_free(&n->allocation);
    free(n->list);
    free(n->words);
    node_tree_free(&n->tree);
    free(n);
}

// ---------------------------------------------------------------- events

// Handles a decision of the rules while the command runs, or before it begins.
static void take_answer(struct nodes *n, const struct restart_answer *answer)
{
    if (answer->verb == RESTART_AGAIN || answer->verb == RESTART_GIVE_UP) {
        // A run that was given up stays given up.
        if (n->pending != RESTART_GIVE_UP)
            n->pending = answer->verb;
    }
}

static void start_missing(struct nodes *n);
static void take_out(struct nodes *n, size_t node);

static bool is_leaving(const struct nodes *n, size_t node)
{
    return n->gather && gather_is_leaving(n->gather, node);
}

static void on_lost(struct nodes *n, size_t node, const char *what, const char *why)
{
    if (n->restart.places[node] == RESTART_OUT) { // known already
        if (is_leaving(n, node) && placement_state(n->placement, node) == NODE_LOST)
            gather_lost(n->gather, node, why);
        return;
    }
    struct restart_answer answer = restart_node_lost(&n->restart, node);
    bool out = n->restart.places[node] == RESTART_OUT;
    if (!n->begun && n->o->strict)
        log_warning("node %s %s: %s", name_of(n, node), what, why);
    else
        log_warning("node %s %s: %s; %s", name_of(n, node), what, why, answer.reason);
    take_answer(n, &answer);
    if (out)
        take_out(n, node);
    start_missing(n);
}

static void on_event(void *user, size_t node, enum node_event event, const char *words)
{
    struct nodes *n = user;
    if (n->stopped && event != NODE_EVENT_WORDS)
        return;
    switch (event) {
    case NODE_EVENT_UP:
        log_info("node %s is up", name_of(n, node));
        node_tree_relay(&n->tree, node, node_tree_relay_port(&n->tree, node), false);
        break;
    case NODE_EVENT_FAILED:
        node_tree_relay(&n->tree, node, 0, true);
        on_lost(n, node, "has not come up", words);
        break;
    case NODE_EVENT_LOST:
        node_tree_relay(&n->tree, node, 0, true);
        on_lost(n, node, "is lost", words);
        break;
    case NODE_EVENT_SILENT:
        node_tree_relay(&n->tree, node, node_tree_relay_port(&n->tree, node),
                        true); // the node may come back and listen at the same port
        on_lost(n, node, "is lost", words);
        break;
    case NODE_EVENT_BACK:
        log_warning("node %s is back", name_of(n, node));
        if (n->restart.places[node] == RESTART_OUT)
            take_out(n, node);
        node_tree_relay(&n->tree, node, node_tree_relay_port(&n->tree, node), false);
        break;
    case NODE_EVENT_HUB:
        node_tree_relay(&n->tree, node, atoi(words), atoi(words) == 0);
        break;
    case NODE_EVENT_WORDS:
        log_say("node %s: %s", name_of(n, node), words);
        break;
    }
}

// Starts the nodes that take part and have no agent: at first all, later the reserves that replace
// others.
static void start_missing(struct nodes *n)
{
    struct error e;
    if (make_lists(n, &e) < 0) {
        log_warning("%s", e.text);
        return;
    }
    size_t *nodes = calloc(n->restart.count, sizeof *nodes), count = 0;
    for (size_t i = 0; i < n->restart.count && nodes; i++) {
        if (restart_takes_part(&n->restart, i) && !allocation_is_own(&n->allocation, i))
            nodes[count++] = i;
    }
    placement_start(n->placement, nodes, count, n->list);
    free(nodes);
    node_tree_tell(&n->tree);
}

// Idempotent.
static int begin_gather(struct nodes *n, struct error *e)
{
    int status = n->gather ? 0 : gather_create(n->placement, &n->allocation, n->job, &n->gather, e);
    n->tree.gather = n->gather;
    return status;
}

// Takes a node out of the job. Fetches its recording first, if recordings are kept and the node can
// be reached; a silent node may come back.
static void take_out(struct nodes *n, size_t node)
{
    struct error e;
    enum node_state state = placement_state(n->placement, node);
    bool comes = n->job->record[0] && n->tree.port;
    if (is_leaving(n, node) || (comes && state == NODE_SILENT))
        return;
    if (comes && state == NODE_UP && begin_gather(n, &e) < 0)
        log_warning("%s; node %s keeps its recording", e.text, name_of(n, node));
    if (comes && state == NODE_UP && n->gather) {
        gather_leave(n->gather, node);
        node_tree_tell(&n->tree);
    } else {
        placement_stop(n->placement, node);
    }
}

void nodes_leave(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                 void *user)
{
    size_t leaving = n->gather && !n->stopped ? gather_leaving(n->gather) : 0;
    if (leaving == 0)
        return;
    gather_turn(n->gather, tell, user);
    if (gather_leaving(n->gather) != leaving)
        node_tree_tell(&n->tree);
}

bool nodes_others(const struct nodes *n)
{
    return n->allocation.kind != ALLOCATION_LOCAL &&
           !(n->restart.count == 1 && allocation_is_own(&n->allocation, 0));
}

const char *nodes_own_name(const struct nodes *n)
{
    return n->allocation.here ? name_of(n, 0) : n->job->host;
}

const char *nodes_address(const struct nodes *n)
{
    return n->tree.address[0] ? n->tree.address : NULL;
}

void nodes_tell_port(struct nodes *n, int port)
{
    n->tree.port = port;
    node_tree_tell(&n->tree);
}

void nodes_tell_expected(struct nodes *n, bool anew,
                         void (*tell)(void *user, const char *verb, const char *host), void *user)
{
    node_tree_tell_aggregator(&n->tree, anew, tell, user);
}

int nodes_place(struct nodes *n, const struct job *job, const char *token, const char *key,
                const char *const *agent_arguments, const struct collector_requests *collectors,
                struct error *e)
{
    if (!nodes_others(n))
        return 0;
    node_tree_find_address(&n->tree);
    if (!n->allocation.here)
        log_warning("this machine is none of the job's nodes: the command runs here, as it would "
                    "without sonde");
    if (n->o->remote_sonde) {
        snprintf(n->program, sizeof n->program, "%s", n->o->remote_sonde);
    } else {
        ssize_t size = readlink("/proc/self/exe", n->program, sizeof n->program - 1);
        if (size < 0)
            return error_set(e, -errno,
                             "cannot find the path of this program (--remote-sonde sets it): %s",
                             strerror(errno));
    }
    struct placement_options options = {
        .allocation = &n->allocation,
        .program = n->program,
        .node = {.job = job->id,
                 .folder = job->folder,
                 .token = token,
                 .key = key,
                 .command = job->command,
                 .record = job->record[0] ? job->record : NULL,
                 .transport = n->o->transport,
                 .dragon_port = n->o->dragon_port,
                 .agent_arguments = agent_arguments,
                 .stop_ms = (int64_t)(n->o->stop_timeout_s * 1000)},
        .collectors = collectors,
        .node_timeout_ms = (int64_t)(n->o->node_timeout_s * 1000),
        .verbose = n->o->verbose,
        .on_event = on_event,
        .user = n,
    };
    int status = placement_create(&options, &n->placement, e);
    n->tree.placement = n->placement;
    if (status == 0)
        start_missing(n);
    return status;
}

void nodes_tell_url(struct nodes *n, const char *url)
{
    if (n->placement)
        placement_tell_url(n->placement, url);
}

void nodes_tell_collector(struct nodes *n, const char *collector_line)
{
    if (n->placement)
        placement_tell_collector(n->placement, collector_line);
}

int nodes_fd(const struct nodes *n)
{
    return n->placement ? placement_fd(n->placement) : -1;
}

void nodes_turn(struct nodes *n)
{
    if (n->placement)
        placement_turn(n->placement);
}

bool nodes_reaped(struct nodes *n, pid_t pid, int status)
{
    return n->placement && placement_reaped(n->placement, pid, status);
}

bool nodes_owns(const struct nodes *n, pid_t pid)
{
    return n->placement && placement_owns(n->placement, pid);
}

bool nodes_starting(const struct nodes *n)
{
    return n->placement && placement_starting(n->placement) > 0;
}

bool nodes_running(const struct nodes *n)
{
    return n->placement && placement_running(n->placement) > 0;
}

int nodes_check(const struct nodes *n, struct error *e)
{
    struct buf missing = {0};
    for (size_t i = 0; n->o->strict && n->placement && i < n->restart.count; i++) {
        if (placement_state(n->placement, i) == NODE_FAILED ||
            placement_state(n->placement, i) == NODE_LOST)
            buf_printf(&missing, "%s%s", missing.size ? ", " : "", name_of(n, i));
    }
    int status = 0;
    if (missing.size > 0)
        status = error_set(e, -EHOSTUNREACH, "%s did not come up, and the run is --strict",
                           buf_cstr(&missing));
    buf_free(&missing);
    return status;
}

// ---------------------------------------------------------------- attempts

char **nodes_substitute(const struct nodes *n, const char *hostfile, char *const *command)
{
    char count[24];
    snprintf(count, sizeof count, "%zu", nodes_count(n));
    const char *const values[] = {
        [SUBSTITUTE_NODELIST] = n->list,
        [SUBSTITUTE_HOSTS] = n->words,
        [SUBSTITUTE_HOSTFILE] = hostfile,
        [SUBSTITUTE_NNODES] = count,
    };
    return substitute(command, values);
}

bool nodes_hostfile_text(const struct nodes *n, struct buf *out)
{
    struct str rest = str_of(n->list);
    while (rest.data) {
        buf_add_str(out, str_cut(&rest, ','));
        buf_add_char(out, '\n');
    }
    return !out->failed;
}

int nodes_begin(struct nodes *n, struct error *e)
{
    restart_begin(&n->restart);
    n->begun = true;
    n->pending = n->verdict = RESTART_GO_ON;
    int status = make_lists(n, e);
    if (status < 0)
        return status;
    struct buf text = {0};
    if (!nodes_hostfile_text(n, &text))
        status = error_set(e, -ENOMEM, "out of memory");
    else if (n->job->folder[0])
        status = folder_write(n->job->folder, "hostfile", buf_str(&text), e);
    buf_free(&text);
    if (n->placement)
        placement_tell_hosts(n->placement, n->list);
    return status;
}

int nodes_restarts(const struct nodes *n)
{
    return restart_count(&n->restart);
}

bool nodes_restartable(const struct nodes *n)
{
    return n->o->rules.resilient || n->o->rules.exit_code >= 0;
}

size_t nodes_count(const struct nodes *n)
{
    return restart_taking_part(&n->restart);
}

const char *nodes_list(const struct nodes *n)
{
    return n->list;
}

const char *nodes_words(const struct nodes *n)
{
    return n->words;
}

// Returns -1 if no node has this name.
static ptrdiff_t find_node(const struct nodes *n, struct str name)
{
    for (size_t i = 0; i < n->restart.count; i++) {
        if (str_eq(name, str_of(name_of(n, i))) ||
            (allocation_is_own(&n->allocation, i)
                 ? str_eq(name, str_of(n->job->host))
                 : n->placement && str_eq(name, str_of(placement_host(n->placement, i)))))
            return (ptrdiff_t)i;
    }
    return -1;
}

void nodes_reboot(struct nodes *n, const char *hosts)
{
    size_t *excluded = calloc(n->restart.count, sizeof *excluded), count = 0;
    struct str rest = str_of(hosts);
    struct buf without = {0}; // the names of excluded nodes
    while (excluded && rest.data && count < n->restart.count) {
        struct str name = str_trim(str_cut(&rest, ','));
        ptrdiff_t node = name.size ? find_node(n, name) : -1;
        if (node < 0 && name.size)
            log_warning("a restart without %.*s is requested, but the job has no such node",
                        name.size > 80 ? 80 : (int)name.size, name.data);
        else if (node == 0)
            log_warning("a restart without %.*s is requested, but the first node always stays",
                        STR_ARG(name));
        if (node > 0) {
            excluded[count++] = (size_t)node;
            buf_printf(&without, "%s%.*s", without.size ? "," : " without ", STR_ARG(name));
        }
    }
    struct restart_answer answer = restart_reboot(&n->restart, excluded, count);
    free(excluded);
    if (answer.verb == RESTART_REFUSED)
        log_warning("a requested restart is refused: %s", answer.reason);
    else
        log_warning("a restart is requested%s: %s", buf_cstr(&without), answer.reason);
    buf_free(&without);
    take_answer(n, &answer);
    for (size_t i = 0; n->placement && i < n->restart.count; i++) {
        if (n->restart.places[i] == RESTART_OUT)
            take_out(n, i);
    }
    if (n->placement)
        start_missing(n);
}

enum restart_verb nodes_pending(const struct nodes *n)
{
    return n->pending;
}

// Whether every other node that takes part was heard after the command's end, or that end is so
// long ago that silent nodes are known.
static bool all_heard_since(const struct nodes *n, int64_t ended_ns)
{
    int64_t limit_ns =
        ended_ns + (int64_t)(n->o->node_timeout_s * NS_PER_S) + (int64_t)LATE_MS * NS_PER_MS;
    if (!n->placement || clock_monotonic_ns() > limit_ns)
        return true;
    for (size_t i = 0; i < n->restart.count; i++) {
        if (restart_takes_part(&n->restart, i) && !allocation_is_own(&n->allocation, i) &&
            placement_heard_ns(n->placement, i) <= ended_ns)
            return false;
    }
    return true;
}

bool nodes_command_ended(struct nodes *n, int exit_code, int64_t ended_ns)
{
    bool asks = exit_code == n->o->rules.exit_code;
    if (n->pending == RESTART_GO_ON && n->o->rules.resilient && exit_code != 0 && !asks &&
        !all_heard_since(n, ended_ns))
        return false;
    if (n->pending != RESTART_GO_ON) {
        n->verdict = n->pending;
        return true;
    }
    struct restart_answer answer = restart_command_ended(&n->restart, exit_code);
    if (answer.verb == RESTART_AGAIN)
        log_warning("the command asks to be started again (exit code %d): %s", exit_code,
                    answer.reason);
    else if (asks)
        log_warning("the command asks to be started again (exit code %d), but %s", exit_code,
                    answer.reason);
    n->verdict = answer.verb;
    return true;
}

enum restart_verb nodes_verdict(const struct nodes *n)
{
    return n->verdict;
}

// ---------------------------------------------------------------- the end

void nodes_gather_begin(struct nodes *n)
{
    struct error e;
    if (!n->placement || n->stopped || !n->job->record[0])
        return;
    n->stopped = true;
    if (begin_gather(n, &e) < 0)
        log_warning("%s; the other nodes keep their recordings", e.text);
    if (n->gather)
        gather_finish(n->gather);
}

bool nodes_gather(struct nodes *n, void (*tell)(void *user, const char *verb, const char *text),
                  void *user, char *words, size_t size)
{
    bool more = n->gather && gather_turn(n->gather, tell, user);
    words[0] = 0;
    if (more && !n->o->quiet)
        gather_words(n->gather, words, size);
    return more;
}

bool nodes_gather_heard(struct nodes *n, const char *line)
{
    return n->gather && gather_heard(n->gather, line);
}

void nodes_stop(struct nodes *n)
{
    struct error e;
    n->stopped = true;
    if (!n->placement)
        return;
    if (!n->gather && n->job->record[0] && folder_make_all(n->job->record, &e) < 0)
        log_warning("%s", e.text);
    if (n->gather)
        gather_release(n->gather);
    placement_stop_all(n->placement);
}

void nodes_kill(struct nodes *n)
{
    if (n->placement)
        placement_kill_all(n->placement);
}

void nodes_report(const struct nodes *n)
{
    if (n->gather)
        gather_end(n->gather);
    if (n->placement)
        node_report(n->placement, n->gather, &n->allocation, n->job, n->o->quiet);
}
