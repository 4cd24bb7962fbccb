#include "cli/runs_table.h"

#include "base/array.h"
#include "base/clock.h"
#include "cli/local_zone.h"
#include "cli/nearest.h"
#include "cli/quantity.h"
#include "client/client.h"
#include "launch/about.h"
#include "launch/runs.h"
#include "launch/summary.h"
#include "query/query.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

const char *const runs_columns[] = {"job",       "name",   "state",  "started", "nodes", "duration",
                                    "exit",      "size",   "level",  "command", "host",  "note",
                                    "directory", "commit", "branch", "tags",    "keep",  NULL};

// ---------------------------------------------------------------- rows

// What the recordings in a folder take on the disk.
static void measure(struct runs_row *row)
{
    DIR *folder = opendir(row->path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        struct stat info;
        if (folder_is_recording(entry->d_name) &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0) {
            row->files++;
            row->bytes += (uint64_t)info.st_blocks * 512;
        }
    }
    if (folder)
        closedir(folder);
}

// Takes over the job. False: no memory.
static bool add_row(struct runs_table *t, size_t *capacity, struct job *job, const char *path,
                    enum runs_state state)
{
    bool room = array_room(&t->rows, capacity, t->count + 1, sizeof *t->rows);
    if (room) {
        struct runs_row *row = &t->rows[t->count++];
        *row = (struct runs_row){.job = *job, .state = state};
        snprintf(row->path, sizeof row->path, "%s", path);
        measure(row);
        *job = (struct job){0};
    }
    job_free(job);
    return room;
}

// The jobs in the run folders: those that run, or those whose launcher was killed.
static int add_here(struct runs_table *t, size_t *capacity, const char *base, bool dead,
                    struct error *e)
{
    struct job *jobs;
    size_t count;
    bool room = true;
    int rc = job_list(base, dead, &jobs, &count, e);
    for (size_t i = 0; !rc && i < count && room; i++) {
        char path[FOLDER_PATH_MAX];
        memcpy(path, jobs[i].folder, sizeof path);
        room = add_row(t, capacity, &jobs[i], path, dead ? RUNS_KILLED : RUNS_RUNNING);
    }
    if (!rc)
        job_list_free(jobs, count);
    return room ? rc : error_set(e, -ENOMEM, "out of memory");
}

static int add_kept(struct runs_table *t, size_t *capacity, const char *runs, struct error *e)
{
    struct runs_entry *list;
    size_t count;
    int rc = runs_list(runs, &list, &count, e);
    for (size_t i = 0; !rc && i < count; i++) {
        char path[FOLDER_PATH_MAX + 16];
        struct job job;
        snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, list[i].path);
        if (job_read(path, &job, NULL) < 0)
            job_free(&job);
        else if (!add_row(t, capacity, &job, list[i].path, RUNS_ENDED))
            rc = error_set(e, -ENOMEM, "out of memory");
    }
    free(list);
    return rc;
}

static int newest_first(const void *a, const void *b)
{
    const struct runs_row *x = a, *y = b;
    int later = (x->job.start_ns < y->job.start_ns) - (x->job.start_ns > y->job.start_ns);
    return later ? later : strcmp(x->job.id, y->job.id);
}

int runs_table_read(const struct target_options *o, struct runs_table *out, struct error *e)
{
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX];
    const char *run_dir = o->run_dir ? o->run_dir : getenv("SONDE_RUN_DIR");
    const char *kept = o->runs ? o->runs : getenv("SONDE_RUNS");
    size_t capacity = 0;
    *out = (struct runs_table){0};
    int rc = folder_base_path(run_dir && *run_dir ? run_dir : NULL, base, e);
    if (!rc)
        rc = runs_path(kept && *kept ? kept : NULL, runs, e);
    if (!rc)
        rc = add_here(out, &capacity, base, false, e);
    if (!rc)
        rc = add_here(out, &capacity, base, true, e);
    if (!rc)
        rc = add_kept(out, &capacity, runs, e);
    if (rc)
        runs_table_free(out);
    else if (out->count)
        qsort(out->rows, out->count, sizeof *out->rows, newest_first);
    return rc;
}

static void free_row(struct runs_row *row)
{
    sonde_client_close(row->client);
    job_free(&row->job);
}

void runs_table_free(struct runs_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free_row(&t->rows[i]);
    free(t->rows);
    arena_free(&t->memory);
    *t = (struct runs_table){0};
}

// Keeps the rows that are marked.
static void keep_rows(struct runs_table *t, const bool *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (wanted[i])
            t->rows[kept++] = t->rows[i];
        else
            free_row(&t->rows[i]);
    }
    t->count = kept;
}

