#include "cli/commands.h"

#include "base/log.h"
#include "collect/collect.h"
#include "import/import.h"
#include "launch/folder.h"
#include "store/import.h"
#include "store/import_dragon.h"

#include <errno.h>
#include <stdio.h>

enum { HOST_MAX = 64 };

// The host from a file's name: the part before the first dot, as in "node-10hz" for
// "node-10hz.csv.gz".
static void host_of(const char *path, char out[HOST_MAX + 1])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = 0;
    for (; name[n] && name[n] != '.' && n < HOST_MAX; n++)
        out[n] = name[n];
    out[n] = 0;
    if (n == 0)
        snprintf(out, HOST_MAX + 1, "imported");
}

static bool own_metric(struct str name, struct store_metric *m)
{
    const struct collect_metric *found = collect_find(name);
    if (found)
        *m = found->metric;
    return found;
}

static void print_recording(const struct import_dragon_recording *r)
{
    if (r->bad)
        log_warning("%s: %llu rows could not be read and are left out", r->path,
                    (unsigned long long)r->bad);
    struct buf out = {0};
    buf_printf(&out, "%s: %llu values in %llu series, %llu rows", r->path,
               (unsigned long long)r->values, (unsigned long long)r->series,
               (unsigned long long)r->rows);
    if (r->repeats)
        buf_printf(&out, " (%llu replaced by later rows of the same time)",
                   (unsigned long long)r->repeats);
    buf_printf(&out, ", %llu bytes\n", (unsigned long long)r->file_bytes);
    command_print(&out);
}

static int import_databases(const struct options *o, const char *folder, struct error *e)
{
    struct import_dragon_options dragon = {.paths = (const char *const *)o->arguments,
                                           .count = (size_t)o->argument_count,
                                           .folder = folder,
                                           .host = options_text(o, OPT_HOST),
                                           .own_metric = own_metric,
                                           .made = print_recording};
    int status = folder_make_all(folder, e);
    return status ? status : import_dragon(&dragon, e);
}

static void print_host(const struct import_hosts_recording *r, void *user)
{
    (void)user;
    struct buf out = {0};
    buf_printf(&out, "%s: %llu values in %llu series, %llu spans and annotations, %llu bytes\n",
               r->path, (unsigned long long)r->values, (unsigned long long)r->series,
               (unsigned long long)r->events, (unsigned long long)r->file_bytes);
    command_print(&out);
}

// All files together: their points and events go to one recording of each host.
static int import_points(const struct options *o, import_fn *read, const char *folder, bool *partly,
                         struct error *e)
{
    char host[HOST_MAX + 1];
    host_of(o->arguments[0], host);
    const char *given = options_text(o, OPT_HOST);
    struct import_hosts_options where = {.folder = folder, .host = str_of(given ? given : host)};
    struct import_hosts *to = NULL;
    int rc = folder_make_all(folder, e);
    if (!rc)
        rc = import_hosts_begin(&where, &to, e);
    for (int i = 0; i < o->argument_count && !rc; i++) {
        struct import_stats stats;
        rc = read(o->arguments[i], to, &stats, e);
        if (!rc && stats.truncated)
            log_warning("%s: the end of the file is missing; what is in front of it is read",
                        o->arguments[i]);
        *partly |= !rc && stats.truncated;
        if (!rc && stats.bad_rows)
            log_warning("%s: %llu rows could not be read and are left out", o->arguments[i],
                        (unsigned long long)stats.bad_rows);
    }
    if (rc) {
        import_hosts_cancel(to);
        return rc;
    }
    return import_hosts_end(to, print_host, NULL, e);
}

