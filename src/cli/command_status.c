#include "cli/columns.h"
#include "cli/commands.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "http/tokens.h"
#include "launch/job.h"
#include "launch/job_memory.h"
#include "launch/summary.h"
#include "launch/tunnel.h"

#include <stdio.h>
#include <time.h>

enum { COMMAND_SHOWN_MAX = 60 };

// The URL with the view token; empty when there is none.
static void full_url(const struct job *j, char *out, size_t size)
{
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], view[TOKEN_TEXT_MAX];
    snprintf(path, sizeof path, "%s/token", j->folder);
    out[0] = 0;
    if (!j->url[0] || token_read(path, false, control, NULL) != 0)
        return;
    token_of_role(str_of(control), ROLE_VIEW, view);
    snprintf(out, size, "%s/?token=%s", j->url, view);
}

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

static void write_json(struct buf *out, const struct job *jobs, size_t count)
{
    struct json_writer w = json_to(out);
    json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct job *j = &jobs[i];
        struct summary s = {0};
        char url[JOB_URL_MAX + 300], token_file[FOLDER_PATH_MAX + 16];
        char tunnel[TUNNEL_LINE_MAX];
        bool known = summary_add_folder(j->folder, &s, NULL) == 0;
        full_url(j, url, sizeof url);
        tunnel_line(j, tunnel);
        snprintf(token_file, sizeof token_file, "%s/token", j->folder);
        json_begin_object(&w);
        json_key_string(&w, "job", str_of(j->id));
        json_key_string(&w, "command", str_of(j->command));
        json_key_string(&w, "host", str_of(j->host));
        json_key_i64(&w, "pid", j->pid);
        json_key_i64(&w, "level", j->level);
        json_key_i64(&w, "start_ns", j->start_ns);
        json_key_string(&w, "folder", str_of(j->folder));
        json_key_string(&w, "url", str_of(j->url));
        json_key_string(&w, "url_with_token", str_of(url));
        json_key_string(&w, "token_file", str_of(token_file));
        json_key_string(&w, "tunnel", str_of(tunnel));
        write_memory_json(&w, j);
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

static void time_text(int64_t t_ns, char out[32])
{
    time_t t = (time_t)(t_ns / NS_PER_S);
    struct tm local;
    localtime_r(&t, &local);
    strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local);
}

// Under the table: a gap in a running job's metrics, explained.
static void write_cut_off(struct buf *out, const char *job, const struct summary *s)
{
    for (size_t i = 0; i < s->cut_off_count; i++) {
        char since[32];
        time_text(s->cut_off[i].since_ns, since);
        printable_printf(out, "%s: %s on %s has not answered since %s and is left out", job, s->cut_off[i].source,
                         s->cut_off[i].host, since);
        buf_add_char(out, '\n');
    }
}

static void write_failing(struct buf *out, const char *job, const struct summary *s)
{
    for (size_t i = 0; i < s->failing_count; i++) {
        char since[32];
        time_text(s->failing[i].since_ns, since);
        printable_printf(out, "%s: %s (on %s, since %s)", job, s->failing[i].text, s->failing[i].host, since);
        buf_add_char(out, '\n');
    }
}

static void write_share(struct buf *out, const char *name, uint64_t bytes, uint64_t limit_bytes)
{
    static const double MIB = 1 << 20;
    if (bytes && limit_bytes)
        buf_printf(out, "%s %.1f of %.0f MiB, ", name, (double)bytes / MIB, (double)limit_bytes / MIB);
}

// The memory of the job's agent and aggregator on this machine.
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

// Under the table, where the browser is likely to be elsewhere.
static void write_tunnel(struct buf *out, const struct job *j)
{
    char line[TUNNEL_LINE_MAX];
    if (tunnel_needed() && tunnel_line(j, line))
        buf_printf(out, "%s: to open it on another machine, there first: %s\n", j->id, line);
}

static void write_table(struct buf *out, const struct job *jobs, size_t count)
{
    static const char *const titles[] = {"job", "since", "points", "dropped", "command", "URL"};
    struct columns table = {0};
    struct buf notes = {0};
    columns_titles(&table, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < count; i++) {
        const struct job *j = &jobs[i];
        struct summary s = {0};
        char url[JOB_URL_MAX + 300], since[32];
        bool known = summary_add_folder(j->folder, &s, NULL) == 0;
        full_url(j, url, sizeof url);
        time_text(j->start_ns, since);
        write_memory(&notes, j);
        write_cut_off(&notes, j->id, &s);
        write_failing(&notes, j->id, &s);
        write_tunnel(&notes, j);
        columns_cell(&table, "%s", j->id);
        columns_cell(&table, "%s", since);
        add_count(&table, known, s.points);
        add_count(&table, known, s.dropped);
        if (strlen(j->command) > COMMAND_SHOWN_MAX) {
            int shown = COMMAND_SHOWN_MAX;
            while (shown > 0 && ((unsigned char)j->command[shown] & 0xc0) == 0x80)
                shown--; // not in the middle of a character
            columns_cell(&table, "%.*s…", shown, j->command);
        } else {
            columns_cell(&table, "%s", j->command);
        }
        columns_cell(&table, "%s", url);
    }
    columns_write(&table, out);
    buf_printf(out, "%s", buf_cstr(&notes));
    buf_free(&notes);
    columns_free(&table);
}

int command_status(const struct options *o)
{
    struct error e;
    char base[FOLDER_PATH_MAX];
    struct job *jobs;
    size_t count;
    int status = folder_base_path(options_text(o, OPT_RUN_DIR), base, &e);
    if (status == 0)
        status = job_list(base, false, &jobs, &count, &e);
    if (status < 0)
        return command_failed(EXIT_FAILED, &e);
    struct buf out = {0};
    if (options_flag(o, OPT_JSON))
        write_json(&out, jobs, count);
    else if (count == 0)
        buf_printf(&out, "no job runs here; start one with sonde run\n");
    else
        write_table(&out, jobs, count);
    job_list_free(jobs, count);
    return command_print(&out);
}