// ---------------------------------------------------------------- fields

static struct field text_field(struct runs_table *t, const char *text)
{
    return text && *text
               ? (struct field){.known = true, .text = arena_str(&t->memory, str_of(text))}
               : (struct field){0};
}

static struct field number_field(struct runs_table *t, double number, enum field_unit unit)
{
    struct field f = {.known = true, .is_number = true, .unit = unit, .number = number};
    char text[64];
    if (unit == FIELD_SECONDS) {
        quantity_duration((int64_t)(number * NS_PER_S), text);
    } else if (unit == FIELD_BYTES) {
        summary_bytes_text(number, text, sizeof text);
    } else if (unit == FIELD_TIME) {
        time_t whole = (time_t)number;
        struct tm local;
        localtime_r(&whole, &local);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    } else {
        snprintf(text, sizeof text, "%.10g", number);
    }
    f.text = arena_str(&t->memory, str_of(text));
    return f;
}

// "8" and "0.1" are numbers for comparisons, and stay what they are for people.
static struct field value_field(struct runs_table *t, const json_t *value)
{
    struct field f = text_field(t, json_string_value(value));
    if (json_is_integer(value))
        return number_field(t, (double)json_integer_value(value), FIELD_PLAIN);
    f.is_number = f.known && str_to_double(f.text, &f.number) && isfinite(f.number);
    return f;
}

// NULL: there is none.
static const json_t *member(const json_t *object, struct str key)
{
    char name[ABOUT_KEY_MAX + 64];
    if (key.size >= sizeof name)
        return NULL;
    memcpy(name, key.data, key.size);
    name[key.size] = 0;
    return json_object_get(object, name);
}

static struct field tags_field(struct runs_table *t, const json_t *tags)
{
    struct buf text = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value)
    {
        buf_printf(&text, "%s%s=%s", text.size ? " " : "", key, json_string_value(value));
    }
    struct field f = text_field(t, buf_cstr(&text));
    buf_free(&text);
    return f;
}

static struct field duration_field(struct runs_table *t, const struct runs_row *row)
{
    int64_t end_ns = row->state == RUNS_RUNNING ? clock_realtime_ns() : row->job.end_ns;
    return end_ns && row->job.start_ns
               ? number_field(t, (double)(end_ns - row->job.start_ns) / NS_PER_S, FIELD_SECONDS)
               : (struct field){0};
}

static struct field nodes_field(struct runs_table *t, const struct runs_row *row)
{
    const json_t *nodes = json_object_get(row->job.about, "nodes");
    if (nodes)
        return value_field(t, nodes);
    // Recordings of older versions do not say it; each node has a file.
    return row->state == RUNS_ENDED && row->files ? number_field(t, (double)row->files, FIELD_PLAIN)
                                                  : (struct field){0};
}

static struct field built_in(struct runs_table *t, struct runs_row *row, struct str name)
{
    static const char *const states[] = {"running", "killed", "ended"};
    const struct job *j = &row->job;
    const json_t *git = json_object_get(j->about, "git");
    if (str_eq(name, STR("job")))
        return text_field(t, j->id);
    if (str_eq(name, STR("state")))
        return text_field(t, states[row->state]);
    if (str_eq(name, STR("started")))
        return j->start_ns ? number_field(t, (double)j->start_ns / NS_PER_S, FIELD_TIME)
                           : (struct field){0};
    if (str_eq(name, STR("nodes")))
        return nodes_field(t, row);
    if (str_eq(name, STR("duration")))
        return duration_field(t, row);
    if (str_eq(name, STR("exit")))
        return row->state == RUNS_ENDED && j->end_ns ? number_field(t, j->exit_code, FIELD_PLAIN)
                                                     : (struct field){0};
    if (str_eq(name, STR("size")))
        return number_field(t, (double)row->bytes, FIELD_BYTES);
    if (str_eq(name, STR("level")))
        return number_field(t, j->level, FIELD_PLAIN);
    if (str_eq(name, STR("command")))
        return text_field(t, j->command);
    if (str_eq(name, STR("host")))
        return text_field(t, j->host);
    if (str_eq(name, STR("commit")) || str_eq(name, STR("branch")))
        return value_field(t, member(git, name));
    if (str_eq(name, STR("tags")))
        return tags_field(t, json_object_get(j->about, "tags"));
    if (str_eq(name, STR("keep")))
        return text_field(t, j->keep ? "yes" : "no");
    return value_field(t, member(j->about, name)); // name, note, directory
}

