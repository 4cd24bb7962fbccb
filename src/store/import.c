// import.c - makes a recording from a table in text. A wide CSV becomes one set of all columns, one
// row per line. A file of dask-metrics becomes one series per column and GPU, and one span for each
// stretch of time with the same job and dag.
#include "store/import.h"

#include "base/arena.h"
#include "base/behind.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/map.h"
#include "base/storable_name.h"
#include "store/csv_lines.h"
#include "store/direct.h"
#include "store/import_recording.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct table {
    struct csv_lines csv;
    uint32_t columns; // number of columns, with the time stamps
    uint32_t *sets;   // sets of at most STORE_SET_SERIES_MAX columns each
    uint32_t set_count;
    uint32_t *set_columns;
    // Rows that are not written yet: for each set, and each row, the time and the set's values.
    // Another thread writes `written.rows` meanwhile.
    uint8_t **rows;
    uint32_t room, waiting, rows_of_block;
    double *values; // values of the current line
    struct behind behind;
    struct written {
        struct table *table;
        struct store *store;
        uint8_t **rows;
        uint32_t count;
    } written;
};

enum { WAITING_VALUES_MAX = 1 << 21 };

static struct str clean_name(struct str name, char out[STORE_NAME_MAX])
{
    // leaves room for a number
    size_t n = name.size > STORE_NAME_MAX - 8 ? STORE_NAME_MAX - 8 : name.size;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        bool fits = letter || (c >= '0' && c <= '9') || c >= 0x80 || (c && strchr("_./:-", c));
        out[i] = (char)(fits ? c : '_');
    }
    if (!n)
        out[n++] = '_';
    return (struct str){out, n};
}

static bool has_key(const struct store_label *labels, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(labels[i].key, key))
            return true;
    return false;
}

// Reads a name as `sonde export --format wide-csv` writes it, METRIC{KEY=VALUE,…}. Returns the
// number of labels, and shortens *name to the metric. Returns 0 for any other name.
static size_t labels_of(struct str *name, struct store_label labels[STORE_LABELS_MAX])
{
    ptrdiff_t brace = str_find_char(*name, '{');
    struct str metric = brace > 0 ? str_slice(*name, 0, (size_t)brace) : (struct str){0};
    size_t count = 0;
    if (!storable_name_is(metric, STORE_NAME_MAX) || !str_ends(*name, STR("}")))
        return 0;
    struct str rest = str_slice(*name, (size_t)brace + 1, name->size - 1);
    while (rest.size) {
        struct str value = str_cut(&rest, ','), key = str_cut(&value, '=');
        if (count == STORE_LABELS_MAX || !value.size || value.size > STORE_VALUE_MAX ||
            !storable_name_is(key, STORE_KEY_MAX) || has_key(labels, count, key))
            return 0;
        labels[count++] = (struct store_label){key, value};
    }
    *name = count ? metric : *name;
    return count;
}

static int define(struct store *s, struct str name, struct str host, struct map *taken,
                  struct arena *names, uint32_t *id)
{
    char text[STORE_NAME_MAX + 1];
    struct store_label labels[STORE_LABELS_MAX];
    struct str whole = name;
    size_t label_count = labels_of(&name, labels);
    struct str tags = str_slice(whole, name.size, whole.size), clean = clean_name(name, text);
    size_t plain = clean.size;
    if (!has_key(labels, label_count, STR("host")) && label_count < STORE_LABELS_MAX)
        labels[label_count++] = (struct store_label){STR("host"), host};
    for (unsigned number = 2;; number++) {
        bool added = false;
        const char *kept = arena_printf(names, "%.*s%.*s", STR_ARG(clean), STR_ARG(tags));
        if (!kept || !map_add(taken, str_of(kept), &added))
            return -ENOMEM;
        if (added)
            break;
        clean.size = plain + (size_t)snprintf(text + plain, sizeof text - plain, "_%u", number);
    }
    struct store_metric m = {.name = clean};
    uint32_t metric;
    int rc = store_define_metric(s, &m, &metric);
    return rc ? rc : store_define_series(s, metric, labels, label_count, id);
}

