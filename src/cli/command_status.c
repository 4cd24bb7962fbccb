#include "cli/annotations.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/quantity.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/printable.h"
#include "client/forwarded.h"
#include "http/tokens.h"
#include "launch/job.h"
#include "launch/job_memory.h"
#include "launch/parameters.h"
#include "launch/summary.h"
#include "launch/tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    STATUS_TIMEOUT_MS = 10000,
    PARAMETERS_SHOWN_BYTES = 400,
};

// A job, with the data of all its nodes over HTTP. If it does not answer, the data are those of
// this machine's files.
struct shown {
    struct job job;
    bool elsewhere;     // the job is only known from SONDE_URL; this machine has none of its data
    bool on_first_node; // this is the job's first node, so an ssh tunnel to it reaches the server
    char url[JOB_URL_MAX + 300]; // with the view token; empty: no URL
    bool known;                  // the fields below are valid
    struct summary s;
    struct parameters parameters;
    json_t *nodes;      // NULL: the job does not answer
    struct buf missing; // missing nodes, with the reasons
};

static void full_url(struct shown *j)
{
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], view[TOKEN_TEXT_MAX];
    const char *file = getenv("SONDE_TOKEN_FILE");
    snprintf(path, sizeof path, "%s/token", j->job.folder);
    if (j->job.folder[0] || !file)
        file = path;
    if (!j->job.url[0] || token_read(file, false, control, NULL) != 0)
        return;
    token_of_role(str_of(control), ROLE_VIEW, view);
    explicit_bzero(control, sizeof control);
    snprintf(j->url, sizeof j->url, "%s/?token=%s", j->job.url, view);
}

// ---------------------------------------------------------------- requests

static void take_event(const struct store_event *event, void *user)
{
    struct shown *j = user;
    summary_add_event(event, &j->s);
    parameters_add_event(&j->parameters, event);
}

// Reads the agents' annotations about failing sources and scripts, and the parameters of programs.
static void take_annotations(struct data_request *a, struct shown *j)
{
    static const char *const tags[] = {"cut_off=*", "failing=*", PARAMETERS_TAG};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct error ignored;
        char *missing = NULL;
        annotations_each(a->client, tags[i], take_event, j, &missing, &ignored);
        data_request_missing(a, missing);
        free(missing);
    }
}

// Requests the job's data. Returns false if it does not answer; *e has the reason.
static bool ask_job(struct data_request *all, struct shown *j, struct error *e)
{
    const char *where = j->job.url;
    struct data_request own = {.o = all->o}, *a = &own;
    const struct sonde_client_options options = {.timeout_ms = STATUS_TIMEOUT_MS};
    if (client_open(&where, 1, NULL, &options, &a->client, e) < 0)
        return false;
    if (data_request_list(a, "/sonde/v1/nodes?points", "nodes", &j->nodes, e) == 0) {
        for (size_t i = 0; i < json_array_size(j->nodes); i++) {
            const json_t *n = json_array_get(j->nodes, i);
            j->s.points += (uint64_t)data_request_number(n, "points");
            j->s.series += (uint64_t)data_request_number(n, "series");
            j->s.dropped += (uint64_t)data_request_number(n, "dropped");
        }
        take_annotations(a, j);
        j->known = true;
    }
    sonde_client_close(a->client);
    j->missing = a->missing;
    data_request_missing(all, buf_cstr(&j->missing));
    return j->known;
}

// Adds the job of SONDE_URL, unless it runs on this machine. The job itself returns its name.
static int add_elsewhere(struct shown *all, size_t *count, struct error *e)
{
    const char *url = getenv("SONDE_URL"), *id = getenv("SONDE_JOB");
    struct target t;
    if (!url || !*url)
        return 0;
    const struct target_options places = {0};
    int rc = target_find(NULL, NULL, &places, &t, e);
    if (rc)
        return rc;
    const char *at = t.client ? http_client_url(t.client) : NULL;
    bool here = !at;
    for (size_t i = 0; i < *count && at; i++)
        here |= strcmp(all[i].job.url, at) == 0;
    if (!here) {
        struct shown *j = &all[(*count)++];
        j->elsewhere = true;
        snprintf(j->job.url, sizeof j->job.url, "%s", at);
        snprintf(j->job.id, sizeof j->job.id, "%s", id && *id ? id : "");
    }
    target_free(&t);
    return 0;
}

