#include "cli/runs_table.h"

#include "base/clock.h"
#include "cli/annotations.h"
#include "cli/nearest.h"
#include "cli/quantity.h"
#include "client/client.h"
#include "launch/run_metadata.h"
#include "launch/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const char *const runs_columns[] = {"job",       "name",   "state",  "started", "nodes", "duration",
                                    "exit",      "size",   "level",  "command", "host",  "note",
                                    "directory", "commit", "branch", "tags",    "keep",  NULL};

// ---------------------------------------------------------------- fields of run.json

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
        quantity_time((int64_t)(number * NS_PER_S), text);
    } else {
        snprintf(text, sizeof text, "%.10g", number);
    }
    f.text = arena_str(&t->memory, str_of(text));
    return f;
}

// Makes a field of a value. Numeric texts such as "8" and "0.1" are compared as numbers, and shown
// unchanged.
static struct field value_field(struct runs_table *t, const json_t *value)
{
    struct field f = text_field(t, json_string_value(value));
    if (json_is_integer(value))
        return number_field(t, (double)json_integer_value(value), FIELD_PLAIN);
    f.is_number = f.known && str_to_double(f.text, &f.number) && isfinite(f.number);
    return f;
}

// Returns NULL if there is no such member.
static const json_t *member(const json_t *object, struct str key)
{
    char name[PARAMETERS_KEY_MAX + 1]; // longer than any key
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
        struct field f = value_field(t, value);
        if (f.known)
            buf_printf(&text, "%s%s=%.*s", text.size ? " " : "", key, STR_ARG(f.text));
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
    // Recordings of older versions do not contain the number of nodes, but each node has a file.
    return row->state == RUNS_ENDED && row->size.files
               ? number_field(t, (double)row->size.files, FIELD_PLAIN)
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
        return number_field(t, (double)row->size.bytes, FIELD_BYTES);
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

// Splits METRIC.STATISTIC. Returns false if the column does not have this form.
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

// Notes "job17: n2.sonde (unreadable: …)", once.
static void note_left_out(struct runs_table *t, const struct runs_row *row, const char *names)
{
    struct buf line = {0};
    if (!names || !*names)
        return;
    buf_printf(&line, "%s: %s\n", row->job.id, names);
    if (str_find(buf_str(&t->left_out), buf_str(&line)) < 0)
        buf_add_str(&t->left_out, buf_str(&line));
    buf_free(&line);
}

static struct sonde_client *client_of(struct runs_table *t, struct runs_row *row)
{
    const char *where = row->state == RUNS_RUNNING && row->job.url[0] ? row->job.id : row->path;
    if (row->client || row->unreadable)
        return row->client;
    struct error why;
    row->unreadable = client_open(&where, 1, NULL, NULL, &row->client, &why) < 0;
    json_t *nodes = NULL;
    char *missing = NULL;
    if (row->unreadable && row->state == RUNS_RUNNING)
        return NULL; // the run begins or ends at this moment
    if (row->unreadable)
        note_left_out(t, row, why.text);
    else if (client_list(row->client, "/sonde/v1/nodes", "nodes", &nodes, &missing, NULL) == 0)
        note_left_out(t, row, missing);
    json_decref(nodes);
    free(missing);
    return row->client;
}

// Combines all points of all series with one function. Returns false if there are none.
static bool all_points(struct runs_table *t, struct runs_row *row, const char *metric,
                       const char *aggregator, const char *downsample, double *out)
{
    const struct sonde_query q = {.metric = metric,
                                  .aggregator = aggregator,
                                  .downsample = downsample,
                                  .start = "first",
                                  .end = "last"};
    struct sonde_result *result;
    if (sonde_client_query(row->client, &q, &result, NULL) < 0)
        return false;
    note_left_out(t, row, sonde_result_missing(result));
    const struct sonde_series *series =
        sonde_result_count(result) ? sonde_result_series(result, 0) : NULL;
    bool found = series && series->count > 0;
    if (found)
        *out = series->values[0];
    sonde_result_free(result);
    return found;
}

// Finds the latest point of any series.
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

static struct field compute(struct runs_table *t, struct runs_row *row, struct str metric,
                            const char *statistic)
{
    struct sonde_client *client = client_of(t, row);
    char *name = arena_strdup(&t->memory, metric);
    double value, points;
    bool known = false;
    if (!client || !name)
        return (struct field){0};
    if (strcmp(statistic, "min") == 0)
        known = all_points(t, row, name, "min", "0all-min", &value);
    else if (strcmp(statistic, "max") == 0)
        known = all_points(t, row, name, "max", "0all-max", &value);
    else if (strcmp(statistic, "sum") == 0)
        known = all_points(t, row, name, "sum", "0all-sum", &value);
    else if (strcmp(statistic, "count") == 0)
        known = all_points(t, row, name, "sum", "0all-count", &value);
    else if (strcmp(statistic, "last") == 0)
        known = last_point(client, name, &value);
    else if (all_points(t, row, name, "sum", "0all-sum", &value) &&
             all_points(t, row, name, "sum", "0all-count", &points))
        known = points > 0, value = known ? value / points : 0;
    return known && isfinite(value) ? number_field(t, value, FIELD_PLAIN) : (struct field){0};
}

struct field_known {
    struct str column;
    struct field field;
};

// Computes the statistic, or finds its earlier result.
static struct field statistic_field(struct runs_table *t, struct runs_row *row, struct str column,
                                    struct str metric, const char *statistic)
{
    for (size_t i = 0; i < row->known_count; i++)
        if (str_eq(row->known[i].column, column))
            return row->known[i].field;
    struct field f = compute(t, row, metric, statistic);
    if (arena_room(&t->memory, &row->known, &row->known_capacity, row->known_count,
                   row->known_count + 1, sizeof *row->known))
        row->known[row->known_count++] = (struct field_known){column, f};
    return f;
}

static void take_parameters(const struct store_event *event, void *user)
{
    parameters_add_event(user, event);
}

// Returns the parameters in run.json. If the run has none yet, returns those that are recorded so
// far.
static const json_t *parameters_of(struct runs_table *t, struct runs_row *row)
{
    const json_t *kept = json_object_get(row->job.about, "config");
    if (kept || row->state == RUNS_ENDED)
        return kept;
    struct sonde_client *client = row->parameters_requested ? NULL : client_of(t, row);
    row->parameters_requested = true;
    if (client)
        annotations_each(client, PARAMETERS_TAG, take_parameters, &row->parameters, NULL, NULL);
    return row->parameters.values;
}

static struct field parameter_field(struct runs_table *t, struct runs_row *row, struct str key)
{
    const json_t *value = member(parameters_of(t, row), key);
    return value ? value_field(t, value) : (struct field){0};
}

struct field runs_field(struct runs_table *t, struct runs_row *row, struct str column)
{
    struct str metric;
    const char *statistic;
    if (is_built_in(column))
        return built_in(t, row, column);
    if (str_starts(column, STR("config.")))
        return parameter_field(t, row, str_slice(column, strlen("config."), column.size));
    const json_t *tag = member(json_object_get(row->job.about, "tags"), column);
    if (tag)
        return value_field(t, tag);
    struct field parameter = parameter_field(t, row, column);
    if (parameter.known)
        return parameter;
    const json_t *variable = member(json_object_get(row->job.about, "environment"), column);
    if (variable)
        return value_field(t, variable);
    return is_statistic(column, &metric, &statistic)
               ? statistic_field(t, row, column, metric, statistic)
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

int runs_check_column(struct runs_table *t, struct str column, struct error *e)
{
    if (is_column(t, column))
        return 0;
    struct nearest near = nearest_to(column);
    const char *key;
    json_t *value;
    for (size_t i = 0; runs_columns[i]; i++)
        nearest_offer(&near, str_of(runs_columns[i]));
    for (size_t i = 0; i < t->count; i++) {
        json_object_foreach(json_object_get(t->rows[i].job.about, "tags"), key, value)
            nearest_offer(&near, str_of(key));
        json_object_foreach((json_t *)parameters_of(t, &t->rows[i]), key, value)
            nearest_offer(&near, str_of(key));
    }
    error_set(e, -ENOENT,
              "no run has '%.*s': it is not a column, tag, parameter or statistic of a metric "
              "(loss.last)",
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
        int rc = runs_check_column(t, str_slice(column, sign, column.size), e);
        if (rc)
            return rc;
    }
    return 0;
}