static int define_all(struct store *s, struct table *t, struct str host)
{
    uint32_t *ids = malloc((t->columns + 1) * sizeof *ids);
    struct map taken = {0};
    struct arena names = {0};
    struct str rest = t->csv.line;
    csv_lines_cell(&t->csv, &rest);
    int rc = ids ? 0 : -ENOMEM;
    uint32_t n = 0;
    while (!rc && n + 1 < t->columns) {
        struct str cell = csv_lines_cell(&t->csv, &rest);
        rc = define(s, cell, host, &taken, &names, &ids[n]);
        n++;
    }
    for (uint32_t at = 0; !rc && at < n; at += STORE_SET_SERIES_MAX) {
        uint32_t count = n - at < STORE_SET_SERIES_MAX ? n - at : STORE_SET_SERIES_MAX;
        t->set_columns[t->set_count] = count;
        rc = store_define_set(s, ids + at, count, &t->sets[t->set_count++]);
    }
    map_free(&taken);
    arena_free(&names);
    free(ids);
    return rc;
}

static int make_room(const struct store *s, struct table *t)
{
    t->room = DIRECT_BLOCKS * DIRECT_ROWS_MAX;
    if (t->room > WAITING_VALUES_MAX / t->columns)
        t->room = WAITING_VALUES_MAX / t->columns;
    for (uint32_t i = 0; i < t->set_count; i++) {
        size_t bytes = (t->set_columns[i] + 1) * sizeof(double) * t->room;
        t->rows[i] = malloc(bytes);
        t->written.rows[i] = malloc(bytes);
        if (!t->rows[i] || !t->written.rows[i])
            return -ENOMEM;
    }
    t->rows_of_block = direct_rows_of_block(s, t->sets[0]);
    return 0;
}
_Static_assert((int)WAITING_VALUES_MAX / ((int)IMPORT_COLUMNS_MAX + 1) > 0, "room for a row");

static int write_rows(void *user)
{
    const struct written *w = user;
    const struct table *t = w->table;
    int rc = 0;
    for (uint32_t i = 0; i < t->set_count && !rc; i++)
        rc = direct_rows(w->store, t->sets[i], w->rows[i], w->count);
    return rc;
}

// Lets the other thread write the waiting rows, after those that it writes now.
static int append_waiting(struct store *s, struct table *t)
{
    int rc = behind_wait(&t->behind);
    if (rc || !t->waiting)
        return rc;
    uint8_t **rows = t->written.rows;
    t->written = (struct written){t, s, t->rows, t->waiting};
    t->rows = rows;
    t->waiting = 0;
    t->rows_of_block = direct_rows_of_block(s, t->sets[0]);
    behind_begin(&t->behind, write_rows, &t->written);
    return 0;
}

static int append_line(struct store *s, struct table *t, int64_t when)
{
    for (uint32_t i = 0; i < t->set_count; i++) {
        size_t row_bytes = (t->set_columns[i] + 1) * sizeof(double);
        uint8_t *row = t->rows[i] + t->waiting * row_bytes;
        memcpy(row, &when, sizeof when);
        memcpy(row + sizeof when, t->values + (size_t)i * STORE_SET_SERIES_MAX,
               row_bytes - sizeof when);
    }
    uint32_t rows = DIRECT_BLOCKS * t->rows_of_block, most = rows < t->room ? rows : t->room;
    return ++t->waiting >= most ? append_waiting(s, t) : 0;
}

// Takes the next cell from *rest. Returns true if it has a number or is empty (missing).
static bool take_value(struct csv_lines *csv, struct str *rest, double *out)
{
    const char *end = rest->data + rest->size, *at = decimal_scan(rest->data, end, out);
    if (at && (at == end || *at == ',')) { // the usual kind of cell
        *rest = at == end ? (struct str){0}
                          : str_slice(*rest, (size_t)(at - rest->data) + 1, rest->size);
        return true;
    }
    struct str cell = csv_lines_cell(csv, rest);
    if (cell.size && str_to_double(cell, out))
        return true;
    *out = store_missing();
    return !cell.size;
}

