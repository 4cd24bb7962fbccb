// import_dragon.c - lists the databases, sorts them by host, and makes one recording from each
// host's databases. It reads a database twice: the first pass checks every row, so that a damaged
// database adds nothing.
#include "store/import_dragon.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/map.h"
#include "base/storable_name.h"
#include "store/import_recording.h"
#include "store/inspect.h"
#include "store/no_recording.h"
#include "store/sqlite_library.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOST_MAX = 64, STAMP_SIZE = 16, FRACTION_DIGITS = 9 };
static const int64_t seconds_max = INT64_C(9000000000);

// A database, or one host's part of a database with several hosts.
struct dump {
    const char *path;
    struct str host;
    bool merged; // the rows have a column table_name, whose value must be `table`
    struct str table;
};

struct importer {
    const struct import_dragon_options *o;
    const struct sqlite_library *q;
    struct arena arena; // holds paths and hosts
    struct dump *dumps;
    size_t count, capacity;
    size_t left_out, reasons;
    struct str only;  // the host in the first file's name, if --host differs from it
    struct error why; // reason of the last failure

    // These belong to the current host.
    struct store *store;
    struct arena keys;
    struct map series; // "metric NUL tags" → id + 1; 0: the series cannot be stored
    struct buf text;
    struct import_dragon_recording made;
};

// ---------------------------------------------------------------- databases to import

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.size; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    return s.size > 0;
}

// Removes "_20261123_014055" at the end.
static struct str without_stamp(struct str name)
{
    struct str stamp =
        str_slice(name, name.size < STAMP_SIZE ? name.size : name.size - STAMP_SIZE, name.size);
    bool is = stamp.size && stamp.data[0] == '_' && stamp.data[9] == '_' &&
              is_digits(str_slice(stamp, 1, 9)) && is_digits(str_slice(stamp, 10, STAMP_SIZE));
    return is ? str_slice(name, 0, name.size - STAMP_SIZE) : name;
}

// Finds the host in a file's name. A user's name may contain '_', a host's name does not.
static struct str host_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str name = str_of(slash ? slash + 1 : path);
    if (str_ends(name, STR(".db")))
        name.size -= strlen(".db");
    if (!str_starts(name, STR("ts_")))
        return name;
    name = without_stamp(name);
    while (str_find_char(name, '_') >= 0)
        str_cut(&name, '_');
    return name;
}

// Counts `count` failed databases. If there is only one reason, it becomes the reason of the
// command.
static void leave_out(struct importer *im, size_t count, const struct error *e)
{
    if (im->left_out)
        log_warning("left out: %s", im->why.text);
    im->left_out += count;
    im->reasons++;
    im->why = *e;
}

static int add_dump(struct importer *im, const char *path, struct str host, struct str table,
                    bool merged, struct error *e)
{
    host = str_cut(&host, '.');
    if (im->o->host) {
        struct str given = str_of(im->o->host);
        if (!im->only.data)
            im->only = arena_str(&im->arena, host);
        if (!str_eq(im->only, host))
            return error_set(e, -EINVAL,
                             "cannot import %s: --host %s names one host, but the databases are of "
                             "%.*s and %.*s",
                             path, im->o->host, STR_ARG(im->only), STR_ARG(host));
        host = given;
    }
    if (!storable_name_is(host, HOST_MAX) || str_find_char(host, '/') >= 0)
        return error_set(e, -EINVAL,
                         "cannot import %s: '%.*s' is not the name of a host; give --host", path,
                         STR_ARG(host));
    if (!array_room(&im->dumps, &im->capacity, im->count + 1, sizeof *im->dumps))
        return error_set(e, -ENOMEM, "out of memory");
    struct dump *d = &im->dumps[im->count];
    *d = (struct dump){arena_strdup(&im->arena, str_of(path)), arena_str(&im->arena, host), merged,
                       arena_str(&im->arena, table)};
    if (!d->path || !d->host.data || !d->table.data)
        return error_set(e, -ENOMEM, "out of memory");
    im->count++;
    return 0;
}

static struct str column(const struct importer *im, struct sqlite3_stmt *s, int index)
{
    return sqlite_column_text(im->q, s, index);
}

static int fail(const struct importer *im, struct sqlite3 *db, const char *path, struct error *e)
{
    return error_set(e, -EBADMSG, "cannot import %s: %s", path, im->q->errmsg(db));
}

// Runs `sql`, which has no parameters. *any: it has returned a row. Returns 0 or a negative errno.
static int ask(const struct importer *im, struct sqlite3 *db, const char *path, const char *sql,
               bool *any, struct error *e)
{
    struct sqlite3_stmt *s = NULL;
    int rc = im->q->prepare_v2(db, sql, -1, &s, NULL);
    rc = rc == SQLITE_OK ? im->q->step(s) : rc;
    *any = rc == SQLITE_ROW;
    int status = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(im, db, path, e);
    im->q->finalize(s);
    return status;
}