static bool is_built_in(struct str name)
{
    for (size_t i = 0; runs_columns[i]; i++)
        if (str_eq(name, str_of(runs_columns[i])))
            return true;
    return false;
}

// ---------------------------------------------------------------- statistics of metrics

static const char *const statistics[] = {"min", "max", "mean", "sum", "count", "last"};
enum { STATISTICS = sizeof statistics / sizeof *statistics };

// METRIC.STATISTIC. False: it is none.
static bool is_statistic(struct str column, struct str *metric, const char **statistic)
{
    for (size_t i = 0; i < STATISTICS; i++) {
        size_t size = strlen(statistics[i]);
        if (column.size > size + 1 && column.data[column.size - size - 1] == '.' &&
            str_ends(column, str_of(statistics[i]))) {
            *metric = str_slice(column, 0, column.size - size - 1);
            *statistic = statistics[i];
            return true;
        }
    }
    return false;
}

static struct sonde_client *client_of(struct runs_row *row)
{
    const char *where = row->state == RUNS_RUNNING && row->job.url[0] ? row->job.id : row->path;
    if (!row->client && !row->unreadable)
        row->unreadable = client_open(&where, 1, NULL, NULL, &row->client, NULL) < 0;
    return row->client;
}

// All points of all series put together by one function. False: there are none.
static bool all_points(struct sonde_client *client, const char *metric, const char *aggregator,
                       const char *downsample, double *out)
{
    const struct sonde_query q = {.metric = metric,
                                  .aggregator = aggregator,
                                  .downsample = downsample,
                                  .start = "first",
                                  .end = "last"};
    struct sonde_result *result;
    if (sonde_client_query(client, &q, &result, NULL) < 0)
        return false;
    const struct sonde_series *series =
        sonde_result_count(result) ? sonde_result_series(result, 0) : NULL;
    bool found = series && series->count > 0;
    if (found)
        *out = series->values[0];
    sonde_result_free(result);
    return found;
}