// Reads the line's values. Returns false if it does not have as many cells as the first line.
static bool take_values(struct table *t, struct str rest, uint64_t *missing, uint64_t *bad)
{
    uint32_t n = 0;
    *missing = *bad = 0;
    for (; rest.data; n++) {
        if (n + 1 >= t->columns)
            return false;
        *bad += !take_value(&t->csv, &rest, &t->values[n]);
        *missing += store_is_missing(t->values[n]);
    }
    return n + 1 == t->columns;
}

static int import_rows(struct store *s, struct table *t, struct store_import_stats *stats)
{
    int rc = make_room(s, t);
    while (!rc && (rc = csv_lines_next(&t->csv)) > 0) {
        struct str rest = t->csv.line;
        uint64_t missing, bad;
        int64_t when;
        rc = 0;
        if (!rest.size)
            continue;
        if (!str_to_i64(csv_lines_cell(&t->csv, &rest), &when) ||
            !take_values(t, rest, &missing, &bad)) {
            stats->bad_rows++;
            continue;
        }
        stats->bad_cells += bad;
        stats->rows++;
        stats->values += t->columns - 1 - missing;
        rc = append_line(s, t, when);
    }
    if (!rc)
        rc = append_waiting(s, t);
    int last = behind_end(&t->behind);
    return rc ? rc : last;
}

static int import_header(struct table *t, struct error *e)
{
    int rc = csv_lines_next(&t->csv);
    if (rc <= 0)
        return error_set(e, rc ? rc : -EINVAL, "no line of column names");
    struct str rest = t->csv.line;
    while (rest.data && t->columns <= IMPORT_COLUMNS_MAX) {
        csv_lines_cell(&t->csv, &rest);
        t->columns++;
    }
    return 0;
}

// Finishes a recording. `rc` is the result of filling it. Refuses a table if most of its cells are
// unreadable.
static int finish(struct store *s, const struct table *t, int rc,
                  const struct store_import_stats *stats, const char *rows_are, struct error *e)
{
    if (rc)
        error_set(e, rc, "line %llu: %s", (unsigned long long)t->csv.line_number, strerror(-rc));
    else if (!stats->rows)
        rc = error_set(e, -EINVAL, "no row %s", rows_are);
    else if (stats->bad_cells > stats->values || stats->bad_rows > stats->rows)
        rc = error_set(e, -EINVAL,
                       "%llu of %llu cells are no numbers, and %llu of %llu rows cannot be read; "
                       "is it of another "
                       "--format?",
                       (unsigned long long)stats->bad_cells,
                       (unsigned long long)(stats->bad_cells + stats->values),
                       (unsigned long long)stats->bad_rows,
                       (unsigned long long)(stats->bad_rows + stats->rows));
    if (rc) {
        store_abandon(s);
        return rc;
    }
    return store_close(s, e);
}

static int import_table(struct table *t, const char *out_path, struct str host,
                        struct store_import_stats *stats, struct error *e)
{
    int rc = import_header(t, e);
    if (rc)
        return rc;
    if (t->columns < 2 || t->columns > IMPORT_COLUMNS_MAX)
        return error_set(e, -EINVAL, "%u columns: there have to be two (time, a value) to %d",
                         t->columns, IMPORT_COLUMNS_MAX);
    t->sets = calloc(t->columns / STORE_SET_SERIES_MAX + 1, sizeof *t->sets);
    t->set_columns = calloc(t->columns / STORE_SET_SERIES_MAX + 1, sizeof *t->set_columns);
    t->rows = calloc(t->columns / STORE_SET_SERIES_MAX + 1, sizeof *t->rows);
    t->written.rows = calloc(t->columns / STORE_SET_SERIES_MAX + 1, sizeof *t->rows);
    t->behind = BEHIND_IDLE;
    t->values = calloc(t->columns, sizeof *t->values);
    if (!t->sets || !t->set_columns || !t->rows || !t->written.rows || !t->values)
        return error_set(e, -ENOMEM, "no memory");
    struct store *s;
    rc = import_recording_create(out_path, host, STR(""), &s, e);
    if (rc)
        return rc;
    rc = define_all(s, t, host);
    if (!rc)
        rc = import_rows(s, t, stats);
    stats->columns = t->columns - 1;
    return finish(s, t, rc, stats,
                  "begins with a time in nanoseconds and has as many cells as there are names", e);
}

// ---------------------------------------------------------------- dask-metrics