// For a job on another machine, reads the facts that only the job itself knows.
static void describe_elsewhere(struct shown *j)
{
    const json_t *first = json_array_get(j->nodes, 0);
    if (!j->job.id[0])
        snprintf(j->job.id, sizeof j->job.id, "%s", data_request_text(first, "job"));
    for (size_t i = 0; i < json_array_size(j->nodes); i++) {
        int64_t first_ns = data_request_number(json_array_get(j->nodes, i), "first_ns");
        if (first_ns && (!j->job.start_ns || first_ns < j->job.start_ns))
            j->job.start_ns = first_ns;
    }
}

// ---------------------------------------------------------------- JSON

static void write_memory_json(struct json_writer *w, const struct job *j)
{
    struct job_memory m;
    job_memory_read(j->pid, &m);
    json_key(w, STR("memory"));
    json_begin_object(w);
    json_key_u64(w, "agent_bytes", m.agent_bytes);
    json_key_u64(w, "agent_limit_bytes", m.agent_limit_bytes);
    json_key_u64(w, "aggregator_bytes", m.aggregator_bytes);
    json_key_u64(w, "aggregator_limit_bytes", m.aggregator_limit_bytes);
    json_end_object(w);
}

static void write_nodes(struct json_writer *w, const json_t *nodes)
{
    json_key(w, STR("nodes"));
    json_begin_array(w);
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);
        json_begin_object(w);
        json_key_string(w, "host", str_of(data_request_text(n, "host")));
        json_key_string(w, "state", str_of(data_request_text(n, "state")));
        json_key_i64(w, "points", data_request_number(n, "points"));
        json_key_i64(w, "series", data_request_number(n, "series"));
        json_key_i64(w, "dropped", data_request_number(n, "dropped"));
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_parameters_json(struct json_writer *w, const struct parameters *p)
{
    const char *key;
    json_t *value;
    json_key(w, STR("config"));
    json_begin_object(w);
    json_object_foreach(p->values, key, value)
    {
        json_key_string(w, key, str_of(json_string_value(value)));
    }
    json_end_object(w);
}

static void write_json(struct buf *out, const struct shown *all, size_t count)
{
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct shown *shown = &all[i];
        const struct job *j = &shown->job;
        const struct summary s = shown->s;
        char token_file[FOLDER_PATH_MAX + 16], tunnel[TUNNEL_LINE_MAX];
        bool known = shown->known;
        tunnel[0] = 0;
        if (shown->on_first_node)
            tunnel_line(j, tunnel);
        snprintf(token_file, sizeof token_file, "%s/token", j->folder);
        json_begin_object(&w);
        json_key_string(&w, "job", str_of(j->id));
        json_key_string(&w, "command", str_of(j->command ? j->command : ""));
        json_key_string(&w, "host", str_of(j->host));
        json_key_i64(&w, "pid", j->pid);
        json_key_i64(&w, "level", j->level);
        json_key_i64(&w, "start_ns", j->start_ns);
        json_key_string(&w, "folder", str_of(j->folder));
        json_key_string(&w, "url", str_of(j->url));
        json_key_string(&w, "url_with_token", str_of(shown->url));
        json_key_string(&w, "token_file", str_of(j->folder[0] ? token_file : ""));
        json_key_string(&w, "tunnel", str_of(tunnel));
        write_memory_json(&w, j);
        write_nodes(&w, shown->nodes);
        json_key_string(&w, "missing", buf_str(&shown->missing));
        write_parameters_json(&w, &shown->parameters);
        if (known) {
            json_key_u64(&w, "points", s.points);
            json_key_u64(&w, "series", s.series);
            json_key_u64(&w, "dropped", s.dropped);
            json_key(&w, STR("cut_off"));
            json_begin_array(&w);
            for (size_t k = 0; k < s.cut_off_count; k++) {
                json_begin_object(&w);
                json_key_string(&w, "host", str_of(s.cut_off[k].host));
                json_key_string(&w, "source", str_of(s.cut_off[k].source));
                json_key_i64(&w, "since_ns", s.cut_off[k].since_ns);
                json_end_object(&w);
            }
            json_end_array(&w);
            json_key(&w, STR("failing"));
            json_begin_array(&w);
            for (size_t k = 0; k < s.failing_count; k++) {
                json_begin_object(&w);
                json_key_string(&w, "host", str_of(s.failing[k].host));
                json_key_string(&w, "script", str_of(s.failing[k].script));
                if (s.failing[k].gpu[0])
                    json_key_string(&w, "gpu", str_of(s.failing[k].gpu));
                json_key_i64(&w, "since_ns", s.failing[k].since_ns);
                json_key_string(&w, "text", str_of(s.failing[k].text));
                json_end_object(&w);
            }
            json_end_array(&w);
        }
        json_end_object(&w);
    }
    json_end_array(&w);
    buf_add_char(out, '\n');
}