// The latest point of any series.
static bool last_point(struct sonde_client *client, const char *metric, double *out)
{
    struct sonde_series_info *list;
    size_t count, newest = 0;
    if (sonde_client_list(client, metric, &list, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (list[i].time_ns > list[newest].time_ns)
            newest = i;
    if (count)
        *out = list[newest].value;
    sonde_list_free(list);
    return count > 0;
}

static struct field statistic_field(struct runs_table *t, struct runs_row *row, struct str metric,
                                    const char *statistic)
{
    struct sonde_client *client = client_of(row);
    char *name = arena_strdup(&t->memory, metric);
    double value, points;
    bool known = false;
    if (!client || !name)
        return (struct field){0};
    if (strcmp(statistic, "min") == 0)
        known = all_points(client, name, "min", "0all-min", &value);
    else if (strcmp(statistic, "max") == 0)
        known = all_points(client, name, "max", "0all-max", &value);
    else if (strcmp(statistic, "sum") == 0)
        known = all_points(client, name, "sum", "0all-sum", &value);
    else if (strcmp(statistic, "count") == 0)
        known = all_points(client, name, "sum", "0all-count", &value);
    else if (strcmp(statistic, "last") == 0)
        known = last_point(client, name, &value);
    else if (all_points(client, name, "sum", "0all-sum", &value) &&
             all_points(client, name, "sum", "0all-count", &points))
        known = points > 0, value = known ? value / points : 0;
    return known && isfinite(value) ? number_field(t, value, FIELD_PLAIN) : (struct field){0};
}

struct field runs_field(struct runs_table *t, struct runs_row *row, struct str column)
{
    struct str metric;
    const char *statistic;
    if (is_built_in(column))
        return built_in(t, row, column);
    static const char *const objects[] = {"tags", "environment"};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const json_t *value = member(json_object_get(row->job.about, objects[i]), column);
        if (value)
            return value_field(t, value);
    }
    return is_statistic(column, &metric, &statistic) ? statistic_field(t, row, metric, statistic)
                                                     : (struct field){0};
}

static bool is_column(struct runs_table *t, struct str column)
{
    struct str metric;
    const char *statistic;
    bool has = is_built_in(column) || is_statistic(column, &metric, &statistic) || t->count == 0;
    for (size_t i = 0; i < t->count && !has; i++)
        has = runs_field(t, &t->rows[i], column).known;
    return has;
}

static int unknown_column(struct runs_table *t, struct str column, struct error *e)
{
    struct nearest near = nearest_to(column);
    const char *key;
    json_t *value;
    for (size_t i = 0; runs_columns[i]; i++)
        nearest_offer(&near, str_of(runs_columns[i]));
    for (size_t i = 0; i < t->count; i++) {
        json_object_foreach(json_object_get(t->rows[i].job.about, "tags"), key, value)
            nearest_offer(&near, str_of(key));
    }
    error_set(
        e, -ENOENT,
        "no run has '%.*s': it is no column, no tag, and no statistic of a metric (loss.last)",
        STR_ARG(column));
    if (near.best.data)
        error_set(e, -ENOENT, "no run has '%.*s'; did you mean %.*s?", STR_ARG(column),
                  STR_ARG(near.best));
    return -ENOENT;
}

int runs_check_columns(struct runs_table *t, const char *columns, struct error *e)
{
    for (struct str rest = str_of(columns); rest.data;) {
        struct str column = str_trim(str_cut(&rest, ','));
        bool sign = column.size && strchr("+-", column.data[0]);
        column = str_slice(column, sign, column.size);
        if (!is_column(t, column))
            return unknown_column(t, column, e);
    }
    return 0;
}

// ---------------------------------------------------------------- selecting

int runs_conditions(const char *text, struct runs_condition out[RUNS_CONDITIONS_MAX], size_t *count,
                    struct error *e)
{
    *count = 0;
    for (struct str rest = str_of(text); rest.data;) {
        struct str one = str_trim(str_cut(&rest, ','));
        size_t at = 0;
        while (at < one.size && !strchr("=!<>~", one.data[at]))
            at++;
        bool two = at + 1 < one.size && one.data[at + 1] == '=';
        char first = at < one.size ? one.data[at] : 0;
        if (at == 0 || !first || (first == '!' && !two))
            return error_set(e, -EINVAL,
                             "'%.*s' is no condition: write COLUMN, one of = != < <= > >= ~, and "
                             "VALUE, as in lr<0.01",
                             STR_ARG(one));
        if (*count == RUNS_CONDITIONS_MAX)
            return error_set(e, -EINVAL, "more than %d conditions", RUNS_CONDITIONS_MAX);
        enum runs_operator operator= first == '~' ? RUNS_CONTAINS
        : first == '='                            ? RUNS_EQUAL
        : first == '!'                            ? RUNS_UNEQUAL
        : first == '<'                            ? (two ? RUNS_AT_MOST : RUNS_BELOW)
                                                  : (two ? RUNS_AT_LEAST : RUNS_ABOVE);
        out[(*count)++] =
            (struct runs_condition){str_trim(str_slice(one, 0, at)),
                                    str_trim(str_slice(one, at + 1 + two, one.size)), operator};
    }
    return 0;
}

// A condition's value as its column means it. False: it is no number.
static bool read_value(struct str text, enum field_unit unit, double *out)
{
    char zone[LOCAL_ZONE_MAX];
    int64_t ns;
    if (unit == FIELD_SECONDS)
        return quantity_parse_seconds(text, out);
    if (unit == FIELD_BYTES)
        return quantity_parse_bytes(text, out);
    if (unit == FIELD_TIME &&
        query_parse_time(text, clock_realtime_ns(), local_zone(zone), &ns, NULL) == 0) {
        *out = (double)ns / NS_PER_S;
        return true;
    }
    return unit != FIELD_TIME && str_to_double(text, out);
}

static bool compare(enum runs_operator operator, double order)
{
    switch (operator) {
    case RUNS_EQUAL:
        return order == 0;
    case RUNS_UNEQUAL:
        return order != 0;
    case RUNS_BELOW:
        return order < 0;
    case RUNS_AT_MOST:
        return order <= 0;
    case RUNS_ABOVE:
        return order > 0;
    case RUNS_AT_LEAST:
        return order >= 0;
    case RUNS_CONTAINS:
        break;
    }
    return false;
}

static int holds(struct runs_table *t, struct runs_row *row, const struct runs_condition *c,
                 bool *out, struct error *e)
{
    struct field f = runs_field(t, row, c->column);
    double value;
    *out = false;
    if (!f.known)
        return 0;
    if (c->operator== RUNS_CONTAINS) {
        *out = memmem(f.text.data, f.text.size, c->value.data, c->value.size) != NULL;
        return 0;
    }
    bool number = f.is_number && read_value(c->value, f.unit, &value);
    if (f.is_number && !number && f.unit != FIELD_PLAIN)
        return error_set(e, -EINVAL, "'%.*s' is no %s, which %.*s is compared with",
                         STR_ARG(c->value),
                         f.unit == FIELD_TIME    ? "time (1d-ago, 2026/11/20)"
                         : f.unit == FIELD_BYTES ? "size (2G)"
                                                 : "duration (5m)",
                         STR_ARG(c->column));
    *out = compare(c->operator, number ? (f.number > value) - (f.number < value)
                                       : str_compare(f.text, c->value));
    return 0;
}

int runs_select(struct runs_table *t, const char *conditions, struct error *e)
{
    struct runs_condition all[RUNS_CONDITIONS_MAX];
    size_t count;
    int rc = runs_conditions(conditions, all, &count, e);
    bool *wanted = rc ? NULL : calloc(t->count + 1, sizeof *wanted);
    if (!rc && !wanted)
        rc = error_set(e, -ENOMEM, "out of memory");
    for (size_t c = 0; c < count && !rc; c++)
        if (!is_column(t, all[c].column))
            rc = unknown_column(t, all[c].column, e);
    for (size_t i = 0; i < t->count && !rc; i++) {
        wanted[i] = true;
        for (size_t c = 0; c < count && !rc && wanted[i]; c++)
            rc = holds(t, &t->rows[i], &all[c], &wanted[i], e);
    }
    if (!rc)
        keep_rows(t, wanted);
    free(wanted);
    return rc;
}

static bool has_id(const struct runs_table *t, const char *word)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].job.id, word) == 0)
            return true;
    return false;
}