enum { DASK_DEVICES_MAX = 64, DASK_NUMBER_MAX = 24 };

// The role of a column. Only DASK_METRIC columns become metrics.
enum dask_column { DASK_METRIC, DASK_TASKS, DASK_JOB, DASK_DAG, DASK_TIME, DASK_ROLES };

static const struct {
    const char *name;
    enum dask_column role;
} dask_columns[] = {
    {"job", DASK_JOB}, {"dag", DASK_DAG}, {"timestamp", DASK_TIME}, {"tasks", DASK_TASKS}};

struct dask {
    struct store *store;
    struct table *table;
    struct str host, worker;
    enum dask_column *roles; // role of each column
    uint32_t *metrics;
    // series of each column and GPU: index + 1; 0: not defined
    uint32_t (*series)[DASK_DEVICES_MAX];
    int64_t base_ns;  // the epoch time of time stamp 0
    int64_t since_ns; // start of the current stretch
    char job[DASK_NUMBER_MAX], dag[DASK_NUMBER_MAX];
    uint64_t stretches;
};

static int dask_series(struct dask *d, uint32_t column, uint32_t device, uint32_t *id)
{
    uint32_t *known = &d->series[column][device];
    char text[DASK_NUMBER_MAX];
    struct store_label labels[3] = {{STR("host"), d->host}};
    size_t count = d->host.size ? 1 : 0;
    if (!*known) {
        snprintf(text, sizeof text, "%u", device);
        if (d->roles[column] == DASK_METRIC)
            labels[count++] = (struct store_label){STR("gpu"), str_of(text)};
        if (d->worker.size)
            labels[count++] = (struct store_label){STR("worker"), d->worker};
        int rc = store_define_series(d->store, d->metrics[column], labels, count, id);
        if (rc)
            return rc;
        *known = *id + 1;
    }
    *id = *known - 1;
    return 0;
}

// Counts the keys in a cell of tasks. Commas outside of tuples and quotes separate them.
static double dask_keys(struct str cell)
{
    unsigned depth = 0, count = cell.size > 0;
    char quote = 0;
    for (size_t i = 0; i < cell.size; i++) {
        char c = cell.data[i];
        if (quote && c == '\\')
            i++;
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if ((c == '\'' || c == '"') && (i == 0 || strchr(" (,b", cell.data[i - 1])))
            quote = c;
        else if (c == '(')
            depth++;
        else if (c == ')' && depth)
            depth--;
        else
            count += c == ',' && !depth;
    }
    return count;
}

static int dask_cell(struct dask *d, uint32_t column, int64_t when, struct str cell,
                     struct store_import_stats *stats)
{
    struct str rest = cell;
    double v = d->roles[column] == DASK_TASKS ? dask_keys(cell) : 0;
    for (uint32_t device = 0;
         device < DASK_DEVICES_MAX && (rest.data || d->roles[column] == DASK_TASKS); device++) {
        uint32_t id;
        if (d->roles[column] != DASK_TASKS) {
            struct str one = str_trim(str_cut(&rest, ','));
            if (!one.size)
                continue;
            if (!str_to_double(one, &v)) {
                stats->bad_cells++;
                continue;
            }
        }
        int rc = dask_series(d, column, device, &id);
        if (!rc)
            rc = store_append(d->store, id, when, v);
        if (rc)
            return rc;
        stats->values++;
        if (d->roles[column] == DASK_TASKS)
            return 0;
    }
    return 0;
}

static int dask_stretch(struct dask *d, int64_t end_ns)
{
    struct store_label labels[] = {{STR("job"), str_of(d->job)},
                                   {STR("dag"), str_of(d->dag)},
                                   {STR("host"), d->host},
                                   {STR("worker"), d->worker}};
    struct store_event span = {.kind = STORE_SPAN,
                               .start_ns = d->since_ns,
                               .end_ns = end_ns,
                               .text = STR("dask_stretch"),
                               .id = ++d->stretches,
                               .labels = labels,
                               .label_count = d->worker.size ? 4 : 3};
    return d->job[0] && d->dag[0] ? store_append_event(d->store, &span) : 0;
}

