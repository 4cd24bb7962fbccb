#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/runs_table.h"

#include "base/log.h"
#include "launch/runs.h"
#include "launch/summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Fails if several recordings have this name.
static int check_name(const struct runs_table *t, const char *word, struct error *e)
{
    size_t named = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->rows[i].job.id, word) == 0)
            return 0;
        named += strcmp(job_name(&t->rows[i].job), word) == 0;
    }
    return named > 1 ? error_set(e, -EINVAL,
                                 "%zu runs are called %.80s: give the id of one, or --where "
                                 "'name=%.80s' for all",
                                 named, word, word)
                     : 0;
}

// Returns the reason to keep this row; NULL: it may be removed.
static const char *why_kept(const struct runs_row *row, bool force)
{
    if (row->state != RUNS_ENDED)
        return "it is no recording yet";
    if (row->job.keep && !force)
        return "it is one of `sonde run --keep`; --force removes it all the same";
    return runs_being_written(row->path) ? "it is being written" : NULL;
}

int command_rm(const struct options *o)
{
    struct error e;
    struct runs_table t;
    const struct target_options targets = data_request_targets(o);
    const char *where = options_text(o, OPT_WHERE);
    bool dry = options_flag(o, OPT_DRY_RUN);
    int code = EXIT_OK;
    log_setup(LOG_ERROR, "sonde");
    if (!o->argument_count && !where) {
        error_set(&e, -EINVAL, "name the runs to remove: ids, names, or --where");
        return command_failed(EXIT_USAGE, &e);
    }
    int rc = runs_table_read(&targets, &t, &e);
    if (rc)
        return command_failed(EXIT_FAILED, &e);
    for (int i = 0; i < o->argument_count && !rc; i++)
        rc = check_name(&t, o->arguments[i], &e);
    if (!rc)
        rc = runs_pick(&t, o->arguments, (size_t)o->argument_count, &e);
    if (!rc && where)
        rc = runs_select(&t, where, &e);
    if (rc) {
        runs_table_free(&t);
        return command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    }
    for (size_t i = 0; i < t.count; i++) {
        struct runs_row *row = &t.rows[i];
        const char *why = why_kept(row, options_flag(o, OPT_FORCE));
        char bytes[32];
        summary_bytes_text((double)row->size.bytes, bytes, sizeof bytes);
        if (why) {
            error_set(&e, -EBUSY, "%s stays: %s", row->job.id, why);
            code = command_failed(EXIT_FAILED, &e);
        } else if (!dry && folder_remove(row->path, &e) < 0) {
            code = command_failed(EXIT_FAILED, &e);
        } else {
            printf("%s %s, %s\n", dry ? "would remove" : "removed", row->job.id, bytes);
        }
    }
    if (!t.count)
        printf("no run fulfils the conditions\n");
    runs_table_free(&t);
    return code;
}
