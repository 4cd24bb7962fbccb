// Reads files from people, systems and other programs: a configuration (YAML), a list of hosts, a
// job.json, a time zone, a table in CSV, an index of runs. The first byte chooses the kind. The
// contents are refused with a message, or accepted and usable.
#include "base/clock.h"
#include "base/log.h"
#include "cli/config.h"
#include "launch/allocation.h"
#include "launch/job.h"
#include "launch/runs_index.h"
#include "query/time_zone.h"
#include "store/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], path[96], made[96];

static void check_words(int rc, const struct error *e)
{
    if (rc && !e->text[0])
        abort();
}

// Reads the file as the system's configuration, whose mistakes stop no command, and as the one that
// --config names.
static void read_config(void)
{
    char *words[] = {(char *)(uintptr_t) "--config", path, (char *)(uintptr_t) "true", NULL};
    for (int named = 0; named < 2; named++) {
        struct options o;
        struct error e = {0};
        bool help;
        if (options_parse_flags(COMMAND_RUN, named ? 3 : 1, named ? words : words + 2, &o, &help,
                                &e) != 0)
            abort();
        int rc = config_read_all(&o, &e);
        if (rc && !named)
            abort();
        check_words(rc, &e);
        for (int id = 0; id < OPT_COUNT; id++)
            if ((o.value[id].source == FROM_FILE || o.value[id].source == FROM_SYSTEM_FILE) &&
                !o.value[id].text)
                abort();
        options_free(&o);
    }
}

static void read_hosts(void)
{
    struct hosts h = {0};
    struct error e = {0};
    int rc = allocation_read_hostfile(path, &h, &e);
    check_words(rc, &e);
    if ((!rc && !h.count) || h.count > HOSTS_MAX)
        abort();
    for (size_t i = 0; i < h.count; i++)
        if (!h.names[i][0] || h.names[i][0] == '-')
            abort();
    hosts_free(&h);
}

static void read_job(void)
{
    struct job j;
    struct error e = {0};
    int rc = job_read(path, &j, &e);
    check_words(rc, &e);
    if (!rc && !j.command)
        abort();
    job_free(&j);
}

static void read_zone(void)
{
    static const int64_t times[] = {INT64_MIN / 2,  -3600,      0,          1700000000,
                                    1774746000 - 1, 1774746000, 4102444800, INT64_C(1) << 40,
                                    INT64_MAX / 2};
    struct arena arena = {0};
    const struct time_zone *zone;
    struct error e = {0};
    int rc = time_zone_load(STR("file"), &arena, &zone, &e);
    check_words(rc, &e);
    for (size_t i = 0; i < sizeof times / sizeof *times && !rc; i++) {
        int32_t offset_s = time_zone_offset(zone, times[i]);
        int64_t utc_s = time_zone_to_utc(zone, times[i]);
        if (llabs(times[i] - utc_s) > INT64_C(1) << 32 || offset_s == INT32_MIN)
            abort();
    }
    arena_free(&arena);
}

static void read_table(void)
{
    for (enum store_import_format format = IMPORT_WIDE_CSV; format <= IMPORT_DASK; format++) {
        struct store_import_stats stats = {0};
        struct error e = {0};
        int rc = store_import(format, path, made, STR("n1"), &stats, &e);
        check_words(rc, &e);
        if ((rc == 0) != (access(made, F_OK) == 0) ||
            (!rc && (!stats.rows || (!stats.columns && format == IMPORT_WIDE_CSV))))
            abort();
        unlink(made);
    }
}

// What is accepted can be written, and is then read again.
static void read_index(void)
{
    const int64_t day_ns = INT64_C(86400) * NS_PER_S;
    char index_path[96];
    struct runs_index all, again;
    snprintf(index_path, sizeof index_path, "%s/.sonde-index", folder);
    if (rename(path, index_path) != 0)
        abort();
    if (runs_index_read(folder, day_ns, &all) == 0) {
        for (size_t i = 0; i < all.count; i++)
            if (strchr(all.lines[i].name, '/') || all.lines[i].name[0] == '.')
                abort();
        runs_index_write(folder, &all);
        if (runs_index_read(folder, day_ns, &again) != 0 || again.count != all.count ||
            again.read_ns != all.read_ns)
            abort();
        runs_index_free(&again);
    }
    runs_index_free(&all);
    unlink(index_path);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    log_setup(LOG_ERROR, "fuzz");
    snprintf(folder, sizeof folder, "/tmp/sonde-fuzz-files-%d", (int)getpid());
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(made, sizeof made, "%s/made.sonde", folder);
    if (mkdir(folder, 0700) != 0 || setenv("TZDIR", folder, 1) != 0 ||
        setenv("SONDE_SYSTEM_CONFIG", path, 1) != 0 ||
        setenv("XDG_CONFIG_HOME", "/nowhere", 1) != 0)
        abort();
    atexit(remove_folder);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(void) = {read_config, read_hosts, read_job,
                                            read_zone,   read_table, read_index};
    if (size < 1)
        return 0;
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data + 1, 1, size - 1, file) != size - 1 || fclose(file) != 0)
        abort();
    readers[data[0] % (sizeof readers / sizeof *readers)]();
    return 0;
}