int runs_pick(struct runs_table *t, char *const *words, size_t count, struct error *e)
{
    bool *wanted = calloc(t->count + 1, sizeof *wanted);
    int rc = wanted ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t w = 0; w < count && !rc; w++) {
        struct nearest near = nearest_to(str_of(words[w]));
        bool found = false, is_id = has_id(t, words[w]);
        for (size_t i = 0; i < t->count; i++) {
            const char *id = t->rows[i].job.id, *name = job_name(&t->rows[i].job);
            bool is =
                is_id ? strcmp(words[w], id) == 0
                      : fnmatch(words[w], id, 0) == 0 || (*name && fnmatch(words[w], name, 0) == 0);
            wanted[i] |= is;
            found |= is;
            nearest_offer(&near, str_of(id));
            if (*name)
                nearest_offer(&near, str_of(name));
        }
        if (!found)
            rc = near.best.data
                     ? error_set(e, -ENOENT, "no run is called %.80s; did you mean %.*s?", words[w],
                                 STR_ARG(near.best))
                     : error_set(e, -ENOENT, "no run is called %.80s; sonde ls lists them",
                                 words[w]);
    }
    if (!rc && count)
        keep_rows(t, wanted);
    free(wanted);
    return rc;
}

// ---------------------------------------------------------------- sorting

struct sorted {
    struct field field;
    struct runs_row row;
    size_t place;
};

static int field_order(const struct field *x, const struct field *y)
{
    if (x->is_number && y->is_number)
        return (x->number > y->number) - (x->number < y->number);
    if (x->is_number != y->is_number)
        return x->is_number ? -1 : 1; // numbers before texts
    return str_compare(x->text, y->text);
}

static int by_field(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->field.known != y->field.known)
        return x->field.known ? -1 : 1;
    int order = x->field.known ? field_order(&x->field, &y->field) : 0;
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int by_field_largest_first(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->field.known != y->field.known)
        return x->field.known ? -1 : 1;
    int order = x->field.known ? field_order(&y->field, &x->field) : 0;
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int sort_by(struct runs_table *t, struct str column, bool largest_first, struct error *e)
{
    struct sorted *rows = calloc(t->count + 1, sizeof *rows);
    if (!rows)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < t->count; i++) {
        rows[i].field = runs_field(t, &t->rows[i], column);
        rows[i].row = t->rows[i];
        rows[i].place = i;
    }
    qsort(rows, t->count, sizeof *rows, largest_first ? by_field_largest_first : by_field);
    for (size_t i = 0; i < t->count; i++)
        t->rows[i] = rows[i].row;
    free(rows);
    return 0;
}

int runs_sort(struct runs_table *t, const char *columns, struct error *e)
{
    // The last column first: sorting is stable.
    struct str rest = str_of(columns);
    int rc = 0;
    while (rest.size && !rc) {
        size_t at = rest.size;
        while (at > 0 && rest.data[at - 1] != ',')
            at--;
        struct str column = str_trim(str_slice(rest, at, rest.size));
        bool largest_first = column.size && column.data[0] == '-';
        column = str_slice(column, largest_first, column.size);
        rc = sort_by(t, column, largest_first, e);
        rest = str_slice(rest, 0, at ? at - 1 : 0);
    }
    return rc;
}