static void add_count(struct columns *table, bool known, uint64_t count)
{
    if (known)
        columns_cell(table, "%llu", (unsigned long long)count);
    else
        columns_cell(table, "%s", "");
}

// Writes "JOB: lr=0.01 batch=32" below the table, cut to the width of a line.
static void write_parameters(struct buf *out, const char *job, const struct parameters *p)
{
    struct buf line = {0};
    size_t shown = 0;
    const char *key;
    json_t *value;
    json_object_foreach(p->values, key, value)
    {
        if (line.size > PARAMETERS_SHOWN_BYTES)
            break;
        buf_printf(&line, " %s=%s", key, json_string_value(value));
        shown++;
    }
    if (shown) {
        printable_printf(out, "%s:%s", job, buf_cstr(&line));
        if (shown < json_object_size(p->values))
            buf_printf(out, " and %zu more parameters", json_object_size(p->values) - shown);
        buf_add_char(out, '\n');
    }
    buf_free(&line);
}

// Writes the reasons for gaps in the metrics of a running job below the table.
static void write_cut_off(struct buf *out, const char *job, const struct summary *s)
{
    for (size_t i = 0; i < s->cut_off_count; i++) {
        char since[32];
        quantity_time(s->cut_off[i].since_ns, since);
        printable_printf(out, "%s: %s on %s has not answered since %s and is left out", job,
                         s->cut_off[i].source, s->cut_off[i].host, since);
        buf_add_char(out, '\n');
    }
}

static void write_failing(struct buf *out, const char *job, const struct summary *s)
{
    for (size_t i = 0; i < s->failing_count; i++) {
        char since[32];
        quantity_time(s->failing[i].since_ns, since);
        printable_printf(out, "%s: %s (on %s, since %s)", job, s->failing[i].text,
                         s->failing[i].host, since);
        buf_add_char(out, '\n');
    }
}

static void write_share(struct buf *out, const char *name, uint64_t bytes, uint64_t limit_bytes)
{
    static const double MIB = 1 << 20;
    if (bytes && limit_bytes)
        buf_printf(out, "%s %.1f of %.0f MiB, ", name, (double)bytes / MIB,
                   (double)limit_bytes / MIB);
}

// Writes the memory of the job's agent and aggregator on this machine.
static void write_memory(struct buf *out, const struct job *j)
{
    struct job_memory m;
    job_memory_read(j->pid, &m);
    if (!m.agent_bytes && !m.aggregator_bytes)
        return;
    buf_printf(out, "%s: memory: ", j->id);
    write_share(out, "agent", m.agent_bytes, m.agent_limit_bytes);
    write_share(out, "aggregator", m.aggregator_bytes, m.aggregator_limit_bytes);
    buf_add_str(out, STR("beside the mapped recording\n"));
}

