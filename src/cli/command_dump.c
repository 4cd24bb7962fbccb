#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/printable.h"
#include "client/target.h"
#include "launch/runs.h"
#include "launch/summary.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STATUS_TIMEOUT_MS = 20000,
    DUMP_TIMEOUT_MS = 24 * 3600 * 1000, // long, because the aggregator itself limits the time
    PROGRESS_MS = 500,
};

#define STATUS_PATH "/sonde/v1/status"

// The request, which runs in a thread of its own, so that this one can show the progress.
struct dump_request {
    struct http_client *client;
    struct buf body;
    struct http_answer answer;
    int status;
    struct error e;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool ended;
};

static json_t *parse(const struct http_answer *answer, struct error *e)
{
    json_t *all = json_loadb(answer->body.data, answer->body.size, 0, NULL);
    if (!all)
        error_set(e, -EPROTO, "the job's answer is not JSON");
    return all;
}

static json_t *ask_status(struct http_client *c, struct error *e)
{
    struct http_answer answer = {0};
    if (http_ask(c, STATUS_PATH, (struct str){0}, NULL, STATUS_TIMEOUT_MS, NULL, &answer, e) < 0)
        return NULL;
    json_t *all = parse(&answer, e);
    http_answer_free(&answer);
    return all;
}

// ---------------------------------------------------------------- the request

static int open_client(const struct options *o, struct http_client **out, struct error *e)
{
    const struct target_options where = {.run_dir = options_text(o, OPT_RUN_DIR)};
    struct target target;
    *out = NULL;
    int rc = target_find(o->argument_count ? o->arguments[0] : NULL, NULL, &where, &target, e);
    if (rc)
        return rc;
    *out = target.client;
    return *out ? 0
                : error_set(e, -EINVAL,
                            "%s is a recording: only running jobs are dumped; copy its files",
                            target.path);
}

static int make_body(const struct options *o, const json_t *status, struct buf *out,
                     struct error *e)
{
    const json_t *dump = json_object_get(status, "dump");
    const char *to = options_text(o, OPT_TO), *since = options_text(o, OPT_SINCE);
    char name[256], path[FOLDER_PATH_MAX] = "";
    snprintf(name, sizeof name, "sonde-dump-%s", data_request_text(status, "job"));
    if (!dump)
        return error_set(e, -EINVAL,
                         "only running jobs are dumped; recordings are files already: copy those");
    if (!to && !data_request_text(dump, "configured")[0])
        to = name;
    int rc = to ? runs_path(to, path, e) : 0; // without a target, the aggregator chooses the folder
    if (rc < 0)
        return rc;
    json_t *body = json_pack("{s:s,s:s}", "to", path, "since", since ? since : "");
    char *text = body ? json_dumps(body, 0) : NULL;
    json_decref(body);
    if (text)
        buf_add_str(out, str_of(text));
    free(text);
    return text && !out->failed ? 0 : error_set(e, -EINVAL, "the folder's name is not UTF-8");
}

static void *ask(void *user)
{
    struct dump_request *a = user;
    a->status = http_ask(a->client, "/sonde/v1/dump", buf_str(&a->body), "application/json",
                         DUMP_TIMEOUT_MS, NULL, &a->answer, &a->e);
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    pthread_cond_signal(&a->over);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

// Waits. Returns false if the request has not ended yet.
static bool wait_for_end(struct dump_request *a)
{
    int64_t until_ns = clock_monotonic_ns() + (int64_t)PROGRESS_MS * NS_PER_MS;
    pthread_mutex_lock(&a->lock);
    while (!a->ended && condition_wait_until(&a->over, &a->lock, until_ns))
        continue;
    bool ended = a->ended;
    pthread_mutex_unlock(&a->lock);
    return ended;
}

static void show_progress(struct http_client *c)
{
    struct error ignored;
    json_t *status = ask_status(c, &ignored);
    const json_t *dump = json_object_get(status, "dump");
    if (json_is_true(json_object_get(dump, "running"))) {
        char bytes[32];
        summary_bytes_text((double)data_request_number(dump, "bytes"), bytes, sizeof bytes);
        fprintf(stderr, "\r\033[Ksonde: %lld of %lld nodes, %lld points, %s",
                (long long)data_request_number(dump, "files"),
                (long long)data_request_number(dump, "nodes"),
                (long long)data_request_number(dump, "points"), bytes);
    }
    json_decref(status);
}

static int make_dump(const struct options *o, struct dump_request *a, struct error *e)
{
    struct http_client *beside = NULL;
    bool shown = isatty(STDERR_FILENO) && !options_flag(o, OPT_QUIET) &&
                 http_client_create_like(a->client, &beside, e) == 0;
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, ask, a);
    if (failed) {
        http_client_destroy(beside);
        return error_set(e, -failed, "cannot start a thread: %s", strerror(failed));
    }
    while (!wait_for_end(a))
        if (shown)
            show_progress(beside);
    pthread_join(thread, NULL);
    if (shown)
        fputs("\r\033[K", stderr);
    http_client_destroy(beside);
    if (a->status < 0)
        *e = a->e;
    return a->status;
}

