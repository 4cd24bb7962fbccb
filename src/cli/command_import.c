#include "cli/commands.h"

#include "base/log.h"
#include "collect/collect.h"
#include "import/import.h"
#include "launch/folder.h"
#include "store/import.h"
#include "store/import_dragon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOST_MAX = 64 };

struct importing {
    const struct options *o;
    const char *folder;
    enum import_format *formats; // format of each file
    struct buf lines;            // output: a line for each recording
    struct buf made;             // paths of complete recordings, each followed by a zero byte
    bool partly;
};

// Finds the host in a file's name: the part before the first dot, "node-10hz" for
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

// ---------------------------------------------------------------- databases of Dragon

static void add_database(const struct import_dragon_recording *r, void *user)
{
    struct importing *im = user;
    if (r->bad)
        log_warning("%s: %llu rows could not be read and are left out", r->path,
                    (unsigned long long)r->bad);
    buf_printf(&im->lines, "%s: %llu values in %llu series, %llu rows", r->path,
               (unsigned long long)r->values, (unsigned long long)r->series,
               (unsigned long long)r->rows);
    if (r->repeats)
        buf_printf(&im->lines, " (%llu replaced by later rows of the same time)",
                   (unsigned long long)r->repeats);
    buf_printf(&im->lines, ", %llu bytes\n", (unsigned long long)r->file_bytes);
}

static int import_databases(struct importing *im, struct error *e)
{
    const char **paths = calloc((size_t)im->o->argument_count, sizeof *paths);
    struct import_dragon_options dragon = {.paths = paths,
                                           .folder = im->folder,
                                           .host = options_text(im->o, OPT_HOST),
                                           .own_metric = own_metric,
                                           .made = add_database,
                                           .user = im};
    if (!paths)
        return error_set(e, -ENOMEM, "out of memory");
    for (int i = 0; i < im->o->argument_count; i++)
        if (im->formats[i] == IMPORT_FORMAT_DRAGON)
            paths[dragon.count++] = im->o->arguments[i];
    int rc = dragon.count ? import_dragon(&dragon, e) : 0;
    free(paths);
    return rc;
}

// ---------------------------------------------------------------- tables of points