static int add_hosts(struct importer *im, struct sqlite3 *db, const char *path, struct error *e)
{
    struct sqlite3_stmt *s = NULL;
    size_t before = im->count;
    int rc = im->q->prepare_v2(db, "SELECT DISTINCT table_name FROM datapoints", -1, &s, NULL),
        status = 0;
    while (rc == SQLITE_OK && !status && (rc = im->q->step(s)) == SQLITE_ROW) {
        struct str table = column(im, s, 0);
        status = add_dump(im, path, table, table, true, e);
        rc = SQLITE_OK;
    }
    if (!status && rc != SQLITE_DONE)
        status = fail(im, db, path, e);
    im->q->finalize(s);
    if (!status && im->count == before)
        status = error_set(e, -ENODATA, "cannot import %s: its table datapoints is empty", path);
    if (status)
        im->count = before;
    return status;
}

// Reads the tables of the database before the recording of any host begins.
static int list_database(struct importer *im, const char *path, struct error *e)
{
    bool is_table = false, has_rows = false, merged = false;
    struct sqlite3 *db = sqlite_open(im->q, path, e);
    if (!db)
        return e->code;
    int rc = sqlite_has_table(im->q, db, "datapoints", &is_table) == SQLITE_OK
                 ? 0
                 : fail(im, db, path, e);
    if (!rc && !is_table)
        rc = error_set(
            e, -EINVAL,
            "cannot import %s: no database of Dragon's telemetry: it has no table datapoints",
            path);
    if (!rc)
        rc = ask(im, db, path, "SELECT metric, timestamp, value, tags FROM datapoints LIMIT 1",
                 &has_rows, e);
    if (!rc && !has_rows)
        rc = error_set(e, -ENODATA, "cannot import %s: its table datapoints is empty", path);
    if (!rc)
        rc = ask(im, db, path,
                 "SELECT 1 FROM pragma_table_info('datapoints') WHERE name='table_name'", &merged,
                 e);
    if (!rc)
        rc = merged ? add_hosts(im, db, path, e)
                    : add_dump(im, path, host_of_file(path), STR(""), false, e);
    im->q->close(db);
    return rc;
}

static int is_dump(const struct dirent *entry)
{
    return no_recording_but_dump(str_of(entry->d_name));
}

// Returns true if the path is a folder, and lists its databases.
static bool list_folder(struct importer *im, const char *folder, size_t *found)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_dump, alphasort);
    for (int i = 0; i < n; i++) {
        struct error e;
        char *path = arena_printf(&im->arena, "%s/%s", folder, entries[i]->d_name);
        if (!path || list_database(im, path, &e))
            leave_out(im, 1, path ? &e : (error_set(&e, -ENOMEM, "out of memory"), &e));
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    *found = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

static void list_all(struct importer *im)
{
    for (size_t i = 0; i < im->o->count; i++) {
        const char *path = im->o->paths[i];
        struct error e;
        size_t found;
        if (!list_folder(im, path, &found)) {
            if (list_database(im, path, &e))
                leave_out(im, 1, &e);
            continue;
        }
        // the dump_dir's folder of databases
        char *below = arena_printf(&im->arena, "%s/telemetry", path);
        if (!found && below)
            list_folder(im, below, &found);
        if (!found) {
            error_set(
                &e, -ENOENT,
                "cannot import %s: no database of Dragon's telemetry (ts_USER_HOST_DATE.db) in it",
                path);
            leave_out(im, 1, &e);
        }
    }
}

// ---------------------------------------------------------------- rows

// Parses a number of seconds, with or without a fraction.
static bool parse_time(struct str text, int64_t *t_ns)
{
    struct str fraction = text, whole = str_cut(&fraction, '.');
    int64_t seconds, ns = 0;
    if (!str_to_i64(whole, &seconds) || seconds <= 0 || seconds > seconds_max)
        return false;
    if (fraction.data && !is_digits(fraction))
        return false;
    for (size_t i = 0; i < FRACTION_DIGITS; i++)
        ns = ns * 10 + (i < fraction.size ? fraction.data[i] - '0' : 0);
    *t_ns = seconds * NS_PER_S + ns;
    return true;
}

// Writes the value of a tag as sonde.Telemetry.add_data() does.
static bool tag_text(const json_t *value, struct buf *out)
{
    char number[NUMBER_TEXT_MAX];
    if (json_is_string(value))
        buf_add(out, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        buf_add(out, number, number_format_i64(number, json_integer_value(value)));
    else if (json_is_real(value))
        buf_add(out, number, number_format(number, json_real_value(value)));
    else if (json_is_boolean(value))
        buf_add_str(out, json_is_true(value) ? STR("True") : STR("False"));
    return !json_is_object(value) && !json_is_array(value);
}

// Reads the labels of a row's tags. Returns -EINVAL for invalid tags. *number gets a key whose
// value is a whole number.
static int read_tags(struct arena *a, const json_t *tags, struct store_label *labels, size_t *count,
                     struct str *number)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value)
    {
        struct buf name = {0}, text = {0};
        storable_name_add(&name, str_of(key), STORE_KEY_MAX);
        bool good =
            tag_text(value, &text) && !name.failed && !text.failed && *count < STORE_LABELS_MAX;
        if (good && !str_eq(buf_str(&name), STR("host"))) // the node's label `host` replaces it
            labels[(*count)++] =
                (struct store_label){arena_str(a, buf_str(&name)), arena_str(a, buf_str(&text))};
        if (good && json_is_integer(value))
            *number = str_of(key);
        buf_free(&name);
        buf_free(&text);
        if (!good)
            return -EINVAL;
    }
    return 0;
}