// ---------------------------------------------------------------- the answer

static bool has_failed(const json_t *file)
{
    return strcmp(data_request_text(file, "state"), "failed") == 0;
}

static void print_table(const json_t *files, struct buf *out)
{
    static const char *const titles[] = {"node",  "new points", "travelled",
                                         "bytes", "state",      "file"};
    struct columns table = {0};
    columns_titles(&table, titles, sizeof titles / sizeof *titles);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *f = json_array_get(files, i);
        if (has_failed(f))
            continue;
        columns_cell(&table, "%s", data_request_text(f, "host"));
        columns_cell(&table, "%lld", (long long)data_request_number(f, "points"));
        columns_cell(&table, "%lld", (long long)data_request_number(f, "new_bytes"));
        columns_cell(&table, "%lld", (long long)data_request_number(f, "bytes"));
        columns_cell(&table, "%s", data_request_text(f, "state"));
        columns_cell(&table, "%s", data_request_text(f, "path"));
    }
    columns_write(&table, out);
    columns_free(&table);
}

// Prints the transferred bytes, and the size of the files. They cannot be compared, because points
// have different formats on the wire and in a file.
static void print_sums(const json_t *files, size_t whole, struct buf *out)
{
    char received[32], all[32];
    long long points = 0, came_bytes = 0, bytes = 0;
    for (size_t i = 0; i < json_array_size(files); i++) {
        points += data_request_number(json_array_get(files, i), "points");
        came_bytes += data_request_number(json_array_get(files, i), "new_bytes");
        bytes += data_request_number(json_array_get(files, i), "bytes");
    }
    summary_bytes_text((double)came_bytes, received, sizeof received);
    summary_bytes_text((double)bytes, all, sizeof all);
    buf_printf(out, "%zu file%s of %s; %lld new point%s, for which %s travelled\n", whole,
               whole == 1 ? "" : "s", all, points, points == 1 ? "" : "s", received);
}

// Prints the names of missing nodes, and returns their number.
static size_t name_absent(const json_t *all)
{
    const json_t *files = json_object_get(all, "files"), *missing = json_object_get(all, "missing");
    size_t absent = json_array_size(missing);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *f = json_array_get(files, i);
        if (!has_failed(f))
            continue;
        log_error("no data of node %s: %s", data_request_text(f, "host"),
                  data_request_text(f, "message"));
        absent++;
    }
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const json_t *m = json_array_get(missing, i);
        const char *text = data_request_text(m, "text");
        log_error("no data of node %s: %s%s%s", data_request_text(m, "host"),
                  data_request_text(m, "reason"), text[0] ? ": " : "", text);
    }
    return absent;
}

static size_t count_whole(const json_t *files)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(files); i++)
        n += !has_failed(json_array_get(files, i));
    return n;
}

static int report(const struct options *o, const struct dump_request *a, struct error *e)
{
    json_t *all = parse(&a->answer, e);
    if (!all)
        return command_failed(EXIT_FAILED, e);
    const json_t *files = json_object_get(all, "files");
    size_t whole = count_whole(files), absent = name_absent(all);
    struct buf out = {0};
    if (options_flag(o, OPT_JSON))
        printable_printf(&out, "%.*s", STR_ARG(buf_str(&a->answer.body)));
    else if (whole)
        print_table(files, &out);
    if (options_flag(o, OPT_JSON))
        buf_add_char(&out, '\n');
    if (whole && !options_flag(o, OPT_JSON) && !options_flag(o, OPT_QUIET))
        print_sums(files, whole, &out);
    json_decref(all);
    int code = command_print(&out);
    if (!whole && !absent)
        return command_failed(EXIT_FAILED,
                              (error_set(e, -ENOENT, "the job has recorded nothing yet"), e));
    return !whole ? EXIT_FAILED : absent ? EXIT_PARTLY : code;
}

int command_dump(const struct options *o)
{
    struct error e = {0};
    struct dump_request a = {.lock = PTHREAD_MUTEX_INITIALIZER};
    condition_init(&a.over);
    log_setup(LOG_WARNING, "sonde");
    int rc = open_client(o, &a.client, &e);
    json_t *status = rc < 0 ? NULL : ask_status(a.client, &e);
    if (rc == 0)
        rc = status ? make_body(o, status, &a.body, &e) : e.code;
    json_decref(status);
    if (rc == 0)
        rc = make_dump(o, &a, &e);
    int code = rc < 0 ? command_failed(EXIT_FAILED, &e) : report(o, &a, &e);
    http_answer_free(&a.answer);
    http_client_destroy(a.client);
    buf_free(&a.body);
    return code;
}