// A table with a column for each series, or a file of dask-metrics: a recording of one host.
static int import_table(const struct options *o, enum store_import_format format,
                        const char *folder, struct error *e)
{
    const char *given = options_text(o, OPT_HOST);
    char host[HOST_MAX + 1], path[FOLDER_PATH_MAX];
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else
        host_of(o->arguments[0], host);
    int n = snprintf(path, sizeof path, "%s/%s.sonde", folder, host);
    int status = n < 0 || n >= (int)sizeof path
                     ? error_set(e, -ENAMETOOLONG, "the path of the recording is too long")
                     : folder_make_all(folder, e);
    struct store_import_stats stats = {0};
    if (status == 0)
        status = store_import(format, o->arguments[0], path, str_of(host), &stats, e);
    if (status < 0)
        return status;
    if (stats.bad_rows || stats.bad_cells)
        log_warning("%s: %llu rows and %llu cells could not be read and are left out",
                    o->arguments[0], (unsigned long long)stats.bad_rows,
                    (unsigned long long)stats.bad_cells);
    struct buf out = {0};
    buf_printf(&out, "%s: %llu values in %llu series, %llu rows, %llu bytes (%.3f a value)\n", path,
               (unsigned long long)stats.values, (unsigned long long)stats.columns,
               (unsigned long long)stats.rows, (unsigned long long)stats.file_bytes,
               stats.values ? (double)stats.file_bytes / (double)stats.values : 0);
    return command_print(&out);
}

static const struct {
    const char *name;
    import_fn *rows; // NULL: a reader of its own
} formats[] = {
    [IMPORT_FORMAT_CSV] = {"csv", import_csv},
    [IMPORT_FORMAT_WIDE_CSV] = {"wide-csv", NULL},
    [IMPORT_FORMAT_PARQUET] = {"parquet", import_parquet},
    [IMPORT_FORMAT_INFLUX] = {"influx", import_influx},
    [IMPORT_FORMAT_OPENMETRICS] = {"openmetrics", import_openmetrics},
    [IMPORT_FORMAT_TENSORBOARD] = {"tensorboard", import_tensorboard},
    [IMPORT_FORMAT_SQLITE] = {"sqlite", import_sqlite},
    [IMPORT_FORMAT_DRAGON] = {"dragon-sqlite", NULL},
    [IMPORT_FORMAT_DASK] = {"dask-metrics-csv", NULL},
    [IMPORT_FORMAT_LDMS] = {"ldms-csv", import_ldms},
};

// The format that is named, or else that of the files, which have to have one.
static int choose_format(const struct options *o, enum import_format *out, struct error *e)
{
    const char *name = options_text(o, OPT_FORMAT);
    *out = IMPORT_FORMAT_UNKNOWN;
    for (size_t i = 1; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0)
            *out = (enum import_format)i;
    for (int i = 0; i < o->argument_count && !name; i++) {
        enum import_format found;
        int rc = import_format_of(o->arguments[i], &found, e);
        if (rc)
            return rc;
        found = found == IMPORT_FORMAT_UNKNOWN ? IMPORT_FORMAT_WIDE_CSV : found;
        if (i && found != *out)
            return error_set(e, -EINVAL, "%s is %s, %s is %s: import them one after the other",
                             o->arguments[0], formats[*out].name, o->arguments[i],
                             formats[found].name);
        *out = found;
    }
    return 0;
}

int command_import(const struct options *o)
{
    struct error e;
    const char *folder = options_text(o, OPT_OUTPUT), *given = options_text(o, OPT_HOST);
    enum import_format format;
    bool partly = false;
    if (!folder)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "-o DIR is missing: the folder for the recording"), &e));
    if (given && (strchr(given, '/') || given[0] == '.' || strlen(given) > HOST_MAX))
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "--host: '%.80s' is not the name of a host", given), &e));
    int rc = choose_format(o, &format, &e);
    if (rc)
        return command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    bool table = format == IMPORT_FORMAT_WIDE_CSV || format == IMPORT_FORMAT_DASK;
    if (table && o->argument_count > 1)
        return command_failed(
            EXIT_USAGE, (error_set(&e, -EINVAL, "%s: one FILE only", formats[format].name), &e));
    if (format == IMPORT_FORMAT_DRAGON)
        rc = import_databases(o, folder, &e);
    else if (table)
        rc = import_table(o, format == IMPORT_FORMAT_DASK ? IMPORT_DASK : IMPORT_WIDE_CSV, folder,
                          &e);
    else
        rc = import_points(o, formats[format].rows, folder, &partly, &e);
    return rc < 0 ? command_failed(EXIT_FAILED, &e) : rc ? rc : partly ? EXIT_PARTLY : EXIT_OK;
}
