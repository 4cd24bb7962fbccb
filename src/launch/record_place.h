// record_place.h - finds the folder for the recording of a run.
#ifndef SONDE_LAUNCH_RECORD_PLACE_H
#define SONDE_LAUNCH_RECORD_PLACE_H

#include "base/error.h"
#include "launch/folder.h"
#include "launch/job.h"

struct launch_options;

// Finds a writable folder without a recording: that of --record, else among the kept runs. Sets
// job->record (--record), or `runs` to the folder of the kept runs. Both stay empty with
// --no-record, and if no folder can be used: then a warning says so, and the command runs all the
// same; with --strict the result is -EROFS with a message.
int record_place_find(const struct launch_options *o, struct job *job, char runs[FOLDER_PATH_MAX],
                      struct error *e);

#endif