static int define(struct importer *im, struct str host, struct str metric, const json_t *tags,
                  uint32_t *id)
{
    struct arena scratch = {0};
    struct buf name = {0}, help = {0};
    struct store_label labels[STORE_LABELS_MAX] = {{STR("host"), host}};
    size_t count = 1;
    struct str number = {0};
    struct store_metric m = {.level = 1};
    uint32_t metric_id;
    int rc = read_tags(&scratch, tags, labels, &count, &number);
    if (!im->o->own_metric(metric, &m)) {
        storable_name_add(&name, metric, STORE_NAME_MAX);
        m.name = buf_str(&name);
        if (number.size) // AnalysisClient.get_data() then returns a whole number
            buf_printf(&help, "Values of the tag %.*s are whole numbers.", STR_ARG(number));
        m.help = buf_str(&help);
    }
    if (!rc)
        rc = name.failed || help.failed ? -ENOMEM : store_define_metric(im->store, &m, &metric_id);
    if (!rc)
        rc = store_define_series(im->store, metric_id, labels, count, id);
    arena_free(&scratch);
    buf_free(&name);
    buf_free(&help);
    return rc;
}

// Finds the series of a metric and tags. Returns 1 if the row cannot be stored.
static int find_series(struct importer *im, struct str host, struct str metric, struct str tags,
                       uint32_t *id)
{
    bool added;
    im->text.size = 0;
    buf_add_str(&im->text, metric);
    buf_add_char(&im->text, 0);
    buf_add_str(&im->text, tags);
    struct str key = buf_str(&im->text);
    uint64_t *known = im->text.failed ? NULL : map_get(&im->series, key);
    if (!known) {
        key = im->text.failed ? (struct str){0} : arena_str(&im->keys, key);
        known = key.data ? map_add(&im->series, key, &added) : NULL;
        if (!known)
            return -ENOMEM;
        json_t *json =
            tags.size ? json_loadb(tags.data, tags.size, JSON_DECODE_ANY, NULL) : json_null();
        int rc = json && (json_is_null(json) || json_is_object(json))
                     ? define(im, host, metric, json, id)
                     : -EINVAL;
        json_decref(json);
        if (rc == -ENOMEM || rc == -ENOSPC)
            return rc;
        *known = rc ? 0 : (uint64_t)*id + 1;
        im->made.series += rc == 0;
    }
    *id = (uint32_t)(*known - 1);
    return *known ? 0 : 1;
}

static int append(struct importer *im, const struct dump *d, struct sqlite3_stmt *s)
{
    int64_t t_ns;
    uint32_t id;
    int type = im->q->column_type(s, 2);
    im->made.rows++;
    if (type == SQLITE_NULL) // Python's None
        return 0;
    double value = im->q->column_double(s, 2);
    struct str metric = column(im, s, 0);
    if (!metric.size || !parse_time(column(im, s, 1), &t_ns) ||
        (type != SQLITE_INTEGER && type != SQLITE_FLOAT)) {
        im->made.bad++;
        return 0;
    }
    int rc = find_series(im, d->host, metric, column(im, s, 3), &id);
    if (rc > 0)
        im->made.bad++;
    else if (!rc)
        rc = store_append(im->store, id, t_ns, value);
    im->made.values += rc == 0;
    return rc < 0 ? rc : 0;
}