static bool dask_number(struct str cell, char out[DASK_NUMBER_MAX])
{
    int64_t number;
    out[0] = 0;
    if (cell.size && !str_to_i64(cell, &number))
        return false;
    return !cell.size || snprintf(out, DASK_NUMBER_MAX, "%lld", (long long)number) > 0;
}

// Reads the job, the dag and the time of the line. Returns false if they are invalid.
static bool dask_place(struct dask *d, char job[DASK_NUMBER_MAX], char dag[DASK_NUMBER_MAX],
                       double *seconds)
{
    struct str rest = d->table->csv.line;
    bool good = true;
    uint32_t n = 0;
    for (; good && rest.data; n++) {
        struct str cell = csv_lines_cell(&d->table->csv, &rest);
        enum dask_column role = n < d->table->columns ? d->roles[n] : DASK_METRIC;
        if (role == DASK_JOB || role == DASK_DAG)
            good = dask_number(cell, role == DASK_JOB ? job : dag);
        else if (role == DASK_TIME)
            good = str_to_double(cell, seconds) && *seconds >= 0 && *seconds < 1e9;
    }
    return good && n == d->table->columns;
}

static int dask_rows(struct dask *d, struct store_import_stats *stats)
{
    char job[DASK_NUMBER_MAX], dag[DASK_NUMBER_MAX];
    int64_t when = d->base_ns;
    int rc;
    while ((rc = csv_lines_next(&d->table->csv)) > 0) {
        double seconds;
        if (!d->table->csv.line.size)
            continue;
        if (!dask_place(d, job, dag, &seconds)) {
            stats->bad_rows++;
            continue;
        }
        when = d->base_ns + (int64_t)(seconds * 1e9);
        if (strcmp(job, d->job) != 0 || strcmp(dag, d->dag) != 0) {
            rc = dask_stretch(d, when);
            d->since_ns = when;
            memcpy(d->job, job, sizeof job);
            memcpy(d->dag, dag, sizeof dag);
        }
        struct str rest = d->table->csv.line;
        for (uint32_t n = 0; rc >= 0 && rest.data; n++) {
            struct str cell = csv_lines_cell(&d->table->csv, &rest);
            if (d->roles[n] == DASK_METRIC || d->roles[n] == DASK_TASKS)
                rc = dask_cell(d, n, when, cell, stats);
        }
        if (rc < 0)
            return rc;
        stats->rows++;
    }
    return rc ? rc : dask_stretch(d, when + 1);
}

// Finds the last time stamp of the table, in seconds. Reads the whole table.
static int dask_last(struct dask *d, double *last)
{
    char job[DASK_NUMBER_MAX], dag[DASK_NUMBER_MAX];
    double seconds;
    int rc;
    *last = 0;
    while ((rc = csv_lines_next(&d->table->csv)) > 0)
        if (dask_place(d, job, dag, &seconds) && seconds > *last)
            *last = seconds;
    return rc;
}

static int dask_header(struct dask *d, struct error *e)
{
    struct table *t = d->table;
    struct str rest = t->csv.line;
    bool there[DASK_ROLES] = {false};
    for (uint32_t n = 0; n < t->columns; n++) {
        struct str name = csv_lines_cell(&t->csv, &rest);
        for (size_t i = 0; i < sizeof dask_columns / sizeof *dask_columns; i++)
            if (str_eq(name, str_of(dask_columns[i].name)))
                d->roles[n] = dask_columns[i].role;
        there[d->roles[n]] = true;
    }
    if (there[DASK_JOB] && there[DASK_DAG] && there[DASK_TIME])
        return 0;
    return error_set(e, -EINVAL,
                     "no file of a worker: it needs the columns job, dag and timestamp");
}

static int dask_metrics(struct dask *d)
{
    struct str rest = d->table->csv.line;
    int rc = 0;
    for (uint32_t n = 0; !rc && n < d->table->columns; n++) {
        char text[STORE_NAME_MAX + 1] = "dask_", clean[STORE_NAME_MAX];
        struct str name = clean_name(csv_lines_cell(&d->table->csv, &rest), clean);
        size_t room = sizeof text - sizeof "dask_", size = name.size < room ? name.size : room;
        for (size_t i = 0; i < size; i++)
            text[sizeof "dask_" - 1 + i] = (char)(name.data[i] == '-' ? '_' : name.data[i]);
        text[sizeof "dask_" - 1 + size] = 0;
        struct store_metric m = {.name = str_of(text)};
        if (d->roles[n] == DASK_METRIC || d->roles[n] == DASK_TASKS)
            rc = store_define_metric(d->store, &m, &d->metrics[n]);
    }
    return rc;
}