// If the browser is probably on another machine, writes the ssh command for a tunnel below the
// table.
static void write_tunnel(struct buf *out, const struct job *j)
{
    char line[TUNNEL_LINE_MAX];
    if (tunnel_needed() && tunnel_line(j, line))
        buf_printf(out, "%s: to open it on another machine, there first: %s\n", j->id, line);
}

static void write_table(struct buf *out, const struct shown *all, size_t count)
{
    static const char *const titles[] = {"job",     "since",   "nodes", "points",
                                         "dropped", "command", "URL"};
    struct columns table = {0};
    struct buf notes = {0};
    columns_titles(&table, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < count; i++) {
        const struct shown *j = &all[i];
        char since[32] = "";
        if (j->job.start_ns)
            quantity_time(j->job.start_ns, since);
        if (!j->elsewhere)
            write_memory(&notes, &j->job);
        write_parameters(&notes, j->job.id, &j->parameters);
        write_cut_off(&notes, j->job.id, &j->s);
        write_failing(&notes, j->job.id, &j->s);
        if (j->on_first_node)
            write_tunnel(&notes, &j->job);
        columns_cell(&table, "%s", j->job.id);
        columns_cell(&table, "%s", since);
        add_count(&table, j->nodes != NULL, json_array_size(j->nodes));
        add_count(&table, j->known, j->s.points);
        add_count(&table, j->known, j->s.dropped);
        columns_cut_text(&table, str_of(j->job.command), COLUMNS_COMMAND_MAX);
        columns_cell(&table, "%s", j->url);
    }
    columns_write(&table, out);
    buf_printf(out, "%s", buf_cstr(&notes));
    buf_free(&notes);
    columns_free(&table);
}

// Finds all jobs: those on this machine, and the one of SONDE_URL.
static int find_jobs(const struct options *o, struct shown **out, size_t *count, struct error *e)
{
    char base[FOLDER_PATH_MAX];
    struct job *jobs = NULL;
    size_t n = 0;
    int status = folder_base_path(options_text(o, OPT_RUN_DIR), base, e);
    if (status == 0)
        status = job_list(base, false, &jobs, &n, e);
    if (status < 0)
        return status;
    struct shown *all = calloc(n + 1, sizeof *all);
    for (size_t i = 0; all && i < n; i++) {
        char *socket = forwarded_socket(jobs[i].folder);
        all[i].on_first_node = !socket;
        free(socket);
        all[i].job = jobs[i];
        jobs[i] = (struct job){0};
    }
    job_list_free(jobs, n);
    *out = all;
    *count = n;
    return all ? add_elsewhere(all, count, e) : error_set(e, -ENOMEM, "out of memory");
}

static void free_jobs(struct shown *all, size_t count)
{
    for (size_t i = 0; all && i < count; i++) {
        job_free(&all[i].job);
        json_decref(all[i].nodes);
        buf_free(&all[i].missing);
        parameters_free(&all[i].parameters);
    }
    free(all);
}

int command_status(const struct options *o)
{
    struct error e;
    struct shown *all = NULL;
    size_t count = 0;
    struct data_request a = {.o = o};
    struct buf out = {0};
    int code = EXIT_OK;
    log_setup(LOG_ERROR, "sonde");
    if (find_jobs(o, &all, &count, &e) < 0) {
        free_jobs(all, count);
        return command_failed(EXIT_FAILED, &e);
    }
    for (size_t i = 0; i < count; i++) {
        struct shown *j = &all[i];
        full_url(j);
        bool answers = j->job.url[0] && ask_job(&a, j, &e);
        if (!answers && j->elsewhere)
            code = command_failed(EXIT_FAILED, &e);
        else if (!answers) {
            j->known = summary_add_folder(j->job.folder, &j->s, NULL) == 0;
            parameters_add_folder(&j->parameters, j->job.folder);
        } else if (j->elsewhere)
            describe_elsewhere(j);
    }
    if (options_flag(o, OPT_JSON))
        write_json(&out, all, count);
    else if (count == 0)
        buf_printf(&out, "no job runs here; start one with sonde run\n");
    else
        write_table(&out, all, count);
    free_jobs(all, count);
    int printed = command_print(&out);
    return data_request_close(&a, code ? code : printed);
}
