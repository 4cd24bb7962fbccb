#include "import/import.h"

#include "store/csv_lines.h"
#include "store/sqlite_library.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *ending;
    enum import_format format;
} endings[] = {
    {".parquet", IMPORT_FORMAT_PARQUET},  {".influx", IMPORT_FORMAT_INFLUX},
    {".lp", IMPORT_FORMAT_INFLUX},        {".om", IMPORT_FORMAT_OPENMETRICS},
    {".prom", IMPORT_FORMAT_OPENMETRICS}, {".sqlite", IMPORT_FORMAT_SQLITE},
    {".db", IMPORT_FORMAT_DRAGON},
};

static bool has_column(struct str header, struct str name)
{
    while (header.data)
        if (str_eq(str_trim(str_cut(&header, ',')), name))
            return true;
    return false;
}

static enum import_format format_of_line(struct str line)
{
    if (str_starts(line, STR("# TYPE ")) || str_starts(line, STR("# HELP ")) ||
        str_starts(line, STR("# UNIT ")) || str_starts(line, STR("# EOF")))
        return IMPORT_FORMAT_OPENMETRICS;
    if (str_starts(line, STR("#Time,")))
        return IMPORT_FORMAT_LDMS;
    if (has_column(line, STR("time_ns")) && has_column(line, STR("name")))
        return IMPORT_FORMAT_CSV;
    if (has_column(line, STR("job")) && has_column(line, STR("dag")) &&
        has_column(line, STR("timestamp")))
        return IMPORT_FORMAT_DASK;
    return IMPORT_FORMAT_UNKNOWN;
}

static enum import_format format_of_bytes(const char *path)
{
    char bytes[16] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        close(fd);
    struct str begin = {bytes, n > 0 ? (size_t)n : 0};
    return str_starts(begin, STR("SQLite format 3")) ? IMPORT_FORMAT_SQLITE
           : str_starts(begin, STR("PAR1"))          ? IMPORT_FORMAT_PARQUET
                                                     : IMPORT_FORMAT_UNKNOWN;
}

static enum import_format format_of_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str name = str_of(slash ? slash + 1 : path);
    if (str_find(name, STR("tfevents")) >= 0)
        return IMPORT_FORMAT_TENSORBOARD;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (str_ends(name, str_of(endings[i].ending)))
            return endings[i].format;
    return IMPORT_FORMAT_UNKNOWN;
}

static enum import_format format_of_database(const char *path)
{
    struct error ignored;
    const struct sqlite_library *q = sqlite_library_open(&ignored);
    struct sqlite3 *db = q ? sqlite_open(q, path, &ignored) : NULL;
    bool dragon = false;
    if (db) {
        sqlite_has_table(q, db, "datapoints", &dragon);
        q->close(db);
    }
    return dragon ? IMPORT_FORMAT_DRAGON : IMPORT_FORMAT_SQLITE;
}

int import_format_of(const char *path, enum import_format *out, struct error *e)
{
    struct csv_lines lines = {0};
    struct stat info;
    int rc = 0;
    *out = IMPORT_FORMAT_UNKNOWN;
    if (stat(path, &info) < 0)
        return error_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) {
        *out = IMPORT_FORMAT_DRAGON;
        return 0;
    }
    *out = format_of_bytes(path);
    if (*out == IMPORT_FORMAT_UNKNOWN)
        *out = format_of_name(path);
    if (*out == IMPORT_FORMAT_UNKNOWN) {
        rc = csv_lines_open(&lines, path, e);
        if (!rc && text_lines_next(&lines) > 0)
            *out = format_of_line(lines.line);
        csv_lines_close(&lines);
    }
    if (*out == IMPORT_FORMAT_SQLITE)
        *out = format_of_database(path);
    return rc;
}
