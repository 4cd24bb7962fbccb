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
static int import_points(const struct options *o, import_fn *read, const char *folder,
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

int command_import(const struct options *o)
{
    struct error e;
    const char *folder = options_text(o, OPT_OUTPUT), *given = options_text(o, OPT_HOST);
    if (!folder)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "-o DIR is missing: the folder for the recording"), &e));
    if (given && (strchr(given, '/') || given[0] == '.' || strlen(given) > HOST_MAX))
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "--host: '%.80s' is not the name of a host", given), &e));
    const char *format = options_text(o, OPT_FORMAT);
    if (strcmp(format, "dragon-sqlite") == 0)
        return import_databases(o, folder, &e) < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
    import_fn *rows = strcmp(format, "csv") == 0       ? import_csv
                      : strcmp(format, "parquet") == 0 ? import_parquet
                      : strcmp(format, "influx") == 0  ? import_influx
                                                       : NULL;
    if (rows)
        return import_points(o, rows, folder, &e) < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
    if (o->argument_count > 1)
        return command_failed(EXIT_USAGE,
                              (error_set(&e, -EINVAL, "%s: one FILE only", format), &e));
    char host[HOST_MAX + 1], path[FOLDER_PATH_MAX];
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else
        host_of(o->arguments[0], host);
    int n = snprintf(path, sizeof path, "%s/%s.sonde", folder, host);
    int status = n < 0 || n >= (int)sizeof path
                     ? error_set(&e, -ENAMETOOLONG, "the path of the recording is too long")
                     : folder_make_all(folder, &e);
    struct store_import_stats stats = {0};
    if (status == 0)
        status = store_import(strcmp(format, "wide-csv") == 0 ? IMPORT_WIDE_CSV : IMPORT_DASK,
                              o->arguments[0], path, str_of(host), &stats, &e);
    if (status < 0)
        return command_failed(EXIT_FAILED, &e);
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