// Imports a dask-metrics table. The table's last row is as old as the file.
static int import_dask(struct table *t, int64_t written_ns, const char *out_path, struct str host,
                       struct str worker, struct store_import_stats *stats, struct error *e)
{
    int rc = import_header(t, e);
    if (!rc && t->columns > IMPORT_COLUMNS_MAX)
        rc = error_set(e, -EINVAL, "more than %d columns", IMPORT_COLUMNS_MAX);
    if (rc)
        return rc;
    struct dask d = {.table = t, .host = host, .worker = worker};
    d.roles = calloc(t->columns, sizeof *d.roles);
    d.metrics = calloc(t->columns, sizeof *d.metrics);
    d.series = calloc(t->columns, sizeof *d.series);
    double last;
    rc = d.roles && d.metrics && d.series ? dask_header(&d, e) : error_set(e, -ENOMEM, "no memory");
    if (!rc && (rc = dask_last(&d, &last)) < 0)
        error_set(e, rc, "line %llu: %s", (unsigned long long)t->csv.line_number, strerror(-rc));
    if (!rc && (csv_lines_rewind(&t->csv) || csv_lines_next(&t->csv) <= 0))
        rc = error_set(e, -EIO, "it cannot be read a second time");
    if (!rc)
        rc = import_recording_create(out_path, host, STR(""), &d.store, e);
    if (!rc) {
        t->csv.line_number = 1;
        d.base_ns = written_ns - (int64_t)(last * 1e9);
        rc = dask_metrics(&d);
        if (!rc)
            rc = dask_rows(&d, stats);
        for (uint32_t n = 0; n < t->columns; n++)
            for (uint32_t device = 0; device < DASK_DEVICES_MAX; device++)
                stats->columns += d.series[n][device] != 0;
        rc = finish(d.store, t, rc, stats,
                    "has a job, a dag and a time, and as many cells as there are names", e);
    }
    free(d.roles);
    free(d.metrics);
    free(d.series);
    return rc;
}

// Returns N for worker_N.csv, and an empty text for other names.
static struct str worker_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *line = strrchr(name, '_');
    size_t digits = line ? strspn(line + 1, "0123456789") : 0;
    return digits && strchr(".", line[1 + digits]) ? (struct str){line + 1, digits}
                                                   : (struct str){0};
}

int store_import(enum store_import_format format, const char *csv_path, const char *out_path,
                 struct str host, struct store_import_stats *stats, struct error *e)
{
    struct store_import_stats own;
    stats = stats ? stats : &own;
    *stats = (struct store_import_stats){0};
    struct stat st;
    if (!lstat(out_path, &st))
        return error_set(e, -EEXIST, "%s already exists; remove it or choose another name",
                         out_path);
    struct table t = {0};
    int rc = csv_lines_open(&t.csv, csv_path, e);
    if (rc)
        return rc;
    struct stat source = {0};
    stat(csv_path, &source);
    int64_t written_ns = (int64_t)source.st_mtim.tv_sec * NS_PER_S + source.st_mtim.tv_nsec;
    rc = format == IMPORT_WIDE_CSV
             ? import_table(&t, out_path, host, stats, e)
             : import_dask(&t, written_ns, out_path, host, worker_of(csv_path), stats, e);
    if (rc) {
        unlink(out_path);
        error_prefix(e, "cannot import %s", csv_path);
    } else if (!stat(out_path, &st)) {
        stats->file_bytes = (uint64_t)st.st_size;
    }
    csv_lines_close(&t.csv);
    for (uint32_t i = 0; i < t.set_count; i++) {
        free(t.rows[i]);
        free(t.written.rows[i]);
    }
    free(t.rows);
    free(t.written.rows);
    free(t.set_columns);
    free(t.sets);
    free(t.values);
    return rc;
}