static const struct {
    const char *name;
    import_fn *rows; // NULL: another function reads the format
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

static void add_made(struct importing *im, const char *path)
{
    buf_add(&im->made, path, strlen(path) + 1);
}

static void add_host(const struct import_hosts_recording *r, void *user)
{
    struct importing *im = user;
    add_made(im, r->path);
    buf_printf(&im->lines,
               "%s: %llu values in %llu series, %llu spans and annotations, %llu bytes\n", r->path,
               (unsigned long long)r->values, (unsigned long long)r->series,
               (unsigned long long)r->events, (unsigned long long)r->file_bytes);
}

static int import_file(struct importing *im, const char *path, import_fn *read,
                       struct import_hosts *to, struct error *e)
{
    struct import_stats stats;
    int rc = read(path, to, &stats, e);
    if (!rc && stats.truncated)
        log_warning("%s: the end of the file is missing; the rest is read", path);
    im->partly |= !rc && stats.truncated;
    if (!rc && stats.bad_rows)
        log_warning("%s: %llu rows could not be read and are left out", path,
                    (unsigned long long)stats.bad_rows);
    return rc;
}

// Imports all files together. Their points and events go to one recording for each host.
static int import_points(struct importing *im, struct error *e)
{
    const struct options *o = im->o;
    struct import_hosts *to = NULL;
    char host[HOST_MAX + 1];
    int rc = 0;
    for (int i = 0; i < o->argument_count && !rc; i++) {
        import_fn *read = formats[im->formats[i]].rows;
        if (read && !to) {
            host_of(o->arguments[i], host);
            const char *given = options_text(o, OPT_HOST);
            struct import_hosts_options where = {.folder = im->folder,
                                                 .host = str_of(given ? given : host),
                                                 .own_metric = own_metric};
            rc = import_hosts_begin(&where, &to, e);
        }
        if (read && !rc)
            rc = import_file(im, o->arguments[i], read, to, e);
    }
    if (rc) {
        import_hosts_cancel(to);
        return rc;
    }
    return to ? import_hosts_end(to, add_host, im, e) : 0;
}

// ---------------------------------------------------------------- one recording for each file

static bool is_table(enum import_format format)
{
    return format == IMPORT_FORMAT_WIDE_CSV || format == IMPORT_FORMAT_DASK;
}

// Imports a table with a column for each series, or a file of dask-metrics, as a recording of one
// host.
static int import_table(struct importing *im, const char *file, enum store_import_format format,
                        struct error *e)
{
    const char *given = options_text(im->o, OPT_HOST);
    char host[HOST_MAX + 1], path[FOLDER_PATH_MAX];
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else
        host_of(file, host);
    int n = snprintf(path, sizeof path, "%s/%s.sonde", im->folder, host);
    if (n < 0 || n >= (int)sizeof path)
        return error_set(e, -ENAMETOOLONG, "the path of the recording is too long");
    struct store_import_stats stats = {0};
    int rc = store_import(format, file, path, str_of(host), &stats, e);
    if (rc)
        return rc;
    add_made(im, path);
    if (stats.bad_rows || stats.bad_cells)
        log_warning("%s: %llu rows and %llu cells could not be read and are left out", file,
                    (unsigned long long)stats.bad_rows, (unsigned long long)stats.bad_cells);
    buf_printf(&im->lines, "%s: %llu values in %llu series, %llu rows, %llu bytes (%.3f a value)\n",
               path, (unsigned long long)stats.values, (unsigned long long)stats.columns,
               (unsigned long long)stats.rows, (unsigned long long)stats.file_bytes,
               stats.values ? (double)stats.file_bytes / (double)stats.values : 0);
    return 0;
}

static int import_tables(struct importing *im, struct error *e)
{
    int rc = 0;
    for (int i = 0; i < im->o->argument_count && !rc; i++)
        if (is_table(im->formats[i]))
            rc = import_table(im, im->o->arguments[i],
                              im->formats[i] == IMPORT_FORMAT_DASK ? IMPORT_DASK : IMPORT_WIDE_CSV,
                              e);
    return rc;
}

// ---------------------------------------------------------------- all files

// Chooses the format of --format, or else the format of each file.
static int choose_formats(struct importing *im, struct error *e)
{
    const struct options *o = im->o;
    const char *name = options_text(o, OPT_FORMAT);
    enum import_format named = IMPORT_FORMAT_UNKNOWN;
    int rc = 0, tables = 0;
    im->formats = calloc((size_t)o->argument_count, sizeof *im->formats);
    if (!im->formats)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 1; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0)
            named = (enum import_format)i;
    for (int i = 0; i < o->argument_count && !rc; i++) {
        im->formats[i] = named;
        if (!name)
            rc = import_format_of(o->arguments[i], &im->formats[i], e);
        if (im->formats[i] == IMPORT_FORMAT_UNKNOWN)
            im->formats[i] = IMPORT_FORMAT_WIDE_CSV;
        tables += is_table(im->formats[i]);
    }
    if (!rc && tables > 1 && options_text(o, OPT_HOST))
        rc =
            error_set(e, -EINVAL,
                      "--host with %d tables: each is a recording of its own; leave out --host, or "
                      "import them one after the other",
                      tables);
    return rc;
}

static void remove_made(struct importing *im)
{
    struct str rest = buf_str(&im->made);
    while (rest.size) {
        struct str path = str_cut(&rest, 0);
        unlink(path.data);
    }
}

// Imports all files. Databases come last. It prints the names of unreadable databases, and keeps
// the recordings of the others.
static int import_all(struct importing *im, struct error *e)
{
    int rc = folder_make_all(im->folder, e);
    if (!rc)
        rc = import_points(im, e);
    if (!rc)
        rc = import_tables(im, e);
    if (!rc && (im->made.failed || im->lines.failed))
        rc = error_set(e, -ENOMEM, "out of memory");
    if (rc) {
        remove_made(im);
        im->lines.size = 0;
        return rc;
    }
    return import_databases(im, e);
}

int command_import(const struct options *o)
{
    struct error e;
    const char *given = options_text(o, OPT_HOST);
    struct importing im = {.o = o, .folder = options_text(o, OPT_OUTPUT)};
    if (!im.folder)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "-o DIR is missing: the folder for the recording"), &e));
    if (given && (strchr(given, '/') || given[0] == '.' || strlen(given) > HOST_MAX))
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "--host: '%.80s' is not the name of a host", given), &e));
    int rc = choose_formats(&im, &e), code;
    if (rc) {
        code = command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    } else {
        rc = import_all(&im, &e);
        code = command_print(&im.lines);
        if (rc)
            code = command_failed(EXIT_FAILED, &e);
        else if (im.partly && code == EXIT_OK)
            code = EXIT_PARTLY;
    }
    free(im.formats);
    buf_free(&im.lines);
    buf_free(&im.made);
    return code;
}
