#include "launch/record_place.h"

#include "base/log.h"
#include "launch/run.h"
#include "launch/runs.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// Whether the folder holds the recording of a run, or a file with the name of ours (from a dump).
static bool holds_recording(const struct job *job, const char *place)
{
    char file[FOLDER_PATH_MAX + JOB_HOST_MAX + 16];
    snprintf(file, sizeof file, "%s/%s.sonde", place, job->host);
    return runs_is_run(place) || access(file, F_OK) == 0;
}

// Checks that a recording can be written into the folder, and that the folder holds none yet.
static int check(const struct job *job, const char *place, bool own, struct error *e)
{
    int status = folder_make_all(place, e);
    if (status == 0)
        status = folder_check_writable(place, e);
    if (status == 0 && own && holds_recording(job, place))
        status = error_set(e, -EEXIST, "%s holds a recording already", place);
    return status;
}

int record_place_find(const struct launch_options *o, struct job *job, char runs[FOLDER_PATH_MAX],
                      struct error *e)
{
    struct error first = {0};
    if (o->no_record)
        return 0;
    if (o->record) {
        int status = runs_path(o->record, job->record, &first);
        if (status == 0)
            status = check(job, job->record, true, &first);
        if (status == 0)
            return 0;
        job->record[0] = 0;
    }
    int status = runs_path(o->runs, runs, e);
    if (status == 0)
        status = check(job, runs, false, e);
    if (status < 0)
        runs[0] = 0;
    if (o->nodes.strict && (o->record || status < 0)) {
        if (o->record)
            *e = first;
        error_prefix(
            e, "there is no place for the recording (--record DIR or --no-record changes it)");
        return -EROFS;
    }
    if (status < 0)
        log_warning("no recording is kept: %s; --record DIR or SONDE_RUNS names another place",
                    first.code ? first.text : e->text);
    else if (o->record)
        log_warning("%s: the recording goes to %s instead; --record DIR names another place",
                    first.text, runs);
    e->code = 0; // reported
    return 0;
}