// Reads every row of the host in the database. With `appending`, it also appends the rows.
static int read_rows(struct importer *im, const struct dump *d, bool appending, struct error *e)
{
    struct sqlite3 *db = sqlite_open(im->q, d->path, e);
    struct sqlite3_stmt *s = NULL;
    if (!db)
        return e->code;
    int status = 0,
        rc = im->q->prepare_v2(
            db,
            d->merged ? "SELECT metric, timestamp, value, tags FROM datapoints "
                        "WHERE table_name IS ? ORDER BY rowid"
                      : "SELECT metric, timestamp, value, tags FROM datapoints ORDER BY rowid",
            -1, &s, NULL);
    if (rc == SQLITE_OK && d->merged)
        rc = im->q->bind_text(s, 1, d->table.data, (int)d->table.size, NULL);
    while (rc == SQLITE_OK && !status && (rc = im->q->step(s)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (appending)
            status = append(im, d, s);
        else
            for (int i = 0; i < 4; i++)
                column(im, s, i);
    }
    if (status)
        error_set(e, status, "cannot import %s: %s", d->path, strerror(-status));
    else if (rc != SQLITE_DONE)
        status = fail(im, db, d->path, e);
    im->q->finalize(s);
    im->q->close(db);
    return status;
}

// ---------------------------------------------------------------- recordings

static int close_recording(struct importer *im, struct error *e)
{
    struct import_dragon_recording *r = &im->made;
    struct store_inspection in;
    int rc = store_close(im->store, e);
    if (!rc)
        rc = store_inspect(r->path, &in, e);
    if (rc)
        return rc;
    r->repeats = r->values - in.values;
    r->values = in.values;
    r->file_bytes = in.file_bytes;
    im->o->made(r, im->o->user);
    return 0;
}

static int open_recording(struct importer *im, struct str host, struct error *e)
{
    int n = snprintf(im->made.path, sizeof im->made.path, "%s/%.*s.sonde", im->o->folder,
                     STR_ARG(host));
    if (n < 0 || n >= (int)sizeof im->made.path)
        return error_set(e, -ENAMETOOLONG, "the path of the recording is too long");
    return import_recording_create(im->made.path, host, STR(""), &im->store, e);
}

// Imports the databases of one host.
static int import_host(struct importer *im, const struct dump *dumps, size_t count, struct error *e)
{
    int rc = 0;
    im->made = (struct import_dragon_recording){0};
    for (size_t i = 0; i < count && !rc; i++) {
        struct error why;
        if (read_rows(im, &dumps[i], false, &why)) {
            leave_out(im, 1, &why);
            continue;
        }
        if (!im->store)
            rc = open_recording(im, dumps[i].host, e);
        if (!rc)
            rc = read_rows(im, &dumps[i], true, e);
        im->made.files++;
    }
    struct store *s = im->store;
    if (s && !rc && !im->made.values)
        rc = error_set(e, -ENODATA,
                       "cannot import %s: none of its %llu rows has a time and a number",
                       dumps[0].path, (unsigned long long)im->made.rows);
    if (s && rc) {
        store_abandon(s);
        unlink(im->made.path);
    } else if (s) {
        rc = close_recording(im, e);
    }
    im->store = NULL;
    map_free(&im->series);
    im->series = (struct map){0};
    arena_free(&im->keys);
    return rc;
}

// Compares by host, then by name. So the value of the newest dump is appended last, and wins at
// equal times.
static int by_host_and_name(const void *a, const void *b)
{
    const struct dump *x = a, *y = b;
    int order = str_compare(x->host, y->host);
    return order ? order : strcmp(x->path, y->path);
}

static void import_all(struct importer *im)
{
    if (im->count)
        qsort(im->dumps, im->count, sizeof *im->dumps, by_host_and_name);
    for (size_t first = 0, last; first < im->count; first = last) {
        struct error e;
        for (last = first + 1;
             last < im->count && str_eq(im->dumps[first].host, im->dumps[last].host);)
            last++;
        size_t before = im->left_out;
        if (import_host(im, im->dumps + first, last - first, &e))
            leave_out(im, last - first - (im->left_out - before), &e);
    }
}

int import_dragon(const struct import_dragon_options *o, struct error *e)
{
    struct importer im = {.o = o, .q = sqlite_library_open(e)};
    if (!im.q)
        return e->code;
    list_all(&im);
    size_t tried = im.count + im.left_out;
    import_all(&im);
    int rc = 0;
    if (im.reasons == 1) {
        *e = im.why;
        rc = im.why.code;
    } else if (im.reasons) {
        log_warning("left out: %s", im.why.text);
        rc = error_set(e, -EBADMSG, "cannot import %zu of %zu databases", im.left_out, tried);
    }
    free(im.dumps);
    arena_free(&im.arena);
    buf_free(&im.text);
    return rc;
}
